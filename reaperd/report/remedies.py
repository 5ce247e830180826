"""What stands in the way of a pass, and the command that resolves it. One entry for every reason."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass

from reaperd.core.model import DeferReason, KeepReason, RefusalReason


@dataclass(frozen=True, slots=True, kw_only=True)
class Whereabouts:
    """What the commands have to name so that they can be copied as they stand."""

    config: str | None = None
    """The --config that was given; None when it was not."""
    ledger: str = "/var/lib/reaperd/ledger.db"
    state_dir: str = "/var/lib/reaperd"
    registry: str = "/var/lib/fleet/registry.db"
    recorded: bool = True
    """False for a look that left no trace: its plan cannot be approved yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Remedy:
    """One reason, for a person who was woken by it."""

    stands: str
    """What stands in the way, as a sentence."""
    commands: tuple[str, ...]
    """What to type, in order. `{config}` is the option that was given; a plan has a `{digest}`."""
    advice: str = ""
    """What to know before typing it."""
    unrecorded: tuple[str, ...] = ()
    """What to type before, when the plan was not recorded, and instead, when it is not known."""

    def typed(self, where: Whereabouts, digest: str | None) -> tuple[str, ...]:
        """Return the commands, ready to be copied: those that need a digest only when it is known."""
        facts = {
            "config": option(where),
            "digest": digest,
            "ledger": shlex.quote(where.ledger),
            "state_dir": shlex.quote(where.state_dir),
        }
        ready = tuple(command for command in self.commands if digest is not None or "{digest}" not in command)
        before = self.unrecorded if not where.recorded or ready != self.commands else ()
        return tuple(command.format_map(facts) for command in (*before, *ready))


def option(where: Whereabouts) -> str:
    """Return the option that names the configuration, with the blank before it; empty when none was given."""
    return f" --config {shlex.quote(where.config)}" if where.config else ""


_LEDGER = Remedy(
    stands="The ledger, reaperd's own memory, cannot be opened or written. What cannot be recorded is not done.",
    commands=("reaperd doctor{config}", "ls -ld {state_dir} {ledger}", "df -h {state_dir}"),
    advice="Above it says what is wrong: put the file back, free the disk, or give the folder to the user of reaperd. "
    "The first command says whether it works again.",
)
_VERIFY = Remedy(
    stands="The registry cannot be read for what it is, so nobody knows which machines are tracked.",
    commands=("reaperd registry verify{config}",),
    advice="It names the fault and what to do. reaperd itself never repairs the file.",
)
_TRUST = Remedy(
    stands="The registry is not the one that is known here: another file, an older copy, or one that was restored.",
    commands=("reaperd registry verify{config}", "reaperd registry trust{config}"),
    advice="Trust it only if it was replaced on purpose: whatever it does not list would be an orphan. Another "
    "deployment's is never trusted: correct registry.path, or deployment.",
)
_RESUME = Remedy(
    stands="Somebody put the brake on. Nothing is terminated until it is taken off.",
    commands=("reaperd resume{config}",),
    advice="Ask the one who put it on first.",
)
_LEADER = Remedy(
    stands="Another process holds the lease and acts; this one only looked.",
    commands=("systemctl status reaperd", "reaperd plan{config}"),
    advice="Nothing is wrong if the daemon runs: it does the work. `plan` needs no lease.",
)
_DEADLINE = Remedy(
    stands="The pass had not finished when its time was up (reconcile.deadline).",
    commands=("reaperd plan{config}", "reaperd check-config --show{config}"),
    advice="See which scope is slow or hangs, and raise reconcile.deadline if the cloud is only slow.",
)

