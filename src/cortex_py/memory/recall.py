"""Recall: candidates from both retrievers under one filter, one ranking, and the page a caller sees."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import TYPE_CHECKING

from ..clock import Clock, to_micros
from ..config import Fusion
from ..embedding.backend import Backend
from ..errors import InvalidInput
from ..records import MODES, Domain, Hit, Mode, Page
from ..store.conditions import Condition, Filter
from ..store.database import Session
from ..store.store import Store
from .chunking import Chunk, snippet
from .filters import parse_filter
from .model import check_model
from .namespaces import canonical_namespace
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
        filter = _with_arguments(parsed.filter, query)
        text = (query.text or "").strip()
        spaces = self._place.spaces() if query.domain is None else (self._place.space(canonical_domain(query.domain)),)
        if not text:
            with self._store.database.read() as session:
                scope = self._store.scope(session, filter, spaces, to_micros(now))
                return self._listed(session, scope, limit, query.offset, parsed.warnings)
        vector = self._embed(text) if query.mode != "text" else None
        with self._store.search.turn(), self._store.database.read() as session:
            if vector is not None:
                check_model(self._store, session, self._backend)
            scope = self._store.scope(session, filter, spaces, to_micros(now), for_search=True)
            return self._searched(session, scope, query, text, vector, limit, parsed.warnings)

    def _embed(self, text: str) -> Future[NDArray[np.float32]]:
        """The query's vector, computed while the words are looked up; a model not yet loaded is loaded first."""
        if not self._backend.loaded:
            self._backend.embed([""])
        return _embedder().submit(lambda: self._backend.embed([_encodable(text)])[0])

    def _listed(self, session: Session, scope: Scope, limit: int, offset: int, warnings: tuple[str, ...]) -> Page:
        total = self._store.memories.count(session, scope.where)
        memories = self._store.memories.listing(session, scope.where, limit, offset)
        hits = tuple(
            Hit(memory, 0.0, 0.0, partial(snippet, memory.content, Chunk(0, len(memory.content)), None, SNIPPET))
            for memory in memories
        )
        return Page(hits, total, warnings)

    def _searched(
        self,
        session: Session,
        scope: Scope,
        query: Query,
        text: str,
        vector: Future[NDArray[np.float32]] | None,
        limit: int,
        warnings: tuple[str, ...],
    ) -> Page:
        found, matches, scores = self.ranked(session, scope, query, text, vector, limit)
        order = _order(found, matches, scores, query)
        chosen = order[query.offset : query.offset + limit]
        nums = found.details.nums[chosen].tolist()
        memories = self._store.memories.fetch(session, nums, scope.spaces)
        spans = [Chunk(*found.details.spans[i]) for i in matches.best_chunk[chosen].tolist()]
        words = frozenset(query_terms(text))
        hits = tuple(
            Hit(
                memories[num],
                float(scores.score[i]),
                float(scores.raw[i]),
                partial(snippet, memories[num].content, span, words, SNIPPET),
            )
            for num, i, span in zip(nums, chosen.tolist(), spans, strict=True)
            if num in memories
        )
        return Page(hits, len(order), warnings)

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
            return found, measured.matches, scores


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
    for key, value in (("user", query.user_id), ("agent", query.agent_id), ("category", query.category)):
        if value is not None:
            extra.append(Condition(key, (value,)))  # type: ignore[arg-type]  # literal keys of the tuple above
    return filter.plus(*extra)


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
