"""Screens every text on its way into the store, whichever statement writes it.

Each statement is parsed once to learn which parameter goes into which column. Parameters of a WHERE are not written
and stay as they are. The `Cleaner` decides which columns are screened, and for what.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeAlias

from .database import Bounds, Row, Session, Sql

__all__ = ["Cleaner", "ScreenedSession", "Screener", "written_columns"]

_Clean: TypeAlias = Callable[[str], str]
_Plan: TypeAlias = tuple[tuple[int, _Clean], ...]
# The function that cleans texts for a column of a table; None if they are stored as they are.
Cleaner = Callable[[str, str], _Clean | None]

_INSERT = re.compile(r"\s*(?:/\*.*?\*/\s*)?INSERT\s+(?:OR\s+\w+\s+)?INTO\s+(\w+)\s*\(([^)]*)\)", re.IGNORECASE)
_UPDATE = re.compile(r"\s*(?:/\*.*?\*/\s*)?UPDATE\s+(\w+)\s+SET\s", re.IGNORECASE)
_INSTEAD = re.compile(r"\bON\s+CONFLICT\b.*?(?:\bDO\s+UPDATE\s+SET\s|\Z)", re.IGNORECASE | re.DOTALL)
_TOKEN = re.compile(r"'(?:[^']|'')*'|[?(),]|[^\s'?(),]+")
_END = frozenset(("WHERE", "RETURNING", "FROM"))
_MOST_STATEMENTS = 2_000


def written_columns(sql: str) -> tuple[str, tuple[tuple[int, str], ...]]:
    """The table that a statement writes, and the place and column of each parameter that is written."""
    if found := _UPDATE.match(sql):
        return found[1], tuple(_assigned(sql[found.end() :], 0))
    if found := _INSERT.match(sql):
        values, *instead = _INSTEAD.split(sql[found.end() :], maxsplit=1)
        columns = [name.strip() for name in found[2].split(",")]
        given = tuple(_listed(values, columns))
        return found[1], (*given, *_assigned("".join(instead), values.count("?")))
    return "", ()


def _items(text: str, level: int) -> Iterator[tuple[int, str]]:
    """The tokens of a list at a bracket depth of `level`, each with the number of its item."""
    depth = item = 0
    for token in _TOKEN.findall(text):
        if depth == 0 and token.upper() in _END:
            return
        depth += (token == "(") - (token == ")")
        if token == "," and depth == level:
            item += 1
        elif depth >= level:
            yield item, token


def _listed(values: str, columns: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Parameters of an INSERT: inside the brackets of VALUES, or in a SELECT."""
    level = 1 if values.lstrip().upper().startswith("VALUES") else 0
    marks = (item for item, token in _items(values, level) if token == "?")
    yield from ((place, columns[item % len(columns)]) for place, item in enumerate(marks))


def _assigned(text: str, first: int) -> Iterator[tuple[int, str]]:
    """Parameters in the assignments of an UPDATE, each with its column; places count from `first`."""
    columns: dict[int, str] = {}
    for item, token in _items(text, 0):
        column = columns.setdefault(item, token.partition("=")[0])
        if token == "?":
            yield first, column
            first += 1


class Screener:
    """The cleaning plans of statements and tables, cached."""

    def __init__(self, cleaner: Cleaner) -> None:
        self._cleaner = cleaner
        self._plans: dict[str | tuple[str, ...], _Plan] = {}

    def statement(self, sql: str) -> _Plan:
        """How to clean the parameters of a statement."""
        plan = self._plans.get(sql)
        return self._remember(sql, *written_columns(sql)) if plan is None else plan

    def rows(self, table: str, columns: Sequence[str]) -> _Plan:
        """How to clean whole rows of a table."""
        key = (table, *columns)
        plan = self._plans.get(key)
        return self._remember(key, table, enumerate(columns)) if plan is None else plan

    def _remember(self, key: str | tuple[str, ...], table: str, columns: Iterable[tuple[int, str]]) -> _Plan:
        if len(self._plans) >= _MOST_STATEMENTS:
            self._plans.clear()
        plan = tuple((place, clean) for place, column in columns if (clean := self._cleaner(table, column)))
        self._plans[key] = plan
        return plan


class ScreenedSession:
    """A transaction whose writes are screened; see `Session.as_is` for rows that already are."""

    def __init__(self, session: Session, screener: Screener) -> None:
        self.as_is = session
        self.bounds: Bounds | None = session.bounds
        self._screener = screener

    def rows(self, sql: str, params: Sequence[Sql] = ()) -> list[Row]:
        return self.as_is.rows(sql, _cleaned(params, self._screener.statement(sql)))

    def run(self, sql: str, params: Sequence[Sql] = ()) -> None:
        self.as_is.run(sql, _cleaned(params, self._screener.statement(sql)))

    def run_many(self, sql: str, params: Iterable[Sequence[Sql]]) -> None:
        plan = self._screener.statement(sql)
        self.as_is.run_many(sql, [_cleaned(row, plan) for row in params] if plan else params)

    def copy(self, table: str, columns: Sequence[str], rows: Sequence[Sequence[Sql]]) -> None:
        plan = self._screener.rows(table, columns)
        self.as_is.copy(table, columns, [_cleaned(row, plan) for row in rows] if plan else rows)

    def changed(self) -> int:
        return self.as_is.changed()


def _cleaned(row: Sequence[Sql], plan: _Plan) -> Sequence[Sql]:
    if not plan:
        return row
    cleaned = list(row)
    for place, clean in plan:
        if isinstance(text := cleaned[place], str) and text:
            # A plain str: drivers look at the exact type.
            cleaned[place] = str(clean(text))
    return cleaned
