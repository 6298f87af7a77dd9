"""Saved prompts and templates: all their versions, and how often they were used."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict

from ...clock import from_micros
from ...records import Domain, Saved, SavedKind, Variable
from ..database import Row, Session, Sql, Values, column, marks, replacing, rows_among

__all__ = ["SavedTable", "count_saved_change"]


_JOIN = "LEFT JOIN saved_use u ON u.space = s.space AND u.kind = s.kind AND u.name = s.name"
_SAVED = "s.kind, s.name, s.domain, s.description, s.tags, s.variables, s.redactions, s.version"
_TIMES = "s.created_at, s.updated_at, u.uses, u.used_at"
_VERSIONS = (
    "SELECT s.kind, s.name, s.domain, v.description, v.tags, v.variables, v.redactions, v.version, "
    f"s.created_at, v.saved_at, u.uses, u.used_at, v.content FROM saved s {_JOIN} "
    "JOIN saved_version v ON v.space = s.space AND v.kind = s.kind AND v.name = s.name"
)
_KEY = "s.space = ? AND s.kind = ? AND s.name = ?"
# A statement takes some 30,000 parameters; the files of a project may have more names.
_NAMES_AT_ONCE = 1_000


class SavedTable:
    def put(self, session: Session, space: str, saved: Saved, at: int) -> int:
        """Save a text as the next version under its name; the number of that version."""
        key = {"space": space, "kind": saved.kind, "name": saved.name}
        shared = {
            "description": saved.description,
            "tags": _json(saved.tags),
            "variables": _json([asdict(variable) for variable in saved.variables]),
            "redactions": _json(saved.redactions),
        }
        first = {"domain": saved.domain, "version": 1, "created_at": at, "updated_at": at}
        again = f"{replacing('saved', *shared, 'updated_at')}, version = saved.version + 1 RETURNING version"
        ((version,),) = session.insert("saved", {**key, **first, **shared}, again)
        session.insert("saved_version", {**key, "version": version, **shared, "saved_at": at, "content": saved.content})
        self._untag(session, (space, saved.kind, saved.name))
        tags = dict.fromkeys(tag.casefold() for tag in saved.tags)
        rows = [(space, saved.kind, tag, saved.name) for tag in tags]
        session.insert_many("saved_tag", ("space", "kind", "tag", "name"), rows)
        count_saved_change(session, space, saved.kind)
        return int(version)

    def get(self, session: Session, space: str, kind: SavedKind, name: str, version: int | None = None) -> Saved | None:
        """A text as it is now, or as it was at a version."""
        rows = session.rows(
            f"{_VERSIONS} AND v.version = COALESCE(?, s.version) WHERE {_KEY}", (version, space, kind, name)
        )
        return _saved(rows[0], rows[0][12]) if rows else None

    def versions(self, session: Session, space: str, kind: SavedKind, name: str) -> list[Saved]:
        """All versions, oldest first."""
        rows = session.rows(f"{_VERSIONS} WHERE {_KEY} ORDER BY v.version", (space, kind, name))
        return [_saved(row, row[12]) for row in rows]

    def names(self, session: Session, space: str, kind: SavedKind, tags: Sequence[str], limit: int) -> list[str]:
        """The first names that have all the tags."""
        source, params = _tagged(space, kind, tags)
        return column(session, f"SELECT s.name FROM {source} ORDER BY s.name LIMIT ?", (*params, limit))

    def count(self, session: Session, space: str, kind: SavedKind, tags: Sequence[str]) -> int:
        source, params = _tagged(space, kind, tags)
        return int(session.rows(f"SELECT count(*) FROM {source}", params)[0][0])

    def all(self, session: Session, space: str, kind: SavedKind) -> list[Saved]:
        """Every text by name, without its content."""
        rows = session.rows(
            f"SELECT {_SAVED}, {_TIMES} FROM saved s {_JOIN} WHERE s.space = ? AND s.kind = ? ORDER BY s.name",
            (space, kind),
        )
        return [_saved(row, "") for row in rows]

    def by_names(self, session: Session, space: str, kind: SavedKind, names: Sequence[str]) -> dict[str, Saved]:
        """The texts of these names, without their contents."""
        rows = session.rows(
            f"SELECT {_SAVED}, {_TIMES} FROM saved s {_JOIN} "
            f"WHERE s.space = ? AND s.kind = ? AND s.name IN ({marks(len(names))})",
            (space, kind, *names),
        )
        return {row[1]: _saved(row, "") for row in rows}

    def taken_names(self, session: Session, space: str, kind: SavedKind, names: Sequence[str]) -> set[str]:
        """The names that are taken."""
        statement = "SELECT name FROM saved WHERE space = ? AND kind = ? AND name IN ({})"
        return {row[0] for row in rows_among(session, statement, (space, kind), names, size=_NAMES_AT_ONCE)}

    def remove(self, session: Session, space: str, kind: SavedKind, name: str) -> None:
        """Remove a text with all its versions."""
        key = (space, kind, name)
        for table in ("saved", "saved_version", "saved_use"):
            session.run(f"DELETE FROM {table} WHERE space = ? AND kind = ? AND name = ?", key)
        self._untag(session, key)
        count_saved_change(session, space, kind)

    def used(self, session: Session, space: str, kind: SavedKind, name: str, at: int) -> None:
        row: Values = {"space": space, "kind": kind, "name": name, "uses": 1, "used_at": at}
        session.insert("saved_use", row, f"{replacing('saved_use', 'used_at')}, uses = saved_use.uses + 1")

    def uses(self, session: Session, space: str, kind: SavedKind) -> dict[str, tuple[int, int]]:
        """How often each name was used, and when last; for texts in files."""
        rows = session.rows("SELECT name, uses, used_at FROM saved_use WHERE space = ? AND kind = ?", (space, kind))
        return {row[0]: (row[1], row[2]) for row in rows}

    def changes(self, session: Session, spaces: Sequence[str], kind: SavedKind) -> int:
        """A number that grows with every change in one of the spaces."""
        rows = session.rows(
            f"SELECT COALESCE(sum(changes), 0) FROM saved_change WHERE kind = ? AND space IN ({marks(len(spaces))})",
            (kind, *spaces),
        )
        return int(rows[0][0])

    def _untag(self, session: Session, key: tuple[str, SavedKind, str]) -> None:
        session.run("DELETE FROM saved_tag WHERE space = ? AND kind = ? AND name = ?", key)


def count_saved_change(session: Session, space: str, kind: str) -> None:
    """Count a change of the texts of a kind; other processes watch this counter."""
    more = "ON CONFLICT (space, kind) DO UPDATE SET changes = saved_change.changes + 1"
    session.insert("saved_change", {"space": space, "kind": kind, "changes": 1}, more)


def _tagged(space: str, kind: SavedKind, tags: Sequence[str]) -> tuple[str, list[Sql]]:
    """The FROM and WHERE of names `s` that have all the tags."""
    if not tags:
        return "saved s WHERE s.space = ? AND s.kind = ?", [space, kind]
    first, *others = [tag.casefold() for tag in tags]
    source, params = "saved_tag s WHERE s.space = ? AND s.kind = ? AND s.tag = ?", [space, kind, first]
    for tag in others:
        source += (
            " AND EXISTS (SELECT 1 FROM saved_tag t WHERE t.space = s.space AND t.kind = s.kind AND t.tag = ? "
            "AND t.name = s.name)"
        )
        params.append(tag)
    return source, [*params]


def _saved(row: Row, content: str) -> Saved:
    domain: Domain = row[2]
    return Saved(
        kind=row[0],
        name=row[1],
        domain=domain,
        content=content,
        description=row[3],
        tags=tuple(json.loads(row[4])),
        variables=tuple(Variable(**{**one, "choices": tuple(one["choices"])}) for one in json.loads(row[5])),
        redactions=tuple(json.loads(row[6])),
        version=row[7],
        created_at=from_micros(row[8]),
        updated_at=from_micros(row[9]),
        uses=row[10] or 0,
        used_at=from_micros(row[11]) if row[11] is not None else None,
    )


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
