"""How records, projects and branches map to their tables, and terms to the words of the text index."""

from __future__ import annotations

import json
import struct
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from operator import attrgetter
from typing import Any

from ..clock import from_micros, to_micros
from ..records import Branch, Memory, Project
from ..tables import TABLES
from .database import Row, Sql
from .index_words import index_word, space_word, term_hash

__all__ = [
    "BRANCH_COLUMNS", "MEMORY_COLUMNS", "PACKED_COLUMNS", "PROJECT_COLUMNS", "IndexedChunk", "IndexedRecord",
    "branch_from", "encode_terms", "index_word", "index_words", "memory_from", "memory_values", "project_from",
    "qualified", "space_word", "term_hash", "to_sql",
]  # fmt: skip

_FIELDS = tuple(field.name for field in fields(Memory))
_STORED = tuple(column for column in TABLES["memory"].columns if column.name in _FIELDS)
MEMORY_COLUMNS = tuple(column.name for column in _STORED)
# These hold the content of a compressed record.
PACKED_COLUMNS = ("packed", "packed_with", "space")
PROJECT_COLUMNS = tuple(field.name for field in fields(Project))
BRANCH_COLUMNS = tuple(field.name for field in fields(Branch))


@dataclass(frozen=True, slots=True)
class IndexedChunk:
    """A part of a record's content with what search needs: its span, terms and vector.

    `by_assistant` marks the assistant's turns in a dialogue.
    """

    first: int
    past: int
    by_assistant: bool
    terms: bytes
    vector: bytes | None


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexedRecord:
    """A record ready to store, with all its index entries.

    The heading is searched and ranked with the first chunk, without being part of the content.
    """

    memory: Memory
    space: str
    digest: bytes
    idempotency_key: str | None
    words: str
    length: int
    flags: int
    author: int
    chunks: tuple[IndexedChunk, ...]
    heading: str = ""


def qualified(columns: Sequence[str], alias: str) -> str:
    return ", ".join(f"{alias}.{column}" for column in columns)


_column_values = attrgetter(*MEMORY_COLUMNS)
_AS_THEY_ARE = frozenset((str, int, float, type(None)))


def memory_values(memory: Memory) -> tuple[Sql, ...]:
    """The values of a record in the order of `MEMORY_COLUMNS`."""
    values = _column_values(memory)
    return tuple([value if type(value) in _AS_THEY_ARE else to_sql(value) for value in values])


def to_sql(value: object) -> Sql:
    """A value of a record as its column holds it."""
    if isinstance(value, datetime):
        return to_micros(value)
    if isinstance(value, tuple):
        return json.dumps(value, ensure_ascii=False)
    if value is None or isinstance(value, str | int | float):
        return value
    raise TypeError(f"no column holds a {type(value).__name__}")


def memory_from(row: Row, content: str, *, compressed: bool) -> Memory:
    """A record from a row that begins with `MEMORY_COLUMNS`. `content` is the uncompressed one."""
    values = dict(zip(MEMORY_COLUMNS, row, strict=False))
    for name, read in _READ:
        if (value := values[name]) is not None:
            values[name] = read(value)
    values["content"] = content
    return Memory(**values, compressed=compressed)


def project_from(row: Row) -> Project:
    return Project(*row[:4])


def branch_from(row: Row) -> Branch:
    identity, project_id, topic, parent_id, git_branch, status, *moments = row[:8]
    return Branch(identity, project_id, topic, parent_id, git_branch, status, *map(from_micros, moments))


def _json_tuple(text: str) -> tuple[Any, ...]:
    # Nearly every record has no redactions, and many have no tags.
    return () if text == "[]" else tuple(tuple(one) if isinstance(one, list) else one for one in json.loads(text))


_READERS: Mapping[str, Callable[[Any], Any]] = {"moment": from_micros, "json": _json_tuple}
_READ = tuple((column.name, _READERS[column.type]) for column in _STORED if column.type in _READERS)


# -- terms -----------------------------------------------------------------------------------------


def encode_terms(terms: Sequence[str]) -> bytes:
    """The distinct hashes in ascending order, 4 little-endian bytes each, then their counts up to 255, a byte each."""
    counts = sorted(Counter(map(term_hash, terms)).items())
    hashes = struct.pack(f"<{len(counts)}I", *[number for number, _ in counts])
    return hashes + bytes([min(count, 255) for _, count in counts])


def index_words(source: bytes | Iterable[int]) -> str:
    """The index words of an encoded record, or of some hashes, separated by spaces."""
    if isinstance(source, bytes):
        source = struct.unpack_from(f"<{_encoded_size(source)}I", source)
    return " ".join(map(index_word, source))


def _encoded_size(blob: bytes) -> int:
    size, rest = divmod(len(blob), 5)
    if rest:
        raise ValueError(f"encoded terms hold {len(blob)} bytes, not a multiple of 5: reindex the record")
    return size
