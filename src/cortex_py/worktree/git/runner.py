"""The one place that starts git.

A repository may come from a stranger, and its settings can name programs: filters, monitors, signature checkers,
pagers. None of them runs here. Settings on the command line override those of the repository. A repository chooses
the names of its filters, so they are listed and emptied one by one. Every call has a time limit that also covers its
child processes, and a limit on its output.

User and system settings still apply to which repository may be read (`safe.directory`), how addresses are rewritten
and which files are ignored. git itself refuses a repository that belongs to another user. A bare repository inside
another working tree counts as files of that tree.
"""

from __future__ import annotations

import logging
import os
import re
import signal
import stat
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import IO

from ...core.errors import GitFailed
from ...core.paths import expanded, find_program, read_regular, search_path

__all__ = ["find_repository_folder", "git_dir_of", "git_lines", "has_git", "run_git", "split_lines"]

logger = logging.getLogger(__name__)

_SECONDS = 10.0
# A history is read while it is worked on, so all of it may take longer than any one answer.
_STREAM_SECONDS = 600.0
_MOST_BYTES = 256_000_000
_MOST_MEMORY = 2 << 30
_CHUNK = 1 << 16
_PIPE_BYTES = 1 << 20
# Far above what is read of a line, and above any pair of paths in the header of a patch.
LONGEST_LINE = 40_000

_MOST_CONFIG = 1_000_000
_MOST_CONFIG_FILES = 50
_MOST_POINTER = 10_000
_MOST_LISTED = 16_000_000
# Far above an index of a million files, the largest of the files that git holds in memory as a whole.
_LARGEST = 400_000_000
_MOST_FILTERS = 100
_LONGEST_FILTER = 200
_FILTER_KEYS = ("clean", "smudge", "process")

# Where the user and system settings are, and how far up git searches for a repository.
_KEPT = ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM", "GIT_DISCOVERY_ACROSS_FILESYSTEM")
_DROPPED = re.compile(r"GIT_.*|PAGER|EDITOR|VISUAL|SSH_ASKPASS.*")
_FORCED = {
    "LC_ALL": "C",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    # An empty value keeps git from trying other programs.
    "GIT_ASKPASS": "",
    "GIT_EDITOR": ":",
    # Forbid fetching missing objects of a partial clone; older versions of git know only the second setting.
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ALLOW_PROTOCOL": "none",
}
_OVERRIDES = (
    "core.alternateRefsCommand=",
    "core.askPass=",
    f"core.attributesFile={os.devnull}",
    "core.editor=:",
    # An empty value means off; some versions run "false" as a program.
    "core.fsmonitor=",
    "core.pager=cat",
    "core.quotepath=off",
    "core.sshCommand=false",
    "credential.helper=",
    f"diff.orderFile={os.devnull}",
    "diff.submodule=short",
    "gpg.openpgp.program=",
    "gpg.program=",
    "gpg.ssh.defaultKeyCommand=",
    "gpg.ssh.program=",
    "gpg.x509.program=",
    "log.showSignature=false",
    "mailmap.file=",
    "protocol.allow=never",
    "sequence.editor=:",
    "status.submoduleSummary=false",
    "submodule.recurse=false",
    "uploadpack.packObjectsHook=",
)
_NO_HOOKS = f"core.hooksPath={os.devnull}"
# These run nothing, and are used to find the hooks folder.
_READS_SETTINGS = frozenset(("config", "rev-parse"))
# Commands that compare must not run external diff programs or enter submodules, which have settings of their own.
_COMPARING = {
    "diff": ("--no-ext-diff", "--no-textconv", "--ignore-submodules=dirty"),
    "diff-tree": ("--no-ext-diff", "--no-textconv"),
    "log": ("--no-ext-diff", "--no-textconv"),
    "status": ("--ignore-submodules=all",),
}
_INCLUDE = b"include"
_NAMES_FILE = re.compile(rb"(?:path|file)[ \t]*=([^\r\n]*)", re.IGNORECASE)
_WORK_TREE = re.compile(rb"worktree\s*=", re.IGNORECASE)

