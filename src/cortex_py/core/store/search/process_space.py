"""A space searched in the process: a few numbers per record, never its text; vectors and word frequencies on demand.

All of it is derived and brought up to date by the change sequence before each use, so every query sees the latest write
of any process; it can be dropped at any time. A file that the processes share spares the next one the first load.
"""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import partial
from itertools import takewhile

import numpy as np
from numpy.typing import NDArray

from ...jobs import Pool, trim_arenas
from ..database import Database, Row, Session, batched, column, everywhere, in_spaces, rows_among
from ..rows import index_word, space_word
from .candidates import ChunkColumns, Details, Signal, SpaceCandidates, read_details, read_signals
from .filters import Scope
from .kept_file import READ_BY_CHUNK, READ_BY_PLACE, KeptSpace
from .kept_spaces import KeptSpaces
from .record_columns import RECORD_COLUMNS, RecordColumns
from .vectors import VectorMatrix, distinct, stack

__all__ = [
    "WITH_NEIGHBOURS",
    "ProcessSpace",
    "Segment",
    "WordMatches",
    "by_words",
    "changes_of",
    "share_of_words",
]


# -- records by the words of a query -------------------------------------------------------------

_WORDS_MOST = 24
_COMMON = 0.04
_MATCHES_MOST = 600


@dataclass(frozen=True, slots=True, eq=False)
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
_BLOCK = 4_096
_FIT_ON = 6_000
_SKETCH_ON = 1_500
# A file is worth its writing from this many records on, and again after so many changes or this share of the records.
_KEPT_LEAST, _KEPT_CHANGES, _KEPT_SHARE = 2_000, 1_000, 0.05
# How long the size of the store may be out of date where the text index knows spaces.
_NEWEST_SECONDS = 60.0
# If more than this share of the records changed since a file was written, reading everything is quicker.
_CHANGED_MOST = 0.5
_READ_AT_ONCE = 2_048
_RELEASING = Pool(1, "cortex-release")
# Each takes a call of the system for every array.
_RUNS_MOST = 16
# How many times of catching up are remembered, for transactions that began before.
_CHANGES_MOST = 256


def changes_of(session: Session, spaces: Sequence[str]) -> dict[str, int]:
    """The last change of each space; 0 if there was none."""
    if not spaces:
        return {}
    rows = session.rows(f"SELECT space, seq FROM space_change WHERE {in_spaces('space', spaces)}", tuple(spaces))
    return {**dict.fromkeys(spaces, 0), **dict(rows)}


