"""`python -m tests.docs`, in a checkout: write the generated pages anew."""

from tests.docs.pages import ROOT, pages

if __name__ == "__main__":
    for name, text in pages(ROOT).items():
        (ROOT / name).write_text(text, encoding="utf-8")
