"""Branch files on disk: replaced whole, locked against everybody else, and never led astray by a link."""

from __future__ import annotations

import errno
import os
import random
import signal
import stat
import subprocess
import threading
from pathlib import Path

import pytest

from cortex_py.core.errors import InvalidInput, StorageError, StoreBusy, StoreDenied, StoreFull, StoreReadOnly
from cortex_py.parts.context.branches import store as branch_store
from cortex_py.parts.context.branches.store import BranchFiles

from forking import python_command

PLACE = ("0123456789ab", "topic_20260102_123456")
START = (
    "import os, signal, sys\nfrom pathlib import Path\nfrom cortex_py.parts.context.branches.store import BranchFiles\n"
)
START += f"files, place = BranchFiles(Path(sys.argv[1])), {PLACE!r}\n"

# Each cycle reads the file, adds an entry and writes it, as the owner of a branch does.
ADDER = (
    START
    + """
from dataclasses import replace
from datetime import UTC, datetime
from cortex_py.parts.context.branches.file import BranchFile, FileEntry, append, render
from cortex_py.core.records import Branch
now = datetime(2026, 1, 2, tzinfo=UTC)
branch = Branch(place[1], place[0], "Topic", None, None, "active", now, now)
for number in range(100):
    entry = FileEntry(f"{sys.argv[2]}-{number}", 1, now, None, "context", None, "text")
    with files.locked(*place):
        text = files.read(*place) or render(BranchFile(branch, 0, ()))
        files.write(*place, append(text, branch, number, [entry]))
"""
)

# Writes two texts in turn and says so.
WRITER = (
    START
    + """
while True:
    for letter in "ab":
        files.write(*place, letter * 3_000_000)
        print(letter, flush=True)
"""
)

# Dies when all is written but the name.
DYING = (
    START
    + """
Path.replace = lambda self, target: os.kill(os.getpid(), signal.SIGKILL)
files.write(*place, "new")
"""
)


@pytest.fixture
def files(home: Path) -> BranchFiles:
    return BranchFiles(home)


