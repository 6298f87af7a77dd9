"""The SQLite file with the index of one project folder: its definitions, words and history.

Everything in it can be read again from the folder, so losing the file costs only time: a damaged file is rebuilt, and
if none can be written, the index lives in memory. Several processes may use the file; all of them write the same.
"""

from __future__ import annotations

import json
import logging
import posixpath
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import apsw

from ....core.clock import to_micros
from ....core.errors import StorageError
from ....core.security.secrets.secrets import redact
from ....core.sqlite_file import SqliteFile, connect, remove
from ....worktree.code.imports import Import
from ....worktree.formats import FileSetting
from ....worktree.git.history import Commit
from ....worktree.manifests.versions import Dependency, OwnVersion
from ..words import names_in, words_of
from .facts import ChangeRow, Definition, FileFacts

__all__ = ["IndexFile", "IndexReader", "drop_file", "keep_note", "put_commit", "put_file"]

logger = logging.getLogger(__name__)

Rows = list[tuple[Any, ...]]
_T = TypeVar("_T")

_BUSY_MS = 5_000
# Increase it with every change of the tables or of their content: a file with another layout is rebuilt.
_LAYOUT = 3
# Names keep their underscores; the words of a word column are separated by spaces.
_WORDS = "tokenize=\"unicode61 remove_diacritics 0 tokenchars '_$'\", content='', contentless_delete=1"
_SCHEMA = f"""
CREATE TABLE note (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE file (id INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE, name TEXT NOT NULL, mark TEXT NOT NULL,
    state TEXT NOT NULL, lines INTEGER NOT NULL);
CREATE INDEX file_name ON file (name);
CREATE TABLE symbol (file INTEGER NOT NULL, name TEXT NOT NULL, lower TEXT NOT NULL, qualified TEXT NOT NULL,
    kind TEXT NOT NULL, line INTEGER NOT NULL, end_line INTEGER NOT NULL);
CREATE INDEX symbol_file ON symbol (file);
CREATE INDEX symbol_lower ON symbol (lower);
CREATE TABLE import (file INTEGER NOT NULL, module TEXT NOT NULL, names TEXT NOT NULL, line INTEGER NOT NULL);
CREATE INDEX import_file ON import (file);
CREATE TABLE dependency (file INTEGER NOT NULL, name TEXT NOT NULL, wanted TEXT NOT NULL, version TEXT,
    line INTEGER NOT NULL, sort TEXT NOT NULL);
CREATE INDEX dependency_file ON dependency (file);
CREATE TABLE setting (file INTEGER NOT NULL, key TEXT NOT NULL, last TEXT NOT NULL, value TEXT NOT NULL,
    line INTEGER NOT NULL);
CREATE INDEX setting_file ON setting (file);
CREATE INDEX setting_last ON setting (last);
CREATE TABLE stated (file INTEGER NOT NULL, name TEXT, version TEXT NOT NULL, line INTEGER NOT NULL);
CREATE INDEX stated_file ON stated (file);
CREATE VIRTUAL TABLE word USING fts5 (words, detail=none, {_WORDS});
CREATE TABLE revision (num INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, parents TEXT NOT NULL, time INTEGER NOT NULL,
    author TEXT NOT NULL, subject TEXT NOT NULL, body TEXT NOT NULL, whole INTEGER NOT NULL);
CREATE TABLE change (id INTEGER PRIMARY KEY, revision INTEGER NOT NULL, path TEXT NOT NULL, old_path TEXT,
    name TEXT NOT NULL, status TEXT NOT NULL, added INTEGER NOT NULL, removed INTEGER NOT NULL);
CREATE INDEX change_revision ON change (revision);
CREATE INDEX change_name ON change (name);
CREATE VIRTUAL TABLE change_word USING fts5 (introduced, dropped, touched, detail=column, {_WORDS});
CREATE VIRTUAL TABLE message_word USING fts5 (words, detail=none, {_WORDS});
"""


# Errors that do not mean a damaged file: it cannot be written, or not now.
_OUT_OF_REACH = (
    apsw.CantOpenError, apsw.ReadOnlyError, apsw.PermissionsError, apsw.AuthError, apsw.FullError, apsw.IOError,
    apsw.BusyError, apsw.LockedError, OSError, StorageError,
)  # fmt: skip


class _IndexFailure(Exception):
    """An operation on the index failed; `opening` is the number of the connection."""

    def __init__(self, opening: int) -> None:
        super().__init__("the project index failed")
        self.opening = opening


