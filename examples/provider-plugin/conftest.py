"""Makes the failures of the suites readable."""

pytest_plugins = ["providers.conformance"]
