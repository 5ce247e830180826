"""`history` and `explain`: what was decided, when, and on which evidence. Both only read."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from reaperd.cli.options import Format, config_option, exits, fail, format_option, load_settings, say
from reaperd.cli.output import blank_paper, put, put_json, whereabouts
from reaperd.cli.surroundings import surroundings
from reaperd.clock import SystemClock
from reaperd.core.history import EntryKind, Wanted
from reaperd.core.model import OutcomeKind, PassOutcome
from reaperd.errors import ExitCode

if TYPE_CHECKING:
    from reaperd.ledger.history import LedgerFile

OUTCOMES = tuple(dict.fromkeys(str(outcome) for outcome in (*PassOutcome, *OutcomeKind)))


def _moment(_ctx: click.Context, _param: click.Parameter, value: str | None) -> datetime | None:
    """Return a time that was given as a duration before now, or as a date or time in UTC."""
    from reaperd.config.durations import parse_duration  # noqa: PLC0415 - heavy

    if value is None:
        return None
    try:
        return SystemClock().now() - parse_duration(value)
    except ValueError:
        pass
    try:
        given = datetime.fromisoformat(value)
    except ValueError as error:
        msg = f"{value!r} is neither a duration before now (90s, 2h, 7d) nor a time (2026-01-10, 2026-01-10T12:00)"
        raise click.BadParameter(msg) from error
    return given if given.tzinfo is not None else given.replace(tzinfo=UTC)


since_option = click.option(
    "--since", metavar="TIME", callback=_moment, help="Not before: 2h or 7d ago, or a time in UTC."
)
until_option = click.option("--until", metavar="TIME", callback=_moment, help="Not after; likewise.")


@click.command()
@since_option
@until_option
@click.option(
    "--outcome",
    "outcomes",
    metavar="OUTCOME",
    type=click.Choice(OUTCOMES),
    multiple=True,
    help="Of the pass (refused) or of a termination (requested); may be given again.",
)
@click.option("--reason", "reasons", metavar="REASON", multiple=True, help="Of the pass, a verdict or a termination.")
@click.option(
    "--instance", "machines", metavar="ID", multiple=True, help="An instance id, a worker id or PROVIDER/REGION/ID."
)
@click.option("--scope", "scopes", metavar="SCOPE", multiple=True, help="PROVIDER/REGION, or a whole PROVIDER.")
@click.option(
    "--kind", "kinds", type=click.Choice([str(kind) for kind in EntryKind]), multiple=True, help="Only these."
)
@click.option("--pass", "pass_id", metavar="ID", default="", help="One pass, by its id or how that begins.")
@click.option(
    "--limit",
    metavar="N",
    type=click.IntRange(min=0),
    default=20,
    show_default=True,
    help="How many, the newest; 0 for all.",
)
@click.option("--verify", is_flag=True, help="Check that nothing recorded was changed since, and show nothing else.")
@format_option
@config_option
@exits
def history(  # noqa: PLR0913 - one parameter an option
    *,
    since: datetime | None,
    until: datetime | None,
    outcomes: tuple[str, ...],
    reasons: tuple[str, ...],
    machines: tuple[str, ...],
    scopes: tuple[str, ...],
    kinds: tuple[str, ...],
    pass_id: str,
    limit: int,
    format_: Format,
    config: Path | None,
    verify: bool,
) -> None:
    """Show recorded passes, and what operators did.

    Of each pass: its outcome, every verdict that changed, every termination.
    The table has the newest first, and passes in a row that said the same as
    one. JSON is one object a line and, like CSV, has the newest last and every
    pass for itself. Reads the ledger alone, and leaves no trace.

    \b
    Examples:
      reaperd history --since 2h
      reaperd history --outcome refused --since 7d --limit 0
      reaperd history --instance i-0123456789abcdef0
      reaperd history --format json --limit 0 | jq -c .outcome
      reaperd history --verify

    \b
    Exit codes: 0 shown; 1 there is no ledger, it is another deployment's or
    cannot be read, or --verify found a broken record; 78 bad configuration.
    """
    from reaperd.ledger.history import history as read_history  # noqa: PLC0415 - heavy
    from reaperd.report.history import draw_history, history_lines, history_sheet  # noqa: PLC0415
    from reaperd.wiring.explaining import ledger_file  # noqa: PLC0415

    ledger = ledger_file(load_settings(config))
    if verify:
        _verify(ledger, format_)
        return
    wanted = Wanted(
        since=since,
        until=until,
        kinds=frozenset(kinds),
        outcomes=frozenset(outcomes),
        reasons=frozenset(reasons),
        machines=frozenset(machines),
        scopes=frozenset(scopes),
        pass_id=pass_id,
    )
    page = read_history(ledger, wanted, limit=limit or None, runs=format_ is Format.TABLE)
    match format_:
        case Format.JSON:
            put(history_lines(page.told))
        case Format.CSV:
            put(history_sheet(page.told))
        case Format.TABLE:
            paper = blank_paper()
            draw_history(page.told, paper, more=page.more)
            put(paper.text())
            return
    if page.more:
        say(f"only the newest {limit:,} are shown; --limit 0 shows all")


@click.command()
@click.argument("name", metavar="INSTANCE_ID")
@click.option("--look", is_flag=True, help="Ask the clouds now, instead of judging on the last recorded look.")
@since_option
@until_option
@format_option
@config_option
@exits
def explain(
    name: str, since: datetime | None, until: datetime | None, format_: Format, config: Path | None, *, look: bool
) -> None:
    """Tell why a machine is kept or terminated.

    Shows what happened to it, and every condition of its termination, met or
    not, with when time alone would settle it. Judged by the rules of a pass at
    this moment, on the last recorded look; with --look on one made now, which
    leaves no trace.

    INSTANCE_ID may also be a worker id, or PROVIDER/REGION/ID. For one that was
    never seen, shows which scopes were listed whole, and when: so it was not
    there, or does not carry our tag. --since and --until bound what happened
    and that proof.

    \b
    Examples:
      reaperd explain i-0123456789abcdef0
      reaperd explain w-17 --look
      reaperd explain w-17 --format json | jq .machines[0].events

    \b
    Exit codes: 0 told; 1 it was never seen, or the ledger cannot be read;
    78 bad configuration.
    """
    from reaperd.report.explain import dossier_document, dossier_sheet, draw_dossier  # noqa: PLC0415 - heavy
    from reaperd.wiring.explaining import explained, explained_live  # noqa: PLC0415

    settings, wanted = load_settings(config), Wanted(since=since, until=until)
    if look:
        with surroundings() as around:
            dossier = explained_live(settings, name, wanted, around)
    else:
        dossier = explained(settings, name, wanted, SystemClock())
    where = whereabouts(config, settings, recorded=True)
    match format_:
        case Format.JSON:
            put_json(dossier_document(dossier, where))
        case Format.CSV:
            put(dossier_sheet(dossier, where))
        case Format.TABLE:
            paper = blank_paper()
            draw_dossier(dossier, paper, where)
            put(paper.text())
    raise click.exceptions.Exit(ExitCode.OK if dossier.seen else ExitCode.ERROR)


def _verify(ledger: LedgerFile, format_: Format) -> None:
    from reaperd.ledger.history import verify  # noqa: PLC0415 - heavy
    from reaperd.report.document import moment  # noqa: PLC0415
    from reaperd.report.parts import many  # noqa: PLC0415

    found = verify(ledger)
    since = None if found.since is None else moment(found.since)
    if format_ is Format.JSON:
        told: dict[str, object] = {
            "kind": "verification",
            "ok": not found.broken,
            "passes": found.passes,
            "acts": found.acts,
            "since": since,
            "newest_hash": found.newest_hash or None,
            "broken": list(found.broken),
        }
        put_json(told)
    elif not found.broken:
        put(f"OK: {found.passes:,} passes since {since or '-'} and {many(found.acts, 'act')} are as recorded.\n")
        if found.newest_hash:
            put(f"newest hash {found.newest_hash}\n")
    if found.broken:
        fail(f"{ledger.path}: {'; '.join(found.broken)}", ExitCode.ERROR)
