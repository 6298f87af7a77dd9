"""A space searched in the process: a few numbers per record, never its text; vectors and word frequencies on demand.

The columns say which records are live, how long they are, and which are neighbours in a line of work. All of it is
derived and brought up to date by the change sequence before each use, so every query sees the latest write of any
process; it can be dropped at any time.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...records import LIVE_STATUSES
from ..database import Database, Row, Session, column, everywhere
from ..rows import index_word, space_word
from .candidates import Signal, SpaceCandidates, read_signals
from .filters import Scope
from .vectors import VectorMatrix, stack

__all__ = ["WITH_NEIGHBOURS", "ProcessSpace", "RecordColumns", "Segment", "WordMatches", "by_words", "share_of_words"]


RECORD_COLUMNS = (
    "num, status, expires_at, branch_id, created_at, length, flags, author, "
    "CASE WHEN confinement IS NULL THEN NULL ELSE COALESCE(git_branch, '') END"
)
_NEVER = np.iinfo(np.int64).max
_NONE = -1
_SAMPLED = 8_192


# The type and the default of each column.
_DTYPES: dict[str, tuple[type[np.generic], int]] = {
    "nums": (np.int64, 0),
    "live": (np.bool_, 0),
    "expires": (np.int64, _NEVER),
    "branch": (np.int32, _NONE),
    "created": (np.int64, 0),
    "length": (np.int32, 0),
    "flags": (np.int64, 0),
    "author": (np.int64, 0),
    "confined": (np.int32, _NONE),
    "before": (np.int32, _NONE),
    "after": (np.int32, _NONE),
}


class _Columns:
    nums: NDArray[np.int64]
    live: NDArray[np.bool_]
    expires: NDArray[np.int64]
    branch: NDArray[np.int32]
    created: NDArray[np.int64]
    length: NDArray[np.int32]
    flags: NDArray[np.int64]
    author: NDArray[np.int64]
    confined: NDArray[np.int32]
    before: NDArray[np.int32]
    after: NDArray[np.int32]

    def __init__(self, capacity: int) -> None:
        for name, (kind, default) in _DTYPES.items():
            setattr(self, name, np.full(capacity, default, kind))

    def grown(self, capacity: int) -> _Columns:
        larger = _Columns(capacity)
        for name in _DTYPES:
            getattr(larger, name)[: len(self.nums)] = getattr(self, name)
        return larger


class RecordColumns:
    """Places are stable: a record keeps its place until the columns are dropped."""

    def __init__(self) -> None:
        self.size = 0
        self._columns = _Columns(64)
        # Indexed by record number; the engine assigns numbers densely.
        self._place_of = np.full(64, _NONE, np.int32)
        self._branches: dict[str, int] = {}
        self._git_branches: dict[str, int] = {}
        self._tails: dict[int, int] = {}
        self._linked = True
        self._expiring = False

    # -- catching up -----------------------------------------------------------------------------

    def apply(self, rows: Sequence[Row]) -> None:
        """Apply new or changed records; rows have `RECORD_COLUMNS`."""
        if self.size == 0 and len(rows) > 1:
            self._load(rows)
            return
        self._grow(len(rows))
        self._reach(max((row[0] for row in rows), default=0))
        for num, status, expires_at, branch_id, created_at, length, flags, author, confined in rows:
            known = int(self._place_of[num])
            place = self.size if known == _NONE else known
            branch = _NONE if branch_id is None else self._branches.setdefault(branch_id, len(self._branches))
            live = status in LIVE_STATUSES
            self._note_links(place, known == _NONE, live, branch, (created_at, num))
            columns = self._columns
            columns.nums[place] = num
            columns.live[place] = live
            columns.expires[place] = _NEVER if expires_at is None else expires_at
            columns.branch[place] = branch
            columns.created[place] = created_at
            columns.length[place] = length
            columns.flags[place] = flags
            columns.author[place] = author
            columns.confined[place] = self._git_code(confined)
            self._expiring |= expires_at is not None
            if known == _NONE:
                self._place_of[num] = place
                self.size += 1

    def _load(self, rows: Sequence[Row]) -> None:
        """The first load, one column at a time: a large space has a hundred thousand rows."""
        n = len(rows)
        self._grow(n)
        nums, statuses, expires, branches, created, lengths, flags, authors, confined = zip(*rows, strict=True)
        columns, codes = self._columns, self._branches
        columns.nums[:n] = nums
        columns.live[:n] = [status in LIVE_STATUSES for status in statuses]
        columns.expires[:n] = [_NEVER if moment is None else moment for moment in expires]
        columns.branch[:n] = [_NONE if name is None else codes.setdefault(name, len(codes)) for name in branches]
        columns.created[:n] = created
        columns.length[:n] = lengths
        columns.flags[:n] = flags
        columns.author[:n] = authors
        columns.confined[:n] = [self._git_code(name) for name in confined]
        self._reach(max(nums))
        self._place_of[columns.nums[:n]] = np.arange(n, dtype=np.int32)
        self._expiring = any(moment is not None for moment in expires)
        self._linked = not codes
        self.size = n

    def drop(self, nums: Sequence[int]) -> None:
        """Drop purged records; their places stay empty."""
        for place in self.places(nums).tolist():
            num = int(self._columns.nums[place])
            if num >= 0:
                self._place_of[num] = _NONE
                self._columns.live[place] = False
                self._columns.nums[place] = -1
                self._linked = self._linked and self._columns.branch[place] == _NONE

    def _reach(self, num: int) -> None:
        if num >= len(self._place_of):
            longer = np.full(max(num + 1, 2 * len(self._place_of)), _NONE, np.int32)
            longer[: len(self._place_of)] = self._place_of
            self._place_of = longer

    def _grow(self, more: int) -> None:
        capacity = len(self._columns.nums)
        if self.size + more > capacity:
            self._columns = self._columns.grown(max(self.size + more, capacity * 2))

    def _note_links(self, place: int, new: bool, live: bool, branch: int, order: tuple[int, int]) -> None:
        """Update neighbours in the usual case, a record appended to its branch; otherwise relink later."""
        columns = self._columns
        if not new:
            same = columns.live[place] == live and columns.branch[place] == branch
            if not same or columns.created[place] != order[0]:
                self._linked = self._linked and branch == _NONE and columns.branch[place] == _NONE
            return
        if branch == _NONE or not live or not self._linked:
            return
        tail = self._tails.get(branch)
        if tail is not None:
            if (columns.created[tail], columns.nums[tail]) > order:
                self._linked = False
                return
            columns.after[tail] = place
            columns.before[place] = tail
        self._tails[branch] = place

    def _link(self) -> None:
        columns, n = self._columns, self.size
        columns.before[:n] = columns.after[:n] = _NONE
        places = np.flatnonzero(columns.live[:n] & (columns.branch[:n] != _NONE))
        order = places[np.lexsort((columns.nums[places], columns.created[places], columns.branch[places]))]
        same = columns.branch[order[:-1]] == columns.branch[order[1:]]
        columns.after[order[:-1][same]] = order[1:][same]
        columns.before[order[1:][same]] = order[:-1][same]
        self._tails = dict(zip(columns.branch[order].tolist(), order.tolist(), strict=True))
        self._linked = True

    # -- asking ----------------------------------------------------------------------------------

    @property
    def nums(self) -> NDArray[np.int64]:
        return self._columns.nums[: self.size]

    def total_length(self, open_places: NDArray[np.bool_]) -> tuple[int, int]:
        """The number of open places and of the terms of their records; sampled if there are many."""
        step = max(1, self.size // _SAMPLED)
        sampled = open_places[::step]
        return int(np.count_nonzero(open_places)), int(self._columns.length[: self.size : step][sampled].sum()) * step

    def open_to(self, now: int, allowed: NDArray[np.int64] | None, here: str | None = None) -> NDArray[np.bool_]:
        """The places a query may see: exactly the allowed ones, or all live, unexpired ones not confined elsewhere."""
        if allowed is None:
            live = self._columns.live[: self.size]
            if self._expiring:
                live = live & (self._columns.expires[: self.size] > now)
            if self._git_branches:
                confined = self._columns.confined[: self.size]
                live = live & ((confined == _NONE) | (confined == self._git_branches.get(here or "", -2)))
            return live
        mask = np.zeros(self.size, np.bool_)
        mask[self.places(allowed)] = True
        return mask

    def places(self, nums: Sequence[int] | NDArray[np.int64]) -> NDArray[np.int32]:
        """Places of the records that are known here, in the order given."""
        wanted = np.asarray(nums, np.int64)
        places = self._place_of[wanted[wanted < len(self._place_of)]]
        known: NDArray[np.int32] = places[places != _NONE]
        return known

    def values(self, name: str, places: NDArray[np.int32]) -> NDArray[np.int64]:
        """One of `created`, `length`, `flags` and `author` for each place."""
        values: NDArray[np.int64] = getattr(self._columns, name)[places]
        return values

    def branches(self, places: NDArray[np.int32]) -> NDArray[np.int32]:
        return self._columns.branch[places]

    def nearness(self, places: NDArray[np.int32], near: Mapping[str, float]) -> NDArray[np.float32]:
        """How near the line of work of each record is to the caller's."""
        worth = np.zeros(len(self._branches) + 1, np.float32)
        for name, value in near.items():
            if name in self._branches:
                worth[self._branches[name]] = value
        # The last slot is addressed by -1, "no line of work".
        return worth[self._columns.branch[places]]

    def _git_code(self, name: str | None) -> int:
        return _NONE if name is None else self._git_branches.setdefault(name, len(self._git_branches))

    def neighbours(self, places: NDArray[np.int32]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """The places before and after each in its line of work; -1 for none."""
        if not self._linked:
            self._link()
        return self._columns.before[places], self._columns.after[places]


# -- records by the words of a query -------------------------------------------------------------

_WORDS_MOST = 24
_COMMON = 0.04
_MATCHES_MOST = 600


@dataclass(frozen=True, slots=True)
class WordMatches:
    """Matches of one word: how many records were read, how many of them are in this space, and the visible ones."""

    read: int
    known: int
    records: Sequence[int]


def by_words(
    shares: NDArray[np.float64],
    size: int,
    open_records: int,
    look: Callable[[int, int], WordMatches],
    in_sight: Callable[[Sequence[int]], list[int]],
    longer: float = 8.0,
) -> tuple[list[int], NDArray[np.float64]]:
    """The best visible records, and about how many records contain each word.

    `shares` is the share of the space's `size` records that contains each word. `look` takes the index of a word and
    how many records to read at most. `in_sight` takes records, best first, and drops those that are not visible.
    `longer` bounds how much more is read under a selective filter.
    """
    records = shares * size
    # A selective filter needs a longer look to find as much.
    budget = int(_MATCHES_MOST * min(longer, size / max(1, open_records)))
    total: dict[int, float] = {}
    best: list[int] = []
    for words in _in_turn(shares):
        for i in words:
            if budget <= 0:
                break
            held = look(i, budget)
            records[i] = held.known if held.read < budget else max(float(records[i]), float(held.known))
            weight = math.log1p(size / max(float(records[i]), 0.5))
            for one in held.records:
                total[one] = total.get(one, 0.0) + weight
            budget -= held.read
        # Most records have one word only; those stay in the order they were read, newest first.
        best = in_sight(sorted(total, key=total.__getitem__, reverse=True))
        if best or budget <= 0:
            break
    return best, records


def _in_turn(shares: NDArray[np.float64]) -> list[list[int]]:
    """The rare words together, rarest first; then the common ones one by one, in case nothing else was found."""
    order = [int(i) for i in np.argsort(shares, kind="stable")[:_WORDS_MOST]]
    rare = [i for i in order if shares[i] <= _COMMON]
    return [rare, *([i] for i in order[len(rare) :])]


# Up to this many visible records, all are ranked; beyond it retrieval picks candidates first.
SMALL = 1_500
_BLOCK = 16_384
_FIT_ON = 6_000
_SKETCH_ON = 1_500


class Segment:
    def __init__(self, space: str, dimensions: int) -> None:
        self.space = space
        self.columns = RecordColumns()
        self.seq = 0
        self._dimensions = dimensions
        self._matrix: VectorMatrix | None = None
        self._signals: dict[int, Signal] = {}
        self._sketch: dict[int, float] = {}
        self._sketched = 0

    def catch_up(self, session: Session, seq: int) -> None:
        """Apply all changes up to `seq`, the current change sequence of the store."""
        if seq <= self.seq:
            return
        purged = column(session, "SELECT num FROM purged WHERE space = ? AND seq > ?", (self.space, self.seq))
        changed = session.rows(
            f"SELECT {RECORD_COLUMNS} FROM memory WHERE space = ? AND seq > ? ORDER BY seq, num", (self.space, self.seq)
        )
        self._forget(purged)
        self.columns.drop(purged)
        self._forget([row[0] for row in changed])
        self.columns.apply(changed)
        self._extend_matrix(session, changed)
        self.seq = seq

    def _forget(self, nums: Sequence[int]) -> None:
        for num in nums:
            self._signals.pop(num, None)
        if self._matrix is not None and nums:
            places = self.columns.places(nums)
            if len(places):
                self._matrix.forget(places)

    def _extend_matrix(self, session: Session, changed: Sequence[Row]) -> None:
        if self._matrix is None or not changed:
            return
        signals = read_signals(session, self.space, [row[0] for row in changed])
        self._add(self._matrix, [(num, v) for num, chunks in signals.items() for _, v, *_ in chunks])
        if self._matrix.outgrown:
            self._matrix = None

    # -- asking ----------------------------------------------------------------------------------

    def signals(self, session: Session, nums: Sequence[int]) -> dict[int, Signal]:
        """Signals of records; cached while the space is small."""
        if self.columns.size > 2 * SMALL:
            self._signals.clear()
            return read_signals(session, self.space, nums)
        missing = [num for num in nums if num not in self._signals]
        if missing:
            self._signals.update(read_signals(session, self.space, missing))
        return self._signals

    def vectors(self, session: Session) -> VectorMatrix:
        """The vectors of the space, loaded on first use."""
        if self._matrix is None:
            self._matrix = self._load_matrix(session)
        return self._matrix

    def word_share(self, session: Session, hashes: Sequence[int]) -> list[float]:
        """The approximate share of records that contain each word, from a sample."""
        if self.columns.size > 2 * self._sketched:
            self._sketch = self._draw_sketch(session)
            self._sketched = self.columns.size
        return [self._sketch.get(number, 0.0) for number in hashes]

    def _load_matrix(self, session: Session) -> VectorMatrix:
        sampled = read_signals(session, self.space, self._sample(_FIT_ON))
        vectors = [v for chunks in sampled.values() for _, v, *_ in chunks if v]
        (expected,) = session.rows("SELECT count(*) FROM chunk WHERE space = ?", (self.space,))[0]
        matrix = VectorMatrix(stack(vectors, self._dimensions), int(expected))
        num, n = -1, -1
        while rows := session.rows(
            "SELECT num, n, vector FROM chunk WHERE (num, n) > (?, ?) AND space = ? ORDER BY num, n LIMIT ?",
            (num, n, self.space, _BLOCK),
        ):
            num, n = rows[-1][:2]
            self._add(matrix, [(row[0], row[2]) for row in rows])
        return matrix

    def _add(self, matrix: VectorMatrix, rows: Sequence[tuple[int, bytes | None]]) -> None:
        kept = [(num, vector) for num, vector in rows if vector is not None]
        if kept:
            nums, vectors = zip(*kept, strict=True)
            matrix.append(stack(vectors, self._dimensions), self.columns.places(nums))

    def _draw_sketch(self, session: Session) -> dict[int, float]:
        return share_of_words(read_signals(session, self.space, self._sample(_SKETCH_ON)))

    def _sample(self, count: int) -> list[int]:
        nums = self.columns.nums
        known: list[int] = nums[nums >= 0].tolist()
        # A fixed seed: the same store gives the same directions, hence the same results.
        picked = np.random.default_rng(len(known)).choice(len(known), min(count, len(known)), replace=False)
        return [known[i] for i in sorted(picked.tolist())]


def share_of_words(signals: Mapping[int, Signal]) -> dict[int, float]:
    """The share of records that contain each word."""
    if not signals:
        return {}
    words = [
        np.unique(np.concatenate([np.frombuffer(terms, np.uint32, len(terms) // 5) for terms, *_ in chunks]))
        for chunks in signals.values()
    ]
    hashes, counts = np.unique(np.concatenate(words), return_counts=True)
    return dict(zip(hashes.tolist(), (counts / len(words)).tolist(), strict=True))


# So many of the strongest candidates bring their neighbours along.
WITH_NEIGHBOURS = 24


class ProcessSpace:
    def __init__(self, database: Database, segment: Segment) -> None:
        self.segment = segment
        self._database = database
        self._space_word = space_word(segment.space)
        # The change sequence and the newest record number of the whole store at it.
        self._newest = (-1, 0)

    def look_up(self, session: Session, scope: Scope, hashes: Sequence[int], count: int) -> _ProcessQuery:
        """The half of a search that needs no vector: which records are visible, and which contain the words."""
        segment = self.segment
        allowed = np.array(scope.allowed(session, segment.space), np.int64) if scope.filtered else None
        open_places = segment.columns.open_to(scope.now, allowed, scope.here)
        open_records = int(np.count_nonzero(open_places))
        if open_records <= SMALL:
            return _ProcessQuery(segment, scope, open_places, np.flatnonzero(open_places).astype(np.int32), None)
        places, records = self._by_words(session, hashes, open_places, open_records, count)
        return _ProcessQuery(segment, scope, open_places, places, records)

    def _by_words(
        self, session: Session, hashes: Sequence[int], open_places: NDArray[np.bool_], open_records: int, count: int
    ) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        columns, space = self.segment.columns, self.segment.space
        narrowing = self._narrowing(session)

        def look(i: int, most: int) -> WordMatches:
            nums = self._database.text_matches(session, space, index_word(hashes[i]), narrowing, most)
            # Without a narrowing word these include records of other spaces, which do not count here.
            places = columns.places(nums)
            return WordMatches(len(nums), len(places), places[open_places[places]].tolist())

        shares = np.array(self.segment.word_share(session, hashes), np.float64)
        best, records = by_words(shares, columns.size, open_records, look, lambda places: list(places[:count]))
        return np.array(best, np.int32), records

    def _narrowing(self, session: Session) -> list[str]:
        """The space's own word, needed only if most of the store belongs to other spaces."""
        segment = self.segment
        if session.bounds is not None:
            # This transaction cannot see how large the store is.
            return [self._space_word]
        if self._newest[0] != segment.seq:
            (newest,) = session.rows(everywhere("newest number", "SELECT max(num) FROM memory"))[0]
            self._newest = (segment.seq, newest or 0)
        return [self._space_word] if segment.columns.size < self._newest[1] // 2 else []


@dataclass(frozen=True, slots=True)
class _ProcessQuery:
    """The visible places of a segment, and those that were picked; `word_records` is None if all were."""

    segment: Segment
    scope: Scope
    open_places: NDArray[np.bool_]
    places: NDArray[np.int32]
    word_records: NDArray[np.float64] | None

    def pick(self, session: Session, query: NDArray[np.float32] | None, count: int) -> SpaceCandidates:
        if self.word_records is None:
            return self._candidates(self.places)
        lists = [self.places]
        if query is not None:
            lists.append(self.segment.vectors(session).nearest(query, self.open_places, count))
        strongest = np.concatenate([places[:WITH_NEIGHBOURS] for places in lists])
        around = np.concatenate(self.segment.columns.neighbours(strongest))
        around = around[around >= 0]
        places = np.unique(np.concatenate([*lists, around[self.open_places[around]]]))
        return self._candidates(places.astype(np.int32))

    def _candidates(self, places: NDArray[np.int32]) -> SpaceCandidates:
        columns = self.segment.columns
        index = np.full(columns.size + 1, -1, np.int32)
        index[places] = np.arange(len(places), dtype=np.int32)
        # The last slot is addressed by -1, "no neighbour".
        index[-1] = -1
        previous, following = columns.neighbours(places)
        open_records, open_length = columns.total_length(self.open_places)
        return SpaceCandidates(
            self.segment.space,
            self.segment.seq,
            columns.nums[places],
            columns.values("created", places),
            columns.values("length", places),
            columns.values("flags", places),
            columns.values("author", places),
            columns.branches(places),
            index[previous],
            index[following],
            columns.nearness(places, self.scope.near),
            open_records,
            open_length,
            self.word_records,
            self.segment.signals,
        )
