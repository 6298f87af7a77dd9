"""The newer first: of results that speak of the same thing, the latest gets the best of their scores.

What a question is about shows in its rare words. Two results that hold the same of them speak of the same thing, and
where they do, the newer is the one that holds today. Asked for by the caller: for questions about the past it is wrong.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .ranking import Scores

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ..store.search import Found

__all__ = ["prefer_newer"]

# How many of the first results are looked at, and how much of the question's weight two of them must share. Set by
# hand, on the shared part of LongMemEval.
_FIRST = 10
_SHARED = 0.4
# A result this much less likely is not about the same thing.
_LEAST = 0.2


def prefer_newer(found: Found, scores: Scores, order: NDArray[np.int64], hashes: Sequence[int]) -> Scores:
    """Scores in which, among the first results, those of one subject are exchanged so that the newest is best."""
    first = order[:_FIRST]
    if len(first) < 2 or not len(hashes):
        return scores
    score = scores.score.copy()
    held = _held(found, first, hashes)
    weights = _weights(found, hashes)
    taken: set[int] = set()
    for place in range(len(first)):
        if place in taken:
            continue
        group = [place, *_same_subject(found, first, score, held, weights, place, taken)]
        if len(group) > 1:
            taken.update(group)
            best = sorted((float(score[first[one]]) for one in group), reverse=True)
            newest = sorted(group, key=lambda one: -int(found.created[first[one]]))
            for one, value in zip(newest, best, strict=True):
                score[first[one]] = value
    return Scores(score, scores.raw)


def _same_subject(
    found: Found,
    first: NDArray[np.int64],
    score: NDArray[np.float64],
    held: NDArray[np.bool_],
    weights: NDArray[np.float64],
    place: int,
    taken: set[int],
) -> list[int]:
    """Later places of the same subject as one; parts of one line of work are neighbours, not versions."""
    own = int(found.branch[first[place]])
    least = _LEAST * float(score[first[place]])
    return [
        other
        for other in range(place + 1, len(first))
        if other not in taken
        and (own < 0 or int(found.branch[first[other]]) != own)
        and float(score[first[other]]) >= least
        and float(weights[held[place] & held[other]].sum()) >= _SHARED
    ]


def _held(found: Found, first: NDArray[np.int64], hashes: Sequence[int]) -> NDArray[np.bool_]:
    """Which of the words each result holds."""
    import numpy as np

    details = found.details
    held = np.zeros((len(first), len(hashes)), bool)
    record = details.chunk_record[details.term_chunk]
    place = {int(number): n for n, number in enumerate(first)}
    for n, word in enumerate(hashes):
        for number in set(record[details.term_hash == word].tolist()):
            if number in place:
                held[place[number], n] = True
    return held


def _weights(found: Found, hashes: Sequence[int]) -> NDArray[np.float64]:
    """What each word says about the subject, as a share of all: the rarer the more."""
    import numpy as np

    size = max(found.scope_size, 1)
    rarity = np.maximum(np.log((size + 1) / (found.word_records[: len(hashes)] + 0.5)), 0.0)
    return np.asarray(rarity / max(float(rarity.sum()), 1e-9), np.float64)
