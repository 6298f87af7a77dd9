"""An optional `post-checkout` hook that runs a command when another branch is checked out.

This is the only module of the package that writes to a repository, and only on request. An existing shell script keeps
working: it gets a marked block at its head that cannot change its arguments, input or exit status, and that can be
removed without a trace. Hooks that are not shell scripts, or that a hook manager rewrites, are left alone; the error
says which line to add where.
"""

from __future__ import annotations

import os
import re
import shlex
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ...core.errors import InvalidInput, StoreDenied
from ...core.paths import read_whole
from .repository import Repository, decode_output
from .runner import run_git

__all__ = ["HookChange", "find_hook", "install_hook", "remove_hook"]

_NAME = "post-checkout"
SECONDS = 10
_MOST_SCRIPT = 1_000_000
_SHEBANG = b"#!/bin/sh\n"
BEGIN = "# >>> cortex: tells it which branch is checked out >>>"
_END = "# <<< cortex <<<"
# Marks a file that this module created, so that removing the block removes the file.
_ALONE = "# This file was made for the lines below."
_BLOCK = re.compile(
    rb"(?:^%(begin)s\n.*?^%(end)s(?:\n|\Z))" % {b"begin": re.escape(BEGIN.encode()), b"end": re.escape(_END.encode())},
    re.MULTILINE | re.DOTALL,
)
_SHELL = re.compile(
    rb"#![ \t]*(?:\S*/)?(?:env[ \t]+(?:-S[ \t]+)?(?:\S*/)?)?(?:sh|bash|dash|zsh)(?:[ \t]+[^\r\n]*)?(?:\n|\Z)"
)
_MANAGERS = re.compile(rb"husky|lefthook|pre-commit\.com|overcommit", re.IGNORECASE)
# A script that passes its own text to another program would pass the block too.
_OWN_FOLDER = re.compile(rb"""(?:dirname|basename|readlink|realpath)[^\n;|&]*?\$\{?0""")
_READS_ITSELF = re.compile(
    rb"""(?:\b(?:exec|tail|head|sed|awk|cat|grep|python[\d.]*|perl|ruby|node)\b|'exec')[^\n]*\$\{?0\b|^'''|^\"\"\"""",
    re.MULTILINE,
)


@dataclass(frozen=True, slots=True)
class HookChange:
    """Where the hook is, and what was changed."""

    path: Path
    change: Literal["created", "added", "renewed", "none"]


def install_hook(repository: Repository, command: Sequence[str], *, shared: bool = False) -> HookChange:
    """Make git run a command after each checkout of a branch, with the hook's three arguments.

    `shared` allows a hooks folder that several repositories use.
    """
    block = _block(command)
    folder = _hooks_folder(repository)
    path = folder / _NAME
    if os.path.lexists(folder) and not folder.is_dir():
        raise InvalidInput(
            f"Hooks are switched off: {folder} is not a folder.",
            remedy="Unset 'git config core.hooksPath', or point it at a folder.",
        )
    if _is_shared(repository, folder) and not shared:
        raise InvalidInput(
            f"The hooks in {folder} are run for other repositories too.",
            remedy="Allow that with 'shared', or set 'git config core.hooksPath' for this repository alone.",
        )
    if not os.path.lexists(path):
        _write(path, _SHEBANG + _marked([_ALONE, *block]), 0o755)
        return HookChange(path, "created")
    before = _editable(path, command)
    old = _BLOCK.search(before)
    after = _with(before, [_ALONE, *block] if old and _ALONE.encode() in old[0] else block)
    if after == before:
        return HookChange(path, "none")
    _write(path, after, path.stat().st_mode & 0o7777)
    return HookChange(path, "renewed" if old else "added")


def remove_hook(repository: Repository) -> bool:
    """Remove the block, and the hook file if nothing else is in it; False if there is no block."""
    # core.hooksPath may have changed since the block was installed.
    places = {_hooks_folder(repository) / _NAME, repository.common_dir / "hooks" / _NAME}
    return sum(_take_out(path) for path in {place.resolve() for place in places}) > 0


def find_hook(repository: Repository) -> Path | None:
    """The hook that git runs here, if it contains the block."""
    path = _hooks_folder(repository) / _NAME
    data = _read(path)
    return path if data is not None and _BLOCK.search(data) and os.access(path, os.X_OK) else None


def _block(command: Sequence[str]) -> list[str]:
    """The lines of the block: silent, in the foreground, limited in time, and always successful."""
    line = _quoted(command)
    program = shlex.quote(command[0])
    return [
        f'if [ "${{3-}}" = 1 ] && command -v {program} >/dev/null 2>&1; then (',
        "    if command -v timeout >/dev/null 2>&1; then",
        f'        timeout {SECONDS} {line} "$1" "$2" "$3" || true',
        "    elif command -v perl >/dev/null 2>&1; then",
        f'        perl -e \'alarm shift; exec @ARGV\' {SECONDS} {line} "$1" "$2" "$3" || true',
        "    else",
        f'        {line} "$1" "$2" "$3" || true',
        "    fi",
        ") </dev/null >/dev/null 2>&1 || true; fi",
    ]


