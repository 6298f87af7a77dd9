"""Snapshot archives: what goes in comes out, other tools read it, every change is seen, no fault leaves half a file."""

from __future__ import annotations

import errno
import gzip
import io
import math
import os
import random
import shutil
import stat
import subprocess
import tarfile
import threading
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cortex_py.core.errors import (
    BackupCorrupt,
    BackupError,
    InvalidInput,
    LimitExceeded,
    StorageError,
    StoreDenied,
    StoreFull,
)
from cortex_py.parts.backup.snapshots.archive import (
    ArchiveLimits,
    ArchivePart,
    read_manifest,
    read_parts,
    verify_archive,
    write_archive,
)

FACTS = {"project": "Äpfel", "counts": {"memory": 2}, "note": None, "ratio": 0.5}
TRAILER = 74


def _bytes(size: int, seed: int = 1) -> bytes:
    return random.Random(seed).randbytes(size)


def _parts() -> list[ArchivePart]:
    """Some of everything: both kinds of members, an empty part, sizes around a block."""
    return [
        ArchivePart("documents/000001.jsonl", b'{"data":{},"key":"a","kind":"memory"}\n' * 40),
        ArchivePart("vectors/000001.bin", _bytes(1500), compress=False),
        ArchivePart("documents/000002.jsonl", b""),
        ArchivePart("files/a/b.md", b"x" * 511),
        ArchivePart("files/a/c.md", b"x" * 512),
        ArchivePart("files/d_1-2", b"x" * 513),
    ]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    folder = tmp_path / "snapshots"
    folder.mkdir()
    return folder / "one.tar.gz"


def _names(path: Path) -> list[str]:
    return sorted(file.name for file in path.parent.iterdir())


# -- Round trips ---------------------------------------------------------------------------------


def test_parts_and_facts_come_back(path: Path) -> None:
    manifest = write_archive(path, _parts(), FACTS)
    assert list(read_parts(path)) == _parts()
    assert manifest == verify_archive(path) == read_manifest(path)
    assert manifest.facts == FACTS
    assert [(part.name, part.size) for part in manifest.parts] == [(part.name, len(part.data)) for part in _parts()]
    assert manifest.size_bytes == path.stat().st_size
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@settings(deadline=None)
@given(st.lists(st.tuples(st.binary(max_size=1500), st.integers(1, 40), st.booleans()), max_size=8))
def test_any_content_comes_back(tmp_path_factory: pytest.TempPathFactory, made: list[tuple[bytes, int, bool]]) -> None:
    path = tmp_path_factory.mktemp("any") / "one.tar.gz"
    parts = [ArchivePart(f"documents/{n:06}.jsonl", data * times, how) for n, (data, times, how) in enumerate(made, 1)]
    manifest = write_archive(path, iter(parts), {})
    assert list(read_parts(path)) == parts
    assert verify_archive(path) == manifest


def test_parts_stay_in_order_however_long_each_takes_to_compress(path: Path) -> None:
    sizes = [400_000, 10, 300_000, 0, 200_000, 5, 5, 100_000, 1, 2, 3]
    parts = [ArchivePart(f"documents/{n:06}.jsonl", _bytes(size, n)) for n, size in enumerate(sizes, 1)]
    write_archive(path, parts, {})
    assert list(read_parts(path)) == parts


def test_facts_known_only_at_the_end(path: Path) -> None:
    seen: list[str] = []

    def produced() -> Iterator[ArchivePart]:
        for part in _parts():
            seen.append(part.name)
            yield part

    assert write_archive(path, produced(), lambda: {"parts": len(seen)}).facts == {"parts": 6}
    assert read_manifest(path).facts == {"parts": 6}


def test_the_same_parts_and_facts_give_the_same_bytes(path: Path) -> None:
    first = write_archive(path, _parts(), FACTS)
    data = path.read_bytes()
    write_archive(path, _parts(), dict(reversed(FACTS.items())), workers=1)
    assert path.read_bytes() == data
    assert write_archive(path, _parts(), {}).content_sha256 == first.content_sha256
    assert write_archive(path, _parts()[:-1], FACTS).content_sha256 != first.content_sha256


