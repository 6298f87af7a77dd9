"""Recall: run a query against the store and return one page of results.

NumPy and the ranking model are imported when the first query with a text runs, which keeps start-up short.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from contextvars import copy_context
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import TYPE_CHECKING, NamedTuple, Protocol

from ...clock import Clock, check_deadline, to_micros
from ...config import Fusion
from ...embedding.backends.backend import Backend
from ...embedding.cache import VectorCache, cache_key
from ...errors import EmbeddingError, InvalidInput, LimitExceeded, StoreReadOnly
from ...jobs import ForkLock, Pool, renew_in_forks
from ...records import KINDS, MODES, Domain, Hit, Kind, Memory, Mode, Page, Signals
from ...security.permission import permitted_spaces
from ...store.database import Session
from ...store.rows import term_hash
from ...store.search.filters import Condition, Filter, View
from ...store.store import Store
from ..labels.ontology import canonical_category
from ..spaces import (
    Place,
    canonical_domain,
    canonical_namespace,
    moving_spaces,
    outlined_spaces,
    report_moving,
    report_words_only,
)
from ..text import ABOUT_ONE_MATTER, Chunk, leading_query_terms, snippet, terms
from .filters import ParsedFilter, parse_filter

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ...store.search.candidates import CandidateSet
    from ...store.search.filters import Scope
    from .ranking import QuerySignals, Scores

    Places = NDArray[np.int64]

__all__ = ["Query", "Recall", "RecallCounter"]


# One of these is in every text that `given_up` reads as giving something up.
_CUE_WORDS = "longer anymore more instead place switched moved migrated changed replaced"
# How many of the best results are compared with newer ones beyond those that are shown, and with how many of these.
_BEYOND = 32
_MOST_PAIRS = 200


class Replacement(NamedTuple):
    """The places of two candidates among all, and the id of the newer."""

    older: int
    newer: int
    newer_id: str


def newest_of_each(store: Store, session: Session, found: CandidateSet, order: Places, spaces: Sequence[str]) -> Places:
    """The candidates without those that repeat the text of another of the same line of work.

    The newest is kept, and rather one that somebody reviewed.
    """
    import numpy as np

    details = found.details
    record = details.chunk_record[details.term_chunk]
    # Equal for equal texts, and for few others.
    bag = np.bincount(record, details.term_hash.astype(np.float64) * details.term_count, details.size)
    ordered = np.sort(bag[order])
    if not (ordered[1:] == ordered[:-1]).any():
        return order
    _, inverse, counts = np.unique(bag[order], return_inverse=True, return_counts=True)
    perhaps = order[counts[inverse] > 1]
    texts = store.memories.digests(session, details.nums[perhaps].tolist(), spaces)
    kept: dict[tuple[str, bytes, int], tuple[bool, int, int]] = {}
    known = {}
    for place in perhaps.tolist():
        if text := texts.get(int(details.nums[place])):
            space, digest, status = text
            known[place] = key = space, digest, int(found.branch[place])
            kept[key] = max(kept.get(key, (False, 0, 0)), (status != "pending", int(found.created[place]), place))
    dropped = {place for place, key in known.items() if kept[key][2] != place}
    return order[[place not in dropped for place in order.tolist()]] if dropped else order


def replacements(
    store: Store, session: Session, found: CandidateSet, order: Places, most: int, spaces: Sequence[str]
) -> list[Replacement]:
    """For the best results, the newer candidates that have given up what they state; the newest last."""
    import numpy as np

    details = found.details
    shown = order[:most]
    known = _superseded(store, session, found, shown, order[: most + _BEYOND], spaces)
    record = details.chunk_record[details.term_chunk]
    cues = _cues()
    near = cues[np.minimum(np.searchsorted(cues, details.term_hash), len(cues) - 1)]
    telling = np.flatnonzero(np.bincount(record[near == details.term_hash], minlength=details.size))
    if not len(shown) or not (len(telling) or known):
        return []
    starts = np.searchsorted(details.chunk_record, np.arange(details.size))
    likeness = details.vectors[starts[telling]] @ details.vectors[starts[shown]].T
    likely = (likeness >= ABOUT_ONE_MATTER) & (found.created[telling][:, None] > found.created[shown])
    pairs = {(int(shown[j]), int(telling[i])) for i, j in np.argwhere(likely)[:_MOST_PAIRS]}
    pairs |= {pair for pair in known if found.created[pair[1]] > found.created[pair[0]]}
    if not pairs:
        return []
    # Imported on first use: few queries find two such notes.
    from ..comparison.conflicts import replacement

    nums = {place: int(details.nums[place]) for pair in pairs for place in pair}
    memories = store.memories.fetch(session, list(nums.values()), spaces)
    made = []
    for older, newer in pairs:
        old, new = memories.get(nums[older]), memories.get(nums[newer])
        if old and new:
            cosine = float(details.vectors[starts[older]] @ details.vectors[starts[newer]])
            gone = [old.content[first:past] for first, past in known.get((older, newer), ())]
            if cosine >= ABOUT_ONE_MATTER and replacement(old, new, gone):
                made.append(Replacement(older, newer, new.id))
    return sorted(made, key=lambda one: _age(found, one.newer))


def _superseded(
    store: Store, session: Session, found: CandidateSet, shown: Places, best: Places, spaces: Sequence[str]
) -> dict[tuple[int, int], list[tuple[int, int]]]:
    """Candidates of which the graph knows that one names what the other's thing superseded, with where it does so."""
    place = {int(found.details.nums[one]): int(one) for one in best}
    nums = [int(found.details.nums[one]) for one in shown]
    known: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for space in spaces:
        for older, first, past, newer in store.graph.superseding(session, space, nums, list(place)):
            known.setdefault((place[older], place[newer]), []).append((first, past))
    return known