class IndexFile:
    """One connection to the file, used by one thread at a time; `key` encrypts the file."""

    def __init__(self, path: Path, key: bytes | None = None) -> None:
        self._key = key
        self._openings = 0
        self._file = SqliteFile(path, self._open)

    @property
    def opening(self) -> int:
        """The number of the current connection, from 1. A new connection may have lost the content of the last."""
        with self._file.lock, self._translate_errors(), self._file.connection():
            return self._openings

    @contextmanager
    def write(self) -> Iterator[apsw.Connection]:
        """One transaction, rolled back if it fails."""
        with self._file.lock, self._translate_errors(), self._file.transaction("BEGIN IMMEDIATE") as connection:
            yield connection

    def rows(self, statement: str, values: tuple[Any, ...] = ()) -> Rows:
        with self._file.lock, self._translate_errors(), self._file.connection() as connection:
            return connection.execute(statement, values).fetchall()

    def value(self, key: str) -> str:
        """The note with this key, or ""."""
        found = self.rows("SELECT value FROM note WHERE key = ?", (key,))
        return str(found[0][0]) if found else ""

    def guarded(self, work: Callable[[], _T]) -> _T:
        """Do the work; if the file turns out to be damaged, rebuild it and do the work again.

        If that fails too, or the file cannot be written, use an index in memory.
        """
        for recover in (self._delete, self._use_memory):
            try:
                return work()
            except _IndexFailure as failed:
                with self._file.lock:
                    # Otherwise another thread has already recovered.
                    if failed.opening == self._openings:
                        logger.debug("recovering the project index: %s", type(failed.__cause__).__name__)
                        (self._use_memory if isinstance(failed.__cause__, _OUT_OF_REACH) else recover)()
        try:
            return work()
        except _IndexFailure as failed:
            raise StorageError(
                f"The project index failed: {failed.__cause__}", remedy="Try again, or run 'cortex doctor'."
            ) from failed

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        try:
            yield
        except apsw.Error as error:
            raise _IndexFailure(self._openings) from error

    def _delete(self) -> None:
        """Delete the file; the next use creates it again."""
        self.close()
        if self._file.path is not None:
            try:
                remove(self._file.path)
            except OSError as error:
                logger.debug("the damaged project index could not be deleted: %s", type(error).__name__)

    def _use_memory(self) -> None:
        """Continue without the file, in memory."""
        self.close()
        self._file.path = None

    def close(self) -> None:
        with self._file.lock:
            self._file.close(for_good=False)

    def _open(self) -> apsw.Connection:
        self._openings += 1
        if (path := self._file.path) is not None:
            try:
                return self._open_file(path)
            except _OUT_OF_REACH as error:
                logger.debug("the project index is kept in memory: %s", type(error).__name__)
                self._file.path = None
        return _create_tables(apsw.Connection(":memory:"))

    def _open_file(self, path: Path) -> apsw.Connection:
        for folder in (path.parent.parent, path.parent):
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        connection = connect(path, self._key, _BUSY_MS)
        try:
            return _create_tables(connection)
        except BaseException:
            connection.close()
            raise


def _create_tables(connection: apsw.Connection) -> apsw.Connection:
    """Create the tables; those of another layout are dropped first."""
    connection.execute("PRAGMA synchronous = OFF; PRAGMA cache_size = -16000; PRAGMA journal_mode = WAL")
    connection.execute("BEGIN IMMEDIATE")
    if connection.pragma("user_version") != _LAYOUT:
        _clear(connection)
        connection.execute(_SCHEMA)
        connection.pragma("user_version", _LAYOUT)
    connection.execute("COMMIT")
    return connection


def _clear(connection: apsw.Connection) -> None:
    """Drop all tables, virtual ones first, because they drop their shadow tables."""
    wanted = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite!_%' ESCAPE '!'"
    for kind in (" AND sql LIKE 'CREATE VIRTUAL%'", ""):
        for (name,) in connection.execute(wanted + kind).fetchall():
            connection.execute(f'DROP TABLE IF EXISTS "{name}"')


# Reading. Rows come as plain values, in a fixed order.

_DEFINITIONS = (
    "SELECT f.path, s.name, s.qualified, s.kind, s.line, s.end_line FROM symbol s JOIN file f ON f.id = s.file"
)
# Ordered by time, because the numbers of commits only reflect when they were read.
_NEWEST, _ORDER = "JOIN revision r ON r.num = c.revision", "ORDER BY r.time DESC, r.id, c.path"
_CHANGES = "SELECT c.path, c.old_path, c.status, c.revision FROM change c"


