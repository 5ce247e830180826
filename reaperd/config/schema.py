"""What the models say about themselves: read by the environment, the reference page and the hints."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """One key of the file, or one array of tables."""

    path: tuple[str, ...]
    info: FieldInfo
    tables: tuple[type[BaseModel], ...] = ()
    """What an array of tables may hold; empty for a plain key."""

    @property
    def in_file_only(self) -> bool:
        """True for what holds keys that nobody can list: arrays of tables, and tables with names of the operator's."""
        return bool(self.tables) or any(get_origin(kind) is Mapping for kind in self.types)

    @property
    def heading(self) -> str:
        """Return how the file opens it: `[[providers]]`, `[prices]`."""
        return f"[[{self.dotted}]]" if self.tables else f"[{self.dotted}]"

    @property
    def dotted(self) -> str:
        """Return the path as messages spell it."""
        return ".".join(self.path)

    @property
    def variable(self) -> str:
        """Return the environment variable that overrides this key."""
        return "REAPERD_" + "__".join(self.path).upper()

    @property
    def types(self) -> tuple[Any, ...]:
        """Return the types of the value without None and without annotations."""
        return tuple(_types(self.info.annotation))


def keys_of(model: type[BaseModel], above: tuple[str, ...] = ()) -> Iterator[Key]:
    """Yield every key below the model, tables in tables included, arrays of tables as one key each."""
    for name, info in model.model_fields.items():
        path = (*above, name)
        tables = tables_in(info.annotation)
        if section := section_of(info):
            yield from keys_of(section, path)
        else:
            yield Key(path=path, info=info, tables=tables)


def section_of(info: FieldInfo) -> type[BaseModel] | None:
    """Return the model when the field is one table, and None for a plain key or an array of tables."""
    annotation = info.annotation
    return annotation if isinstance(annotation, type) and issubclass(annotation, BaseModel) else None


def tables_in(annotation: Any) -> tuple[type[BaseModel], ...]:  # noqa: ANN401  an annotation can be anything
    """Return the models that an annotation mentions, in order."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return (annotation,)
    return tuple(table for inner in get_args(annotation) for table in tables_in(inner))


def marks_of(info: FieldInfo) -> tuple[object, ...]:
    """Return everything that `Annotated` says about the field, outermost first, optional ones included."""
    return (*info.metadata, *_marks(info.annotation))


def _marks(annotation: Any) -> Iterator[object]:  # noqa: ANN401
    if get_origin(annotation) is Annotated:
        yield from annotation.__metadata__
    elif get_origin(annotation) in {Union, UnionType}:
        for inner in get_args(annotation):
            yield from _marks(inner)


def _types(annotation: Any) -> Iterator[Any]:  # noqa: ANN401
    if get_origin(annotation) is Annotated:
        yield from _types(annotation.__origin__)
    elif get_origin(annotation) in {Union, UnionType}:
        for inner in get_args(annotation):
            yield from _types(inner)
    elif annotation is not type(None):
        yield annotation