def _age(found: CandidateSet, place: int) -> tuple[int, int]:
    return int(found.created[place]), int(found.details.nums[place])


@cache
def _cues() -> NDArray[np.uint32]:
    import numpy as np

    return np.sort(np.array([term_hash(term) for term in terms(_CUE_WORDS)], np.uint32))


logger = logging.getLogger(__name__)


LONGEST_QUERY = 100_000  # characters
_SNIPPET = 200  # characters
_CANDIDATES = 32
_LIMIT_MOST = 1_000
_OFFSET_MOST = 1_000_000_000
_LIST_LIMIT = 50
_SEARCH_LIMIT = 10
# A part of a file or conversation counts less than what somebody wrote down. Set by hand, like the next two.
_WEIGHTS: dict[Kind, float] = {"note": 1.0, "file": 0.6, "turn": 0.5}
# What a record of the current line of work, or of one of its ancestors, gains in log odds.
_CURRENT, _ANCESTOR = 0.5, 0.25
_GENERATIONS = 16
_EMBEDDER = Pool(4, "cortex-embed")
# A score is the calibrated share of such results that are right: 0.0048 of those below this were on LoCoMo, 0.0049 in
# small stores of notes. It rounds to 0.00.
_NEGLIGIBLE = 0.005
_NO_FILTER = ParsedFilter(Filter(()), ())
_QUERY_VECTORS_BYTES = 1 << 20  # about 500 queries


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """What to recall. Without a text, the newest records are listed. A limit of None means the default."""

    text: str | None = None
    filter: str = ""
    namespace: str | None = None
    mode: Mode = "hybrid"
    limit: int | None = None
    offset: int = 0
    min_score: float | None = None  # None: the least score that says anything
    user_id: str | None = None
    agent_id: str | None = None
    category: str | None = None
    domain: Domain | None = None
    fusion: Fusion = "learned"
    prefer_newer: bool = False
    # Whether conversations are searched where the filter names no kind.
    with_turns: bool = True


class _Pending(Protocol):
    """A vector that is being computed, or will be when it is asked for."""

    def result(self) -> NDArray[np.float32]: ...


class _Here:
    """Computes a vector in the thread that needs it, when it does."""

    def __init__(self, compute: Callable[[], NDArray[np.float32]]) -> None:
        self._compute = compute
        self._done: NDArray[np.float32] | None = None

    def result(self) -> NDArray[np.float32]:
        if self._done is None:
            self._done = self._compute()
        return self._done


