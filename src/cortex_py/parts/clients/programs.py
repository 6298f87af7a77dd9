"""The command of this Cortex in the forms that clients take, and runs of it and of the clients' own programs.

A program is started by its absolute path and never through a shell.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath, PureWindowsPath

from ...core.paths import expanded, find_program

__all__ = ["Run", "cortex_words", "hook_command", "hook_words", "is_hook_line", "is_server", "own_folder", "run_words"]

_SECONDS = 60
_MOST_SHOWN = 400
_LONGEST_LINE = 10_000
# `-P` keeps Python from loading a folder `cortex_py` of the repository that a client works in.
_MODULE = ["-P", "-m", "cortex_py"]
_QUOTED = re.compile(r'"([^"]*)"|([^\s"]+)')
_ACTS_ON_WINDOWS = frozenset("&|<>^%\r\n")


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
    """The absolute command of this Cortex.

    Clients run it in the folder of a project, where the interpreter must import nothing: hence `-P`.
    """
    beside = Path(sys.executable).with_name("cortex.exe" if os.name == "nt" else "cortex")
    if beside.is_file():
        return [str(beside)]
    found = find_program("cortex")
    return [found] if found else [sys.executable, *_MODULE]


def hook_words(words: Sequence[str], client: str, event: str, home: Path) -> list[str]:
    """The command of a hook."""
    return [*words, "hook", client, event, "--home", str(home)]


def hook_command(words: Sequence[str], client: str, event: str, home: Path) -> str:
    """The command line of a hook, for the shell that clients give it to."""
    full = hook_words(words, client, event, home)
    return subprocess.list2cmdline(full) if os.name == "nt" else shlex.join(full)


def is_hook_line(line: object, client: str) -> bool:
    """Whether an installation of Cortex wrote this line: its command of a hook, and nothing else."""
    if not isinstance(line, str) or len(line) > _LONGEST_LINE:
        return False
    given = _after_cortex(_split(line))
    return len(given) == 5 and given[:2] == ["hook", client] and given[2].isalpha() and given[3] == "--home"


def is_server(words: Sequence[str]) -> bool:
    """Whether an installation of Cortex wrote this command of a server."""
    given = _after_cortex(words)
    return given[:2] == ["serve", "--home"] and len(given) > 2 and given[3:] in ([], ["--portable-names"])


def _split(line: str) -> list[str]:
    """The words of a line that `hook_command` wrote, here or on another system; none of any other line."""
    windows = [quoted or plain for quoted, plain in _QUOTED.findall(line)]
    if windows and PureWindowsPath(windows[0]).is_absolute():
        is_plain = subprocess.list2cmdline(windows) == line and not _ACTS_ON_WINDOWS.intersection(line)
        return windows if is_plain else []
    try:
        words = shlex.split(line)
    except ValueError:
        return []
    # Written again it is the same: nothing in it is for the shell.
    return words if shlex.join(words) == line else []


def _after_cortex(words: Sequence[str]) -> list[str]:
    """What a command gives to Cortex; nothing if its program is another, or has no absolute path."""
    if not words or not (PurePosixPath(words[0]).is_absolute() or PureWindowsPath(words[0]).is_absolute()):
        return []
    if PureWindowsPath(words[0]).name.lower() in ("cortex", "cortex.exe"):
        return list(words[1:])
    for module in (_MODULE, _MODULE[1:]):
        if list(words[1 : 1 + len(module)]) == module:
            return list(words[1 + len(module) :])
    return []


def own_folder() -> Path:
    """A folder of the user's own: a program that is started in it finds nothing of a repository there."""
    home = expanded("~")
    return home if home.is_absolute() and home.is_dir() else Path(Path(sys.executable).anchor)


def run_words(words: Sequence[str], *, folder: Path, given: str = "") -> Run:
    """Run a program with its arguments."""
    try:
        done = subprocess.run(
            list(words), cwd=folder, input=given.encode(), capture_output=True, timeout=_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return Run(None, "", type(error).__name__)
    return Run(done.returncode, done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace"))
