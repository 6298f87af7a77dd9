"""Whether the caller may read, write or remove in a space: asked wherever work reaches one.

Where nobody is bound, everything is permitted: it is a person's own machine, or the server's own work. What may not be
read is not there: whoever asks is told what they would be told of something that does not exist. What may be read but
not written is refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from ..errors import AccessDenied
from ..records import org_space
from .callers import acting_as, current_caller
from .rights import Level

__all__ = [
    "administrable",
    "as_maker_of",
    "permitted",
    "readable",
    "require_admin",
    "require_making",
    "require_write",
    "writable",
]


def readable(space: str) -> bool:
    caller = current_caller()
    return caller is None or space in caller.rights.read


def writable(space: str) -> bool:
    caller = current_caller()
    return caller is None or space in caller.rights.write


def administrable(space: str) -> bool:
    caller = current_caller()
    return caller is None or space in caller.rights.admin


_TESTS = {"read": readable, "write": writable, "admin": administrable}


def permitted(spaces: Iterable[str], level: Level = "read") -> tuple[str, ...]:
    """Those of the spaces in which the caller has a level, in their order."""
    return tuple(space for space in spaces if _TESTS[level](space))


def require_write(space: str) -> None:
    if not writable(space):
        raise AccessDenied("You may not write here.", remedy="Ask an admin of the organisation for the level write.")


def require_admin(space: str) -> None:
    if not administrable(space):
        raise AccessDenied(
            "This needs the level admin here.", remedy="Ask an admin of the organisation for the level admin."
        )


def require_making() -> None:
    """Whoever begins a project writes into the organisation they work in."""
    caller = current_caller()
    if caller is not None:
        require_write(org_space(caller.org))


@contextmanager
def as_maker_of(project_id: str) -> Iterator[None]:
    """Go on for a caller who just made a project: from the next request on their rights say so by themselves."""
    caller = current_caller()
    if caller is None or project_id in caller.rights.read:
        yield
        return
    level: Level = "admin" if org_space(caller.org) in caller.rights.admin else "write"
    with acting_as(replace(caller, rights=caller.rights.with_project(project_id, level))):
        yield
