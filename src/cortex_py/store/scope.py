"""A scope: what one query may see, worked out once and given to everything that reads.

The filter becomes a condition; searches in the process ask for the exact set of records it allows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from ..records import Kind, files_space
from .conditions import Filter
from .database import Database, Session
from .where import Names, Where, WhereCompiler

__all__ = ["Scope", "View", "files_space", "open_scope"]


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
    """Unless it is `filtered`, it is simply every live record of the spaces that is not confined elsewhere."""

    spaces: tuple[str, ...]
    where: Where
    now: int
    filtered: bool
    here: str | None
    near: Mapping[str, float]
    kind: Kind
    # The same condition for one of the spaces alone, which an engine can plan better.
    only: Callable[[str], Where]

    def allowed(self, session: Session, space: str) -> list[int]:
        """Numbers of the records of a space that may be seen."""
        statement = f"SELECT m.num FROM memory m WHERE m.space = ? AND {self.where.sql}"
        if self.where.by_number:
            # Else SQLite goes through the whole space, and asks of each record whether it is among them.
            statement = statement.replace("m.space", "+m.space")
        return [row[0] for row in session.rows(statement, (space, *self.where.params))]


def open_scope(
    database: Database,
    session: Session,
    filter: Filter,
    view: View,
    names: Names,
    readable: Callable[[str], bool] = lambda _space: True,
) -> Scope:
    """Compile a filter. Spaces that are not `readable` are left out whoever asks; projects that are not are unknown."""
    compiler = WhereCompiler(database, session, names, readable)
    wanted = tuple(space for space in view.spaces if readable(space))
    for condition in filter.having("project"):
        if not condition.negated:
            # Named projects are searched wherever the caller stands; unknown ones match nothing.
            named = compiler.projects(condition.values)
            wanted = tuple(map(files_space, named) if view.kind == "file" else named) or wanted
    where = compiler.compile(filter, wanted, view.now, view.here)

    def only(space: str) -> Where:
        return compiler.compile(filter, (space,), view.now, view.here) if len(wanted) > 1 else where

    return Scope(wanted, where, view.now, bool(filter.conditions), view.here, view.near, view.kind, only)
