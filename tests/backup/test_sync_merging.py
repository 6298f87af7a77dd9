"""States of a document from several machines: every order of hearing of them ends in the same, and nothing is lost."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cortex_py.core.store.documents.document import Document
from cortex_py.parts.backup.sync.merge import (
    CONFLICT_MAKER,
    DocumentState,
    Name,
    Settled,
    conflict_copy,
    copy_entry,
    local_changes,
    local_entry,
    same_work,
    settle,
)

MACHINES = "abc"
FAR_OFF = 10**16

# A step of a history: a machine writes or deletes at what its clock shows, or hears of the state of another.
_CLOCKS = st.integers(-FAR_OFF, FAR_OFF)
_EDITS = st.tuples(st.sampled_from(MACHINES), st.just("edit"), _CLOCKS)
_DELETES = st.tuples(st.sampled_from(MACHINES), st.just("delete"), _CLOCKS)
_HEARS = st.tuples(st.sampled_from(MACHINES), st.sampled_from(MACHINES), st.just(0))
WRITTEN = st.lists(st.one_of(_EDITS, _HEARS), max_size=12)
HISTORIES = st.lists(st.one_of(_EDITS, _DELETES, _HEARS), max_size=12)


def _entry(versions: dict[str, int], stamp: int, digest: str | None, maker: str) -> DocumentState:
    return DocumentState(versions, stamp, stamp, digest, maker=maker)


def joined(*states: DocumentState) -> DocumentState:
    return settle(states).entry


def states_after(history: list[tuple[str, str, int]]) -> dict[str, DocumentState]:
    """What each machine holds; texts are numbers that grow, as digests."""
    held: dict[str, DocumentState] = {}
    for number, (machine, what, clock) in enumerate(history):
        here = held.get(machine)
        if what == "edit":
            held[machine] = local_entry(here, machine, f"{number:04}", clock)
        elif what == "delete" and here is not None:
            held[machine] = local_entry(here, machine, None, clock)
        elif what in held and what != machine:
            held[machine] = joined(here, held[what]) if here is not None else held[what]
    return held


# -- Two states ----------------------------------------------------------------------------------


def test_what_knows_the_other_supersedes_it_whatever_the_clocks_say() -> None:
    old = _entry({"a": 1}, 900, "old", "a")
    new = local_entry(old, "b", "new", 5)
    assert (new.stamp, new.versions) == (901, {"a": 1, "b": 1})
    assert settle([old, new]) == Settled(new, 1, ())
    assert settle([new, old]) == Settled(new, 0, ())


def test_of_rivals_the_later_wins_and_the_other_is_told() -> None:
    one, other = _entry({"a": 1}, 10, "x", "a"), _entry({"b": 1}, 20, "y", "b")
    settled = settle([one, other])
    assert (settled.entry.digest, settled.losers) == ("y", (0,))
    assert settled.entry.versions == {"a": 1, "b": 1}
    assert settled.entry.stamp == 20


def test_equal_texts_are_no_conflict() -> None:
    settled = settle([_entry({"a": 1}, 10, "x", "a"), _entry({"b": 1}, 20, "x", "b")])
    assert settled.losers == ()
    assert settled.entry.versions == {"a": 1, "b": 1}


def test_a_change_beats_a_deletion_that_did_not_know_of_it() -> None:
    first = _entry({"a": 1}, 10, "x", "a")
    gone, changed = local_entry(first, "a", None, 99), local_entry(first, "b", "y", 11)
    for states in ([gone, changed], [changed, gone]):
        assert settle(states).entry.digest == "y"
        assert settle(states).losers == ()


def test_a_deletion_that_knows_the_state_stands() -> None:
    first = _entry({"a": 1}, 10, "x", "a")
    assert joined(local_entry(first, "b", None, 0), first).digest is None


def test_who_goes_on_with_the_winner_gets_no_copy_of_it() -> None:
    """b resolved the conflict while a changed its own text once more: a's first text is nobody's rival."""
    mine, theirs = _entry({"a": 1}, 20, "mine", "a"), _entry({"b": 1}, 10, "theirs", "b")
    resolved = joined(mine, theirs)
    assert resolved.digest == "mine"
    further = local_entry(mine, "a", "further", 30)
    settled = settle([further, resolved])
    assert (settled.entry.digest, settled.losers) == ("further", ())
    assert settled.entry.versions == {"a": 2, "b": 1}


def test_who_deletes_the_winner_is_not_overruled_by_its_earlier_text() -> None:
    mine, theirs = _entry({"a": 1}, 20, "mine", "a"), _entry({"b": 1}, 10, "theirs", "b")
    assert joined(local_entry(mine, "a", None, 30), joined(mine, theirs)).digest is None


def test_a_text_that_lost_does_not_bring_back_a_deleted_winner() -> None:
    """a saw its own text lose, and keeps a copy; b deleted the winner before it heard of a's text."""
    winner, loser = _entry({"b": 1}, 20, "winner", "b"), _entry({"a": 1}, 10, "loser", "a")
    at_a = settle([loser, winner])
    assert (at_a.entry.digest, at_a.losers) == ("winner", (0,))
    at_b = joined(local_entry(winner, "b", None, 30), loser)
    assert at_b.digest == "loser"
    assert settle([at_a.entry, at_b]) == Settled(DocumentState({"a": 1, "b": 2}, 30, 30, None), None, ())


