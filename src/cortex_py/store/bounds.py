"""What one transaction may see: the spaces that its caller may read, and those in which they may write."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

__all__ = ["Bounds", "BoundsNow", "unbounded", "visible"]


@dataclass(frozen=True, slots=True)
class Bounds:
    """Spaces by name. `member` is the caller, to be told in the engine's own logs."""

    member: str
    readable: frozenset[str]
    writable: frozenset[str]


# Asked when a transaction begins. None: the work of the server itself, or of whoever has the machine.
BoundsNow = Callable[[], Bounds | None]


def unbounded() -> Bounds | None:
    return None


def visible(spaces: Iterable[str], bounds: Bounds | None) -> tuple[str, ...]:
    """Those of the spaces that a transaction sees.

    What a process keeps of a space is filled from, and served to, such transactions alone: one that does not see its
    rows would take it for empty, and hide them from everybody else.
    """
    return tuple(space for space in spaces if bounds is None or space in bounds.readable)
