"""Idle memories are packed without loss: whoever reads, searches, changes or shares them sees no difference."""

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from cortex_py import Cortex, Memory, NewMemory
from cortex_py.core.embedding.backends.backend import Backend
from cortex_py.core.memory.compression import CompressionResult

from helpers import FakeClock
from stub_backend import StubBackend

LONG = "The deployment of the billing service is rolled back by hand when the health check fails twice. " * 12
ODD = "Zeile eins 🧠\r\nline two\rlone return\n" * 20
NOTES = (
    LONG,
    ODD,
    "Retry payments with an idempotency key, because the provider answers twice. " * 8,
    "The search index is rebuilt at night; during that time queries go to the replica. " * 8,
    "Use tabs.",
)


@pytest.fixture
def quick(home: Path, project: Path, clock: FakeClock) -> Iterator[Cortex]:
    with Cortex.open(home, project=project, clock=clock, backend=StubBackend()) as opened:
        yield opened


def _packed(cortex: Cortex) -> int:
    with cortex.store.database.read() as session:
        return int(session.rows("SELECT count(*) FROM memory WHERE packed IS NOT NULL")[0][0])


def test_nothing_is_packed_before_half_an_hour(quick: Cortex, clock: FakeClock) -> None:
    memory = quick.memories.capture(LONG)
    clock.advance(minutes=29, seconds=59)
    assert quick.upkeep() == CompressionResult(0, 0, 0)
    assert not quick.memories.get(memory.id).compressed
    clock.advance(seconds=1)
    done = quick.upkeep()
    assert (done.records, done.bytes_before) == (1, len(LONG.encode()))
    assert 0 < done.bytes_after < 0.5 * done.bytes_before
    assert quick.memories.get(memory.id).compressed
    assert quick.upkeep() == CompressionResult(0, 0, 0)


def test_the_packed_text_is_really_gone_from_the_file(quick: Cortex, clock: FakeClock) -> None:
    quick.memories.capture(LONG)
    clock.advance(hours=1)
    quick.upkeep()
    with quick.store.database.read() as session:
        assert session.rows("SELECT content FROM memory") == [("",)]


def test_every_way_of_reading_gives_the_very_text(quick: Cortex, clock: FakeClock) -> None:
    branch = quick.contexts.create_branch("Work")
    captured = [quick.memories.capture(text, branch_id=branch.id) for text in NOTES]
    before = [quick.memories.history(one.id) for one in captured]
    file = quick.contexts.check_branch(branch.id).path
    shown = file.read_bytes()
    clock.advance(hours=1)
    assert quick.upkeep().records == len(NOTES) - 1
    for memory, text, versions in zip(captured, NOTES, before, strict=True):
        assert quick.memories.get(memory.id).content.encode() == text.encode()
        assert quick.memories.history(memory.id) == versions
        assert quick.contexts.load(memory.id, branch.id).content == text
    assert sorted(hit.memory.content for hit in quick.memories.recall().results) == sorted(NOTES)
    searched = quick.memories.recall("deployment", min_score=0.0).results
    assert sorted(hit.memory.content for hit in searched) == sorted(NOTES)
    assert [one.content for one in quick.contexts.content(branch.id)] == list(NOTES)
    quick.contexts.sync(branch.id)
    assert file.read_bytes() == shown


def test_results_and_scores_are_the_same(cortex: Cortex, clock: FakeClock, retrieval: str) -> None:
    for text in NOTES:
        cortex.memories.capture(text)
    queries = ("who rolls back the deployment", "idempotency", "night replica queries", "")
    modes = ("hybrid", "vector", "text")

    def answers() -> list[tuple[str, float, float, str]]:
        pages = [cortex.memories.recall(query, mode=mode) for query in queries for mode in modes]
        return [(hit.memory.id, hit.score, hit.raw_score, hit.snippet) for page in pages for hit in page.results]

    clock.advance(hours=1)
    before = answers()
    assert cortex.upkeep().records == len(NOTES) - 1
    assert answers() == before
    # Nor does it hang on what this process remembers of them.
    cortex.store.search.forget_all()
    assert answers() == before


def test_a_packed_memory_has_a_summary_and_keeps_its_own(quick: Cortex, clock: FakeClock) -> None:
    plain = quick.memories.capture(LONG)
    own = quick.memories.capture(LONG + "!", summary="Rolled back by hand.")
    clock.advance(hours=1)
    quick.upkeep()
    summary = quick.memories.get(plain.id).summary
    assert summary
    assert len(summary) <= 220
    assert summary.startswith("The deployment of the billing service")
    assert quick.memories.get(own.id).summary == "Rolled back by hand."