def test_one_count_given_to_two_texts_loses_neither() -> None:
    """What two copies of one home can do."""
    settled = settle([_entry({"a": 1}, 10, "x", "a"), _entry({"a": 1}, 20, "y", "a")])
    assert (settled.entry.digest, settled.losers) == ("y", (0,))


# -- Any states ----------------------------------------------------------------------------------


@given(HISTORIES)
def test_the_order_in_which_states_are_given_does_not_matter(history: list[tuple[str, str, int]]) -> None:
    states = list(states_after(history).values())
    results = {
        (
            str(sorted(s.entry.versions.items())),
            (s.entry.digest, s.entry.stamp, s.entry.floor, s.entry.maker),
            frozenset(order[place].digest for place in s.losers),
        )
        for order in permutations(states)
        if order
        for s in [settle(order)]
    }
    assert len(results) <= 1


@given(HISTORIES)
def test_hearing_twice_changes_nothing(history: list[tuple[str, str, int]]) -> None:
    held = states_after(history)
    for one in held.values():
        assert joined(one, one).digest == one.digest
        assert joined(one, one).versions == one.versions
        for other in held.values():
            once = joined(one, other)
            assert joined(once, other).digest == once.digest
            assert settle([once, once]).losers == ()


@given(WRITTEN)
def test_without_deletions_any_grouping_gives_the_latest(history: list[tuple[str, str, int]]) -> None:
    states = list(states_after(history).values())
    if len(states) < 3:
        return
    one, two, three = states
    left, right = joined(joined(one, two), three), joined(one, joined(two, three))
    assert (left.versions, left.digest, left.stamp, left.floor) == (
        right.versions,
        right.digest,
        right.stamp,
        right.floor,
    )
    assert left.stamp == max(state.stamp for state in states)


@given(HISTORIES)
def test_stamps_grow_along_what_was_known(history: list[tuple[str, str, int]]) -> None:
    held: dict[str, DocumentState] = {}
    for number in range(1, len(history) + 1):
        before, held = held, states_after(history[:number])
        machine, what, _ = history[number - 1]
        if what in ("edit", "delete") and held.get(machine) != before.get(machine) and machine in before:
            assert held[machine].stamp > before[machine].floor
            assert held[machine].stamp > before[machine].stamp


# -- What changed here ---------------------------------------------------------------------------


def _document(key: str, text: str) -> Document:
    return Document("memory", key, {"content": text, "tags": ["x"]})


