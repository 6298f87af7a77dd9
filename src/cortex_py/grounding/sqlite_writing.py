"""How what was read of a project gets into its index: one file, one commit at a time."""

from __future__ import annotations

import json
import posixpath
from collections.abc import Collection, Iterable

import apsw

from ..clock import to_micros
from ..security.secrets import redact
from ..worktree.history import Commit
from .file_facts import FileFacts
from .words import names_in, words_of

__all__ = ["drop_file", "keep_note", "put_commit", "put_file"]

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
    """A text that can be stored: escapes in JSON can stand for half a character."""
    return text.encode("utf-8", "replace").decode()


def _without_secret(key: str, value: str) -> str:
    """A value as it may be kept: whether it is a secret, its name tells."""
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
