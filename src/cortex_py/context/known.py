"""Which stored project a folder is, also after it was moved or has gained a remote."""

from __future__ import annotations

from ..clock import Clock, to_micros
from ..records import Project
from ..security.callers import acting_as, current_caller
from ..security.permission import require_making, require_write
from ..store.database import Session
from ..store.store import Store
from .project import ProjectIdentity, matches_moved

__all__ = ["remember"]


def remember(store: Store, found: ProjectIdentity, clock: Clock) -> Project:
    """The stored project for a folder, written only if it is new or has changed.

    A caller must be allowed to write into it; one that is new is their organisation's, into which they must be
    allowed to write. What is refused tells nothing of whether it is known.
    """
    caller = current_caller()
    with acting_as(None), store.database.read() as session:
        known = store.projects.get(session, found.id) or _refound(store, session, found)
    if known is not None:
        require_write(known.id)
    else:
        require_making()
    project = Project(known.id if known else found.id, str(found.root), found.remote, found.name)
    if project != known:
        with acting_as(None), store.database.write() as session:
            store.projects.save(session, project, found.root_commit, to_micros(clock.now()))
            if known is None and caller is not None:
                store.tenants.put_project(session, project.id, caller.org, restricted=False)
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
