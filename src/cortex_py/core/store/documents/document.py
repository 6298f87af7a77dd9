"""A document: one item of a space with all that belongs to it, independent of the engine.

Snapshots, sync, export and a move to another engine use documents. The text form is canonical: the same state always
has the same bytes, so equal digests mean equal documents. A shape says which tables the documents of a simple kind are
rows of, for the same code to read and write.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from typing import Any

from ...errors import BackupCorrupt
from ...tables import TABLES, Column, read_columns
from ..database import Sql

__all__ = [
    "KINDS", "SHAPES", "SHARED_KINDS", "Child", "Columns", "Document", "Shape", "canonical_json", "checked", "columns",
    "from_sql", "parse_canonical", "parse_document", "table_columns", "to_sql",
]  # fmt: skip


# In the order in which they are written and read: referenced documents come first.
KINDS = (
    "branch", "entity", "memory", "mention", "verification", "relationship", "merge", "saved", "consolidation",
    "use", "saved_use", "reference", "referred", "together", "session", "trust",
)  # fmt: skip
# The kinds that sync exchanges. The others count what was done on one machine.
SHARED_KINDS = KINDS[: KINDS.index("use")]


@dataclass(frozen=True)
class Document:
    """`key` is unique within the kind. `vectors` are the index entries of a memory; they are not part of its identity,
    because another model makes other vectors of the same text."""

    kind: str
    key: str
    data: Mapping[str, Any]
    vectors: bytes = field(default=b"", compare=False)

    @cached_property
    def line(self) -> bytes:
        """The canonical text, one line without its end."""
        return canonical_json({"kind": self.kind, "key": self.key, "data": self.data})

    @cached_property
    def digest(self) -> str:
        return sha256(self.line).hexdigest()


def canonical_json(value: object) -> bytes:
    """One spelling for each value: sorted names, no spaces, no unneeded escapes."""
    # A lone surrogate is not valid UTF-8. It can only come from a damaged store, and stays readable.
    return _canonical(value).encode("utf-8", "surrogatepass")


# Created once: `json.dumps` would create one for each call.
_canonical = json.JSONEncoder(ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False).encode


def parse_document(line: bytes, vectors: bytes = b"") -> Document:
    """Parse the line of a document; ValueError if it is not one."""
    found = json.loads(line.decode("utf-8", "surrogatepass"))
    if not isinstance(found, dict) or set(found) != {"kind", "key", "data"}:
        raise ValueError("not a document")
    kind, key, data = found["kind"], found["key"], found["data"]
    if kind not in KINDS or not isinstance(key, str) or not isinstance(data, dict):
        raise ValueError("not a document")
    return Document(kind, key, data, vectors)


def parse_canonical(line: bytes, vectors: bytes = b"") -> Document:
    """Parse a line that is known to be canonical, so that it need not be generated again."""
    document = parse_document(line, vectors)
    vars(document)["line"] = line
    return document


_TYPES: dict[str, tuple[type, ...]] = {
    "text": (str,),
    "int": (int,),
    "moment": (int,),
    "real": (int, float),
    "json": (list, dict),
}
_MOST = 1 << 63


class Columns(tuple[Column, ...]):
    """Columns in order, with what is looked up for every row."""

    names: frozenset[str]
    types: tuple[tuple[str, tuple[type, ...], bool], ...]


def columns(of: str | Iterable[Column]) -> Columns:
    """Columns that documents have, from a text as for `read_columns`."""
    made = Columns(column for column in (read_columns(of) if isinstance(of, str) else of) if column.exported)
    made.names = frozenset(column.name for column in made)
    made.types = tuple((column.name, _TYPES[column.type], column.optional) for column in made)
    return made


def table_columns(table: str, key: int) -> Columns:
    """The columns of a table in documents, behind the first ones of its key, which the document has otherwise."""
    known = TABLES[table]
    return columns(column for column in known.columns if column.name not in known.key[:key])


@dataclass(frozen=True, slots=True)
class Child:
    """Rows of another table that belong to a document, under a name, joined by the key columns."""

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
    children: tuple[Child, ...]

    @property
    def numbered(self) -> bool:
        """Whether the key is a number."""
        return self.kind == "reference"


def _shape(kind: str, table: str = "", **children: str) -> Shape:
    """Documents of a table and, by the names that they have there, of tables that continue its key."""
    known = TABLES[table or kind]
    scope, *keys = known.key
    rows = table_columns(known.name, len(known.key))
    return Shape(kind, known.name, scope, tuple(keys), rows, tuple(_child(*one, len(keys)) for one in children.items()))


def _child(name: str, table: str, keys: int) -> Child:
    _, *names = TABLES[table].key
    return Child(name, table, tuple(names[:keys]), tuple(names[keys:]), table_columns(table, 1 + keys))


SHAPES: dict[str, Shape] = {
    shape.kind: shape
    for shape in (
        _shape("branch"),
        _shape("entity", aliases="entity_alias"),
        _shape("saved", versions="saved_version"),
        _shape("consolidation", parts="consolidation_part"),
        _shape("saved_use"),
        _shape("reference"),
        _shape("referred"),
        _shape("together", "referred_together"),
        _shape("session", "suggestion_session", suggestions="suggestion"),
        _shape("trust"),
    )
}


def from_sql(row: Sequence[Any], of: Sequence[Column]) -> dict[str, Any]:
    """The values of a row by name; JSON columns are parsed."""
    return {
        column.name: json.loads(value) if column.type == "json" and value is not None else value
        for column, value in zip(of, row, strict=True)
    }


def to_sql(data: Mapping[str, Any], of: Sequence[Column]) -> dict[str, Sql]:
    """The values of a row by column, in the order of the columns."""
    return {
        column.name: json.dumps(data[column.name], ensure_ascii=False, sort_keys=True)
        if column.type == "json" and data[column.name] is not None
        else data[column.name]
        for column in of
    }


def checked(data: object, of: Columns, also: Sequence[str] = (), what: str = "document") -> dict[str, Any]:
    """The data, if it has exactly these columns with values of their types; `also` are checked by the caller."""
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
