"""How the one record lies in its table: column names once, and the way in and out of a row."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from ..clock import from_micros, to_micros
from ..records import Branch, Memory, Project
from .database import Row, Sql

__all__ = [
    "BRANCH_COLUMNS",
    "MEMORY_COLUMNS",
    "PACKED_COLUMNS",
    "PROJECT_COLUMNS",
    "Prepared",
    "PreparedChunk",
    "branch_from",
    "memory_from",
    "memory_values",
    "project_from",
    "qualified",
]

MEMORY_COLUMNS = (
    "id",
    "domain",
    "project_id",
    "branch_id",
    "namespace",
    "category",
    "role",
    "content",
    "summary",
    "tags",
    "source",
    "path",
    "git_branch",
    "user_id",
    "agent_id",
    "status",
    "created_at",
    "updated_at",
    "accessed_at",
    "expires_at",
    "tombstoned_at",
    "superseded_by",
    "grounding",
    "version",
    "duplicate_of",
    "redactions",
    "kind",
    "symbol",
    "first_line",
    "last_line",
    "confinement",
)
# What stands in for a content that is packed.
PACKED_COLUMNS = ("packed", "packed_with", "space")
PROJECT_COLUMNS = ("id", "root", "remote", "name")
BRANCH_COLUMNS = ("id", "project_id", "topic", "parent_id", "git_branch", "status", "created_at", "updated_at")


@dataclass(frozen=True, slots=True)
class PreparedChunk:
    """A part of a record's content, ready to store: its span, its terms, its vector.

    `by_assistant` marks the assistant's turns in a dialogue.
    """

    first: int
    past: int
    by_assistant: bool
    terms: bytes
    vector: bytes | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A record ready to store, with all that search needs computed beforehand.

    A heading is found and weighed with the first part of the content, without being part of it.
    """

    memory: Memory
    space: str
    digest: bytes
    idempotency_key: str | None
    words: str
    length: int
    flags: int
    author: int
    chunks: tuple[PreparedChunk, ...]
    heading: str = ""


def qualified(columns: Sequence[str], alias: str) -> str:
    return ", ".join(f"{alias}.{column}" for column in columns)


def memory_values(memory: Memory) -> tuple[Sql, ...]:
    """The values of a record in the order of `MEMORY_COLUMNS`."""
    return tuple(_to_sql(getattr(memory, column)) for column in MEMORY_COLUMNS)


def _to_sql(value: object) -> Sql:
    if isinstance(value, datetime):
        return to_micros(value)
    if isinstance(value, tuple):
        return json.dumps(value, ensure_ascii=False)
    if value is None or isinstance(value, str | int | float):
        return value
    raise TypeError(f"no column holds a {type(value).__name__}")


def memory_from(row: Row, content: str, *, compressed: bool) -> Memory:
    """A record from a row that begins with `MEMORY_COLUMNS`, and its content, which may lie there packed."""
    return Memory(
        id=row[0],
        domain=row[1],
        project_id=row[2],
        branch_id=row[3],
        namespace=row[4],
        category=row[5],
        role=row[6],
        content=content,
        summary=row[8],
        tags=_names(row[9]),
        source=row[10],
        path=row[11],
        git_branch=row[12],
        user_id=row[13],
        agent_id=row[14],
        status=row[15],
        created_at=from_micros(row[16]),
        updated_at=from_micros(row[17]),
        accessed_at=_moment(row[18]),
        expires_at=_moment(row[19]),
        tombstoned_at=_moment(row[20]),
        superseded_by=row[21],
        grounding=row[22],
        version=row[23],
        duplicate_of=row[24],
        redactions=_names(row[25]),
        kind=row[26],
        symbol=row[27],
        first_line=row[28],
        last_line=row[29],
        confinement=row[30],
        compressed=compressed,
    )


def project_from(row: Row) -> Project:
    identity, root, remote, name = row[:4]
    return Project(identity, root, remote, name)


def branch_from(row: Row) -> Branch:
    identity, project_id, topic, parent_id, git_branch, status, created, updated = row[:8]
    return Branch(
        identity, project_id, topic, parent_id, git_branch, status, from_micros(created), from_micros(updated)
    )


def _moment(micros: int | None) -> datetime | None:
    return None if micros is None else from_micros(micros)


def _names(text: str) -> tuple[str, ...]:
    # Nearly every record has no redactions and many no tags.
    return () if text == "[]" else tuple(json.loads(text))
