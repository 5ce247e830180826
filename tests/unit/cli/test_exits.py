"""From what happened to the exit code of the contract."""

from __future__ import annotations

from dataclasses import replace

import click
import pytest
from click.testing import CliRunner

from providers.errors import IncompleteListingError, ProviderSetupError
from reaperd.cli.exits import code_of_once, code_of_plan
from reaperd.cli.options import exits
from reaperd.core.model import DeferReason, Outcome, OutcomeKind, PassOutcome, RefusalReason
from reaperd.errors import ConfigError, ExitCode, LedgerUnusableError, Problem
from registry.errors import RegistryUnusableError, RegistryWriteError, WorkerNotFoundError
from registry.model import RegistryFault
from tests.support.worlds import look, policy, ref
from tests.unit.cli import reports

OF_REFUSAL = {
    RefusalReason.LEDGER_UNUSABLE: 5,
    RefusalReason.NOT_LEADER: 75,
    RefusalReason.CLOCK: 5,
    RefusalReason.DEADLINE: 5,
    RefusalReason.WRONG_ACCOUNT: 5,
    RefusalReason.LISTING_INCOMPLETE: 4,
    RefusalReason.REGISTRY_UNUSABLE: 5,
    RefusalReason.REGISTRY_IDENTITY: 5,
    RefusalReason.REGISTRY_MISMATCH: 5,
    RefusalReason.REAP_HOLD: 5,
    RefusalReason.BREAKER_OPEN: 5,
}

OF_OUTCOME = {
    OutcomeKind.WOULD_TERMINATE: 0,
    OutcomeKind.REQUESTED: 0,
    OutcomeKind.UNKNOWN: 1,
    OutcomeKind.SPARED: 0,
    OutcomeKind.ALREADY_GONE: 0,
    OutcomeKind.CONFIRMED_GONE: 0,
    OutcomeKind.PROTECTED: 1,
    OutcomeKind.DENIED: 1,
    OutcomeKind.INVALID_ID: 1,
    OutcomeKind.DEFERRED: 0,
    OutcomeKind.FAILED: 1,
}


@pytest.mark.parametrize("reason", RefusalReason)
def test_a_refusal_has_its_code_in_both_commands(reason):
    report = reports.refused(reason)

    assert code_of_once(report) == code_of_plan(report) == OF_REFUSAL[reason]


@pytest.mark.parametrize("kind", OutcomeKind)
def test_a_termination_that_went_wrong_is_an_error(kind):
    report = reports.report(look(), policy(), outcomes=(Outcome(ref=ref(), kind=kind),))

    assert code_of_once(report) == OF_OUTCOME[kind]


@pytest.mark.parametrize("reason", DeferReason)
def test_a_deferred_pass_is_an_error(reason):
    assert code_of_once(reports.deferred(reason)) == ExitCode.ERROR


def test_a_pass_that_broke_is_an_error():
    assert code_of_once(replace(reports.rehearsal(), outcome=PassOutcome.ERROR)) == ExitCode.ERROR


def test_only_plan_finds():
    assert code_of_plan(reports.rehearsal()) == ExitCode.FINDINGS
    assert code_of_once(reports.rehearsal()) == ExitCode.OK
    assert code_of_plan(reports.report(look(), policy())) == ExitCode.OK


UNUSABLE = RegistryUnusableError(RegistryFault.MISSING, "/r.db", "there is no such file", "Run init")


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (ConfigError((Problem("mode", "is odd"), Problem("tags", "too")), "/c.toml"), 78, "/c.toml: 2 problems"),
        (ProviderSetupError("provider 'x': no plug-in"), 78, "reaperd: provider 'x': no plug-in"),
        (LedgerUnusableError("/l.db", "disk full", "Free it"), 1, "reaperd: /l.db: disk full. Free it."),
        (UNUSABLE, 1, "reaperd: /r.db: there is no such file. Run init"),
        (RegistryWriteError("refused"), 1, "reaperd: refused"),
        (WorkerNotFoundError("no worker 'w'"), 1, "reaperd: no worker 'w'"),
        (IncompleteListingError(()), 1, "reaperd: incomplete listing"),
        (click.UsageError("no such thing"), 2, "no such thing"),
        (click.exceptions.Exit(75), 75, ""),
        (click.Abort(), 1, "Aborted!"),
        (KeyboardInterrupt(), 1, "Aborted!"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else "",
)
def test_an_error_is_a_sentence_and_a_code(error, code, said):
    result = _raising(error)

    assert result.exit_code == code
    assert said in result.stderr
    assert "Traceback" not in result.stderr
    assert result.stdout == ""


def test_what_nobody_foresaw_keeps_its_traceback_but_no_values():
    secret = "hush" + "hush"  # so that the line of code does not hold it

    result = _raising(ZeroDivisionError("\x1b[2Jodd"), secret)

    assert result.exit_code == ExitCode.ERROR
    assert "Traceback (most recent call last)" in result.stderr
    assert r"ZeroDivisionError: \x1b[2Jodd" in result.stderr
    assert "please report it" in result.stderr
    assert "hushhush" not in result.stderr
    assert "\x1b" not in result.stderr


def test_an_error_message_cannot_command_the_terminal():
    result = _raising(RegistryWriteError("a\x1b[2Jb"))

    assert r"a\x1b[2Jb" in result.stderr


def _raising(error, secret=""):
    @click.command()
    @exits
    def command():
        held_in_a_local = secret
        raise error from RuntimeError(str(len(held_in_a_local)))

    return CliRunner().invoke(command, [])
