"""What becomes of a memory: versions, deletion, restoration, purging, reindexing."""

from pathlib import Path

import pytest

from cortex_py import Cortex, NewMemory
from cortex_py.core.clock import context_id, memory_uri, memory_urn
from cortex_py.core.errors import AmbiguousId, Conflict, InvalidId, InvalidInput, MemoryNotFound

from helpers import FakeClock

FAKE_TOKEN = "ghp_" + "a1B2c3D4e5" * 3 + "f6G7h8"


def _finds(cortex: Cortex, query: str, mode="hybrid") -> set[str]:
    return {hit.memory.id for hit in cortex.memories.recall(query, mode=mode).results}


def test_a_memory_is_found_by_every_spelling_of_its_id(cortex: Cortex) -> None:
    memory = cortex.memories.capture("x", namespace="apis")
    spellings = (
        memory.id,
        memory.id[:9],
        context_id(memory.id),
        memory_uri(memory.id),
        memory_urn("project", "apis", memory.id),
    )
    for spelling in spellings:
        assert cortex.memories.get(spelling).id == memory.id


def test_eight_digits_name_one_of_many_that_were_captured_at_once(cortex: Cortex) -> None:
    made = cortex.memories.capture_many([NewMemory(content=f"note {n}") for n in range(300)])
    for memory in made:
        assert cortex.memories.get(memory.id[:8]).id == memory.id


def test_an_ambiguous_prefix_lists_the_candidates(cortex: Cortex, clock: FakeClock) -> None:
    first = cortex.memories.capture("a")
    clock.repeat_prefix()
    second = cortex.memories.capture("b")
    assert first.id[:8] == second.id[:8]
    with pytest.raises(AmbiguousId) as refused:
        cortex.memories.get(first.id[:8])
    assert sorted(refused.value.candidates) == sorted((first.id, second.id))


def test_unknown_and_malformed_ids_are_told_apart(cortex: Cortex) -> None:
    with pytest.raises(MemoryNotFound):
        cortex.memories.get("0" * 40)
    with pytest.raises(InvalidId):
        cortex.memories.get("not-an-id")


def test_an_update_is_a_new_version_and_the_old_one_is_kept(cortex: Cortex, clock: FakeClock) -> None:
    memory = cortex.memories.capture("Use MySQL", namespace="decisions", tags=["db"])
    clock.advance(hours=1)
    changed = cortex.memories.update(memory.id, content="Use PostgreSQL", tags=["db", "sql"])
    assert (changed.version, changed.content, changed.tags) == (2, "Use PostgreSQL", ("db", "sql"))
    assert (changed.id, changed.created_at, changed.namespace) == (memory.id, memory.created_at, "decisions")
    clock.advance(hours=1)
    cortex.memories.update(memory.id, namespace="patterns")
    versions = cortex.memories.history(memory.id)
    assert [(v.version, v.content, v.namespace, v.operation) for v in versions] == [
        (1, "Use MySQL", "decisions", "capture"),
        (2, "Use PostgreSQL", "decisions", "update"),
        (3, "Use PostgreSQL", "patterns", "update"),
    ]
    assert [v.recorded_at.hour for v in versions] == [12, 13, 14]


def test_an_update_changes_what_is_found(cortex: Cortex) -> None:
    memory = cortex.memories.capture("elephants in the zoo")
    cortex.memories.capture("something else entirely, about rivers")
    cortex.memories.update(memory.id, content="volcanoes of Iceland")
    assert _finds(cortex, "elephants", "text") == set()
    assert _finds(cortex, "volcanoes", "text") == {memory.id}
    assert cortex.memories.recall("lava and eruptions", mode="vector").results[0].memory.id == memory.id


def test_an_update_is_scanned_for_secrets(cortex: Cortex) -> None:
    memory = cortex.memories.capture("harmless")
    changed = cortex.memories.update(memory.id, content=f"now with {FAKE_TOKEN}")
    assert FAKE_TOKEN not in changed.content
    assert changed.redactions


def test_a_stale_update_is_refused(cortex: Cortex) -> None:
    memory = cortex.memories.capture("one")
    cortex.memories.update(memory.id, content="two", expected_version=1)
    with pytest.raises(Conflict, match="version 2"):
        cortex.memories.update(memory.id, content="three", expected_version=1)
    with pytest.raises(InvalidInput):
        cortex.memories.update(memory.id)


