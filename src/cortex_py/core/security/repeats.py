"""The key of the request that is being answered, by which a repeated one finds what the first one stored.

A client that lost the answer cannot know whether its change was made. If it gave the request an id, it repeats the
request with that id, and what the first attempt stored is returned instead of being stored again.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import count

__all__ = ["next_key", "repeatable"]


# The key, and the numbers of the request's changes.
_CURRENT: ContextVar[tuple[str, Iterator[int]] | None] = ContextVar("cortex_repeatable_request", default=None)


@contextmanager
def repeatable(key: str) -> Iterator[None]:
    """Answer a request that may be repeated. The key is the same for its repetitions and for no other request."""
    token = _CURRENT.set((key, count()))
    try:
        yield
    finally:
        _CURRENT.reset(token)


def next_key() -> str | None:
    """The key of the next change that the request makes, in the order of its changes; None if it is not repeatable."""
    request = _CURRENT.get()
    return f"{request[0]}:{next(request[1])}" if request else None
