"""How git is started: in time, within bounds, as the owner of the repository, and with nobody's leftovers."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path

import pytest

from cortex_py.core.errors import CortexError
from cortex_py.worktree.files.files import compute_stamp, project_files
from cortex_py.worktree.git.history import read_commits, read_working_changes
from cortex_py.worktree.git.repository import Repository
from cortex_py.worktree.git.runner import find_repository_folder, git_lines, run_git
from timing import MINUTE, no_hang

from helpers import git


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "r"
    git(tmp_path, "init", "-q", "-b", "main", str(folder))
    (folder / "sub").mkdir()
    (folder / "sub" / "a.txt").write_text("one\n")
    (folder / "b.txt").write_text("two\n")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "first")
    return folder


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A script that stands in for git."""
    path = tmp_path / "bin" / "git"
    path.parent.mkdir()
    monkeypatch.setenv("PATH", f"{path.parent}{os.pathsep}{os.environ['PATH']}")
    return path


def write(program: Path, script: str) -> None:
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)


def wait_until_gone(process: int) -> None:
    end = time.monotonic() + MINUTE
    while time.monotonic() < end:
        try:
            state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            return
        if state == "Z":
            return
        time.sleep(0.02)
    raise AssertionError("it still runs")


# Ending


def test_a_git_that_hangs_is_ended_with_all_that_it_started(root: Path, program: Path, tmp_path: Path) -> None:
    write(program, f"sleep 600 & echo $! > '{tmp_path / 'child'}'; wait")
    with no_hang():
        assert run_git(root, "status", timeout=2) is None
    wait_until_gone(int((tmp_path / "child").read_text()))


def test_a_stream_that_stops_is_ended_with_all_that_it_started(root: Path, program: Path, tmp_path: Path) -> None:
    write(program, f"echo first; sleep 600 & echo $! > '{tmp_path / 'child'}'; wait")
    with no_hang(), pytest.raises(CortexError, match="broke off"):
        list(git_lines(root, "log", timeout=2))
    wait_until_gone(int((tmp_path / "child").read_text()))


def test_a_stream_whose_reader_waits_is_ended(root: Path, program: Path, tmp_path: Path) -> None:
    write(program, f"echo $$ > '{tmp_path / 'self'}'; while :; do echo line; done")
    lines = git_lines(root, "log", timeout=2)
    assert next(lines) == b"line"
    wait_until_gone(int((tmp_path / "self").read_text()))
    with pytest.raises(CortexError, match="broke off"):
        list(lines)


def test_answers_and_lines_are_bounded(root: Path, program: Path) -> None:
    write(program, "head -c 3000000 /dev/zero")
    assert run_git(root, "log", most_bytes=1_000_000) is None
    assert [len(line) for line in git_lines(root, "log")] == [40_000]


@pytest.mark.slow
def test_more_is_given_than_a_pipe_holds(root: Path) -> None:
    head = git(root, "rev-parse", "HEAD")
    answer = run_git(root, "cat-file", "--batch-check", stdin=f"{head}\n".encode() * 50_000)
    assert answer is not None
    assert answer.stdout.count(b" commit ") == 50_000


# The environment