class Recall:
    def __init__(self, store: Store, backend: Backend, clock: Clock, place: Place) -> None:
        self._store = store
        self._backend = backend
        self._clock = clock
        self._place = place
        self._vectors = VectorCache(_QUERY_VECTORS_BYTES)  # of queries: several are often asked again
        self.renew()
        renew_in_forks(self)

    def renew(self) -> None:
        self._lock = threading.Lock()
        self._running = 0

    def run(self, query: Query) -> Page:
        with self._lock:
            self._running += 1
        try:
            return self._run(query)
        finally:
            with self._lock:
                self._running -= 1

    def _run(self, query: Query) -> Page:
        limit = _check_limit(query)
        _check_length(query.text)
        if query.mode not in MODES:
            raise InvalidInput(
                f"Unknown mode {query.mode!r}.", remedy=f"Choose one of {', '.join(MODES)}.", field="mode"
            )
        now = self._clock.now()
        parsed = parse_filter(query.filter, now=now) if query.filter else _NO_FILTER
        filter, kinds = _split_kinds(_with_arguments(parsed.filter, query))
        text = (query.text or "").strip()
        self._place.sync_git_state()
        views = self._views(query, kinds or _default_kinds(query, text), to_micros(now))
        if not text:
            with self._store.database.read(behind=True) as session:
                return self._list(session, filter, views, limit, query.offset, parsed.warnings)
        vector, problem = None, None
        if query.mode != "text":
            try:
                vector = self._embed(text)
            except EmbeddingError as error:
                problem = error
        with self._store.database.read(behind=True) as session:
            moving = self._moving(session, views) if vector is not None else frozenset()
            outlined = outlined_spaces(self._store, session) & moving if moving else moving
            seen = {space for view in views for space in view.spaces}
            note = report_moving(self._backend) if seen & (moving - outlined) else None
            partly = report_moving(self._backend, outlined=True) if seen & outlined else None
            warnings = (*parsed.warnings, *(one for one in (note, partly) if one))
            near = self._near(session, views[0].here)
            # What nobody has written to has no results. A filter may name other projects.
            if not filter.having("project"):
                changes = self._changes(session, views)
                views = [view for view in views if any(map(changes.get, view.spaces))]
            scopes = [self._store.scope(session, filter, replace(view, near=near)) for view in views]
            if filter.having("project"):
                changes = self._changes(session, scopes)
                scopes = [scope for scope in scopes if any(map(changes.get, scope.spaces))]
            if problem is None:
                try:
                    hits, total = self._search(session, scopes, query, text, vector, limit, changes, moving, outlined)
                    return Page(hits, total, warnings, words_only=note)
                except EmbeddingError as error:
                    # An endpoint that is away is noticed only here, when the vector is needed.
                    problem = error
            check_deadline()  # the endpoint may have taken all the time of the call
            note = report_words_only(problem)
            by_words = replace(query, mode="text")
            hits, total = self._search(session, scopes, by_words, text, None, limit, changes, frozenset())
            return Page(hits, total, (*parsed.warnings, note), words_only=note)

    def _changes(self, session: Session, parts: Sequence[View | Scope]) -> dict[str, int]:
        """The last change of each space of these; 0 where there was none."""
        return self._store.search.changes(session, [space for one in parts for space in one.spaces])

    def _moving(self, session: Session, views: Sequence[View]) -> frozenset[str]:
        """Spaces that have no vectors to compare with, for now."""
        return moving_spaces(self._store, session, self._backend, [space for view in views for space in view.spaces])

    def _views(self, query: Query, kinds: Sequence[Kind], now: int) -> list[View]:
        """One view for each kind of record, searched separately: others must not affect the scores of notes."""
        place, here = self._place, self._place.git_branch()
        domain = None if query.domain is None else canonical_domain(query.domain)
        notes = place.spaces() if domain is None else permitted_spaces((place.space(domain),))
        spaces: dict[Kind, tuple[str, ...]] = {"note": notes}
        for kind in KINDS[1:]:
            spaces[kind] = permitted_spaces((place.space("project", kind),)) if domain in (None, "project") else ()
        wanted = [kind for kind in kinds if spaces[kind]] or kinds[:1]
        return [View(spaces[kind], now, here, kind=kind) for kind in wanted]

    def _near(self, session: Session, here: str | None) -> dict[str, float]:
        """The current line of work and its ancestors, each with the log odds that its records gain."""
        project = self._place.project.id
        branch = self._store.branches.linked_to(session, project, here) if here else None
        near: dict[str, float] = {}
        while branch and branch.id not in near and len(near) < _GENERATIONS:
            near[branch.id] = _ANCESTOR if near else _CURRENT
            branch = self._store.branches.get(session, project, branch.parent_id) if branch.parent_id else None
        return near

    def _embed(self, text: str) -> _Pending:
        """Start computing the query's vector, or loading the model for it, while the words are looked up."""
        asked = _encodable(text)
        key = cache_key("", True, asked)
        if known := self._vectors.get_many([key]):
            done: Future[NDArray[np.float32]] = Future()
            done.set_result(known[key])
            return done
        if self._running > 1:
            # Others have the cores: a second thread for this call would only wait for them.
            return _Here(lambda: self._embed_new(key, asked))
        # With the context: an endpoint is not waited for longer than the call may take.
        return _EMBEDDER.submit(partial(copy_context().run, self._embed_new, key, asked))

    def _embed_new(self, key: bytes, text: str) -> NDArray[np.float32]:
        vector: NDArray[np.float32] = self._backend.embed([text])[0]
        self._vectors.put_many({key: vector})
        return vector

    def _list(
        self,
        session: Session,
        filter: Filter,
        views: Sequence[View],
        limit: int,
        offset: int,
        warnings: tuple[str, ...],
    ) -> Page:
        table = self._store.memories
        scopes = [self._store.scope(session, filter, view) for view in views]
        wheres = [scope.where for scope in scopes]
        total = sum(self._store.count(session, scope) for scope in scopes)
        if len(wheres) == 1:
            memories = table.list_page(session, wheres[0], limit, offset)
        else:
            heads = [one for where in wheres for one in table.list_page(session, where, offset + limit, 0)]
            memories = sorted(heads, key=lambda one: (one.created_at, one.id), reverse=True)[offset : offset + limit]
        hits = tuple(
            Hit(
                memory,
                0.0,
                0.0,
                partial(snippet, memory.content, span=Chunk(0, len(memory.content)), words=None, length=_SNIPPET),
            )
            for memory in memories
        )
        return Page(hits, total, warnings)

    def _search(
        self,
        session: Session,
        scopes: Sequence[Scope],
        query: Query,
        text: str,
        vector: _Pending | None,
        limit: int,
        changes: Mapping[str, int],
        moving: frozenset[str],
        outlined: frozenset[str] = frozenset(),
    ) -> tuple[tuple[Hit, ...], int]:
        """The best records of all kinds, and how many there are in all."""
        if vector and not scopes:
            vector.result()  # an endpoint that is away is reported all the same
            return (), 0
        from .ranking import query_hashes

        total = 0
        found: list[_Ranked] = []
        terms_asked = leading_query_terms(text)
        hashes = query_hashes(terms_asked)
        for scope in scopes:
            if moving.isdisjoint(scope.spaces):
                ranked, count = self._rank(session, scope, query, text, hashes, vector, query.offset + limit, changes)
            else:
                by_words = replace(query, mode="text")
                ranked, count = self._rank(session, scope, by_words, text, hashes, None, query.offset + limit, changes)
                if outlined.issuperset(scope.spaces):
                    nearest, more = self._rank(
                        session, scope, query, text, hashes, vector, query.offset + limit, changes
                    )
                    ranked, count = _with_vectors(ranked, nearest), max(count, more)
            found += ranked
            total += count
        if len(scopes) > 1:
            found.sort(key=_Ranked.order)
        chosen = found[query.offset : query.offset + limit]
        spaces = [space for scope in scopes for space in scope.spaces]
        memories = self._store.memories.fetch(session, [one.num for one in chosen], spaces)
        words = frozenset(terms_asked)
        return tuple(one.hit(memories[one.num], words) for one in chosen if one.num in memories), total

    def _rank(
        self,
        session: Session,
        scope: Scope,
        query: Query,
        text: str,
        hashes: Sequence[int],
        pending: _Pending | None,
        most: int,
        changes: Mapping[str, int],
    ) -> tuple[list[_Ranked], int]:
        """The best records of one kind, at most `most`, and how many there are in all."""
        from ...store.search.vectors import single_threaded
        from .ranking import default_model, measure, prefer_newer

        wanted = max(_CANDIDATES, 3 * most)
        with single_threaded():
            views = self._store.search.look_up(session, scope, hashes, wanted, changes)
            vector = pending.result() if pending else None
            if not views:
                return [], 0
            found = self._store.search.candidates(session, scope, hashes, vector, wanted, views)
            signals = measure(found, text, hashes, vector, now=scope.now)
            plain = default_model().score(signals.traits, signals.candidates, fusion=query.fusion, mode=query.mode)
            scores = plain.adjust(found.nearness, _WEIGHTS[scope.kind])
        matches = signals.matches
        # The floor applies to the calibrated score, before a weight set by hand lowers that of files and turns.
        eligible = plain.score >= _NEGLIGIBLE if query.min_score is None else scores.score >= query.min_score
        if query.mode == "text":
            eligible &= matches.text > 0
        order = _order(found, scores, eligible)
        if query.prefer_newer:
            scores = prefer_newer(found, scores, order, hashes)
            order = _order(found, scores, eligible)
        outdated: dict[int, str] = {}
        if scope.kind == "note":
            written = [space for space in scope.spaces if changes.get(space)]
            order = newest_of_each(self._store, session, found, order, written)
            if made := replacements(self._store, session, found, order, most, written):
                scores = scores.exchange((one.older, one.newer) for one in made)
                outdated = {one.older: one.newer_id for one in made}
                eligible[:] = False
                eligible[[*order, *(one.newer for one in made)]] = True
                eligible &= scores.score >= (query.min_score or 0.0)
                order = _order(found, scores, eligible)
        head = order[:most]
        spans = [Chunk(*span) for span in found.details.spans[matches.best_chunk[head]].tolist()]
        columns = (found.details.nums, found.created, scores.score, scores.raw)
        newer = [outdated.get(place) for place in head.tolist()]
        reasons = _signals(found, signals, head)
        rows = zip(*(column[head].tolist() for column in columns), spans, reasons, newer, strict=True)
        return [_Ranked(*row) for row in rows], len(order)


