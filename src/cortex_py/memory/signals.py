"""The bridge from matching to ranking: candidates with all signals the ranking model reads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..store.database import Session
from ..store.scope import Scope
from ..store.search import Found, Search
from ..store.threads import single_threaded
from .matching import Matches, match
from .ranking import Candidates
from .terms import query_terms, term_hash
from .traits import QueryTraits, query_traits

__all__ = ["Gathered", "candidates", "gathered"]

_MICROS_A_DAY = 86_400_000_000
_QUERY_WORDS = 64


@dataclass(frozen=True, slots=True)
class Gathered:
    """All that ranking one query needs; training reads the same, so it sees what recall sees."""

    found: Found
    matches: Matches
    traits: QueryTraits
    candidates: Candidates


def gathered(
    search: Search, session: Session, scope: Scope, text: str, vector: NDArray[np.float32] | None, wanted: int
) -> Gathered:
    """Retrieve the candidates for a query and measure them."""
    hashes = list(dict.fromkeys(term_hash(term) for term in query_terms(text)))[:_QUERY_WORDS]
    with single_threaded():
        found = search.candidates(session, scope, hashes, vector, wanted)
        matches = match(found, hashes, vector)
        traits = query_traits(text)
        return Gathered(found, matches, traits, candidates(found, matches, hashes, traits, now=scope.now))


def candidates(
    found: Found, matches: Matches, hashes: Sequence[int], traits: QueryTraits, *, now: int | None = None
) -> Candidates:
    """Put together what retrieval found, how it matches, and whom the query names."""
    return Candidates.of(
        matches.vector,
        matches.text,
        scope_size=found.scope_size,
        mass=matches.mass,
        vector_own=matches.vector_own,
        vector_window=matches.vector_window,
        text_part=matches.text_part,
        text_own=matches.text_own,
        text_window=matches.text_window,
        coverage=matches.coverage,
        coverage_window=matches.coverage_window,
        prev=found.before,
        next=found.after,
        branch=found.branch,
        length=found.length,
        flags=found.flags,
        author_match=np.isin(found.author, [term_hash(word) for word in traits.words]),
        name_match=_holds_a_name(matches.holds, hashes, traits),
        created=found.created / _MICROS_A_DAY,
        now=(now or 0) / _MICROS_A_DAY,
    )


def _holds_a_name(holds: NDArray[np.bool_], hashes: Sequence[int], traits: QueryTraits) -> NDArray[np.bool_]:
    named = {term_hash(term) for name in traits.names for term in query_terms(name)}
    columns = [i for i, number in enumerate(hashes) if number in named]
    named_here: NDArray[np.bool_] = np.any(holds[:, columns], axis=1)
    return named_here