# Files of a repository that git reads to the end, even if they are pipes or devices.
_OWN_FILES = ("HEAD", "index", "config.worktree", "commondir", "gitdir", "logs/HEAD", "info/sparse-checkout")
_COMMON_FILES = (
    *("HEAD", "config", "packed-refs", "shallow", "info/exclude", "info/attributes", "info/grafts"),
    *("objects/info/alternates", "reftable/tables.list"),
)
_TREE_FILES = frozenset((".gitattributes", ".gitignore", ".gitmodules", ".mailmap"))
_STALL_SECONDS = 0.25
_POKE_SECONDS = 0.02
_MOST_ENTRIES = 50_000


@dataclass(frozen=True, slots=True)
class GitAnswer:
    """What a git command printed, and its status."""

    returncode: int
    stdout: bytes


@dataclass(frozen=True, slots=True)
class _Place:
    """A folder to ask git in: the top of a working tree, or a git folder."""

    folder: Path
    is_tree: bool
    git_dir: Path
    common_dir: Path

    def read_config(self) -> bytes | None:
        """The settings that the repository brings along, with the files that they include.

        None where they are too many to look through, or name something that git could read for ever.
        """
        found: dict[Path, bytes] = {}
        waiting = [self.common_dir / "config", self.git_dir / "config.worktree"]
        while waiting:
            path = waiting.pop()
            if path in found or not _mode(path):
                continue
            data = read_regular(path, _MOST_CONFIG)
            if data is None or len(found) >= _MOST_CONFIG_FILES:
                return None
            found[path] = data
            named = _named_files(data, (path.parent, self.folder))
            if any(_is_special(str(one)) for one in named):
                return None
            if _INCLUDE in data.lower():
                waiting += [one for one in named if stat.S_ISREG(_mode(one))]
        return b"\n".join(found.values())

    def has_special_file(self) -> bool:
        """Whether something that is no file, or a huge one, stands where git would read one to its end."""
        # Plain texts, for speed: this comes before every question.
        own, common = str(self.git_dir), str(self.common_dir)
        if any(_is_special(f"{own}/{name}") for name in _OWN_FILES):
            return True
        if any(_is_special(f"{common}/{name}") for name in _COMMON_FILES):
            return True
        head = read_regular(self.git_dir / "HEAD", 10_000) or b""
        ref = os.fsdecode(head.removeprefix(b"ref:").strip())
        return "\0" not in ref and _is_special(f"{common}/{ref}")


def has_git() -> bool:
    return find_program("git") is not None


def run_git(
    folder: Path,
    *arguments: str,
    settings: Sequence[str] = (),
    stdin: bytes = b"",
    timeout: float = _SECONDS,
    most_bytes: int = _MOST_BYTES,
) -> GitAnswer | None:
    """The answer of one git command, whatever its status.

    `folder` is the top of a working tree or a git folder. None without git, out of time, for an answer of more than
    `most_bytes`, and in a repository that cannot be asked safely.
    """
    words = _command(folder, arguments, settings)
    return None if words is None else _answer(words, stdin, timeout, most_bytes)


def git_lines(
    folder: Path, *arguments: str, settings: Sequence[str] = (), stdin: bytes = b"", timeout: float = _STREAM_SECONDS
) -> Generator[bytes]:
    """The lines that git prints, as it prints them, each cut to a bearable length; none without git.

    git is stopped when no more lines are wanted. One that fails, or takes longer than `timeout`, is an error.
    """
    words = _command(folder, arguments, settings)
    if words is None and not has_git():
        return
    running = _Running(words, stdin, timeout) if words is not None else None
    if running is None:
        raise _broken(arguments[0], folder)
    with running:
        yield from split_lines(running.read)
    if running.status != 0:
        raise _broken(arguments[0], folder)


def split_lines(read: Callable[[int], bytes]) -> Iterator[bytes]:
    """The lines of a stream without their ends, each cut to a length that is safe to hold."""
    rest = b""
    while chunk := read(_CHUNK):
        lines = (rest + chunk).split(b"\n")
        rest = lines.pop()[:LONGEST_LINE]
        if lines and max(map(len, lines)) > LONGEST_LINE:
            lines = [line[:LONGEST_LINE] for line in lines]
        yield from lines
    if rest:
        yield rest