class Segment:
    """The columns, vectors and word frequencies of a space, each as of a change of the space; shared by threads.

    A query takes snapshots and searches those: nobody waits for a search, only for what the same space still loads.
    """

    def __init__(self, space: str, dimensions: int, kept: KeptSpaces | None = None) -> None:
        self.space = space
        self.columns = RecordColumns()
        self.seq = 0
        self._dimensions = dimensions
        self._kept = kept
        self._lock = threading.RLock()
        self._generation: str | None = None
        self._matrix: VectorMatrix | None = None
        self._matrix_seq = 0
        self._chunks: ChunkColumns | None = None
        # What changed lately: each time that this caught up, the change sequence after it and the records' numbers.
        self._changed: deque[tuple[int, frozenset[int]]] = deque()
        self._changed_from = 0
        self._shares: WordShares | None = None
        self._mapped: KeptSpace | None = None
        self._unchecked = False
        self._kept_seq = 0
        # Changes that the file does not have; None while there is no file.
        self.unkept: int | None = None

    def snapshot(self, session: Session, seq: int) -> SegmentSnapshot:
        """The columns with all changes up to `seq`, the last that the transaction sees, and perhaps later ones."""
        with self._lock:
            self._catch_up(session, seq)
            return SegmentSnapshot(self, self.columns.snapshot(), self.seq, seq)

    def _catch_up(self, session: Session, seq: int) -> None:
        if seq <= self.seq:
            return
        first = self.seq == 0
        if first and self._kept is not None:
            self._open_kept(session, self._kept)
        purged, changed = self._changes(session, self.seq, RECORD_COLUMNS)
        if first:
            self._changed_from = seq
        elif purged or changed:
            self._note_changes(seq, [*purged, *(row[0] for row in changed)])
        self.columns.drop(purged)
        self.columns.apply(changed)
        if self.unkept is not None:
            self.unkept += len(purged) + len(changed)
        self.seq = seq

    def _note_changes(self, seq: int, nums: Sequence[int]) -> None:
        if self._chunks is not None:
            self._chunks.forget(self.columns.places(nums))
        self._changed.append((seq, frozenset(nums)))
        if len(self._changed) > _CHANGES_MOST:
            self._changed_from, _ = self._changed.popleft()

    def changed_since(self, seq: int) -> frozenset[int] | None:
        """The records that may have changed after this change of the store; None if that is not known any more."""
        with self._lock:
            if seq < self._changed_from:
                return None
            late = takewhile(lambda one: one[0] > seq, reversed(self._changed))
            return frozenset[int]().union(*(nums for _, nums in late))

    def _changes(self, session: Session, seq: int, columns: str) -> tuple[list[int], list[Row]]:
        """The numbers of the records purged since, and columns of those changed since."""
        purged = column(session, "SELECT num FROM purged WHERE space = ? AND seq > ?", (self.space, seq))
        statement = f"SELECT {columns} FROM memory WHERE space = ? AND seq > ? ORDER BY seq, num"
        return purged, session.rows(statement, (self.space, seq))

    # -- the file --------------------------------------------------------------------------------

    def _open_kept(self, session: Session, kept: KeptSpaces) -> None:
        self._generation = kept.generation(session)
        found = kept.load(session, self.space, self._dimensions)
        if found is None:
            return
        since = "SELECT count(*) FROM memory WHERE space = ? AND seq > ?"
        (changed,) = session.rows(since, (self.space, found.facts["seq"]))[0]
        if changed > _CHANGED_MOST * found.facts["records"]:
            return
        self.columns = RecordColumns.from_arrays(found.arrays, found.facts)
        self._matrix = VectorMatrix.from_arrays(found.arrays, found.facts)
        self._mapped, self._unchecked = found, True
        self._kept_seq = self.seq = self._matrix_seq = int(found.facts["seq"])
        if len(found.arrays["shares"]):
            self._shares = WordShares(found.facts["sketched"], found.arrays["words"], found.arrays["shares"])
        self.unkept = 0

    @property
    def is_unkept(self) -> bool:
        """Whether a file, or a newer one, would spare the next process much work."""
        with self._lock:
            if self._kept is None or self._matrix is None or self.columns.size < _KEPT_LEAST:
                return False
            return self.unkept is None or self.unkept > max(_KEPT_CHANGES, _KEPT_SHARE * self.columns.size)

    def keep(self, database: Database) -> bool:
        """Write the file, as of now, unless another process did. False if that failed; everything works without it."""
        with self._lock, database.read() as session:
            kept, generation = self._kept, self._generation
            if kept is None or generation is None:
                return False
            if kept.seq(session, self.space) > self._kept_seq:
                return True
            seq = changes_of(session, [self.space])[self.space]
            self._catch_up(session, seq)
            matrix = self.vectors(session, seq)
            if seq != self.seq:
                return False
            arrays, facts = self.columns.arrays()
            shares = self._shares
        # Nobody waits for the grouping. A chunk that dies meanwhile is of a record that changed after `seq`, and the
        # process that opens the file reads it again.
        rows, more, other = matrix.arrays(arrays["nums"])
        arrays |= more
        arrays["words"] = shares.words if shares else np.empty(0, np.uint32)
        arrays["shares"] = shares.shares if shares else np.empty(0, np.float64)
        facts |= {**other, "seq": seq, "dimensions": self._dimensions, "sketched": shares.size if shares else 0}
        return kept.save(database, self.space, generation, facts, arrays, rows)

    def check_kept(self) -> bool:
        """False if the file that this came from is damaged; it is read once."""
        with self._lock:
            unchecked, self._unchecked = self._unchecked, False
        return not unchecked or self._kept is None or self._kept.check(self.space)

    # -- asking ----------------------------------------------------------------------------------

    def details(self, session: Session, seq: int, places: NDArray[np.int32], nums: NDArray[np.int64]) -> Details:
        """Records as the transaction sees them, given by place and number; kept while the space is small."""
        with self._lock:
            if self.columns.size > 2 * SMALL:
                self._chunks = None
            else:
                late = self.changed_since(seq)
                if late is not None and late.isdisjoint(nums.tolist() if late else ()):
                    self._chunks = self._chunks or ChunkColumns(self._dimensions)
                    if (missing := self._chunks.missing(places)).any():
                        wanted = nums[missing]
                        self._chunks.add(places[missing], wanted, read_signals(session, self.space, wanted.tolist()))
                    return self._chunks.take(places, nums)
        return read_details(session, self.space, nums.tolist(), self._dimensions)

    def vectors(self, session: Session, seq: int) -> VectorMatrix:
        """A snapshot of the vectors, loaded on first use."""
        with self._lock:
            if self._matrix is None:
                self._matrix = self._load_matrix(session)
                self._matrix_seq = seq
            elif self._matrix_seq < seq:
                purged, changed = self._changes(session, self._matrix_seq, "num")
                self._update(self._matrix, session, len(purged), [row[0] for row in changed])
                self._matrix_seq = seq
                if self._matrix.outgrown:
                    self._matrix, self.unkept = self._load_matrix(session), None
            return copy(self._matrix)

    def _update(self, matrix: VectorMatrix, session: Session, purged: int, changed: Sequence[int]) -> None:
        # No query sees the rows of a purged record: it has no place any more.
        matrix.dead += purged
        places = self.columns.places(changed)
        if len(places):
            matrix.forget(places)
            # After an import by another process these are very many, and their vectors take far more than the matrix.
            for some in batched(changed, _READ_AT_ONCE):
                signals = read_signals(session, self.space, some)
                self._add(matrix, [(num, v) for num, chunks in signals.items() for _, v, *_ in chunks])

    def release(self) -> None:
        """Give memory back that a search mapped, while the caller goes on."""
        if (mapped := self._mapped) is not None and mapped.is_large:
            _RELEASING.submit(partial(self._release, mapped))

    def _release(self, mapped: KeptSpace) -> None:
        mapped.release(READ_BY_CHUNK)
        with self._lock:
            if len(self.columns.overwritten) <= _RUNS_MOST:
                mapped.release(READ_BY_PLACE, self.columns.overwritten)

    def word_share(self, session: Session, hashes: Sequence[int]) -> NDArray[np.float64]:
        """The approximate share of records that contain each word, from a sample."""
        with self._lock:
            shares, size = self._shares, self.columns.size
            if shares is None or size > 2 * shares.size:
                sample = read_signals(session, self.space, self._sample(_SKETCH_ON))
                shares = self._shares = WordShares.of(size, sample)
        return shares.lookup(hashes)

    def _load_matrix(self, session: Session) -> VectorMatrix:
        vectors = [
            vector
            for some in batched(self._sample(_FIT_ON), _READ_AT_ONCE)
            for chunks in read_signals(session, self.space, some).values()
            for _, vector, *_ in chunks
            if vector
        ]
        (expected,) = session.rows("SELECT count(*) FROM chunk WHERE space = ?", (self.space,))[0]
        matrix = VectorMatrix(stack(vectors, self._dimensions), int(expected))
        num, n = -1, -1
        while rows := session.rows(
            "SELECT num, n, vector FROM chunk WHERE (num, n) > (?, ?) AND space = ? ORDER BY num, n LIMIT ?",
            (num, n, self.space, _BLOCK),
        ):
            num, n = rows[-1][:2]
            self._add(matrix, [(row[0], row[2]) for row in rows])
        del vectors, rows
        trim_arenas()
        return matrix

    def _add(self, matrix: VectorMatrix, rows: Sequence[tuple[int, bytes | None]]) -> None:
        # A record that was purged since the transaction began has no place.
        kept = [(num, vector) for num, vector in rows if vector is not None and self.columns.has(num)]
        if kept:
            nums, vectors = zip(*kept, strict=True)
            matrix.append(stack(vectors, self._dimensions), self.columns.places(nums))

    def _sample(self, count: int) -> list[int]:
        nums = self.columns.nums
        known: list[int] = nums[nums >= 0].tolist()
        # A fixed seed: the same store gives the same directions, hence the same results.
        picked = np.random.default_rng(len(known)).choice(len(known), min(count, len(known)), replace=False)
        return [known[i] for i in sorted(picked.tolist())]


