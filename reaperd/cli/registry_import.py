"""`registry import`: take over the workers of another book."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click

from reaperd.cli.asking import be_sure
from reaperd.cli.options import config_option, exits, fail, yes_option
from reaperd.cli.output import blank_paper, put
from reaperd.cli.registry_target import Target, path_option, target
from reaperd.errors import ExitCode
from reaperd.report.visible import visible
from registry.errors import RegistryImportError

if TYPE_CHECKING:
    from registry.importing import Import
    from registry.model import Worker

_SQLITE = b"SQLite format 3\0"
_SHOWN = 20


class Book(StrEnum):
    """What can be taken over."""

    CEDANA = "cedana"
    CSV = "csv"
    JSON = "json"


def _names(_ctx: click.Context, _param: click.Parameter, values: Sequence[str]) -> Mapping[str, str]:
    for value in values:
        if not all(value.partition("=")):
            msg = f"{value!r} is not THEIRS=OURS, such as aws=aws-prod"
            raise click.BadParameter(msg)
    return {theirs: ours for theirs, _, ours in (value.partition("=") for value in values)}


@click.command("import")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--from", "book", type=click.Choice([str(book) for book in Book]), required=True, help="What FILE is.")
@click.option(
    "--provider",
    "names",
    metavar="THEIRS=OURS",
    multiple=True,
    callback=_names,
    help="How a provider of FILE is called in [[providers]]; may be given again.",
)
@yes_option
@path_option
@config_option
@exits
def import_(
    file: Path, book: str, names: Mapping[str, str], path: Path | None, config: Path | None, *, yes: bool
) -> None:
    """Take over the workers of another book.

    csv and json are what `reaperd registry list --format` prints. cedana is
    the SQLite database of a Cedana client, or its instances as JSON; what was
    deleted there is terminated here.

    Shows what it would write, and asks. All rows are written, or none. A
    worker that stands in the registry already is left as it is.

    \b
    Examples:
      reaperd registry import --from csv workers.csv
      reaperd registry import --from cedana cedana.db --provider aws=aws-prod

    \b
    Exit codes: 0 written, or there was nothing to write; 1 a row cannot be
    used, the registry cannot be written, or you said no; 2 nobody could be
    asked. Nothing was written but with 0.
    """
    about = target(path, config)
    try:
        told = _read(file, Book(book)).at(names)
    except RegistryImportError as error:
        _refuse(file, error.problems)
    standing = {worker.worker_id: worker for worker in _standing(about)}
    new = [worker for worker in told.workers if worker.worker_id not in standing]
    put(_page(file, told, new, standing, about))
    if not new:
        return
    be_sure(f"Write {_workers(len(new))} into {visible(str(about.path))}?", yes=yes)
    about.writer().add_all(new)
    put(f"wrote {_workers(len(new))}\n")


# ---------------------------------------------------------------- reading


def _read(file: Path, book: Book) -> Import:
    from registry.importing import from_cedana, read_csv, read_json, records_of  # noqa: PLC0415 - heavy
    from registry.sqlite.cedana import read_instances  # noqa: PLC0415

    content = _content(file)
    if book is Book.CEDANA and content.startswith(_SQLITE):
        return from_cedana(read_instances(file))
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise RegistryImportError((f"it is no text in UTF-8: {error.reason} at byte {error.start}",)) from error
    match book:
        case Book.CEDANA:
            return from_cedana(records_of(text, "instances"))
        case Book.CSV:
            return read_csv(text)
        case Book.JSON:
            return read_json(text)


def _content(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise RegistryImportError((f"it cannot be read: {error.strerror}",)) from error


def _standing(about: Target) -> tuple[Worker, ...]:
    from registry.sqlite import SqliteRegistry  # noqa: PLC0415 - heavy

    return SqliteRegistry(about.path, about.busy_timeout).snapshot().workers


def _refuse(file: Path, problems: Sequence[str]) -> NoReturn:
    told = [f"  {problem}" for problem in problems[:_SHOWN]]
    if len(problems) > _SHOWN:
        told.append(f"  and {len(problems) - _SHOWN:,} more")
    fail(
        "\n".join([f"{file}: nothing was written; {len(problems):,} of its rows or keys are wrong", *told]),
        ExitCode.ERROR,
    )


# ---------------------------------------------------------------- what is shown


def _page(file: Path, told: Import, new: Sequence[Worker], standing: Mapping[str, Worker], about: Target) -> str:
    paper = blank_paper()
    paper.command(f"from: {file}, {_workers(len(told.workers))}", indent=0)
    paper.command(f"into: {about.path}, {_workers(len(standing))}", indent=0)
    if new:
        paper.line()
        counts = Counter((str(worker.state), f"{worker.provider}/{worker.region}") for worker in new)
        paper.rows(
            ("STATE", "PLACE", "WORKERS"),
            [(state, place, f"{count:,}") for (state, place), count in sorted(counts.items())],
            right=(2,),
        )
    paper.line()
    for text in (*told.remarks, *_warnings(told, new, standing, about)):
        paper.line(text)
    if not new:
        paper.line("There is nothing to write.")
    return paper.text()


def _warnings(told: Import, new: Sequence[Worker], standing: Mapping[str, Worker], about: Target) -> Iterator[str]:
    known = [worker for worker in told.workers if worker.worker_id in standing]
    if known:
        yield f"Left as they are, because they stand in the registry already: {_workers(len(known))}."
    other = [worker.worker_id for worker in known if _meaning(worker) != _meaning(standing[worker.worker_id])]
    if other:
        yield f"Of these, the registry says otherwise of {_some(other)}."
    yield from dict.fromkeys(_unknown_places(new, about))
    over = [worker for worker in new if not worker.state.is_live]
    if over:
        yield f"Not live: {_workers(len(over))}. A machine of ours that no other row accounts for is ended (retired)."


def _unknown_places(new: Iterable[Worker], about: Target) -> Iterator[str]:
    """Yield where no machine is looked for: rows that misspell a place protect nothing there."""
    known = about.regions
    if known is None:
        return
    for name, region in sorted({(worker.provider, worker.region) for worker in new}):
        listed = known.get(name)
        if name not in known:
            yield f"No [[providers]] table is called {name}: its rows protect nothing. See `--provider THEIRS=OURS`."
        elif listed is not None and region not in listed:
            yield f"The [[providers]] table {name} does not list the region {region}: no machine is looked for there."


def _meaning(worker: Worker) -> tuple[str, str, str | None, str]:
    return (worker.provider, worker.region, worker.instance_id, str(worker.state))


def _some(names: Sequence[str]) -> str:
    shown = ", ".join(names[:3])
    return shown if len(names) <= 3 else f"{shown} and {len(names) - 3:,} more"  # noqa: PLR2004 - three are enough


def _workers(count: int) -> str:
    return f"{count:,} worker{'' if count == 1 else 's'}"
