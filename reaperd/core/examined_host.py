"""What is to be thought of this host: its ledger, the registry that it reads, and whether reaperd runs. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from shlex import quote

from reaperd.core.findings import Finding, Grade, Subject, many
from reaperd.core.guards import Objection
from reaperd.core.model import Brake, RefusalReason
from reaperd.errors import HttpError
from registry.model import RegistrySnapshot

MUCH_TOO_FULL = 16 * 1024**2
TOO_FULL = 256 * 1024**2
"""Bytes. A ledger grows by some kilobytes a pass; the disk is seldom its own."""

_OTHERS_WRITE, _GROUP_WRITES = 0o002, 0o020
_OF_DYNAMIC_USERS = "/var/lib/private/"
"""Where systemd keeps the state folders of services with DynamicUser (systemd.exec(5))."""


# ---------------------------------------------------------------- what was seen


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """The folder of the ledger, or the nearest one above that is there."""

    folder: str
    is_made: bool
    """False when it is one above, and the ledger's own would be made for its user alone."""
    owner: str
    mode: int
    """The permission bits."""
    free_bytes: int
    filesystem: str
    is_network: bool
    is_volatile: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """The process that holds the lease."""

    pid: int
    host: str
    dead: bool
    """True when that is proved."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerFacts:
    """What is known of the ledger without writing anything."""

    path: str
    user: str
    """Who asks."""
    ground: Ground | None
    """None when it could not be seen."""
    exists: bool = False
    unwritable: tuple[str, ...] = ()
    """What this user would have to write, and may not."""
    trouble: str = ""
    """Why it cannot be used, in words; empty when it can, or is not there."""
    remedy: str = ""
    schema: int | None = None
    """None when it was not read."""
    size_bytes: int = 0
    brake: Brake | None = None
    holder: Holder | None = None
    """None when nobody holds the lease."""
    locked_by: int | None = None
    """The process that holds the write lock and does not let go, 0 for one that cannot be seen; None without one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistryFacts:
    """What is known of the registry."""

    path: str
    snapshot: RegistrySnapshot | None = None
    """None when it cannot be used."""
    trouble: str = ""
    remedy: str = ""
    is_known: bool = False
    """True when the ledger knows a registry."""
    network: str = ""
    """The network file system that it lies on; empty when it is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpFacts:
    """What is known of the daemon's own HTTP server."""

    listen: str
    """Empty when it is switched off."""
    troubles: tuple[HttpError, ...] = ()
    """Why it could not be started."""
    is_taken: bool = False
    """True when a process listens there already."""


# ---------------------------------------------------------------- the host


def judge_settings(path: str, mode: str, advice: Iterable[str]) -> Iterator[Finding]:
    """Yield what is to be said of a configuration that is right."""
    yield Finding(subject=Subject.SETTINGS, grade=Grade.OK, scope=path, text=f"right, mode {mode}")
    for text in advice:
        yield Finding(
            subject=Subject.SETTINGS,
            grade=Grade.WARNING,
            text=text,
            remedy="Change it, or leave it if that is meant.",
        )


def judge_host(own_instance_id: str | None) -> Finding:
    """Return what is to be said of the machine that this runs on."""
    text = "not EC2, or its metadata service does not say which instance: no machine is held for being this one"
    if own_instance_id is not None:
        text = f"this is {own_instance_id}, which is never terminated"
    return Finding(subject=Subject.HOST, grade=Grade.OK, text=text)


def judge_http(facts: HttpFacts, running: Holder | None) -> Iterator[Finding]:
    """Yield what is to be said of the HTTP server. `running` is a living reaperd on this host, by its lease."""
    for trouble in facts.troubles:
        yield Finding(
            subject=Subject.HTTP,
            grade=Grade.FAILURE,
            scope=trouble.where,
            text=f"{trouble.detail}, so `reaperd run` would end at once",
            remedy=f"{trouble.remedy}.",
        )
    if facts.is_taken and running is None:
        yield Finding(
            subject=Subject.HTTP,
            grade=Grade.FAILURE,
            scope=f"http.listen {facts.listen}",
            text="another process listens there, and by the lease no reaperd runs on this host",
            remedy="Stop it, or set another http.listen.",
            commands=(f"ss -ltnp 'sport = :{facts.listen.rpartition(':')[2]}'",),
        )
    elif not facts.troubles:
        yield Finding(subject=Subject.HTTP, grade=Grade.OK, text=_served(facts, running))