# -- Where to ask ----------------------------------------------------------------------------------


def find_repository_folder(folder: Path) -> Path | None:
    """Where to ask git about a folder: the working tree around it, or the git folder that it is in.

    A git folder inside a working tree that is not its own came with the files of that tree, and is passed over.
    """
    try:
        folder = folder.resolve(strict=True)
        device = folder.stat().st_dev
    except (OSError, RuntimeError):
        return None
    ceilings = {Path(one).resolve() for one in os.environ.get("GIT_CEILING_DIRECTORIES", "").split(os.pathsep) if one}
    is_bounded = os.environ.get("GIT_DISCOVERY_ACROSS_FILESYSTEM", "0").lower() in ("", "0", "false", "no", "off")
    inner: Path | None = None
    for place in (folder, *folder.parents):
        if place != folder and (place in ceilings or (is_bounded and _device(place) != device)):
            break
        if (git_dir := git_dir_of(place)) is not None:
            if inner is None or not inner.is_relative_to(git_dir.resolve()):
                return place
            break
        if inner is None and _is_git_folder(place):
            inner = place
    return inner


def git_dir_of(tree: Path) -> Path | None:
    """The git folder of a working tree, by what is at its top; None where that is no top of one."""
    mark = tree / ".git"
    if os.path.lexists(mark / "HEAD"):
        return mark
    data = read_regular(mark, _MOST_POINTER)
    if data is None or not data.startswith(b"gitdir: "):
        return None
    return _pointed_to(tree, data.removeprefix(b"gitdir: "))


def _pointed_to(folder: Path, data: bytes) -> Path | None:
    """The folder that a file of git names, read exactly as git reads it: a blank may belong to the name.

    git would end the name at a NUL, and then use another folder than the one looked at here.
    """
    name = data.rstrip(b"\r\n")
    return folder / os.fsdecode(name) if name and b"\0" not in name else None


def _is_git_folder(folder: Path) -> bool:
    if not os.path.lexists(folder / "HEAD"):
        return False
    is_linked = stat.S_ISREG(_mode(folder / "commondir"))
    return is_linked or all(stat.S_ISDIR(_mode(folder / name)) for name in ("objects", "refs"))


def _mode(path: Path) -> int:
    """The kind of what is at a path; 0 where nothing is, or where the system does not say."""
    try:
        return path.stat().st_mode
    except (OSError, ValueError):
        return 0


def _device(folder: Path) -> int | None:
    try:
        return folder.stat().st_dev
    except OSError:
        return None


def _place_at(folder: Path) -> _Place | None:
    git_dir = git_dir_of(folder)
    is_tree = git_dir is not None
    if git_dir is None:
        if not _is_git_folder(folder) or find_repository_folder(folder) != folder.resolve():
            return None
        git_dir = folder
    if not _is_git_folder(git_dir):
        # git would look further, at the folder itself.
        return None
    common_dir: Path | None = git_dir
    if os.path.lexists(git_dir / "commondir"):
        data = read_regular(git_dir / "commondir", _MOST_POINTER)
        common_dir = None if data is None else _pointed_to(git_dir, data)
    return _Place(folder, is_tree, git_dir, common_dir) if common_dir else None


def _named_files(config: bytes, folders: Sequence[Path]) -> list[Path]:
    """Every file that settings may name: all that any of the folders can make of a value of `…path` or `…file`."""
    found = []
    for match in _NAMES_FILE.finditer(config.replace(b"\\\r\n", b"").replace(b"\\\n", b"")):
        value = re.sub(rb"\\(.)", rb"\1", match[1]).replace(b'"', b"").strip()
        texts = {os.fsdecode(one.strip()) for one in (value, re.split(rb"[#;]", value)[0])} - {"", os.devnull}
        found += [folder / expanded(text) for text in texts for folder in folders]
    return found


def _is_special(path: str) -> bool:
    """Whether reading a path could go on for ever or take all memory; a folder cannot be read at all."""
    try:
        facts = os.stat(path)  # noqa: PTH116 - a plain text, for speed
    except (OSError, ValueError):
        return False
    return facts.st_size > _LARGEST if stat.S_ISREG(facts.st_mode) else not stat.S_ISDIR(facts.st_mode)


