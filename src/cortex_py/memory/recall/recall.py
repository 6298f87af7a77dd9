"""Recall: candidates from both retrievers under one filter, one ranking, and the page a caller sees."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import TYPE_CHECKING

from ..clock import Clock, to_micros
from ..config import Fusion
from ..embedding.backend import Backend
from ..errors import InvalidInput
from ..records import KINDS, MODES, Domain, Hit, Kind, Memory, Mode, Page
from ..security.permission import permitted
from ..store.conditions import Condition, Filter
from ..store.database import Session
from ..store.scope import View
from ..store.store import Store
from .chunking import Chunk, snippet
from .filters import parse_filter
from .model import check_model
from .namespaces import canonical_namespace
from .ontology import canonical_category
from .place import Place, canonical_domain
from .terms import query_terms

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ..store.scope import Scope
    from ..store.search import Found
    from .matching import Matches
    from .ranking import Scores

__all__ = ["Query", "Recall"]

SNIPPET = 200
_CANDIDATES = 32
_LIMIT_MOST = 1_000
_OFFSET_MOST = 1_000_000_000
_LIST_LIMIT = 50
_SEARCH_LIMIT = 10
# A part of a file is worth less than what somebody took the trouble to say about it. Set by hand, as the next two are.
_FILE_WEIGHT = 0.6
# What a record gains, on the scale of log odds, by belonging to the present line of work or to one it grew from.
_PRESENT, _ANCESTOR = 0.5, 0.25
_GENERATIONS = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """What is asked. Without a text it lists; `None` for the limit means the customary one."""

    text: str | None = None
    filter: str = ""
    namespace: str | None = None
    mode: Mode = "hybrid"
    limit: int | None = None
    offset: int = 0
    min_score: float = 0.0
    user_id: str | None = None
    agent_id: str | None = None
    category: str | None = None
    domain: Domain | None = None
    fusion: Fusion = "learned"
    prefer_newer: bool = False


class Recall:
    def __init__(self, store: Store, backend: Backend, clock: Clock, place: Place) -> None:
        self._store = store
        self._backend = backend
        self._clock = clock
        self._place = place

    def run(self, query: Query) -> Page:
        limit = _checked_limit(query)
        if query.mode not in MODES:
            raise InvalidInput(
                f"Unknown mode {query.mode!r}.", remedy=f"Choose one of {', '.join(MODES)}.", field="mode"
            )
        now = self._clock.now()
        parsed = parse_filter(query.filter, now=now)
        filter, kinds = _split_kinds(_with_arguments(parsed.filter, query))
        text = (query.text or "").strip()
        self._place.arrive()
        views = self._views(query, kinds or (KINDS if text else KINDS[:1]), to_micros(now))
        if not text:
            with self._store.database.read() as session:
                return self._listed(session, filter, views, limit, query.offset, parsed.warnings)
        vector = self._embed(text) if query.mode != "text" else None
        with self._store.search.turn(), self._store.database.read() as session:
            if vector is not None:
                check_model(self._store, session, self._backend)
            near = self._near(session, views[0].here)
            scopes = [self._store.scope(session, filter, replace(view, near=near)) for view in views]
            return self._searched(session, scopes, query, text, vector, limit, parsed.warnings)

    def _views(self, query: Query, kinds: Sequence[Kind], now: int) -> list[View]:
        """One for each kind of record: they are searched apart, so that files never re-weigh what notes mean."""
        place, here = self._place, self._place.git_branch()
        domain = None if query.domain is None else canonical_domain(query.domain)
        notes = place.spaces() if domain is None else permitted((place.space(domain),))
        files = permitted((place.space("project", "file"),)) if domain in (None, "project") else ()
        spaces: dict[Kind, tuple[str, ...]] = {"note": notes, "file": files}
        wanted = [kind for kind in kinds if spaces[kind]] or kinds[:1]
        return [View(spaces[kind], now, here, kind=kind) for kind in wanted]

    def _near(self, session: Session, here: str | None) -> dict[str, float]:
        """The present line of work and those it grew from, with what belonging to them is worth."""
        project = self._place.project.id
        branch = self._store.branches.linked_to(session, project, here) if here else None
        near: dict[str, float] = {}
        while branch and branch.id not in near and len(near) < _GENERATIONS:
            near[branch.id] = _ANCESTOR if near else _PRESENT
            branch = self._store.branches.get(session, project, branch.parent_id) if branch.parent_id else None
        return near

    def _embed(self, text: str) -> Future[NDArray[np.float32]]:
        """The query's vector, computed while the words are looked up; a model not yet loaded is loaded first."""
        if not self._backend.loaded:
            self._backend.embed([""])
        return _embedder().submit(lambda: self._backend.embed([_encodable(text)])[0])

    def _listed(
        self,
        session: Session,
        filter: Filter,
        views: Sequence[View],
        limit: int,
        offset: int,
        warnings: tuple[str, ...],
    ) -> Page:
        table = self._store.memories
        wheres = [self._store.scope(session, filter, view).where for view in views]
        total = sum(table.count(session, where) for where in wheres)
        if len(wheres) == 1:
            memories = table.listing(session, wheres[0], limit, offset)
        else:
            heads = [one for where in wheres for one in table.listing(session, where, offset + limit, 0)]
            memories = sorted(heads, key=lambda one: (one.created_at, one.id), reverse=True)[offset : offset + limit]
        hits = tuple(
            Hit(memory, 0.0, 0.0, partial(snippet, memory.content, Chunk(0, len(memory.content)), None, SNIPPET))
            for memory in memories
        )
        return Page(hits, total, warnings)

    def _searched(
        self,
        session: Session,
        scopes: Sequence[Scope],
        query: Query,
        text: str,
        vector: Future[NDArray[np.float32]] | None,
        limit: int,
        warnings: tuple[str, ...],
    ) -> Page:
        total = 0
        found: list[_Ranked] = []
        for scope in scopes:
            ranked, count = self._best(session, scope, query, text, vector, limit)
            found += ranked
            total += count
        if len(scopes) > 1:
            found.sort(key=_Ranked.order)
        chosen = found[query.offset : query.offset + limit]
        spaces = [space for scope in scopes for space in scope.spaces]
        memories = self._store.memories.fetch(session, [one.num for one in chosen], spaces)
        words = frozenset(query_terms(text))
        hits = (one.hit(memories[one.num], words) for one in chosen if one.num in memories)
        return Page(tuple(hits), total, warnings)

    def _best(
        self,
        session: Session,
        scope: Scope,
        query: Query,
        text: str,
        vector: Future[NDArray[np.float32]] | None,
        limit: int,
    ) -> tuple[list[_Ranked], int]:
        """The head of one kind's ranking, as long as the page may reach, and how long the whole is."""
        found, matches, scores = self.ranked(session, scope, query, text, vector, limit)
        order = _order(found, matches, scores, query)
        if query.prefer_newer:
            from .newer import prefer_newer
            from .signals import query_hashes

            scores = prefer_newer(found, scores, order, query_hashes(text))
            order = _order(found, matches, scores, query)
        head = order[: query.offset + limit]
        spans = [Chunk(*found.details.spans[i]) for i in matches.best_chunk[head].tolist()]
        columns = (found.details.nums, found.created, scores.score, scores.raw)
        rows = zip(*(column[head].tolist() for column in columns), spans, strict=True)
        return [_Ranked(*row) for row in rows], len(order)

    def ranked(
        self,
        session: Session,
        scope: Scope,
        query: Query,
        text: str,
        pending: Future[NDArray[np.float32]] | None,
        limit: int,
    ) -> tuple[Found, Matches, Scores]:
        """Candidates with their scores, unordered."""
        from ..store.threads import single_threaded
        from .ranking import default_model
        from .signals import measure, query_hashes

        hashes = query_hashes(text)
        wanted = max(_CANDIDATES, 3 * (limit + query.offset))
        with single_threaded():
            views = self._store.search.look_up(session, scope, hashes, wanted)
            vector = pending.result() if pending else None
            found = self._store.search.candidates(session, scope, hashes, vector, wanted, views)
            measured = measure(found, text, hashes, vector, now=scope.now)
            scores = default_model().score(measured.traits, measured.candidates, fusion=query.fusion, mode=query.mode)
            weight = _FILE_WEIGHT if scope.kind == "file" else 1.0
            return found, measured.matches, scores.nudged(found.nearness, weight)


