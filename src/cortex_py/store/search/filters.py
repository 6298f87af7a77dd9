"""A compiled filter as SQL: one condition that lists, both retrievers and the final read share.

Globs are resolved against the values that the store really holds, so that the same pattern means
the same on every engine and no pattern reaches the engine's own operators.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from ..clock import to_micros
from ..records import LIVE_STATUSES
from .conditions import GROUNDED_WORDS, Condition, Filter, Value
from .database import Database, Session, Sql, marks
from .globs import glob_literal_prefix, glob_matches, has_glob
from .placement import in_spaces

__all__ = ["Names", "Where", "WhereCompiler"]

_COLUMNS = {
    "namespace": "namespace",
    "category": "category",
    "kind": "kind",
    "role": "role",
    "user": "user_id",
    "agent": "agent_id",
}
_BY_NUMBER = ("tag", "entity")
_GLOB_COLUMNS = {"source": ("source",), "path": ("path", "source")}


@dataclass(frozen=True, slots=True)
class Names:
    """How a name is looked up: its words in the text index, and the keys under which entities may have it."""

    words: Callable[[str], Sequence[str]]
    keys: Callable[[str], Sequence[str]]


@dataclass(frozen=True, slots=True)
class Where:
    """A condition on `memory m`, with its parameters; it names the spaces, which are told here once more."""

    sql: str
    params: tuple[Sql, ...]
    spaces: tuple[str, ...]
    # Whether records can be had by their numbers from another table, which are fewer than all of the spaces'.
    by_number: bool = False
    # If tags are all that is asked for: the statement, with its parameters, that tells who has them, dead or alive.
    tagged: tuple[str, tuple[Sql, ...]] | None = None


@dataclass(slots=True)
class _Part:
    sql: str
    params: list[Sql]


class WhereCompiler:
    """Turns a filter into SQL within one session, because globs look at stored values."""

    def __init__(
        self,
        database: Database,
        session: Session,
        names: Names,
        readable: Callable[[str], bool] = lambda _space: True,
    ) -> None:
        """Projects that are not `readable` are as if they did not exist."""
        self._database = database
        self._session = session
        self._names = names
        self._readable = readable

    def compile(self, filter: Filter, spaces: Sequence[str], now: int, here: str | None) -> Where:
        """`here` is the git branch on which the caller stands: records confined to another are not seen."""
        if not spaces:
            # An empty list is no SQL on every engine.
            return Where("FALSE", (), ())
        parts = [
            _Part(in_spaces("m.space", spaces), list(spaces)),
            _Part("(m.confinement IS NULL OR m.git_branch = ?)", [here]),
        ]
        if not filter.having("status"):
            parts.append(_Part(f"m.status IN ({marks(len(LIVE_STATUSES))})", list(LIVE_STATUSES)))
        if not _asks_for_the_dead(filter):
            parts.append(_Part("(m.expires_at IS NULL OR m.expires_at > ?)", [now]))
        parts += [self._condition(condition, spaces) for condition in filter.conditions]
        params = tuple(value for part in parts for value in part.params)
        by_number = any(one.key in _BY_NUMBER and not one.negated for one in filter.conditions)
        return Where(
            " AND ".join(part.sql for part in parts), params, tuple(spaces), by_number, self._by_tags(filter, spaces)
        )

    def _by_tags(self, filter: Filter, spaces: Sequence[str]) -> tuple[str, tuple[Sql, ...]] | None:
        conditions = filter.conditions
        if not conditions or any(one.key != "tag" or one.negated for one in conditions):
            return None
        having = [self._having(one.values, spaces) for one in conditions]
        return " INTERSECT ".join(part.sql for part in having), tuple(v for part in having for v in part.params)

    def _condition(self, condition: Condition, spaces: Sequence[str]) -> _Part:
        part = self._positive(condition, spaces)
        # COALESCE: a record without the field is not one that has the unwanted value.
        return _Part(f"NOT COALESCE({part.sql}, FALSE)", part.params) if condition.negated else part

    def _positive(self, condition: Condition, spaces: Sequence[str]) -> _Part:
        key, values = condition.key, condition.values
        if key in ("since", "before"):
            sign = ">=" if key == "since" else "<"
            moments = [to_micros(v) for v in values if isinstance(v, datetime)]
            return _any_of([_Part(f"m.created_at {sign} ?", [moment]) for moment in moments])
        texts = [str(v) for v in values]
        if key == "status":
            return _in("m.status", texts)
        if key == "grounded":
            return _any_of([_grounded(text) for text in texts])
        if key in _COLUMNS:
            return _in(f"m.{_COLUMNS[key]}", texts)
        if key in _GLOB_COLUMNS:
            return _any_of([self._globbed(column, texts, spaces) for column in _GLOB_COLUMNS[key]])
        if key == "tag":
            having = self._having(values, spaces)
            return _Part(f"m.num IN ({having.sql})", having.params)
        if key == "project":
            return _in("m.project_id", self._projects(texts))
        if key == "branch":
            return self._branched(texts, spaces)
        return _any_of([self._mentioning(text, spaces) for text in texts])

    def _globbed(self, column: str, patterns: Sequence[str], spaces: Sequence[str]) -> _Part:
        return _in(f"m.{column}", self._expand("memory", column, patterns, spaces))

    def _having(self, patterns: Sequence[Value], spaces: Sequence[str]) -> _Part:
        """The numbers of the records that have one of the tags."""
        tags = self._expand("tag", "tag", [str(pattern).casefold() for pattern in patterns], spaces)
        found = _in("t.tag", tags)
        return _Part(
            f"SELECT t.num FROM tag t WHERE {in_spaces('t.space', spaces)} AND {found.sql}", [*spaces, *found.params]
        )

    def _branched(self, patterns: Sequence[str], spaces: Sequence[str]) -> _Part:
        """A git branch by name, or a line of work by id, topic or linked git branch."""
        git = self._expand("memory", "git_branch", patterns, spaces)
        lines = self._session.rows(
            f"SELECT id, topic, git_branch FROM branch WHERE project_id IN ({marks(len(spaces))})", tuple(spaces)
        )
        ids = [row[0] for row in lines if any(_names(pattern, row) for pattern in patterns)]
        return _any_of([_in("m.git_branch", git), _in("m.branch_id", ids)])

    def _projects(self, patterns: Sequence[str]) -> list[str]:
        rows = self._session.rows("SELECT id, name, remote, root FROM project")
        return [row[0] for row in rows if self._readable(row[0]) and any(_names(pattern, row) for pattern in patterns)]

    def projects(self, values: Sequence[Value]) -> list[str]:
        """The ids of the projects that a `project:` condition names."""
        return self._projects([str(value) for value in values])

    def _mentioning(self, name: str, spaces: Sequence[str]) -> _Part:
        """Records that mention an entity of that id, name or other spelling, or hold all words of the name."""
        keys, words = self._names.keys(name), self._names.words(name)
        known = marks(len(keys))
        parts = [
            _Part(
                "m.num IN (SELECT n.num FROM mention n JOIN entity e ON e.space = n.space AND e.id = n.entity_id "
                f"WHERE {in_spaces('n.space', spaces)} AND (e.id = ? OR e.key IN ({known}) OR e.id IN "
                "(SELECT a.entity_id FROM entity_alias a WHERE a.space = n.space "
                f"AND {in_spaces('a.space', spaces)} AND a.key IN ({known}))))",
                [*spaces, name.strip(), *keys, *spaces, *keys],
            )
        ]
        if words:
            parts.append(_Part(*self._database.text_condition(self._session, spaces, words)))
        return _any_of(parts)

    def _expand(self, table: str, column: str, patterns: Sequence[str], spaces: Sequence[str]) -> list[str]:
        found: dict[str, None] = {}
        for pattern in patterns:
            if not has_glob(pattern):
                found[pattern] = None
                continue
            prefix = glob_literal_prefix(pattern)
            # "\U0010ffff" sorts after every text that begins with the prefix.
            rows = self._session.rows(
                f"SELECT DISTINCT {column} FROM {table} WHERE space IN ({marks(len(spaces))}) "
                f"AND {column} >= ? AND {column} < ?",
                (*spaces, prefix, prefix + "\U0010ffff"),
            )
            found.update((row[0], None) for row in rows if glob_matches(pattern, row[0]))
        return list(found)


def _names(pattern: str, fields: Sequence[str | None]) -> bool:
    wanted = pattern.casefold()
    matches = glob_matches if has_glob(pattern) else str.__eq__
    return any(field is not None and matches(wanted, field.casefold()) for field in fields)


def _grounded(text: str) -> _Part:
    """A record by how far it was found grounded; one that nothing checked is in no range."""
    if text in GROUNDED_WORDS:
        bounds = GROUNDED_WORDS[text]
        if bounds is None:
            return _Part("m.grounding IS NULL", [])
        return _Part("(m.grounding >= ? AND m.grounding < ?)", list(bounds))
    number = text.lstrip("<>=")
    return _Part(f"m.grounding {text[: len(text) - len(number)] or '='} ?", [float(number)])


def _asks_for_the_dead(filter: Filter) -> bool:
    return any("tombstoned" in condition.values for condition in filter.having("status"))


def _in(column: str, values: Sequence[str]) -> _Part:
    if not values:
        return _Part("FALSE", [])
    return _Part(f"{column} IN ({marks(len(values))})", list(values))


def _any_of(parts: Sequence[_Part]) -> _Part:
    if not parts:
        return _Part("FALSE", [])
    return _Part(
        "(" + " OR ".join(part.sql for part in parts) + ")", [value for part in parts for value in part.params]
    )
