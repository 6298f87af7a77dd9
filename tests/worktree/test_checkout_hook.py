"""The hook in real repositories: git itself runs it."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from repositories import repository

from cortex_py.core.errors import InvalidInput, StoreDenied
from cortex_py.worktree.git import checkout_hook
from cortex_py.worktree.git.checkout_hook import HookChange, find_hook, install_hook, remove_hook
from timing import no_hang

from helpers import git


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A repository with the branches main and side, and a file that differs between them."""
    root = tmp_path / "r"
    git(tmp_path, "init", "-q", "-b", "main", str(root))
    for branch in ("main", "side"):
        if branch == "side":
            git(root, "switch", "-q", "-c", "side")
        (root / "f.txt").write_text(branch)
        git(root, "add", "f.txt")
        git(root, "commit", "-q", "-m", branch)
    git(root, "switch", "-q", "main")
    return root


class Command:
    """A program that writes down how it was called."""

    def __init__(self, folder: Path, body: str = "") -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.log = folder / "calls"
        self.path = folder / "the program"
        self.path.write_text(
            '#!/bin/sh\necho "to stdout"; echo "to stderr" >&2\n'
            f"for a; do printf '%s|' \"$a\"; done >> '{self.log}'; echo >> '{self.log}'\ncat >> '{self.log}'\n{body}\n"
        )
        self.path.chmod(0o755)

    @property
    def line(self) -> list[str]:
        return [str(self.path), "hook", 'it\'s "quoted" $HOME `x`']

    def calls(self) -> list[list[str]]:
        return [line.split("|")[:-1] for line in self.log.read_text().splitlines()] if self.log.exists() else []


@pytest.fixture
def command(tmp_path: Path) -> Command:
    return Command(tmp_path / "a b")


def hook_of(root: Path) -> Path:
    return root / ".git" / "hooks" / "post-checkout"


def write_hook(path: Path, data: bytes | str) -> bytes:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    path.chmod(0o750)
    return path.read_bytes()


def switch(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["git", "-C", root, "switch", "-q", *arguments], capture_output=True, text=True, check=False)


# It runs


def test_switching_branches_runs_the_command_with_the_hooks_arguments(root: Path, command: Command) -> None:
    assert find_hook(repository(root)) is None
    assert install_hook(repository(root), command.line) == HookChange(hook_of(root), "created")
    assert find_hook(repository(root)) == hook_of(root)
    main, side = git(root, "rev-parse", "main"), git(root, "rev-parse", "side")
    done = switch(root, "side")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    git(root, "checkout", "-q", "main")
    assert command.calls() == [[*command.line[1:], main, side, "1"], [*command.line[1:], side, main, "1"]]


def test_checking_out_a_file_does_not(root: Path, command: Command) -> None:
    install_hook(repository(root), command.line)
    git(root, "checkout", "-q", "side", "--", "f.txt")
    assert command.calls() == []


def test_a_new_worktree_and_what_is_checked_out_there_run_it(tmp_path: Path, root: Path, command: Command) -> None:
    git(root, "worktree", "add", "-q", "-b", "first", str(tmp_path / "w"))
    assert install_hook(repository(tmp_path / "w"), command.line).path == hook_of(root)
    git(tmp_path / "w", "switch", "-q", "side")
    git(root, "worktree", "add", "-q", "-b", "second", str(tmp_path / "w2"))
    assert len(command.calls()) == 2
    assert find_hook(repository(root)) == hook_of(root)
    assert remove_hook(repository(tmp_path / "w2"))
    assert not hook_of(root).exists()


def test_a_worktree_of_a_bare_repository(tmp_path: Path, root: Path, command: Command) -> None:
    bare = tmp_path / "b.git"
    git(tmp_path, "clone", "-q", "--bare", str(root), str(bare))
    assert install_hook(repository(bare), command.line).path == bare / "hooks" / "post-checkout"
    git(bare, "worktree", "add", "-q", str(tmp_path / "w"), "side")
    assert len(command.calls()) == 1