@dataclass(frozen=True, slots=True, eq=False)
class SegmentSnapshot:
    """A segment's columns. `seq` is the last change in them, `seen` the last one that the transaction sees."""

    segment: Segment
    columns: RecordColumns
    seq: int
    seen: int

    def details(self, places: NDArray[np.int32], nums: NDArray[np.int64], session: Session) -> Details:
        return self.segment.details(session, self.seen, places, nums)

    def nearest(
        self, session: Session, query: NDArray[np.float32], open_places: NDArray[np.bool_], count: int
    ) -> NDArray[np.int32]:
        """Places of the records nearest to the query, best first, among the open ones."""
        matrix = self.segment.vectors(session, self.seen)
        # It may have places of records that came later.
        more = max(0, self.segment.columns.size - len(open_places))
        return matrix.nearest(query, np.pad(open_places, (0, more)) if more else open_places, count)


@dataclass(frozen=True, slots=True, eq=False)
class WordShares:
    """The share of records that contain each word, from a sample drawn when there were `size` records."""

    size: int
    words: NDArray[np.uint32]
    shares: NDArray[np.float64]

    @classmethod
    def of(cls, size: int, signals: Mapping[int, Signal]) -> WordShares:
        shares = share_of_words(signals)
        return cls(
            size, np.fromiter(shares, np.uint32, len(shares)), np.fromiter(shares.values(), np.float64, len(shares))
        )

    def lookup(self, hashes: Sequence[int]) -> NDArray[np.float64]:
        asked = np.array(hashes, np.uint32)
        if not len(self.words):
            return np.zeros(len(asked), np.float64)
        place = np.minimum(np.searchsorted(self.words, asked), len(self.words) - 1)
        return np.where(self.words[place] == asked, self.shares[place], 0.0)


