"""Reads a space as documents, all in order or some by key, and writes documents into it.

Every method takes the session it runs in; the caller decides what is one transaction. Documents must be checked, and
memories indexed, before they are written.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from ...errors import BackupCorrupt
from ..database import Row, Session, Sql, everywhere, marks, rows_among
from ..graph.graph import GraphTable
from ..rows import IndexedRecord, qualified
from ..search.filters import files_space
from ..tables.memories import MemoryTable
from ..tables.saved import count_saved_change
from .document import KINDS, SHAPES, Child, Document, Shape, checked, columns, from_sql, table_columns, to_sql
from .memories import ABOUT_KINDS, MemoryDocuments, check_about

__all__ = ["DocumentTable", "check_document", "key_order"]

_BATCH = 400
_RELATIONSHIP = table_columns("relationship", 2)
_RELATIONSHIPS = (
    f"SELECT r.id, m.id, {qualified([column.name for column in _RELATIONSHIP], 'r')} FROM relationship r "
    "LEFT JOIN memory m ON m.num = r.num AND m.space = r.space"
)
_STATED_BY = columns("memory:text?")
_MERGE = columns("into_id:text recorded_at:int")
_LOGGED = columns("n:int kind:text memory:text? data:json")
_ITEMS = {"saved": 2, "saved_use": 2, "together": 2, "trust": 2}


class DocumentTable:
    def __init__(self, memories: MemoryTable, graph: GraphTable) -> None:
        self._table = memories
        self._memories = MemoryDocuments(memories)
        self._graph = graph

    # -- reading ---------------------------------------------------------------------------------

    def scan(
        self, session: Session, space: str, kinds: Sequence[str] = KINDS, *, tag: bytes | None = None
    ) -> Iterator[Document]:
        """All documents of a space, by kind and key. Writes behind the last one returned do no harm.

        With `tag`, which identifies the model and the tokeniser, memories have their index entries beside them.
        """
        for kind in kinds:
            if kind == "memory" or kind in ABOUT_KINDS:
                yield from self._memories.scan(session, space, kind, tag)
            elif kind == "relationship":
                yield from self._relationships(session, space)
            elif kind == "merge":
                yield from self._merges(session, space)
            else:
                yield from _scan_shape(session, space, SHAPES[kind])

    def spaces(self, session: Session) -> list[str]:
        """Every space with a document, except those of scanned files, which are read from the files again."""
        places = {("memory", "space"), ("relationship", "space"), ("entity_history", "space")}
        places |= {(shape.table, shape.scope) for shape in SHAPES.values()}
        parts = " UNION ".join(f"SELECT {scope} AS space FROM {table}" for table, scope in sorted(places))
        rows = session.rows(everywhere("all spaces", f"SELECT space FROM ({parts}) p ORDER BY space"))
        return [row[0] for row in rows if not row[0].endswith(files_space(""))]

    def by_keys(self, session: Session, space: str, kind: str, keys: Sequence[str]) -> list[Document]:
        """The documents with these keys that exist, without vectors."""
        if kind == "memory" or kind in ABOUT_KINDS:
            return self._memories.by_keys(session, space, kind, keys)
        if kind == "relationship":
            statement = f"{_RELATIONSHIPS} WHERE r.space = ? AND r.id IN ({{}})"
            return list(map(_relationship, rows_among(session, statement, (space,), keys, size=_BATCH)))
        if kind == "merge":
            return [one for key in keys for one in [self._merge(session, space, key)] if one is not None]
        return [one for key in keys for one in _shape_rows(session, space, SHAPES[kind], key)]

    def _relationships(self, session: Session, space: str) -> Iterator[Document]:
        last = ""
        statement = f"{_RELATIONSHIPS} WHERE r.space = ? AND r.id > ? ORDER BY r.id LIMIT ?"
        while rows := session.rows(statement, (space, last, _BATCH)):
            last = rows[-1][0]
            yield from map(_relationship, rows)

    def _merges(self, session: Session, space: str) -> Iterator[Document]:
        ids = session.rows("SELECT DISTINCT merge_id FROM entity_history WHERE space = ? ORDER BY merge_id", (space,))
        for (merge_id,) in ids:
            if found := self._merge(session, space, merge_id):
                yield found

    def _merge(self, session: Session, space: str, merge_id: str) -> Document | None:
        rows = session.rows(
            "SELECT h.into_id, h.recorded_at, h.n, h.kind, m.id, h.data FROM entity_history h "
            "LEFT JOIN memory m ON m.num = h.num AND m.space = h.space "
            "WHERE h.space = ? AND h.merge_id = ? ORDER BY h.n",
            (space, merge_id),
        )
        if not rows:
            return None
        log = [_logged(from_sql(row[2:], _LOGGED), None) for row in rows]
        return Document("merge", merge_id, {"into_id": rows[0][0], "recorded_at": rows[0][1], "log": log})

    # -- writing ---------------------------------------------------------------------------------

    def put(
        self, session: Session, space: str, document: Document, seq: int, index: Callable[[Document], IndexedRecord]
    ) -> bool:
        """Write a document in place of the one with its key; False if its idempotency key had to be left out."""
        # Screened where it was made, or by the import: both sides must keep the same text.
        session = session.as_is
        kind, key, data = document.kind, document.key, document.data
        if kind == "memory":
            given = index(document)
            record = _with_free_key(session, given)
            self._memories.put(session, record, document, seq)
            return record is given
        if kind in ABOUT_KINDS:
            self._memories.put_about(session, space, document)
        elif kind == "relationship":
            self._put_relationship(session, space, key, data)
        elif kind == "merge":
            self._put_merge(session, space, key, data)
        else:
            self._put_shape(session, space, SHAPES[kind], key, data)
        return True

    def remove(self, session: Session, space: str, kind: str, key: str, seq: int) -> None:
        """Remove a document with all that depends on it."""
        if kind == "memory":
            rows = session.rows("SELECT num FROM memory WHERE space = ? AND id = ?", (space, key))
            self._table.purge(session, space, [row[0] for row in rows], seq, names=False)
        elif kind in ABOUT_KINDS:
            self._memories.remove_about(session, space, kind, key)
        elif kind == "relationship":
            self._graph.delete_relationships(session, space, [key])
        elif kind == "merge":
            session.run("DELETE FROM entity_history WHERE space = ? AND merge_id = ?", (space, key))
        elif kind == "entity":
            self._graph.delete_entities(session, space, [key])
        else:
            _delete_shape(session, space, SHAPES[kind], key)
            if kind == "saved":
                count_saved_change(session, space, key.split("/", 1)[0])

    def mend(self, session: Session, space: str) -> None:
        """Drop dangling rows: two machines may have changed both ends."""
        session.run(
            "DELETE FROM mention WHERE space = ? AND NOT EXISTS "
            "(SELECT 1 FROM entity e WHERE e.space = mention.space AND e.id = mention.entity_id)",
            (space,),
        )
        for end in ("source_id", "target_id"):
            session.run(
                "DELETE FROM relationship WHERE space = ? AND NOT EXISTS "
                f"(SELECT 1 FROM entity e WHERE e.space = relationship.space AND e.id = relationship.{end})",
                (space,),
            )

    def _put_relationship(self, session: Session, space: str, key: str, data: Any) -> None:
        num = _num(session, space, data["memory"])
        session.run("DELETE FROM relationship WHERE space = ? AND id = ?", (space, key))
        if data["memory"] is not None and num is None:
            return  # the memory that stated it is gone
        row = {"space": space, "id": key, "num": num, **to_sql(data, _RELATIONSHIP)}
        session.insert("relationship", row)

    def _put_merge(self, session: Session, space: str, key: str, data: Any) -> None:
        session.run("DELETE FROM entity_history WHERE space = ? AND merge_id = ?", (space, key))
        for one in data["log"]:
            num = _num(session, space, one["memory"])
            if one["memory"] is not None and num is None:
                continue
            row = {"space": space, "merge_id": key, "into_id": data["into_id"], "recorded_at": data["recorded_at"]}
            row |= {"n": one["n"], "kind": one["kind"], "num": num, "data": _log_json(one, num)}
            session.insert("entity_history", row)

    def _put_shape(self, session: Session, space: str, shape: Shape, key: str, data: Any) -> None:
        _delete_shape(session, space, shape, key)
        keys = _key_values(shape, key)
        placed = dict(zip((shape.scope, *shape.keys), (space, *keys), strict=True))
        session.insert(shape.table, {**placed, **to_sql(data, shape.columns)})
        for child in shape.children:
            columns = (shape.scope, *child.keys, *(column.name for column in child.columns))
            rows = [(space, *keys, *to_sql(one, child.columns).values()) for one in data[child.name]]
            session.insert_many(child.table, columns, rows)
        if shape.kind == "saved":
            kind, name = keys
            tags = dict.fromkeys(str(tag).casefold() for tag in data["tags"])
            session.insert_many(
                "saved_tag", ("space", "kind", "tag", "name"), [(space, kind, tag, name) for tag in tags]
            )
            count_saved_change(session, space, str(kind))


def check_document(document: Document) -> None:
    """Raise `BackupCorrupt` for a document that could not be written; memories are checked when they are indexed."""
    kind, what = document.kind, document.kind.replace("_", " ")
    if kind in ABOUT_KINDS:
        check_about(document)
    elif kind == "relationship":
        checked({k: v for k, v in document.data.items() if k != "memory"}, _RELATIONSHIP, what=what)
        checked({"memory": document.data.get("memory")}, _STATED_BY, what=what)
    elif kind == "merge":
        for one in checked(document.data, _MERGE, ("log",), what=what)["log"]:
            checked(one, _LOGGED, what=what)
    elif kind != "memory":
        shape = SHAPES[kind]
        data = checked(document.data, shape.columns, [child.name for child in shape.children], what=what)
        for child in shape.children:
            for one in data[child.name] if isinstance(data[child.name], list) else [None]:
                checked(one, child.columns, what=what)
        _key_values(shape, document.key)


def key_order(document: Document) -> tuple[int, tuple[str, ...]]:
    """The sort key of a document in a scan."""
    parts = _ITEMS.get(document.kind, 1)
    return KINDS.index(document.kind), tuple(document.key.split("/", parts - 1))


def _key_values(shape: Shape, key: str) -> tuple[Sql, ...]:
    parts = key.split("/", len(shape.keys) - 1)
    if len(parts) != len(shape.keys) or (shape.numbered and not key.isdecimal()):
        raise BackupCorrupt(f"{key[:80]!r} does not name a {shape.kind}.", remedy="Use another copy of the backup.")
    return (int(key),) if shape.numbered else tuple(parts)


def _key_of(shape: Shape, values: Sequence[Any]) -> str:
    return f"{values[0]:012d}" if shape.numbered else "/".join(values)


def _scan_shape(session: Session, space: str, shape: Shape) -> Iterator[Document]:
    keys = ", ".join(shape.keys)
    past = f"({keys}) > ({marks(len(shape.keys))})"
    last: tuple[Sql, ...] = (-1,) if shape.numbered else ("",) * len(shape.keys)
    while rows := _rows(session, shape, f"{past} ORDER BY {keys} LIMIT ?", (space, *last, _BATCH)):
        last = tuple(rows[-1][: len(shape.keys)])
        yield from _shaped(session, space, shape, rows)


def _shape_rows(session: Session, space: str, shape: Shape, key: str) -> list[Document]:
    where = " AND ".join(f"{name} = ?" for name in shape.keys)
    rows = _rows(session, shape, where, (space, *_key_values(shape, key)))
    return _shaped(session, space, shape, rows)


def _rows(session: Session, shape: Shape, where: str, params: Sequence[Sql]) -> list[Row]:
    names = ", ".join((*shape.keys, *(column.name for column in shape.columns)))
    return session.rows(f"SELECT {names} FROM {shape.table} WHERE {shape.scope} = ? AND {where}", params)


def _shaped(session: Session, space: str, shape: Shape, rows: Sequence[Row]) -> list[Document]:
    keys = len(shape.keys)
    found = []
    belonging = [_children(session, space, shape, child, rows) for child in shape.children] if rows else []
    for row in rows:
        data = from_sql(row[keys:], shape.columns)
        for child, of in zip(shape.children, belonging, strict=True):
            data[child.name] = of.get(tuple(row[:keys]), [])
        found.append(Document(shape.kind, _key_of(shape, row[:keys]), data))
    return found


def _children(
    session: Session, space: str, shape: Shape, child: Child, rows: Sequence[Row]
) -> dict[tuple[Any, ...], list[dict[str, Any]]]:
    """The child rows of a run of rows, by key: one statement from the first to the last."""
    keys = len(shape.keys)
    names = ", ".join((*child.keys, *(column.name for column in child.columns)))
    key = ", ".join(child.keys)
    found: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in session.rows(
        f"SELECT {names} FROM {child.table} WHERE {shape.scope} = ? AND ({key}) >= ({marks(keys)}) "
        f"AND ({key}) <= ({marks(keys)}) ORDER BY {key}, {', '.join(child.order)}",
        (space, *rows[0][:keys], *rows[-1][:keys]),
    ):
        found.setdefault(tuple(row[:keys]), []).append(from_sql(row[keys:], child.columns))
    return found


def _delete_shape(session: Session, space: str, shape: Shape, key: str) -> None:
    values = (space, *_key_values(shape, key))
    tables = [(shape.table, shape.keys), *((child.table, child.keys) for child in shape.children)]
    if shape.kind == "saved":
        tables.append(("saved_tag", shape.keys))
    for table, keys in tables:
        where = " AND ".join(f"{name} = ?" for name in (shape.scope, *keys))
        session.run(f"DELETE FROM {table} WHERE {where}", values)


def _relationship(row: Row) -> Document:
    return Document("relationship", row[0], {"memory": row[1], **from_sql(row[2:], _RELATIONSHIP)})


def _num(session: Session, space: str, memory_id: str | None) -> int | None:
    if memory_id is None:
        return None
    rows = session.rows("SELECT num FROM memory WHERE space = ? AND id = ?", (space, memory_id))
    return int(rows[0][0]) if rows else None


def _logged(one: dict[str, Any], num: int | None) -> dict[str, Any]:
    """A log row with the number of its memory replaced; None in a document."""
    data = one["data"]
    if one["kind"] == "mention":
        data = [*data[:2], num, *data[3:]]
    elif one["kind"] in ("moved", "dropped"):
        data = {**data, "num": num}
    return {**one, "data": data}


def _log_json(one: dict[str, Any], num: int | None) -> str:
    return json.dumps(_logged(one, num)["data"], ensure_ascii=False, sort_keys=True)


def _with_free_key(session: Session, record: IndexedRecord) -> IndexedRecord:
    """The record, without its idempotency key if another record has it: two machines may have used the same."""
    if record.idempotency_key is None:
        return record
    taken = session.rows(
        "SELECT 1 FROM memory WHERE space = ? AND idempotency_key = ? AND id <> ?",
        (record.space, record.idempotency_key, record.memory.id),
    )
    return replace(record, idempotency_key=None) if taken else record
