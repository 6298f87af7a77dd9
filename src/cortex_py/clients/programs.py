"""Runs the programs of clients, and the commands that their configuration names, as they would run them."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from shutil import which

__all__ = ["Run", "cortex_words", "hook_command", "run_line", "run_words"]

_SECONDS = 60
_MOST_SHOWN = 400


@dataclass(frozen=True, slots=True)
class Run:
    """A finished program. The code is None if it could not be started, or did not end in time."""

    code: int | None
    output: str
    errors: str

    @property
    def problem(self) -> str:
        """What it said, in one line."""
        return " ".join((self.errors.strip() or self.output.strip()).split())[:_MOST_SHOWN]


def cortex_words() -> list[str]:
    """The absolute command of this Cortex."""
    beside = Path(sys.executable).with_name("cortex.exe" if os.name == "nt" else "cortex")
    if beside.is_file():
        return [str(beside)]
    found = which("cortex")
    return [str(Path(found).absolute())] if found else [sys.executable, "-m", "cortex_py"]


def hook_command(words: Sequence[str], client: str, event: str, home: Path) -> str:
    """The command line of a hook, for the shell that clients give it to."""
    full = [*words, "hook", client, event, "--home", str(home)]
    return subprocess.list2cmdline(full) if os.name == "nt" else shlex.join(full)


def run_words(
    words: Sequence[str], *, folder: Path, given: str = "", variables: Mapping[str, str] | None = None
) -> Run:
    """Run a program with its arguments."""
    return _run(list(words), False, folder, given, variables)


def run_line(line: str, *, folder: Path, given: str = "", variables: Mapping[str, str] | None = None) -> Run:
    """Run a command line with the shell, as clients run their hooks."""
    return _run(line, True, folder, given, variables)


def _run(command: str | list[str], shell: bool, folder: Path, given: str, variables: Mapping[str, str] | None) -> Run:
    try:
        done = subprocess.run(
            command,
            shell=shell,
            cwd=folder,
            input=given.encode(),
            capture_output=True,
            timeout=_SECONDS,
            check=False,
            env={**os.environ, **(variables or {})},
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return Run(None, "", type(error).__name__)
    return Run(done.returncode, done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace"))