def test_a_command_found_by_name(root: Path, command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{command.path.parent}{os.pathsep}{os.environ['PATH']}")
    install_hook(repository(root), [command.path.name])
    switch(root, "side")
    assert len(command.calls()) == 1


@pytest.mark.parametrize("gone", [False, True])
def test_a_command_that_fails_or_is_gone_is_no_harm(tmp_path: Path, root: Path, gone: bool) -> None:
    failing = Command(tmp_path / "failing", "exit 3")
    install_hook(repository(root), failing.line)
    if gone:
        failing.path.unlink()
    done = switch(root, "side")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert len(failing.calls()) == (0 if gone else 1)


@pytest.mark.parametrize("limiter", ["timeout", "perl"])
def test_a_command_that_hangs_is_ended(
    tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch, limiter: str
) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("git", "sh", "cat", "sleep", limiter):
        found = shutil.which(name)
        if found is None:
            pytest.skip(f"no {name} here")
        (tools / name).symlink_to(found)
    monkeypatch.setattr(checkout_hook, "SECONDS", 1)
    hanging = Command(tmp_path / "hanging", "exec sleep 300")
    install_hook(repository(root), hanging.line)
    monkeypatch.setenv("PATH", str(tools))
    with no_hang(200):
        done = switch(root, "side")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert len(hanging.calls()) == 1


def test_without_any_limiter_it_still_runs(
    tmp_path: Path, root: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("git", "sh", "cat"):
        (tools / name).symlink_to(str(shutil.which(name)))
    install_hook(repository(root), command.line)
    monkeypatch.setenv("PATH", str(tools))
    assert switch(root, "side").returncode == 0
    assert len(command.calls()) == 1


# Beside a hook that is there


SCRIPT = 'echo "$# $3" >> "$LOG"\ncat >> "$LOG"\nexit {status}\n'
SHELLS = ["#!/bin/sh\n", "#!/bin/sh -eu\n", "#! /usr/bin/env bash\n", "#!/usr/bin/env -S sh -e\n", "", "#!/bin/dash\n"]


@pytest.mark.parametrize("first", [*SHELLS, "#!/usr/bin/env zsh\n"])
@pytest.mark.parametrize("status", [0, 7])
def test_a_shell_script_goes_on_as_before(
    tmp_path: Path, root: Path, command: Command, monkeypatch: pytest.MonkeyPatch, first: str, status: int
) -> None:
    if "zsh" in first and shutil.which("zsh") is None:
        pytest.skip("no zsh here")
    log = tmp_path / "log"
    monkeypatch.setenv("LOG", str(log))
    before = write_hook(hook_of(root), first + SCRIPT.format(status=status))
    alone = switch(root, "side")
    switch(root, "main")
    log.unlink()
    assert install_hook(repository(root), command.line).change == "added"
    done = switch(root, "side")
    assert (done.returncode, done.stdout, done.stderr) == (alone.returncode, "", "")
    assert bool(done.returncode) == bool(status)
    assert log.read_text() == "3 1\n"
    assert len(command.calls()) == 1
    # git tells only that a hook failed, not how.
    directly = [*([] if first else ["sh"]), hook_of(root), "a", "b", "1"]
    assert subprocess.run(directly, stdin=subprocess.DEVNULL, check=False).returncode == status
    assert stat.S_IMODE(hook_of(root).stat().st_mode) == 0o750
    assert remove_hook(repository(root))
    assert hook_of(root).read_bytes() == before
    assert stat.S_IMODE(hook_of(root).stat().st_mode) == 0o750


@pytest.mark.parametrize(
    "script",
    [
        b"", b"#!/bin/sh", b"#!/bin/sh\n", b"#!/bin/sh\nexit 0", b"exit 0", b"\n\n#!/bin/sh\n",
        b"#!/bin/sh\ncat <<EOF\n# >>> something else >>>\nEOF\n", b"#!/bin/sh\n# \xff\xfe not utf-8\n",
        b'#!/bin/sh\n. "$(dirname -- "$0")/common"\n', b'#!/bin/sh\nexec "$(dirname "$0")/real" "$@"\n',
    ],
)  # fmt: skip
def test_taking_the_block_out_leaves_what_was_there(root: Path, command: Command, script: bytes) -> None:
    write_hook(hook_of(root), script)
    install_hook(repository(root), command.line)
    switch(root, "side")
    assert len(command.calls()) == 1
    assert install_hook(repository(root), ["other"]).change == "renewed"
    assert remove_hook(repository(root))
    assert hook_of(root).read_bytes() == script
    assert not remove_hook(repository(root))


def test_installing_twice_is_installing_once(root: Path, command: Command) -> None:
    install_hook(repository(root), command.line)
    once = hook_of(root).read_bytes()
    assert install_hook(repository(root), command.line) == HookChange(hook_of(root), "none")
    assert hook_of(root).read_bytes() == once
    assert install_hook(repository(root), ["other"]).change == "renewed"
    assert b"the program" not in hook_of(root).read_bytes()
    assert remove_hook(repository(root))
    assert not hook_of(root).exists()
    assert not remove_hook(repository(root))
    assert find_hook(repository(root)) is None
    assert [path.name for path in hook_of(root).parent.iterdir() if path.name.startswith(".")] == []


def test_what_was_added_to_a_made_hook_stays(root: Path, command: Command) -> None:
    install_hook(repository(root), command.line)
    with hook_of(root).open("a") as file:
        file.write("echo mine\n")
    assert remove_hook(repository(root))
    assert hook_of(root).read_text() == "#!/bin/sh\necho mine\n"


def _link(path: Path) -> None:
    write_hook(path.parents[2] / "tools" / "post-checkout", "#!/bin/sh\n")
    path.symlink_to(path.parents[2] / "tools" / "post-checkout")


PYTHON = "#!/usr/bin/env python3\nprint('x')\n"
OTHERS: dict[str, str | bytes | Callable[[Path], object]] = {
    "python": PYTHON,
    "binary": b"\x7fELF\0\0\0",
    "link": _link,
    "dangling": lambda path: path.symlink_to("nowhere"),
    "folder": Path.mkdir,
    "husky": '#!/usr/bin/env sh\n. "$(dirname -- "$0")/_/husky.sh"\nnpm test\n',
    "lefthook": '#!/bin/sh\n\nif [ "$LEFTHOOK" = "0" ]; then\n  exit 0\nfi\ncall_lefthook run "post-checkout" "$@"\n',
    "pre-commit": "#!/usr/bin/env bash\n# File generated by pre-commit: https://pre-commit.com\n",
    "both languages": "#!/bin/sh\n'''exec' python3 \"$0\" \"$@\"\n' '''\nprint('x')\n",
    "self-reading": '#!/bin/sh\ntail -n +3 "$0" | sh\necho x\n',
    "from Windows": "#!/bin/sh\r\necho x\r\n",
    "damaged": f"#!/bin/sh\n{checkout_hook.BEGIN}\necho x\n",
}


@pytest.mark.parametrize("kind", OTHERS)
def test_any_other_hook_is_left_alone_and_the_line_to_add_is_told(root: Path, command: Command, kind: str) -> None:
    path, made = hook_of(root), OTHERS[kind]
    path.parent.mkdir(exist_ok=True)
    if callable(made):
        made(path)
    else:
        write_hook(path, made)
    before = path.read_bytes() if path.is_file() else None
    with pytest.raises(InvalidInput, match="was left as it is") as caught:
        install_hook(repository(root), command.line)
    assert str(command.path) in (caught.value.remedy or "")
    assert (path.read_bytes() if path.is_file() else None) == before
    assert find_hook(repository(root)) is None
    assert not remove_hook(repository(root))


def test_the_line_that_is_told_works(root: Path, command: Command) -> None:
    write_hook(hook_of(root), PYTHON)
    with pytest.raises(InvalidInput) as caught:
        install_hook(repository(root), command.line)
    line = (caught.value.remedy or "").partition(": ")[2]
    write_hook(hook_of(root), f"#!/bin/sh -e\n{line}\n")
    assert switch(root, "side").returncode == 0
    git(root, "checkout", "-q", "main", "--", "f.txt")
    assert len(command.calls()) == 1


def test_a_hook_that_is_switched_off_is_not_switched_on(root: Path, command: Command) -> None:
    before = write_hook(hook_of(root), "#!/bin/sh\nrm -rf everything\n")
    hook_of(root).chmod(0o644)
    with pytest.raises(InvalidInput, match="may not be executed"):
        install_hook(repository(root), command.line)
    assert hook_of(root).read_bytes() == before


# Where hooks live


def test_a_folder_of_hooks_below_the_root_of_the_worktree(root: Path, command: Command) -> None:
    git(root, "config", "core.hooksPath", "my hooks")
    (root / "deep").mkdir()
    assert install_hook(repository(root / "deep"), command.line).path == root / "my hooks" / "post-checkout"
    switch(root, "side")
    assert len(command.calls()) == 1
    assert not hook_of(root).exists()
    assert remove_hook(repository(root))


@pytest.mark.parametrize("value", ["{home}/hooks of mine", "~/hooks of mine"])
def test_a_folder_of_hooks_elsewhere(
    tmp_path: Path, root: Path, command: Command, monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    home = tmp_path / "own home"
    monkeypatch.setenv("HOME", str(home))
    git(root, "config", "core.hooksPath", value.format(home=home))
    assert install_hook(repository(root), command.line).path == home / "hooks of mine" / "post-checkout"
    switch(root, "side")
    assert len(command.calls()) == 1


def test_hooks_of_all_repositories_are_changed_only_when_that_is_said(
    tmp_path: Path, root: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = tmp_path / "gitconfig"
    settings.write_text(f"[core]\n\thooksPath = {tmp_path / 'everyone'}\n")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(settings))
    with pytest.raises(InvalidInput, match="other repositories") as caught:
        install_hook(repository(root), command.line)
    assert "shared" in str(caught.value)
    assert not (tmp_path / "everyone").exists()
    path = install_hook(repository(root), command.line, shared=True).path
    assert path == tmp_path / "everyone" / "post-checkout"
    switch(root, "side")
    assert len(command.calls()) == 1
    assert remove_hook(repository(root))
    settings.write_text("[core]\n\thooksPath = .githooks\n")
    assert install_hook(repository(root), command.line).path == root / ".githooks" / "post-checkout"


def test_a_linked_folder_of_hooks_is_shared_too(tmp_path: Path, root: Path, command: Command) -> None:
    shutil.rmtree(hook_of(root).parent, ignore_errors=True)
    (tmp_path / "everyone").mkdir()
    hook_of(root).parent.symlink_to(tmp_path / "everyone")
    with pytest.raises(InvalidInput, match="other repositories"):
        install_hook(repository(root), command.line)
    install_hook(repository(root), command.line, shared=True)
    switch(root, "side")
    assert len(command.calls()) == 1


def test_hooks_that_are_switched_off_stay_so(root: Path, command: Command) -> None:
    install_hook(repository(root), command.line)
    git(root, "config", "core.hooksPath", os.devnull)
    with pytest.raises(InvalidInput, match="switched off"):
        install_hook(repository(root), command.line)
    assert find_hook(repository(root)) is None
    # The block from before is found where hooks usually live.
    assert remove_hook(repository(root))
    assert not hook_of(root).exists()


def test_a_repository_without_a_folder_of_hooks_gets_one(root: Path, command: Command) -> None:
    shutil.rmtree(hook_of(root).parent, ignore_errors=True)
    install_hook(repository(root), command.line)
    switch(root, "side")
    assert len(command.calls()) == 1


def test_a_folder_that_cannot_be_written_is_a_typed_error(root: Path, command: Command) -> None:
    shutil.rmtree(hook_of(root).parent, ignore_errors=True)
    git(root, "config", "core.hooksPath", "f.txt/hooks")
    with pytest.raises(StoreDenied, match="post-checkout"):
        install_hook(repository(root), command.line)


def test_a_git_that_does_not_answer_is_a_typed_error(
    tmp_path: Path, root: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = repository(root)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InvalidInput, match="git did not report"):
        install_hook(asked, command.line)


@pytest.mark.parametrize("line", [[], [""], ["./cortex"], ["-x"], ["cortex", "a\nb"], ["cortex", "a\0b"]])
def test_a_command_that_cannot_stand_in_a_hook_is_refused(root: Path, line: list[str]) -> None:
    with pytest.raises(InvalidInput):
        install_hook(repository(root), line)
    assert not hook_of(root).exists()
