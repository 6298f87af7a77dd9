"""The bridge from matching to ranking: candidates with all signals the ranking model reads."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ..store.search import Found
from .matching import Matches
from .ranking import Candidates
from .terms import query_terms, term_hash
from .traits import QueryTraits

__all__ = ["candidates"]

_MICROS_A_DAY = 86_400_000_000


def candidates(found: Found, matches: Matches, hashes: Sequence[int], traits: QueryTraits) -> Candidates:
    """Put together what retrieval found, how it matches, and whom the query names."""
    return Candidates.of(
        matches.vector,
        matches.text,
        scope_size=found.scope_size,
        mass=matches.mass,
        vector_own=matches.vector_own,
        vector_mean=matches.vector_mean,
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
    )


def _holds_a_name(holds: NDArray[np.bool_], hashes: Sequence[int], traits: QueryTraits) -> NDArray[np.bool_]:
    named = {term_hash(term) for name in traits.names for term in query_terms(name)}
    columns = [i for i, number in enumerate(hashes) if number in named]
    named_here: NDArray[np.bool_] = np.any(holds[:, columns], axis=1)
    return named_here