# -- What to run -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Command:
    words: tuple[str, ...]
    environment: dict[str, str]
    place: _Place


def _command(folder: Path, arguments: Sequence[str], settings: Sequence[str]) -> _Command | None:
    """The command that asks a repository and runs nothing of its own; None where there is none."""
    program, place = find_program("git"), _place_at(folder)
    if program is None or place is None or place.has_special_file():
        return None
    config = place.read_config()
    if config is None:
        return None
    lower = config.lower()
    try:
        # What other files hold may change without this one.
        names = (
            _filters.__wrapped__(program, place, config) if _INCLUDE in lower
            else _filters(program, place, config) if b"filter" in lower
            else ()
        )  # fmt: skip
    except _Refused:
        return None
    emptied = [f"filter.{name}.{key}=" for name in names for key in _FILTER_KEYS]
    emptied += [f"filter.{name}.required=false" for name in names]
    return _build(program, place, config, arguments, (*settings, *emptied))


class _Refused(Exception):
    """The filters of a repository cannot be listed, or not all be emptied."""


@lru_cache(maxsize=64)
def _filters(program: str, place: _Place, config: bytes) -> tuple[str, ...]:
    """The filters that any settings name, cached while the repository's settings do not change."""
    command = _build(program, place, config, ("config", "--list", "-z", "--name-only"), ())
    answer = _answer(command, b"", _SECONDS, _MOST_LISTED)
    if answer is None or answer.returncode != 0:
        raise _Refused
    found: dict[str, None] = {}
    for entry in answer.stdout.split(b"\0"):
        head, _, key = os.fsdecode(entry).rpartition(".")
        if head.startswith("filter.") and key in _FILTER_KEYS:
            found[head.removeprefix("filter.")] = None
    # On the command line, an equals sign ends a name.
    if len(found) > _MOST_FILTERS or any("=" in name or len(name) > _LONGEST_FILTER for name in found):
        raise _Refused
    return tuple(found)


def _build(program: str, place: _Place, config: bytes, arguments: Sequence[str], settings: Sequence[str]) -> _Command:
    name = arguments[0]
    # A git folder is used only if it was recognised as one; git still checks its owner.
    bare = f"safe.bareRepository={'explicit' if place.is_tree else 'all'}"
    hooks = () if name in _READS_SETTINGS else (_NO_HOOKS,)
    given = [word for one in (*_OVERRIDES, bare, *hooks, *settings) for word in ("-c", one)]
    words = (program, "-C", str(place.folder), "--no-pager", "--literal-pathspecs", *given, name)
    environment = {key: value for key, value in os.environ.items() if key in _KEPT or not _DROPPED.fullmatch(key)}
    environment |= _FORCED | {"PATH": search_path(), "GIT_CEILING_DIRECTORIES": str(place.folder.parent)}
    if place.is_tree and _WORK_TREE.search(config):
        # The repository's settings could point to another working tree, such as a home folder.
        environment["GIT_WORK_TREE"] = str(place.folder)
    return _Command((*words, *_COMPARING.get(name, ()), *arguments[1:]), environment, place)


# -- Running it ------------------------------------------------------------------------------------


def _answer(command: _Command, stdin: bytes, timeout: float, most_bytes: int) -> GitAnswer | None:
    chunks: list[bytes] = []
    with _Running(command, stdin, timeout) as running:
        while chunk := running.read(_PIPE_BYTES):
            chunks.append(chunk)
            most_bytes -= len(chunk)
            if most_bytes < 0:
                return None
    return None if running.status is None else GitAnswer(running.status, b"".join(chunks))


