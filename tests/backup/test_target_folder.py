"""A folder as a target: whole files only, others' files left alone, and faults told with what to do."""

from __future__ import annotations

import errno
import os
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from cortex_py.core.errors import NetworkError
from cortex_py.parts.backup.targets import folder as target_folder
from cortex_py.parts.backup.targets.addresses import open_target
from cortex_py.parts.backup.targets.folder import FolderTarget
from cortex_py.parts.backup.targets.target import StoredObject

RACER = """
import sys, pathlib
from cortex_py.parts.backup.targets import folder as target_folder
from cortex_py.parts.backup.targets.folder import FolderTarget
import os
if sys.argv[2] == "claims":
    def no_link(*_):
        raise OSError(1, "not here")
    os.link = no_link
target = FolderTarget(pathlib.Path(sys.argv[1]))
print("ready", flush=True)
sys.stdin.readline()
won = []
for number in range(50):
    try:
        won.append(target.create(f"claims/{number}", sys.argv[3].encode() * 5000))
    except target_folder.NetworkError:
        # Another process holds the claim at this moment.
        won.append(False)
print("".join("1" if one else "0" for one in won))
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "target"


@pytest.fixture
def target(root: Path) -> FolderTarget:
    return FolderTarget(root)


@pytest.mark.parametrize("way", ["links", "claims"])
def test_of_two_processes_that_create_one_wins_each_name(root: Path, way: str) -> None:
    racers = [
        subprocess.Popen(
            [sys.executable, "-c", RACER, root, way, letter], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for letter in "ab"
    ]
    for racer in racers:
        assert racer.stdout is not None
        assert racer.stdout.readline() == "ready\n"
    for racer in racers:
        assert racer.stdin is not None
        racer.stdin.write("go\n")
        racer.stdin.flush()
    won = [racer.communicate(timeout=60)[0].strip() for racer in racers]
    assert [len(one) for one in won] == [50, 50]
    target = FolderTarget(root)
    for number, (first, second) in enumerate(zip(*won, strict=True)):
        assert {first, second} == {"0", "1"}
        assert target.get(f"claims/{number}", 5000) == (b"a" if first == "1" else b"b") * 5000


def test_a_file_appears_only_when_it_is_whole(
    root: Path, target: FolderTarget, monkeypatch: pytest.MonkeyPatch
) -> None:
    target.put("packs/a", b"old")
    seen: list[list[StoredObject]] = []
    real = os.fsync

    def looking(descriptor: int) -> None:
        seen.append(list(target.list("")))
        real(descriptor)

    monkeypatch.setattr(os, "fsync", looking)
    target.put("packs/a", b"newer")
    assert seen[0] == [StoredObject("packs/a", 3)]
    seen.clear()
    target.create("packs/b", b"1")
    assert seen[0] == [StoredObject("packs/a", 5)]


def test_nobody_else_can_read_it(root: Path, target: FolderTarget) -> None:
    before = os.umask(0)
    try:
        target.put("packs/ab/a", b"a")
        target.create("packs/ab/b", b"b")
    finally:
        os.umask(before)
    modes = {path.relative_to(root).as_posix(): stat.S_IMODE(path.stat().st_mode) for path in root.rglob("*")}
    assert modes == {"packs": 0o700, "packs/ab": 0o700, "packs/ab/a": 0o600, "packs/ab/b": 0o600}
    assert stat.S_IMODE(root.stat().st_mode) == 0o700


def test_files_of_others_are_neither_listed_nor_touched(root: Path, target: FolderTarget) -> None:
    target.put("packs/a.enc", b"a")
    foreign = [
        "packs/a (conflicted copy).enc",
        "packs/a.sync-conflict-20260101-000000-7654321.enc",
        "packs/.syncthing.b.enc.tmp",
        ".stfolder/marker",
        ".stversions/packs/a.enc",
        "Notes.txt",
        ".hidden.part",
    ]
    for name in foreign:
        (root / name).parent.mkdir(exist_ok=True, parents=True)
        (root / name).write_bytes(b"x")
        os.utime(root / name, (0, 0))
    assert list(target.list("")) == [StoredObject("packs/a.enc", 1)]
    assert all((root / name).exists() for name in foreign)


def test_drafts_of_killed_processes_go_after_a_day(
    root: Path, target: FolderTarget, monkeypatch: pytest.MonkeyPatch
) -> None:
    target.put("packs/a", b"a")

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", killed)
        patch.setattr(Path, "unlink", lambda *_, **__: None)
        with pytest.raises(KeyboardInterrupt):
            target.put("packs/b", b"b")
        with pytest.raises(KeyboardInterrupt):
            target.create("packs/c", b"c")
    drafts = [path for path in (root / "packs").iterdir() if path.name != "a"]
    assert len(drafts) == 2
    assert list(target.list("")) == [StoredObject("packs/a", 1)]
    assert all(draft.exists() for draft in drafts)
    for draft in drafts:
        os.utime(draft, (time.time() - 90_000,) * 2)
    assert list(target.list("")) == [StoredObject("packs/a", 1)]
    assert not any(draft.exists() for draft in drafts)


def test_links_are_not_followed(root: Path, target: FolderTarget, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_bytes(b"s")
    target.put("a", b"a")
    (root / "folder").symlink_to(outside)
    (root / "file").symlink_to(outside / "secret")
    assert [one.name for one in target.list("")] == ["a"]
    assert list(target.list("folder/")) == []
    for name in ("folder/secret", "file"):
        assert target.get(name, 10) is None
        target.delete(name)
        for write in (target.put, target.create):
            with pytest.raises(NetworkError, match="Cortex did not create"):
                write(name, b"overwritten")
    assert (outside / "secret").read_bytes() == b"s"
    assert [path.name for path in outside.iterdir()] == ["secret"]
    assert (root / "file").is_symlink()


def test_the_root_itself_may_be_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    target = FolderTarget(tmp_path / "link")
    target.put("a", b"1")
    assert (tmp_path / "real" / "a").read_bytes() == b"1"


def test_a_pipe_is_no_object_and_is_not_waited_for(root: Path, target: FolderTarget) -> None:
    target.put("a", b"1")
    os.mkfifo(root / "pipe")
    assert target.get("pipe", 10) is None
    assert [one.name for one in target.list("")] == ["a"]


def test_a_file_that_grows_while_it_is_read_stays_within_the_limit(
    root: Path, target: FolderTarget, monkeypatch: pytest.MonkeyPatch
) -> None:
    target.put("a", b"123")
    real = os.fstat

    def growing(descriptor: int) -> os.stat_result:
        found = real(descriptor)
        (root / "a").write_bytes(b"x" * 100_000)
        return found

    monkeypatch.setattr(target_folder.os, "fstat", growing)
    with pytest.raises(NetworkError, match="more than 10 bytes"):
        target.get("a", 10)


def test_a_drive_that_is_not_mounted_is_told_and_nothing_is_made(tmp_path: Path) -> None:
    target = open_target(str(tmp_path / "drive" / "cortex"))
    uses: list[Any] = [
        lambda: target.put("a", b""),
        lambda: target.create("a", b""),
        lambda: target.get("a", 1),
        lambda: target.list(""),
        lambda: target.delete("a"),
    ]
    for use in uses:
        with pytest.raises(NetworkError, match="is it mounted"):
            use()
    assert not (tmp_path / "drive").exists()


def test_a_file_in_place_of_the_folder_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"mine")
    target = FolderTarget(tmp_path / "file")
    for use in (lambda: target.put("a", b""), lambda: target.list("")):
        with pytest.raises(NetworkError, match="Cortex did not create"):
            use()
    assert (tmp_path / "file").read_bytes() == b"mine"


@pytest.mark.parametrize(
    ("number", "said"),
    [
        (errno.ENOSPC, "is full"),
        (errno.EDQUOT, "is full"),
        (errno.EROFS, "can only be read"),
        (errno.EACCES, "may not be accessed"),
        (errno.EIO, "is it mounted"),
        (errno.ESTALE, "is it mounted"),
        (errno.EMFILE, "Too many open files"),
    ],
)
def test_what_the_system_refuses_is_told_and_changes_nothing(
    root: Path, target: FolderTarget, monkeypatch: pytest.MonkeyPatch, number: int, said: str
) -> None:
    target.put("packs/a", b"old")

    def refusing(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", refusing)
        for write in (target.put, target.create):
            with pytest.raises(NetworkError, match=said) as caught:
                write("packs/a" if write == target.put else "packs/b", b"new")
            assert str(root) in caught.value.message
            assert caught.value.remedy
    assert [path.name for path in (root / "packs").iterdir()] == ["a"]
    assert target.get("packs/a", 3) == b"old"
