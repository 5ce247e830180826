"""Measurements of what must stay fast: `make bench`. Run from the checkout as `python -m bench.NAME`."""
