"""Where a caller stands: the project, the person, and the spaces that follow from them.

A space is the store's unit of isolation. Records of the domain `project` lie in their project's
space, those of `user` in the person's, those of `org` in the organisation's.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..errors import InvalidInput
from ..records import DOMAINS, Confinement, Domain, Kind, Project, files_space, org_space, user_space
from ..security.callers import current_caller
from ..security.permission import permitted, require_write
from ..security.rights import Level
from ..store.scope import View

__all__ = ["Place", "canonical_domain"]

_LOCAL_USER = "local"


@dataclass(frozen=True, slots=True)
class Place:
    """`arrive` is called before every use of the memory: what git did since the last one is followed then.

    `confinement` says whether what is written on a git branch stays there for the time being. `own_user` and
    `own_agent` are who works here where no caller is bound, and `own_org` for whom.
    """

    project: Project
    own_user: str | None
    own_agent: str | None
    own_org: str
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

    @property
    def org(self) -> str:
        caller = current_caller()
        return caller.org if caller else self.own_org

    def space(self, domain: Domain, kind: Kind = "note") -> str:
        """The name of a space, whether or not the caller may look there."""
        if domain == "user":
            return user_space(self.user_id or _LOCAL_USER)
        if domain == "org":
            return org_space(self.org)
        return files_space(self.project.id) if kind == "file" else self.project.id

    def writing(self, domain: Domain, kind: Kind = "note") -> str:
        """A space to write into; `AccessDenied` where the caller may not."""
        space = self.space(domain, kind)
        require_write(space)
        return space

    def view(self, now: int) -> View:
        """What is seen from here: all spaces that are, and of the project's git branches the one checked out."""
        return View(self.spaces(), now, self.git_branch())

    def spaces(self, level: Level = "read") -> tuple[str, ...]:
        """All that the caller sees by default: the project, what is theirs, what is everybody's.

        With a level, those in which they have it. What they may not read is not there.
        """
        return permitted((self.space(domain) for domain in DOMAINS), level)


def canonical_domain(text: str) -> Domain:
    """A domain by any of its spellings."""
    wanted = text.strip().lower()
    for domain in DOMAINS:
        if wanted == domain or (wanted == "global" and domain == "user"):
            return domain
    raise InvalidInput(f"Unknown domain {text[:40]!r}.", remedy=f"Choose one of {', '.join(DOMAINS)}.", field="domain")