REFUSED: Mapping[RefusalReason, Remedy] = {
    RefusalReason.LEDGER_UNUSABLE: _LEDGER,
    RefusalReason.NOT_LEADER: _LEADER,
    RefusalReason.CLOCK: Remedy(
        stands="This machine's clock is wrong or was set, so no age can be trusted.",
        commands=("timedatectl status", "reaperd plan{config}"),
        advice="Get the time service going; the pass after the next correct one judges again.",
    ),
    RefusalReason.DEADLINE: _DEADLINE,
    RefusalReason.WRONG_ACCOUNT: Remedy(
        stands="That the account is the one in [[providers]] is not proved: it is another, or nobody said whose it is.",
        commands=("reaperd doctor{config}", "aws sts get-caller-identity", "reaperd check-config --show{config}"),
        advice="Above it says why. `unproven`: AWS was not asked, or did not answer; provide credentials, or a way to "
        "STS. Another account: correct the credentials, or `account` in the file.",
    ),
    RefusalReason.LISTING_INCOMPLETE: Remedy(
        stands="At least one scope was not listed whole. Then nothing is terminated anywhere.",
        commands=("reaperd doctor{config}", "reaperd plan{config}"),
        advice="End the error of the scopes that FAILED, and look again. A scope that is no longer wanted goes out of "
        "`regions`.",
    ),
    RefusalReason.REGISTRY_UNUSABLE: _VERIFY,
    RefusalReason.REGISTRY_IDENTITY: _TRUST,
    RefusalReason.REGISTRY_MISMATCH: Remedy(
        stands="No machine that the registry names was ever listed: they do not seem to belong together.",
        commands=("reaperd registry list{config}", "reaperd registry trust{config}"),
        advice="Most often the account, registry.path or a provider name is wrong: correct that. Trust the registry "
        "only if its machines are really gone.",
    ),
    RefusalReason.REAP_HOLD: _RESUME,
    RefusalReason.BREAKER_OPEN: Remedy(
        stands="The plan is bigger than the breaker lets through, so none of it is carried out.",
        commands=("reaperd approve {digest}{config}",),
        unrecorded=("reaperd once --dry-run{config}",),
        advice="First ask why so many machines have no row: has the registry lost them? To approve lets exactly the "
        "machines of this plan through, for one hour. Only a recorded plan can be approved.",
    ),
}

DEFERRED: Mapping[DeferReason, Remedy] = {
    DeferReason.THROTTLED: Remedy(
        stands="The cloud said: slow down. What is left was not sent.",
        commands=("reaperd once{config}",),
        advice="The daemon goes on by itself at its next pass.",
    ),
    DeferReason.CREDENTIALS_EXPIRED: Remedy(
        stands="The credentials ran out in the middle. What is left was not sent.",
        commands=("aws sts get-caller-identity", "reaperd once{config}"),
        advice="Renew them; the daemon takes a new session at its next pass.",
    ),
    DeferReason.STOPPING: Remedy(
        stands="The process was asked to stop. What is left was not sent.",
        commands=("reaperd once{config}",),
    ),
    DeferReason.NOT_LEADER: _LEADER,
    DeferReason.REAP_HOLD: _RESUME,
    DeferReason.DEADLINE: _DEADLINE,
    DeferReason.LEDGER_UNUSABLE: _LEDGER,
    DeferReason.REGISTRY_UNUSABLE: _VERIFY,
    DeferReason.REGISTRY_IDENTITY: _TRUST,
}

ENDS_THE_HOLD: Mapping[KeepReason, str] = {
    KeepReason.FOREIGN_ACCOUNT: "it belongs to another account: correct the credentials or its owner tag",
    KeepReason.IN_TRANSITION: "nothing to do: its end is under way",
    KeepReason.TRACKED: "nothing to do: a live row accounts for it",
    KeepReason.AMBIGUOUS_WORKER: "a live row names another machine for its worker, or misspells it: correct that row",
    KeepReason.FOREIGN_REGISTRY: "its registry tag is another fleet's: give one of the two another deployment name",
    KeepReason.NEVER_LIST: "take its id out of reconcile.never (the machine that reaperd runs on stays)",
    KeepReason.PROTECT_TAG: "remove its protect tag, or register it",
    KeepReason.MANAGED: "scale its group down: if it were terminated, it would be launched again",
    KeepReason.ALREADY_REQUESTED: "nothing to do: its termination was requested, and is sent again if it stays",
    KeepReason.PROTECTED: "switch its termination protection off at the cloud, if it may go",
    KeepReason.DENIED: "give reaperd's role the right to terminate it; `reaperd doctor` asks whether it has it",
    KeepReason.INVALID_ID: "the cloud says that this is no id: look for it by its tags",
    KeepReason.FAILED: "see the error code; it is tried again after reconcile.stuck_after",
    KeepReason.LAUNCH_GRACE: "nothing to do: time decides (reconcile.launch_grace)",
    KeepReason.UNCONFIRMED: "nothing to do: further looks decide (reconcile.confirm_passes)",
    KeepReason.ROW_VANISHED: "the row that tracked it is gone, or names another: put it back if it is needed "
    "(registry.vanish_grace)",
}
"""What ends a hold, if anything should."""


def naming_its_configuration(text: str, where: Whereabouts) -> str:
    """Return what a library says about the registry, with the --config that its command of ours needs."""
    return text.replace("`reaperd registry trust`", f"`reaperd registry trust{option(where)}`")


def remedy_of(reason: str) -> Remedy | None:
    """Return what resolves a reason of a refused or deferred pass."""
    for table in (REFUSED, DEFERRED):
        for known, remedy in table.items():
            if known == reason:
                return remedy
    return None
