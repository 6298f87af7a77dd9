"""What could be tidied up, each with its command; and recalls that are counted without being waited for."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from cortex_py import Cortex, Memory
from cortex_py.core.embedding.backends.backend import Backend
from cortex_py.core.errors import StoreReadOnly
from cortex_py.core.memory.consolidation.consolidation import HygieneFinding

from helpers import FakeClock
from shell import Shell
from stub_backend import StubBackend


@pytest.fixture
def desk(home: Path, project: Path, clock: FakeClock) -> Iterator[Cortex]:
    with Cortex.open(home, project=project, clock=clock, backend=StubBackend()) as opened:
        yield opened


def found(cortex: Cortex, trouble: str) -> list[HygieneFinding]:
    return [one for one in cortex.memories.suggest() if one.trouble == trouble]


def counts(cortex: Cortex) -> dict[str, int]:
    with cortex.store.database.read() as session:
        return dict(session.rows("SELECT memory_id, recalls FROM recalled"))


def store_files(home: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in home.iterdir() if file.name.endswith((".db", "-wal"))}


# -- what is found ---------------------------------------------------------------------------------


def test_a_tidy_store_has_no_findings(desk: Cortex) -> None:
    desk.memories.capture("use tabs")
    assert desk.memories.suggest() == []


def test_duplicates_are_found_with_the_command_that_joins_them(cortex: Cortex, clock: FakeClock) -> None:
    same = ("We use PostgreSQL 15 for the orders service.", "The orders service runs on PostgreSQL 15.")
    notes = [cortex.memories.capture(text, namespace="decisions").id for text in same]
    repeats = [cortex.memories.capture(text, namespace="apis").id for text in ("Use tabs.", "use  tabs")]
    findings = found(cortex, "duplicate")
    assert {one.memories: one.remedy for one in findings} == {
        tuple(repeats): "cortex consolidate apis --strategy dedupe",
        tuple(notes): "cortex consolidate decisions --strategy merge",
    }
    assert all("2 memories say the same" in one.reason for one in findings)


def test_contradictions_are_found_once_and_the_newer_stays(cortex: Cortex, clock: FakeClock) -> None:
    old = cortex.memories.capture("The gateway listens on port 8080.")
    # In the same moment, as an import would have it.
    new = cortex.memories.capture("The gateway listens on port 9090.")
    cortex.memories.capture("The gateway listens on port 7070.", role="user")
    (finding,) = found(cortex, "contradicted")
    assert (finding.memories, finding.reason) == ((old.id, new.id), "number: 8080 / 9090")
    assert finding.remedy.startswith("cortex supersede ")


def test_a_memory_is_stale_when_neither_changed_nor_used_for_half_a_year(desk: Cortex, clock: FakeClock) -> None:
    recalled, changed, loaded, seen = (
        desk.memories.capture(text) for text in ("recalled apple", "changed pear", "loaded plum", "seen cherry")
    )
    for one in (recalled, changed, loaded, seen):
        desk.memories.recall(one.content, mode="text", limit=1)
    clock.advance(days=100)
    desk.memories.recall("cherry", mode="text", limit=1)
    clock.advance(days=81)
    desk.memories.update(changed.id, tags=["x"])
    desk.memories.used(loaded)
    desk.upkeep()
    (finding,) = found(desk, "stale")
    assert finding.memories == (recalled.id,)
    assert "2026-01-02" in finding.reason
    assert finding.remedy == f"cortex update {recalled.id[:12]} --status archived"
    assert found(desk, "never-recalled") == []


def test_stale_ones_are_found_behind_many_that_were_never_recalled(desk: Cortex, clock: FakeClock) -> None:
    stale = desk.memories.capture("the needle")
    desk.memories.recall("needle", mode="text")
    desk.memories.write_uses()
    for n in range(60):
        desk.memories.capture(f"hay{n} straw{n}")
    clock.advance(days=200)
    assert [one.memories for one in found(desk, "stale")] == [(stale.id,)]
    assert len(found(desk, "never-recalled")) == 50


def test_a_memory_is_never_recalled_after_two_months(desk: Cortex, clock: FakeClock) -> None:
    unseen, seen = desk.memories.capture("unseen apple"), desk.memories.capture("seen pear")
    desk.memories.recall("pear", mode="text")
    desk.memories.write_uses()
    clock.advance(days=59)
    assert found(desk, "never-recalled") == []
    clock.advance(days=2)
    (finding,) = found(desk, "never-recalled")
    assert finding.memories == (unseen.id,)
    assert seen.id not in finding.remedy


def test_an_oversized_memory_is_found(desk: Cortex) -> None:
    desk.memories.capture("x" * 20_000)
    large = desk.memories.capture("word " * 4_001)
    (finding,) = found(desk, "oversized")
    assert (finding.memories, "20,005" in finding.reason) == ((large.id,), True)


def test_what_is_not_seen_is_not_reported(desk: Cortex, clock: FakeClock) -> None:
    for text in ("apple", "pear"):
        desk.memories.capture(text, ttl="1h")
    desk.memories.delete(desk.memories.capture("plum").id)
    desk.memories.update(desk.memories.capture("word " * 5_000).id, status="archived")
    clock.advance(days=400)
    assert desk.memories.suggest() == []


def test_nothing_is_changed_by_looking(cortex: Cortex, clock: FakeClock) -> None:
    for text in ("Use tabs.", "use tabs", "The gateway is on port 1.", "The gateway is on port 2."):
        cortex.memories.capture(text)
    clock.advance(days=300)
    before = cortex.memories.revision()
    assert {one.trouble for one in cortex.memories.suggest()} >= {"duplicate", "contradicted", "never-recalled"}
    assert cortex.memories.revision() == before


@pytest.mark.soak
def test_every_remedy_is_a_command_that_works(home: Path, project: Path, clock: FakeClock, model: Backend) -> None:
    def seen(cortex: Cortex, text: str) -> Memory:
        clock.advance(seconds=1)
        return cortex.memories.capture(text)

    with Cortex.open(home, project=project, clock=clock, backend=model) as cortex:
        for text in (
            "Use tabs.",
            "use tabs",
            "The gateway is on port 1.",
            "The gateway is on port 2.",
            "word " * 5_000,
        ):
            seen(cortex, text)
        cortex.memories.recall(seen(cortex, "a stale needle").content, limit=1)
        cortex.memories.write_uses()
        clock.advance(days=300)
        findings = cortex.memories.suggest()
        assert {one.trouble for one in findings} == {
            "duplicate",
            "contradicted",
            "stale",
            "never-recalled",
            "oversized",
        }
    remedies = {one.trouble: one.remedy for one in findings}
    shell = Shell(home, project)
    for trouble in ("stale", "contradicted", "duplicate"):
        name, *words = shlex.split(remedies[trouble])
        assert name == "cortex"
        shell.text(*words)
    with Cortex.open(home, project=project, clock=clock, backend=model) as cortex:
        left = {one.trouble for one in cortex.memories.suggest()}
    assert not left & {"stale", "contradicted", "duplicate"}


# -- recalls ---------------------------------------------------------------------------------------


@pytest.mark.sqlite_only
def test_recalls_with_a_query_are_counted_and_written_down_later(desk: Cortex, home: Path) -> None:
    apple, pear = desk.memories.capture("apple"), desk.memories.capture("pear")
    desk.memories.recall("warm")
    desk.memories.write_uses()
    before = counts(desk)
    files = store_files(home)
    for _ in range(3):
        desk.memories.recall("apple", mode="text")
    desk.memories.recall(filter="since:1d")
    desk.memories.get(pear.id)
    assert store_files(home) == files
    assert counts(desk) == before
    desk.memories.write_uses()
    assert counts(desk)[apple.id] == before.get(apple.id, 0) + 3
    assert counts(desk).get(pear.id, 0) == before.get(pear.id, 0)
    after = desk.memories.revision()
    desk.memories.write_uses()
    assert desk.memories.revision() == after


def test_upkeep_and_closing_write_them_too_and_memories_stay_as_they_are(
    home: Path, project: Path, clock: FakeClock
) -> None:
    with Cortex.open(home, project=project, clock=clock, backend=StubBackend()) as cortex:
        memory = cortex.memories.capture("apple")
        cortex.memories.recall("apple")
        cortex.upkeep()
        assert counts(cortex) == {memory.id: 1}
        cortex.memories.recall("apple")
    with Cortex.open(home, project=project, clock=clock, backend=StubBackend()) as cortex:
        assert counts(cortex) == {memory.id: 2}
        assert cortex.memories.get(memory.id) == memory


def test_the_last_recall_counts_whoever_writes_it_first(home: Path, project: Path, clock: FakeClock) -> None:
    with (
        Cortex.open(home, project=project, clock=clock, backend=StubBackend()) as slow,
        Cortex.open(home, project=project, clock=clock, backend=StubBackend()) as quick,
    ):
        memory = slow.memories.capture("apple")
        slow.memories.recall("apple")
        clock.advance(days=190)
        quick.memories.recall("apple")
        quick.memories.write_uses()
        slow.memories.write_uses()
        assert counts(slow) == {memory.id: 2}
        assert found(slow, "stale") == []


@pytest.mark.sqlite_only
def test_a_home_that_can_only_be_read_does_not_keep_anybody_from_closing(
    home: Path, project: Path, clock: FakeClock
) -> None:
    cortex = Cortex.open(home, project=project, clock=clock, backend=StubBackend())
    cortex.memories.capture("apple")
    cortex.memories.recall("apple")
    with cortex.store.database.read() as session:
        # Root may write any file; this connection, which is the only one, may not.
        session.run("PRAGMA query_only = ON")
    with pytest.raises(StoreReadOnly):
        cortex.memories.capture("pear")
    cortex.close()
    with Cortex.open(home, project=project, clock=clock, backend=StubBackend()) as again:
        assert counts(again) == {}
        assert again.memories.status().total_count == 1
