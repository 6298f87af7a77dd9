"""How well each candidate matches a query, as plain numbers: exact BM25 and exact cosines.

Candidates come with their terms and vectors, so every score here is computed from what the store
holds, over the record, its best part, and the record together with its neighbours.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..store.search import Found

__all__ = ["Matches", "match"]

Floats = NDArray[np.float32]

_K1 = 1.2
_B = 0.75


@dataclass(frozen=True, slots=True)
class Matches:
    """One value per candidate; `best_chunk` is the index of the chunk that matches best.

    `_own` leaves out the assistant's turns of a dialogue. `holds` tells for each word of the query
    whether the record has it, `mass` what all words weigh.
    """

    vector: Floats
    vector_own: Floats
    vector_window: Floats
    text: Floats
    text_part: Floats
    text_own: Floats
    text_window: Floats
    coverage: Floats
    coverage_window: Floats
    mass: float
    holds: NDArray[np.bool_]
    best_chunk: NDArray[np.int32]


def match(found: Found, hashes: Sequence[int], query: Floats | None) -> Matches:
    """Score all candidates for the query's distinct word hashes and its vector."""
    if not found.details.size:
        return _no_matches(max(len(hashes), 1))
    # Everything multiplied is finite. Some BLAS kernels still raise the flag now and then, for lanes they do not use.
    with np.errstate(invalid="ignore"):
        return _matches(found, hashes, query)


def _matches(found: Found, hashes: Sequence[int], query: Floats | None) -> Matches:
    details = found.details
    counts = _counts(found, hashes)
    starts = _starts(details.chunk_record, details.size)
    whole = np.add.reduceat(counts, starts, axis=0)
    alone = not len(found.before) or int(max(found.before.max(), found.after.max())) < 0
    around = whole if alone else whole + _at(whole, found.before) + _at(whole, found.after)
    rarity = _rarity(found.word_records, found.scope_size)
    chunk_length = np.bincount(details.term_chunk, details.term_count, len(counts)).astype(np.float32)
    length = found.length
    span = length if alone else length + _at(length, found.before) + _at(length, found.after)
    average = max(found.average_length, 1.0)
    part = _bm25(counts, chunk_length, min(average, float(chunk_length.mean())), rarity)
    mass = max(float(rarity.sum()), 1e-9)
    cosine, window = _cosines(found, starts, query, alone)
    text = _bm25(whole, length, average, rarity)
    coverage = (whole > 0) @ rarity / mass
    return Matches(
        vector=np.maximum.reduceat(cosine, starts),
        vector_own=_best_own(cosine, details.by_assistant, starts),
        vector_window=window,
        text=text,
        text_part=np.maximum.reduceat(part, starts),
        text_own=_best_own(part, details.by_assistant, starts),
        text_window=text if alone else _bm25(around, span, max(float(span.mean()), 1.0), rarity),
        coverage=coverage,
        coverage_window=coverage if alone else (around > 0) @ rarity / mass,
        mass=mass,
        holds=whole > 0,
        best_chunk=_best_of_each(cosine + part / max(float(part.max(initial=0.0)), 1.0), details.chunk_record, starts),
    )


def _no_matches(words: int) -> Matches:
    none = np.zeros(0, np.float32)
    holds = np.zeros((0, words), np.bool_)
    return Matches(none, none, none, none, none, none, none, none, none, 0.0, holds, np.zeros(0, np.int32))


def _counts(found: Found, hashes: Sequence[int]) -> Floats:
    """How often each chunk holds each word of the query."""
    details = found.details
    counts = np.zeros((len(details.chunk_record), max(len(hashes), 1)), np.float32)
    if hashes:
        wanted = np.array(hashes, np.uint32)
        order = np.argsort(wanted)
        slot = np.minimum(np.searchsorted(wanted[order], details.term_hash), len(wanted) - 1)
        hit = np.flatnonzero(wanted[order][slot] == details.term_hash)
        counts[details.term_chunk[hit], order[slot[hit]]] = details.term_count[hit]
    return counts


def _rarity(word_records: NDArray[np.float64], scope_size: int) -> Floats:
    if not len(word_records):
        return np.zeros(1, np.float32)
    total = max(scope_size, 1)
    held = np.clip(word_records, 0.0, total)
    return np.log1p((total - held + 0.5) / (held + 0.5)).astype(np.float32)


def _bm25(counts: Floats, length: Floats, average: float, rarity: Floats) -> Floats:
    damping = _K1 * (1 - _B + _B * length / max(average, 1.0))
    return np.asarray((counts * (_K1 + 1) / (counts + damping[:, None])) @ rarity, np.float32)


def _cosines(found: Found, starts: NDArray[np.int64], query: Floats | None, alone: bool) -> tuple[Floats, Floats]:
    """Cosine of every chunk, and of every record as a whole together with its neighbours."""
    details = found.details
    if query is None:
        zeros = np.zeros(details.size, np.float32)
        return np.zeros(len(details.chunk_record), np.float32), zeros
    cosine = details.vectors @ query
    if len(starts) == len(cosine):
        means, own = details.vectors, cosine
    else:
        means = np.add.reduceat(details.vectors, starts, axis=0)
        means = means / np.maximum(np.linalg.norm(means, axis=1, keepdims=True), 1e-6)
        own = means @ query
    if alone:
        return cosine, own
    joined = means + 0.5 * _at(means, found.before) + 0.5 * _at(means, found.after)
    window = (joined @ query) / np.maximum(np.linalg.norm(joined, axis=1), 1e-6)
    return cosine, window


def _best_own(score: Floats, by_assistant: NDArray[np.bool_], starts: NDArray[np.int64]) -> Floats:
    """The best of each record's parts that are not an assistant's words; of all where there is no other."""
    if not by_assistant.any():
        return np.maximum.reduceat(score, starts)
    best = np.maximum.reduceat(np.where(by_assistant, -np.inf, score), starts)
    return np.where(best > -np.inf, best, np.maximum.reduceat(score, starts)).astype(np.float32)


def _at(values: Floats, index: NDArray[np.int32]) -> Floats:
    """Values of the neighbours; zero where there is none."""
    taken = values[index]
    taken[index < 0] = 0
    return taken


def _starts(record: NDArray[np.int32], size: int) -> NDArray[np.int64]:
    return np.searchsorted(record, np.arange(size))


def _best_of_each(score: Floats, record: NDArray[np.int32], starts: NDArray[np.int64]) -> NDArray[np.int32]:
    if len(starts) == len(score):
        return np.arange(len(score), dtype=np.int32)
    return np.lexsort((-score, record))[starts].astype(np.int32)