@pytest.mark.parametrize("mode", ["hybrid", "vector", "text"])
def test_a_deleted_memory_vanishes_and_restore_brings_all_back(cortex: Cortex, mode) -> None:
    memory = cortex.memories.capture("the walrus and the carpenter", tags=["poem"], namespace="learnings")
    cortex.memories.delete(memory.id)
    assert _finds(cortex, "walrus carpenter", mode) == set()
    assert cortex.memories.recall().total == 0
    assert cortex.memories.recall(filter="tag:poem").total == 0
    assert cortex.memories.status().total_count == 0
    assert cortex.memories.status().top_tags == ()
    with pytest.raises(MemoryNotFound):
        cortex.memories.get(memory.id)
    with pytest.raises(MemoryNotFound):
        cortex.memories.update(memory.id, content="x")
    with pytest.raises(MemoryNotFound):
        cortex.memories.delete(memory.id)
    assert cortex.memories.history(memory.id)[-1].operation == "delete"
    cortex.memories.restore(memory.id)
    assert _finds(cortex, "walrus carpenter", mode) == {memory.id}
    assert cortex.memories.recall(filter="tag:poem").total == 1
    with pytest.raises(InvalidInput):
        cortex.memories.restore(memory.id)


def test_restore_gives_back_the_status_it_had(cortex: Cortex) -> None:
    memory = cortex.memories.capture("x")
    cortex.memories.update(memory.id, status="pending")
    cortex.memories.delete(memory.id)
    assert cortex.memories.restore(memory.id).status == "pending"


def test_a_hard_delete_leaves_no_trace(cortex: Cortex, home: Path) -> None:
    memory = cortex.memories.capture("xylophone quartet", tags=["marimba"])
    cortex.memories.update(memory.id, content="xylophone quintet")
    cortex.memories.capture("the only other one")
    cortex.memories.delete(memory.id, hard=True)
    for call in (cortex.memories.get, cortex.memories.history, cortex.memories.restore):
        with pytest.raises(MemoryNotFound):
            call(memory.id)
    for mode in ("hybrid", "vector", "text"):
        assert memory.id not in _finds(cortex, "xylophone", mode)
    assert "marimba" not in dict(cortex.memories.status().top_tags)
    cortex.store.database.compact()
    cortex.close()
    stored = b"".join(file.read_bytes() for file in home.rglob("cortex.db"))
    assert memory.id.encode() not in stored


def test_a_deleted_memory_can_be_purged(cortex: Cortex) -> None:
    memory = cortex.memories.capture("x")
    cortex.memories.delete(memory.id)
    cortex.memories.delete(memory.id, hard=True)
    with pytest.raises(MemoryNotFound):
        cortex.memories.history(memory.id)


@pytest.mark.sqlite_only
def test_reindex_rebuilds_everything_from_the_records(cortex: Cortex) -> None:
    texts = ["alpha centauri", "beta decay", "gamma rays"]
    stored = cortex.memories.capture_many([NewMemory(content=text) for text in texts])
    cortex.memories.delete(stored[2].id)
    with cortex.store.database.write() as session:
        session.run("DELETE FROM chunk")
        session.run("INSERT INTO memory_text (memory_text) VALUES ('delete-all')")
    told: list[tuple[int, int]] = []
    result = cortex.memories.reindex(progress=lambda done, total: told.append((done, total)))
    assert result.indexed == 3
    assert told[-1] == (3, 3)
    for mode in ("hybrid", "vector", "text"):
        assert stored[1].id in _finds(cortex, "beta decay", mode)
        assert stored[2].id not in _finds(cortex, "gamma rays", mode)
    cortex.memories.restore(stored[2].id)
    assert stored[2].id in _finds(cortex, "gamma rays", "text")


@pytest.mark.sqlite_only
def test_status_counts_what_is_there(cortex: Cortex, clock: FakeClock) -> None:
    cortex.memories.capture("a", namespace="decisions", tags=["db", "api"])
    cortex.memories.capture("b", namespace="decisions", tags=["db"])
    clock.advance(hours=1)
    cortex.memories.capture("c", namespace="patterns", tags=["auth"])
    gone = cortex.memories.capture("d", namespace="apis", tags=["db"])
    cortex.memories.delete(gone.id)
    status = cortex.memories.status()
    assert status.total_count == 3
    assert status.namespace_counts == {"decisions": 2, "patterns": 1}
    assert status.status_counts == {"active": 3, "tombstoned": 1}
    assert status.top_tags == (("db", 2), ("api", 1), ("auth", 1))
    assert set(status.recent_topics) == {"auth", "db", "api"}
    assert status.engine == "sqlite"
    assert status.size_bytes > 0
    assert status.project_id == cortex.project.id


def test_a_branch_is_named_after_its_topic(cortex: Cortex) -> None:
    names = [
        cortex.contexts.create_branch(topic).id
        for topic in ("User Authentication", "User Authentication", "支付/重构", "🦀")
    ]
    assert names == [
        "user_authentication_20260102_123456",
        "user_authentication_20260102_123456_2",
        names[2],
        names[3],
    ]
    assert names[2].isascii() and "/" not in names[2]
    child = cortex.contexts.create_branch("child", parent_id=names[0])
    assert cortex.contexts.get_branch(child.id).parent_id == names[0]
    topics = sorted(branch.topic for branch in cortex.contexts.branches())
    assert topics == ["User Authentication", "User Authentication", "child", "支付/重构", "🦀"]
