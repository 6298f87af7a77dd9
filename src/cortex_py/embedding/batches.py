"""Which texts go through a model together: groups of like length, so that little is spent on padding."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

__all__ = ["batches"]


def batches(lengths: Sequence[int], tokens: int) -> Iterator[list[int]]:
    """Groups the indices of `lengths`; a group padded to its longest member has at most `tokens` tokens.

    A single text that is longer than that has a group of its own.
    """
    group: list[int] = []
    for index in sorted(range(len(lengths)), key=lengths.__getitem__):
        if group and (len(group) + 1) * lengths[index] > tokens:
            yield group
            group = []
        group.append(index)
    if group:
        yield group
