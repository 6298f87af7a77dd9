"""What a person does to a branch file becomes the right change, and nothing is lost on either side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases import each
from cortex_py.core.errors import InvalidInput
from cortex_py.core.records import Branch
from cortex_py.parts.context.branches.file import BranchFile, FileEntry, parse, render
from cortex_py.parts.context.branches.projection import EditPlan, Removal, Update, plan

NOW = datetime(2026, 1, 2, 12, 34, 56, tzinfo=UTC)
BRANCH = Branch("b_20260102_123456", "0123456789ab", "Topic", None, None, "active", NOW, NOW)


def entry(number: int, content: str, version: int = 1) -> FileEntry:
    return FileEntry(f"{number:040x}", version, NOW, None, "context", None, content)


FIRST, SECOND, THIRD = entry(1, "first"), entry(2, "second", 4), entry(3, "third")
STORED = (FIRST, SECOND, THIRD)


def file_of(entries: Sequence[FileEntry], branch: Branch = BRANCH) -> str:
    return render(BranchFile(branch, 7, tuple(entries)))


def block(text: str, content: str) -> str:
    """The lines of one entry, without its heading."""
    start = text.rindex("<!-- cortex:entry", 0, text.index(f"\n{content}\n"))
    end = text.index("<!-- cortex:end -->", start) + len("<!-- cortex:end -->\n")
    return text[start:end]


def changed(entry: FileEntry, content: str) -> FileEntry:
    return replace(entry, content=content, version=entry.version + 1)


TEXT = file_of(STORED)
SECOND_BLOCK = block(TEXT, "second")
IN_THE_STORE = (FIRST, changed(SECOND, "2nd"), THIRD)
BLANK = (entry(1, ""), entry(2, " \n"))
NOTHING_ASKED: dict[str, tuple[str, Sequence[FileEntry]]] = {
    "untouched": (TEXT, STORED),
    "the store moved on": (TEXT, (changed(FIRST, "1st"), SECOND, entry(4, "fourth"))),
    "the store has nothing any more": (TEXT, ()),
    "an entry came after the file": (TEXT, (*STORED, entry(4, "fourth"))),
    "an entry has gone from the store": (TEXT, (FIRST, THIRD)),
    "emptied here, gone there": (TEXT.replace("second", ""), (FIRST, THIRD)),
    "the same edit on both sides": (TEXT.replace("second", "2nd"), IN_THE_STORE),
    "deleted here, changed there": (TEXT.replace(SECOND_BLOCK, ""), IN_THE_STORE),
    "emptied here, changed there": (TEXT.replace("second", ""), IN_THE_STORE),
    "empty from the beginning": (file_of(BLANK), BLANK),
    "another order": (
        TEXT.replace(SECOND_BLOCK, "").replace("<!-- cortex:eof", SECOND_BLOCK + "<!-- cortex:eof"), STORED,
    ),
    "an old copy of the file": (file_of([FIRST]), (changed(FIRST, "1st"), SECOND, THIRD)),
}  # fmt: skip


@each("case", NOTHING_ASKED)
def test_what_changes_nothing_asks_for_nothing(case: str) -> None:
    text, stored = NOTHING_ASKED[case]
    assert plan(parse(text), stored) == EditPlan()
    assert not plan(parse(text), stored)


def test_an_edit_updates_the_version_that_the_file_showed() -> None:
    planned = plan(parse(file_of(STORED).replace("second", "2nd\n")), STORED)
    assert planned == EditPlan(updates=(Update(SECOND.id, "2nd\n", 4),))
    assert bool(planned) is True


def test_an_edit_of_what_the_store_changed_too_is_kept_beside_it() -> None:
    planned = plan(parse(file_of(STORED).replace("second", "2nd")), (FIRST, changed(SECOND, "zweites"), THIRD))
    ((kept,), rest) = planned.conflicts, replace(planned, conflicts=())
    assert kept.content == "2nd"
    assert not rest


def test_a_deleted_entry_is_removed() -> None:
    text = file_of(STORED)
    planned = plan(parse(text.replace(block(text, "second"), "")), STORED)
    assert planned == EditPlan(removals=(Removal(SECOND.id, 4),))


@each("emptied", ["", " ", "\n\n", "\t"])
def test_an_emptied_entry_is_removed(emptied: str) -> None:
    planned = plan(parse(file_of(STORED).replace("second", emptied)), STORED)
    assert planned == EditPlan(removals=(Removal(SECOND.id, 4),))


def test_an_edit_of_an_entry_that_the_store_no_longer_has_is_kept() -> None:
    planned = plan(parse(file_of(STORED).replace("second", "2nd")), (FIRST, THIRD))
    assert [kept.content for kept in planned.conflicts] == ["2nd"]
    assert not replace(planned, conflicts=())


@pytest.mark.parametrize("edited", [False, True])
def test_an_entry_pasted_from_another_file_is_added(edited: bool) -> None:
    other = file_of([entry(9, "elsewhere")], replace(BRANCH, id="other_20260102_123456"))
    pasted = block(other, "elsewhere").replace("elsewhere", "changed" if edited else "elsewhere")
    planned = plan(parse(file_of(STORED) + pasted), STORED)
    assert [addition.content for addition in planned.additions] == ["changed" if edited else "elsewhere"]
    assert not replace(planned, additions=())


def test_text_outside_entries_is_added() -> None:
    text = file_of(STORED).replace("\n<!-- cortex:eof", "\nbefore\n\n<!-- cortex:eof") + "after\n\nand more"
    planned = plan(parse(text), STORED)
    assert [addition.content for addition in planned.additions] == ["before", "after\n\nand more"]
    assert not replace(planned, additions=())


def test_additions_have_keys_that_stay_and_differ() -> None:
    text = file_of(STORED).replace("\n<!-- cortex:eof", "\nsame\n\n<!-- cortex:eof") + "same\n"
    keys = [addition.key for addition in plan(parse(text), STORED).additions]
    assert len(set(keys)) == 2
    assert keys == [addition.key for addition in plan(parse(text + "\n"), (changed(FIRST, "x"),)).additions]
    later = text.replace("revision: 7", "revision: 8")
    assert not set(keys) & {addition.key for addition in plan(parse(later), STORED).additions}


def test_a_file_cut_off_is_no_removal() -> None:
    text = file_of(STORED)
    with pytest.raises(InvalidInput):
        plan(parse(text[: text.index("## ", text.index("first"))]), STORED)


def test_many_edits_at_once_are_told_apart() -> None:
    text = file_of(STORED)
    text = text.replace(block(text, "first"), "loose\n").replace("second", "2nd").replace("third", "3rd")
    planned = plan(parse(text), (FIRST, SECOND, changed(THIRD, "drittes")))
    assert planned.updates == (Update(SECOND.id, "2nd", 4),)
    assert [kept.content for kept in planned.conflicts] == ["3rd"]
    assert planned.removals == (Removal(FIRST.id, 1),)
    assert [addition.content for addition in planned.additions] == ["loose"]


words = st.sampled_from(["same", "deleted", "", " ", "one", "two\n", "# three", "---"])


@given(st.lists(st.tuples(words, words), max_size=5))
def test_both_sides_changed_at_random_lose_nothing(changes: list[tuple[str, str]]) -> None:
    before = [entry(number, f"text {number}") for number in range(len(changes))]
    text = file_of(before)
    stored = []
    for old, (by_person, by_store) in zip(before, changes, strict=True):
        if by_person == "deleted":
            text = text.replace(block(text, old.content), "")
        elif by_person != "same":
            text = text.replace(f"\n{old.content}\n", f"\n{by_person}\n")
        if by_store != "deleted":
            stored.append(old if by_store == "same" else changed(old, by_store))
    planned = plan(parse(text), stored)
    assert not planned.additions
    kept: list[str] = []
    for old, (by_person, by_store) in zip(before, changes, strict=True):
        updated = [update.content for update in planned.updates if update.id == old.id]
        removed = [removal for removal in planned.removals if removal.id == old.id]
        wrote = [] if by_person in ("same", "deleted") or not by_person.strip() else [by_person]
        if by_store == "same":
            assert (updated, len(removed)) == (wrote, by_person != "same" and not wrote)
        else:
            assert (updated, removed) == ([], [])
            kept += [] if by_person == by_store else wrote
    assert [each.content for each in planned.conflicts] == kept
