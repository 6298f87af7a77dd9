"""A document: one item of a space with all that belongs to it, independent of the engine.

Snapshots, sync, export and a move to another engine use documents. The text form is canonical: the same state always
has the same bytes, so equal digests mean equal documents. A shape describes how documents of a simple kind map to
tables, for the same code to read and write.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from typing import Any

from ...errors import BackupCorrupt
from ..database import Sql

__all__ = [
    "KINDS", "SHAPES", "SHARED_KINDS", "Child", "Column", "Columns", "Document", "Shape", "canonical_json", "checked",
    "columns", "from_sql", "parse_canonical", "parse_document", "to_sql",
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


_TYPES: dict[str, tuple[type, ...]] = {"text": (str,), "int": (int,), "real": (int, float), "json": (list, dict)}
_MOST = 1 << 63


@dataclass(frozen=True, slots=True)
class Column:
    name: str
    type: str
    optional: bool


class Columns(tuple[Column, ...]):
    """Columns in order, with what is looked up for every row."""

    names: frozenset[str]
    types: tuple[tuple[str, tuple[type, ...], bool], ...]


def columns(text: str) -> Columns:
    """Columns from `name:type`, with a `?` after the type of an optional one."""
    found = (part.split(":") for part in text.split())
    made = Columns(Column(name, kind.rstrip("?"), kind.endswith("?")) for name, kind in found)
    made.names = frozenset(column.name for column in made)
    made.types = tuple((column.name, _TYPES[column.type], column.optional) for column in made)
    return made


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


def _shape(kind: str, place: str, columns_text: str, *children: Child) -> Shape:
    """`place` is "table by scope column: key columns"."""
    table, _, scope, *keys = place.replace(":", "").split()
    return Shape(kind, table, scope, tuple(keys), columns(columns_text), children)


def _child(name: str, place: str, columns_text: str) -> Child:
    """`place` is "table by key columns: order"."""
    table, _, *keys, order = place.replace(":", "").split()
    return Child(name, table, tuple(keys), (order,), columns(columns_text))


_SAVED = "version:int description:text? tags:json variables:json redactions:json"
_SESSION = "task:text branch_id:text? created_at:int expires_at:int state:text answered_at:int? reason:text share:real?"
_SUGGESTION = "n:int memory_id:text source:text raw:real confidence:real accepted:int?"
_BRANCH = "topic:text parent_id:text? git_branch:text? status:text created_at:int updated_at:int"
_ENTITY = "name:text folded:text type:text key:text properties:json given:int created_at:int updated_at:int"
_CONSOLIDATION = "result_id:text strategy:text method:text created_at:int undone_at:int?"
_STRENGTH = "strength:real times:int at:int"
_VERSIONS = _child("versions", "saved_version by kind name: version", f"{_SAVED} saved_at:int content:text")
_PARTS = _child("parts", "consolidation_part by consolidation_id: n", "n:int memory_id:text prior_status:text")
_ALIASES = _child("aliases", "entity_alias by entity_id: alias", "alias:text key:text")

SHAPES: dict[str, Shape] = {
    shape.kind: shape
    for shape in (
        _shape("branch", "branch by project_id: id", _BRANCH),
        _shape("entity", "entity by space: id", _ENTITY, _ALIASES),
        _shape("saved", "saved by space: kind name", f"domain:text {_SAVED} created_at:int updated_at:int", _VERSIONS),
        _shape("consolidation", "consolidation by space: id", _CONSOLIDATION, _PARTS),
        _shape("saved_use", "saved_use by space: kind name", "uses:int used_at:int"),
        _shape("reference", "reference by project_id: n", "memory_id:text kind:text branch_id:text? task:text at:int"),
        _shape("referred", "referred by project_id: memory_id", _STRENGTH),
        _shape("together", "referred_together by project_id: memory_id other_id", _STRENGTH),
        _shape(
            "session",
            "suggestion_session by project_id: id",
            _SESSION,
            _child("suggestions", "suggestion by session_id: n", _SUGGESTION),
        ),
        _shape("trust", "trust by project_id: kind key", "accepted:real refused:real at:int"),
    )
}


def from_sql(row: Sequence[Any], of: Sequence[Column]) -> dict[str, Any]:
    """The values of a row by name; JSON columns are parsed."""
    return {
        column.name: json.loads(value) if column.type == "json" and value is not None else value
        for column, value in zip(of, row, strict=True)
    }


def to_sql(data: Mapping[str, Any], of: Sequence[Column]) -> tuple[Sql, ...]:
    """The values of a row in the order of its columns."""
    return tuple(
        json.dumps(data[column.name], ensure_ascii=False, sort_keys=True)
        if column.type == "json" and data[column.name] is not None
        else data[column.name]
        for column in of
    )


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