@dataclass(frozen=True, slots=True)
class _Ranked:
    """A candidate with what its place in the order depends on."""

    num: int
    created: int
    score: float
    raw: float
    span: Chunk
    signals: Signals
    outdated_by: str | None

    def order(self) -> tuple[float, float, int, int]:
        return -round(self.score, 7), -round(self.raw, 7), -self.created, -self.num

    def hit(self, memory: Memory, words: frozenset[str]) -> Hit:
        passage = partial(snippet, memory.content, span=self.span, words=words, length=_SNIPPET)
        return Hit(memory, self.score, self.raw, passage, self.signals, self.outdated_by)


def _with_vectors(by_words: Sequence[_Ranked], nearest: Sequence[_Ranked]) -> list[_Ranked]:
    """Parts of files, some of which have their vector: those are ranked with it, the others by their words."""
    best = {one.num: one for one in by_words}
    best.update((one.num, one) for one in nearest if one.signals.meaning)
    return sorted(best.values(), key=_Ranked.order)


def _signals(found: CandidateSet, measured: QuerySignals, head: NDArray[np.int64]) -> list[Signals]:
    """What speaks for the first results."""
    values, matches = measured.candidates, measured.matches
    named = (values.author_match > 0) | (values.name_match > 0)
    columns = (matches.vector, matches.coverage, found.nearness > 0, named)
    return [Signals(*row) for row in zip(*(column[head].tolist() for column in columns), strict=True)]


