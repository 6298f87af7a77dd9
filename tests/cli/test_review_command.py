"""`cortex review`: what sessions left to be kept, at a terminal and in scripts."""

from pathlib import Path

import pytest

from cortex_py import Cortex, NewMemory

from shell import Shell
from terminal import at_terminal

TEXTS = ("Never push directly to main", "Prices include VAT everywhere", "Logs are kept for 30 days")


@pytest.fixture
def shell(home: Path, project: Path) -> Shell:
    return Shell(home, project)


@pytest.fixture
def ids(cortex: Cortex) -> list[str]:
    items = [NewMemory(content=text, status="pending", tags=("confidence-91",)) for text in TEXTS]
    stored = cortex.memories.capture_many(items)
    cortex.close()
    return [one.id for one in stored]


def test_a_script_lists_accepts_edits_and_drops(shell: Shell, ids: list[str]) -> None:
    assert "to be reviewed\t3: cortex review" in shell.text("status")
    listed = shell.json("review")
    assert [(one["id"], one["confidence"]) for one in listed] == [(id, 0.91) for id in reversed(ids)]
    assert shell.json("review", "--accept", ids[0], "--content", "No pushes to main") == {
        "accepted": [ids[0]],
        "dropped": [],
    }
    assert shell.json("get", ids[0])["content"] == "No pushes to main"
    assert shell.json("review", "--drop", ids[1]) == {"accepted": [], "dropped": [ids[1]]}
    assert shell.json("review", "--accept-all") == {"accepted": [ids[2]], "dropped": []}
    assert shell.json("review") == []
    assert "to be reviewed" not in shell.text("status")
    again = shell.run("review", "--accept", ids[2])
    assert (again.returncode, "does not wait for a review" in again.stderr) == (6, True)


def test_a_new_text_needs_one_memory(shell: Shell, ids: list[str]) -> None:
    wrong = shell.run("review", "--accept", ids[0], "--accept", ids[1], "--content", "both")
    assert wrong.returncode == 2
    assert len(shell.json("review")) == 3


def test_a_person_is_asked_one_by_one(shell: Shell, ids: list[str]) -> None:
    shown = at_terminal(shell, "review", keys="a\nd\n\n")
    assert shown.code == 0
    for text in TEXTS:
        assert text in shown.screen
    assert [one["id"] for one in shell.json("review")] == [ids[0]]
    assert shell.json("get", ids[2])["status"] == "active"


def test_a_person_without_a_terminal_reads_a_table(shell: Shell, ids: list[str]) -> None:
    assert "Prices include VAT" in shell.text("review")
    shell.run("review", "--accept-all")
    assert "Nothing waits for a review." in shell.run("review").stderr
