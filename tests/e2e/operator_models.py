"""Judge the resources of the Prometheus operator by its own models. A program: it runs in the tools' environment.

    python operator_models.py rendered.yaml...

Prints a line for each file: the kinds of the resources that it judged, or what is wrong with one.
"""

import sys
from pathlib import Path

import yaml
from cloudcoil.models.prometheus_operator import v1
from pydantic import ValidationError

API = "monitoring.coreos.com/v1"


def judged(path: Path) -> str:
    """Return the kinds of the operator's resources in one file, or what is wrong with one."""
    documents = [each for each in yaml.safe_load_all(path.read_text(encoding="utf-8")) if each]
    ours = [each for each in documents if each["apiVersion"] == API]
    try:
        for document in ours:
            getattr(v1, document["kind"]).model_validate(document)
    except ValidationError as error:
        return f"wrong: {error.errors()[0]['loc']}"
    return " ".join(document["kind"] for document in ours)


if __name__ == "__main__":
    # The models take seconds to be imported: all files in one run.
    sys.stdout.writelines(f"{judged(Path(name))}\n" for name in sys.argv[1:])
