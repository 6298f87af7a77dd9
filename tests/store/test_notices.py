"""Being told of changes by PostgreSQL: by any process, of one's own schema, through lost connections."""

from __future__ import annotations

import threading
from pathlib import Path

from cortex_py.core.clock import SystemClock
from cortex_py.team.postgres.engine import PostgresDatabase, open_postgres
from timing import no_hang

from helpers import FakeClock
from homes import opened
from postgres_server import PostgresServer, name_in

LONG = 120.0


class Listener:
    """Waits in a thread of its own."""

    def __init__(self, database: PostgresDatabase) -> None:
        # The first call only begins to listen.
        assert database.wait_for_change(LONG) is True
        self.heard: list[bool | None] = []
        self._thread = threading.Thread(target=lambda: self.heard.append(database.wait_for_change(LONG)))
        self._thread.start()

    def result(self) -> bool | None:
        self._thread.join(LONG + 5)
        return self.heard[0]


def test_a_capture_and_a_prompt_of_another_process_are_told(
    tmp_path: Path, project: Path, clock: FakeClock, postgres_url: str
) -> None:
    with opened(tmp_path / "one", project, clock, database_url=postgres_url) as cortex:
        for change in (
            lambda: cortex.memories.capture("something new"),
            lambda: cortex.prompts.save("greet", "Hello {{who}}."),
        ):
            database = open_postgres(postgres_url, SystemClock())
            listener = Listener(database)
            with no_hang():
                change()
                assert listener.result() is True
            database.close()


def test_what_changes_nothing_is_not_told(tmp_path: Path, project: Path, clock: FakeClock, postgres_url: str) -> None:
    database = open_postgres(postgres_url, SystemClock())
    with opened(tmp_path / "one", project, clock, database_url=postgres_url) as cortex:
        assert database.wait_for_change(0.1) is True
        cortex.memories.recall("nothing")
        cortex.access.create("ann")
        assert database.wait_for_change(0.3) is False
    database.close()


def test_another_schema_is_another_store(
    tmp_path: Path, project: Path, clock: FakeClock, postgres_server: PostgresServer, postgres_url: str
) -> None:
    postgres_server.run("CREATE SCHEMA team", name_in(postgres_url))
    database = open_postgres(postgres_url, SystemClock())
    apart = f"{postgres_url}?options=-csearch_path%3Dteam"
    with opened(tmp_path / "one", project, clock, database_url=apart) as cortex:
        assert database.wait_for_change(0.1) is True
        cortex.memories.capture("of the other store")
        assert database.wait_for_change(0.3) is False
    database.close()


def test_a_lost_connection_may_have_missed_something_and_is_made_anew(
    postgres_server: PostgresServer, postgres_url: str
) -> None:
    database = open_postgres(postgres_url, SystemClock())
    listener = Listener(database)
    name = name_in(postgres_url)
    postgres_server.run(f"SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = '{name}'")
    assert listener.result() is True
    assert database.wait_for_change(0.1) is True
    assert database.wait_for_change(0.1) is False
    database.close()


def test_closing_ends_the_waiting(postgres_url: str) -> None:
    database = open_postgres(postgres_url, SystemClock())
    listener = Listener(database)
    with no_hang():
        database.close()
        assert listener.result() in (True, False)
