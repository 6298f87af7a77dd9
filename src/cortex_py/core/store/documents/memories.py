"""Memories as documents: the record with its versions and, in other documents, what was derived from it.

The index entries of a memory travel beside its document, as bytes that begin with a tag of the model and the tokeniser.
A reader with another tag computes them again from the text."""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from ...errors import BackupCorrupt
from ...records import DOMAINS, STATUSES, Memory
from ..database import Row, Session, Sql, batched, marks, rows_among
from ..packing import unpack
from ..rows import MEMORY_COLUMNS, IndexedChunk, IndexedRecord, memory_from, qualified
from ..tables.memories import MemoryTable
from .document import Document, checked, columns, from_sql, table_columns, to_sql

__all__ = [
    "ABOUT_KINDS", "MEMORY_FIELDS", "MemoryDocuments", "PortableIndex", "check_about", "check_memory", "index_tag",
    "memory_of", "read_index", "write_index",
]  # fmt: skip

# Documents about a memory, with its id as their key.
ABOUT_KINDS = ("mention", "verification", "use")

MEMORY_FIELDS = table_columns("memory", 0)
_VERSION = table_columns("history", 2)
_MENTION = table_columns("mention", 1)
_MENTIONS = columns("read:int mentions:json")
_VERIFICATION = columns("grounding:real? checked_at:int? result:text?")
_USE = columns("accessed_at:int? recalls:int? recalled_at:int?")
_ID = re.compile(r"[0-9a-f]{40}\Z")
_NAMES = [column.name for column in MEMORY_FIELDS]
_BATCH = 100
_MINE = "space = ? AND num = ?"
TAG_BYTES = 8
_START = struct.Struct(">8s16sIQqI")
_PART = struct.Struct(">IIBII")


