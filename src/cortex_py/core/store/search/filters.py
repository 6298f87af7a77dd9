"""Filters: a conjunction of conditions, and the one SQL condition that lists, retrieval and the final read share.

The values inside one condition are alternatives. Globs are resolved against the values in the store, so that a pattern
means the same on every engine and never reaches the engine's own operators.

In a glob, `*` stays inside a path segment, `**` crosses segments and `?` is one character. `**/` at the start of a
segment also matches no folder at all, so `src/**/*.py` matches `src/a.py`. There is no escape. A glob matches the whole
text, with case, and takes at most quadratic time for any pattern.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import lru_cache, partial
from itertools import product
from typing import Literal

from ...clock import to_micros
from ...records import LIVE_STATUSES, Kind, files_space, kind_space
from ..database import Database, Session, Sql, column, in_spaces, marks

__all__ = [
    "EVERYTHING", "GROUNDED_WORDS", "ByTime", "Condition", "Filter", "Key", "Naming", "Scope", "Value", "View", "Where",
    "files_space", "glob_literal_prefix", "glob_matches", "glob_to_regex", "has_glob", "open_scope",
]  # fmt: skip


Key = Literal[
    "namespace", "tag", "since", "before", "source", "project", "branch", "path", "status", "entity", "category",
    "kind", "role", "user", "agent", "grounded", "personal",
]  # fmt: skip

# The documented ranges of a grounding score: inclusive lower and exclusive upper bound.
GROUNDED_WORDS: dict[str, tuple[float, float] | None] = {
    "accept": (0.7, 2.0),
    "warn": (0.3, 0.7),
    "reject": (0.0, 0.3),
    "none": None,
}

# A text may be a glob if its key allows it.
Value = str | datetime


@dataclass(frozen=True, slots=True)
class Condition:
    key: Key
    values: tuple[Value, ...]
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Filter:
    conditions: tuple[Condition, ...] = ()

    def having(self, key: Key) -> tuple[Condition, ...]:
        return tuple(c for c in self.conditions if c.key == key)

    def plus(self, *conditions: Condition) -> Filter:
        return Filter(self.conditions + conditions)


EVERYTHING = Filter()

_SIGN = re.compile(r"[*?]")
_FOLDERS = re.compile(r"(?:(?<=/)|\A)\*{2,}/")
_TOKEN = re.compile(r"(?P<deep>\*{2,})|(?P<star>\*)|(?P<one>\?)|(?P<text>[^*?]+)")


def has_glob(text: str) -> bool:
    return _SIGN.search(text) is not None


def glob_literal_prefix(pattern: str) -> str:
    """The text that every match begins with."""
    sign = _SIGN.search(pattern)
    return pattern[: sign.start()] if sign else pattern


def glob_matches(pattern: str, text: str) -> bool:
    return _compiled(pattern).match(text) is not None


def glob_to_regex(pattern: str) -> str:
    """A regular expression that matches the same whole texts as the glob.

    Every wildcard but the last of its kind commits to its first match (an atomic group): a later one would only leave
    less text for what follows. So a hostile pattern cannot make the search explode.
    """
    first, *deeper = _chunks(pattern)
    lead, chunk = first
    if not deeper:
        return rf"(?s:{_last(lead, chunk)})\Z"
    middle = "".join(f"(?>{_lazy(lead)}{_inner(chunk)})" for lead, chunk in deeper[:-1])
    lead, last = deeper[-1]
    return rf"(?s:{_inner(chunk)}{middle}{_last(lead, last)})\Z"


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(glob_to_regex(pattern))


def _chunks(pattern: str) -> list[tuple[str, list[str]]]:
    """The pattern cut at its `**`: each with the pieces between single stars up to the next. The first has none."""
    chunks: list[tuple[str, list[str]]] = [("", [""])]
    position = 0
    while position < len(pattern):
        folders = _FOLDERS.match(pattern, position)
        token = folders or _TOKEN.match(pattern, position)
        assert token is not None, "the tokens cover every character"
        pieces = chunks[-1][1]
        if folders:
            chunks.append((r"(?:.*/)?", [""]))
        elif token["deep"]:
            chunks.append((r".*", [""]))
        elif token["star"]:
            pieces.append("")
        else:
            pieces[-1] += "[^/]" if token["one"] else re.escape(token["text"])
        position = token.end()
    return chunks


def _inner(pieces: list[str]) -> str:
    return pieces[0] + "".join(f"(?>[^/]*?{piece})" for piece in pieces[1:])


def _last(lead: str, pieces: list[str]) -> str:
    if len(pieces) == 1:
        return lead + pieces[0]
    return f"{lead}{_inner(pieces[:-1])}[^/]*{pieces[-1]}"


def _lazy(lead: str) -> str:
    return {r"(?:.*/)?": r"(?:.*?/)??", r".*": r".*?"}[lead]


_COLUMNS = {
    **{name: name for name in ("namespace", "category", "kind", "role")},
    "user": "user_id",
    "agent": "agent_id",
}
_BY_NUMBER = ("tag", "entity")
# Each is a part of one statement.
_PARTS_MOST = 32
_GLOB_COLUMNS = {"source": ("source",), "path": ("path", "source")}


@dataclass(frozen=True, slots=True)
class Naming:
    """How a name is looked up: its words in the text index, and the keys that entities of that name may have."""

    words: Callable[[str], Sequence[str]]
    keys: Callable[[str], Sequence[str]]


@dataclass(frozen=True, slots=True)
class ByTime:
    """A condition split into parts. Each part fixes the value of some columns, and an index lists its records by time.

    `sql` is what else the records must meet.
    """

    values: Mapping[str, Sequence[str]]
    sql: str
    params: tuple[Sql, ...]

    def parts(self) -> Iterator[tuple[str, tuple[Sql, ...]]]:
        """The condition of each part, with its parameters. No record is in two of them."""
        sql = " AND ".join((*(f"m.{column} = ?" for column in self.values), self.sql))
        for values in product(*self.values.values()):
            yield sql, (*values, *self.params)


@dataclass(frozen=True, slots=True)
class Where:
    """A condition on `memory m` with its parameters. It includes the spaces, which are repeated here."""

    sql: str
    params: tuple[Sql, ...]
    spaces: tuple[str, ...]
    # Whether another table gives the numbers of the records, which are fewer than those of the spaces.
    by_number: bool = False
    # For a filter of tags only: the statement that lists the numbers of the records that have them, deleted or not.
    tagged: tuple[str, tuple[Sql, ...]] | None = None
    # None if the filter leaves few records, which an index finds in another order.
    by_time: ByTime | None = None


@dataclass(slots=True)
class _Part:
    sql: str
    params: list[Sql]


class WhereCompiler:
    """Compiles a filter to SQL within a session, because globs are resolved against stored values."""

    def __init__(self, database: Database, session: Session, names: Naming, readable: Callable[[str], bool]) -> None:
        """Projects that are not `readable` do not exist for the filter."""
        self._database = database
        self._session = session
        self._names = names
        self._readable = readable

    def compile(self, filter: Filter, spaces: Sequence[str], now: int, here: str | None) -> Where:
        """`here` is the caller's git branch: records confined to another one are not visible."""
        if not spaces:
            # An empty list is not valid SQL on every engine.
            return Where("FALSE", (), ())
        by_time = _values_by_time(filter, spaces)
        by_number = any(one.key in _BY_NUMBER and not one.negated for one in filter.conditions)
        # With the `+`, SQLite looks up the numbers; without it, it scans the whole space and looks for each among them.
        parts = [_Part(in_spaces("+m.space" if by_number else "m.space", spaces), list(spaces))]
        if not filter.having("status"):
            # With the `+`, SQLite uses the index of another condition, which leaves fewer records than the status.
            status = "m.status" if by_time else "+m.status"
            parts.append(_Part(f"{status} IN ({marks(len(LIVE_STATUSES))})", list(LIVE_STATUSES)))
        parts += [self._condition(one, spaces) for one in filter.conditions if one.key in by_time]
        rest = [_Part("(m.confinement IS NULL OR m.git_branch = ?)", [here])]
        if not _asks_for_the_dead(filter):
            rest.append(_Part("(m.expires_at IS NULL OR m.expires_at > ?)", [now]))
        rest += [self._condition(one, spaces) for one in filter.conditions if one.key not in by_time]
        sql, params = _all_of([*parts, *rest])
        by_tags = self._by_tags(filter, spaces)
        return Where(
            sql, params, tuple(spaces), by_number, by_tags, ByTime(by_time, *_all_of(rest)) if by_time else None
        )

    def _by_tags(self, filter: Filter, spaces: Sequence[str]) -> tuple[str, tuple[Sql, ...]] | None:
        conditions = filter.conditions
        if not conditions or any(one.key != "tag" or one.negated for one in conditions):
            return None
        having = [self._having(one.values, spaces) for one in conditions]
        return " INTERSECT ".join(part.sql for part in having), tuple(v for part in having for v in part.params)

    def meeting(self, condition: Condition, space: str, spaces: Sequence[str]) -> tuple[str, tuple[Sql, ...]]:
        """The statement that lists the numbers of the records of a space that have one of the values of a condition.

        The space is one of those that the filter is for.
        """
        if condition.key == "tag":
            having = self._having(condition.values, (space,))
            return having.sql, tuple(having.params)
        part = self._positive(condition, spaces)
        # Otherwise SQLite scans the whole space and looks each record up in the list.
        own = "+m.space" if condition.key in _BY_NUMBER else "m.space"
        return f"SELECT m.num FROM memory m WHERE {own} = ? AND {part.sql}", (space, *part.params)

    def _condition(self, condition: Condition, spaces: Sequence[str]) -> _Part:
        part = self._positive(condition, spaces)
        # COALESCE: a record without the field does not have the unwanted value.
        return _Part(f"NOT COALESCE({part.sql}, FALSE)", part.params) if condition.negated else part

    def _positive(self, condition: Condition, spaces: Sequence[str]) -> _Part:
        key, values = condition.key, condition.values
        if key in ("since", "before"):
            sign = ">=" if key == "since" else "<"
            moments = [to_micros(v) for v in values if isinstance(v, datetime)]
            return _any_of([_Part(f"m.created_at {sign} ?", [moment]) for moment in moments])
        texts = [str(v) for v in values]
        if key in _COLUMNS or key == "status":
            return _in(f"m.{_COLUMNS.get(key, key)}", texts)
        if key in ("grounded", "personal"):
            return _any_of([_grounded(text) if key == "grounded" else _personal(text) for text in texts])
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
        """Records that mention an entity of that id, name or alias, or contain all words of the name."""
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