def test_settings_of_the_environment_do_not_reach_git(
    root: Path, program: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [
        "GIT_DIR",
        "GIT_CONFIG_COUNT",
        "GIT_CONFIG_KEY_0",
        "GIT_CONFIG_PARAMETERS",
        "GIT_EXTERNAL_DIFF",
        "GIT_PAGER",
        "GIT_SSH",
        "GIT_SSH_COMMAND",
        "GIT_PROXY_COMMAND",
        "GIT_TRACE",
        "GIT_TRACE2",
        "GIT_EXEC_PATH",
        "PAGER",
        "EDITOR",
        "VISUAL",
        "SSH_ASKPASS",
    ]
    for name in names:
        monkeypatch.setenv(name, "planted")
    write(program, "env")
    answer = run_git(root, "status")
    assert answer is not None
    assert b"planted" not in answer.stdout
    assert b"GIT_CONFIG_GLOBAL=" in answer.stdout


def test_git_is_not_taken_from_the_folder_one_stands_in(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(root / "git", f": > '{root / 'marker'}'")
    monkeypatch.chdir(root)
    monkeypatch.setenv("PATH", f"{os.pathsep}.{os.pathsep}{os.environ['PATH']}")
    assert Repository.discover(root) is not None
    assert not (root / "marker").exists()


# Whose repository, and which


@pytest.mark.skipif(os.name == "nt" or os.geteuid() != 0, reason="only root may give files away")
@pytest.mark.parametrize("is_bare", [False, True])
def test_a_repository_of_another_user_is_refused_until_the_user_says_otherwise(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_bare: bool
) -> None:
    place = root
    if is_bare:
        place = tmp_path / "b.git"
        git(tmp_path, "clone", "-q", "--bare", str(root), str(place))
    for folder in (place, root / ".git"):
        os.chown(folder, 4321, 4321)
    assert Repository.discover(place) is None
    settings = tmp_path / "settings"
    settings.write_text(f"[safe]\n\tdirectory = {place}\n")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(settings))
    assert Repository.discover(place) is not None


def test_a_bare_repository_inside_a_working_tree_is_only_files(root: Path) -> None:
    inner = root / "vendor" / "library.git"
    git(root, "clone", "-q", "--bare", str(root), str(inner))
    for folder in (inner, inner / "refs"):
        assert find_repository_folder(folder) == root
        found = Repository.discover(folder)
        assert found is not None
        assert (found.root, found.is_bare) == (root, False)
    assert run_git(inner, "rev-parse", "--git-dir") is None
    assert "config" in {file.path for file in project_files(inner)}
    # Where it is by itself, it is a repository.
    alone = shutil.move(inner, root.parent / "library.git")
    assert Repository.discover(alone) == Repository(alone, alone, alone, is_bare=True)


def test_a_git_folder_that_a_tree_points_at_is_its_own(tmp_path: Path, root: Path) -> None:
    app = tmp_path / "app"
    app.mkdir()
    git(root, "clone", "-q", "--bare", str(root), str(app / ".bare"))
    (app / ".git").write_text("gitdir: ./.bare\n")
    found = Repository.discover(app / ".bare")
    assert found is not None
    assert found.is_bare


# Pipes and devices in the place of files


@pytest.mark.parametrize("name", [".gitattributes", ".gitignore", "sub/.gitattributes", "sub/.gitignore", ".mailmap"])
def test_a_pipe_in_the_tree_is_not_there(root: Path, name: str) -> None:
    (root / "sub" / "a.txt").write_text("changed\n")
    (root / "b.txt").write_text("changed\n")
    os.mkfifo(root / name)
    repository = Repository.discover(root)
    assert repository is not None
    with no_hang(100):
        assert compute_stamp(root, repository) is not None
        assert {"b.txt", "sub/a.txt"} <= {file.path for file in project_files(root)}
        assert {one.path for one in read_working_changes(repository).unstaged} == {"b.txt", "sub/a.txt"}
        assert [one.subject for one in read_commits(repository)] == ["first"]


@pytest.mark.parametrize("kind", ["pipe", "link to a pipe", "link to a device", "folder"])
@pytest.mark.parametrize(
    "name", ["HEAD", "config", "index", "packed-refs", "info/exclude", "info/attributes", "refs/heads/main", "shallow"]
)
def test_a_repository_with_something_else_for_a_file_does_not_hang(
    root: Path, tmp_path: Path, kind: str, name: str
) -> None:
    path = root / ".git" / name
    path.unlink(missing_ok=True)
    os.mkfifo(tmp_path / "pipe")
    if kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to(tmp_path / "pipe" if kind == "link to a pipe" else "/dev/zero")
    with no_hang(100):
        repository = Repository.discover(root) or Repository(root, root / ".git", root / ".git", is_bare=False)
        for ask in (
            repository.head,
            repository.branches,
            lambda: project_files(root),
            lambda: list(read_commits(repository)),
        ):
            try:
                ask()
            except CortexError as error:
                assert error.remedy


# Where the settings are


def _keep_elsewhere(root: Path, name: str) -> Path:
    """Move the git folder to a name in the working tree, and point to the copy of another name that stays harmless."""
    (root / ".git").rename(root / name)
    harmless = root / name.strip()
    if not harmless.exists():
        shutil.copytree(root / name, harmless)
    return root / name


def _add_filter(root: Path, settings: Path) -> Path:
    marker = root.parent / "ran"
    with settings.open("a") as file:
        file.write(f'[filter "own"]\n\tclean = touch {marker}; cat\n')
    (root / ".gitattributes").write_text("*.txt filter=own\n")
    (root / "b.txt").write_text("three\n")
    return marker


@pytest.mark.parametrize("name", ["kept ", " kept", "kept\t", "kept\x0b"])
def test_blanks_in_the_name_of_a_git_folder_hide_no_filter(root: Path, name: str) -> None:
    kept = _keep_elsewhere(root, name)
    (root / ".git").write_bytes(b"gitdir: " + name.encode() + b"\n")
    marker = _add_filter(root, kept / "config")
    answer = run_git(root, "status", "--porcelain")
    assert answer is not None
    assert b" M b.txt" in answer.stdout
    assert not marker.exists()


@pytest.mark.parametrize(
    ("name", "pointer"),
    [
        ("kept ", b"../kept \n"), ("kept\x0b", b"../kept\x0b\n"), ("kept", b"../kept" + b"\n" * 20_000),
        ("kept", b"../kept\0/../nowhere\n"),
    ],
)  # fmt: skip
def test_the_shared_folder_of_a_worktree_hides_no_filter(root: Path, name: str, pointer: bytes) -> None:
    kept = _keep_elsewhere(root, name)
    own = root / "own"
    own.mkdir()
    for one in ("HEAD", "index"):
        shutil.copy(kept / one, own)
    (own / "commondir").write_bytes(pointer)
    (root / ".git").write_bytes(b"gitdir: own\n")
    marker = _add_filter(root, kept / "config")
    run_git(root, "status", "--porcelain")
    run_git(root, "diff")
    assert not marker.exists()


def test_a_name_with_a_nul_is_no_git_folder(root: Path) -> None:
    kept = _keep_elsewhere(root, "kept")
    (root / ".git").write_bytes(b"gitdir: kept\0/../nowhere\n")
    marker = _add_filter(root, kept / "config")
    assert run_git(root, "status") is None
    assert Repository.discover(root) is None
    assert not marker.exists()


@pytest.mark.parametrize(
    "setting",
    [
        "[core]\n\texcludesFile = {pipe}\n", '[core]\n\texcludesFile = "{pipe}" ; a remark\n',
        "[include] path = {pipe}\n", "[include]\n\tpath = ../../pi\\\npe\n", '[includeIf "gitdir:**"]\n\tpath = more\n',
    ],
)  # fmt: skip
def test_a_setting_that_names_a_pipe_keeps_nobody_waiting(root: Path, tmp_path: Path, setting: str) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    (root / ".git" / "more").write_text(f"[core]\n\texcludesFile = {pipe}\n")
    with (root / ".git" / "config").open("a") as file:
        file.write(setting.format(pipe=pipe))
    with no_hang():
        assert run_git(root, "status", timeout=600) is None
        assert run_git(root, "ls-files", "--others", "--exclude-standard", timeout=600) is None


def test_settings_may_name_files_and_nothing_at_all(root: Path, tmp_path: Path) -> None:
    (tmp_path / "ignored").write_text("*.log\n")
    (root / ".git" / "more").write_text(f"[core]\n\texcludesFile = {tmp_path / 'ignored'}\n")
    with (root / ".git" / "config").open("a") as file:
        file.write("[include]\n\tpath = more\n[core]\n\thooksPath = /dev/null\n\tworktree = ../\n")
    (root / "a.log").write_text("")
    (root / "c.txt").write_text("")
    answer = run_git(root, "ls-files", "--others", "--exclude-standard")
    assert answer is not None
    assert answer.stdout == b"c.txt\n"


def test_a_filter_of_an_included_file_does_not_run(root: Path) -> None:
    (root / ".git" / "deep").write_text("")
    (root / ".git" / "more").write_text("[include]\n\tpath = deep\n")
    with (root / ".git" / "config").open("a") as file:
        file.write("[include]\n\tpath = more\n")
    marker = _add_filter(root, root / ".git" / "deep")
    assert run_git(root, "diff") is not None
    assert not marker.exists()