class _Running:
    """A git process with a time limit that also ends its children, even if the reader stops reading."""

    def __init__(self, command: _Command, stdin: bytes, timeout: float) -> None:
        self._command = command
        self._stdin = stdin
        self._timeout = timeout
        self._process: subprocess.Popen[bytes] | None = None
        self._ended = threading.Event()
        self._is_whole = False
        self._is_late = False

    def __enter__(self) -> _Running:
        try:
            with _file_of(self._stdin) as given:
                # A large pipe lets git work ahead while a commit is read.
                self._process = subprocess.Popen(
                    self._command.words, env=self._command.environment, stdin=given, stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL, start_new_session=True, pipesize=_PIPE_BYTES,
                )  # fmt: skip
        except (OSError, ValueError) as error:
            logger.debug("git does not start: %s", type(error).__name__)
            return self
        _bound_memory(self._process.pid)
        try:
            threading.Thread(target=self._watch, args=(self._process,), daemon=True).start()
        except RuntimeError:
            # Without a watcher thread (at interpreter exit, or if none can start) nothing would enforce the time limit.
            _kill(self._process)
        return self

    def read(self, size: int) -> bytes:
        """The next output; empty at the end."""
        if self._process is None or self._process.stdout is None:
            return b""
        chunk = os.read(self._process.stdout.fileno(), size)
        self._is_whole = not chunk
        return chunk

    def __exit__(self, *_: object) -> None:
        if self._process is None:
            return
        if not self._is_whole:
            _kill(self._process)
        with self._process:
            pass
        self._ended.set()

    @property
    def status(self) -> int | None:
        """The exit status, if git ended by itself; None otherwise."""
        is_own = self._is_whole and not self._is_late and self._process is not None
        return self._process.returncode if is_own and self._process else None

    def _watch(self, process: subprocess.Popen[bytes]) -> None:
        """Release git from pipes that replace files, and kill it when its time is over."""
        deadline = time.monotonic() + self._timeout
        wait = _STALL_SECONDS
        pipes: list[str] = []
        while not self._ended.wait(min(wait, max(0.0, deadline - time.monotonic()))):
            if time.monotonic() >= deadline:
                self._is_late = True
                logger.debug("git took longer than %g s and is killed", self._timeout)
                _kill(process)
                return
            pipes = pipes or _pipes(self._command.place)
            wait = _POKE_SECONDS if pipes else 2 * wait
            for path in pipes:
                _poke(path)


@contextmanager
def _file_of(data: bytes) -> Iterator[int | IO[bytes]]:
    """The data as a file for stdin; with a file, neither side waits for the other."""
    if not data:
        yield subprocess.DEVNULL
        return
    with tempfile.TemporaryFile() as file:
        file.write(data)
        file.seek(0)
        yield file


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Kill a process and its children."""
    with suppress(OSError):
        if process.returncode is not None:
            return
        if sys.platform == "win32":
            process.kill()
        else:
            # It was started in a session of its own, which is a process group.
            os.killpg(process.pid, signal.SIGKILL)


def _bound_memory(process: int) -> None:
    if sys.platform == "linux":
        import resource

        with suppress(OSError, ValueError):
            # git buffers an endless file in its own memory.
            resource.prlimit(process, resource.RLIMIT_DATA, (_MOST_MEMORY, _MOST_MEMORY))


def _pipes(place: _Place) -> list[str]:
    """The pipes git may be blocked on: any in a git folder, those with names of git's files in the working tree."""
    found: list[str] = []
    left = _MOST_ENTRIES
    waiting = [(str(folder), True) for folder in {place.git_dir, place.common_dir}]
    waiting += [(str(place.folder), False)] if place.is_tree else []
    while waiting and left > 0:
        folder, is_own = waiting.pop(0)
        with suppress(OSError), os.scandir(folder) as entries:
            for entry in entries:
                left -= 1
                if entry.is_dir(follow_symlinks=False):
                    waiting += [(entry.path, is_own)] if is_own or entry.name != ".git" else []
                elif (is_own or entry.name in _TREE_FILES) and not entry.is_file(follow_symlinks=False):
                    found += [entry.path] if stat.S_ISFIFO(entry.stat(follow_symlinks=False).st_mode) else []
    return found


def _poke(pipe: str) -> None:
    """Unblock a reader of a pipe, which then reads nothing."""
    with suppress(OSError):
        os.close(os.open(pipe, os.O_WRONLY | getattr(os, "O_NONBLOCK", 0)))


def _broken(command: str, folder: Path) -> GitFailed:
    return GitFailed(
        f"'git {command}' broke off in the repository at {folder}.",
        remedy="Check that git works there, for example with 'git fsck'.",
    )