def _served(facts: HttpFacts, running: Holder | None) -> str:
    if not facts.listen:
        return "switched off: no probe and no metric is answered"
    if facts.is_taken and running is not None:
        return f"{facts.listen} is taken, by process {running.pid} as it seems, which holds the lease"
    return f"{facts.listen} can be had"


# ---------------------------------------------------------------- the registry


def judge_registry(facts: RegistryFacts, standing: Iterable[Objection]) -> Iterator[Finding]:
    """Yield what is to be said of the registry. `standing` is what a pass would hold against it."""
    if facts.snapshot is None:
        yield Finding(
            subject=Subject.REGISTRY,
            grade=Grade.FAILURE,
            scope=facts.path,
            text=facts.trouble,
            remedy=facts.remedy,
            reason=RefusalReason.REGISTRY_UNUSABLE,
        )
        return
    refused = [
        Finding(subject=Subject.REGISTRY, grade=Grade.FAILURE, scope=facts.path, text=text, reason=reason)
        for reason, text in standing
    ]
    yield from refused
    if facts.network:
        yield Finding(
            subject=Subject.REGISTRY,
            grade=Grade.WARNING,
            scope=facts.path,
            text=f"it lies on {facts.network}: SQLite cannot rely on the locks of a network file system",
            remedy="Let the control plane and reaperd run on one host, with the file on a local disk.",
        )
    if not refused:
        yield Finding(subject=Subject.REGISTRY, grade=Grade.OK, scope=facts.path, text=_told(facts, facts.snapshot))


def _told(facts: RegistryFacts, snapshot: RegistrySnapshot) -> str:
    identity = snapshot.identity
    live = sum(1 for worker in snapshot.workers if worker.state.is_live)
    written = f"{identity.updated_at:%Y-%m-%d %H:%M:%S} UTC" if identity.updated_at is not None else "unknown"
    known = "" if facts.is_known else "; not known here yet: the first pass takes it"
    return (
        f"{identity.registry_id} of deployment {identity.deployment}, epoch {identity.epoch:,}: "
        f"{many(len(snapshot.workers), 'row')}, {live:,} live, last written {written}{known}"
    )


# ---------------------------------------------------------------- the ledger


def judge_ledger(facts: LedgerFacts) -> Iterator[Finding]:
    """Yield what is to be said of the ledger, of the brake in it, and of who holds the lease."""
    odd = [*_ground(facts), *_access(facts), *_content(facts), *_lock(facts)]
    yield from odd
    if all(finding.grade is not Grade.FAILURE for finding in odd):
        yield Finding(subject=Subject.LEDGER, grade=Grade.OK, scope=facts.path, text=_usable(facts))
    if not facts.trouble:
        yield from _brake(facts.brake)
        yield _daemon(facts.holder)


def _ground(facts: LedgerFacts) -> Iterator[Finding]:
    ground = facts.ground
    if ground is None:
        return
    if ground.is_network:
        text = f"it lies on {ground.filesystem}, a network file system, whose locks cannot be relied on"
        remedy = "Let state_dir be a folder on a local disk."
        yield _refused(_failed(facts, text, remedy, f"df -hT {quote(ground.folder)}"))
    if ground.is_volatile:
        yield _warned(
            facts,
            f"it lies on {ground.filesystem}: it goes with the next boot, or with the container",
            "Let state_dir be a folder on a disk that stays: first-seen times, requests and the brake are in it.",
            f"df -hT {quote(ground.folder)}",
        )
    if ground.free_bytes < TOO_FULL:
        judged = _failed if ground.free_bytes < MUCH_TOO_FULL else _warned
        text = f"only {size(ground.free_bytes)} are free: what cannot be recorded is not done"
        yield judged(facts, text, "Free the disk.", f"df -h {quote(ground.folder)}")
    if ground.is_made and ground.mode & (_OTHERS_WRITE | _GROUP_WRITES):
        yield _open_folder(facts, ground)


def _open_folder(facts: LedgerFacts, ground: Ground) -> Finding:
    who = "everybody" if ground.mode & _OTHERS_WRITE else "its group"
    text = f"the folder {ground.folder} can be written by {who}, who could replace the ledger and take the brake off"
    judged = _failed if ground.mode & _OTHERS_WRITE else _warned
    remedy = "Keep it for the user of reaperd alone; if others need it, give the ledger a folder of its own."
    return judged(facts, text, remedy, f"chmod go-w {quote(ground.folder)}")