def _values_by_time(filter: Filter, spaces: Sequence[str]) -> dict[str, Sequence[str]]:
    """The columns of `ByTime`, with the values of each that a filter allows.

    Empty if the filter names other columns: few records have their values, and another index finds those.
    """
    values: dict[str, Sequence[str]] = {"space": spaces, "status": LIVE_STATUSES}
    for one in filter.conditions:
        if one.key in ("since", "before"):
            continue
        if one.key not in ("namespace", "status") or one.negated or len(filter.having(one.key)) > 1:
            return {}
        values[one.key] = tuple(dict.fromkeys(str(value) for value in one.values))
    return values if math.prod(map(len, values.values())) <= _PARTS_MOST else {}


def _names(pattern: str, fields: Sequence[str | None]) -> bool:
    wanted = pattern.casefold()
    matches = glob_matches if has_glob(pattern) else str.__eq__
    return any(field is not None and matches(wanted, field.casefold()) for field in fields)


def _grounded(text: str) -> _Part:
    """Records by grounding score; one that was never checked is in no range."""
    if text in GROUNDED_WORDS:
        bounds = GROUNDED_WORDS[text]
        if bounds is None:
            return _Part("m.grounding IS NULL", [])
        return _Part("(m.grounding >= ? AND m.grounding < ?)", list(bounds))
    number = text.lstrip("<>=")
    return _Part(f"m.grounding {text[: len(text) - len(number)] or '='} ?", [float(number)])


