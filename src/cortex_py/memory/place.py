"""The place of a caller: the project and the person, and the spaces that follow from them.

A space is the store's unit of isolation. Records of the domain `project` belong to the space of their project, those of
`user` to that of the person, those of `org` to that of the organisation.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from ..errors import InvalidInput
from ..records import DOMAINS, Confinement, Domain, Kind, Project, kind_space, org_space, user_space
from ..security.callers import current_caller
from ..security.permission import permitted_spaces, require_write
from ..security.rights import Level
from ..store.search.filters import View

__all__ = ["GitState", "Place", "canonical_domain"]

_LOCAL_USER = "local"


class GitState(Protocol):
    """What memory needs to know of the project's git repository."""

    def sync_git_state(self) -> None:
        """Apply what git did since the last call. Every use of the memory begins with it."""
        ...

    def git_branch(self) -> str | None:
        """The git branch that is checked out."""
        ...

    def confinement(self, git_branch: str) -> Confinement | None:
        """Whether records written on a git branch stay there until it is merged."""
        ...

    def stale(self, names: Iterable[str], *, unsure: bool = False) -> tuple[str, ...]:
        """The branches among these that were deleted without being merged; with `unsure`, perhaps merged ones too."""
        ...


@dataclass(frozen=True, slots=True)
class Place:
    """The project and the person. `own_user`, `own_agent` and `own_org` apply where no caller is bound."""

    project: Project
    own_user: str | None
    own_agent: str | None
    own_org: str
    git: GitState

    def sync_git_state(self) -> None:
        self.git.sync_git_state()

    def git_branch(self) -> str | None:
        return self.git.git_branch()

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
        """The name of a space, whether or not the caller may read it."""
        if domain == "user":
            return user_space(self.user_id or _LOCAL_USER)
        if domain == "org":
            return org_space(self.org)
        return kind_space(self.project.id, kind)

    def writable_space(self, domain: Domain, kind: Kind = "note") -> str:
        """A space to write to; `AccessDenied` if the caller may not."""
        space = self.space(domain, kind)
        require_write(space)
        return space

    def view(self, now: int) -> View:
        """What the caller sees: the readable spaces, and of git branches the one that is checked out."""
        return View(self.spaces(), now, self.git_branch())

    def spaces(self, level: Level = "read") -> tuple[str, ...]:
        """The spaces of the project, the person and the organisation in which the caller has this level."""
        return permitted_spaces((self.space(domain) for domain in DOMAINS), level)


def canonical_domain(text: str) -> Domain:
    """The domain that a text names; `global` means `user`."""
    wanted = text.strip().lower()
    for domain in DOMAINS:
        if wanted == domain or (wanted == "global" and domain == "user"):
            return domain
    raise InvalidInput(f"Unknown domain {text[:40]!r}.", remedy=f"Choose one of {', '.join(DOMAINS)}.", field="domain")
