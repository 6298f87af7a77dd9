"""What the check of a turn said, in the summary of its branch."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from cases import each
from cortex_py import Cortex
from cortex_py.parts.context.summary.summary import EMPTY, SaidTurn, SummaryState, advance, render
from cortex_py.parts.context.summary.verdicts import Doubt, find_doubt, read_doubts
from inside import store_of

from helpers import git
from stub_backend import StubBackend

NOW = datetime(2026, 1, 1, tzinfo=UTC)
ALL_PASS = Doubt("All 38 tests pass.", True, "2 failures in the newest report")


def state(*turns: tuple[str, str, tuple[Doubt, ...]]) -> SummaryState:
    return advance(EMPTY, [SaidTurn(str(n), role, said, NOW, doubts) for n, (role, said, doubts) in enumerate(turns)])


def sections(*turns: tuple[str, str, tuple[Doubt, ...]]) -> dict[str, list[str]]:
    return render(state(*turns), "", max_tokens=500, count_tokens=lambda text: len(text) // 4).sections


def stored(status: str, *claims: tuple[str, str, str]) -> str:
    rows = [{"claim": claim, "verdict": verdict, "evidence": evidence} for claim, verdict, evidence in claims]
    return json.dumps({"status": status, "claims": rows})


A, U = "assistant", "user"
ROTATE = "Added `rotate` to auth.py."
WROTE = "I wrote the migration script."


@each(
    ("turns", "expected"),
    [
        (
            [(A, "Fixed the parser. All 38 tests pass.", (ALL_PASS,))],
            {"done": ["Fixed the parser"], "unverified": ["All 38 tests pass (2 failures in the newest report)"]},
        ),
        (
            [(A, ROTATE, (Doubt(ROTATE, False, "no function rotate"),))],
            {"done": ["Added `rotate` to auth.py (unverified: no function rotate)"]},
        ),
        # A rejected claim finishes nothing.
        (
            [(A, "Next: write the migration script.", ()), (A, WROTE, (Doubt(WROTE, True, "there is none"),))],
            {"next_step": ["write the migration script"]},
        ),
        # What is done later is no longer unverified, and another count replaces the earlier one.
        (
            [(A, "All 38 tests pass.", (ALL_PASS,)), (A, "Fixed the last failures, all 38 tests pass now.", ())],
            {"unverified": None},
        ),
        (
            [(A, "Split the jobs over four runners.", ()), (A, "Changed the matrix to two runners.", ())],
            {"done": ["Changed the matrix to two runners"]},
        ),
        # A person answers their own question by what others said.
        (
            [
                (U, "Does iOS have the same bug?", ()), (A, "I don't know, I have no access there.", ()),
                (U, "Lena says iOS uses a serial queue, so no.", ()),
            ],
            {"open_questions": []},
        ),
    ],
)  # fmt: skip
def test_a_doubt_decides_where_a_claim_stands(
    turns: list[tuple[str, str, tuple[Doubt, ...]]], expected: dict[str, list[str] | None]
) -> None:
    found = sections(*turns)
    assert {name: found.get(name) for name in expected} == expected


def test_a_claim_that_no_check_confirmed_is_marked(cortex: Cortex) -> None:
    line = cortex.contexts.create_branch("Signing in").id
    said = ("Made `issue` in auth.py twice as fast.", "Passwords are hashed with bcrypt.", "Added `issue` to auth.py.")
    checks = [cortex.contexts.append(line, one, "assistant").verification for one in said]
    verdicts = [finding.verdict for one in checks if one for finding in one.findings]
    assert verdicts == ["unverified", "not found", "supported"]
    assert cortex.contexts.summary(line).summary.sections["done"] == [
        "Made `issue` in auth.py twice as fast (unverified)",
        "Passwords are hashed with bcrypt (unverified: Nothing mentions it)",
        "Added `issue` to auth.py",
    ]


def test_doubts_are_read_from_what_is_stored() -> None:
    rows = (
        ("a is b", "contradicted", "c.py:1"),
        ("d", "not found", ""),
        ("e", "supported", "e.py"),
        ("f", "unverified", "no check reads this"),
    )
    doubts = (Doubt("a is b", True, "c.py:1"), Doubt("d", True, ""), Doubt("f", False, ""))
    assert read_doubts(stored("REJECT", *rows)) == doubts
    assert [one.rejected for one in read_doubts(stored("WARN", *rows))] == [True, False, False]


@each("damaged", ["", "{", "[]", '{"status": "REJECT"}', '{"status": 1, "claims": [{}]}'])
def test_a_damaged_result_holds_no_doubt(damaged: str) -> None:
    assert read_doubts(damaged) == ()


def test_a_rejection_counts_before_a_doubt() -> None:
    doubts = (Doubt("the cache is warm", False, "x"), Doubt("the cache is warm now", True, "y"))
    found = find_doubt("The cache is warm now.", doubts)
    assert found is not None
    assert found.rejected
    assert find_doubt("Something else entirely.", doubts) is None


def test_a_stored_state_keeps_the_doubts() -> None:
    before = state(("assistant", "Fixed the parser. All 38 tests pass.", (ALL_PASS,)))
    assert SummaryState.from_json(before.to_json()) == before


@pytest.fixture
def cortex(home: Path, project: Path) -> Iterator[Cortex]:
    git(project, "init", "-q", "-b", "main")
    (project / "auth.py").write_text("def issue() -> None: ...\n", "utf-8")
    git(project, "add", ".")
    git(project, "commit", "-q", "-m", "begin")
    with Cortex.open(home, project=project, backend=StubBackend()) as opened:
        yield opened


@pytest.mark.slow
def test_a_long_branch_keeps_its_verdicts_when_its_state_is_stored(cortex: Cortex) -> None:
    line = cortex.contexts.create_branch("Signing in").id
    for number in range(40):
        cortex.contexts.append(line, f"Added `missing_{number}` to auth.py.", "assistant")
    found = cortex.contexts.summary(line).summary.sections
    assert found["done"] == []
    assert all("missing_" in one for one in found["unverified"])
    with store_of(cortex).database.read() as session:
        text, _ = store_of(cortex).branches.summary(session, cortex.contexts.branches()[0].project_id, line)
    assert text is not None
    assert '"done"' not in text


def test_an_answer_of_thanks_or_plans_leaves_a_question_open() -> None:
    asked = ("assistant", "Does the nightly job hold a long transaction?", ())
    for reply in ("thanks!", "Great, I'll schedule it for Sunday.", "sounds good. Will keep you posted"):
        assert sections(asked, ("user", reply, ()))["open_questions"] == [asked[1]]
    assert sections(asked, ("user", "No, it commits every 100 rows.", ()))["open_questions"] == []
