"""The composition root: settings in, running parts out. The only package that names adapters.

Rehearsal is another object here, not a flag below: a pass that may not act is built from listers alone.

Import from its modules: most commands need one of them.
"""
