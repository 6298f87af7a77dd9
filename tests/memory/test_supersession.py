"""What takes the place of what, and what contradicts what: told, asked for, never done behind anybody's back."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from cortex_py import Cortex, NewMemory
from cortex_py.core.embedding.backends.backend import Backend
from cortex_py.core.errors import Conflict, CortexError, InvalidId, InvalidInput, MemoryNotFound

from helpers import FakeClock
from stub_backend import StubBackend

FAKE_TOKEN = "ghp_" + "a1B2c3D4e5" * 3 + "f6G7h8"
OLD, NEW = "The gateway listens on port 8080.", "The gateway listens on port 9090."


@pytest.fixture
def desk(home: Path, project: Path, clock: FakeClock) -> Iterator[Cortex]:
    with Cortex.open(home, project=project, clock=clock, backend=StubBackend()) as opened:
        yield opened


def listed(cortex: Cortex, filter: str = "") -> set[str]:
    return {hit.memory.id for hit in cortex.memories.recall(filter=filter, limit=1_000).results}


def found(cortex: Cortex, query: str, mode="hybrid") -> set[str]:
    return {hit.memory.id for hit in cortex.memories.recall(query, mode=mode).results}


def rows(cortex: Cortex) -> list[tuple[object, ...]]:
    with cortex.store.database.read() as session:
        return sorted(session.rows("SELECT id, status, superseded_by, version, content FROM memory"))


# -- superseding -----------------------------------------------------------------------------------


def test_a_capture_that_supersedes_hides_the_older_at_once(cortex: Cortex) -> None:
    old = cortex.memories.capture(OLD, tags=["gateway"])
    cortex.templates.save("all", "{{#each memories}}\n{{memory.content}}\n{{/each}}")
    assert found(cortex, "gateway port") == {old.id}
    new = cortex.memories.capture(NEW, supersedes=old.id[:20])
    for mode in ("vector", "text", "hybrid"):
        assert found(cortex, "gateway port", mode) == {new.id}
    assert listed(cortex) == {new.id}
    assert cortex.templates.render("all").output.split("\n") == [NEW, ""]
    assert cortex.memories.tags() == ()
    assert listed(cortex, "status:superseded") == {old.id}
    assert (cortex.memories.get(old.id).status, cortex.memories.get(old.id).superseded_by) == ("superseded", new.id)
    assert cortex.memories.origins(new.id) == (old.id,)
    assert cortex.memories.history(old.id)[-1].content == OLD
    # What was replaced is no contradiction any more.
    assert cortex.memories.conflicts(new) == ()


def test_what_cannot_be_superseded_is_refused_and_nothing_is_stored(desk: Cortex) -> None:
    gone, mine, replaced = (desk.memories.capture(text) for text in ("gone", "mine", "replaced"))
    desk.memories.delete(gone.id)
    desk.memories.capture("newer", supersedes=replaced.id)
    archived = desk.memories.update(desk.memories.capture("archived").id, status="archived")
    before = rows(desk)
    refusals: list[tuple[str, str, type[CortexError]]] = [
        ("0" * 40, "project", MemoryNotFound),
        ("no id", "project", InvalidId),
        (gone.id, "project", MemoryNotFound),
        (mine.id, "user", Conflict),
        (mine.id, "org", Conflict),
        (replaced.id, "project", Conflict),
        (archived.id, "project", Conflict),
    ]
    for older, domain, error in refusals:
        with pytest.raises(error) as caught:
            desk.memories.capture("never stored", supersedes=older, domain=domain)  # type: ignore[arg-type]
        assert type(caught.value) is error
        assert caught.value.remedy
        assert rows(desk) == before
    for older in (mine.id[:39], "0" * 40, "x"):
        with pytest.raises(Conflict):
            desk.memories.capture_many([NewMemory(content="a"), NewMemory(content="b", supersedes=older)])
    assert rows(desk) == before


def test_another_projects_memory_is_not_superseded(home: Path, tmp_path: Path, clock: FakeClock, desk: Cortex) -> None:
    old = desk.memories.capture(OLD)
    (tmp_path / "other").mkdir()
    with Cortex.open(home, project=tmp_path / "other", clock=clock, backend=StubBackend()) as other:
        with pytest.raises(Conflict):
            other.memories.capture(NEW, supersedes=old.id)
        theirs = other.memories.capture(NEW)
        with pytest.raises(InvalidInput):
            other.memories.supersede(old.id, theirs.id)
    assert desk.memories.get(old.id).status == "active"


def test_repeating_a_capture_that_supersedes_gives_the_first_record(desk: Cortex) -> None:
    old = desk.memories.capture(OLD)
    first = desk.memories.capture(NEW, supersedes=old.id, idempotency_key="k")
    before = rows(desk)
    assert desk.memories.capture(NEW, supersedes=old.id, idempotency_key="k").id == first.id
    assert rows(desk) == before


def test_one_memory_is_put_in_the_place_of_another(desk: Cortex) -> None:
    old, new = desk.memories.capture(OLD), desk.memories.capture(NEW)
    hidden = desk.memories.supersede(old.id, new.id[:20])
    assert (hidden.id, hidden.status, hidden.superseded_by, hidden.content) == (old.id, "superseded", new.id, OLD)
    assert listed(desk) == {new.id}


def test_a_memory_cannot_come_after_itself(desk: Cortex) -> None:
    first, second, third = (desk.memories.capture(text) for text in ("one", "two", "three"))
    elsewhere = desk.memories.capture("four", domain="user")
    desk.memories.supersede(first.id, second.id)
    desk.memories.supersede(second.id, third.id)
    before = rows(desk)
    for older, newer in ((third, third), (third, first), (third, second), (first, elsewhere)):
        with pytest.raises(InvalidInput):
            desk.memories.supersede(older.id, newer.id)
    with pytest.raises(Conflict, match="already"):
        desk.memories.supersede(first.id, third.id)
    with pytest.raises(MemoryNotFound):
        desk.memories.supersede("0" * 40, third.id)
    assert rows(desk) == before


def test_a_chain_has_all_that_replaced_each_other_oldest_first(desk: Cortex, clock: FakeClock) -> None:
    made = []
    for n in range(5):
        made.append(desk.memories.capture(f"state {n}", supersedes=made[-1] if made else None).id)
        clock.advance(minutes=1)
    other = desk.memories.capture("unrelated").id
    for one in made:
        assert [link.id for link in desk.memories.chain(one)] == made
    assert [link.id for link in desk.memories.chain(other)] == [other]
    assert desk.memories.origins(made[3]) == (made[2],)
    assert desk.memories.origins(made[0]) == ()


def test_a_deleted_link_is_not_shown_and_does_not_break_the_chain(desk: Cortex) -> None:
    first = desk.memories.capture("one")
    second = desk.memories.capture("two", supersedes=first.id)
    third = desk.memories.capture("three", supersedes=second.id)
    desk.memories.delete(second.id)
    assert [link.id for link in desk.memories.chain(third.id)] == [first.id, third.id]
    assert [link.id for link in desk.memories.chain(first.id)] == [first.id, third.id]
    assert desk.memories.origins(third.id) == ()
    desk.memories.delete(second.id, hard=True)
    assert [link.id for link in desk.memories.chain(third.id)] == [third.id]
    assert [link.id for link in desk.memories.chain(first.id)] == [first.id]


# -- contradictions --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        (OLD, NEW, "number: 8080 / 9090"),
        ("We run PostgreSQL 15 in production.", "We run PostgreSQL 16 in production.", "version: 15 / 16"),
        ("The API retries failed payments.", "The API does not retry failed payments.", "negation"),
    ],
)
def test_what_says_something_else_of_the_same_thing_is_told_with_the_difference(
    cortex: Cortex, old: str, new: str, reason: str
) -> None:
    older = cortex.memories.capture(old)
    cortex.memories.capture("Bananas ripen faster beside apples.")
    newer = cortex.memories.capture(new)
    found = cortex.memories.conflicts(newer)
    assert [one.memory_id for one in found] == [older.id]
    assert found[0].reason.startswith(reason)
    # It is a suggestion: nothing has changed, and asking again tells the same.
    assert cortex.memories.get(older.id).status == "active"
    assert cortex.memories.conflicts(newer.id) == found


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("We use PostgreSQL 15 for the orders service.", "The orders service runs on PostgreSQL 15."),
        (OLD, OLD),
        (OLD, "Bananas ripen faster beside 3 apples."),
        (OLD, "The invoices are printed on paper of 90 grams."),
        ("note 1 about the deploy pipeline", "note 2 about the deploy pipeline"),
        ("Note 1: the pool has 20 connections", "Note 2: the pool has 30 connections"),
    ],
)
def test_other_words_and_other_things_are_no_contradiction(cortex: Cortex, old: str, new: str) -> None:
    cortex.memories.capture(old)
    assert cortex.memories.conflicts(cortex.memories.capture(new)) == ()


def test_nothing_of_other_places_conversations_or_the_past_contradicts(
    cortex: Cortex, home: Path, tmp_path: Path, clock: FakeClock, model: Backend
) -> None:
    cortex.memories.capture(OLD, domain="user")
    cortex.memories.capture(OLD, role="user")
    cortex.memories.capture(OLD, ttl="1h")
    cortex.memories.delete(cortex.memories.capture(OLD).id)
    clock.advance(hours=2)
    (tmp_path / "other").mkdir()
    with Cortex.open(home, project=tmp_path / "other", clock=clock, backend=model) as other:
        theirs = other.memories.capture(OLD)
        assert other.memories.conflicts(theirs) == ()
    mine = cortex.memories.capture(NEW)
    assert cortex.memories.conflicts(mine) == ()
    assert cortex.memories.conflicts(cortex.memories.capture(OLD, role="user")) == ()
    # Asked from here for a memory of the other project, its own project is looked at.
    assert cortex.memories.conflicts(theirs.id) == ()


def test_memories_captured_together_are_compared(cortex: Cortex) -> None:
    stored = cortex.memories.capture_many([NewMemory(content=OLD), NewMemory(content=NEW)])
    assert [one.memory_id for one in cortex.memories.conflicts(stored[1].id)] == [stored[0].id]


def test_no_reason_holds_a_secret(cortex: Cortex) -> None:
    tokens = (FAKE_TOKEN, FAKE_TOKEN[:-6] + "Z9y8X7")
    for token, days in zip(tokens, (7, 8), strict=True):
        newer = cortex.memories.capture(f"The deploy token {token} lives {days} days.")
    assert newer.redactions
    assert [one.reason for one in cortex.memories.conflicts(newer)] == ["number: 7 days / 8 days"]
    assert not any(token in repr(newer) for token in tokens)
    assert not any(token in repr(cortex.memories.conflicts(newer.id)) for token in tokens)


def test_a_purged_memory_leaves_no_pointer_to_it_and_no_count_of_it(cortex: Cortex) -> None:
    older = cortex.memories.capture("The pool has 20 connections", namespace="decisions")
    newer = cortex.memories.capture("The pool has 30 connections", namespace="decisions", supersedes=older.id)
    cortex.memories.recall("pool connections")
    cortex.memories.write_uses()
    cortex.memories.delete(newer.id, hard=True)
    left = cortex.memories.get(older.id)
    assert (left.status, left.superseded_by) == ("superseded", None)
    with cortex.store.database.read() as session:
        assert cortex.store.recalls.last(session, [cortex.project.id], [newer.id]) == {}
    assert cortex.memories.update(older.id, status="active").superseded_by is None
    assert [hit.memory.id for hit in cortex.memories.recall("pool connections").results] == [older.id]


def test_a_purged_result_leaves_no_record_of_what_it_was_made_of(cortex: Cortex) -> None:
    for text in ("Use tabs for indentation", "use tabs for indentation."):
        cortex.memories.capture(text, namespace="patterns")
    (group,) = cortex.memories.consolidate("patterns", strategy="dedupe").groups
    cortex.memories.delete(str(group.result_id), hard=True)
    with cortex.store.database.read() as session:
        for table in ("consolidation", "consolidation_part"):
            assert session.rows(f"SELECT * FROM {table}") == []
    assert {cortex.memories.get(one).superseded_by for one in group.memories} == {None}
