"""Long work: how far it is, stopping it with Ctrl-C, and leaving it to the server."""

from __future__ import annotations

from pathlib import Path

import pytest

from cases import each
from cortex_py import Cortex
from cortex_py.surfaces.cli.progress import describe, describe_seconds

from helpers import git
from shell import Shell
from terminal import at_terminal

FILES = 16


@pytest.fixture
def shell(home: Path, project: Path) -> Shell:
    git(project, "init", "-q", "-b", "main")
    for number in range(FILES):
        lines = "".join(f"def step_{number}_{line}():\n    return {line}\n\n\n" for line in range(20))
        (project / f"part_{number}.py").write_text(lines, "utf-8")
    return Shell(home, project)


@each(
    ("done", "total", "seconds", "text"),
    [
        (0, 2_400, 0.0, "Scanning 0 of 2,400 (0%)"),
        (120, 2_400, 4.0, "Scanning 120 of 2,400 (5%), 30/s, 1 min left"),
        (2, 10, 60.0, "Scanning 2 of 10 (20%), 2/min, 4 min left"),
        (1_200, 0, 4.0, "Scanning 1,200, 300/s"),
    ],
)
def test_a_line_has_count_rate_and_time_left(done: int, total: int, seconds: float, text: str) -> None:
    assert describe("Scanning", done, total, seconds, done) == text


def test_time_is_told_in_round_numbers() -> None:
    assert [describe_seconds(one) for one in (0.2, 59, 90, 7_300)] == ["1 s", "59 s", "2 min", "2 h 2 min"]


def test_a_full_scan_says_first_what_it_takes_and_shows_how_far_it_is(shell: Shell) -> None:
    shown = at_terminal(shell, "init", "--mode", "full", COLUMNS="200").screen
    assert f"A full scan reads {FILES} files (0.0 MB), about 1 s." in shown
    assert f"of {FILES} (" in shown


@pytest.mark.slow
def test_ctrl_c_stops_a_scan_which_goes_on_later(shell: Shell) -> None:
    stopped = at_terminal(shell, "init", "--mode", "full", interrupt_at=rf"Scanning \d+ of {FILES}")
    assert (stopped.code, stopped.screen.endswith("Stopped.\n")) == (130, True)
    assert "Traceback" not in stopped.screen
    again = shell.json("init", "--mode", "full")
    assert (again["files_scanned"], again["files_changed"] <= FILES) == (FILES, True)
    assert shell.run("doctor").returncode == 0


def test_ctrl_c_stops_a_capture_and_nothing_is_stored(shell: Shell) -> None:
    text = "".join(f"Sentence {number} says that order {number} was shipped late. " for number in range(1_500))
    stopped = at_terminal(shell, "capture", text, interrupt_at=r"Embedding \d+ of")
    assert (stopped.code, stopped.screen.endswith("Stopped.\n")) == (130, True)
    assert shell.json("recall")["total"] == 0
    assert shell.run("doctor").returncode == 0


@pytest.mark.slow
def test_a_scan_is_left_to_the_server(shell: Shell, home: Path, project: Path) -> None:
    left = shell.json("init", "--mode", "full", "--background")
    assert (left["background"], left["mode"], left["files_scanned"]) == (True, "full", 0)
    with Cortex.open(home, project=project) as cortex:
        cortex.upkeep(lambda: True)
        assert cortex.memories.recall("step", filter="kind:file").total == 0
        cortex.upkeep()
        assert cortex.memories.recall("step", filter="kind:file").total > 0
        assert cortex.contexts.run_requested_scan(lambda: False) is None
