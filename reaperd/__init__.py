"""reaperd: look at the clouds, look at the registry, decide without touching anything, act, report."""

__version__ = "0.1.0"
