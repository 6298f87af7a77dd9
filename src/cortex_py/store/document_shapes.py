"""How documents of the plain kinds lie in tables: one description for each, read and written by the same code."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import BackupCorrupt
from .database import Sql

__all__ = ["SHAPES", "Child", "Column", "Columns", "Shape", "checked", "columns", "from_sql", "to_sql"]

_TYPES: dict[str, tuple[type, ...]] = {
    "text": (str,),
    "int": (int,),
    "real": (int, float),
    "json": (list, dict),
}
_MOST = 1 << 63


@dataclass(frozen=True, slots=True)
class Column:
    name: str
    type: str
    optional: bool


class Columns(tuple[Column, ...]):
    """Columns in their order, and what is looked up for every row."""

    names: frozenset[str]
    types: tuple[tuple[str, tuple[type, ...], bool], ...]


def columns(text: str) -> Columns:
    """Columns as `name:type`, with a `?` where there may be nothing."""
    found = (part.split(":") for part in text.split())
    made = Columns(Column(name, kind.rstrip("?"), kind.endswith("?")) for name, kind in found)
    made.names = frozenset(column.name for column in made)
    made.types = tuple((column.name, _TYPES[column.type], column.optional) for column in made)
    return made


@dataclass(frozen=True, slots=True)
class Child:
    """Rows of another table that belong to a document: under which name, joined by the same key columns."""

    name: str
    table: str
    keys: tuple[str, ...]
    order: tuple[str, ...]
    columns: Columns


@dataclass(frozen=True, slots=True)
class Shape:
    kind: str
    table: str
    scope: str
    keys: tuple[str, ...]
    columns: Columns
    children: tuple[Child, ...] = ()
    # Columns of other tables by which a record of this kind is found; they follow from the columns above.
    numbered: bool = False


_SAVED = "version:int description:text? tags:json variables:json redactions:json"

SHAPES: dict[str, Shape] = {
    shape.kind: shape
    for shape in (
        Shape(
            "branch",
            "branch",
            "project_id",
            ("id",),
            columns("topic:text parent_id:text? git_branch:text? status:text created_at:int updated_at:int"),
        ),
        Shape(
            "entity",
            "entity",
            "space",
            ("id",),
            columns("name:text folded:text type:text key:text properties:json given:int created_at:int updated_at:int"),
            (Child("aliases", "entity_alias", ("entity_id",), ("alias",), columns("alias:text key:text")),),
        ),
        Shape(
            "saved",
            "saved",
            "space",
            ("kind", "name"),
            columns(f"domain:text {_SAVED} created_at:int updated_at:int"),
            (
                Child(
                    "versions",
                    "saved_version",
                    ("kind", "name"),
                    ("version",),
                    columns(f"{_SAVED} saved_at:int content:text"),
                ),
            ),
        ),
        Shape(
            "consolidation",
            "consolidation",
            "space",
            ("id",),
            columns("result_id:text strategy:text method:text created_at:int undone_at:int?"),
            (
                Child(
                    "parts",
                    "consolidation_part",
                    ("consolidation_id",),
                    ("n",),
                    columns("n:int memory_id:text prior_status:text"),
                ),
            ),
        ),
        Shape("saved_use", "saved_use", "space", ("kind", "name"), columns("uses:int used_at:int")),
        Shape(
            "reference",
            "reference",
            "project_id",
            ("n",),
            columns("memory_id:text kind:text branch_id:text? task:text at:int"),
            numbered=True,
        ),
        Shape("referred", "referred", "project_id", ("memory_id",), columns("strength:real times:int at:int")),
        Shape(
            "together",
            "referred_together",
            "project_id",
            ("memory_id", "other_id"),
            columns("strength:real times:int at:int"),
        ),
        Shape(
            "session",
            "suggestion_session",
            "project_id",
            ("id",),
            columns(
                "task:text branch_id:text? created_at:int expires_at:int state:text answered_at:int? reason:text "
                "share:real?"
            ),
            (
                Child(
                    "suggestions",
                    "suggestion",
                    ("session_id",),
                    ("n",),
                    columns("n:int memory_id:text source:text raw:real confidence:real accepted:int?"),
                ),
            ),
        ),
        Shape("trust", "trust", "project_id", ("kind", "key"), columns("accepted:real refused:real at:int")),
    )
}


def from_sql(row: Sequence[Any], of: Sequence[Column]) -> dict[str, Any]:
    """The values of a row by name; what lies as JSON is read."""
    return {
        column.name: json.loads(value) if column.type == "json" and value is not None else value
        for column, value in zip(of, row, strict=True)
    }


def to_sql(data: Mapping[str, Any], of: Sequence[Column]) -> tuple[Sql, ...]:
    """The values of a row in their order."""
    return tuple(
        json.dumps(data[column.name], ensure_ascii=False, sort_keys=True)
        if column.type == "json" and data[column.name] is not None
        else data[column.name]
        for column in of
    )


def checked(data: object, of: Columns, also: Sequence[str] = (), what: str = "document") -> dict[str, Any]:
    """The data, if it has exactly these columns with values of their types; `also` are names checked elsewhere."""
    if not isinstance(data, dict) or data.keys() != (of.names.union(also) if also else of.names):
        raise _unfit(what, "its fields are not those of its kind")
    for name, types, optional in of.types:
        value = data[name]
        if value is None and optional:
            continue
        fits = isinstance(value, types) and value is not True and value is not False
        if not fits or (isinstance(value, int) and not -_MOST <= value < _MOST):
            raise _unfit(what, f"{name} is not of its type")
    return data


def _unfit(what: str, why: str) -> BackupCorrupt:
    return BackupCorrupt(f"A {what} cannot be taken in: {why}.", remedy="Use another copy of the backup.")
