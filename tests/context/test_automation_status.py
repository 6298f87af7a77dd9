"""Plan A and plan B through the service: what answers lead to, what a setting decrees, what waits for a yes."""

from collections.abc import Callable
from pathlib import Path

import pytest

from cortex_py import Cortex
from cortex_py.core.errors import InvalidInput, MemoryNotFound
from cortex_py.parts.suggest.automation import ACTIONS

from helpers import FakeClock, git
from shell import Shell

Open = Callable[..., Cortex]


@pytest.fixture
def open_at(opened: Open, tree: Path) -> Open:
    return lambda folder=tree, **settings: opened(folder, **settings)


def _answer(cortex: Cortex, accepted: bool, times: int, clock: FakeClock) -> None:
    for _ in range(times):
        # Another task each time: what was rejected does not come back for the same one.
        found = cortex.suggestions.suggest(f"Fix the importer at {clock.moment:%H%M%S}", top_k=1)
        if accepted:
            cortex.suggestions.accept(found.session_id, [one.memory.id for one in found.suggestions])
        else:
            cortex.suggestions.reject(found.session_id, "not relevant")
        clock.advance(seconds=1)


def _plan(cortex: Cortex) -> str:
    return cortex.suggestions.automation().standing.plan


# -- plans -----------------------------------------------------------------------------------------


def test_before_any_answer_it_is_plan_a_and_the_message_says_why(open_at: Open) -> None:
    found = open_at().suggestions.automation()
    told = found.standing
    assert (told.plan, told.acceptance_rate, told.rejection_rate, told.feedback_count) == ("A", 0.0, 0.0, 0)
    assert "no suggestion has been answered" in told.message
    assert set(found.actions) == set(ACTIONS)
    assert (found.pending, found.held) == ((), {})


@pytest.mark.slow
def test_the_plan_follows_the_share_of_accepting_answers(open_at: Open, clock: FakeClock) -> None:
    cortex = open_at()
    cortex.memories.capture("The importer reads the ledger")
    _answer(cortex, False, 9, clock)
    # A few answers are chance.
    assert _plan(cortex) == "A"
    assert cortex.suggestions.suggest("Fix the importer").requires_confirmation is False
    _answer(cortex, False, 1, clock)
    told = cortex.suggestions.automation().standing
    assert (told.plan, told.acceptance_rate, told.rejection_rate, told.feedback_count) == ("B", 0.0, 1.0, 10)
    assert cortex.suggestions.suggest("Fix the importer").requires_confirmation is True
    _answer(cortex, True, 23, clock)
    assert _plan(cortex) == "B"
    _answer(cortex, True, 1, clock)
    told = cortex.suggestions.automation().standing
    assert (told.plan, told.acceptance_rate, told.feedback_count) == ("A", pytest.approx(24 / 34), 34)
    _answer(cortex, False, 1, clock)
    assert _plan(open_at()) == "B"


def test_an_answer_that_takes_a_part_accepts(open_at: Open) -> None:
    cortex = open_at()
    ids = [cortex.memories.capture(f"The importer reads the {word}").id for word in ("ledger", "journal")]
    found = cortex.suggestions.suggest("Fix the importer")
    assert {one.memory.id for one in found.suggestions} == set(ids)
    assert cortex.suggestions.accept(found.session_id, ids[:1]) == 1
    told = cortex.suggestions.automation().standing
    assert (told.feedback_count, told.acceptance_rate, told.rejection_rate) == (1, 1.0, 0.0)


def test_each_project_has_a_plan_of_its_own(open_at: Open, tmp_path: Path, clock: FakeClock) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    here, there = open_at(), open_at(elsewhere)
    here.memories.capture("The importer reads the ledger", domain="user")
    _answer(here, False, 10, clock)
    assert (_plan(here), _plan(there)) == ("B", "A")
    assert there.suggestions.automation(project_id=here.project.id).standing.plan == "B"


def test_each_kind_of_action_has_a_plan_of_its_own(open_at: Open) -> None:
    suggestions = open_at().suggestions
    for _ in range(10):
        suggestions.answered("promote", False)
    found = suggestions.automation()
    assert {name: one.plan for name, one in found.actions.items()} == {**dict.fromkeys(ACTIONS, "A"), "promote": "B"}
    assert found.standing.plan == "A"
    for _ in range(23):
        told = suggestions.answered("promote", True)
    assert (told.plan, open_at().suggestions.automation().actions["promote"].plan) == ("B", "B")
    told = suggestions.answered("promote", True)
    assert (told.plan, told.feedback_count) == ("A", 34)
    for _ in range(200):
        told = suggestions.answered("promote", True)
    # Old answers make room: so many right ones do not outweigh for ever.
    assert told.feedback_count == 100
    for _ in range(40):
        told = suggestions.answered("promote", False)
    assert told.plan == "B"


@pytest.mark.parametrize("plan", ["A", "B"])
def test_a_setting_decides_whatever_the_answers_are(open_at: Open, clock: FakeClock, plan: str) -> None:
    cortex = open_at(automation=plan)
    cortex.memories.capture("The importer reads the ledger")
    told = cortex.suggestions.automation()
    assert {one.plan for one in told.actions.values()} == {plan}
    assert (told.standing.feedback_count, told.standing.acceptance_rate) == (0, 0.0)
    assert "setting" in told.standing.message
    assert cortex.suggestions.suggest("Fix the importer").requires_confirmation is (plan == "B")
    _answer(cortex, plan == "B", 12, clock)
    told = cortex.suggestions.automation()
    assert (told.standing.plan, told.standing.acceptance_rate) == (plan, 1.0 if plan == "B" else 0.0)
    # What was learned meanwhile holds when the setting is taken back.
    assert _plan(open_at()) == ("A" if plan == "B" else "B")