@dataclass(frozen=True, slots=True)
class _Ranked:
    """A candidate with its place in the order."""

    num: int
    created: int
    score: float
    raw: float
    span: Chunk

    def order(self) -> tuple[float, float, int, int]:
        return -round(self.score, 7), -round(self.raw, 7), -self.created, -self.num

    def hit(self, memory: Memory, words: frozenset[str]) -> Hit:
        return Hit(memory, self.score, self.raw, partial(snippet, memory.content, self.span, words, SNIPPET))


@lru_cache(maxsize=1)
def _embedder() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(4, "cortex-embed")


def _order(found: Found, matches: Matches, scores: Scores, query: Query) -> NDArray[np.int64]:
    """Candidates best first. The order is total: score, then the newer, then the later id."""
    import numpy as np

    eligible = scores.score >= query.min_score
    if query.mode == "text":
        eligible &= matches.text > 0
    index = np.flatnonzero(eligible)
    # Rounded: equal records differ in the last digits, by where they stand in a sum.
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


def _split_kinds(filter: Filter) -> tuple[Filter, tuple[Kind, ...]]:
    """The filter without its conditions on the kind, and the kinds they allow; none where it has no such conditions."""
    asked = filter.having("kind")
    if not asked:
        return filter, ()
    kinds = tuple(kind for kind in KINDS if all((kind in one.values) != one.negated for one in asked))
    # A filter that allows no kind keeps its conditions, which then match nothing.
    return (Filter(tuple(one for one in filter.conditions if one.key != "kind")) if kinds else filter), kinds


def _checked_limit(query: Query) -> int:
    limit = query.limit if query.limit is not None else (_SEARCH_LIMIT if query.text else _LIST_LIMIT)
    if not 1 <= limit <= _LIMIT_MOST:
        raise InvalidInput(f"The limit {limit} is out of range.", remedy=f"Give 1 to {_LIMIT_MOST}.", field="limit")
    if not 0 <= query.offset <= _OFFSET_MOST:
        raise InvalidInput(
            f"The offset {query.offset} is out of range.", remedy=f"Give 0 to {_OFFSET_MOST}.", field="offset"
        )
    if not 0.0 <= query.min_score <= 1.0:
        raise InvalidInput(
            f"The minimum score {query.min_score} is out of range.", remedy="Give 0.0 to 1.0.", field="min_score"
        )
    return limit


def _encodable(text: str) -> str:
    # Any string is a valid query, also one that no database could hold.
    return text.encode("utf-8", "replace").decode()