def test_an_update_unpacks_and_is_packed_again_later(quick: Cortex, clock: FakeClock) -> None:
    memory = quick.memories.capture(LONG)
    clock.advance(hours=1)
    quick.upkeep()
    changed = quick.memories.update(memory.id, content=ODD)
    assert not changed.compressed
    assert quick.memories.get(memory.id) == changed
    assert quick.upkeep().records == 0
    clock.advance(minutes=30)
    assert quick.upkeep().records == 1
    assert quick.memories.get(memory.id).content == ODD
    assert [one.content for one in quick.memories.history(memory.id)] == [LONG, ODD]


def test_changing_only_the_tags_of_a_packed_memory_keeps_its_text(quick: Cortex, clock: FakeClock) -> None:
    memory = quick.memories.capture(LONG)
    clock.advance(hours=1)
    quick.upkeep()
    quick.memories.update(memory.id, tags=["new"])
    assert quick.memories.get(memory.id).content == LONG
    assert quick.memories.recall(filter="tag:new").results[0].memory.content == LONG


def test_a_packed_memory_can_be_deleted_restored_reindexed_and_purged(quick: Cortex, clock: FakeClock) -> None:
    memory = quick.memories.capture(LONG)
    clock.advance(hours=1)
    quick.upkeep()
    quick.memories.delete(memory.id)
    assert quick.memories.history(memory.id)[0].content == LONG
    assert quick.memories.restore(memory.id).content == LONG
    assert quick.memories.recall("billing", mode="text").total == 1
    quick.memories.reindex()
    assert quick.memories.recall("billing", mode="text").results[0].memory.content == LONG
    assert _packed(quick) == 1
    quick.memories.delete(memory.id, hard=True)
    assert quick.memories.recall().total == 0


def test_loading_a_memory_postpones_its_packing(quick: Cortex, clock: FakeClock) -> None:
    used, idle = quick.memories.capture(LONG), quick.memories.capture(ODD)
    clock.advance(minutes=20)
    quick.contexts.load(used.id)
    clock.advance(minutes=20)
    assert quick.upkeep().records == 1
    assert quick.memories.get(idle.id).compressed
    found = quick.memories.get(used.id)
    assert not found.compressed
    assert found.accessed_at is not None
    clock.advance(minutes=10)
    assert quick.upkeep().records == 1


def test_zero_minutes_mean_never(home: Path, project: Path, clock: FakeClock) -> None:
    with Cortex.open(home, project=project, clock=clock, backend=StubBackend(), compress_after_minutes=0) as opened:
        opened.memories.capture(LONG)
        clock.advance(days=365)
        assert opened.upkeep() == CompressionResult(0, 0, 0)
        opened.memories.gc()
        assert _packed(opened) == 0