def test_parts_that_do_not_compress_are_stored(path: Path) -> None:
    text = b"the same words again and again " * 1000
    write_archive(path, [ArchivePart("files/a", text, compress=False)], {})
    assert text in path.read_bytes()
    assert write_archive(path, [ArchivePart("files/a", text)], {}).size_bytes < 2000


def test_what_shrinks_to_almost_nothing_can_still_be_read(path: Path) -> None:
    """A reader refuses what grows beyond measure, so a writer must not write it."""
    parts = [ArchivePart(f"documents/{n:06}.jsonl", b"a" * 1_000_000) for n in (1, 2)]
    write_archive(path, parts, {"description": "a" * 1_000_000})
    assert list(read_parts(path)) == parts
    assert len(str(read_manifest(path).facts["description"])) == 1_000_000


# -- Other readers -------------------------------------------------------------------------------


def test_python_unpacks_it(path: Path) -> None:
    write_archive(path, _parts(), FACTS)
    with tarfile.open(path, "r:gz") as tar:
        members = tar.getmembers()
        held = [(member.name, tar.extractfile(member).read()) for member in members]  # type: ignore[union-attr]
    assert held[:-1] == [(part.name, part.data) for part in _parts()]
    assert held[-1][0] == "manifest.json"
    assert {(m.mode, m.uid, m.gid, m.mtime, m.isreg()) for m in members} == {(0o600, 0, 0, 0, True)}
    # Each with its header, in whole blocks, and nothing after the two blocks that end a tar file.
    blocks = sum(1 + -(-len(data) // 512) for _, data in held) + 2
    assert len(gzip.decompress(path.read_bytes())) == blocks * 512


@pytest.mark.skipif(not (shutil.which("gzip") and shutil.which("tar")), reason="needs gzip and tar")
def test_the_usual_programs_unpack_it(path: Path, tmp_path: Path) -> None:
    write_archive(path, _parts(), FACTS)
    checked = subprocess.run(["gzip", "-t", str(path)], capture_output=True, check=False)
    assert (checked.returncode, checked.stderr) == (0, b"")
    target = tmp_path / "unpacked"
    target.mkdir()
    unpacked = subprocess.run(["tar", "xzf", str(path), "-C", str(target)], capture_output=True, check=False)
    assert (unpacked.returncode, unpacked.stderr) == (0, b"")
    files = {str(file.relative_to(target)): file for file in target.rglob("*") if file.is_file()}
    manifest = files.pop("manifest.json").read_text("utf-8")
    assert {name: file.read_bytes() for name, file in files.items()} == {part.name: part.data for part in _parts()}
    assert '"project":"Äpfel"' in manifest


# -- Every change is seen ------------------------------------------------------------------------


def _refused(path: Path, data: bytes, kind: type[BackupError] = BackupCorrupt) -> None:
    path.write_bytes(data)
    with pytest.raises(kind):
        verify_archive(path)


def test_every_bit_of_the_trailer_counts_for_the_cheap_reading_too(path: Path) -> None:
    write_archive(path, _parts(), FACTS)
    data = path.read_bytes()
    for at in range(len(data) - TRAILER, len(data)):
        for bit in range(8):
            path.write_bytes(data[:at] + bytes([data[at] ^ 1 << bit]) + data[at + 1 :])
            with pytest.raises(BackupCorrupt):
                read_manifest(path)


def test_a_cut_at_any_byte_is_seen(path: Path) -> None:
    write_archive(path, _parts()[2:3], {})
    data = path.read_bytes()
    for at in range(len(data)):
        _refused(path, data[:at])
        with pytest.raises(BackupCorrupt):
            read_manifest(path)


def test_the_cheap_reading_does_not_read_the_parts(path: Path) -> None:
    parts = [ArchivePart("vectors/000001.bin", _bytes(300_000), compress=False)]
    manifest = write_archive(path, [ArchivePart("documents/000001.jsonl", b"x"), *parts], FACTS)
    data = path.read_bytes()
    path.write_bytes(bytes(200_000) + data[200_000:])
    assert read_manifest(path) == manifest
    with pytest.raises(BackupCorrupt):
        verify_archive(path)


def test_parts_before_a_fault_are_what_was_written(path: Path) -> None:
    write_archive(path, _parts(), FACTS)
    data = path.read_bytes()
    given_out: set[int] = set()
    for at in range(5, len(data), 61):
        path.write_bytes(data[:at] + bytes([data[at] ^ 0x40]) + data[at + 1 :])
        parts: list[ArchivePart] = []
        with pytest.raises(BackupCorrupt):
            for part in read_parts(path):
                parts.append(part)  # noqa: PERF402
        assert parts == _parts()[: len(parts)]
        given_out.add(len(parts))
    assert given_out >= {0, 1, 2, 3}


# -- What cannot be written ----------------------------------------------------------------------

DOCUMENT = ArchivePart("documents/000001.jsonl", b"{}\n")


@pytest.mark.parametrize(
    ("parts", "told"),
    [
        ([ArchivePart("../x", b"")], "valid part name"),
        ([ArchivePart("manifest.json", b"")], "valid part name"),
        ([DOCUMENT, DOCUMENT], "twice or out of order"),
        ([ArchivePart("documents/000002.jsonl", b""), DOCUMENT], "twice or out of order"),
        ([ArchivePart("vectors/000001.bin", b"")], "before its documents"),
        ([ArchivePart("files/A", b""), ArchivePart("files/a", b"")], "collides with"),
        ([ArchivePart("files/a", b""), ArchivePart("files/a/b", b"")], "collides with"),
    ],
)
def test_names_that_could_not_be_read_are_refused(path: Path, parts: list[ArchivePart], told: str) -> None:
    with pytest.raises(InvalidInput, match=told) as caught:
        write_archive(path, parts, {})
    assert caught.value.field == "parts"
    assert _names(path) == []


def _nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    "facts",
    [
        {"a": {1}},
        {"a": b"bytes"},
        {"a": math.nan},
        {"a": -math.inf},
        {"a": "\ud800"},
        {"1": 0, 1: 0},
        ["not", "an", "object"],
        {"a": _nested(100_000)},
    ],
    ids=["set", "bytes", "nan", "infinity", "surrogate", "doubled", "list", "deep"],
)
def test_facts_that_could_not_be_read_are_refused(path: Path, facts: Any) -> None:
    with pytest.raises(InvalidInput) as caught:
        write_archive(path, [DOCUMENT], facts)
    assert caught.value.field == "facts"
    assert _names(path) == []


@pytest.mark.parametrize(
    "limits",
    [
        ArchiveLimits(part_bytes=2),
        ArchiveLimits(parts=0),
        ArchiveLimits(total_bytes=2),
        ArchiveLimits(manifest_bytes=100),
    ],
    ids=["part", "parts", "total", "manifest"],
)
def test_the_writer_keeps_to_the_limits_of_the_reader(path: Path, limits: ArchiveLimits) -> None:
    with pytest.raises(LimitExceeded):
        write_archive(path, [DOCUMENT], {}, limits)
    assert _names(path) == []
    write_archive(path, [DOCUMENT], {})
    for read in (verify_archive, read_manifest, lambda *given: list(read_parts(*given))):
        with pytest.raises(BackupCorrupt, match="exceeds a limit"):
            read(path, limits)


# -- Faults in the middle ------------------------------------------------------------------------


class Crash(Exception):
    pass


def _writers() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name.startswith("cortex-archive")]