def _access(facts: LedgerFacts) -> Iterator[Finding]:
    owner = facts.ground.owner if facts.ground is not None else facts.user
    if facts.unwritable:
        text = f"the user {facts.user} may not write {', '.join(facts.unwritable)}"
        remedy = "Run reaperd as the user who owns it, or give it to USER."
        yield _refused(_failed(facts, text, remedy, _given(facts)))
    elif facts.exists and owner != facts.user:
        yield _warned(
            facts,
            f"it is {owner}'s, and this was asked by {facts.user}: what the daemon may read and write can differ",
            f"Ask again as {owner}.",
            *_asking_as(owner, facts.ground),
        )


def _asking_as(owner: str, ground: Ground | None) -> tuple[str, ...]:
    # Nobody can become a user whom systemd makes for as long as a service runs, and root alone gets into its folder.
    if ground is not None and ground.folder.startswith(_OF_DYNAMIC_USERS):
        return ("systemctl start reaperd-doctor", "journalctl --unit reaperd-doctor --output cat --since -5min")
    return (f"sudo -u {quote(owner)} reaperd doctor{{config}}",)


def _given(facts: LedgerFacts) -> str:
    folder = quote(facts.path.rpartition("/")[0])
    made = facts.ground is not None and facts.ground.is_made
    return f"chown -R USER {folder}" if made else f"install -d -m 700 -o USER {folder}"


def _content(facts: LedgerFacts) -> Iterator[Finding]:
    if facts.trouble:
        yield Finding(
            subject=Subject.LEDGER,
            grade=Grade.FAILURE,
            scope=facts.path,
            text=facts.trouble,
            remedy=facts.remedy,
            reason=RefusalReason.LEDGER_UNUSABLE,
        )


def _lock(facts: LedgerFacts) -> Iterator[Finding]:
    if facts.locked_by is None:
        return
    who = f"process {facts.locked_by}" if facts.locked_by else "a process that cannot be seen from here"
    look = f"ps -fp {facts.locked_by}" if facts.locked_by else f"fuser -v {quote(facts.path)}"
    text = f"{who} holds its write lock and does not let go: nothing can be recorded, so nothing is done"
    yield _refused(_failed(facts, text, "See what it does. End it, or let it end its transaction.", look))


def _usable(facts: LedgerFacts) -> str:
    what = f"schema {facts.schema}, {size(facts.size_bytes)}" if facts.schema is not None else "not made yet"
    if facts.ground is None:
        return what
    ground = facts.ground
    where = f"{ground.folder} is {ground.owner}'s, mode {ground.mode:o}, on {ground.filesystem}"
    return f"{what}; {where}, {size(ground.free_bytes)} free"


def _brake(brake: Brake | None) -> Iterator[Finding]:
    if brake is not None:
        yield Finding(
            subject=Subject.BRAKE,
            grade=Grade.WARNING,
            text=f"on since {brake.since:%Y-%m-%d %H:%M:%S} UTC, by {brake.by}: {brake.reason or 'no reason given'}",
            reason=RefusalReason.REAP_HOLD,
        )


def _daemon(holder: Holder | None) -> Finding:
    if holder is None:
        text = "nobody holds the lease: reaperd does not run at the moment"
        return Finding(subject=Subject.DAEMON, grade=Grade.OK, text=text)
    who = f"process {holder.pid} on {holder.host}"
    if not holder.dead:
        return Finding(subject=Subject.DAEMON, grade=Grade.OK, text=f"{who} holds the lease and acts")
    return Finding(
        subject=Subject.DAEMON,
        grade=Grade.WARNING,
        text=f"{who} holds the lease and is dead; the next process takes it over at once",
        remedy="See why it ended.",
        commands=("systemctl status reaperd",),
    )


def _failed(facts: LedgerFacts, text: str, remedy: str, *commands: str) -> Finding:
    return Finding(
        subject=Subject.LEDGER,
        grade=Grade.FAILURE,
        scope=facts.path,
        text=text,
        remedy=remedy,
        commands=commands,
    )


def _refused(finding: Finding) -> Finding:
    return replace(finding, reason=RefusalReason.LEDGER_UNUSABLE)


def _warned(facts: LedgerFacts, text: str, remedy: str, *commands: str) -> Finding:
    return Finding(
        subject=Subject.LEDGER,
        grade=Grade.WARNING,
        scope=facts.path,
        text=text,
        remedy=remedy,
        commands=commands,
    )


def size(number: int) -> str:
    """Return a number of bytes for a person."""
    for unit, factor in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if number >= factor:
            return f"{number / factor:.1f} {unit}"
    return f"{number} B"
