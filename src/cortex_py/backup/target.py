"""A place for sealed objects, outside the home: what sync asks of a folder, a bucket or a server."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, Protocol

__all__ = ["Stored", "Target"]


class Stored(NamedTuple):
    """An object that is there: its name and how many bytes it has."""

    name: str
    size: int


class Target(Protocol):
    """Objects by name; a name is lower-case letters, digits, `_`, `-`, `.`, in parts joined by `/`.

    No part begins with a dot or has more than 180 characters, a name has at most 512 and holds no `.sync-conflict-`:
    such files are made by programs that carry folders around. An object is seen whole or not at all. Faults are
    `NetworkError`, which says what to do.
    """

    @property
    def shown(self) -> str:
        """The target as it may be shown: without user name, password or query."""
        ...

    def put(self, name: str, data: bytes) -> None:
        """Write an object, replacing one of that name."""
        ...

    def create(self, name: str, data: bytes) -> bool:
        """Write an object unless there is one of that name already; whether it was written."""
        ...

    def get(self, name: str, limit: int) -> bytes | None:
        """An object, or None where there is none; one of more bytes than the limit is refused."""
        ...

    def list(self, prefix: str) -> Iterator[Stored]:
        """The objects whose names begin so, in order."""
        ...

    def delete(self, name: str) -> None:
        """Remove an object; none of that name is no fault."""
        ...

    def close(self) -> None: ...