def test_an_unknown_action_is_told(open_at: Open) -> None:
    cortex = open_at()
    with pytest.raises(InvalidInput, match="promote"):
        cortex.suggestions.answered("explode", True)


# -- what asks first -------------------------------------------------------------------------------


def _staged(cortex: Cortex, tree: Path) -> str:
    """A note of a feature branch, and main checked out again."""
    git(tree, "checkout", "-q", "-b", "feature")
    git(tree, "commit", "-q", "--allow-empty", "-m", "work")
    memory = cortex.memories.capture("the importer as the feature has it")
    assert memory.confinement == "stage"
    git(tree, "checkout", "-q", "main")
    return memory.id


def _seen(cortex: Cortex) -> list[str]:
    return [hit.memory.id for hit in cortex.memories.recall().results]


@pytest.mark.parametrize("decreed", [True, False])
def test_under_plan_b_memories_of_a_merged_branch_wait_for_a_yes(open_at: Open, tree: Path, decreed: bool) -> None:
    settings = {"automation": "B"} if decreed else {}
    cortex = open_at(branch_memories="stage", **settings)
    note = _staged(cortex, tree)
    if not decreed:
        for _ in range(10):
            cortex.suggestions.answered("promote", False)
    git(tree, "merge", "-q", "--no-ff", "feature")
    for _ in range(2):
        assert _seen(cortex) == []
        assert cortex.suggestions.automation().held == {"feature": "merged"}
    # Another process knows it too, and what it says holds here.
    other = open_at(branch_memories="stage", **settings)
    assert other.suggestions.automation().held == {"feature": "merged"}
    assert other.suggestions.confirm() == ("feature",)
    assert _seen(cortex) == _seen(other) == [note]
    assert cortex.suggestions.automation().held == other.suggestions.automation().held == {}
    assert cortex.suggestions.confirm() == ()
    assert other.suggestions.automation().actions["promote"].feedback_count == (1 if decreed else 11)


@pytest.mark.parametrize("fate", ["merged", "deleted"])
def test_a_no_leaves_the_memories_with_their_branch_for_good(open_at: Open, tree: Path, fate: str) -> None:
    cortex, other = (open_at(branch_memories="stage", automation="B") for _ in range(2))
    assert cortex.suggestions.refuse() == (), "nothing waits yet"
    note = _staged(cortex, tree)
    git(tree, *(("merge", "-q", "--no-ff", "feature") if fate == "merged" else ("branch", "-q", "-D", "feature")))
    assert other.suggestions.automation().held == {"feature": fate}
    assert other.suggestions.refuse() == ("feature",)
    assert (cortex.suggestions.automation().held, cortex.suggestions.confirm(), _seen(cortex)) == ({}, (), [])
    kept = cortex.memories.get(note)
    assert (kept.status, kept.confinement, kept.git_branch) == ("active", "isolate", "feature")
    told = cortex.suggestions.automation().actions["promote"]
    assert (told.feedback_count, told.acceptance_rate) == (1, 0.0)
    # Not even where Cortex acts by itself again is it moved.
    git(tree, "commit", "-q", "--allow-empty", "-m", "more")
    assert _seen(open_at(branch_memories="stage")) == []
    if fate == "merged":
        git(tree, "checkout", "-q", "feature")
        assert _seen(cortex) == [note]


def test_under_plan_b_memories_of_a_deleted_branch_wait_too(open_at: Open, tree: Path) -> None:
    cortex = open_at(branch_memories="stage", automation="B")
    note = _staged(cortex, tree)
    git(tree, "branch", "-q", "-D", "feature")
    assert cortex.suggestions.automation().held == {"feature": "deleted"}
    assert cortex.memories.get(note).status == "active"
    assert cortex.suggestions.confirm() == ("feature",)
    with pytest.raises(MemoryNotFound):
        cortex.memories.get(note)


def test_under_plan_a_they_move_at_once(open_at: Open, tree: Path) -> None:
    cortex = open_at(branch_memories="stage")
    note = _staged(cortex, tree)
    git(tree, "merge", "-q", "--no-ff", "feature")
    assert _seen(cortex) == [note]
    assert cortex.suggestions.automation().held == {}
    assert cortex.suggestions.confirm() == ()
    assert cortex.suggestions.automation().actions["promote"].feedback_count == 0


def test_what_was_held_moves_when_the_plan_is_a_again(open_at: Open, tree: Path) -> None:
    strict = open_at(branch_memories="stage", automation="B")
    note = _staged(strict, tree)
    git(tree, "merge", "-q", "--no-ff", "feature")
    assert _seen(strict) == []
    assert _seen(open_at(branch_memories="stage")) == [note]


def test_the_command_shows_the_plan_and_says_yes(home: Path, open_at: Open, tree: Path) -> None:
    cortex = open_at(branch_memories="stage", automation="B")
    note = _staged(cortex, tree)
    git(tree, "merge", "-q", "--no-ff", "feature")
    cortex.close()
    # The stub's vectors are of the test's own; nothing here needs others.
    shell = Shell(home, tree, "automation", CORTEX_BRANCH_MEMORIES="stage", CORTEX_AUTOMATION="B")
    assert "Waits for a yes (--confirm) or a no (--refuse): memories of feature, which was merged." in shell.text()
    assert shell.run("--confirm", "--refuse").returncode == 2
    assert shell.json()["held"] == {"feature": "merged"}
    assert shell.text("--confirm") == "Done for: feature.\n"
    assert shell.json("--confirm") == {"confirmed": []}
    assert shell.json("--refuse") == {"refused": []}
    assert open_at(branch_memories="stage", automation="B").memories.get(note).confinement is None
