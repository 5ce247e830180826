"""`python -m tests.mutants`: what `make mutants` runs."""

import sys

from tests.mutants.run import main

sys.exit(main())
