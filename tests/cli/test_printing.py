"""How results look at a terminal and in a pipe: fitted or plain, whole, and never acting on the terminal."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from cortex_py.surfaces.cli import output
from cortex_py.surfaces.cli.output import counted, visible

from forking import cortex_command
from shell import Shell
from terminal import at_terminal

# Read before the environment is cleared. Set where a machine without the usual pager is a fault.
_REQUIRED = bool(os.environ.get("CORTEX_REQUIRE_LESS"))
HOSTILE = "Title \x1b]0;owned\x07 \x1b[31mred\x1b[0m \x9b2J \u202egnp"


@pytest.fixture
def shell(home: Path, project: Path) -> Shell:
    return Shell(home, project)


def test_in_a_pipe_a_record_is_a_line_between_tabs(shell: Shell) -> None:
    id = shell.text("capture", "Lunch\tis\nat noon", "-n", "decisions").strip()
    done = shell.run("recall", "lunch", "--full")
    (cells,) = [line.split("\t") for line in done.stdout.splitlines()]
    assert (cells[0], cells[3], cells[4]) == (id[:16], "decisions", "Lunch\\tis\\nat noon")
    assert shell.json("get", cells[0])["id"] == id
    assert shell.run("recall", "-n", "security").stdout == ""


@pytest.mark.slow
@pytest.mark.parametrize("columns", ["120", "60", "30"])
def test_a_table_fits_the_terminal_and_loses_no_column(shell: Shell, columns: str) -> None:
    id = shell.text("capture", "Use 東京 servers for everything that people in Japan will ever see 🐘").strip()
    shown = at_terminal(shell, "recall", "servers", "--no-color", COLUMNS=columns).screen
    for word in ("id", "score", "namespace", "memory", id[:16], "context", "東京", "Japan"):
        assert word in shown
    assert max(output._cells(line) for line in shown.splitlines()) <= int(columns)


def test_nothing_in_a_stored_text_acts_on_the_terminal(shell: Shell) -> None:
    id = shell.text("capture", HOSTILE, "-t", "a").strip()
    for words in (("recall", "red"), ("get", id), ("history", id), ("get", id, "--json")):
        shown = at_terminal(shell, *words, "--no-color").screen
        assert "\\u001b" in shown
        assert not {"\x1b", "\x07", "\x9b", "\u202e"} & set(shown)
    assert HOSTILE in shell.text("get", id)


@pytest.mark.parametrize("format", ["jsonl", "server-memory", "mem0"])
def test_nothing_in_an_export_acts_on_the_terminal(shell: Shell, format: str) -> None:
    shell.text("capture", HOSTILE)
    shown = at_terminal(shell, "export", "--format", format).screen
    assert "Title" in shown
    assert not {"\x1b", "\x07", "\x9b", "\u202e"} & set(shown)
    piped = at_terminal(shell, "export", "--format", format, pipe=True).piped
    assert {"\x9b", "\u202e"} <= set(piped)


@pytest.mark.slow
def test_colours_only_where_they_are_wanted(shell: Shell) -> None:
    shell.text("capture", "Lunch is at noon")
    assert "\x1b[32m" in at_terminal(shell, "recall", "lunch").screen
    assert "\x1b" not in at_terminal(shell, "recall", "lunch", NO_COLOR="1").screen
    assert "\x1b" not in at_terminal(shell, "recall", "lunch", "--no-color").screen
    assert "\x1b" not in at_terminal(shell, "recall", "lunch", pipe=True).piped


def test_a_long_text_goes_through_the_pager_at_a_terminal_only(shell: Shell, tmp_path: Path) -> None:
    pager = tmp_path / "pager"
    pager.write_text("#!/bin/sh\necho PAGED\ncat\n", "utf-8")
    pager.chmod(0o755)
    id = shell.text("capture", "\n".join(f"line {number}" for number in range(80))).strip()
    assert at_terminal(shell, "get", id, PAGER=str(pager)).screen.startswith("PAGED\n")
    assert "PAGED" not in at_terminal(shell, "get", id, PAGER=str(pager), LINES="200").screen
    assert "PAGED" not in at_terminal(shell, "get", id, pipe=True, PAGER=str(pager)).piped


def test_the_usual_pager_shows_colours_and_no_codes(shell: Shell) -> None:
    less = shutil.which("less")
    if less is None:
        assert not _REQUIRED, "CORTEX_REQUIRE_LESS is set, and there is no less"
        pytest.skip("no less")
    for number in range(9):
        shell.text("capture", f"Lunch {number} is at noon")
    shown = at_terminal(shell, "recall", "lunch", keys="q", PAGER=less, LESS="", LINES="8").screen
    assert "\x1b[1m" in shown, "the heading is bold"
    assert "ESC" not in shown
    assert "^[" not in shown


@pytest.mark.slow
def test_a_reader_that_leaves_ends_a_command_quietly(shell: Shell) -> None:
    for number in range(3):
        shell.text("capture", f"{number} " + "word " * 5_000)
    for words in (["export"], ["recall", "--json", "-l", "3"], ["recall", "-l", "3"], ["status"]):
        ours, theirs = os.pipe()
        os.close(ours)
        done = subprocess.run(
            [*cortex_command(), *words],
            cwd=shell.project,
            env={**os.environ, **shell.variables},
            stdout=theirs,
            stderr=subprocess.PIPE,
            check=False,
            timeout=60,
        )
        os.close(theirs)
        assert (done.returncode, done.stderr) == (141, b""), words


def test_numbers_have_the_right_noun() -> None:
    assert [counted(count, "memory") for count in (0, 1, 1_024)] == ["0 memories", "1 memory", "1,024 memories"]
    assert counted(2, "line of work") == "2 lines of work"


def test_what_a_terminal_acts_on_is_spelled_out() -> None:
    assert visible("a\r\nb\tc\x1b[0m\x7f") == "a\nb\tc\\u001b[0m\\u007f"


def test_all_output_passes_one_place() -> None:
    folder = Path(output.__file__).parent
    for module in folder.rglob("*.py"):
        if module.name != "output.py":
            assert "click.echo" not in module.read_text("utf-8"), module
            assert "click.secho" not in module.read_text("utf-8"), module


@pytest.mark.slow
def test_the_printed_id_is_taken_everywhere(shell: Shell) -> None:
    """Also of memories that were stored at the same moment."""
    texts = ("We use PostgreSQL as the primary storage", "We use PostgreSQL as our primary storage", "Lunch is at noon")
    lines = "".join(json.dumps({"content": text, "namespace": "decisions"}) + "\n" for text in texts)
    (shell.project / "notes.jsonl").write_text(lines, "utf-8")
    shell.text("import", "notes.jsonl")
    ids = [line.split("\t")[0] for line in shell.text("recall").splitlines()]
    assert (len(set(ids)), {len(one) for one in ids}) == (3, {16})
    one, other, third = ids
    for words in (
        ("get", one),
        ("get", one, "--chain"),
        ("history", one),
        ("update", one, "-t", "a"),
        ("enrich", one, "--dry-run"),
        ("delete", one),
        ("restore", one),
        ("capture", "Dinner is at noon", "--supersedes", third),
        ("supersede", one, other),
        ("delete", one, "--hard", "--yes"),
    ):
        shell.text(*words)
