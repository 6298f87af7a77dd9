"""Where a caller stands: the project, the person, and the spaces that follow from them.

A space is the store's unit of isolation. Records of the domain `project` lie in their project's
space, those of `user` in the person's, those of `org` in the organisation's.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..errors import InvalidInput
from ..records import DOMAINS, Confinement, Domain, Kind, Project
from ..security.callers import current_caller
from ..store.scope import View, files_space

__all__ = ["Place", "canonical_domain", "is_of_another"]

_LOCAL_USER = "local"
_USER_SPACE = "user:"


@dataclass(frozen=True, slots=True)
class Place:
    """`arrive` is called before every use of the memory: what git did since the last one is followed then.

    `confinement` says whether what is written on a git branch stays there for the time being. `own_user` and
    `own_agent` are who works here where no caller is bound.
    """

    project: Project
    own_user: str | None
    own_agent: str | None
    org: str
    git_branch: Callable[[], str | None]
    arrive: Callable[[], None] = lambda: None
    confinement: Callable[[str], Confinement | None] = lambda _branch: None

    @property
    def user_id(self) -> str | None:
        caller = current_caller()
        return caller.user if caller else self.own_user

    @property
    def agent_id(self) -> str | None:
        caller = current_caller()
        return caller.agent if caller else self.own_agent

    def space(self, domain: Domain, kind: Kind = "note") -> str:
        if domain == "user":
            return f"{_USER_SPACE}{self.user_id or _LOCAL_USER}"
        if domain == "org":
            return f"org:{self.org}"
        return files_space(self.project.id) if kind == "file" else self.project.id

    def view(self, now: int) -> View:
        """What is seen from here: all spaces, and of the project's git branches the one checked out."""
        return View(self.spaces(), now, self.git_branch())

    def spaces(self) -> tuple[str, ...]:
        """All that the caller sees by default: the project, what is theirs, what is everybody's."""
        return tuple(self.space(domain) for domain in DOMAINS)


def is_of_another(space: str) -> bool:
    """Whether a space is the own one of a person other than the caller. Whoever has the machine has no others."""
    caller = current_caller()
    return caller is not None and space.startswith(_USER_SPACE) and space != f"{_USER_SPACE}{caller.user}"


def canonical_domain(text: str) -> Domain:
    """A domain by any of its spellings."""
    wanted = text.strip().lower()
    for domain in DOMAINS:
        if wanted == domain or (wanted == "global" and domain == "user"):
            return domain
    raise InvalidInput(f"Unknown domain {text[:40]!r}.", remedy=f"Choose one of {', '.join(DOMAINS)}.", field="domain")