def start(script: str, home: Path, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen([*python_command(), "-c", script, str(home), *arguments], stdout=subprocess.PIPE, text=True)


def names(files: BranchFiles) -> set[str]:
    return {path.name for path in files.path(*PLACE).parent.iterdir()} - {f".{PLACE[1]}.lock"}


# Names


def test_a_file_lies_under_its_project(files: BranchFiles, home: Path) -> None:
    assert files.path("p", "b.c-d_e") == home / "memory" / "p" / "b.c-d_e.md"


@pytest.mark.parametrize(
    "name", ["", ".", "..", ".b", "a/b", "a\\b", "/a", "a\0", "a\n", "é", "-a", "a b", "C:a", "a" * 201]
)
def test_what_is_no_plain_name_is_refused(files: BranchFiles, home: Path, name: str) -> None:
    for place in ((name, "b"), ("p", name)):
        with pytest.raises(InvalidInput):
            files.path(*place)
        with pytest.raises(InvalidInput):
            files.write(*place, "text")
        with pytest.raises(InvalidInput):
            files.read(*place)
    assert not home.exists()


def test_the_longest_name_can_be_written(files: BranchFiles) -> None:
    files.write("p", "b" * 200, "text")
    assert files.read("p", "b" * 200) == "text"


# Reading and writing


def test_what_was_written_is_read_back(files: BranchFiles) -> None:
    assert files.read(*PLACE) is None
    assert files.stamp(*PLACE) is None
    for text in ("first\r\n\rsecond\n😀\u2028", "", "\ufeffthird"):
        stamp = files.write(*PLACE, text)
        assert files.read(*PLACE) == text
        assert files.stamp(*PLACE) == stamp
    assert names(files) == {f"{PLACE[1]}.md"}


def test_reading_makes_no_folder(files: BranchFiles, home: Path) -> None:
    assert files.read(*PLACE) is None
    assert not home.exists()


def test_only_the_owner_can_read(files: BranchFiles, home: Path) -> None:
    before = os.umask(0)
    try:
        files.write(*PLACE, "text")
    finally:
        os.umask(before)
    path = files.path(*PLACE)
    for file in (path, path.with_name(f".{PLACE[1]}.lock")):
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
    for folder in (path.parent, path.parent.parent, home):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_a_stamp_changes_with_every_touch(files: BranchFiles) -> None:
    path = files.path(*PLACE)
    stamps = [files.write(*PLACE, "text"), files.write(*PLACE, "text")]
    os.utime(path, ns=(1, 1))
    stamps.append(files.stamp(*PLACE) or "")
    path.write_text("texts")
    stamps.append(files.stamp(*PLACE) or "")
    assert len(set(stamps)) == 4


def test_what_is_not_utf8_is_refused_with_its_line(files: BranchFiles) -> None:
    files.write(*PLACE, "text")
    files.path(*PLACE).write_bytes(b"one\ntwo\n\xff\xfe")
    with pytest.raises(InvalidInput, match="line 3") as caught:
        files.read(*PLACE)
    assert caught.value.field == "branch_file"


def test_a_lone_surrogate_is_refused(files: BranchFiles) -> None:
    files.write(*PLACE, "old")
    with pytest.raises(InvalidInput):
        files.write(*PLACE, "\ud800")
    assert files.read(*PLACE) == "old"


def test_too_large_a_file_is_refused_both_ways(files: BranchFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(branch_store, "MAX_BYTES", 10)
    files.write(*PLACE, "0123456789")
    assert files.read(*PLACE) == "0123456789"
    with pytest.raises(InvalidInput):
        files.write(*PLACE, "0123456789a")
    with files.path(*PLACE).open("a") as file:
        file.write("a")
    with pytest.raises(InvalidInput):
        files.read(*PLACE)


# Links and other things that are not plain files


def test_a_link_is_not_read_and_is_replaced_rather_than_followed(files: BranchFiles, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere.txt"
    elsewhere.write_text("private")
    files.write(*PLACE, "text")
    files.path(*PLACE).unlink()
    files.path(*PLACE).symlink_to(elsewhere)
    with pytest.raises(StoreDenied):
        files.read(*PLACE)
    files.write(*PLACE, "text")
    assert elsewhere.read_text() == "private"
    assert files.read(*PLACE) == "text" and not files.path(*PLACE).is_symlink()


@pytest.mark.parametrize("linked", ["memory", f"memory/{PLACE[0]}"])
def test_a_linked_folder_is_refused(files: BranchFiles, home: Path, tmp_path: Path, linked: str) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (home / linked).parent.mkdir(parents=True)
    (home / linked).symlink_to(elsewhere)
    with pytest.raises(StoreDenied):
        files.write(*PLACE, "text")
    with pytest.raises(StoreDenied):
        files.read(*PLACE)
    assert not list(elsewhere.rglob("*.md"))


def test_a_linked_home_is_fine(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    BranchFiles(tmp_path / "link").write(*PLACE, "text")
    assert BranchFiles(tmp_path / "real").read(*PLACE) == "text"


def test_a_link_under_the_temporary_name_is_not_followed(files: BranchFiles, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere.txt"
    elsewhere.write_text("private")
    files.write(*PLACE, "old")
    files.path(*PLACE).with_name(f".{PLACE[1]}.tmp").symlink_to(elsewhere)
    files.write(*PLACE, "new")
    assert elsewhere.read_text() == "private"
    assert files.read(*PLACE) == "new"


def test_a_pipe_is_refused_and_not_waited_for(files: BranchFiles) -> None:
    files.write(*PLACE, "text")
    files.path(*PLACE).unlink()
    os.mkfifo(files.path(*PLACE))
    with pytest.raises(StoreDenied):
        files.read(*PLACE)


# Faults of the system


def test_a_home_that_is_a_file_is_a_storage_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    files = BranchFiles(tmp_path / "file")
    for attempt in (lambda: files.write(*PLACE, "text"), lambda: files.read(*PLACE), lambda: files.stamp(*PLACE)):
        with pytest.raises(StorageError):
            attempt()


def test_a_folder_in_the_way_is_a_storage_error(files: BranchFiles) -> None:
    files.path(*PLACE).mkdir(parents=True)
    with pytest.raises(StorageError):
        files.write(*PLACE, "text")
    with pytest.raises(StorageError):
        files.read(*PLACE)
    assert names(files) == {f"{PLACE[1]}.md"}


@pytest.mark.parametrize(
    ("number", "kind"),
    [
        (errno.ENOSPC, StoreFull), (errno.EDQUOT, StoreFull), (errno.EROFS, StoreReadOnly), (errno.EACCES, StoreDenied),
        (errno.EPERM, StoreDenied), (errno.EIO, StorageError),
    ],
)  # fmt: skip
def test_a_failed_write_keeps_the_old_file_and_is_told_by_its_kind(
    files: BranchFiles, monkeypatch: pytest.MonkeyPatch, number: int, kind: type[StorageError]
) -> None:
    files.write(*PLACE, "old")

    def fail(path: Path, target: Path) -> None:
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", fail)
        with pytest.raises(StorageError) as caught:
            files.write(*PLACE, "new")
    assert type(caught.value) is kind
    assert files.read(*PLACE) == "old"
    assert names(files) == {f"{PLACE[1]}.md"}


def test_a_write_that_runs_out_of_room_keeps_the_old_file(files: BranchFiles, home: Path) -> None:
    files.write(*PLACE, "old")
    limit = "import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
    script = START + limit + "from cortex_py.core.errors import StorageError\n"
    script += "try:\n    files.write(*place, 'x' * 5000)\nexcept StorageError:\n    print('told')\n"
    process = start(script, home)
    assert process.communicate(timeout=60)[0] == "told\n"
    assert files.read(*PLACE) == "old"
    assert names(files) == {f"{PLACE[1]}.md"}


# Locks


def test_a_thread_may_enter_again_and_another_may_not(files: BranchFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(branch_store, "WAIT_SECONDS", 0.05)
    caught: list[BaseException] = []

    def enter() -> None:
        try:
            with files.locked(*PLACE):
                pass
        except StoreBusy as error:
            caught.append(error)

    with files.locked(*PLACE):
        with files.locked(*PLACE):
            files.write(*PLACE, "text")
        with files.locked(PLACE[0], "other"):
            pass
        thread = threading.Thread(target=enter)
        thread.start()
        thread.join()
    assert len(caught) == 1
    enter()
    assert len(caught) == 1


def test_the_lock_is_given_back_after_an_error(files: BranchFiles, home: Path) -> None:
    with pytest.raises(ZeroDivisionError), files.locked(*PLACE):
        raise ZeroDivisionError
    process = start(START + "files.write(*place, 'text')", home)
    assert process.communicate(timeout=60) and process.returncode == 0


def test_threads_lose_nothing(files: BranchFiles, home: Path) -> None:
    def add(own: BranchFiles) -> None:
        for _ in range(25):
            with own.locked(*PLACE):
                own.write(*PLACE, (own.read(*PLACE) or "") + "x")

    threads = [threading.Thread(target=add, args=(own,)) for own in (files, files, BranchFiles(home))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert files.read(*PLACE) == "x" * 75


def test_two_processes_lose_nothing(files: BranchFiles, home: Path) -> None:
    from cortex_py.parts.context.branches.file import parse

    processes = [start(ADDER, home, name) for name in ("a", "b")]
    for process in processes:
        process.communicate(timeout=60)
    assert [process.returncode for process in processes] == [0, 0]
    parsed = parse(files.read(*PLACE) or "")
    assert sorted(entry.id for entry in parsed.entries) == sorted(
        f"{name}-{number}" for name in ("a", "b") for number in range(100)
    )
    assert parsed.count == 200 and not parsed.loose


# Killed writers


def test_a_killed_writer_leaves_the_old_or_the_new_file(files: BranchFiles, home: Path) -> None:
    moments = random.Random(17)
    for _ in range(4):
        process = start(WRITER, home)
        assert process.stdout is not None
        for _ in range(moments.randrange(1, 12)):
            process.stdout.readline()
        # Every reading beside the writer is whole, too.
        assert files.read(*PLACE) in ("a" * 3_000_000, "b" * 3_000_000)
        process.kill()
        process.communicate(timeout=60)
        assert files.read(*PLACE) in ("a" * 3_000_000, "b" * 3_000_000)
    files.write(*PLACE, "new")
    assert names(files) == {f"{PLACE[1]}.md"}


def test_what_a_killed_writer_left_is_cleared_away(files: BranchFiles, home: Path) -> None:
    files.write(*PLACE, "old")
    process = start(DYING, home)
    process.communicate(timeout=60)
    assert process.returncode == -signal.SIGKILL
    assert names(files) == {f"{PLACE[1]}.md", f".{PLACE[1]}.tmp"}
    assert files.read(*PLACE) == "old"
    with files.locked(*PLACE):
        assert names(files) == {f"{PLACE[1]}.md"}
