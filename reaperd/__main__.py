"""`python -m reaperd`."""

from reaperd.cli import main

__all__ = ["main"]

if __name__ == "__main__":
    main()
