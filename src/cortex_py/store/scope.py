"""A scope: what one query may see, worked out once and given to everything that reads.

The filter becomes a condition, and unless it is the default one also the exact set of records it
allows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ..records import Kind
from .conditions import Filter
from .database import Database, Session
from .where import Names, Where, WhereCompiler

__all__ = ["Scope", "View", "files_space", "open_scope"]


def files_space(project_id: str) -> str:
    """Where the scanned files of a project lie: apart, so that they can neither crowd out nor re-weigh its notes."""
    return f"{project_id}/files"


@dataclass(frozen=True, slots=True)
class View:
    """Who looks, from where: the spaces, the moment, the git branch, and lines of work that are near."""

    spaces: tuple[str, ...]
    now: int
    here: str | None = None
    near: Mapping[str, float] = field(default_factory=dict)
    kind: Kind = "note"


@dataclass(frozen=True, slots=True)
class Scope:
    """`allowed` is None when that is simply every live record of the spaces that is not confined elsewhere."""

    spaces: tuple[str, ...]
    where: Where
    now: int
    allowed: tuple[int, ...] | None
    here: str | None
    near: Mapping[str, float]
    kind: Kind


def open_scope(
    database: Database,
    session: Session,
    filter: Filter,
    view: View,
    names: Names,
    *,
    enumerate_allowed: bool,
) -> Scope:
    """Compile a filter. `enumerate_allowed` is for searches, which check candidates one by one."""
    compiler = WhereCompiler(database, session, names)
    wanted = view.spaces
    for condition in filter.having("project"):
        if not condition.negated:
            # Named projects are searched wherever the caller stands; unknown ones match nothing.
            named = compiler.projects(condition.values)
            wanted = tuple(map(files_space, named) if view.kind == "file" else named) or wanted
    where = compiler.compile(filter, wanted, view.now, view.here)
    allowed = None
    if filter.conditions and enumerate_allowed:
        rows = session.rows(f"SELECT m.num FROM memory m WHERE {where.sql}", where.params)
        allowed = tuple(row[0] for row in rows)
    return Scope(wanted, where, view.now, allowed, view.here, view.near, view.kind)
