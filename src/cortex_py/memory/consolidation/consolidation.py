"""Consolidation: what is said several times becomes one record, and what it came from stays within reach.

Everything is planned before anything is written, by the same code for a preview and for the real run. Groups are then
written one by one, each only if its records are still as they were planned with; a run that was stopped is completed
by another.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from ..clock import Clock, to_micros
from ..embedding.backend import Backend
from ..errors import InvalidInput
from ..ids import IdMaker
from ..records import Memory
from ..store.conditions import Condition, Filter
from ..store.consolidations import Consolidation
from ..store.database import Session
from ..store.rows import Prepared
from ..store.scope import View
from ..store.store import Store
from .annotating import Stored
from .capture import Capture, Progress
from .enrichment import without_context
from .grouping import Pair, complete_groups, near_pairs
from .likeness import difference, judge
from .merging import Piece
from .model import check_model
from .namespaces import NAMESPACES, canonical_namespace
from .place import Place
from .prepare import embed_drafts
from .statements import Statement, read_statement
from .wording import LOCAL, Method, Strategy, Worded, Wording

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["STRATEGIES", "Consolidated", "Consolidator", "Group"]

STRATEGIES: tuple[Strategy, ...] = ("merge", "summarize", "dedupe")

# The least cosine at which two records are looked at more closely. What the discriminator calls the same lies above.
_LEAST: dict[Strategy, float] = {"dedupe": 0.9, "merge": 0.75, "summarize": 0.6}
_SMALLEST: dict[Strategy, int] = {"dedupe": 2, "merge": 2, "summarize": 3}
_WRITTEN_AT_ONCE = 16
_TAGS_MOST = 64
_SOURCE_LENGTH = 2_000

Chosen = Callable[[str, str | None], Sequence[str] | None]


@dataclass(frozen=True, slots=True)
class Group:
    """Records that become one: their ids, the least cosine between two of them, and what they become.

    `result_id` is there once it is written.
    """

    memories: tuple[str, ...]
    similarity: float
    content: str
    method: str
    namespace: str
    result_id: str | None = None


@dataclass(frozen=True, slots=True)
class Consolidated:
    """What a run did, or would do. `skipped` are groups whose records changed meanwhile."""

    groups: tuple[Group, ...]
    strategy: Strategy
    dry_run: bool
    skipped: int = 0
    warnings: tuple[str, ...] = ()
    branches: frozenset[str] = frozenset()


@dataclass(slots=True)
class _Item:
    """A record, or what is to become of several, with its vector; `parts` are the records themselves."""

    memory: Memory
    vector: NDArray[np.float32]
    parts: tuple[Memory, ...]
    worded: Worded | None = None
    likeness: float = 1.0
    _statement: list[Statement] = field(default_factory=list)

    def statement(self) -> Statement:
        if not self._statement:
            self._statement.append(read_statement(without_context(self.memory.content)))
        return self._statement[0]


class Consolidator:
    def __init__(
        self,
        store: Store,
        backend: Backend,
        clock: Clock,
        ids: IdMaker,
        place: Place,
        capture: Capture,
        wording: Wording,
        chosen: Chosen,
    ) -> None:
        """`chosen` gives the ids of the memories that fit a query in a namespace."""
        self._store = store
        self._backend = backend
        self._clock = clock
        self._ids = ids
        self._place = place
        self._capture = capture
        self._wording = wording
        self._chosen = chosen

    def run(
        self,
        namespace: str | None,
        *,
        strategy: Strategy = "merge",
        query: str | None = None,
        dry_run: bool = False,
        method: Method = "auto",
        progress: Progress | None = None,
    ) -> Consolidated:
        """Consolidate a namespace, or each of all; with `dry_run` only tell what would become of what."""
        if strategy not in STRATEGIES:
            raise InvalidInput(
                f"Unknown strategy {strategy[:40]!r}.",
                remedy=f"Choose one of {', '.join(STRATEGIES)}.",
                field="strategy",
            )
        names = [canonical_namespace(namespace)] if namespace is not None else [one.name for one in NAMESPACES]
        if not dry_run:
            self._place.writing("project")
        self._place.arrive()
        spaces = self._place.spaces("read" if dry_run else "write")
        lots = [lot for name in names for lot in self._lots(name, query, strategy, spaces)]
        total = sum(map(len, lots))
        told = _Told(progress, total)
        found = [made for lot in lots for made in self._plan(lot, strategy, method, told)]
        warnings = tuple(dict.fromkeys(one.worded.warning for one in found if one.worded and one.worded.warning))
        if dry_run:
            told.end()
            return Consolidated(tuple(_group(one) for one in found), strategy, True, 0, warnings)
        groups, branches = self._write(found, strategy, told)
        told.end()
        return Consolidated(tuple(groups), strategy, False, len(found) - len(groups), warnings, branches)

    # -- what there is ----------------------------------------------------------------------------

    def _lots(self, namespace: str, query: str | None, strategy: Strategy, spaces: Sequence[str]) -> list[list[_Item]]:
        """The records that may go together, by space and confinement; turns of a conversation stay as they are."""
        now = to_micros(self._clock.now())
        wanted = None if not (query or "").strip() else set(self._chosen(str(query), namespace) or ())
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
                key = (memory.confinement, memory.git_branch if memory.confinement else None)
                apart.setdefault(key, []).append(_Item(memory, vector, (memory,)))
            lots += [lot for lot in apart.values() if len(lot) >= _SMALLEST[strategy]]
        return lots

    # -- what becomes of it -----------------------------------------------------------------------

    def _plan(self, lot: list[_Item], strategy: Strategy, method: Method, told: _Told) -> list[_Item]:
        """What a lot comes to: groups, and groups of what they became, until nothing more goes together."""
        made: list[_Item] = []
        items, fresh, told_to = lot, list(range(len(lot))), [told]
        while True:
            looked = told_to.pop().add if told_to else None
            pairs = near_pairs([one.vector for one in items], fresh, _LEAST[strategy], looked)
            if strategy == "dedupe":
                pairs += _repeats(items)
            groups = [
                group
                for group in complete_groups(pairs, partial(_agree_at, items, strategy))
                if len(group) >= _SMALLEST[strategy]
            ]
            if not groups and len(fresh) == len(items):
                return made
            if not groups:
                # Nothing more comes of the new ones. What is left is looked at as another run would.
                fresh = list(range(len(items)))
                continue
            taken = {number for group in groups for number in group}
            merged = self._merged([[items[number] for number in group] for group in groups], strategy, method)
            made = [one for one in made if all(one is not items[number] for number in taken)] + merged
            # A summary is not summed up again.
            kept = [] if strategy == "summarize" else merged
            items = [one for number, one in enumerate(items) if number not in taken] + kept
            fresh = list(range(len(items) - len(kept), len(items)))

    def _merged(self, groups: Sequence[Sequence[_Item]], strategy: Strategy, method: Method) -> list[_Item]:
        made: list[_Item] = []
        for group in groups:
            parts = tuple(
                sorted((part for one in group for part in one.parts), key=lambda one: (one.created_at, one.id))
            )
            worded = self._wording.of([Piece(part.content, part.created_at) for part in parts], strategy, method)
            # Whoever worded it, and whatever was allowed when the parts were stored.
            memory = self._capture.screened(_heir(parts, worded.content))
            known = next((one for one in group if one.memory.content == memory.content), None)
            vector = known.vector if known is not None else self._vector(memory)
            likeness = min([_least_cosine(group), *(one.likeness for one in group)])
            made.append(_Item(memory, vector, parts, worded, likeness))
        return made

    def _vector(self, memory: Memory) -> NDArray[np.float32]:
        import numpy as np

        space = self._place.space(memory.domain)
        draft = embed_drafts([self._capture.redraft(memory, space)], self._backend)[0]
        mean = np.sum([np.frombuffer(chunk.vector or b"", np.float32) for chunk in draft.chunks], axis=0)
        return np.asarray(mean / max(float(np.linalg.norm(mean)), 1e-9), np.float32)

    # -- writing ----------------------------------------------------------------------------------

    def _write(self, found: Sequence[_Item], strategy: Strategy, told: _Told) -> tuple[list[Group], frozenset[str]]:
        groups: list[Group] = []
        branches: set[str] = set()
        for low in range(0, len(found), _WRITTEN_AT_ONCE):
            batch = found[low : low + _WRITTEN_AT_ONCE]
            drafts = embed_drafts(
                [self._capture.redraft(one.memory, self._place.space(one.memory.domain)) for one in batch],
                self._backend,
            )
            annotator = self._capture.annotator
            notes = [annotator.read(draft.memory) if annotator else None for draft in drafts]
            told.check()
            with self._store.database.write() as session:
                check_model(self._store, session, self._backend, claim=True)
                seq = self._store.memories.next_seq(session)
                fresh: list[Stored] = []
                for item, draft, note in zip(batch, drafts, notes, strict=True):
                    stored = self._replace(session, item, draft, strategy, seq)
                    if stored is not None:
                        fresh.append(Stored(stored[0], draft.space, stored[1], note))
                        groups.append(replace(_group(item), result_id=stored[1].id))
                        branches |= {one.branch_id for one in (*item.parts, stored[1]) if one.branch_id}
                if annotator:
                    annotator.write(session, fresh)
        return groups, frozenset(branches)

    def _replace(
        self, session: Session, item: _Item, draft: Prepared, strategy: Strategy, seq: int
    ) -> tuple[int, Memory] | None:
        """Put one record in the place of several; nothing if one of them is no longer as it was."""
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
        method = item.worded.method if item.worded else LOCAL
        table = self._store.consolidations
        table.add(session, Consolidation(space, self._ids.new(), memory.id, strategy, method, at, None, parts))
        table.replace(session, space, [part_id for part_id, _ in parts], memory.id, at, seq)
        return num, memory


class _Told:
    """Progress in records looked at; whoever is told may stop the run by raising."""

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
    """Neighbouring pairs of texts that are the same but for case, spaces and punctuation, however far their vectors."""
    first: dict[str, int] = {}
    found: list[Pair] = []
    for number, item in enumerate(items):
        before = first.get(item.statement().plain)
        if before is not None and item.statement().plain:
            found.append(Pair(before, number, 1.0))
        first[item.statement().plain] = number
    return found


def _cosine(one: _Item, other: _Item) -> float:
    return float(one.vector @ other.vector)


def _least_cosine(group: Sequence[_Item]) -> float:
    pairs = [(one, other) for n, one in enumerate(group) for other in group[n + 1 :]]
    return min((_cosine(one, other) for one, other in pairs), default=1.0)


def _agree_at(items: Sequence[_Item], strategy: Strategy, left: int, right: int) -> bool:
    return _agree(items[left], items[right], strategy)


def _agree(one: _Item, other: _Item, strategy: Strategy) -> bool:
    if strategy == "summarize":
        return _cosine(one, other) >= _LEAST[strategy]
    if one.memory.content == other.memory.content:
        return True
    mine, others = one.statement(), other.statement()
    if strategy == "dedupe" and not (mine.empty or others.empty):
        # Near-exact: not a telling word more or less.
        plain = mine.plain == others.plain and mine.fences == others.fences
        return plain or (mine.words == others.words and difference(mine, others) is None)
    return judge(mine, others, _cosine(one, other)).same


def _heir(parts: Sequence[Memory], content: str) -> Memory:
    """The record that takes the place of several: what they share, all their tags and sources, the newest date."""
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
        status="active" if any(part.status == "active" for part in parts) else newest.status,
        expires_at=None if None in ends else max(end for end in ends if end),
        accessed_at=None,
        superseded_by=None,
        duplicate_of=None,
        redactions=(),
        grounding=None,
        version=1,
        compressed=False,
    )


def _group(item: _Item) -> Group:
    worded = item.worded or Worded(item.memory.content, LOCAL)
    return Group(
        tuple(part.id for part in item.parts),
        round(item.likeness, 4),
        item.memory.content,
        worded.method,
        item.memory.namespace,
    )
