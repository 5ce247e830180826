"""`python -m tests.soak`: what `make soak` runs."""

import sys

from tests.soak.command import main

sys.exit(main())
