"""`python -m reaperd.config`, in a checkout: write the reference page anew."""

from pathlib import Path

from reaperd.config.page import document

if __name__ == "__main__":
    Path("docs/configuration.md").write_text(document(), encoding="utf-8")