def _personal(kind: str) -> _Part:
    """Records with a kind of personal data, or with any. The column is a JSON list of kinds and counts."""
    if kind == "any":
        return _Part("m.personal <> '[]'", [])
    return _Part("m.personal LIKE ?", [f'%"{kind}"%'])


def _asks_for_the_dead(filter: Filter) -> bool:
    return any("tombstoned" in condition.values for condition in filter.having("status"))


def _in(column: str, values: Sequence[str]) -> _Part:
    if not values:
        return _Part("FALSE", [])
    return _Part(f"{column} IN ({marks(len(values))})", list(values))


def _all_of(parts: Sequence[_Part]) -> tuple[str, tuple[Sql, ...]]:
    return " AND ".join(part.sql for part in parts), tuple(value for part in parts for value in part.params)


def _any_of(parts: Sequence[_Part]) -> _Part:
    if not parts:
        return _Part("FALSE", [])
    return _Part(
        "(" + " OR ".join(part.sql for part in parts) + ")", [value for part in parts for value in part.params]
    )


@dataclass(frozen=True, slots=True)
class View:
    """The caller's view: the spaces, the moment, the git branch, and how near lines of work are."""

    spaces: tuple[str, ...]
    now: int
    here: str | None = None
    near: Mapping[str, float] = field(default_factory=dict)
    kind: Kind = "note"


