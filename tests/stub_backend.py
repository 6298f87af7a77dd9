"""Vectors by hashing words: for tests of storage, where the meaning does not matter but speed does."""

from __future__ import annotations

import zlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


class StubBackend:
    name = "stub"
    model_name = "stub"
    dimensions = 32
    max_tokens = 256
    fingerprint = "stub-32"
    loaded = True

    def count_tokens(self, text: str) -> int:
        return len(text) // 4 + 2

    def embed(self, texts: Sequence[str], *, normalize: bool = True) -> NDArray[np.float32]:
        vectors = np.zeros((len(texts), self.dimensions), np.float32)
        for row, text in zip(vectors, texts, strict=True):
            for word in text.lower().split():
                row[zlib.crc32(word.encode()) % self.dimensions] += 1.0
        return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-6)
