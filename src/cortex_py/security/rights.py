"""What a person may do in which space: levels, and how they follow from memberships, groups and grants. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, get_args

from ..errors import InvalidInput
from ..records import files_space, org_space, user_space

__all__ = ["LEVELS", "NO_RIGHTS", "Level", "Rights", "check_level", "compute_rights", "highest", "level_of_scopes"]

# Each includes those before it.
Level = Literal["read", "write", "admin"]
LEVELS: tuple[Level, ...] = get_args(Level)
# For each level, those that include it.
_INCLUDED_IN = tuple(frozenset(LEVELS[number:]) for number in range(len(LEVELS)))


@dataclass(frozen=True, slots=True)
class Rights:
    """The spaces in which a person may read, write, and do what cannot be undone; each includes the next."""

    read: frozenset[str] = frozenset()
    write: frozenset[str] = frozenset()
    admin: frozenset[str] = frozenset()

    def with_project(self, project_id: str, level: Level) -> Rights:
        """These and a level on one project more."""
        return _of_levels({**_levels(self), **dict.fromkeys(_project_spaces(project_id), level)})


NO_RIGHTS = Rights()


def compute_rights(
    user: str,
    org: str,
    level: Level,
    projects: Mapping[str, bool],
    grants: Iterable[tuple[str, Level]],
) -> Rights:
    """The rights of a member of an organisation.

    `level` is theirs in the organisation: it holds for its space and for all its projects that are not restricted.
    `projects` are the organisation's, each with whether it is restricted. `grants` are to the person or to groups of
    theirs, by project; they can only add. What is the person's own is theirs to do anything with.
    """
    held: dict[str, Level] = {project: level for project, restricted in projects.items() if not restricted}
    for project, granted in grants:
        if project in projects:
            held[project] = highest(held.get(project), granted)
    spaces: dict[str, Level] = {user_space(user): "admin", org_space(org): level}
    for project, reached in held.items():
        spaces.update(dict.fromkeys(_project_spaces(project), reached))
    return _of_levels(spaces)


def highest(one: Level | None, other: Level) -> Level:
    return other if one is None or LEVELS.index(other) > LEVELS.index(one) else one


def level_of_scopes(scopes: Iterable[str]) -> Level:
    """The level that a token's scopes ask for; those for single tools ask for no more than reading."""
    found = [level for level in LEVELS if level in set(scopes)]
    return found[-1] if found else "read"


def check_level(text: str) -> Level:
    for level in LEVELS:
        if text == level:
            return level
    raise InvalidInput(f"Unknown level {text[:40]!r}.", remedy=f"Choose one of {', '.join(LEVELS)}.", field="level")


def _project_spaces(project_id: str) -> tuple[str, str]:
    return project_id, files_space(project_id)


def _of_levels(spaces: Mapping[str, Level]) -> Rights:
    read, write, admin = (frozenset(space for space, had in spaces.items() if had in more) for more in _INCLUDED_IN)
    return Rights(read, write, admin)


def _levels(rights: Rights) -> dict[str, Level]:
    found: dict[str, Level] = dict.fromkeys(rights.read, "read")
    found |= dict.fromkeys(rights.write, "write")
    return found | dict.fromkeys(rights.admin, "admin")