class IndexReader:
    def __init__(self, file: IndexFile) -> None:
        self._file = file

    def marks(self) -> dict[str, str]:
        """Every file by path, with the mark of its content."""
        return dict(self._file.rows("SELECT path, mark FROM file"))

    def states(self) -> dict[str, str]:
        """Every file by path, with its state."""
        return dict(self._file.rows("SELECT path, state FROM file ORDER BY path"))

    def named(self, name: str) -> list[str]:
        """The files with a name (in lower case), in any folder."""
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

    def files_with(self, word: str, most: int) -> list[str]:
        """The files that contain a word, which is quoted for FTS5."""
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

    def stated(self) -> list[tuple[str, OwnVersion]]:
        rows = self._file.rows(
            "SELECT f.path, s.name, s.version, s.line FROM stated s JOIN file f ON f.id = s.file ORDER BY f.path"
        )
        return [(path, OwnVersion(*rest)) for path, *rest in rows]

    def settings(self, last: str, most: int) -> list[tuple[str, FileSetting]]:
        """The settings whose key ends in a word (in lower case)."""
        rows = self._file.rows(
            "SELECT f.path, s.key, s.value, s.line FROM setting s JOIN file f ON f.id = s.file WHERE s.last = ? "
            "ORDER BY f.path, s.line LIMIT ?",
            (last, most),
        )
        return [(path, FileSetting(*rest)) for path, *rest in rows]

    def settings_of(self, path: str) -> list[FileSetting]:
        rows = self._file.rows(
            "SELECT s.key, s.value, s.line FROM setting s JOIN file f ON f.id = s.file WHERE f.path = ? "
            "ORDER BY s.line",
            (path,),
        )
        return [FileSetting(*row) for row in rows]

    def modules(self) -> list[str]:
        """The modules that any file imports."""
        return [module for (module,) in self._file.rows("SELECT DISTINCT module FROM import")]

    def changes(self, column: str, word: str, most: int) -> list[ChangeRow]:
        """The changes that introduced, dropped or touched a word, which is quoted for FTS5."""
        rows = self._file.rows(
            "SELECT c.path, c.old_path, c.status, c.revision FROM change_word w JOIN change c ON c.id = w.rowid "
            f"{_NEWEST} WHERE change_word MATCH ? {_ORDER} LIMIT ?",
            (f"{column} : {word}", most),
        )
        return [ChangeRow(*row) for row in rows]

    def changes_named(self, name: str, most: int) -> list[ChangeRow]:
        """The changes of files with a name (in lower case), including deleted files."""
        rows = self._file.rows(f"{_CHANGES} {_NEWEST} WHERE c.name = ? {_ORDER} LIMIT ?", (name, most))
        return [ChangeRow(*row) for row in rows]

    def messages(self, word: str, most: int) -> list[tuple[int, int, str]]:
        """Number, time and id of the commits whose message has a word, which is quoted for FTS5."""
        wanted = (
            "SELECT r.num, r.time, r.id FROM message_word m JOIN revision r ON r.num = m.rowid "
            "WHERE message_word MATCH ? ORDER BY r.time DESC, r.id LIMIT ?"
        )
        return [(number, time, name) for number, time, name in self._file.rows(wanted, (word, most))]

    def revision(self, number: int) -> tuple[str, int, str, str, str, bool] | None:
        """Id, time, author, subject and body of a commit, and whether all that it changed is known."""
        wanted = "SELECT id, time, author, subject, body, whole AND instr(parents, ' ') = 0 FROM revision WHERE num = ?"
        for name, time, author, subject, body, whole in self._file.rows(wanted, (number,)):
            return name, time, author, subject, body, bool(whole)
        return None

    def numbers(self, prefix: str) -> list[int]:
        """The numbers of up to three commits whose ids start with a prefix; two already make it ambiguous."""
        # "g" sorts after every hexadecimal digit.
        wanted = "SELECT num FROM revision WHERE id >= ? AND id < ? ORDER BY id LIMIT 3"
        return [number for (number,) in self._file.rows(wanted, (prefix, prefix + "g"))]


# Writing: one file or one commit at a time.

_MOST_NAMES = 4_000
_MOST_MESSAGE = 20_000


