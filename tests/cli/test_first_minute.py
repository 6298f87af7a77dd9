"""`cortex` without a command, and `cortex tour`."""

from __future__ import annotations

from pathlib import Path

import pytest

from helpers import git
from shell import Shell
from terminal import at_terminal


@pytest.fixture
def shell(home: Path, project: Path) -> Shell:
    git(project, "init", "-q", "-b", "main")
    return Shell(home, project)


def test_a_terminal_shows_where_you_stand_and_what_to_do_next(shell: Shell) -> None:
    before = at_terminal(shell, "--no-color")
    assert (before.code, "nothing is stored there yet" in before.screen, "cortex tour" in before.screen) == (
        0,
        True,
        True,
    )
    assert not shell.home.exists()
    shell.text("capture", "Lunch is at noon")
    shown = at_terminal(shell, "--no-color").screen
    for words in ("project in", "memories      1\n", "cortex-recall", "none for the git branch main"):
        assert words in shown
    assert "cortex branch create TOPIC --git-branch main" in shown
    shell.text("branch", "create", "Login", "--git-branch", "main")
    assert "Login (" in at_terminal(shell, "--no-color").screen


def test_elsewhere_it_is_the_help_or_json(shell: Shell) -> None:
    done = shell.run()
    assert (done.returncode, "Everyday:" in done.stderr) == (2, True)
    assert shell.json()["standing"]["memories"] == 0


@pytest.mark.slow
def test_the_tour_shows_everything_and_leaves_nothing(shell: Shell, tmp_path: Path) -> None:
    touring = Shell(shell.home, shell.project, TMPDIR=str(tmp_path), CORTEX_DATABASE_URL="postgresql://nowhere/x")
    done = touring.run("tour")
    assert done.returncode == 0, done.stderr
    for words in ("$ cortex capture", "$ cortex recall", "We chose PostgreSQL", "REJECT", "claude mcp add cortex"):
        assert words in done.stdout
    assert not shell.home.exists()
    assert list(tmp_path.glob("cortex-tour-*")) == []


def test_at_a_terminal_the_tour_waits_for_enter(shell: Shell, tmp_path: Path) -> None:
    shown = at_terminal(shell, "tour", "--no-color", keys="\n\n\n", TMPDIR=str(tmp_path))
    assert (shown.code, shown.screen.count("Press Enter to go on")) == (0, 3)
    assert list(tmp_path.glob("cortex-tour-*")) == []
