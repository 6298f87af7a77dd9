"""Which stored project a folder is, also after it was moved or has gained a remote."""

from __future__ import annotations

from ..clock import Clock, to_micros
from ..records import Project
from ..store.database import Session
from ..store.store import Store
from .project import ProjectIdentity, matches_moved

__all__ = ["remember"]


def remember(store: Store, found: ProjectIdentity, clock: Clock) -> Project:
    """The stored project for a folder, written only if it is new or has changed."""
    with store.database.read() as session:
        known = store.projects.get(session, found.id) or _refound(store, session, found)
    project = Project(known.id if known else found.id, str(found.root), found.remote, found.name)
    if project != known:
        with store.database.write() as session:
            store.projects.save(session, project, found.root_commit, to_micros(clock.now()))
    return project


def _refound(store: Store, session: Session, found: ProjectIdentity) -> Project | None:
    """A project whose identity changed: it was moved, or its repository has gained a remote."""
    if found.remote and (known := store.projects.by_remote(session, found.remote)):
        return known
    candidates = [
        project
        for project, commit in store.projects.without_remote(session, found.root.name)
        if project.root
        and (
            project.root == str(found.root) or matches_moved(found, stored_root=project.root, stored_root_commit=commit)
        )
    ]
    return candidates[0] if len(candidates) == 1 else None
