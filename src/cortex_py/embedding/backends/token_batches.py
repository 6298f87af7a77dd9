"""Texts through a model that takes padded arrays of ids: tokenised, grouped by length, put back in order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from .batches import batches
from .model_folder import Tokeniser

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["embed_batches", "normalized"]

# Texts are tokenised by this many, so that a batch of any size holds few token lists at a time.
_TEXTS_AT_ONCE = 512


def embed_batches(
    texts: Sequence[str],
    run: Callable[[NDArray[np.int64], NDArray[np.int64]], NDArray[np.float32]],
    tokeniser: Tokeniser,
    *,
    dimensions: int,
    max_tokens: int,
    tokens_per_run: int,
    padding: int = 0,
    normalize: bool,
) -> NDArray[np.float32]:
    """One row per text; `run` is given ids and mask of texts of like length."""
    import numpy as np

    vectors = np.empty((len(texts), dimensions), dtype=np.float32)
    for first in range(0, len(texts), _TEXTS_AT_ONCE):
        part = [tokeniser.encode(text, max_tokens) for text in texts[first : first + _TEXTS_AT_ONCE]]
        for batch in batches([len(ids) for ids in part], tokens_per_run):
            shape = (len(batch), max(1, *(len(part[number]) for number in batch)))
            ids = np.full(shape, padding, dtype=np.int64)
            mask = np.zeros(shape, dtype=np.int64)
            for row, number in enumerate(batch):
                ids[row, : len(part[number])] = part[number]
                mask[row, : len(part[number])] = 1
            vectors[[first + number for number in batch]] = run(ids, mask)
    return normalized(vectors) if normalize else vectors


def normalized(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """The rows at length 1; a row of zeros stays one."""
    import numpy as np

    scaled: NDArray[np.float32] = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    return scaled
