"""Commands and files that are none: pipes, devices, huge files. Each ends soon, with advice, in bounded memory."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from odd_files import put

from forking import cortex_command

KINDS = ("pipe", "link to a device", "huge file")
# Address space, which loaded libraries take most of; a whole huge file would not fit.
_MOST_MEMORY = 2_500_000


def ended(home: Path, project: Path, *words: str, given: str = os.devnull) -> subprocess.CompletedProcess[str]:
    """A command that has ended by itself, though it was given little memory."""
    with Path(given).open("rb") as stdin:
        return subprocess.run(
            ["sh", "-c", f'ulimit -v {_MOST_MEMORY}; exec "$@"', "sh", *cortex_command(), *words],
            cwd=project,
            env={**os.environ, "CORTEX_HOME": str(home)},
            stdin=stdin,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "words",
    [
        ("verify", "--file"),
        ("embed", "--file"),
        ("license", "show"),
        ("license", "issue", "--holder", "Ada", "--tier", "pro", "--private-key"),
        ("prompt", "import"),
        ("import",),
    ],
)
def test_a_file_that_is_none_is_named_in_the_error(
    home: Path, project: Path, tmp_path: Path, words: tuple[str, ...], kind: str
) -> None:
    os.mkfifo(tmp_path / "pipe")
    put(tmp_path / "odd.md", kind, tmp_path / "pipe")
    done = ended(home, project, *words, str(tmp_path / "odd.md"))
    said = done.stdout + done.stderr
    assert "not a regular file" in said or "larger than" in said or "/dev" in said
    assert "Traceback" not in said


@pytest.mark.slow
def test_a_table_of_one_endless_line_is_left_out(home: Path, project: Path, tmp_path: Path) -> None:
    put(tmp_path / "odd.csv", "huge file", tmp_path)
    done = ended(home, project, "import", str(tmp_path / "odd.csv"))
    assert "longer than" in done.stdout + done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("words", [("status",), ("hook", "codex", "SessionStart")])
def test_settings_that_are_no_file_stop_nothing_for_ever(
    home: Path, project: Path, tmp_path: Path, words: tuple[str, ...], kind: str
) -> None:
    os.mkfifo(tmp_path / "pipe")
    put(home / "config.toml", kind, tmp_path / "pipe")
    done = ended(home, project, *words)
    assert done.returncode == (0 if words[0] == "hook" else 2)
    assert "Traceback" not in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("words", [("capture",), ("verify",), ("embed",), ("license", "show", "-")])
def test_an_endless_standard_input_is_refused(home: Path, project: Path, words: tuple[str, ...]) -> None:
    done = ended(home, project, *words, given="/dev/zero")
    assert (done.returncode, "larger than" in done.stderr) == (2, True)
