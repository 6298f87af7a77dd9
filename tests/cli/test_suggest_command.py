"""`cortex suggest` and `cortex automation`: as a person and as a script use them."""

import re
from pathlib import Path

import pytest

from cortex_py import Cortex, NewMemory

from shell import Shell
from terminal import at_terminal

TASK = "Adding role-based access control"
NOTE = "Permissions are checked in `guards.py` by the user's group"


@pytest.fixture
def shell(home: Path, project: Path) -> Shell:
    return Shell(home, project)


@pytest.fixture
def note(home: Path, project: Path, cortex: Cortex) -> str:
    memory = cortex.memories.capture(NOTE)
    cortex.close()
    return memory.id


def test_a_script_asks_answers_and_looks_back(shell: Shell, note: str) -> None:
    found = shell.json("suggest", TASK, "-k", "3")
    assert [one["memory"]["id"] for one in found["suggestions"]] == [note]
    assert shell.json("suggest", "--accept", found["session_id"], "-c", note[:12]) == {"accepted_count": 1}
    again = shell.json("suggest", TASK)
    assert again["suggestions"][0]["confidence"] > found["suggestions"][0]["confidence"]
    told = shell.json("suggest", "--reject", again["session_id"], "--reason", "wrong module")
    assert told == {"understood": ["wrong area"]}
    (event,) = shell.json("suggest", "--history", "10")
    assert (event["memory_id"], event["kind"], event["task"]) == (note, "accept", TASK)
    assert "accept" in shell.text("suggest", "--history", "10")
    closed = shell.run("suggest", "--reject", again["session_id"], "--reason", "no")
    assert (closed.returncode, "already" in closed.stderr) == (6, True)
    plan = shell.json("automation")
    assert (plan["standing"]["plan"], plan["standing"]["feedback_count"]) == ("A", 2)


def test_a_person_reads_a_table_and_what_is_unanswered(shell: Shell, note: str) -> None:
    text = shell.text("suggest", TASK)
    assert NOTE.split()[0] in text
    assert note[:8] in text
    assert "matches the task by meaning" in text
    # It is no terminal, so nothing was asked and the session waits.
    told = shell.run("suggest", TASK)
    assert "Answer within half an hour: cortex suggest --accept suggestion_session_" in told.stderr
    assert "Still unanswered: suggestion_session_" in told.stderr
    assert "Nothing fits this task yet." in shell.run("suggest", "make coffee").stderr
    assert "Unanswered: suggestion_session_" in shell.text("automation")


def test_printed_ids_can_be_given_back(shell: Shell, cortex: Cortex) -> None:
    texts = (f"{TASK} needs a check in `guards.py`", f"{TASK}: begun last week, Ann reviews the tests")
    ids = {one.id for one in cortex.memories.capture_many([NewMemory(content=text) for text in texts])}
    cortex.close()
    done = shell.run("suggest", TASK)
    printed = {line.split("\t")[2] for line in done.stdout.splitlines()}
    session = re.findall(r"suggestion_session_\w+", done.stderr)[0]
    assert len(printed) == len({one for one in ids if one.startswith(tuple(printed))}) == 2
    words = [word for one in printed for word in ("-c", one)]
    assert shell.text("suggest", "--accept", session, *words) == "2 suggestions taken.\n"


@pytest.mark.parametrize(
    "words",
    [
        ("suggest",),
        ("suggest", TASK, "--history", "3"),
        ("suggest", ""),
        ("suggest", TASK, "-k", "0"),
        ("suggest", TASK, "-k", "51"),
        ("suggest", "--accept", "x"),
        ("suggest", "--reject", "x"),
        ("automation", "--right", "explode"),
    ],
)
def test_what_makes_no_sense_is_a_misuse(shell: Shell, words: tuple[str, ...]) -> None:
    done = shell.run(*words)
    assert done.returncode == 2
    assert done.stderr
    assert "Traceback" not in done.stderr


def test_an_unknown_session_is_not_found(shell: Shell) -> None:
    assert shell.run("suggest", "--reject", "../../x", "--reason", "no").returncode == 4
    assert shell.run("suggest", "--accept", "../../x", "-c", "0" * 40).returncode == 4


def test_actions_are_told_right_and_wrong(shell: Shell) -> None:
    told = shell.json("automation", "--wrong", "promote")
    assert told["actions"]["promote"]["feedback_count"] == 1
    told = shell.json("automation", "--right", "promote")
    assert (told["actions"]["promote"]["feedback_count"], told["actions"]["promote"]["acceptance_rate"]) == (2, 0.5)
    assert told["standing"]["feedback_count"] == 0
    assert shell.text("automation", "--confirm") == "Done for: nothing waited.\n"
    decreed = Shell(shell.home, shell.project, CORTEX_AUTOMATION="B")
    assert {one["plan"] for one in decreed.json("automation")["actions"].values()} == {"B"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("keys", "told"),
    [
        ("1\n", "1 suggestion taken."),
        ("a\n", "1 suggestion taken."),
        ("n\nwrong module\n", "Understood: wrong area."),
        ("\n", ""),
    ],
)
def test_on_a_terminal_it_asks(shell: Shell, note: str, keys: str, told: str) -> None:
    shown = at_terminal(shell, "suggest", TASK, keys=keys)
    assert shown.code == 0, shown.screen
    assert "Take which?" in shown.screen
    assert told in shown.screen
    left = shell.json("automation")
    assert (left["standing"]["feedback_count"], len(left["pending"])) == ((0, 1) if keys == "\n" else (1, 0))
    # What a person picks is told apart from what a script accepts.
    picked = ["select"] if told == "1 suggestion taken." else []
    assert [one["kind"] for one in shell.json("suggest", "--history", "5")] == picked