def keep_note(connection: apsw.Connection, key: str, value: str) -> None:
    connection.execute("INSERT OR REPLACE INTO note (key, value) VALUES (?, ?)", (key, value))


_TABLES = ("symbol", "import", "dependency", "setting", "stated")


def drop_file(connection: apsw.Connection, path: str) -> None:
    for (number,) in connection.execute("SELECT id FROM file WHERE path = ?", (path,)).fetchall():
        for table in _TABLES:
            connection.execute(f"DELETE FROM {table} WHERE file = ?", (number,))
        connection.execute("DELETE FROM word WHERE rowid = ?", (number,))
        connection.execute("DELETE FROM file WHERE id = ?", (number,))


def put_file(connection: apsw.Connection, path: str, mark: str, facts: FileFacts) -> None:
    drop_file(connection, path)
    connection.execute(
        "INSERT INTO file (path, name, mark, state, lines) VALUES (?, ?, ?, ?, ?)",
        (path, posixpath.basename(path).lower(), mark, facts.state, facts.lines),
    )
    number = connection.last_insert_rowid()
    connection.executemany(
        "INSERT INTO symbol VALUES (?, ?, ?, ?, ?, ?, ?)",
        [(number, s.name, s.name.lower(), s.qualified, s.kind, s.line, s.end_line) for s in facts.symbols],
    )
    connection.executemany(
        "INSERT INTO import VALUES (?, ?, ?, ?)",
        [(number, i.module, json.dumps(i.names), i.line) for i in facts.imports],
    )
    connection.executemany(
        "INSERT INTO dependency VALUES (?, ?, ?, ?, ?, ?)",
        [
            (number, _whole(d.name), _whole(d.constraint), d.version and _whole(d.version), d.line, d.group)
            for d in facts.dependencies
        ],
    )  # fmt: skip
    connection.executemany(
        "INSERT INTO setting VALUES (?, ?, ?, ?, ?)",
        [
            (number, key, key.rpartition(".")[2].lower(), _without_secret(key, _whole(s.value)), s.line)
            for s in facts.settings
            if (key := _whole(s.key))
        ],
    )
    if facts.stated is not None:
        stated = facts.stated
        connection.execute(
            "INSERT INTO stated VALUES (?, ?, ?, ?)",
            (number, stated.name and _whole(stated.name), _whole(stated.version), stated.line),
        )
    connection.execute("INSERT INTO word (rowid, words) VALUES (?, ?)", (number, _joined(facts.words)))


def _whole(text: str) -> str:
    """A text that can be stored: JSON escapes can contain lone surrogates."""
    return text.encode("utf-8", "replace").decode()


def _without_secret(key: str, value: str) -> str:
    """A value without secrets; the key is needed to recognise them."""
    return redact(f"{key}: {value}").text.removeprefix(f"{key}: ")


def put_commit(connection: apsw.Connection, commit: Commit) -> None:
    if connection.execute("SELECT 1 FROM revision WHERE id = ?", (commit.id,)).fetchall():
        return
    connection.execute(
        "INSERT INTO revision (id, parents, time, author, subject, body, whole) VALUES (?, ?, ?, ?, ?, ?, ?)",
        (
            commit.id, " ".join(commit.parents), to_micros(commit.time), commit.author, commit.subject,
            commit.body[:_MOST_MESSAGE], int(commit.complete),
        ),
    )  # fmt: skip
    number = connection.last_insert_rowid()
    said = words_of(names_in(f"{commit.subject} {commit.body[:_MOST_MESSAGE]}"))
    connection.execute("INSERT INTO message_word (rowid, words) VALUES (?, ?)", (number, _joined(said)))
    for change in commit.changes:
        connection.execute(
            "INSERT INTO change (revision, path, old_path, name, status, added, removed) VALUES (?, ?, ?, ?, ?, ?, ?)",
            (
                number, change.path, change.old_path, posixpath.basename(change.path).lower(), change.status,
                change.added, change.removed,
            ),
        )  # fmt: skip
        connection.execute(
            "INSERT INTO change_word (rowid, introduced, dropped, touched) VALUES (?, ?, ?, ?)",
            (connection.last_insert_rowid(), *map(_names, (change.introduced, change.dropped, change.touched))),
        )


def _names(names: Collection[str]) -> str:
    return _joined(words_of(sorted(names)[:_MOST_NAMES]))


def _joined(words: Iterable[str]) -> str:
    return " ".join(sorted(words))
