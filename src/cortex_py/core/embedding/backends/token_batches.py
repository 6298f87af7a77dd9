"""Runs texts through a model that takes padded id arrays: tokenise, group by length, restore the order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from ...clock import check_deadline
from .model_folder import Tokeniser

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["embed_batches", "group_by_length", "normalize_rows"]

# Which texts go through a model together: groups of like length, so that little is spent on padding.


def group_by_length(lengths: Sequence[int], tokens: int) -> Iterator[list[int]]:
    """Groups the indices of `lengths`; a group padded to its longest member has at most `tokens` tokens.

    A single text that is longer than that has a group of its own.
    """
    group: list[int] = []
    for index in sorted(range(len(lengths)), key=lengths.__getitem__):
        if group and (len(group) + 1) * lengths[index] > tokens:
            check_deadline()
            yield group
            group = []
        group.append(index)
    if group:
        check_deadline()
        yield group


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
        for batch in group_by_length([len(ids) for ids in part], tokens_per_run):
            shape = (len(batch), max(1, *(len(part[number]) for number in batch)))
            ids = np.full(shape, padding, dtype=np.int64)
            mask = np.zeros(shape, dtype=np.int64)
            for row, number in enumerate(batch):
                ids[row, : len(part[number])] = part[number]
                mask[row, : len(part[number])] = 1
            vectors[[first + number for number in batch]] = run(ids, mask)
    return normalize_rows(vectors) if normalize else vectors


def normalize_rows(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Each row scaled to length 1; a row of zeros has no direction and stays. Squares may need a wider range."""
    import numpy as np

    lengths = np.linalg.norm(vectors.astype(np.float64), axis=1, keepdims=True)
    return (vectors / np.where(lengths > 0, lengths, 1.0)).astype(np.float32)