class MemoryDocuments:
    def __init__(self, memories: MemoryTable) -> None:
        self._memories = memories

    # -- reading ---------------------------------------------------------------------------------

    def scan(self, session: Session, space: str, kind: str, tag: bytes | None) -> Iterator[Document]:
        """All documents of a kind by key, read in batches."""
        last = ""
        statement = "SELECT num, id FROM memory WHERE space = ? AND id > ? ORDER BY id LIMIT ?"
        while rows := session.rows(statement, (space, last, _BATCH)):
            last = rows[-1][1]
            yield from self._read(session, space, kind, [row[0] for row in rows], tag)

    def by_keys(self, session: Session, space: str, kind: str, keys: Sequence[str]) -> list[Document]:
        """The documents with these keys that exist."""
        statement = "SELECT num FROM memory WHERE space = ? AND id IN ({}) ORDER BY id"
        nums = [row[0] for row in rows_among(session, statement, (space,), keys, size=_BATCH)]
        return [one for batch in batched(nums, _BATCH) for one in self._read(session, space, kind, batch)]

    def _read(
        self, session: Session, space: str, kind: str, nums: Sequence[int], tag: bytes | None = None
    ) -> list[Document]:
        if not nums:
            return []
        if kind == "memory":
            return self._records(session, space, nums, tag)
        if kind == "mention":
            return self._mentions(session, space, nums)
        if kind == "verification":
            return self._verifications(session, space, nums)
        return self._uses(session, space, nums)

    def _records(self, session: Session, space: str, nums: Sequence[int], tag: bytes | None) -> list[Document]:
        inside = marks(len(nums))
        rows = session.rows(
            f"SELECT {qualified(_NAMES, 'm')}, m.packed, m.packed_with, m.id, m.num, m.digest, m.length, m.flags, "
            f"m.author FROM memory m WHERE +m.space = ? AND m.num IN ({inside}) ORDER BY m.id",
            (space, *nums),
        )
        versions: dict[str, list[dict[str, Any]]] = {}
        names = qualified([column.name for column in _VERSION], "h")
        # By id, not joined with the records: SQLite would read the history of the whole space for each batch.
        ids = [row[len(_NAMES) + 2] for row in rows]
        for identity, *version in session.rows(
            f"SELECT h.id, {names} FROM history h WHERE h.space = ? AND h.id IN ({marks(len(ids))}) "
            "ORDER BY h.id, h.version",
            (space, *ids),
        ):
            versions.setdefault(identity, []).append(from_sql(version, _VERSION))
        chunks = self._chunks(session, space, nums) if tag else {}
        found = []
        for row in rows:
            packed, packed_with, identity, num, digest, length, flags, author = row[len(_NAMES) :]
            data = from_sql(row[: len(_NAMES)], MEMORY_FIELDS)
            if packed is not None:
                data["content"] = unpack(packed, self._memories.dictionaries.get(session, space, packed_with))
            data["versions"] = versions.get(identity, [])
            index = b""
            if tag:
                entries = PortableIndex(digest, length, flags, author, tuple(chunks.get(num, ())))
                index = write_index(tag, entries)
            found.append(Document("memory", identity, data, index))
        return found

    def _chunks(self, session: Session, space: str, nums: Sequence[int]) -> dict[int, list[IndexedChunk]]:
        found: dict[int, list[IndexedChunk]] = {}
        for num, first, past, by_assistant, terms, vector in session.rows(
            "SELECT num, first, past, by_assistant, terms, vector FROM chunk "
            f"WHERE space = ? AND num IN ({marks(len(nums))}) ORDER BY num, n",
            (space, *nums),
        ):
            found.setdefault(num, []).append(IndexedChunk(first, past, bool(by_assistant), terms, vector))
        return found

    def _mentions(self, session: Session, space: str, nums: Sequence[int]) -> list[Document]:
        """Documents of memories that mention something or were not read for the graph yet."""
        inside = marks(len(nums))
        mentioned: dict[int, list[dict[str, Any]]] = {}
        names = qualified([column.name for column in _MENTION], "n")
        for num, *mention in session.rows(
            f"SELECT n.num, {names} FROM mention n WHERE +n.space = ? AND n.num IN ({inside}) "
            "ORDER BY n.num, n.first, n.entity_id",
            (space, *nums),
        ):
            mentioned.setdefault(num, []).append(from_sql(mention, _MENTION))
        rows = session.rows(
            f"SELECT num, id, graphed FROM memory WHERE +space = ? AND num IN ({inside}) ORDER BY id", (space, *nums)
        )
        return [
            Document("mention", identity, {"read": int(graphed == 1), "mentions": mentioned.get(num, [])})
            for num, identity, graphed in rows
            if num in mentioned or graphed != 1
        ]

    def _verifications(self, session: Session, space: str, nums: Sequence[int]) -> list[Document]:
        rows = session.rows(
            "SELECT m.id, m.grounding, v.checked_at, v.result FROM memory m LEFT JOIN verification v "
            f"ON v.space = m.space AND v.memory_id = m.id WHERE +m.space = ? AND m.num IN ({marks(len(nums))}) "
            "AND (m.grounding IS NOT NULL OR v.result IS NOT NULL) ORDER BY m.id",
            (space, *nums),
        )
        return [Document("verification", row[0], from_sql(row[1:], _VERIFICATION)) for row in rows]

    def _uses(self, session: Session, space: str, nums: Sequence[int]) -> list[Document]:
        rows = session.rows(
            "SELECT m.id, m.accessed_at, r.recalls, r.recalled_at FROM memory m LEFT JOIN recalled r "
            f"ON r.space = m.space AND r.memory_id = m.id WHERE +m.space = ? AND m.num IN ({marks(len(nums))}) "
            "AND (m.accessed_at IS NOT NULL OR r.recalls IS NOT NULL) ORDER BY m.id",
            (space, *nums),
        )
        return [Document("use", row[0], from_sql(row[1:], _USE)) for row in rows]

    # -- writing ---------------------------------------------------------------------------------

    def put(self, session: Session, record: IndexedRecord, document: Document, seq: int) -> None:
        """Write a memory and its versions in place of the existing ones."""
        identity, data = document.key, document.data
        known = session.rows(
            "SELECT num, accessed_at, grounding FROM memory WHERE space = ? AND id = ?", (record.space, identity)
        )
        if known:
            num = known[0][0]
            self._memories.replace(session, num, record, seq)
            kept = {"accessed_at": known[0][1], "grounding": known[0][2]}
            session.update("memory", kept, _MINE, (record.space, num))
            if record.memory.status == "tombstoned":
                self._memories.database.unindex_text(session, record.space, num)
            session.run("DELETE FROM history WHERE space = ? AND id = ?", (record.space, identity))
        else:
            num = self._memories.insert(session, record, seq)
            # Counts as read for the graph, unless a document that follows says otherwise.
            session.update("memory", {"graphed": 1}, _MINE, (record.space, num))
        session.update("memory", {"prior_status": data["prior_status"]}, _MINE, (record.space, num))
        for one in data["versions"]:
            session.insert("history", {"space": record.space, "id": identity, **to_sql(one, _VERSION)})

    def put_about(self, session: Session, space: str, document: Document) -> None:
        """Write mentions, a verification or uses of a memory, if the memory exists."""
        found = session.rows("SELECT num FROM memory WHERE space = ? AND id = ?", (space, document.key))
        if found:
            self._write_about(session, space, found[0][0], document.kind, document.key, document.data)

    def remove_about(self, session: Session, space: str, kind: str, key: str) -> None:
        found = session.rows("SELECT num FROM memory WHERE space = ? AND id = ?", (space, key))
        if found:
            nothing: dict[str, Any] = {
                "mention": {"read": 1, "mentions": []},
                "verification": dict.fromkeys(("grounding", "checked_at", "result")),
                "use": dict.fromkeys(("accessed_at", "recalls", "recalled_at")),
            }
            self._write_about(session, space, found[0][0], kind, key, nothing[kind])

    def _write_about(self, session: Session, space: str, num: int, kind: str, key: str, data: Any) -> None:
        if kind == "mention":
            session.run("DELETE FROM mention WHERE +space = ? AND num = ?", (space, num))
            session.update("memory", {"graphed": data["read"]}, _MINE, (space, num))
            for one in data["mentions"]:
                session.insert("mention", {"space": space, "num": num, **to_sql(one, _MENTION)})
        elif kind == "verification":
            session.update("memory", {"grounding": data["grounding"]}, _MINE, (space, num))
            session.run("DELETE FROM verification WHERE space = ? AND memory_id = ?", (space, key))
            if data["result"] is not None:
                row = {"checked_at": data["checked_at"] or 0, "result": data["result"]}
                session.insert("verification", {"space": space, "memory_id": key, **row})
        else:
            session.update("memory", {"accessed_at": data["accessed_at"]}, _MINE, (space, num))
            session.run("DELETE FROM recalled WHERE space = ? AND memory_id = ?", (space, key))
            if data["recalls"] is not None:
                row = {"recalls": data["recalls"], "recalled_at": data["recalled_at"] or 0}
                session.insert("recalled", {"space": space, "memory_id": key, **row})


