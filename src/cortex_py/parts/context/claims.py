"""Which stored project a folder belongs to: a folder only claims one, and the project must know it.

A folder names its remote by itself, so an archive that somebody handed out can name any. It gets the memories of a
stored project if it was seen there before, if it is a working tree of a repository that was, or if its own objects hold
a commit of the project's history: who has the history may have the memories. A folder without a repository belongs to
the project of the nearest plain folder around it. Any other folder is a project of its own until a person confirms it
with `cortex init --join`.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ...core.clock import Clock, to_micros
from ...core.errors import StoreReadOnly
from ...core.paths import folders_around
from ...core.records import Project
from ...core.security.callers import as_system, current_caller
from ...core.security.path_access import path_refusal
from ...core.security.permission import may_create_project, may_read, require_write
from ...core.security.policy import Screen
from ...core.store.database import Session
from ...core.store.store import Store
from ...worktree.git.repository import Repository
from ...worktree.git.runner import find_repository_folder
from .project import ProjectIdentity, has_own_objects, matches_moved

__all__ = ["find_claim", "resolve_project"]

logger = logging.getLogger(__name__)

_KEY = "roots:"
_MOST_ROOTS = 256
_MOST_COMMITS = 64
_LEARN_AGAIN = 24 * 3_600 * 1_000_000  # microseconds


@dataclass(frozen=True, slots=True)
class _Known:
    """What a project knows its folders by: their paths as digests, commits of its history, and when it learnt these."""

    roots: tuple[str, ...] = ()
    commits: tuple[str, ...] = ()
    at: int = 0

    @classmethod
    def read(cls, store: Store, session: Session, project_id: str) -> _Known:
        value = store.settings.get(session, _KEY + project_id)
        if value is None:
            return cls()
        found = json.loads(value)
        return cls(tuple(found["roots"]), tuple(found["commits"]), found["at"])

    def with_(self, roots: Sequence[str], commits: Sequence[str], at: int) -> _Known:
        kept = dict.fromkeys((*self.roots, *roots))
        return _Known(tuple(kept)[-_MOST_ROOTS:], tuple(dict.fromkeys((*commits, *self.commits)))[:_MOST_COMMITS], at)

    def write(self, store: Store, session: Session, project_id: str) -> None:
        value = {"roots": self.roots, "commits": self.commits, "at": self.at}
        store.settings.put(session, _KEY + project_id, json.dumps(value, separators=(",", ":")))


@dataclass(frozen=True, slots=True)
class FolderClaim:
    """What a folder may use: a stored project, if any, and the one that it names without being known there."""

    identity: ProjectIdentity
    project: Project | None
    refused: Project | None
    known: _Known


@dataclass(frozen=True, slots=True)
class Resolved:
    project: Project
    root: Path
    refused: Project | None = None


def find_claim(store: Store, found: ProjectIdentity, screen: Screen, *, join: bool = False) -> FolderClaim:
    """The stored project for a folder; nothing is written. With `join` a person vouches for the folder."""
    with as_system(), store.database.read() as session:
        # Nearly always; what screens texts is not even loaded then.
        if (named := store.projects.get(session, found.id)) is not None:
            known = _Known.read(store, session, named.id)
            if named.root == str(found.root) or _digest(found.root) in known.roots:
                return FolderClaim(found, named, None, known)
        claimed = [
            (project, commit, _Known.read(store, session, project.id))
            for project, commit in _claimed(store, session, found, screen)
        ]
    root = screen.found(str(found.root))
    refused: Project | None = None
    for project, commit, known in claimed:
        is_known = project.root == root or _digest(found.root) in known.roots
        if is_known or join or _shares_history(found, project, commit, known):
            if refused or project.id == found.apart.id:
                found = found.apart
            return FolderClaim(found, project, refused, known)
        refused = refused or project
    if refused is None and find_repository_folder(found.root) is None:
        folders = [screen.found(str(one)) for one in folders_around(found.root)]
        with as_system(), store.database.read() as session:
            holder = store.projects.of_plain_folder(session, folders)
            if holder is not None and holder.root:
                around = replace(found, id=holder.id, root=Path(holder.root), name=holder.name)
                return FolderClaim(around, holder, None, _Known.read(store, session, holder.id))
    return FolderClaim(found.apart if refused or found.is_borrowed else found, None, refused, _Known())


def resolve_project(
    store: Store, found: ProjectIdentity, clock: Clock, screen: Screen, *, join: bool = False
) -> Resolved:
    """The stored project for a folder. It is written only if it is new or has changed.

    A caller needs the right to write to it. A new project belongs to the caller's organisation, to which they need the
    right to write. A refusal does not reveal whether the project is stored.
    """
    caller = current_caller()
    claim = find_claim(store, found, screen, join=join)
    known, found = claim.project, claim.identity
    # A project of its own in its place would tell a caller that the one it names is stored.
    is_hidden = claim.refused is not None and not may_read(claim.refused.id)
    if is_hidden or not (may_create_project() if known is None else may_read(known.id)):
        raise path_refusal("project")
    if known is not None:
        require_write(known.id)
    if known == Project(found.id, str(found.root), found.remote, found.name):
        project = known  # screened when it was stored
    else:
        remote = None if found.remote is None else screen.found(found.remote)
        id = known.id if known else found.id
        project = Project(id, screen.found(str(found.root)), remote, screen.found(found.name))
    now = to_micros(clock.now())
    is_new = _digest(found.root) not in claim.known.roots
    if project != known or is_new or now - claim.known.at >= _LEARN_AGAIN:
        commits = found.repository.landmarks() if found.repository else []
        try:
            with as_system(), store.database.write() as session:
                if project != known:
                    store.projects.save(session, project, found.root_commit, now)
                if known is None and caller is not None:
                    store.tenants.put_project(session, project.id, caller.org, restricted=False)
                roots = [_digest(one) for one in (known and known.root, found.root) if one]
                _Known.read(store, session, project.id).with_(roots, commits, now).write(store, session, project.id)
                if is_new:
                    # What was kept here before the folder was known stays in a project without a folder.
                    store.projects.leave(session, project.root or "", project.id, now)
        except StoreReadOnly:
            logger.debug("the store is read-only: the project is not stored")
    return Resolved(project, found.root, claim.refused)


def _claimed(
    store: Store, session: Session, found: ProjectIdentity, screen: Screen
) -> list[tuple[Project, str | None]]:
    """The stored projects that a folder may mean, the likeliest first, each with the first commit that is stored."""
    claimed: list[tuple[Project | None, str | None]] = [(store.projects.get(session, found.id), None)]
    if found.remote:
        claimed.append((store.projects.by_remote(session, screen.found(found.remote)), None))
    others = store.projects.without_remote(session, screen.found(found.root.name))
    # Its repository may have gained a remote.
    here = [one for one in others if one[0].root == str(found.root)]
    moved = [
        one
        for one in others
        if one[0].root and matches_moved(found, stored_root=one[0].root, stored_root_commit=one[1])
    ]
    for several in (moved, here):
        claimed += several if len(several) == 1 else []
    claimed.append((store.projects.get(session, found.apart.id), None))
    unique: dict[str, tuple[Project, str | None]] = {}
    for project, commit in claimed:
        if project is not None:
            unique.setdefault(project.id, (project, commit))
    return list(unique.values())


def _shares_history(found: ProjectIdentity, project: Project, commit: str | None, known: _Known) -> bool:
    """Whether the folder's own objects hold a commit of the project."""
    repository = found.repository
    if repository is None or not has_own_objects(repository):
        return False
    if repository.held([*known.commits, *([commit] if commit else [])]):
        return True
    # The folder that the project was last seen in may have newer commits than those that were learnt.
    root = Path(project.root) if project.root else None
    last = Repository.discover(root) if root and root.is_dir() else None
    if last is None or root is None or not last.belongs_to(find_repository_folder(root) or root):
        return False
    return bool(repository.held(last.landmarks()))


def _digest(path: str | os.PathLike[str]) -> str:
    return hashlib.sha256(os.fsencode(path)).hexdigest()[:32]