@pytest.mark.parametrize("before", [None, b"what was there"], ids=["new", "replacing"])
def test_a_producer_that_fails_leaves_nothing(path: Path, before: bytes | None) -> None:
    if before is not None:
        path.write_bytes(before)

    def crashing(after: int) -> Iterator[ArchivePart]:
        yield from _parts()[:after]
        raise Crash

    for after in range(len(_parts()) + 1):
        with pytest.raises(Crash):
            write_archive(path, crashing(after), {})
        assert (path.read_bytes() if path.exists() else None) == before
        assert _names(path) == ([path.name] if before else [])
        assert not _writers()


def test_facts_that_fail_leave_nothing(path: Path) -> None:
    def facts() -> dict[str, Any]:
        raise Crash

    with pytest.raises(Crash):
        write_archive(path, _parts(), facts)
    assert _names(path) == []


def _failing_at(monkeypatch: pytest.MonkeyPatch, number: int, error: BaseException) -> None:
    """Drafts whose write of this number fails, counted from 0."""

    class Failing(io.BufferedWriter):
        done = 0

        def write(self, data: bytes, /) -> int:  # type: ignore[override]
            self.done += 1
            if self.done > number:
                raise error
            return super().write(data)

    def opened(descriptor: int, mode: str) -> BinaryIO:
        return Failing(io.FileIO(descriptor, mode))

    monkeypatch.setattr(os, "fdopen", opened)


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (OSError(errno.ENOSPC, "full"), StoreFull),
        (OSError(errno.EIO, "broken"), StorageError),
        (KeyboardInterrupt(), KeyboardInterrupt),
    ],
    ids=["full", "broken", "interrupted"],
)
def test_a_fault_at_any_write_leaves_the_old_file(
    path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException, told: type[BaseException]
) -> None:
    write_archive(path, _parts(), FACTS)
    before = path.read_bytes()
    writes = len(_parts()) + 2
    for number in range(writes):
        with monkeypatch.context() as patch:
            _failing_at(patch, number, error)
            with pytest.raises(told):
                write_archive(path, _parts(), {})
        assert path.read_bytes() == before
        assert _names(path) == [path.name]
        assert not _writers()
    with monkeypatch.context() as patch:
        _failing_at(patch, writes, error)
        write_archive(path, _parts(), {})
    assert verify_archive(path).facts == {}


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_fault_at_the_last_step_leaves_nothing(path: Path, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    def fail(*_: object) -> None:
        raise OSError(errno.EACCES, "no")

    with monkeypatch.context() as patch:
        patch.setattr(*((os, "fsync") if step == "fsync" else (Path, "replace")), fail)
        with pytest.raises(StoreDenied):
            write_archive(path, _parts(), {})
    assert _names(path) == []


def test_a_missing_file_and_a_missing_folder_are_told(path: Path) -> None:
    reading: list[Callable[[Path], object]] = [verify_archive, read_manifest, lambda at: list(read_parts(at))]
    for read in reading:
        with pytest.raises(BackupError, match="no file"):
            read(path)
        with pytest.raises(StorageError):
            read(path.parent)
    with pytest.raises(StorageError):
        write_archive(path / "none" / "one.tar.gz", [], {})


def test_a_disk_that_fails_while_reading_is_told(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_archive(path, _parts(), FACTS)

    class Failing(io.FileIO):
        left = 0

        def read(self, size: int | None = -1, /) -> bytes:
            self.left -= 1
            if self.left < 0:
                raise OSError(errno.EIO, "broken")
            return super().read(size)

    for reads in range(3):
        monkeypatch.setattr(Failing, "left", reads)
        monkeypatch.setattr("cortex_py.core.files.open_regular", lambda path: Failing(path, "r"))
        with pytest.raises(StorageError, match="broken"):
            verify_archive(path)


# -- Memory --------------------------------------------------------------------------------------


def test_a_long_stream_takes_little_memory(path: Path) -> None:
    size, count = 500_000, 60

    def produced() -> Iterator[ArchivePart]:
        for number in range(1, count + 1):
            yield ArchivePart(f"documents/{number:06}.jsonl", _bytes(size, number), compress=False)

    tracemalloc.start()
    try:
        write_archive(path, produced(), {}, workers=2)
        written = tracemalloc.get_traced_memory()[1]
        tracemalloc.reset_peak()
        assert len(verify_archive(path).parts) == count
        read = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    # Three parts ahead, one that comes, and two that are being joined; all of them would be sixty.
    assert written < 16 * size
    assert read < 4 * size
