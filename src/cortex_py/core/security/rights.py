"""What a person may do in which space: levels from memberships, groups and grants; and the scopes of tokens. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, get_args

from ..errors import InvalidInput
from ..records import KINDS, kind_space, org_space, user_space

__all__ = [
    "LEVELS", "NO_RIGHTS", "SCOPES", "TOOL_PREFIX", "Level", "Rights", "Scope", "check_level", "check_scopes",
    "compute_rights", "highest", "is_scope", "level_of_scopes", "parse_scopes",
]  # fmt: skip

# Each includes those before it.
Level = Literal["read", "write", "admin"]
LEVELS: tuple[Level, ...] = get_args(Level)
# For each level, those that include it.
_INCLUDED_IN = tuple(frozenset(LEVELS[number:]) for number in range(len(LEVELS)))


@dataclass(frozen=True, slots=True)
class Rights:
    """The spaces in which a person may read, write and administer; each set includes the next."""

    read: frozenset[str] = frozenset()
    write: frozenset[str] = frozenset()
    admin: frozenset[str] = frozenset()

    def with_project(self, project_id: str, level: Level) -> Rights:
        """These rights and a level on one more project."""
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

    `level` is their level in the organisation: it applies to its space and to all projects that are not restricted.
    `projects` maps the organisation's projects to whether they are restricted. `grants` to the person or their groups
    only add to that. A person administers their own space.
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
    """The level that a token's scopes need; scopes of single tools need only read."""
    found = [level for level in LEVELS if level in set(scopes)]
    return found[-1] if found else "read"


def check_level(text: str) -> Level:
    for level in LEVELS:
        if text == level:
            return level
    raise InvalidInput(f"Unknown level {text[:40]!r}.", remedy=f"Choose one of {', '.join(LEVELS)}.", field="level")


def _project_spaces(project_id: str) -> tuple[str, ...]:
    return tuple(kind_space(project_id, kind) for kind in KINDS)


def _of_levels(spaces: Mapping[str, Level]) -> Rights:
    read, write, admin = (frozenset(space for space, had in spaces.items() if had in more) for more in _INCLUDED_IN)
    return Rights(read, write, admin)


def _levels(rights: Rights) -> dict[str, Level]:
    found: dict[str, Level] = dict.fromkeys(rights.read, "read")
    found |= dict.fromkeys(rights.write, "write")
    return found | dict.fromkeys(rights.admin, "admin")


# -- Scopes: what a token may be used for ----------------------------------------------------------


# No scope includes another: a token for everything names all of them.
Scope = Literal["read", "write", "admin", "embed"]
SCOPES: tuple[Scope, ...] = get_args(Scope)

# `tool:NAME` allows one tool, whatever scope it otherwise needs.
TOOL_PREFIX = "tool:"
_TOOL = re.compile(r"tool:[A-Za-z][A-Za-z0-9_.]{0,63}")
_MOST = 64


def is_scope(text: str) -> bool:
    return text in SCOPES or _TOOL.fullmatch(text) is not None


def check_scopes(given: Iterable[str]) -> frozenset[str]:
    """Validate a list of at least one scope."""
    scopes = frozenset(given)
    for scope in sorted(scopes):
        if not is_scope(scope):
            raise InvalidInput(
                f"Unknown scope {scope[:80]!r}.", remedy=f"Known: {', '.join(SCOPES)}, tool:NAME.", field="scopes"
            )
    if not 0 < len(scopes) <= _MOST:
        raise InvalidInput(f"Give between one and {_MOST} scopes.", field="scopes")
    return scopes


def parse_scopes(text: str) -> frozenset[str]:
    """The known scopes in a list separated by blanks; an issuer's list has others too."""
    return frozenset(word for word in text.split() if is_scope(word))
