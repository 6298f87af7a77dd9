"""What the index of a project holds, asked for by name: rows as plain values, in an order that never changes."""

from __future__ import annotations

import json

from ..worktree.dependency import Dependency, Stated
from ..worktree.imports import Import
from ..worktree.settings_keys import Setting
from .found import ChangeRow, Definition
from .sqlite_index import IndexFile

__all__ = ["IndexReader"]

_DEFINITIONS = (
    "SELECT f.path, s.name, s.qualified, s.kind, s.line, s.end_line FROM symbol s JOIN file f ON f.id = s.file"
)
# Numbers tell only in which order something was read.
_NEWEST, _ORDER = "JOIN revision r ON r.num = c.revision", "ORDER BY r.time DESC, r.id, c.path"
_CHANGES = "SELECT c.path, c.old_path, c.status, c.revision FROM change c"


class IndexReader:
    def __init__(self, file: IndexFile) -> None:
        self._file = file

    def marks(self) -> dict[str, str]:
        """Every file with what tells one content of it from another."""
        return dict(self._file.rows("SELECT path, mark FROM file"))

    def states(self) -> dict[str, str]:
        """Every file by path, with whether it was read."""
        return dict(self._file.rows("SELECT path, state FROM file ORDER BY path"))

    def named(self, name: str) -> list[str]:
        """The files of a name, in lower case, wherever they lie."""
        return [path for (path,) in self._file.rows("SELECT path FROM file WHERE name = ? ORDER BY path", (name,))]

    def definitions(self, lower: str, most: int) -> list[Definition]:
        rows = self._file.rows(f"{_DEFINITIONS} WHERE s.lower = ? ORDER BY f.path, s.line LIMIT ?", (lower, most))
        return [Definition(*row) for row in rows]

    def definitions_in(self, path: str) -> list[Definition]:
        rows = self._file.rows(f"{_DEFINITIONS} WHERE f.path = ? ORDER BY s.line", (path,))
        return [Definition(*row) for row in rows]

    def is_defined(self, name: str) -> bool:
        wanted = "SELECT 1 FROM symbol WHERE lower = ? AND name = ? LIMIT 1"
        return bool(self._file.rows(wanted, (name.lower(), name)))

    def having(self, word: str, most: int) -> list[str]:
        """The files that have a word, quoted for the index."""
        rows = self._file.rows(
            "SELECT f.path FROM word w JOIN file f ON f.id = w.rowid WHERE word MATCH ? ORDER BY f.path LIMIT ?",
            (word, most),
        )
        return [path for (path,) in rows]

    def imports(self, path: str) -> list[Import]:
        rows = self._file.rows(
            "SELECT i.module, i.names, i.line FROM import i JOIN file f ON f.id = i.file WHERE f.path = ? "
            "ORDER BY i.line",
            (path,),
        )
        return [Import(module, tuple(json.loads(names)), line) for module, names, line in rows]

    def dependencies(self) -> list[tuple[str, Dependency]]:
        rows = self._file.rows(
            "SELECT f.path, d.name, d.wanted, d.version, d.line, d.sort FROM dependency d JOIN file f ON f.id = d.file "
            "ORDER BY f.path, d.line"
        )
        return [(path, Dependency(*rest)) for path, *rest in rows]

    def stated(self) -> list[tuple[str, Stated]]:
        rows = self._file.rows(
            "SELECT f.path, s.name, s.version, s.line FROM stated s JOIN file f ON f.id = s.file ORDER BY f.path"
        )
        return [(path, Stated(*rest)) for path, *rest in rows]

    def settings(self, last: str, most: int) -> list[tuple[str, Setting]]:
        """The settings whose key ends in a word, in lower case."""
        rows = self._file.rows(
            "SELECT f.path, s.key, s.value, s.line FROM setting s JOIN file f ON f.id = s.file WHERE s.last = ? "
            "ORDER BY f.path, s.line LIMIT ?",
            (last, most),
        )
        return [(path, Setting(*rest)) for path, *rest in rows]

    def changes(self, column: str, word: str, most: int) -> list[ChangeRow]:
        """The changes that introduced, dropped or touched a word, quoted for the index."""
        rows = self._file.rows(
            "SELECT c.path, c.old_path, c.status, c.revision FROM change_word w JOIN change c ON c.id = w.rowid "
            f"{_NEWEST} WHERE change_word MATCH ? {_ORDER} LIMIT ?",
            (f"{column} : {word}", most),
        )
        return [ChangeRow(*row) for row in rows]

    def changes_named(self, name: str, most: int) -> list[ChangeRow]:
        """The changes of files of a name, in lower case, among them files that are gone."""
        rows = self._file.rows(f"{_CHANGES} {_NEWEST} WHERE c.name = ? {_ORDER} LIMIT ?", (name, most))
        return [ChangeRow(*row) for row in rows]

    def messages(self, word: str, most: int) -> list[tuple[int, int, str]]:
        """Number, time and id of the commits whose message has a word, quoted for the index."""
        wanted = (
            "SELECT r.num, r.time, r.id FROM message_word m JOIN revision r ON r.num = m.rowid "
            "WHERE message_word MATCH ? ORDER BY r.time DESC, r.id LIMIT ?"
        )
        return [(number, time, name) for number, time, name in self._file.rows(wanted, (word, most))]

    def revision(self, number: int) -> tuple[str, int, str, str, str] | None:
        """Id, time, author, subject and body of a commit."""
        rows = self._file.rows("SELECT id, time, author, subject, body FROM revision WHERE num = ?", (number,))
        return (rows[0][0], rows[0][1], rows[0][2], rows[0][3], rows[0][4]) if rows else None

    def numbers(self, prefix: str) -> list[int]:
        """Of the commits whose ids begin so: at most three, as two are already too many."""
        # No digit of an id comes after "f".
        wanted = "SELECT num FROM revision WHERE id >= ? AND id < ? ORDER BY id LIMIT 3"
        return [number for (number,) in self._file.rows(wanted, (prefix, prefix + "g"))]
