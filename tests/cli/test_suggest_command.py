"""`cortex suggest` and `cortex automation`: as a person and as a script use them."""

import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest

from cortex_py import Cortex, NewMemory

from helpers import MODELS
from shell import Shell

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
    assert "answer with --accept or --reject" in text
    # It is no terminal, so nothing was asked and the session waits.
    told = shell.run("suggest", TASK)
    assert "Still unanswered: suggestion_session_" in told.stderr
    assert "Nothing fits this task yet." in shell.text("suggest", "make coffee")
    assert "Unanswered: suggestion_session_" in shell.text("automation")


def test_printed_ids_can_be_given_back(shell: Shell, cortex: Cortex) -> None:
    texts = (NOTE, "Access control: only admins may delete users")
    ids = {one.id for one in cortex.memories.capture_many([NewMemory(content=text) for text in texts])}
    cortex.close()
    text = shell.text("suggest", TASK)
    printed = set(re.findall(r"\b[0-9a-f]{12,40}\b", text.split("Session")[0]))
    session = re.findall(r"suggestion_session_\w+", text)[0]
    assert len(printed) == len({one for one in ids if one.startswith(tuple(printed))}) == 2
    words = [word for one in printed for word in ("-c", one)]
    assert shell.text("suggest", "--accept", session, *words) == "2 taken.\n"


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


@pytest.mark.parametrize(
    ("keys", "told"),
    [("1\n", "1 taken."), ("a\n", "1 taken."), ("n\nwrong module\n", "Understood: wrong area."), ("\n", "")],
)
def test_on_a_terminal_it_asks(shell: Shell, note: str, keys: str, told: str) -> None:
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "cortex_py", "suggest", TASK],
        cwd=shell.project,
        env={**os.environ, "CORTEX_HOME": str(shell.home), "CORTEX_MODELS_DIR": str(MODELS), "COLUMNS": "200"},
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    os.write(ours, keys.encode())
    shown = b""
    while True:
        try:
            part = os.read(ours, 4096)
        except OSError:
            break
        if not part:
            break
        shown += part
    os.close(ours)
    assert process.wait(60) == 0, shown.decode()
    assert "Take which?" in shown.decode()
    assert told in shown.decode()
    left = shell.json("automation")
    assert (left["standing"]["feedback_count"], len(left["pending"])) == ((0, 1) if keys == "\n" else (1, 0))
    # What a person picks is told apart from what a script accepts.
    picked = ["select"] if told == "1 taken." else []
    assert [one["kind"] for one in shell.json("suggest", "--history", "5")] == picked