def check_about(document: Document) -> None:
    """Raise `BackupCorrupt` for a document that could not be written."""
    if document.kind == "mention":
        data = checked(document.data, _MENTIONS, what="mention")
        for one in data["mentions"]:
            checked(one, _MENTION, what="mention")
    else:
        checked(document.data, _VERIFICATION if document.kind == "verification" else _USE, what=document.kind)


def check_memory(document: Document) -> dict[str, Any]:
    """The data of a memory's document, checked."""
    data = checked(document.data, MEMORY_FIELDS, ("versions",), what="memory")
    for one in data["versions"] if isinstance(data["versions"], list) else [None]:
        checked(one, _VERSION, what="version of a memory")
    tags = [data["tags"], data["redactions"], *(one["tags"] for one in data["versions"])]
    fits = data["status"] in STATUSES and data["domain"] in DOMAINS and _ID.match(document.key)
    if not fits or not all(isinstance(tag, str) for names in tags for tag in names):
        raise BackupCorrupt(
            f"The memory {document.key[:12]!r} cannot be taken in: its id, domain, status or tags are none.",
            remedy="Use another copy of the backup.",
        )
    return data


def memory_of(document: Document) -> Memory:
    """The record of a document, checked."""
    data = check_memory(document)
    values = {**data, "id": document.key, "accessed_at": None, "grounding": None, "personal": None}
    row: Row = tuple(_as_column(values[name]) for name in MEMORY_COLUMNS)
    return memory_from(row, data["content"], compressed=False)


def _as_column(value: Any) -> Sql:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, list) else value


# -- index entries as bytes ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PortableIndex:
    digest: bytes
    length: int
    flags: int
    author: int
    chunks: tuple[IndexedChunk, ...]


def index_tag(model: str, terms: str) -> bytes:
    """The tag of the index entries that a model and a tokeniser make."""
    return sha256(f"{terms}\n{model}".encode()).digest()[:TAG_BYTES]


def write_index(tag: bytes, index: PortableIndex) -> bytes:
    pieces = [
        _START.pack(tag, index.digest, index.length, index.flags & (1 << 64) - 1, index.author, len(index.chunks))
    ]
    for one in index.chunks:
        vector = one.vector or b""
        pieces += (
            _PART.pack(one.first, one.past, int(one.by_assistant), len(one.terms), len(vector)),
            one.terms,
            vector,
        )
    return b"".join(pieces)


def read_index(data: bytes, tag: bytes, *, content: str, vector_bytes: int) -> PortableIndex | None:
    """The index entries; None if the tag or the vector length differs, or they do not fit the content."""
    if len(data) < _START.size or data[:TAG_BYTES] != tag:
        return None
    _, digest, length, flags, author, count = _START.unpack_from(data)
    place = _START.size
    chunks: list[IndexedChunk] = []
    while len(chunks) < count:
        if place + _PART.size > len(data):
            return None
        first, past, by_assistant, terms, vector = _PART.unpack_from(data, place)
        place += _PART.size
        end = place + terms + vector
        if end > len(data) or not 0 <= first <= past <= len(content) or vector not in (0, vector_bytes):
            return None
        kept = data[place + terms : end] or None
        chunks.append(IndexedChunk(first, past, bool(by_assistant), data[place : place + terms], kept))
        place = end
    if place != len(data) or not _whole(chunks):
        return None
    return PortableIndex(digest, length, flags, author, tuple(chunks))


def _whole(chunks: Sequence[IndexedChunk]) -> bool:
    return bool(chunks) and all(one.vector for one in chunks)
