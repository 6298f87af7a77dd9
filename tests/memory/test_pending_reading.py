"""Notes are read for the graph after their capture was acknowledged: in order, once, whatever happens in between."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from cortex_py import Cortex
from cortex_py.core.errors import EntityNotFound
from cortex_py.core.jobs import Jobs
from cortex_py.core.memory.capture.capture import Capture, StoredRecord
from cortex_py.core.records import Memory, NewMemory

from forking import python_command
from stub_backend import StubBackend

pytestmark = pytest.mark.reads_when_asked

# Later ones are read by what earlier ones name: Zanzibar and Quokka are learned, and so is their repetition.
TEXTS = [
    f"{opening} {rest} ({number})"
    for number in range(3)
    for opening in (
        "Zanzibar stores its rows in PostgreSQL.",
        "We use Quokka with Redis;",
        "Maria Keller runs Zanzibar.",
    )
    for rest in (
        "Quokka is written in Rust, and Quokka calls Zanzibar.",
        "The file src/quokka/main.rs starts it, and zanzibar waits for Kafka.",
        "Ask maria@keller-werke.de about Kubernetes 1.29 before the rollout.",
        "The deploy of Zanzibar takes 40 minutes on Fridays.",
    )
]
TABLES = {
    "entity": "SELECT id, name, type, key, given FROM entity ORDER BY id",
    "entity_alias": "SELECT entity_id, alias, key FROM entity_alias ORDER BY entity_id, alias",
    "mention": "SELECT num, entity_id, first, past, confidence, method FROM mention ORDER BY num, first, entity_id",
    "relationship": "SELECT num, source_id, target_id, type, confidence, method, evidence FROM relationship "
    "ORDER BY num, source_id, target_id, type",
    "memory": "SELECT num, graphed, personal FROM memory ORDER BY num",
}


def opened(home: Path, project: Path, **pace: Any) -> Cortex:
    world = replace(Cortex.world, pace=replace(Cortex.world.pace, **pace))
    return Cortex.open(home, project=project, backend=StubBackend(), world=world)


def graph_of(cortex: Cortex) -> dict[str, list[Any]]:
    with cortex.store.database.read() as session:
        return {name: session.rows(statement) for name, statement in TABLES.items()}


def pending_in(cortex: Cortex) -> int:
    with cortex.store.database.read() as session:
        return cortex.store.graph.count_pending(session, 10_000)


@pytest.fixture
def read_at_once(tmp_path: Path, project: Path) -> dict[str, list[Any]]:
    """The graph if each note is read before the next one is captured."""
    with opened(tmp_path / "at-once", project) as cortex:
        for text in TEXTS:
            cortex.memories.capture(text)
            assert cortex.memories.finish_reading()
        return graph_of(cortex)


def _after_all(cortex: Cortex, _home: Path, _project: Path) -> None:
    assert pending_in(cortex) == len(TEXTS)
    assert cortex.memories.finish_reading()


def _by_many(cortex: Cortex, home: Path, project: Path) -> None:
    with opened(home, project) as second, opened(home, project) as third, ThreadPoolExecutor(6) as threads:
        readers = [threads.submit(one.memories.finish_reading) for one in (cortex, second, third) for _ in range(2)]
        assert all(one.result() for one in readers)


def _by_upkeep(cortex: Cortex, home: Path, project: Path) -> None:
    with opened(home, project) as other:
        other.upkeep()


WAYS = {"after all": _after_all, "by many at once": _by_many, "by upkeep": _by_upkeep}


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_the_graph_is_as_if_each_note_had_been_read_at_once(
    home: Path,
    project: Path,
    read_at_once: dict[str, list[Any]],
    way: Callable[[Cortex, Path, Path], None],
) -> None:
    with opened(home, project) as cortex:
        for text in TEXTS:
            assert cortex.memories.capture(text).pending == ("graph",)
        way(cortex, home, project)
        assert graph_of(cortex) == read_at_once
        assert read_at_once["relationship"]
        assert {row[1] for row in read_at_once["memory"]} == {1}


def test_many_at_once_are_read_as_one_after_another(
    home: Path, project: Path, read_at_once: dict[str, list[Any]]
) -> None:
    with opened(home, project) as cortex:
        cortex.memories.capture_many([NewMemory(content=text, namespace="context") for text in TEXTS])
        assert cortex.memories.finish_reading()
        assert graph_of(cortex) == read_at_once


def test_what_a_killed_process_left_is_read_once_by_the_next(
    home: Path, project: Path, read_at_once: dict[str, list[Any]]
) -> None:
    code = (
        "import json, os, signal, sys\n"
        f"sys.path.insert(0, {str(Path(__file__).parents[1])!r})\n"
        "from cortex_py import Cortex\n"
        "from stub_backend import StubBackend\n"
        "cortex = Cortex.open(sys.argv[1], project=sys.argv[2], backend=StubBackend())\n"
        "for text in json.load(sys.stdin):\n"
        "    cortex.memories.capture(text)\n"
        "print('acknowledged', flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    command = [*python_command(), "-c", code, str(home), str(project)]
    run = subprocess.run(command, input=json.dumps(TEXTS), capture_output=True, text=True, check=False)
    assert run.stdout == "acknowledged\n", run.stderr
    with opened(home, project) as cortex:
        assert cortex.memories.status().total_count == len(TEXTS)
        assert pending_in(cortex) == 0
        assert graph_of(cortex) == read_at_once


@pytest.mark.background_reading
def test_a_process_that_opens_the_home_takes_up_what_was_left(
    home: Path, project: Path, read_at_once: dict[str, list[Any]]
) -> None:
    with opened(home, project, reads="asks") as cortex:
        for text in TEXTS:
            cortex.memories.capture(text)
        assert pending_in(cortex) == len(TEXTS)
    with opened(home, project, linger=0.0) as cortex:
        assert cortex.jobs.join(60)
        assert graph_of(cortex) == read_at_once


def test_whatever_asks_for_the_graph_gets_it_with_the_last_note(home: Path, project: Path) -> None:
    with opened(home, project) as cortex:
        noted = cortex.memories.capture("Maria Keller runs Zanzibar on PostgreSQL; mail maria@keller-werke.de.")
        assert dict(noted.personal or ()) == {"email": 1}
        assert cortex.graph.get("PostgreSQL").entity.mention_count == 1
        again = cortex.memories.capture("Redis holds the sessions of Zanzibar.")
        assert [hit.memory.id for hit in cortex.memories.recall(filter="entity:Redis").results] == [again.id]
        third = cortex.memories.capture("Write to Maria Keller, maria@keller-werke.de.")
        assert dict(cortex.memories.get(third.id).personal or ())["email"] == 1
        assert pending_in(cortex) == 0


@pytest.mark.parametrize("hard", [False, True])
def test_a_note_that_is_deleted_before_it_was_read_names_nothing(home: Path, project: Path, hard: bool) -> None:
    with opened(home, project) as cortex:
        noted = cortex.memories.capture("Zanzibar stores its rows in CockroachDB.")
        cortex.memories.delete(noted.id, hard=hard)
        with pytest.raises(EntityNotFound):
            cortex.graph.get("CockroachDB")
        if not hard:
            cortex.memories.restore(noted.id)
            assert cortex.graph.get("CockroachDB").entity.mention_count == 1


def test_where_too_much_is_pending_captures_read_themselves(
    home: Path, project: Path, read_at_once: dict[str, list[Any]]
) -> None:
    with opened(home, project, most_pending=10) as cortex:
        most = 0
        for text in TEXTS:
            cortex.memories.capture(text)
            most = max(most, pending_in(cortex))
        assert 0 < most <= 11
        assert cortex.memories.finish_reading()
        assert graph_of(cortex) == read_at_once


def test_neither_an_import_nor_the_captures_after_it_read(home: Path, project: Path) -> None:
    with opened(home, project, most_pending=10) as cortex:
        cortex.memories.capture_many([NewMemory(content=f"Note {n} of an import.") for n in range(600)])
        assert pending_in(cortex) == 600
        for n in range(10):
            cortex.memories.capture(f"Zanzibar has shard {n}.")
        assert pending_in(cortex) == 610
        cortex.memories.capture("Zanzibar has one shard too many.")
        assert pending_in(cortex) < 610


def test_a_process_that_comes_after_an_import_does_not_read_at_its_captures(home: Path, project: Path) -> None:
    with opened(home, project) as cortex:
        cortex.memories.capture_many([NewMemory(content=f"Note {n} of an import.") for n in range(30)])
    with opened(home, project, most_pending=10) as cortex:
        cortex.memories.capture("Zanzibar has one shard.")
        cortex.memories.capture("Zanzibar has two shards.")
        assert pending_in(cortex) == 32


@pytest.mark.background_reading
def test_the_thread_reads_when_captures_pause_and_ends(home: Path, project: Path) -> None:
    with opened(home, project, linger=0.0) as cortex:
        cortex.memories.capture("Zanzibar stores its rows in PostgreSQL.")
        assert cortex.jobs.join(60)
        assert pending_in(cortex) == 0


def test_a_recall_ends_a_pause(home: Path, project: Path) -> None:
    with opened(home, project) as cortex:
        # It decides at once, and a call counts for an hour.
        assert cortex.jobs.wait_for_a_pause(patience=0.0, quiet=3_600.0)
        cortex.memories.recall("anything")
        assert not cortex.jobs.wait_for_a_pause(patience=0.0, quiet=3_600.0)


def test_upkeep_lets_calls_go_first_in_the_middle_of_its_work(
    home: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Notes of an older version, a scan for personal data, and a snapshot: each is a long piece of work."""
    monkeypatch.setattr("cortex_py.core.memory.lifecycle.READ_BATCH", 4)
    seen: list[tuple[int, int]] = []

    with opened(home, project, stretch=0.0) as cortex:

        def wait(*_: object) -> bool:
            with cortex.store.database.read() as session:
                seen.extend(session.rows("SELECT sum(graphed = 0), sum(personal IS NULL) FROM memory"))
            return True

        cortex.memories.capture_many([NewMemory(content=text) for text in TEXTS[:12]])
        assert cortex.memories.finish_reading()
        with cortex.store.database.write() as session:
            session.run("UPDATE memory SET graphed = 0, personal = NULL")
        monkeypatch.setattr(Jobs, "wait_for_a_pause", wait)
        cortex.upkeep()
        assert len(cortex.backups.snapshots()) == 1
    assert [unread for unread, _ in seen[:4]] == [12, 8, 4, 0]
    assert [unlooked for _, unlooked in seen[4:8]] == [12, 8, 4, 0]
    # The rest is the snapshot, which reports each document that it writes or reads back.
    assert len(seen[8:]) > 2 * 12


