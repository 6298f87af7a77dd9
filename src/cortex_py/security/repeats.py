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


class _Request:
    def __init__(self, key: str) -> None:
        self._key = key
        self._numbers = count()

    def next_key(self) -> str:
        return f"{self._key}:{next(self._numbers)}"


_CURRENT: ContextVar[_Request | None] = ContextVar("cortex_repeatable_request", default=None)


@contextmanager
def repeatable(key: str) -> Iterator[None]:
    """Answer a request that may be repeated. The key is the same for its repetitions and for no other request."""
    token = _CURRENT.set(_Request(key))
    try:
        yield
    finally:
        _CURRENT.reset(token)


def next_key() -> str | None:
    """The key of the next change that the request makes, in the order of its changes; None if it is not repeatable."""
    request = _CURRENT.get()
    return request.next_key() if request else None
