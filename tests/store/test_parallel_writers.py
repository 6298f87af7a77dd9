"""Writers of different spaces at the same time, writers of one space in turn, and stores with one count for all."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from cortex_py import Cortex
from cortex_py.core.clock import SystemClock
from cortex_py.core.errors import CortexError, StoreBusy, StoreUnavailable
from cortex_py.core.store.store import CommitGroups
from cortex_py.team.postgres.engine import PostgresDatabase, open_postgres
from cortex_py.team.postgres.turns import WriterTurns
from inside import database_of, store_of

from helpers import FakeClock
from homes import opened
from old_schemas import use_schema
from postgres_server import PostgresServer

pytestmark = pytest.mark.sqlite_only  # each says which engine it is about
LONG = 20.0


@pytest.fixture
def pair(postgres_url: str) -> Iterator[tuple[PostgresDatabase, PostgresDatabase]]:
    """Two processes on one store, as far as the store can tell."""
    both = open_postgres(postgres_url, SystemClock()), open_postgres(postgres_url, SystemClock())
    yield both
    # They have begun, and may not have ended: the database goes now.
    for thread in threading.enumerate():
        if thread.name == "writer":
            thread.join(LONG)
    for one in both:
        one.close()


def _begins(database: PostgresDatabase, *spaces: str) -> threading.Event:
    """Set once a transaction on the spaces has begun; it ends at once."""
    begun = threading.Event()

    def write() -> None:
        with database.write(*spaces):
            begun.set()

    threading.Thread(target=write, name="writer", daemon=True).start()
    return begun


def test_only_writers_of_one_space_wait_for_each_other(pair: tuple[PostgresDatabase, PostgresDatabase]) -> None:
    for other in pair:
        with pair[0].write("a", "b"):
            assert _begins(other, "c").wait(LONG)
            same, more, whole = _begins(other, "b"), _begins(other, "c", "b"), _begins(other)
            assert not any(one.wait(0.2) for one in (same, more, whole))
        assert all(one.wait(LONG) for one in (same, more, whole))
        with pair[0].write():
            blocked = _begins(other, "c")
            assert not blocked.wait(0.2)
        assert blocked.wait(LONG)


def test_a_writer_of_the_whole_store_is_not_passed_for_ever() -> None:
    turns, passed = WriterTurns(), threading.Event()

    def alone() -> None:
        with turns.take(frozenset(), LONG) as taken:
            assert taken
            passed.set()

    with turns.take(frozenset("a"), LONG):
        thread = threading.Thread(target=alone)
        thread.start()
        while not turns.asked:
            pass
        with turns.take(frozenset("b"), 0.05) as taken:
            assert not taken
        with turns.take(frozenset(), 0.05) as taken:
            assert not taken
    thread.join()
    assert passed.is_set()
    with turns.take(frozenset("ab"), 0) as taken:
        assert taken


def test_captures_of_many_processes_are_seen_by_the_next_recall(
    tmp_path: Path, project: Path, clock: FakeClock, postgres_url: str
) -> None:
    """Also in the spaces that others write to at the same time."""
    domains = ("project", "user")

    def work(number: int) -> list[str]:
        with opened(tmp_path / str(number % 2), project, clock, database_url=postgres_url) as cortex:
            missed = []
            for turn in range(6):
                text = f"word{number}x{turn} of writer {number}"
                made = cortex.memories.capture(text, domain=domains[(number + turn) % 2])
                hits = readers[(number + turn) % 2].memories.recall(f"word{number}x{turn}").results
                if made.id not in {hit.memory.id for hit in hits}:
                    missed.append(text)
            return missed

    readers = [opened(tmp_path / f"reader{n}", project, clock, database_url=postgres_url) for n in range(2)]
    with ThreadPoolExecutor(4) as pool:
        assert [missed for found in pool.map(work, range(4)) for missed in found] == []
    for reader in readers:
        assert reader.memories.recall(limit=100).total == 24
        reader.close()


@pytest.mark.parametrize("engine", ["sqlite", "postgresql"])
def test_captures_that_wait_are_committed_together(
    home: Path, project: Path, clock: FakeClock, engine: str, request: pytest.FixtureRequest
) -> None:
    url = None if engine == "sqlite" else request.getfixturevalue("postgres_url")
    with opened(home, project, clock, database_url=url) as cortex:
        # The first two find out which model the store has.
        first = [cortex.memories.capture(f"known already {n}") for n in range(2)]
        store = store_of(cortex)
        with ThreadPoolExecutor(12) as pool:
            with store.database.write(cortex.project.id) as session:
                before = session.rows("SELECT seq FROM space_change WHERE space = ?", (cortex.project.id,))
                texts = [f"text {n % 10}" for n in range(11)]
                calls = [pool.submit(cortex.memories.capture, text, idempotency_key=text) for text in texts]
                queue = (cortex.project.id, True)
                while len(store.groups.waiting.get(queue, ())) < 11:
                    assert not any(call.done() for call in calls)
            made = [call.result() for call in calls]
        assert len({memory.id for memory in made}) == 10
        assert {memory.content for memory in made} == set(texts)
        with store.database.read() as session:
            after = session.rows("SELECT seq FROM space_change WHERE space = ?", (cortex.project.id,))
        assert after == [(before[0][0] + 1,)]
        assert cortex.memories.recall(limit=100).total == len(first) + 10
        assert not store.groups.waiting


@pytest.mark.parametrize(
    ("error", "alone"),
    [
        (ZeroDivisionError("of one of them"), {"a": "A", "b": "B"}),
        (StoreUnavailable("lost", remedy="look", perhaps_written=True), {}),
        (StoreBusy("busy", remedy="again"), {"a": "A", "b": "B"}),
    ],
)
def test_the_error_of_a_group_is_not_that_of_its_members(error: Exception, alone: dict[str, str]) -> None:
    groups: CommitGroups[str, str] = CommitGroups()
    began, both = threading.Event(), threading.Event()

    def write(take: object) -> list[str]:
        began.set()
        both.wait(LONG)
        items = take()  # type: ignore[operator]
        if len(items) > 1:
            raise error
        return [item.upper() for item in items]

    done: dict[str, str] = {}

    def run(item: str) -> None:
        try:
            done[item] = groups.run("space", item, write)
        except CortexError as told:
            assert told is error

    threads = [threading.Thread(target=run, args=(item,)) for item in "ab"]
    for thread in threads:
        thread.start()
        began.wait(LONG)
    while len(groups.waiting["space"]) < 2:
        pass
    both.set()
    for thread in threads:
        thread.join()
    assert done == alone
    assert not groups.waiting


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["sqlite", "postgresql"])
def test_a_store_that_counted_changes_together_goes_on(
    home: Path, project: Path, clock: FakeClock, engine: str, request: pytest.FixtureRequest
) -> None:
    url = None
    if engine == "postgresql":
        server: PostgresServer = request.getfixturevalue("postgres_server")
        server.run("CREATE DATABASE counted_together")
        request.addfinalizer(lambda: server.run("DROP DATABASE counted_together WITH (FORCE)"))
        url = server.url("counted_together")

    def shown(cortex: Cortex) -> list[str]:
        return sorted(hit.memory.content for hit in cortex.memories.recall("ledger", limit=50).results)

    with pytest.MonkeyPatch.context() as old:
        use_schema(old, 16)
        with opened(home, project, clock, database_url=url) as cortex:
            branch = cortex.contexts.create_branch("The ledger")
            for n in range(12):
                cortex.contexts.append(branch.id, f"The ledger has entry {n}", "assistant")
            gone = cortex.memories.capture("The ledger of everybody", domain="user")
            cortex.memories.delete(gone.id, hard=True)
            before, summary = shown(cortex), cortex.contexts.summary(branch.id)
    with opened(home, project, clock, database_url=url) as cortex:
        with database_of(cortex).read() as session:
            assert not database_of(cortex).has_table(session, "state")
            counts = dict(session.rows("SELECT space, seq FROM space_change"))
            last = dict(session.rows("SELECT space, max(seq) FROM memory GROUP BY space"))
        assert counts.keys() >= {cortex.project.id, "user:local"}
        assert all(counts[space] >= seq for space, seq in last.items())
        assert len(set(counts.values())) == 1
        assert shown(cortex) == before
        assert cortex.contexts.summary(branch.id) == summary
        with opened(home, project, clock, database_url=url) as other:
            assert shown(other) == before
            cortex.memories.capture("The ledger goes on")
            cortex.memories.capture("The ledger goes on for me", domain="user")
            assert len(shown(other)) == len(before) + 2
            cortex.contexts.append(branch.id, "The ledger is closed", "assistant")
            assert other.contexts.summary(branch.id) != summary


@pytest.mark.parametrize("takes", [False, True])
def test_a_writer_that_is_interrupted_holds_nobody_up(takes: bool) -> None:
    groups: CommitGroups[str, str] = CommitGroups()

    def interrupted(take: object) -> list[str]:
        if takes:
            take()  # type: ignore[operator]
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        groups.run("space", "a", interrupted)
    assert groups.run("space", "b", lambda take: [item.upper() for item in take()]) == "B"
    assert not groups.waiting


def test_a_turn_that_is_interrupted_holds_nobody_up(monkeypatch: pytest.MonkeyPatch) -> None:
    turns = WriterTurns()

    def stopped(*_: object, **__: object) -> bool:
        raise KeyboardInterrupt

    with monkeypatch.context() as while_waiting:
        while_waiting.setattr(threading.Condition, "wait_for", stopped)
        with pytest.raises(KeyboardInterrupt), turns.take(frozenset(), LONG):
            pass
    with turns.take(frozenset({"space"}), 0.0) as taken:
        assert taken