def test_a_stretch_of_background_work_is_short(monkeypatch: pytest.MonkeyPatch, home: Path, project: Path) -> None:
    now, waits = [100.0], list[float]()
    monkeypatch.setattr("cortex_py.core.jobs.time.monotonic", lambda: now[0])
    with opened(home, project) as cortex:
        monkeypatch.setattr(Jobs, "wait_for_a_pause", lambda *_: waits.append(now[0]))
        let_calls_pass = cortex.jobs.let_calls_pass()
        while now[0] < 101.0:
            let_calls_pass()
            now[0] += 1 / 128
    # At the first step after 50 ms.
    assert {later - earlier for earlier, later in pairwise(waits)} == {7 / 128}


def test_upkeep_leaves_pending_notes_to_the_thread_that_waits_for_calls(
    home: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken_up: list[int] = []
    with opened(home, project) as cortex:
        monkeypatch.setattr(Jobs, "take_up", lambda _: taken_up.append(pending_in(cortex)))
        # Makes the snapshot that is due, for which pending notes would be read.
        cortex.upkeep()
        cortex.memories.capture(TEXTS[0])
        cortex.upkeep()
        assert taken_up[-1] == 1
        assert [row[1:] for row in graph_of(cortex)["memory"]] == [(2, None)]
        assert cortex.memories.finish_reading()
        assert [row[1] for row in graph_of(cortex)["memory"]] == [1]


def test_a_process_leaves_notes_to_another_that_reads_them_too(
    home: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(home, project) as cortex, opened(home, project) as other:
        for text in TEXTS[:6]:
            cortex.memories.capture(text)
        until = time.monotonic() + 60
        read_stored, read = Capture.read_stored, list[int]()

        def read_while_the_other_does(capture: Capture, space: str, num: int, memory: Memory) -> StoredRecord:
            monkeypatch.setattr(Capture, "read_stored", read_stored)
            other.jobs.read(None, 1, until)
            monkeypatch.setattr(Capture, "read_stored", read_while_the_other_does)
            read.append(num)
            return read_stored(capture, space, num, memory)

        monkeypatch.setattr(Capture, "read_stored", read_while_the_other_does)
        assert not cortex.jobs.read(None, 16, until)
        monkeypatch.setattr(Capture, "read_stored", read_stored)
        assert (len(read), pending_in(cortex)) == (1, 5)
        # A query of the graph waits until all are read, by either process.
        assert cortex.memories.finish_reading()
        assert pending_in(cortex) == 0


def test_a_filter_waits_for_the_graph_only_if_it_asks_for_what_is_read(home: Path, project: Path) -> None:
    with opened(home, project) as cortex:
        cortex.memories.capture("Maria Keller runs Zanzibar.", tags=["identity"])
        for filter in ("tag:identity", "-tag:impersonal", "source:entity-list"):
            cortex.memories.recall(filter=filter)
            assert pending_in(cortex) == 1
        cortex.memories.recall(filter='entity:"Maria Keller"')
        assert pending_in(cortex) == 0
