"""What is allowed and worth a second thought."""

import pytest

from reaperd.config import warnings
from tests.unit.config.writing import AWS, TOP, file, loaded

_PINNED = f'{AWS}\naccount = "123456789012"'


def _keys(**parts: str) -> list[str]:
    return [sentence.partition(":")[0] for sentence in warnings(loaded(file(**{"provider": _PINNED, **parts})))]


def test_good_settings_need_no_advice():
    assert _keys() == []


@pytest.mark.parametrize(
    ("more", "key"),
    [
        ('[reconcile]\nlaunch_grace = "0s"', "reconcile.launch_grace"),
        ("[reconcile]\nconfirm_passes = 1", "reconcile.confirm_passes"),
        ('[reconcile]\ninterval = "9s"', "reconcile.interval"),
        ("[reconcile.breaker]\nmax_fraction = 1", "reconcile.breaker.max_fraction"),
        ('[audit]\ninterval = "59s"', "audit.interval"),
        ('[ledger]\nkeep = "23h"', "ledger.keep"),
    ],
)
def test_what_is_worth_a_second_thought_is_named(more, key):
    assert _keys(more=more) == [key]


@pytest.mark.parametrize("key", ["max_per_pass", "max_fraction", "max_per_hour"])
def test_enforcing_with_a_breaker_of_zero_is_named(key):
    more = f"[reconcile.breaker]\n{key} = 0"

    assert _keys(top=f'{TOP}\nmode = "enforce"', more=more) == [f"reconcile.breaker.{key}"]
    assert _keys(more=more) == []


@pytest.mark.parametrize("folder", ["/tmp", "/tmp/a", "/var/tmp/a", "/dev/shm/a", "/run/reaperd"])
def test_a_folder_that_is_emptied_is_named(folder):
    assert _keys(top=f'{TOP}\nstate_dir = "{folder}"') == ["state_dir"]


def test_a_folder_that_only_sounds_so_is_not_named():
    assert _keys(top=f'{TOP}\nstate_dir = "/tmpfiles"') == []


def test_an_account_that_is_not_pinned_is_named():
    assert _keys(provider=AWS) == ["providers.0.account"]
