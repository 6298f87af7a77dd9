"""A scope: what one query may see, worked out once and given to everything that reads.

The filter becomes a condition, and unless it is the default one also the exact set of records it
allows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from .conditions import Filter
from .database import Database, Session
from .where import Where, WhereCompiler

__all__ = ["Scope", "open_scope"]


@dataclass(frozen=True, slots=True)
class Scope:
    """`allowed` is None when that is simply every live record of the spaces."""

    spaces: tuple[str, ...]
    where: Where
    now: int
    allowed: tuple[int, ...] | None


def open_scope(
    database: Database,
    session: Session,
    filter: Filter,
    spaces: Sequence[str],
    now: int,
    entity_words: Callable[[str], Sequence[str]],
    *,
    enumerate_allowed: bool,
) -> Scope:
    """Compile a filter. `enumerate_allowed` is for searches, which check candidates one by one."""
    compiler = WhereCompiler(database, session, entity_words)
    wanted = tuple(spaces)
    for condition in filter.having("project"):
        if not condition.negated:
            # Named projects are searched wherever the caller stands; unknown ones match nothing.
            wanted = tuple(compiler.projects(condition.values)) or wanted
    where = compiler.compile(filter, wanted, now)
    if not filter.conditions or not enumerate_allowed:
        return Scope(wanted, where, now, None)
    rows = session.rows(f"SELECT m.num FROM memory m WHERE {where.sql}", where.params)
    return Scope(wanted, where, now, tuple(row[0] for row in rows))
