"""`python -m reaperd`, and the command `reaperd`."""

from reaperd import cli
from reaperd.cli.interrupts import interrupt_surely


def main() -> None:
    """Run a command as a process of its own."""
    interrupt_surely()
    cli.main()


if __name__ == "__main__":
    main()
