"""The most common mistakes: each is answered with what was wrong and what to type next, as `mistakes.txt` shows."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from helpers import git
from shell import Shell

TRANSCRIPT = Path(__file__).with_name("mistakes.txt")
MISTAKES = [part.partition("\n") for part in TRANSCRIPT.read_text("utf-8").split("$ cortex ")[1:]]


@pytest.fixture
def shell(home: Path, project: Path) -> Shell:
    git(project, "init", "-q", "-b", "main")
    return Shell(home, project)


@pytest.mark.parametrize(("words", "answer"), [(words, answer) for words, _, answer in MISTAKES], ids=str)
def test_a_mistake_is_answered_with_what_to_type_next(shell: Shell, words: str, answer: str) -> None:
    done = shell.run(*shlex.split(words), given="")
    assert done.stdout == ""
    assert f"{_steady(done.stderr, shell)}(exit code {done.returncode})\n" == answer.lstrip("\n").rstrip("\n") + "\n"


def _steady(text: str, shell: Shell) -> str:
    """Without what differs from run to run."""
    return re.sub(re.escape(str(shell.project.parent)), "FOLDER", text).replace("python -m cortex_py", "cortex")


def test_there_are_ten_and_each_names_a_command_or_an_option() -> None:
    assert len(MISTAKES) >= 10
    for words, _, answer in MISTAKES:
        assert re.search(r"cortex \w+|--\w+|Did you mean|Use one of|CORTEX_", answer), words


def test_a_value_that_a_prompt_needs_is_asked_for_by_its_option(shell: Shell) -> None:
    shell.text("prompt", "save", "review", "Review {{file}} for {{kind}} issues")
    done = shell.run("prompt", "run", "review", "--no-input")
    assert done.stderr == "No value was given for file, kind.\n"
    assert "-v file" not in shell.text("prompt", "run", "review", "-v", "file=a.py", "-v", "kind=style")