def share_of_words(signals: Mapping[int, Signal]) -> dict[int, float]:
    """The share of records that contain each word, in the order of the words."""
    if not signals:
        return {}
    words = [
        distinct(np.concatenate([np.frombuffer(terms, np.uint32, len(terms) // 5) for terms, *_ in chunks]))
        for chunks in signals.values()
    ]
    every = np.sort(np.concatenate(words))
    first = np.flatnonzero(np.append(True, every[1:] != every[:-1]))
    counts = np.diff(np.append(first, len(every)))
    return dict(zip(every[first].tolist(), (counts / len(words)).tolist(), strict=True))


# So many of the strongest candidates bring their neighbours along.
WITH_NEIGHBOURS = 24


class ProcessSpace:
    def __init__(self, database: Database, segment: Segment) -> None:
        self.segment = segment
        self.used_at = 0.0
        self._database = database
        self._space_word = space_word(segment.space)
        # The newest record number of the whole store, and until when that is near enough.
        self._newest = (0, 0.0)

    def look_up(
        self, session: Session, scope: Scope, seq: int, hashes: Sequence[int], count: int
    ) -> _ProcessQuery | None:
        """The half of a search that needs no vector: which records are visible, and which contain the words.

        None if the space is empty.
        """
        found = self.segment.snapshot(session, seq)
        if not found.columns.size:
            return None
        open_places = self._open(session, scope, found.columns)
        open_records = int(np.count_nonzero(open_places))
        if open_records <= SMALL:
            return _ProcessQuery(found, scope, open_places, np.flatnonzero(open_places).astype(np.int32), None)
        places, records = self._by_words(session, found, hashes, open_places, open_records, count)
        return _ProcessQuery(found, scope, open_places, places, records)

    def count(self, session: Session, scope: Scope, seq: int) -> int | None:
        """How many records are visible; None if the columns have changes that the transaction does not see."""
        found = self.segment.snapshot(session, seq)
        if found.seq != found.seen:
            return None
        total = int(np.count_nonzero(self._open(session, scope, found.columns)))
        self.segment.release()
        return total

    def _open(self, session: Session, scope: Scope, columns: RecordColumns) -> NDArray[np.bool_]:
        """The places that a query may see. Most filters are answered by the columns, the others by the numbers of the
        records that have the value, which an index gives without reading the records."""
        space = self.segment.space
        if scope.filter is None:
            return columns.open_to(scope.now, np.array(scope.allowed(session, space), np.int64))
        open_places = columns.open_to(scope.now, None, scope.here)
        for condition in scope.filter.conditions:
            passing = columns.passing(condition)
            if passing is None:
                passing = columns.among(self._database.numbers(session, *scope.meeting(condition, space)))
            open_places = open_places & (~passing if condition.negated else passing)
        return open_places

    def _by_words(
        self,
        session: Session,
        found: SegmentSnapshot,
        hashes: Sequence[int],
        open_places: NDArray[np.bool_],
        open_records: int,
        count: int,
    ) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        columns, space = found.columns, self.segment.space
        narrowing = self._narrowing(session, found)

        def look(i: int, most: int) -> WordMatches:
            nums = self._database.text_matches(session, space, index_word(hashes[i]), narrowing, most)
            # Without a narrowing word these include records of other spaces, which do not count here.
            places = columns.places(nums)
            return WordMatches(len(nums), len(places), places[open_places[places]].tolist())

        shares = self.segment.word_share(session, hashes)
        best, records = by_words(shares, columns.size, open_records, look, lambda places: list(places[:count]))
        return np.array(best, np.int32), records

    def _narrowing(self, session: Session, found: SegmentSnapshot) -> list[str]:
        """The space's own word, needed only if most of the store belongs to other spaces."""
        if session.bounds is not None or self._database.distributed:
            # This transaction cannot see how large the store is, or would have to ask every server.
            return [self._space_word]
        newest, until = self._newest
        if time.monotonic() >= until:
            newest = session.rows(everywhere("newest number", "SELECT max(num) FROM memory"))[0][0] or 0
            # A text index that knows no spaces would find too little without the word; elsewhere it saves time.
            self._newest = (newest, time.monotonic() + (_NEWEST_SECONDS if self._database.vector_index else 0.0))
        return [self._space_word] if found.columns.size < newest // 2 else []


@dataclass(frozen=True, slots=True, eq=False)
class _ProcessQuery:
    """The visible places of a segment, and those that were picked; `word_records` is None if all were."""

    found: SegmentSnapshot
    scope: Scope
    open_places: NDArray[np.bool_]
    places: NDArray[np.int32]
    word_records: NDArray[np.float64] | None

    def pick(self, session: Session, query: NDArray[np.float32] | None, count: int) -> SpaceCandidates:
        if self.word_records is None:
            return self._candidates(session, self.places)
        lists = [self.places]
        if query is not None:
            lists.append(self.found.nearest(session, query, self.open_places, count))
        strongest = np.concatenate([places[:WITH_NEIGHBOURS] for places in lists])
        around = np.concatenate(self.found.columns.neighbours(strongest))
        around = around[around >= 0]
        places = distinct(np.concatenate([*lists, around[self.open_places[around]]]))
        found = self._candidates(session, places.astype(np.int32))
        self.found.segment.release()
        return found

    def _candidates(self, session: Session, places: NDArray[np.int32]) -> SpaceCandidates:
        found, columns = self.found, self.found.columns
        places = self._readable(session, places)
        nums = columns.nums[places]
        previous, following = (_index_in(places, beside) for beside in columns.neighbours(places))
        open_records, open_length = columns.total_length(self.open_places)
        return SpaceCandidates(
            found.segment.space,
            nums,
            columns.values("created", places),
            columns.values("length", places),
            columns.values("flags", places),
            columns.values("author", places),
            columns.branches(places),
            previous,
            following,
            columns.nearness(places, self.scope.near),
            open_records,
            open_length,
            self.word_records,
            partial(found.details, places, nums),
        )

    def _readable(self, session: Session, places: NDArray[np.int32]) -> NDArray[np.int32]:
        """Without the records that were purged meanwhile, or written after the transaction began."""
        found = self.found
        nums = found.columns.nums[places]
        readable = nums >= 0
        if found.seq != found.seen:
            late = found.segment.changed_since(found.seen)
            every = nums.tolist()
            asked = every if late is None else [num for num in every if num in late]
            statement = "SELECT num FROM memory WHERE space = ? AND num IN ({})"
            gone = {*asked} - {row[0] for row in rows_among(session, statement, (found.segment.space,), asked)}
            if gone:
                readable &= np.fromiter((num not in gone for num in every), np.bool_, len(every))
        return places if readable.all() else places[readable]


def _index_in(places: NDArray[np.int32], wanted: NDArray[np.int32]) -> NDArray[np.int32]:
    """Where in the sorted places each of the wanted ones is; -1 if it is not among them."""
    if not len(places):
        return wanted
    index = np.minimum(np.searchsorted(places, wanted), len(places) - 1)
    return np.where(places[index] == wanted, index, -1).astype(np.int32)
