"""Consolidation: memories that say the same become one, and the originals can be brought back.

A run is planned completely before anything is written, by the same code for a preview and for the real run. The groups
are then written one by one, each only if its records have not changed since. A run that was stopped is completed by
the next. `Hygiene` reports what could be cleaned up, each finding with the command that does it; it changes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Literal

from ...clock import Clock, IdMaker, to_micros
from ...embedding.backends.backend import Backend
from ...errors import InvalidInput
from ...records import Contradiction, Memory
from ...store.database import Session
from ...store.rows import IndexedRecord
from ...store.search.filters import EVERYTHING, Condition, Filter, View
from ...store.store import Store
from ...store.tables.consolidations import Consolidation
from ..capture.capture import Capture, Progress, StoredRecord, embed_records
from ..comparison.conflicts import Judgement, difference
from ..comparison.conflicts import judge as compare
from ..comparison.statements import Statement, read_statement, without_context
from ..recall.filters import is_filter_word
from ..recall.recall import Query, Recall
from ..spaces import NAMESPACES, Place, canonical_namespace, check_model, model_problem, spaces_to_lock
from .merging import LOCAL, MergedText, Method, Piece, Strategy, TextMerger
from .pair_judge import PairJudge

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = [
    "STRATEGIES", "ConsolidationResult", "Consolidator", "Hygiene", "HygieneFinding", "Pair", "complete_groups",
    "near_pairs",
]  # fmt: skip


STRATEGIES: tuple[Strategy, ...] = ("merge", "summarize", "dedupe")

# The least cosine at which two records are compared. Records that say the same are above it.
_LEAST: dict[Strategy, float] = {"dedupe": 0.9, "merge": 0.75, "summarize": 0.57}
_SMALLEST: dict[Strategy, int] = {"dedupe": 2, "merge": 2, "summarize": 3}
_WRITTEN_AT_ONCE = 16
_TAGS_MOST = 64
_SOURCE_LENGTH = 2_000
# The least score at which a memory fits the words of a query.
_LEAST_SCORE = 0.2
# A filter value in quotes may contain spaces.
_QUERY_WORD = re.compile(r"""(?:[^\s"]|"(?:[^"\\]|\\.)*")+|\S+""")
_NEAREST = 12
_ROWS = 512


@dataclass(frozen=True, slots=True)
class MergeGroup:
    """Records that become one: their ids, the least cosine between two of them, and the new content.

    `result_id` is set once the result is written.
    """

    memories: tuple[str, ...]
    similarity: float
    content: str
    method: str
    namespace: str
    result_id: str | None = None


@dataclass(frozen=True, slots=True)
class ConsolidationResult:
    """What a run did or would do. `skipped` counts groups whose records changed since the plan."""

    groups: tuple[MergeGroup, ...]
    strategy: Strategy
    dry_run: bool
    skipped: int = 0
    warnings: tuple[str, ...] = ()
    branches: frozenset[str] = frozenset()


@dataclass
class _Item:
    """A record, or the planned result of merging several (`parts`), with its vector."""

    memory: Memory
    vector: NDArray[np.float32]
    parts: tuple[Memory, ...]
    merged: MergedText | None = None
    likeness: float = 1.0

    @cached_property
    def statement(self) -> Statement:
        return read_statement(without_context(self.memory.content))


class Consolidator:
    def __init__(
        self,
        store: Store,
        backend: Backend,
        clock: Clock,
        ids: IdMaker,
        place: Place,
        capture: Capture,
        recall: Recall,
        merger: TextMerger,
    ) -> None:
        self._store = store
        self._backend = backend
        self._clock = clock
        self._ids = ids
        self._place = place
        self._capture = capture
        self._recall = recall
        self._merger = merger

    def run(
        self,
        namespace: str | None,
        *,
        strategy: Strategy = "merge",
        query: str | None = None,
        dry_run: bool = False,
        method: Method = "auto",
        progress: Progress | None = None,
    ) -> ConsolidationResult:
        """Consolidate one namespace or each of them; with `dry_run`, only plan."""
        if strategy not in STRATEGIES:
            raise InvalidInput(
                f"Unknown strategy {strategy[:40]!r}.",
                remedy=f"Choose one of {', '.join(STRATEGIES)}.",
                field="strategy",
            )
        names = [canonical_namespace(namespace)] if namespace is not None else [one.name for one in NAMESPACES]
        judge = PairJudge(self._merger.choose(method), needed=method == "llm")
        if not dry_run:
            self._place.writable_space("project")
        self._place.sync_git_state()
        spaces = self._place.spaces("read" if dry_run else "write")
        lots = [lot for name in names for lot in self._lots(name, query, strategy, spaces)]
        total = sum(map(len, lots))
        reporter = _ProgressReporter(progress, total)
        found = [made for lot in lots for made in self._plan(lot, strategy, method, judge, reporter)]
        notes = (judge.warning, *(one.merged.warning for one in found if one.merged))
        warnings = tuple(dict.fromkeys(note for note in notes if note))
        if problem := model_problem(self._backend):
            warnings = (f"Memories were not compared by meaning: {problem}", *warnings)
        if dry_run:
            reporter.end()
            return ConsolidationResult(tuple(_group(one) for one in found), strategy, True, 0, warnings)
        groups, branches = self._write(found, strategy, reporter)
        reporter.end()
        return ConsolidationResult(tuple(groups), strategy, False, len(found) - len(groups), warnings, branches)

    # -- selection --------------------------------------------------------------------------------

    def _lots(self, namespace: str, query: str | None, strategy: Strategy, spaces: Sequence[str]) -> list[list[_Item]]:
        """The records that may be merged with each other, by space, confinement and status, without turns of
        conversations."""
        now = to_micros(self._clock.now())
        wanted = set(self._select(query, namespace)) if query and query.strip() else None
        lots: list[list[_Item]] = []
        for space in spaces:
            with self._store.database.read() as session:
                check_model(self._store, session, self._backend)
                view = View((space,), now, self._place.git_branch())
                filter = Filter((Condition("namespace", (namespace,)),))
                nums = self._store.scope(session, filter, view).allowed(session, space)
                memories = self._store.memories.fetch(session, nums, (space,))
                kept = [num for num in nums if (one := memories.get(num)) and one.role is None]
                if wanted is not None:
                    kept = [num for num in kept if memories[num].id in wanted]
                if strategy == "summarize":
                    made = self._store.consolidations.summaries(session, space)
                    kept = [num for num in kept if memories[num].id not in made]
                kept.sort()
                vectors = self._store.vectors(session, (space,), kept)
            apart: dict[object, list[_Item]] = {}
            for num, vector in zip(kept, vectors, strict=True):
                memory = memories[num]
                # What nobody reviewed would come into a result that hooks give.
                key = (memory.confinement, memory.git_branch if memory.confinement else None, memory.status)
                apart.setdefault(key, []).append(_Item(memory, vector, (memory,)))
            lots += [lot for lot in apart.values() if len(lot) >= _SMALLEST[strategy]]
        return lots

    def _select(self, query: str, namespace: str) -> list[str]:
        """Ids of the memories that fit a query, which consists of words to search for and filter words."""
        words = _QUERY_WORD.findall(query)
        filters = [word for word in words if is_filter_word(word)]
        text = " ".join(word for word in words if word not in filters)
        found: list[str] = []
        while True:
            page = self._recall.run(
                Query(
                    text=text or None,
                    filter=" ".join(filters),
                    namespace=namespace,
                    limit=1_000,
                    offset=len(found),
                    min_score=_LEAST_SCORE if text else 0.0,
                )
            )
            found += [hit.memory.id for hit in page.results]
            if not page.results or len(found) >= page.total:
                return found

    # -- planning ---------------------------------------------------------------------------------

    def _plan(
        self, lot: list[_Item], strategy: Strategy, method: Method, judge: PairJudge, reporter: _ProgressReporter
    ) -> list[_Item]:
        """Merge groups, and groups of the results, until no more records agree."""
        made: list[_Item] = []
        items, fresh = lot, list(range(len(lot)))
        report: Callable[[int], None] | None = reporter.add
        while True:
            pairs = near_pairs([one.vector for one in items], fresh, _LEAST[strategy], report)
            report = None
            if strategy == "dedupe":
                pairs += _repeats(items)
            if strategy == "merge" and judge.active:
                judge.ask(_compared(items, pairs))
            groups = [
                group
                for group in complete_groups(pairs, partial(_agree, items, strategy, judge))
                if len(group) >= _SMALLEST[strategy]
            ]
            if not groups and len(fresh) == len(items):
                return made
            if not groups:
                # The new ones form no more groups. Compare all that is left once more, as another run would.
                fresh = list(range(len(items)))
                continue
            taken = {number for group in groups for number in group}
            merged = self._merge([[items[number] for number in group] for group in groups], strategy, method)
            made = [one for one in made if all(one is not items[number] for number in taken)] + merged
            # A summary is not summarised again.
            kept = [] if strategy == "summarize" else merged
            items = [one for number, one in enumerate(items) if number not in taken] + kept
            fresh = list(range(len(items) - len(kept), len(items)))

    def _merge(self, groups: Sequence[Sequence[_Item]], strategy: Strategy, method: Method) -> list[_Item]:
        made: list[_Item] = []
        for group in groups:
            parts = tuple(
                sorted((part for one in group for part in one.parts), key=lambda one: (one.created_at, one.id))
            )
            merged = self._merger.merge([Piece(part.content, part.created_at) for part in parts], strategy, method)
            # Screened again: a model may have written it, and the policy may have become stricter.
            memory = self._capture.screen(_heir(parts, merged.content))
            known = next((one for one in group if one.memory.content == memory.content), None)
            vector = known.vector if known is not None else self._vector(memory)
            likeness = min([_least_cosine(group), *(one.likeness for one in group)])
            made.append(_Item(memory, vector, parts, merged, likeness))
        return made

    def _vector(self, memory: Memory) -> NDArray[np.float32]:
        import numpy as np

        space = self._place.space(memory.domain)
        draft = embed_records([self._capture.index(memory, space)], self._backend)[0]
        mean = np.sum([np.frombuffer(chunk.vector or b"", np.float32) for chunk in draft.chunks], axis=0)
        return np.asarray(mean / max(float(np.linalg.norm(mean)), 1e-9), np.float32)

    # -- writing ----------------------------------------------------------------------------------

    def _write(
        self, found: Sequence[_Item], strategy: Strategy, reporter: _ProgressReporter
    ) -> tuple[list[MergeGroup], frozenset[str]]:
        groups: list[MergeGroup] = []
        branches: set[str] = set()
        for low in range(0, len(found), _WRITTEN_AT_ONCE):
            batch = found[low : low + _WRITTEN_AT_ONCE]
            drafts = embed_records(
                [self._capture.index(one.memory, self._place.space(one.memory.domain)) for one in batch], self._backend
            )
            annotator = self._capture.annotator
            both = [self._capture.annotate(draft) for draft in drafts]
            reporter.check()
            with self._store.database.write(*spaces_to_lock(self._store, self._backend, drafts)) as session:
                check_model(self._store, session, self._backend, claim=True)
                seqs = self._store.memories.next_seqs(session, [draft.space for draft in drafts])
                fresh: list[StoredRecord] = []
                for item, (draft, note) in zip(batch, both, strict=True):
                    stored = self._replace(session, item, draft, strategy, seqs[draft.space])
                    if stored is not None:
                        fresh.append(StoredRecord(stored[0], draft.space, stored[1], note))
                        groups.append(replace(_group(item), result_id=stored[1].id))
                        branches |= {one.branch_id for one in (*item.parts, stored[1]) if one.branch_id}
                if annotator:
                    annotator.write(session, fresh)
        return groups, frozenset(branches)

    def _replace(
        self, session: Session, item: _Item, draft: IndexedRecord, strategy: Strategy, seq: int
    ) -> tuple[int, Memory] | None:
        """Replace several records by one; None if one of them has changed."""
        space, now = draft.space, self._clock.now()
        for part in item.parts:
            there = self._store.memories.get(session, space, part.id)
            if there is None or (there.version, there.status) != (part.version, part.status):
                return None
        memory = replace(draft.memory, id=self._ids.new(), updated_at=now)
        draft = replace(draft, memory=memory)
        num = self._store.memories.insert(session, draft, seq)
        parts = tuple((part.id, part.status) for part in item.parts)
        at = to_micros(now)
        method = item.merged.method if item.merged else LOCAL
        table = self._store.consolidations
        table.add(session, Consolidation(space, self._ids.new(), memory.id, strategy, method, at, None, parts))
        table.replace(session, space, [part_id for part_id, _ in parts], memory.id, at, seq)
        return num, memory


class _ProgressReporter:
    """Reports progress in records compared; the callback may raise to stop the run."""

    def __init__(self, progress: Progress | None, total: int) -> None:
        self._progress = progress
        self._total = max(total, 1) + 1
        self._done = 0

    def add(self, count: int) -> None:
        self._done += count
        self.check()

    def check(self) -> None:
        if self._progress:
            self._progress(min(self._done, self._total - 1), self._total)

    def end(self) -> None:
        if self._progress:
            self._progress(self._total, self._total)


def _repeats(items: Sequence[_Item]) -> list[Pair]:
    """Pairs of texts that differ only in case, spaces and punctuation, whatever their cosine."""
    first: dict[str, int] = {}
    found: list[Pair] = []
    for number, item in enumerate(items):
        before = first.get(item.statement.plain)
        if before is not None and item.statement.plain:
            found.append(Pair(before, number, 1.0))
        first[item.statement.plain] = number
    return found


def _cosine(one: _Item, other: _Item) -> float:
    return float(one.vector @ other.vector)


def _least_cosine(group: Sequence[_Item]) -> float:
    pairs = [(one, other) for n, one in enumerate(group) for other in group[n + 1 :]]
    return min((_cosine(one, other) for one, other in pairs), default=1.0)


def _compared(items: Sequence[_Item], pairs: Iterable[Pair]) -> Iterator[tuple[str, str, Judgement]]:
    """The texts of pairs, each with the local judgement."""
    for pair in pairs:
        one, other = items[pair.left], items[pair.right]
        found = compare(one.statement, other.statement, _cosine(one, other))
        yield one.memory.content, other.memory.content, found


def _agree(items: Sequence[_Item], strategy: Strategy, judge: PairJudge, left: int, right: int) -> bool:
    one, other = items[left], items[right]
    if strategy == "summarize":
        return _cosine(one, other) >= _LEAST[strategy]
    if one.memory.content == other.memory.content:
        return True
    mine, others = one.statement, other.statement
    if strategy == "dedupe" and not (mine.empty or others.empty):
        # Nearly identical: not a word of weight more or less.
        plain = mine.plain == others.plain and mine.fences == others.fences
        return plain or (mine.words == others.words and difference(mine, others) is None)
    said = judge.verdict(one.memory.content, other.memory.content)
    return compare(mine, others, _cosine(one, other)).same if said is None else said


def _heir(parts: Sequence[Memory], content: str) -> Memory:
    """The record that replaces several: the fields they share, all their tags and sources, the newest date."""
    newest = parts[-1]

    def shared(name: str) -> Any:
        values = {getattr(part, name) for part in parts}
        return values.pop() if len(values) == 1 else None

    tags: dict[str, str] = {}
    for tag in (tag for part in parts for tag in part.tags):
        tags.setdefault(tag.casefold(), tag)
    sources = list(dict.fromkeys(part.source for part in parts if part.source))
    ends = [part.expires_at for part in parts]
    return replace(
        newest,
        content=content,
        summary=None,
        tags=tuple(tags.values())[:_TAGS_MOST],
        source=sources[0] if len(sources) == 1 else "; ".join(sources)[:_SOURCE_LENGTH] or None,
        path=shared("path"),
        branch_id=shared("branch_id"),
        git_branch=shared("git_branch"),
        category=shared("category"),
        user_id=shared("user_id"),
        agent_id=shared("agent_id"),
        expires_at=None if None in ends else max(end for end in ends if end),
        accessed_at=None,
        superseded_by=None,
        duplicate_of=None,
        redactions=(),
        grounding=None,
        version=1,
        compressed=False,
    )


def _group(item: _Item) -> MergeGroup:
    method = item.merged.method if item.merged else LOCAL
    ids = tuple(part.id for part in item.parts)
    return MergeGroup(ids, round(item.likeness, 4), item.memory.content, method, item.memory.namespace)


# -- grouping -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Pair:
    """Two records by number, and how similar they are."""

    left: int
    right: int
    likeness: float


def complete_groups(pairs: Iterable[Pair], agree: Callable[[int, int], bool]) -> list[tuple[int, ...]]:
    """Groups of two or more in which every record agrees with every other (complete linkage).

    The most similar pairs are joined first, and no record is in two groups. `agree` is called once for a pair. The
    result does not depend on the order of the pairs.
    """
    asked: dict[tuple[int, int], bool] = {}

    def agreed(left: int, right: int) -> bool:
        key = (left, right) if left < right else (right, left)
        if key not in asked:
            asked[key] = agree(*key)
        return asked[key]

    members: dict[int, list[int]] = {}
    group_of: dict[int, int] = {}
    for pair in sorted(pairs, key=_pair_order):
        left, right = (group_of.setdefault(number, number) for number in (pair.left, pair.right))
        if left == right:
            continue
        here, there = members.setdefault(left, [left]), members.setdefault(right, [right])
        if all(agreed(one, other) for one in here for other in there):
            here += there
            group_of.update(dict.fromkeys(there, left))
            del members[right]
    return sorted(tuple(sorted(group)) for group in members.values() if len(group) > 1)


def _pair_order(pair: Pair) -> tuple[float, int, int]:
    return -pair.likeness, min(pair.left, pair.right), max(pair.left, pair.right)


def near_pairs(
    vectors: Sequence[NDArray[np.float32]],
    fresh: Sequence[int],
    least: float,
    report: Callable[[int], None] | None = None,
) -> list[Pair]:
    """Pairs of near records, at least one of them fresh. Each record is paired with its nearest only: among many
    similar records there would be too many pairs.

    `report` is called with the number of records compared since the last call.
    """
    import numpy as np

    matrix = np.stack(vectors) if vectors else np.empty((0, 1), np.float32)
    found: dict[tuple[int, int], float] = {}
    for low in range(0, len(fresh), _ROWS):
        rows = np.asarray(fresh[low : low + _ROWS])
        likeness = matrix[rows] @ matrix.T
        likeness[np.arange(len(rows)), rows] = -1.0
        # Few are near enough; ordering all of the others would take most of the time.
        for row, near in enumerate(map(np.flatnonzero, likeness >= least)):
            if len(near) > _NEAREST:
                near = near[np.argpartition(-likeness[row, near], _NEAREST - 1)[:_NEAREST]]
            number = int(rows[row])
            for column in near.tolist():
                pair = (number, column) if number < column else (column, number)
                found[pair] = float(likeness[row, column])
        if report:
            report(len(rows))
    return [Pair(left, right, likeness) for (left, right), likeness in found.items()]


FindingKind = Literal["duplicate", "contradicted", "stale", "never-recalled", "oversized"]

_STALE = timedelta(days=180)
_UNSEEN = timedelta(days=60)
_OVERSIZED = 20_000
# Only the newest are checked for contradictions: each costs a search.
_CHECKED = 200
_MOST = 50  # findings of each kind
_NEVER = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class HygieneFinding:
    """Memories with a problem, the reason, and the command that fixes it."""

    trouble: FindingKind
    memories: tuple[str, ...]
    reason: str
    remedy: str


class Hygiene:
    def __init__(
        self,
        store: Store,
        clock: Clock,
        place: Place,
        consolidator: Consolidator,
        find_conflicts: Callable[[Memory], Sequence[Contradiction]],
    ) -> None:
        self._store = store
        self._clock = clock
        self._place = place
        self._consolidator = consolidator
        self._find_conflicts = find_conflicts

    def report(self) -> list[HygieneFinding]:
        """All findings, at most fifty of each kind, newest memories first."""
        self._place.sync_git_state()
        memories = self._memories()
        recalled = self._recalled(memories)
        return [
            *self._duplicates(),
            *self._contradicted(memories),
            *self._stale(memories, recalled),
            *self._never_recalled(memories, recalled),
            *self._oversized(memories),
        ]

    def _memories(self) -> list[Memory]:
        now = to_micros(self._clock.now())
        with self._store.database.read() as session:
            where = self._store.scope(session, EVERYTHING, self._place.view(now)).where
            return self._store.memories.list_page(session, where, 1_000_000, 0)

    def _recalled(self, memories: list[Memory]) -> dict[str, int]:
        with self._store.database.read() as session:
            return self._store.recalls.last(session, self._place.spaces(), [one.id for one in memories])

    def _duplicates(self) -> list[HygieneFinding]:
        found: list[HygieneFinding] = []
        strategies: tuple[Strategy, ...] = ("dedupe", "merge")
        for strategy in strategies:
            for group in self._consolidator.run(None, strategy=strategy, dry_run=True, method="local").groups[:_MOST]:
                command = f"cortex consolidate {group.namespace} --strategy {strategy}"
                reason = f"{len(group.memories)} memories say the same ({group.similarity:.2f})"
                if not any(set(group.memories) <= set(one.memories) for one in found):
                    found.append(HygieneFinding("duplicate", group.memories, reason, command))
        return found[:_MOST]

    def _contradicted(self, memories: list[Memory]) -> list[HygieneFinding]:
        found: list[HygieneFinding] = []
        order = {one.id: (one.created_at, one.id) for one in memories}
        for memory in memories[:_CHECKED]:
            for other in self._find_conflicts(memory):
                if other.memory_id in order and order[other.memory_id] < order[memory.id]:
                    command = f"cortex supersede {other.memory_id[:12]} {memory.id[:12]}"
                    found.append(HygieneFinding("contradicted", (other.memory_id, memory.id), other.reason, command))
        return found[:_MOST]

    def _stale(self, memories: list[Memory], recalled: dict[str, int]) -> list[HygieneFinding]:
        before = self._clock.now() - _STALE
        used = {one.id: max(recalled.get(one.id, 0), to_micros(one.accessed_at or _NEVER)) for one in memories}
        return [
            _archive(
                "stale", one, f"unchanged since {one.updated_at.date().isoformat()} and not recalled for half a year"
            )
            for one in memories
            if one.updated_at < before and 0 < used[one.id] < to_micros(before)
        ][:_MOST]

    def _never_recalled(self, memories: list[Memory], recalled: dict[str, int]) -> list[HygieneFinding]:
        before = self._clock.now() - _UNSEEN
        since = "and never recalled since recalls are counted"
        return [
            _archive("never-recalled", one, f"stored {one.created_at.date().isoformat()} {since}")
            for one in memories
            if one.created_at < before and one.id not in recalled and one.accessed_at is None
        ][:_MOST]

    def _oversized(self, memories: list[Memory]) -> list[HygieneFinding]:
        found = [one for one in memories if len(one.content) > _OVERSIZED]
        reason = "{:,} characters; small memories are found better"
        return [
            HygieneFinding("oversized", (one.id,), reason.format(len(one.content)), f"cortex get {one.id[:12]} --json")
            for one in found[:_MOST]
        ]


def _archive(trouble: FindingKind, memory: Memory, reason: str) -> HygieneFinding:
    return HygieneFinding(trouble, (memory.id,), reason, f"cortex update {memory.id[:12]} --status archived")
