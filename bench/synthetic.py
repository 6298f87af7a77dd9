"""Large stores without hours of embedding: Zipf texts and clustered vectors, from fixed seeds.

Vectors have 2,000 Zipf-weighted clusters and noise with a decaying spectrum, like those of real
models; queries are embedded by the real model, so that its time is part of what is measured.
"""

from __future__ import annotations

import random
import re
import zlib
from collections.abc import Iterator, Sequence
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from cortex_py import NewMemory
from cortex_py.core.embedding.backends.backend import Backend

__all__ = ["BulkBackend", "KnownQueries", "documents", "english", "queries"]

_WORDS = 50_000
_CLUSTERS = 2_000
_LENGTH = 40
_SYLLABLES = [c + v for c in "bcdfghklmnprstvz" for v in "aeiou"]


def _word(number: int) -> str:
    """A pronounceable, distinct word for a number."""
    base = len(_SYLLABLES)
    parts = [_SYLLABLES[number % base], _SYLLABLES[number // base % base]]
    if number >= base * base:
        parts.append(_SYLLABLES[number // base**2 % base])
    return "".join(parts)


class _Zipf:
    def __init__(self, seed: int) -> None:
        weights = 1.0 / np.arange(1, _WORDS + 1) ** 1.05
        self._cumulative = np.cumsum(weights / weights.sum())
        self._random = np.random.default_rng(seed)
        self._words = [_word(number) for number in range(_WORDS)]

    def text(self, length: int, skip: int = 0) -> str:
        numbers = np.searchsorted(self._cumulative, self._random.random(length))
        return " ".join(self._words[min(int(number) + skip, _WORDS - 1)] for number in numbers)


def documents(count: int, seed: int = 7) -> Iterator[NewMemory]:
    source = _Zipf(seed)
    names = ("decisions", "patterns", "learnings", "context")
    for number in range(count):
        yield NewMemory(content=source.text(_LENGTH), namespace=names[number % 4], tags=(f"t{number % 97}",))


def queries(count: int, seed: int = 11, words: int = 7) -> list[str]:
    """Questions of a few words, the hundred commonest left out, none twice."""
    source = _Zipf(seed)
    return list(islice(dict.fromkeys(source.text(words, skip=100) for _ in range(2 * count)), count))


def english(count: int, seed: int = 13, words: int = 40) -> list[str]:
    """Texts of so many English words, none twice: pieces of the prose in Python's own help."""
    from pydoc_data.topics import topics

    prose = " ".join(topics[name] for name in sorted(topics) if isinstance(topics[name], str))
    known = re.findall(r"(?<!\S)[A-Za-z][a-z]*[,.]?(?!\S)", prose)
    starts = random.Random(seed).sample(range(len(known) - words), count)
    return [" ".join(known[start : start + words]) for start in starts]


class BulkBackend:
    """Clustered vectors for documents while loading; the real model afterwards."""

    def __init__(self, real: Backend, seed: int = 3) -> None:
        self._real = real
        self._random = np.random.default_rng(seed)
        dimensions = real.dimensions
        spectrum = np.arange(1, dimensions + 1) ** -0.5
        self._spectrum = (spectrum / np.linalg.norm(spectrum)).astype(np.float32)
        self._centres = _unit(self._random.standard_normal((_CLUSTERS, dimensions)).astype(np.float32) * self._spectrum)
        weights = 1.0 / np.arange(1, _CLUSTERS + 1)
        self._weights = weights / weights.sum()
        self.bulk = False

    @property
    def name(self) -> str:
        return self._real.name

    @property
    def model_name(self) -> str:
        return self._real.model_name

    @property
    def dimensions(self) -> int:
        return self._real.dimensions

    @property
    def max_tokens(self) -> int:
        return self._real.max_tokens

    @property
    def fingerprint(self) -> str:
        return self._real.fingerprint

    @property
    def loaded(self) -> bool:
        return self._real.loaded

    def count_tokens(self, text: str) -> int:
        return len(text) // 4 if self.bulk else self._real.count_tokens(text)

    def embed(self, texts: Sequence[str], *, normalize: bool = True) -> NDArray[np.float32]:
        if not self.bulk:
            return self._real.embed(texts, normalize=normalize)
        which = self._random.choice(_CLUSTERS, len(texts), p=self._weights)
        noise = self._random.standard_normal((len(texts), self.dimensions)).astype(np.float32) * self._spectrum
        return _unit(self._centres[which] + 0.7 * noise)


class KnownQueries(BulkBackend):
    """The vector of a query follows from its text and lies among those of the documents, as real ones do."""

    def embed(self, texts: Sequence[str], *, normalize: bool = True) -> NDArray[np.float32]:
        if self.bulk:
            return super().embed(texts, normalize=normalize)
        made = np.empty((len(texts), self.dimensions), np.float32)
        for n, text in enumerate(texts):
            draw = np.random.default_rng(zlib.crc32(text.encode()))
            noise = draw.standard_normal(self.dimensions).astype(np.float32) * self._spectrum
            made[n] = self._centres[draw.choice(_CLUSTERS, p=self._weights)] + 0.7 * noise
        return _unit(made)


def _unit(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