def _quoted(command: Sequence[str]) -> str:
    program = command[0] if command else ""
    is_found_anywhere = Path(program).is_absolute() or ("/" not in program and "\\" not in program)
    if not program or program.startswith("-") or not is_found_anywhere:
        raise InvalidInput(
            f"The command {program!r} cannot be run from a hook.",
            remedy="Give the name of a program, or its absolute path.",
            field="command",
        )
    if any(not word.isprintable() for word in command):
        raise InvalidInput("The command holds characters that cannot stand in a hook.", field="command")
    return shlex.join(command)


def _marked(lines: Sequence[str]) -> bytes:
    return "".join(f"{line}\n" for line in (BEGIN, *lines, _END)).encode()


def _with(data: bytes, block: Sequence[str]) -> bytes:
    """The script with the block: in its old place, or at the head, where an early exit cannot skip it."""
    if old := _BLOCK.search(data):
        marked = _marked(block)
        return data[: old.start()] + (marked if old[0].endswith(b"\n") else marked[:-1]) + data[old.end() :]
    first = _SHELL.match(data)
    head = first[0] if first else b""
    if head and not head.endswith(b"\n"):
        # The line break before the block belongs to it; removal recognises this by the missing one after it.
        return head + b"\n" + _marked(block)[:-1]
    return head + _marked(block) + data[len(head) :]


def _without(data: bytes) -> bytes:
    old = _BLOCK.search(data)
    if old is None:
        return data
    before = data[: old.start()]
    return (before if old[0].endswith(b"\n") else before.removesuffix(b"\n")) + data[old.end() :]


def _take_out(path: Path) -> bool:
    data = _read(path)
    old = _BLOCK.search(data) if data is not None else None
    if data is None or old is None:
        return False
    rest = _without(data)
    if rest == _SHEBANG and _ALONE.encode() in old[0]:
        try:
            path.unlink()
        except OSError as error:
            raise _denied(path) from error
    else:
        _write(path, rest, path.stat().st_mode & 0o7777)
    return True


def _editable(path: Path, command: Sequence[str]) -> bytes:
    """The existing hook, if a block can be added without breaking it."""
    data = None if path.is_symlink() else _read(path)
    reason = "is not a plain file of this repository" if data is None else _reason_to_leave(data)
    if reason is None and not os.access(path, os.X_OK):
        raise InvalidInput(
            f"The hook {path} may not be executed, so git does not run it.",
            remedy="Delete it, or make it executable with 'chmod +x'.",
        )
    if data is None or reason is not None:
        line = f'[ "$3" = 1 ] && {_quoted(command)} "$1" "$2" "$3" </dev/null >/dev/null 2>&1 || true'
        raise InvalidInput(
            f"The hook {path} {reason}; it was left as it is.",
            remedy=f"Have it, or the tool that manages it, run this line of shell: {line}",
        )
    return data


def _reason_to_leave(data: bytes) -> str | None:
    script = _without(data)
    if (BEGIN.encode() in script) or (_END.encode() in script):
        return "has a damaged or second block of Cortex"
    if (
        b"\0" in script
        or b"\r\n" in script
        or (script.startswith((b"#!", b"\xef\xbb\xbf")) and not _SHELL.match(script))
    ):
        return "is not a shell script"
    if _MANAGERS.search(script):
        return "belongs to a hook manager"
    if _READS_ITSELF.search(_OWN_FOLDER.sub(b"", script)):
        return "reads its own text"
    return None


def _hooks_folder(repository: Repository) -> Path:
    """Where git looks for hooks."""
    answer = run_git(repository.root, "rev-parse", "--git-path", "hooks")
    if answer is None or answer.returncode != 0:
        raise InvalidInput(
            f"git did not report the hooks folder of {repository.root}.",
            remedy="Check that git works there, for example with 'git status'.",
        )
    return repository.root / os.fsdecode(answer.stdout.removesuffix(b"\n"))


def _is_shared(repository: Repository, folder: Path) -> bool:
    """Whether other repositories use the folder too and this repository did not choose it itself."""
    answer = run_git(repository.root, "config", "--show-scope", "--get", "core.hooksPath")
    scope, _, value = (decode_output(answer.stdout) if answer else "").partition("\t")
    if not scope:
        # The default folder may be a link to a place outside the repository.
        return not folder.resolve().is_relative_to(repository.common_dir)
    # A relative path names a folder inside each repository.
    is_relative = not (Path(value).is_absolute() or value.startswith(("~", "%(")))
    return scope not in ("local", "worktree") and not is_relative


def _read(path: Path) -> bytes | None:
    if not path.is_file():
        return None
    try:
        return read_whole(path, _MOST_SCRIPT)
    except OSError as error:
        raise _denied(path) from error


def _write(path: Path, data: bytes, mode: int) -> None:
    """Replace the file atomically: git may run it at any moment."""
    draft = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, draft = tempfile.mkstemp(prefix=f".{_NAME}-", dir=path.parent)
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(descriptor)
        Path(draft).chmod(mode)
        Path(draft).replace(path)
    except OSError as error:
        if draft is not None:
            Path(draft).unlink(missing_ok=True)
        raise _denied(path) from error


def _denied(path: Path) -> StoreDenied:
    return StoreDenied(
        f"The hook {path} could not be read or written.", remedy="Check who may write to that file and its folder."
    )
