# Everything a person or CI runs. `make help` lists it.
# The tools live in .venv, which every target makes for itself.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
PACKAGES := reaperd providers registry alerts
PYTEST := $(BIN)/python -m pytest
# What is compiled is kept, whatever the environment says: a thousand processes are started from it.
unexport PYTHONDONTWRITEBYTECODE

# Only what has to be counted is run under coverage, which doubles its time: the examples see every line by themselves.
COUNTED := tests/contract tests/unit
# The same contracts as of the fakes, over an embedded AWS.
OVER_MOTO := $(addprefix tests/contract/providers/,test_aws.py test_aws_provider.py test_events.py test_typelists.py)
# What runs the program as processes waits more than it works; the laws, which do nothing but work, fill the time.
PROCESSES := tests/soak tests/integration
FOLDERS := $(filter-out %/__pycache__,$(patsubst %/,%,$(wildcard tests/*/)))
NOT_COUNTED := $(OVER_MOTO) $(PROCESSES) $(filter-out $(PROCESSES) $(COUNTED) tests/e2e,$(FOLDERS))
SIDE_BY_SIDE := 3
# The slow ones are collected first; dealt out like this, nobody waits for the last of them.
ONE_BY_ONE := -n 5 --dist load --maxschedchunk 1

.DEFAULT_GOAL := help
.PHONY: help demo test lint format types imports laws mutants contract scenarios integration e2e soak bench bench-full bench-check coverage docs build ci clean

help: ## List the targets
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-12s %s\n", $$1, $$2}'

$(STAMP): pyproject.toml requirements/dev.txt
	@$(PYTHON) -c 'import sys; sys.exit("reaperd needs Python 3.11 or newer; try: make PYTHON=python3.12 ...") if sys.version_info < (3, 11) else 0'
	@echo "making $(VENV) with the program and its tools: this takes some minutes, once"
	@$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --requirement requirements/dev.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

demo: $(STAMP) ## Show the whole story on an embedded AWS: no account, nothing left behind
	@$(BIN)/reaperd demo

test: $(STAMP) ## Run every test that needs nothing but PyPI, with coverage
	$(BIN)/coverage erase
	$(PYTEST) -n $(SIDE_BY_SIDE) --dist worksteal --cov --cov-report= $(addprefix --ignore=,$(OVER_MOTO)) $(COUNTED)
	$(MAKE) --no-print-directory coverage
	$(PYTEST) $(ONE_BY_ONE) $(NOT_COUNTED)

coverage: $(STAMP) ## Judge the coverage of the last test run: 95 % overall, 100 % of the core
	$(BIN)/coverage report --fail-under=95
	$(BIN)/coverage report --include='reaperd/core/*' --fail-under=100

lint: $(STAMP) ## Check style, format and spelling
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/codespell $(PACKAGES) tests docs examples systemd deploy bench README.md CHANGELOG.md CONTRIBUTING.md SECURITY.md AGENTS.md Makefile

format: $(STAMP) ## Format the code and fix what can be fixed
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

types: $(STAMP) ## Check the types, twice
	$(BIN)/mypy
	$(BIN)/pyright --pythonpath $(BIN)/python

imports: $(STAMP) ## Check that imports point inward
	$(BIN)/lint-imports

laws: $(STAMP) ## Run the laws of the decision, with many examples
	$(PYTEST) tests/property

mutants: $(STAMP) ## Break the core in many ways and show that the tests notice each
	$(BIN)/python -m tests.mutants

contract: $(STAMP) ## Run the conformance suites on the fakes and on the real adapters
	$(PYTEST) tests/contract

scenarios: $(STAMP) ## Run the acceptance cases and list how much is checked of each
	$(PYTEST) tests/scenarios
	$(BIN)/python -m tests.scenarios

integration: $(STAMP) ## Run commands and the daemon as processes against an embedded AWS
	$(PYTEST) -n $(SIDE_BY_SIDE) --dist worksteal tests/integration

# What is not there is skipped, and named; with REAPERD_E2E_ALL=1 it fails. .ci/run says which Debian packages it takes.
e2e: $(STAMP) ## Run it under systemd, in a container, beside Prometheus; or e2e-systemd ...
	$(PYTEST) tests/e2e

# One of them by its name: make e2e-systemd, e2e-image, e2e-kubernetes, e2e-prometheus, e2e-going_live ...
e2e-%: $(STAMP)
	$(PYTEST) tests/e2e/test_$*.py

soak: $(STAMP) ## Run 5,000 passes under faults, and kill them 200 times and at every line; writes docs/soak.md
	REAPERD_KILL_EVERYWHERE=1 $(PYTEST) tests/integration/test_kill.py tests/integration/test_big_plans.py
	$(BIN)/python -m tests.soak --passes 5000 --kills 200 --write docs/soak.md

bench: $(STAMP) ## Measure what must stay fast, as ratios beside what people would use instead: some two minutes
	$(BIN)/python -m bench.run --small

bench-full: $(STAMP) ## Measure it up to 100,000 machines; writes docs/performance.md
	$(BIN)/python -m bench.run --full --rounds 1 --json .cache/bench/full.json --write docs/performance.md

bench-check: $(STAMP) ## Run the measurements on a small fleet: the results are judged, not the times
	$(BIN)/python -m bench.run --check
	$(BIN)/python -m bench.terminate --check

docs: $(STAMP) ## Write the generated pages anew
	$(BIN)/python -m reaperd.config
	$(BIN)/python -m tests.docs

build: $(STAMP) ## Build the wheel and look into it
	rm -rf dist
	$(BIN)/python -m build --quiet --no-isolation --wheel
	$(PYTEST) tests/packaging

ci: lint types imports test mutants build e2e ## What CI runs

clean: ## Remove everything that was made here
	rm -rf $(VENV) .cache dist .coverage .coverage.* .mypy_cache .ruff_cache .hypothesis .import_linter_cache
