"""The bridge from retrieval to ranking: candidates with all signals the ranking model reads.

Recall and the training of the model both come through `measure`, so the model sees in use what it learned from.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from ..store.search import Found
from .matching import Matches, match
from .ranking import Candidates
from .terms import query_terms, term_hash
from .traits import FRAME_WORDS, QueryTraits, query_traits

__all__ = ["Measured", "candidates", "measure", "query_hashes"]

_MICROS_A_DAY = 86_400_000_000
_QUERY_WORDS = 64
_FRAME_SHARE = 0.4

Floats = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Measured:
    """All that ranking one query needs."""

    found: Found
    matches: Matches
    traits: QueryTraits
    candidates: Candidates


def query_hashes(text: str) -> list[int]:
    """The distinct words of a query, as the store knows them."""
    return list(dict.fromkeys(term_hash(term) for term in query_terms(text)))[:_QUERY_WORDS]


def measure(found: Found, text: str, hashes: Sequence[int], vector: Floats | None, *, now: int) -> Measured:
    """Measure what retrieval found for a query; `now` is in microseconds."""
    traits = query_traits(text)
    weighed = _with_common_frame(found, hashes)
    matches = match(weighed, hashes, vector)
    return Measured(weighed, matches, traits, candidates(weighed, matches, hashes, traits, vector=vector, now=now))


def candidates(
    found: Found,
    matches: Matches,
    hashes: Sequence[int],
    traits: QueryTraits,
    *,
    vector: Floats | None = None,
    now: int | None = None,
) -> Candidates:
    """Put together what retrieval found, how it matches, and whom the query names; `now` is in microseconds."""
    authors, names = _named(traits)
    named = [i for i, number in enumerate(hashes) if number in names]
    parts = _Parts(matches.vector_own, matches.coverage, matches.coverage, matches.coverage)
    if len(found.details.chunk_record) > found.details.size:
        parts = _parts(found, matches, hashes, vector)
    return Candidates(
        vector=matches.vector,
        vector_window=matches.vector_window,
        vector_own=matches.vector_own,
        vector_first=parts.vector_first,
        text=matches.text,
        text_part=matches.text_part,
        text_own=matches.text_own,
        text_window=matches.text_window,
        coverage=matches.coverage,
        coverage_part=parts.best,
        coverage_own=parts.own,
        coverage_first=parts.first,
        coverage_window=matches.coverage_window,
        prev=found.before,
        next=found.after,
        branch=found.branch,
        length=found.length,
        flags=found.flags,
        author_match=np.array([number in authors for number in found.author.tolist()], np.bool_),
        name_match=np.any(matches.holds[:, named], axis=1, keepdims=True)[:, 0],
        created=found.created / _MICROS_A_DAY,
        scope_size=found.scope_size,
        mass=matches.mass,
        now=(now or 0) / _MICROS_A_DAY,
    )


def _with_common_frame(found: Found, hashes: Sequence[int]) -> Found:
    """Words that frame a question count as common: records answer, they do not ask "how many" or "remind me"."""
    frame = [i for i, number in enumerate(hashes) if number in _frame()]
    if not frame:
        return found
    held = found.word_records.copy()
    held[frame] = np.maximum(held[frame], _FRAME_SHARE * found.scope_size)
    return replace(found, word_records=held)


@lru_cache(maxsize=1)
def _frame() -> frozenset[int]:
    return frozenset(term_hash(term) for word in FRAME_WORDS for term in query_terms(word))


@lru_cache(maxsize=256)
def _named(traits: QueryTraits) -> tuple[frozenset[int], frozenset[int]]:
    """Hashes of the authors that the query may mean, and of the names in it."""
    authors = frozenset(map(term_hash, traits.words))
    return authors, frozenset(term_hash(term) for name in traits.names for term in query_terms(name))


@dataclass(frozen=True, slots=True)
class _Parts:
    """Of each record: the cosine of its first own chunk, and the most that one chunk covers of the query."""

    vector_first: Floats
    best: Floats
    own: Floats
    first: Floats


def _parts(found: Found, matches: Matches, hashes: Sequence[int], vector: Floats | None) -> _Parts:
    details = found.details
    covered = np.zeros(len(details.chunk_record), np.float32)
    total = max(found.scope_size, 1)
    held = np.clip(found.word_records, 0.0, total)
    shares = np.log1p((total - held + 0.5) / (held + 0.5)) / matches.mass
    for number, share in zip(hashes, shares.tolist(), strict=True):
        # A chunk has each term once, so no index occurs twice.
        covered[details.term_chunk[np.flatnonzero(details.term_hash == number)]] += share
    starts = np.searchsorted(details.chunk_record, np.arange(details.size))
    own = np.where(details.by_assistant, np.float32(-1.0), covered)
    # The last write wins: backwards, that is the first chunk; where all are an assistant's, the very first.
    first = starts.copy()
    by_person = np.flatnonzero(~details.by_assistant)[::-1]
    first[details.chunk_record[by_person]] = by_person
    best = np.maximum.reduceat(covered, starts)
    best_own = np.maximum.reduceat(own, starts)
    return _Parts(
        vector_first=matches.vector_own if vector is None else details.vectors[first] @ vector,
        best=best,
        own=np.where(best_own < 0, best, best_own),
        first=covered[first],
    )
