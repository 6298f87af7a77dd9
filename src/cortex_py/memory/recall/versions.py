"""Which candidates of a query repeat the text of another, and which state what a newer one has given up.

Both are decided when a query is asked, so a memory that is deleted or changed leaves no mark on others.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...records import Memory
from ...store.database import Session
from ...store.rows import term_hash
from ...store.search.search import CandidateSet
from ...store.store import Store
from ..capture.terms import terms
from .ranking import Scores

__all__ = ["Replacement", "newest_of_each", "prefer_replacements", "replacement", "replacements"]

# The cosine of two notes below which neither replaces the other. Of 87 written pairs, 27 of the 29 in which the newer
# one replaces the older have more, and 28 of the other 58 less.
_ABOUT_ONE_MATTER = 0.5
# One of these is in every text that `given_up` reads as giving something up.
_CUE_WORDS = "longer anymore more instead place switched moved migrated changed replaced"
# Longer texts make many statements, and one that is given up is a small part of them.
_LONGEST_COMPARED = 1_000
# How many of the best results are compared with newer ones beyond those that are shown, and with how many of these.
_BEYOND = 32
_MOST_PAIRS = 200

Places = NDArray[np.int64]


class Replacement(NamedTuple):
    """The places of two candidates among all, and the id of the newer."""

    older: int
    newer: int
    newer_id: str


def newest_of_each(store: Store, session: Session, found: CandidateSet, order: Places, spaces: Sequence[str]) -> Places:
    """The candidates without those that repeat the text of another of the same line of work.

    The newest is kept, and rather one that somebody reviewed.
    """
    details = found.details
    record = details.chunk_record[details.term_chunk]
    # Equal for equal texts, and for few others.
    bag = np.bincount(record, details.term_hash.astype(np.float64) * details.term_count, details.size)
    _, inverse, counts = np.unique(bag[order], return_inverse=True, return_counts=True)
    perhaps = order[counts[inverse] > 1]
    if not len(perhaps):
        return order
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
    details = found.details
    shown = order[:most]
    known = _superseded(store, session, found, shown, order[: most + _BEYOND], spaces)
    record = details.chunk_record[details.term_chunk]
    telling = np.unique(record[np.isin(details.term_hash, _cues())])
    if not len(shown) or not (len(telling) or known):
        return []
    starts = np.searchsorted(details.chunk_record, np.arange(details.size))
    likeness = details.vectors[starts[telling]] @ details.vectors[starts[shown]].T
    likely = (likeness >= _ABOUT_ONE_MATTER) & (found.created[telling][:, None] > found.created[shown])
    pairs = {(int(shown[j]), int(telling[i])) for i, j in np.argwhere(likely)[:_MOST_PAIRS]}
    pairs |= {pair for pair in known if found.created[pair[1]] > found.created[pair[0]]}
    if not pairs:
        return []
    nums = {place: int(details.nums[place]) for pair in pairs for place in pair}
    memories = store.memories.fetch(session, list(nums.values()), spaces)
    made = []
    for older, newer in pairs:
        old, new = memories.get(nums[older]), memories.get(nums[newer])
        if old and new:
            cosine = float(details.vectors[starts[older]] @ details.vectors[starts[newer]])
            spans = known.get((older, newer), ())
            if replacement(old, new, cosine, [old.content[first:past] for first, past in spans]):
                made.append(Replacement(older, newer, new.id))
    return sorted(made, key=lambda one: _age(found, one.newer))


def replacement(older: Memory, newer: Memory, cosine: float, gone: Sequence[str] = ()) -> str | None:
    """What a newer note has given up that an older one states. A text that nobody reviewed replaces none that was."""
    if any(one.kind != "note" or one.role or len(one.content) > _LONGEST_COMPARED for one in (older, newer)):
        return None
    if cosine < _ABOUT_ONE_MATTER or (newer.status == "pending" and older.status != "pending"):
        return None
    # Imported on first use: few queries find two such notes.
    from ..comparison.replacement import given_up
    from ..consolidation.merging import without_context

    return given_up(without_context(older.content), without_context(newer.content), gone)


def prefer_replacements(scores: Scores, made: Sequence[Replacement]) -> Scores:
    """Exchange the scores of each pair where the older has the better one."""
    score, raw = scores.score.copy(), scores.raw.copy()
    for older, newer, _ in made:
        if (score[older], raw[older]) >= (score[newer], raw[newer]):
            for values in (score, raw):
                values[older], values[newer] = values[newer], values[older]
    return Scores(score, raw)


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
    return np.array([term_hash(term) for term in terms(_CUE_WORDS)], np.uint32)
