"""Stores of other memory programs: mem0 and OpenMemory, MemPalace, mcp-memory-service; their databases and JSON.

A database is read from a private copy, because its program may be writing to it and opening it would leave files beside
it. Nothing in it is trusted: only tables are read, by name, within limits. What a vector store keeps as pickled Python
objects is never loaded; the texts are in the tables that are read here.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import apsw

from .....core.errors import InvalidInput
from .....core.memory.spaces import NAMESPACES
from .....core.paths import open_regular
from .....core.sqlite_file import connect
from .files import SourceFile
from .parsing import json_values, mapped, moment, text_of
from .records import Found, Skipped, SourceEntity, SourceReader, SourceRecord, SourceRelation

__all__ = ["STORES"]

_SQLITE = b"SQLite format 3\0"
_MOST_BYTES = 4_000_000_000
_MOST_VALUE = 64_000_000
_LOG_HEAD = 1 << 20
_ROW_SECONDS = 20.0
_STEPS = 100_000

_NAMESPACES = frozenset(one.name for one in NAMESPACES)

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class _Shape:
    """A kind of database: the tables and columns it has, the statement that reads it, and what becomes of its rows."""

    needs: Mapping[str, tuple[str, ...]]
    select: str
    read: Callable[[Iterator[Row], SourceFile], Iterator[Found]]


_JsonTaker = Callable[[Mapping[str, Any], SourceFile, int], Found]


def _store_reader(
    kind: str, *shapes: _Shape, take: _JsonTaker | None = None, fields: Sequence[bytes] = (), within: int = 0
) -> SourceReader:
    """A reader of the databases of one program, and of its JSON: `take` makes a record of an object.

    The JSON is recognised by `fields` that stand within so many first bytes.
    """

    def recognises(file: SourceFile) -> bool:
        if not file.head.startswith(_SQLITE):
            start = file.head[:within]
            is_json = start.lstrip()[:1] in (b"{", b"[") and all(b'"' + name + b'":' in start for name in fields)
            return take is not None and is_json
        # The schema is among the first pages that a program writes; of one that runs, they may still be in the log.
        head = file.head + _logged(file)
        return any(
            all(word.encode() in head for name, columns in shape.needs.items() for word in (name, *columns))
            for shape in shapes
        )

    def read(file: SourceFile) -> Iterator[Found]:
        return _from_database(file, shapes) if file.head.startswith(_SQLITE) else _from_json(file, take)

    return SourceReader(kind, recognises, read)


def _from_json(file: SourceFile, take: _JsonTaker | None) -> Iterator[Found]:
    for entry in json_values(file, is_lines=False):
        if isinstance(entry, Skipped):
            yield entry
            continue
        inside = entry.object.get("results", entry.object.get("memories"))
        for number, one in enumerate(inside if isinstance(inside, list) else [entry.value], start=entry.number):
            if isinstance(one, dict) and take is not None:
                yield take(one, file, entry.line)
            else:
                yield Skipped(f"entry {number}", "it is no object")


def _from_database(file: SourceFile, known: Sequence[_Shape]) -> Iterator[Found]:
    with _copied(file) as connection:
        try:
            tables = _tables(connection)
            shapes = [one for one in known if _fits(one.needs, tables)]
            if not shapes:
                yield Skipped("", "it has none of the tables that are read")
            for shape in shapes:
                yield from shape.read(_rows(connection, shape.select), file)
        except (apsw.Error, UnicodeDecodeError) as error:
            reason = "a row took too long" if isinstance(error, apsw.InterruptError) else "the database is damaged"
            yield Skipped("", f"{reason}; what follows is not read ({type(error).__name__})")


# -- a database ----------------------------------------------------------------------------------


@contextmanager
def _copied(file: SourceFile) -> Iterator[apsw.Connection]:
    """A connection to a private copy of a database, with its log where it has one."""
    if file.size > _MOST_BYTES:
        raise InvalidInput(f"{file.name}: it is larger than {_MOST_BYTES:,} bytes.", field="file")
    with TemporaryDirectory(prefix="cortex-import-") as folder:
        copy = Path(folder) / "store.db"
        with file.open() as source, copy.open("wb") as target:
            shutil.copyfileobj(source, target, 1 << 20)
        logged = Path(f"{copy}-wal")
        with suppress(OSError), open_regular(_log(file), follow=False) as source, logged.open("wb") as target:
            shutil.copyfileobj(source, target, 1 << 20)
        try:
            connection = connect(copy, None, 1_000)
        except apsw.Error as error:
            raise InvalidInput(
                f"{file.name}: the database is damaged ({type(error).__name__}).", field="file"
            ) from error
        with closing(connection):
            connection.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 1)
            connection.limit(apsw.SQLITE_LIMIT_LENGTH, _MOST_VALUE)
            yield connection


def _log(file: SourceFile) -> Path:
    return Path(f"{file.name}-wal")


def _logged(file: SourceFile) -> bytes:
    """The beginning of the log beside a database; empty where there is none."""
    with suppress(OSError, ValueError), open_regular(_log(file), follow=False) as source:
        return source.read(_LOG_HEAD)
    return b""


def _rows(connection: apsw.Connection, select: str) -> Iterator[Row]:
    """The rows of a statement by column; a row that takes too long ends it."""
    begun = [time.monotonic()]
    connection.set_progress_handler(lambda: time.monotonic() - begun[0] > _ROW_SECONDS, _STEPS)
    cursor = connection.execute(select)
    names: Sequence[str] = ()
    for row in cursor:
        names = names or [column[0] for column in cursor.getdescription()]
        yield dict(zip(names, row, strict=True))
        begun[0] = time.monotonic()


def _tables(connection: apsw.Connection) -> dict[str, set[str]]:
    """The columns of each table. Views are none, because reading one runs what its author wrote."""
    names = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table' AND sql LIKE 'create table%'")
    found: dict[str, set[str]] = {}
    for (name,) in names.fetchall():
        columns = connection.execute("SELECT name FROM pragma_table_info(?)", (name,)).fetchall()
        found[str(name)] = {str(column[0]) for column in columns}
    return found


def _fits(needs: Mapping[str, tuple[str, ...]], tables: Mapping[str, set[str]]) -> bool:
    return all(set(columns) <= tables.get(name, set()) for name, columns in needs.items())


def _object(value: object) -> dict[str, Any]:
    """The object that a column holds as JSON; empty if it holds none."""
    with suppress(ValueError, RecursionError):
        found = json.loads(value) if isinstance(value, str) else value
        return found if isinstance(found, dict) else {}
    return {}


def _names(*values: object) -> tuple[str, ...]:
    """Tags from texts, lists of texts, and texts separated by commas."""
    found: list[str] = []
    for value in values:
        parts = value.split(",") if isinstance(value, str) else value if isinstance(value, list) else ()
        found += [part.strip()[:128] for part in parts if isinstance(part, str) and part.strip()]
    return tuple(dict.fromkeys(found))[:60]


def _record(
    kind: str, identity: object, content: object, file: SourceFile, place: str, **more: Any
) -> SourceRecord | Skipped:
    """A memory of another program, known by the id that it has there."""
    if not isinstance(identity, str) or not identity.strip():
        return Skipped(place, "it has no id")
    if not isinstance(content, str) or not content.strip():
        return Skipped(place, "it has no text")
    return SourceRecord(
        source=kind, position=identity, content=content, shown=f"{file.name}#{identity[:80]}", namespace=None, **more
    )


# -- mem0 and OpenMemory -----------------------------------------------------------------------------


def _mem0_history(rows: Iterator[Row], file: SourceFile) -> Iterator[Found]:
    """Replay the log of mem0: the last text of each memory that was not deleted."""
    kept: dict[str, SourceRecord] = {}
    for n, row in enumerate(rows, start=1):
        identity, place = row["memory_id"], f"row {n}"
        if row["event"] == "DELETE" or row["is_deleted"]:
            kept.pop(str(identity), None)
            continue
        at = moment(row["created_at"])
        found = _record("mem0", identity, row["new_memory"], file, place, at=at, author=text_of(row["actor_id"]))
        if isinstance(found, Skipped):
            yield found
        else:
            known = kept.pop(found.position, None)
            kept[found.position] = replace(found, at=known.at if known else found.at)
    yield from kept.values()


def _open_memory(rows: Iterator[Row], file: SourceFile) -> Iterator[Found]:
    for n, row in enumerate(rows, start=1):
        tags = _names(row["names"], _object(row["metadata"]).get("tags"))
        at = moment(row["created_at"])
        yield _record("openmemory", row["id"], row["content"], file, f"row {n}", at=at, tags=tags)


def _mem0_object(value: Mapping[str, Any], file: SourceFile, line: int) -> Found:
    inner = _object(value.get("metadata"))
    namespace = inner.get("namespace")
    is_own = isinstance(namespace, str) and namespace in _NAMESPACES
    tags = _names(value.get("categories"), inner.get("tags"), None if is_own else inner.get("category"))
    about = mapped(value, at="created_at", author="user_id", agent="agent_id", session="run_id")
    found = _record("mem0", value.get("id"), value.get("memory"), file, f"line {line}", line=line, tags=tags, **about)
    if isinstance(found, Skipped) or not is_own:
        return found
    # Written by an export of Cortex.
    more = mapped(inner, category="category", summary="summary", path="path", git_branch="git_branch")
    return replace(found, namespace=namespace, shown=text_of(inner.get("source")) or found.shown, **more)


# mem0: the log in `history.db`, what `get_all` returns as JSON; OpenMemory: `openmemory.db`.
_MEM0 = _store_reader(
    "mem0",
    _Shape(
        {"history": ("memory_id", "new_memory", "event", "created_at", "is_deleted", "actor_id")},
        "SELECT memory_id, event, new_memory, created_at, is_deleted, actor_id FROM history ORDER BY rowid",
        _mem0_history,
    ),
    _Shape(
        {
            "memories": ("id", "content", "state", "metadata", "created_at", "app_id"),
            "categories": ("id", "name"),
            "memory_categories": ("memory_id", "category_id"),
        },
        "SELECT m.id, m.content, m.metadata, m.created_at, (SELECT group_concat(c.name) FROM memory_categories k "
        "JOIN categories c ON c.id = k.category_id WHERE k.memory_id = m.id) AS names FROM memories m "
        "WHERE m.state IN ('active', 'paused') ORDER BY m.rowid",
        _open_memory,
    ),
    take=_mem0_object,
    fields=(b"memory", b"id", b"hash"),
    within=4_000,
)


# -- MemPalace -----------------------------------------------------------------------------------


def _drawers(rows: Iterator[Row], file: SourceFile) -> Iterator[Found]:
    """One memory for each drawer; the parts of a long one are joined."""
    name, parts, facts = "", list[str](), dict[str, Any]()

    def whole() -> Iterator[Found]:
        if parts:
            tags = _names([facts.get("wing"), facts.get("room")])
            at = moment(facts.get("filed_at"))
            yield _record(
                "mempalace", name, "".join(parts), file, f"drawer {name[:80]}", at=at, tags=tags,
                path=text_of(facts.get("source_file")),
            )  # fmt: skip

    for row in rows:
        found = _object(row["facts"])
        mine = str(found.get("parent_drawer_id") or row["id"])
        if mine != name:
            yield from whole()
            name, parts, facts = mine, [], found
        parts.append(str(row["document"] or ""))
    yield from whole()


def _triples(rows: Iterator[Row], _file: SourceFile) -> Iterator[Found]:
    for n, row in enumerate(rows, start=1):
        ends, sort = (row["source"], row["target"]), row["predicate"]
        if not all(isinstance(one, str) and one.strip() for one in (*ends, sort)):
            yield Skipped(f"row {n}", "the relation lacks an end")
            continue
        for name, kind in zip(ends, (row["source_type"], row["target_type"]), strict=True):
            if isinstance(kind, str) and kind != "unknown":
                yield SourceEntity(name, kind)
        yield SourceRelation(*ends, str(sort).replace("_", " "))


# MemPalace: the drawers in `chroma.sqlite3` or `sqlite_exact.sqlite3`, and `knowledge_graph.sqlite3`.
_MEMPALACE = _store_reader(
    "mempalace",
    _Shape(
        {
            "embeddings": ("id", "embedding_id", "segment_id"),
            "embedding_metadata": ("id", "key", "string_value", "int_value"),
            "segments": ("id", "collection"),
            "collections": ("id", "name"),
        },
        "SELECT e.embedding_id AS id, (SELECT string_value FROM embedding_metadata WHERE id = e.id AND "
        "key = 'chroma:document') AS document, (SELECT json_group_object(key, coalesce(string_value, int_value)) "
        "FROM embedding_metadata WHERE id = e.id AND key <> 'chroma:document') AS facts FROM embeddings e "
        "JOIN segments s ON s.id = e.segment_id JOIN collections c ON c.id = s.collection "
        "WHERE c.name = 'mempalace_drawers' ORDER BY e.embedding_id",
        _drawers,
    ),
    _Shape(
        {"documents": ("collection_id", "id", "document", "metadata_json"), "collections": ("id", "name")},
        "SELECT d.id, d.document, d.metadata_json AS facts FROM documents d JOIN collections c "
        "ON c.id = d.collection_id WHERE c.name = 'mempalace_drawers' ORDER BY d.id",
        _drawers,
    ),
    _Shape(
        {"triples": ("subject", "predicate", "object", "valid_to"), "entities": ("id", "name", "type")},
        "SELECT s.name AS source, s.type AS source_type, t.predicate, o.name AS target, o.type AS target_type "
        "FROM triples t JOIN entities s ON s.id = t.subject JOIN entities o ON o.id = t.object "
        "WHERE t.valid_to IS NULL ORDER BY t.rowid",
        _triples,
    ),
)


# -- mcp-memory-service --------------------------------------------------------------------------


def _service_rows(rows: Iterator[Row], file: SourceFile) -> Iterator[Found]:
    live = (row for row in rows if row.get("deleted_at") is None and not row.get("superseded_by"))
    for n, row in enumerate(live, start=1):
        yield _service_record(row, file, f"row {n}")


def _service_record(row: Row, file: SourceFile, place: str, line: int | None = None) -> Found:
    kind = text_of(row.get("memory_type"))
    tags = [one for one in _names(row.get("tags")) if one != "untagged"]
    if kind and kind != "note":
        tags.append(kind)
    at = moment(row.get("created_at")) or moment(row.get("created_at_iso"))
    about: dict[str, Any] = {"line": line, "at": at, "tags": tuple(dict.fromkeys(tags))}
    return _record("mcp-memory-service", row.get("content_hash"), row.get("content"), file, place, **about)


# mcp-memory-service: `sqlite_vec.db`, and the JSON that it exports.
_MCP_MEMORY_SERVICE = _store_reader(
    "mcp-memory-service",
    _Shape(
        {"memories": ("content_hash", "content", "tags", "memory_type", "created_at")},
        "SELECT * FROM memories ORDER BY rowid",
        _service_rows,
    ),
    take=lambda value, file, line: _service_record(value, file, f"line {line}", line),
    fields=(b"content_hash", b"content"),
    within=8_000,
)

STORES = (_MEM0, _MEMPALACE, _MCP_MEMORY_SERVICE)
