"""Whether the current caller may read, write or administer a space; checked wherever work reaches one.

Without a bound caller everything is permitted: it is a person's own machine, or the server's own work. A space that the
caller may not read looks as if it did not exist. Writing to a space that may only be read is refused.
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
    "as_project_creator", "may_administer", "may_create_project", "may_read", "may_write", "permitted_spaces",
    "require_admin", "require_write",
]  # fmt: skip


def may_read(space: str) -> bool:
    caller = current_caller()
    return caller is None or space in caller.rights.read


def may_write(space: str) -> bool:
    caller = current_caller()
    return caller is None or space in caller.rights.write


def may_administer(space: str) -> bool:
    caller = current_caller()
    return caller is None or space in caller.rights.admin


_TESTS = {"read": may_read, "write": may_write, "admin": may_administer}


def permitted_spaces(spaces: Iterable[str], level: Level = "read") -> tuple[str, ...]:
    """The spaces in which the caller has a level, in order."""
    return tuple(space for space in spaces if _TESTS[level](space))


def require_write(space: str) -> None:
    if not may_write(space):
        raise AccessDenied("You may not write here.", remedy="Ask an admin of the organisation for the level write.")


def require_admin(space: str) -> None:
    if not may_administer(space):
        raise AccessDenied(
            "This needs the level admin here.", remedy="Ask an admin of the organisation for the level admin."
        )


def may_create_project() -> bool:
    """Whether the caller may create a project, which needs write access to their organisation."""
    caller = current_caller()
    return caller is None or may_write(org_space(caller.org))


@contextmanager
def as_project_creator(project_id: str) -> Iterator[None]:
    """Give a caller access to the project they just created; from the next request on their rights include it."""
    caller = current_caller()
    if caller is None or project_id in caller.rights.read:
        yield
        return
    level: Level = "admin" if org_space(caller.org) in caller.rights.admin else "write"
    with acting_as(replace(caller, rights=caller.rights.with_project(project_id, level))):
        yield
