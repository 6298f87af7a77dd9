"""The step of the schema that put the space into every key: a store of the version before it keeps all it had."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from cortex_py import Cortex
from cortex_py.core.store import migrations
from cortex_py.core.store.database import Session
from cortex_py.session import ProjectSessions
from cortex_py.team.postgres import engine as postgres
from cortex_py.team.postgres.engine import PostgresDatabase
from cortex_py.team.postgres.vector_index import PostgresVectorIndex
from inside import database_of

from helpers import FakeClock
from homes import opened, state
from old_schemas import use_schema
from postgres_server import PostgresServer, name_in

BEFORE = 9


@contextmanager
def _released(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The schema of the version before, and how that wrote into the text index of PostgreSQL."""

    def index_texts(_database: PostgresDatabase, session: Session, entries: Sequence[tuple[str, int, str]]) -> None:
        for _, num, words in entries:
            session.run("INSERT INTO memory_text (num, words) VALUES (?, string_to_array(?, ' '))", (num, words))

    with monkeypatch.context() as old:
        use_schema(old, BEFORE)
        old.setattr(ProjectSessions, "settle_files", lambda _sessions: None)
        old.setattr(postgres, "POSTGRES_STEPS", postgres.POSTGRES_STEPS[:BEFORE])
        old.setattr(PostgresDatabase, "index_texts", index_texts)
        old.setattr(PostgresVectorIndex, "add", lambda *_: None)
        old.setattr(PostgresVectorIndex, "covered", lambda *_: set())
        yield


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest) -> Iterator[str | None]:
    """Where the store lies: in its home, or in an empty database."""
    if request.param == "sqlite":
        yield None
        return
    server: PostgresServer = request.getfixturevalue("postgres_server")
    with server.empty_database("before_placement") as made:
        yield made


def _recalled(cortex: Cortex) -> list[tuple[object, ...]]:
    with database_of(cortex).read() as session:
        return session.rows("SELECT * FROM recalled ORDER BY memory_id, recalls")


def test_a_store_of_the_version_before_keeps_all_it_had(
    home: Path, project: Path, clock: FakeClock, url: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CORTEX_DATABASE_URL", raising=False)
    assert "CREATE TABLE recalled_placed" in "".join("".join(step) for step in migrations.MIGRATIONS[BEFORE:])
    with _released(monkeypatch), opened(home, project, clock, database_url=url) as cortex:
        note = cortex.memories.capture("The ledger rounds half to even", tags=["money"])
        own = cortex.memories.capture("Everybody uses tabs", domain="user")
        with database_of(cortex).write() as session:
            session.run_many(
                "INSERT INTO recalled (memory_id, recalls, recalled_at) VALUES (?, ?, ?)",
                [(note.id, 3, 30), (own.id, 2, 20), ("f" * 40, 1, 10)],
            )
        kinds = ("memory", "mention", "entity")
        before = [state(cortex, kinds, space) for space in (cortex.project.id, "user:local")]
    with opened(home, project, clock, database_url=url) as cortex:
        assert [state(cortex, kinds, space) for space in (cortex.project.id, "user:local")] == before
        # What was counted of a record that is gone went with the step.
        rows = [(cortex.project.id, note.id, 3, 30), ("user:local", own.id, 2, 20)]
        assert _recalled(cortex) == sorted(rows, key=lambda row: row[1])
        assert [hit.memory.id for hit in cortex.memories.recall("ledger rounding", mode="text").results] == [note.id]
        assert cortex.memories.recall("tabs", filter="entity:tabs").results
        later = cortex.memories.capture("The ledger rounds to cents")
        cortex.memories.recall("ledger")
        cortex.memories.write_uses()
        counted = {row[1]: row[2] for row in _recalled(cortex)}
        assert (counted[note.id], counted[later.id]) == (5, 1)
        cortex.memories.delete(note.id, hard=True)
        assert note.id not in {row[1] for row in _recalled(cortex)}
        assert cortex.check() == []


def test_it_leaves_the_same_schema_as_a_new_store(
    postgres_server: PostgresServer, postgres_url: str, monkeypatch: pytest.MonkeyPatch, clock: FakeClock
) -> None:
    keys = (
        "SELECT conrelid::regclass::text, conname::text, pg_get_constraintdef(oid) FROM pg_constraint "
        "WHERE connamespace = 'public'::regnamespace AND contype IN ('p', 'u') ORDER BY 1, 2"
    )
    with postgres_server.empty_database("grown_by_steps") as url:
        with _released(monkeypatch):
            postgres.open_postgres(url, clock).close()
        postgres.open_postgres(url, clock).close()
        grown, made = (postgres_server.run(keys, name_in(one)) for one in (url, postgres_url))
    assert grown == made
    for table, key in (("memory", "num"), ("chunk", "num, n"), ("memory_text", "num"), ("recalled", "memory_id")):
        assert (table, f"{table}_pkey", f"PRIMARY KEY (space, {key})") in made