def test_a_scan_tells_what_is_new_changed_and_gone() -> None:
    same, changed, new = _document("1", "same"), _document("2", "changed"), _document("3", "new")
    known = {
        Name("memory", "1"): _entry({"a": 1}, 5, same.digest, "a"),
        Name("memory", "2"): replace(_entry({"b": 1}, 5, "before", "b"), pack="p", floor=700),
        Name("memory", "4"): _entry({"b": 2}, 5, "gone", "b"),
        Name("memory", "5"): _entry({"b": 2}, 5, None, ""),
    }
    found = {
        name.key: (entry, document)
        for name, entry, document in local_changes(
            [same, changed, new], known, "a", changed_at=lambda document: 600, now=800
        )
    }
    assert found["1"] == (known[Name("memory", "1")], same)
    assert found["2"] == (_entry({"b": 1, "a": 1}, 701, changed.digest, "a"), changed)
    assert found["3"] == (_entry({"a": 1}, 600, new.digest, "a"), new)
    assert found["4"] == (_entry({"b": 2, "a": 1}, 800, None, ""), None)
    assert found["5"] == (known[Name("memory", "5")], None)


# -- Copies --------------------------------------------------------------------------------------


def test_a_memory_is_copied_under_an_id_of_its_own() -> None:
    loser = Document(
        "memory",
        "0" * 40,
        {"content": "text", "tags": ["b"], "source": "me", "idempotency_key": "once", "id": "0" * 40},
        b"vectors",
    )
    copy = conflict_copy(loser)
    assert copy is not None
    assert len(copy.key) == 40
    assert int(copy.key, 16) > 0
    assert copy.data == {
        "content": "text",
        "tags": ["b", "conflict"],
        "source": f"conflict:{'0' * 40}",
        "idempotency_key": None,
        "id": copy.key,
    }
    assert copy.vectors == b"vectors"
    assert loser.data["tags"] == ["b"]


@pytest.mark.parametrize("key", ["prompt/review", f"template/{'n' * 64}"])
def test_a_saved_text_is_copied_under_a_name_that_can_be_one(key: str) -> None:
    copy = conflict_copy(Document("saved", key, {"content": "text", "tags": []}))
    assert copy is not None
    shelf, name = copy.key.split("/")
    assert shelf == key.split("/")[0]
    assert len(name) <= 64
    assert name.split("-conflict-")[0] in key
    assert len(name.split("-conflict-")[1]) == 8


def test_small_facts_are_not_copied() -> None:
    for kind in ("branch", "entity", "relationship", "mention"):
        assert conflict_copy(Document(kind, "1", {})) is None


def test_the_same_done_at_other_moments_is_the_same_work() -> None:
    def memory(**data: object) -> Document:
        return Document("memory", "1", {"content": "x", "tags": [], "updated_at": 1, "version": 2, **data})

    def saved(content: str, at: int) -> Document:
        versions = [{"content": "first", "saved_at": at}, {"content": content, "saved_at": at}]
        return Document("saved", "prompt/p", {"updated_at": at, "versions": versions})

    assert same_work(memory(), memory(updated_at=9, tombstoned_at=9, version=3, versions=[{}]))
    assert not same_work(memory(), memory(content="y"))
    assert not same_work(memory(), memory(tags=["t"]))
    assert same_work(saved("x", 1), saved("x", 2))
    assert not same_work(saved("x", 1), saved("y", 1))


def test_all_machines_make_the_same_copy_and_a_deletion_of_it_stands() -> None:
    loser = _document("1", "text")
    copy, again = conflict_copy(loser), conflict_copy(_document("1", "text"))
    assert copy is not None
    assert copy == again
    assert conflict_copy(_document("1", "other")) != copy
    entry = copy_entry(copy, _entry({"a": 3}, 40, loser.digest, "a"))
    assert entry == _entry({CONFLICT_MAKER: 1}, 40, copy.digest, CONFLICT_MAKER)
    assert joined(local_entry(entry, "b", None, 0), entry).digest is None