def _order(found: CandidateSet, scores: Scores, eligible: NDArray[np.bool_]) -> NDArray[np.int64]:
    """The eligible candidates, best first. The order is total: score, raw score, date, number."""
    import numpy as np

    index = np.flatnonzero(eligible)
    # Rounded, because equal records differ in the last digits, by their place in a sum.
    raw, score = np.round(scores.raw[index], 7), np.round(scores.score[index], 7)
    keys = (-found.details.nums[index], -found.created[index], -raw, -score)
    return index[np.lexsort(keys)]


def _with_arguments(filter: Filter, query: Query) -> Filter:
    extra = []
    if query.namespace:
        extra.append(Condition("namespace", (canonical_namespace(query.namespace),)))
    category = None if query.category is None else canonical_category(query.category)
    for key, value in (("user", query.user_id), ("agent", query.agent_id), ("category", category)):
        if value is not None:
            extra.append(Condition(key, (value,)))  # type: ignore[arg-type]  # literal keys of the tuple above
    return filter.plus(*extra)


def _default_kinds(query: Query, text: str) -> tuple[Kind, ...]:
    """The kinds of a query that names none: a list shows notes."""
    if not text:
        return KINDS[:1]
    return KINDS if query.with_turns else tuple(kind for kind in KINDS if kind != "turn")


