import pytest

pytest.register_assert_rewrite("alerts.conformance")
