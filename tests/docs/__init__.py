"""The pages that are made from the code, and the tests that hold every page to it.

`python -m tests.docs` (that is `make docs`) writes what is generated. Whole pages come from one function each; inside
a hand-written page, what is generated stands between two comments.
"""