def _split_kinds(filter: Filter) -> tuple[Filter, tuple[Kind, ...]]:
    """The filter without its conditions on the kind, and the kinds that these allow (empty without such conditions)."""
    asked = filter.having("kind")
    if not asked:
        return filter, ()
    kinds = tuple(kind for kind in KINDS if all((kind in one.values) != one.negated for one in asked))
    # A filter that allows no kind keeps its conditions, which match nothing.
    return (Filter(tuple(one for one in filter.conditions if one.key != "kind")) if kinds else filter), kinds


def _check_limit(query: Query) -> int:
    limit = query.limit if query.limit is not None else (_SEARCH_LIMIT if query.text else _LIST_LIMIT)
    if not 1 <= limit <= _LIMIT_MOST:
        raise InvalidInput(f"The limit {limit} is out of range.", remedy=f"Give 1 to {_LIMIT_MOST}.", field="limit")
    if not 0 <= query.offset <= _OFFSET_MOST:
        raise InvalidInput(
            f"The offset {query.offset} is out of range.", remedy=f"Give 0 to {_OFFSET_MOST}.", field="offset"
        )
    if query.min_score is not None and not 0.0 <= query.min_score <= 1.0:
        raise InvalidInput(
            f"The minimum score {query.min_score} is out of range.", remedy="Give 0.0 to 1.0.", field="min_score"
        )
    return limit


def _check_length(text: str | None) -> None:
    if text is not None and len(text) > LONGEST_QUERY:
        raise LimitExceeded(
            f"The query is longer than {LONGEST_QUERY:,} characters.", remedy="Ask in fewer words.", field="query"
        )


def _encodable(text: str) -> str:
    # Any string is a valid query, even with lone surrogates.
    return text.encode("utf-8", "replace").decode()


class RecallCounter:
    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._lock = ForkLock()
        self._noted: dict[str, tuple[int, int]] = {}

    def note(self, ids: Iterable[str]) -> None:
        """Count one recall of each memory."""
        at = to_micros(self._clock.now())
        with self._lock:
            for memory_id in ids:
                count, _ = self._noted.get(memory_id, (0, 0))
                self._noted[memory_id] = (count + 1, at)

    def waiting(self, memory_id: str) -> tuple[int, int]:
        """How often a memory was recalled since the counts were last stored, and when last; zeros if it was not."""
        with self._lock:
            return self._noted.get(memory_id, (0, 0))

    def write(self) -> None:
        """Store the counts, if there are any."""
        with self._lock:
            noted, self._noted = self._noted, {}
        if not noted:
            return
        try:
            with self._store.database.read() as session:
                spaces = set(self._store.memories.spaces_of(session, noted).values())
            if not spaces:
                return
            with self._store.database.write(*spaces) as session:
                # Memories that were purged since are left out.
                placed = self._store.memories.spaces_of(session, noted)
                self._store.recalls.add(session, {(space, one): noted[one] for one, space in placed.items()})
        except StoreReadOnly:
            logger.debug("Recalls of %d memories were not counted: the store is read-only.", len(noted))
