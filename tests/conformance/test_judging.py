"""What the conformance run lets pass, without running it."""

from conformance.run import EXPECTED, expected_failures, judge, misplaced
from conformance.suite import Check, Requirements

PASSES, FAILS = Check("one", "SUCCESS"), Check("two", "FAILURE", "is wrong")


def test_a_failure_that_is_not_listed_is_told() -> None:
    assert judge("here", "tools", [PASSES, FAILS], None) == ["here: tools: two: is wrong"]
    assert judge("here", "tools", [PASSES], None) == []


def test_a_listed_scenario_may_fail_and_has_to() -> None:
    assert judge("here", "tools", [PASSES, FAILS], set()) == []
    assert judge("here", "tools", [PASSES], set()) == [f"here: tools passes by now; take it out of {EXPECTED.name}."]


def test_a_listed_check_excuses_no_other() -> None:
    assert judge("here", "tools", [FAILS], {"two"}) == []
    assert judge("here", "tools", [PASSES, FAILS], {"one"}) == [
        f"here: tools:one passes by now; take it out of {EXPECTED.name}.",
        "here: tools: two: is wrong",
    ]


def test_only_what_no_revision_scores_may_be_listed() -> None:
    sets = [Requirements(("tools",), ("tasks",)), Requirements(("prompts",), ("tools",))]
    assert misplaced({"tasks": set()}, sets) == []
    assert len(misplaced({"tools": set(), "prompts": {"one"}, "unheard-of": set()}, sets)) == 3


def test_the_list_is_read() -> None:
    text = "server:\n  # why\n  - tasks\n  - tools:one\n  - tools:two\n"
    assert expected_failures(text) == {"tasks": set(), "tools": {"one", "two"}}
