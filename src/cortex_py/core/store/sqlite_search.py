"""A search by words in the file of a store, for a process that has no time to open the store: it loads little.

The file is opened read-only, by the SQLite that the store uses too. Only notes of one project are found, and none that
waits for a review, by the share of a query's words that they have, rare words counting for more. An encrypted file, or
one of another version, has no results. The weights of the words come along, so that the caller can look closer at long
notes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import apsw

from ..records import NEVER_INJECTED_TAG, STALE_TAG
from .index_words import index_word, term_hash

__all__ = ["FoundNote", "search_file"]

_BUSY_MS = 20
_COMMON = 0.04  # share of the records from which on a word is only counted, not looked for
_MATCHES_MOST = 600  # records read for one word, the newest
_LOOKED_AT = 60
_FEWEST = 2  # words that a result has

_PROJECT = "SELECT id FROM project WHERE root IN ({}) ORDER BY length(root) DESC LIMIT 1"
_NOTES = (
    "SELECT num, id, namespace, status, created_at, content FROM memory WHERE num IN ({}) AND space = ? "
    "AND kind = 'note' AND status = 'active' AND (expires_at IS NULL OR expires_at > ?) "
    "AND (confinement IS NULL OR git_branch = ?) AND content <> '' AND NOT EXISTS "
    "(SELECT 1 FROM tag t WHERE t.space = memory.space AND t.num = memory.num "
    f"AND t.tag IN ('{NEVER_INJECTED_TAG}', '{STALE_TAG}'))"
)


class FoundNote(NamedTuple):
    """A note and the share of the query that its words make up, 0 to 1."""

    id: str
    namespace: str
    status: str
    created_at: datetime
    content: str
    share: float


def search_file(
    path: Path, folders: Sequence[Path], terms: Sequence[str], *, git_branch: str, now: float, least: float
) -> tuple[list[FoundNote], dict[str, float]]:
    """Notes of the project at one of these folders that have at least this share of a query, best first.

    Also the weight of each term, in all 1.
    """
    try:
        with closing(apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)) as file:
            file.set_busy_timeout(_BUSY_MS)
            return _search(file, folders, terms, git_branch, int(now * 1e6), least)
    except apsw.Error:
        return [], {}


def _search(
    file: apsw.Connection, folders: Sequence[Path], terms: Sequence[str], git_branch: str, now: int, least: float
) -> tuple[list[FoundNote], dict[str, float]]:
    roots = [str(place) for place in folders]
    project = _rows(file, _PROJECT.format(_marks(roots)), roots)
    ((total,),) = _rows(file, "SELECT coalesce(max(num), 0) FROM memory")
    if not project or not terms or not total:
        return [], {}
    file.execute("CREATE VIRTUAL TABLE temp.held USING fts5vocab(main, memory_text, row)")
    weights: dict[str, float] = {}
    rare: list[str] = []
    by_term = {term: index_word(term_hash(term)) for term in terms}
    for word in dict.fromkeys(by_term.values()):
        count = sum(doc for (doc,) in _rows(file, "SELECT doc FROM temp.held WHERE term = ?", (word,)))
        weights[word] = math.log1p(total / max(count, 0.5))
        if 0 < count <= max(_COMMON * total, _LOOKED_AT):
            rare.append(word)
    gained: dict[int, float] = {}
    numbers: dict[int, int] = {}
    for word in sorted(rare, key=weights.__getitem__, reverse=True):
        matches = "SELECT rowid FROM memory_text WHERE memory_text MATCH ? ORDER BY rowid DESC LIMIT ?"
        for (num,) in _rows(file, matches, (word, _MATCHES_MOST)):
            gained[num] = gained.get(num, 0.0) + weights[word]
            numbers[num] = numbers.get(num, 0) + 1
    whole = sum(weights.values())
    best = [num for num in gained if numbers[num] >= _FEWEST and gained[num] >= least * whole]
    best = sorted(best, key=lambda num: (-gained[num], -num))[:_LOOKED_AT]
    rows = _rows(file, _NOTES.format(_marks(best)), (*best, *project[0], now, git_branch)) if best else []
    notes = [
        (gained[num], num, FoundNote(id, namespace, status, _moment(created), content, gained[num] / whole))
        for num, id, namespace, status, created, content in rows
    ]
    best_first = [note for *_, note in sorted(notes, key=lambda one: (-one[0], -one[1]))]
    return best_first, {term: weights[word] / whole for term, word in by_term.items()}


def _rows(file: apsw.Connection, sql: str, values: Sequence[str | int] = ()) -> list[tuple[Any, ...]]:
    return file.execute(sql, values).fetchall()


def _marks(values: Sequence[object]) -> str:
    return ", ".join("?" * len(values))


def _moment(micros: int) -> datetime:
    return datetime.fromtimestamp(micros / 1e6, UTC)
