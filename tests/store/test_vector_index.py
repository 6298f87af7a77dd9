"""Vectors in the engine: the answers of a process, kept current by every way of writing, made in the background."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from cortex_py import Cortex, NewMemory
from cortex_py.core.embedding.backends.backend import Backend
from cortex_py.core.errors import StorageError
from cortex_py.core.store.search import search as engine_space
from cortex_py.team.postgres.vector_index import BUILD_LOCK
from inside import database_of
from timing import no_hang

from helpers import FakeClock
from homes import OtherBackend, opened

WORDS = (
    "cache", "queue", "token", "index", "shard", "vacuum", "socket", "thread", "parser", "lexer", "mutex", "signal",
)  # fmt: skip
RECORDS = 200


@dataclass(frozen=True)
class Pair:
    """A store, and the space in it that is searched by the process at first and by the engine later."""

    cortex: Cortex
    space: str

    def build(self) -> bool:
        return bool(
            database_of(self.cortex).vector_index.build(self.space, self.cortex.backend.dimensions, lambda: False)
        )

    def covered(self) -> bool:
        nearest = database_of(self.cortex).vector_index
        with database_of(self.cortex).read() as session:
            return self.space in nearest.covered(session, [self.space])


def _notes(count: int, seed: int = 5) -> list[NewMemory]:
    draw = random.Random(seed)
    names = ("decisions", "patterns", "learnings")
    return [
        NewMemory(
            content=f"note {n}: " + " ".join(draw.choices(WORDS, k=6)),
            namespace=names[n % 3],
            tags=(f"t{n % 12}", "rare" if n % 40 == 0 else "common"),
        )
        for n in range(count)
    ]


@pytest.fixture
def pair(home: Path, project: Path, clock: FakeClock, postgres_url: str) -> Iterator[Pair]:
    with opened(home, project, clock, database_url=postgres_url) as cortex:
        yield _filled(cortex, 60)


@pytest.fixture
def real_pair(home: Path, project: Path, clock: FakeClock, postgres_url: str, model: Backend) -> Iterator[Pair]:
    """With the real model: vectors of the stub are too often equal for an order to mean anything."""
    with Cortex.open(home, project=project, backend=model, clock=clock, database_url=postgres_url) as cortex:
        yield _filled(cortex, RECORDS)


def _filled(cortex: Cortex, records: int) -> Pair:
    branch = cortex.contexts.create_branch("A line of work")
    notes = _notes(records)
    # One by one takes its time.
    cortex.memories.capture_many(notes[: records * 4 // 5])
    for note in notes[records * 4 // 5 :]:
        cortex.contexts.append(branch.id, note.content, "user")
    return Pair(cortex, cortex.project.id)


def _answers(cortex: Cortex, **more: object) -> dict[tuple[str, str, str], list[tuple[str, float]]]:
    queries = ("cache and queue of the parser", "mutex signal", "note 17", "nothing that anybody wrote")
    filters = ("", "ns:decisions", "tag:rare", "-tag:t3 ns:patterns", "tag:nobody")
    return {
        (query, filter, mode): [
            (hit.memory.id, round(hit.score, 5))
            for hit in cortex.memories.recall(query, filter=filter, mode=mode, limit=8, **more).results
        ]
        for query in queries
        for filter in filters
        for mode in ("hybrid", "vector", "text")
    }


def test_what_is_indexed_is_looked_at_by_the_engine_first(pair: Pair) -> None:
    """Many records come at once, and the engine would take its time: tags are read from their index alone then."""
    looked = "SELECT last_vacuum IS NOT NULL, last_analyze IS NOT NULL FROM pg_stat_user_tables WHERE relname = 'tag'"
    database = database_of(pair.cortex)
    with database.read() as session:
        assert session.rows(looked) == [(False, False)]
    assert pair.build()
    with database.read() as session:
        assert session.rows(looked) == [(True, True)]


@pytest.mark.slow
@pytest.mark.parametrize("exact", [10**9, -1], ids=["all compared", "by the graph"])
def test_the_answers_are_those_of_a_process(real_pair: Pair, monkeypatch: pytest.MonkeyPatch, exact: int) -> None:
    monkeypatch.setattr("cortex_py.core.store.search.process_space.SMALL", -1)
    database_of(real_pair.cortex).vector_index.exact_up_to = exact
    # All of so small a space: what is otherwise estimated is then known.
    monkeypatch.setattr(engine_space, "_PROBED", 10**6)
    before = _answers(real_pair.cortex)
    assert not real_pair.covered()
    assert real_pair.build()
    assert real_pair.covered()
    after = _answers(real_pair.cortex)
    assert any(before.values())
    for asked, expected in before.items():
        scores = [score for _, score in expected]
        assert [score for _, score in after[asked]] == pytest.approx(scores, abs=0.03), asked
        # Which of several equal ones come last is anybody's guess: there are more of them than places.
        clear = {memory_id for memory_id, score in expected if score > scores[-1] + 0.01}
        assert len(clear - {memory_id for memory_id, _ in after[asked]}) <= len(clear) // 8, asked


def test_what_is_written_afterwards_is_found_and_what_is_gone_is_not(pair: Pair) -> None:
    assert pair.build()
    memories = pair.cortex.memories
    one = memories.capture("a zebra crossing the savanna")
    many = memories.capture_many([NewMemory(content=f"zebra number {n} in the savanna") for n in range(5)])

    def found() -> set[str]:
        hits = memories.recall("zebra in the savanna", mode="vector", limit=6).results
        return {hit.memory.id for hit in hits}

    assert found() == {one.id, *(other.id for other in many)}
    memories.update(one.id, content="completely different words about databases and locks")
    memories.delete(many[0].id)
    memories.delete(many[1].id, hard=True)
    assert not found() & {one.id, many[0].id, many[1].id}
    memories.restore(many[0].id)
    assert many[0].id in found()
    assert _vectors(pair) == _parts(pair)


def test_writers_go_on_while_it_is_made(pair: Pair) -> None:
    database_of(pair.cortex).vector_index.batch = 10
    memories = pair.cortex.memories
    stop = threading.Event()
    written: list[str] = []

    def write() -> None:
        while not stop.is_set():
            written.append(memories.capture(f"written meanwhile {len(written)}").id)
            if len(written) % 3 == 0:
                memories.update(written[-1], content=f"changed meanwhile {len(written)}")
            if len(written) % 5 == 0:
                memories.delete(written[-2], hard=True)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        assert pair.build()
    finally:
        stop.set()
        writer.join()
    assert written
    assert _vectors(pair) == _parts(pair)


def test_one_that_was_interrupted_is_finished_later(pair: Pair) -> None:
    nearest = database_of(pair.cortex).vector_index
    nearest.batch = 10
    asked = iter(range(10**6))
    assert not nearest.build(pair.space, pair.cortex.backend.dimensions, lambda: next(asked) > 4)
    assert not pair.covered()
    assert 0 < len(_vectors(pair)) < len(_parts(pair))
    assert pair.cortex.memories.recall("cache queue").results
    assert pair.build()
    assert _vectors(pair) == _parts(pair)


def test_a_server_that_ends_does_not_wait_for_it(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    """The statement that makes the graph may take minutes."""
    nearest, ending = database_of(pair.cortex).vector_index, threading.Event()

    def slow(_part: str, _dimensions: int) -> str:
        ending.set()
        return "SELECT pg_sleep(120)"

    with monkeypatch.context() as patched:
        patched.setattr("cortex_py.team.postgres.vector_index.index_statement", slow)
        with no_hang():
            assert not nearest.build(pair.space, pair.cortex.backend.dimensions, ending.is_set)
    assert not pair.covered()
    assert pair.build()


def test_an_engine_that_refuses_keeps_nothing_else_from_being_done(
    home: Path, project: Path, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(home, project, database_url=postgres_url, vector_index_above=5) as cortex:
        cortex.memories.capture_many(_notes(10))
        cortex.memories.recall("cache")
        refused = ("CREATE EXTENSION that_nobody_has",)
        monkeypatch.setattr("cortex_py.team.postgres.vector_index.ALL_SPACES", refused)
        done: list[str] = []
        monkeypatch.setattr(type(cortex.backups), "scheduled", lambda _self: done.append("snapshots"))
        with pytest.raises(StorageError):
            cortex.upkeep()
        assert done == ["snapshots"]
        assert cortex.memories.recall("cache").results


def test_only_one_makes_it(pair: Pair, home: Path, project: Path, clock: FakeClock, postgres_url: str) -> None:
    statement = f"SELECT pg_advisory_lock({BUILD_LOCK})"
    with database_of(pair.cortex).pool.connection() as other:  # type: ignore[attr-defined]
        other.execute(statement, (pair.space,))
        assert not pair.build()
        other.execute(statement.replace("lock(", "unlock("), (pair.space,))
    assert pair.build()


def test_upkeep_makes_it_for_spaces_that_have_grown(home: Path, project: Path, postgres_url: str) -> None:
    with opened(home, project, database_url=postgres_url, vector_index_above=20) as cortex:
        pair = Pair(cortex, cortex.project.id)
        cortex.memories.capture_many(_notes(15))
        cortex.memories.recall("cache")
        cortex.upkeep()
        assert not pair.covered()
        cortex.memories.capture_many(_notes(15, seed=6))
        cortex.memories.recall("cache")
        cortex.upkeep()
        assert pair.covered()
        assert cortex.memories.recall("cache").results


def test_another_model_begins_anew(home: Path, project: Path, clock: FakeClock, postgres_url: str) -> None:
    with opened(home, project, clock, database_url=postgres_url) as cortex:
        cortex.memories.capture_many(_notes(30))
        assert Pair(cortex, cortex.project.id).build()
    other = Cortex.open(
        home, project=project, backend=OtherBackend(), clock=clock, snapshot_every="off", database_url=postgres_url
    )
    with other as cortex:
        cortex.memories.reindex()
        assert cortex.memories.recall("cache queue").results
        pair = Pair(cortex, cortex.project.id)
        assert pair.build()
        assert pair.covered()
        assert cortex.memories.recall("cache queue").results


def test_a_space_with_any_name_can_have_one(pair: Pair) -> None:
    cortex = pair.cortex
    named = Pair(cortex, 'user:o\'brien %s \\ "x" ?')
    with database_of(cortex).write() as session:
        session.as_is.run("UPDATE memory SET space = ? WHERE branch_id IS NULL", (named.space,))
        session.as_is.run(
            "UPDATE chunk SET space = ? WHERE num IN (SELECT num FROM memory WHERE space = ?)", (named.space,) * 2
        )
    assert named.build()
    assert _vectors(named) == _parts(named) != set()


def _vectors(pair: Pair) -> set[tuple[int, int]]:
    with database_of(pair.cortex).read() as session:
        return set(session.rows("SELECT num, n FROM near WHERE space = ?", (pair.space,)))


def _parts(pair: Pair) -> set[tuple[int, int]]:
    with database_of(pair.cortex).read() as session:
        return set(session.rows("SELECT num, n FROM chunk WHERE space = ? AND vector IS NOT NULL", (pair.space,)))
