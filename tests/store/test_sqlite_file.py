"""The file of the embedded engine: opened while another process is opening it too, and forced to the disk."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import apsw
import pytest

from cortex_py.core.clock import SystemClock
from cortex_py.core.errors import StoreTooNew
from cortex_py.core.store.sqlite import open_sqlite
from cortex_py.opening import World


class _Other:
    """Another process that writes to the new file at the very moment its mode is changed, and is done at the next."""

    def __init__(self, path: Path) -> None:
        self.connection = apsw.Connection(str(path))
        self.met = 0

    def watch(self, opened: apsw.Connection) -> None:
        opened.exec_trace = self._before

    def _before(self, _cursor: apsw.Cursor, statement: str, _values: object) -> bool:
        if "journal_mode" in statement:
            self.met += 1
            self.connection.execute("BEGIN IMMEDIATE" if self.met == 1 else "COMMIT")
        return True


def test_a_new_file_that_another_process_is_preparing_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = _Other(tmp_path / "cortex.db")
    monkeypatch.setattr(apsw, "connection_hooks", [other.watch])
    open_sqlite(tmp_path / "cortex.db", SystemClock()).close()
    assert other.met == 2
    assert other.connection.execute("PRAGMA journal_mode").fetchall() == [("wal",)]
    other.connection.close()


def test_what_is_stored_is_forced_to_the_disk(tmp_path: Path) -> None:
    """The stores of other tests are not, to spare the time."""
    assert World().durable
    with closing(open_sqlite(tmp_path / "cortex.db", SystemClock())) as database, database.read() as session:
        assert session.rows("PRAGMA synchronous") == [(2,)]
        assert session.rows("PRAGMA journal_mode") == [("wal",)]


def test_a_store_that_a_later_version_changes_while_it_is_open_is_named(tmp_path: Path) -> None:
    path = tmp_path / "cortex.db"
    earlier, later = open_sqlite(path, SystemClock()), open_sqlite(path, SystemClock())
    look_up = "SELECT count(*) FROM organisation"
    with earlier.read() as session:
        assert session.rows(look_up) == [(0,)]
    with later.write() as session:
        session.run("DROP TABLE organisation")
        session.run("INSERT INTO schema_step (version, applied_at) VALUES (99, 0)")
    for transaction in (earlier.read, earlier.write):
        with pytest.raises(StoreTooNew, match="schema 99"), transaction() as session:
            session.rows(look_up)
    # What it uses is there: it goes on.
    with earlier.read() as session:
        assert session.rows("SELECT max(version) FROM schema_step") == [(99,)]
    earlier.close()
    later.close()