def test_tiny_memories_are_left_and_not_tried_again(
    quick: Cortex, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = quick.memories.capture("Use tabs.")
    clock.advance(hours=1)
    assert quick.upkeep() == CompressionResult(0, 0, 0)
    assert not quick.memories.get(memory.id).compressed
    monkeypatch.setattr("cortex_py.core.memory.compression.pack", lambda *_: pytest.fail("tried again"))
    assert quick.upkeep() == CompressionResult(0, 0, 0)


@pytest.mark.slow
def test_another_process_and_a_later_one_read_packed_memories(home: Path, project: Path, clock: FakeClock) -> None:
    def opened() -> Cortex:
        return Cortex.open(home, project=project, clock=clock, backend=StubBackend())

    with opened() as first, opened() as second:
        texts = [f"{text} {n}" for n in range(120) for text in (LONG[:900], ODD)]
        ids = [one.id for one in first.memories.capture_many(NewMemory(content=text) for text in texts)]
        assert second.memories.recall("deployment", limit=1, min_score=0.0).total == 240
        clock.advance(hours=1)
        assert first.upkeep().records == 240
        with first.store.database.read() as session:
            # Enough alike for a dictionary, which the other process has never seen.
            assert session.rows("SELECT count(*) FROM dictionary") == [(1,)]
        for text, memory_id in zip(texts, ids, strict=True):
            found = second.memories.get(memory_id)
            assert (found.compressed, found.content) == (True, text)
        assert second.upkeep().records == 0
        late = second.memories.capture(LONG)
        clock.advance(hours=1)
        # On a shared database one of them does it for both.
        assert first.upkeep().records + second.upkeep().records == 1
    with opened() as third:
        assert third.memories.get(late.id).content == LONG
        assert third.memories.get(ids[7]).content == texts[7]
        assert third.check() == []


@pytest.mark.slow
def test_packing_stops_when_asked_and_goes_on_later(quick: Cortex, clock: FakeClock) -> None:
    quick.memories.capture_many(NewMemory(content=f"{LONG[:300]} {n}") for n in range(250))
    clock.advance(hours=1)
    asked = 0

    def stop() -> bool:
        nonlocal asked
        asked += 1
        return asked > 1

    assert quick.memories.compress(lambda: True) == CompressionResult(0, 0, 0)
    first = quick.memories.compress(stop).records
    assert 0 < first < 250
    assert quick.memories.compress().records == 250 - first
    assert _packed(quick) == 250


def test_a_memory_that_changes_meanwhile_is_not_damaged(
    quick: Cortex, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    from cortex_py.core.memory import compression as compressing

    changed, deleted, purged = (quick.memories.capture(f"{LONG} {name}") for name in ("changed", "deleted", "purged"))
    clock.advance(hours=1)
    real, calls = compressing.pack, []

    def meddling(content: str, dictionary: bytes | None = None) -> bytes | None:
        if not calls:
            quick.memories.update(changed.id, content=ODD)
            quick.memories.delete(deleted.id)
            quick.memories.delete(purged.id, hard=True)
        calls.append(content)
        return real(content, dictionary)

    monkeypatch.setattr(compressing, "pack", meddling)
    quick.upkeep()
    found = quick.memories.get(changed.id)
    assert (found.content, found.version, found.compressed) == (ODD, 2, False)
    assert quick.memories.restore(deleted.id).content == f"{LONG} deleted"
    assert quick.memories.recall().total == 2
    clock.advance(hours=1)
    quick.upkeep()
    assert quick.memories.get(changed.id).content == ODD


def test_collecting_garbage_packs(quick: Cortex, clock: FakeClock) -> None:
    memory = quick.memories.capture(LONG)
    clock.advance(hours=1)
    quick.memories.gc(dry_run=True)
    assert not quick.memories.get(memory.id).compressed
    quick.memories.gc()
    assert quick.memories.get(memory.id).compressed


def test_packing_is_no_change_to_what_others_follow(quick: Cortex, clock: FakeClock) -> None:
    memory = quick.memories.capture(LONG)
    clock.advance(hours=1)
    before = quick.memories.revision()
    quick.upkeep()
    assert quick.memories.revision() == before
    assert quick.memories.get(memory.id).updated_at == memory.updated_at


def _mixed(count: int, large: int) -> list[str]:
    """Texts of all kinds, some of a megabyte."""
    lot = random.Random(11)
    alphabet = ["a", "b", "word ", "two words ", "\r\n", "\r", "\n", "\t", "🧠", "👩‍🚀", "é", "ß", "中文", "\0", " "]
    texts = ["".join(lot.choices(alphabet, k=lot.randrange(1, 400))) + f"x{n}" for n in range(count)]
    for n in lot.sample(range(count), large):
        texts[n] = "".join(lot.choices(alphabet, k=2_000)) * 160 + f"x{n}"
        assert len(texts[n].encode()) > 500_000
    return texts


def _check_mixed(cortex: Cortex, clock: FakeClock, count: int, large: int) -> None:
    texts = _mixed(count, large)
    stored: list[Memory] = []
    for low in range(0, count, 1000):
        stored += cortex.memories.capture_many(NewMemory(content=text) for text in texts[low : low + 1000])
    clock.advance(hours=1)
    assert cortex.upkeep().records > 0.5 * count
    for memory, text in zip(stored, texts, strict=True):
        assert cortex.memories.get(memory.id).content.encode() == text.encode()
    assert cortex.check() == []


def _cheaply_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the beginning is cut and indexed: packing is what is tested, and a megabyte has thousands of chunks."""
    from cortex_py.core.memory.capture import capture

    real = capture.passages
    monkeypatch.setattr(capture, "passages", lambda content, *rest: real(content[:2_000], *rest))


@pytest.mark.slow
def test_mixed_memories_come_back_byte_by_byte(
    quick: Cortex, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    _cheaply_cut(monkeypatch)
    _check_mixed(quick, clock, 150, 1)


@pytest.mark.soak
def test_ten_thousand_mixed_memories_come_back_byte_by_byte(
    quick: Cortex, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    _cheaply_cut(monkeypatch)
    _check_mixed(quick, clock, 10_000, 20)


def test_the_real_model_finds_a_packed_memory_by_its_meaning(
    home: Path, project: Path, clock: FakeClock, model: Backend
) -> None:
    with Cortex.open(home, project=project, clock=clock, backend=model) as opened:
        for text in NOTES:
            opened.memories.capture(text)
        clock.advance(hours=1)
        opened.upkeep()
        best = opened.memories.recall("how do we avoid charging a customer two times").results[0].memory
    assert best.compressed
    assert best.content == NOTES[2]