@dataclass(frozen=True, slots=True)
class Scope:
    """What a query may see. Not `filtered`: every live record of the spaces that is not confined elsewhere."""

    spaces: tuple[str, ...]
    where: Where
    now: int
    filtered: bool
    here: str | None
    near: Mapping[str, float]
    kind: Kind
    # The same condition for one space, which an engine can plan better.
    only: Callable[[str], Where]
    # The conditions one by one, if they concern live records; None if only the statement says what is visible.
    filter: Filter | None
    # The statement that lists the records of a space that meet a condition, negated or not, deleted or not.
    meeting: Callable[[Condition, str], tuple[str, tuple[Sql, ...]]]

    def among(self, ids: Sequence[str]) -> Scope:
        """The same for counts, and only of the records with some ids."""
        where = Where(
            f"{self.where.sql} AND m.id IN ({marks(len(ids))})", (*self.where.params, *ids), self.where.spaces
        )
        return replace(self, where=where, filtered=True)

    def allowed(self, session: Session, space: str) -> list[int]:
        """Numbers of the visible records of a space."""
        own = "+m.space" if self.where.by_number else "m.space"
        return column(
            session, f"SELECT m.num FROM memory m WHERE {own} = ? AND {self.where.sql}", (space, *self.where.params)
        )


def open_scope(
    database: Database, session: Session, filter: Filter, view: View, names: Naming, readable: Callable[[str], bool]
) -> Scope:
    """Compile a filter. Spaces and projects that are not `readable` are left out."""
    compiler = WhereCompiler(database, session, names, readable)
    wanted = tuple(space for space in view.spaces if readable(space))
    for condition in filter.having("project"):
        if not condition.negated:
            # Named projects are searched from any project; unknown ones match nothing.
            named = compiler.projects(condition.values)
            wanted = tuple(kind_space(one, view.kind) for one in named) or wanted
    where = compiler.compile(filter, wanted, view.now, view.here)

    def only(space: str) -> Where:
        return compiler.compile(filter, (space,), view.now, view.here) if len(wanted) > 1 else where

    by_status = bool(filter.having("status"))
    return Scope(
        wanted, where, view.now, bool(filter.conditions), view.here, view.near, view.kind, only,
        None if by_status else filter, partial(compiler.meeting, spaces=wanted),
    )  # fmt: skip
