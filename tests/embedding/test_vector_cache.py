"""The cache of vectors: both tiers bounded and forgetful in the right order, no damage ever believed."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import textwrap
from collections import OrderedDict
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path

import apsw
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from cortex_py.core.embedding import sqlite_vectors
from cortex_py.core.embedding.cache import VectorCache, cache_key
from cortex_py.core.embedding.sqlite_vectors import SqliteVectors

from forking import python_command

ROOM = 10_000_000


def _key(number: int) -> bytes:
    return sha256(str(number).encode()).digest()


def _vector(number: int, dimensions: int = 4) -> NDArray[np.float32]:
    return np.full(dimensions, number, np.float32)


def _entries(numbers: range, dimensions: int = 4) -> dict[bytes, NDArray[np.float32]]:
    return {_key(number): _vector(number, dimensions) for number in numbers}


def _numbers(found: dict[bytes, NDArray[np.float32]]) -> set[int]:
    """Which entries were found; each must be the right one."""
    by_key = {key: int(vector[0]) for key, vector in found.items()}
    assert all(_key(number) == key for key, number in by_key.items())
    return set(by_key.values())


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "home" / "vectors.db"


@pytest.fixture
def open_file(path: Path) -> Iterator[Callable[..., SqliteVectors]]:
    opened: list[SqliteVectors] = []

    def make(most_bytes: int = ROOM, now: Callable[[], float] = lambda: 1000.0) -> SqliteVectors:
        opened.append(SqliteVectors(path, most_bytes, now))
        return opened[-1]

    yield make
    for one in opened:
        one.close()


def _sql(path: Path, statement: str, *values: object) -> list[tuple[object, ...]]:
    connection = apsw.Connection(str(path))
    try:
        return connection.execute(statement, values).fetchall()  # type: ignore[arg-type]
    finally:
        connection.close()


# Keys


_PARTS = st.text(st.sampled_from("ab01\x00\x01é"), max_size=4)


@settings(deadline=None)
@given(st.tuples(_PARTS, st.booleans(), _PARTS), st.tuples(_PARTS, st.booleans(), _PARTS))
def test_keys_are_equal_only_if_model_normalisation_and_text_are(
    one: tuple[str, bool, str], other: tuple[str, bool, str]
) -> None:
    assert (cache_key(*one) == cache_key(*other)) == (one == other)


# Memory


@settings(deadline=None)
@given(st.lists(st.tuples(st.booleans(), st.integers(0, 7)), max_size=60))
def test_memory_behaves_as_a_list_of_the_last_four(steps: list[tuple[bool, int]]) -> None:
    cache = VectorCache(4 * 266)
    model: OrderedDict[int, None] = OrderedDict()
    for put, number in steps:
        if put:
            cache.put_many(_entries(range(number, number + 1)))
            model[number] = None
            model.move_to_end(number)
            while len(model) > 4:
                model.popitem(last=False)
        else:
            assert _numbers(cache.get_many([_key(number)])) == ({number} if number in model else set())
            if number in model:
                model.move_to_end(number)
        assert cache._bytes == 266 * len(model)
        assert list(cache._recent) == [_key(number) for number in model]


def test_memory_counts_bytes_not_entries() -> None:
    cache = VectorCache(10_000)
    cache.put_many(_entries(range(30)))
    assert cache.count() == 30
    cache.put_many(_entries(range(100, 101), dimensions=2000))
    assert _key(100) in cache.get_many([_key(100)])
    assert cache.count() < 9
    assert cache._bytes <= 10_000


def test_what_is_larger_than_the_memory_is_not_kept_there() -> None:
    cache = VectorCache(500)
    cache.put_many(_entries(range(1), dimensions=1000))
    assert cache.get_many([_key(0)]) == {}
    assert (cache.count(), cache._bytes) == (0, 0)


def test_nobody_can_change_what_the_next_caller_gets(open_file: Callable[..., SqliteVectors]) -> None:
    kept = open_file()
    kept.put_many(_entries(range(1, 2)))
    cache = VectorCache(ROOM, kept)
    cache.put_many(_entries(range(1)))
    for vector in cache.get_many([_key(0), _key(1)]).values():
        with pytest.raises(ValueError, match="read-only"):
            vector[0] = 99


# Both tiers


def test_the_file_is_asked_for_what_memory_lacks(open_file: Callable[..., SqliteVectors]) -> None:
    first = VectorCache(2 * 266, open_file())
    first.put_many(_entries(range(9)))
    assert len(first._recent) == 2
    assert _numbers(first.get_many([_key(n) for n in range(9)])) == set(range(9))
    assert first.count() == 9
    first.close()
    second = VectorCache(ROOM, open_file())
    assert _numbers(second.get_many([_key(4)])) == {4}
    assert list(second._recent) == [_key(4)]


def test_without_a_usable_file_memory_serves_alone(path: Path) -> None:
    path.mkdir(parents=True)
    cache = VectorCache(ROOM, SqliteVectors(path, ROOM))
    cache.put_many(_entries(range(3)))
    assert _numbers(cache.get_many([_key(n) for n in range(5)])) == {0, 1, 2}
    assert cache.count() == 3
    cache.close()
    assert list(path.iterdir()) == []


# The file


def test_vectors_outlive_the_process_bit_by_bit(open_file: Callable[..., SqliteVectors]) -> None:
    exact = np.random.default_rng(1).standard_normal(384).astype(np.float32)
    first = open_file()
    first.put_many({b"k" * 32: exact})
    first.close()
    found = open_file().get_many([b"k" * 32])[b"k" * 32]
    assert found.dtype == np.float32
    assert found.tobytes() == exact.tobytes()


def test_more_keys_than_one_statement_takes(open_file: Callable[..., SqliteVectors]) -> None:
    kept = open_file()
    kept.put_many(_entries(range(1000)))
    assert _numbers(kept.get_many([_key(n) for n in range(500, 1500)])) == set(range(500, 1000))
    assert kept.get_many([]) == {}
    assert kept.count() == 1000


def test_nothing_is_made_before_it_is_used(path: Path, open_file: Callable[..., SqliteVectors]) -> None:
    open_file()
    assert not path.parent.exists()


def test_only_the_owner_can_read_the_files(path: Path, open_file: Callable[..., SqliteVectors]) -> None:
    mask = os.umask(0)
    try:
        open_file().put_many(_entries(range(1)))
    finally:
        os.umask(mask)
    assert {file.name: stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()} == {
        "vectors.db": 0o600,
        "vectors.db-wal": 0o600,
        "vectors.db-shm": 0o600,
    }
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


@pytest.mark.parametrize(("dimensions", "entries"), [(384, 3000), (1536, 700), (8, 20_000)])
def test_the_file_stays_within_its_bytes(
    path: Path, open_file: Callable[..., SqliteVectors], dimensions: int, entries: int
) -> None:
    kept = open_file(2_000_000)
    for low in range(0, entries, 100):
        kept.put_many(_entries(range(low, low + 100), dimensions))
    count = kept.count()
    kept.close()
    assert path.stat().st_size <= 2_000_000 + 100 * (dimensions * 4 + 4096)
    # Full, not emptied.
    assert count * dimensions * 4 > (800_000 if dimensions > 8 else 100_000)


def test_entries_of_all_sizes_count_what_they_take(path: Path, open_file: Callable[..., SqliteVectors]) -> None:
    kept = open_file(1_000_000)
    for low in range(0, 300, 10):
        kept.put_many(_entries(range(low, low + 10), 1536))
        kept.put_many(_entries(range(1000 + low, 1000 + low + 10), 8))
    kept.close()
    assert path.stat().st_size <= 1_200_000


def test_the_file_forgets_what_was_not_asked_for_the_longest(open_file: Callable[..., SqliteVectors]) -> None:
    moment = [0.0]
    kept = open_file(300_000, lambda: moment[0])
    kept.put_many(_entries(range(60), 384))
    moment[0] = 100
    assert len(kept.get_many([_key(n) for n in range(10)])) == 10
    moment[0] = 200
    for low in range(60, 140, 10):
        kept.put_many(_entries(range(low, low + 10), 384))
    found = _numbers(kept.get_many([_key(n) for n in range(140)]))
    assert found >= set(range(10)) | set(range(60, 140))
    assert len(found & set(range(10, 60))) < 50


def test_a_bound_too_small_for_anything_keeps_nothing(open_file: Callable[..., SqliteVectors]) -> None:
    kept = open_file(100)
    kept.put_many(_entries(range(5)))
    assert kept.count() == 0


def test_what_is_put_again_replaces(open_file: Callable[..., SqliteVectors]) -> None:
    kept = open_file()
    kept.put_many({b"k" * 32: _vector(1)})
    kept.put_many({b"k" * 32: _vector(2)})
    assert kept.get_many([b"k" * 32])[b"k" * 32].tolist() == [2, 2, 2, 2]
    assert kept.count() == 1


def test_a_closed_cache_is_an_empty_one(path: Path, open_file: Callable[..., SqliteVectors]) -> None:
    kept = open_file()
    kept.put_many(_entries(range(3)))
    kept.close()
    kept.close()
    kept.put_many(_entries(range(3, 6)))
    assert kept.get_many([_key(0)]) == {}
    assert kept.count() == 0
    assert [file.name for file in path.parent.iterdir()] == ["vectors.db"]


# Damage


@pytest.mark.parametrize(
    "damage",
    [
        "vector = zeroblob(16)",
        "vector = substr(vector, 1, 12)",
        "vector = substr(vector, 1, 15)",
        "vector = vector || x'00000000'",
        "vector = x''",
        "vector = 7",
        "vector = 'plain text'",
        "vector = CAST(x'fffe00' AS TEXT)",
        "sum = zeroblob(8)",
        "sum = 7",
        "sum = CAST(x'ff' AS TEXT)",
        # The vector of another text, with its own right checksum.
        "vector = (SELECT vector FROM vector WHERE used = 2), sum = (SELECT sum FROM vector WHERE used = 2)",
    ],
)
def test_a_damaged_entry_is_dropped_and_the_others_stay(
    path: Path, open_file: Callable[..., SqliteVectors], damage: str
) -> None:
    kept = open_file()
    kept.put_many(_entries(range(3)))
    _sql(path, "UPDATE vector SET used = 2 WHERE key = ?", _key(2))
    _sql(path, f"UPDATE vector SET {damage} WHERE key = ?", _key(1))
    assert _numbers(kept.get_many([_key(n) for n in range(3)])) == {0, 2}
    assert kept.count() == 2
    kept.put_many(_entries(range(1, 2)))
    assert _numbers(kept.get_many([_key(n) for n in range(3)])) == {0, 1, 2}


@pytest.mark.parametrize("used", ["'text'", "CAST(x'ff' AS TEXT)", "9223372036854775807", "-1e300", "x'00'"])
def test_a_damaged_mark_of_use_costs_nothing(path: Path, open_file: Callable[..., SqliteVectors], used: str) -> None:
    kept = open_file()
    kept.put_many(_entries(range(2)))
    _sql(path, f"UPDATE vector SET used = {used} WHERE key = ?", _key(1))
    assert _numbers(kept.get_many([_key(0), _key(1)])) == {0, 1}
    assert _sql(path, "SELECT DISTINCT used FROM vector") == [(1_000_000,)]


@pytest.mark.parametrize(
    "content", [b"", b"x", b"a letter to my aunt. " * 500, b"SQLite format 3\x00" + b"\xff" * 9000]
)
def test_a_damaged_file_is_begun_anew(path: Path, open_file: Callable[..., SqliteVectors], content: bytes) -> None:
    path.parent.mkdir()
    path.write_bytes(content)
    kept = open_file()
    assert kept.get_many([_key(0)]) == {}
    kept.put_many(_entries(range(2)))
    assert _numbers(kept.get_many([_key(0), _key(1)])) == {0, 1}
    assert stat.S_IMODE(path.stat().st_mode) == 0o600 or content in (b"", b"x")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("whole") / "vectors.db"
    kept = SqliteVectors(path, ROOM)
    kept.put_many(_entries(range(40), 384))
    kept.close()
    return path.read_bytes()


@given(data=st.data())
def test_no_damage_is_ever_believed_or_ever_raised(
    data: st.DataObject, whole: bytes, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("damaged")
    content = bytearray(whole)
    for _ in range(data.draw(st.integers(1, 4))):
        # Most of a page are vectors; what steers the engine lies at its beginning.
        page = data.draw(st.integers(0, len(whole) // 4096 - 1)) * 4096
        place = page + data.draw(st.integers(0, 130) | st.integers(0, 4095))
        patch = data.draw(st.binary(min_size=1, max_size=20))
        content[place : place + len(patch)] = patch
    content = content[: data.draw(st.just(len(content)) | st.integers(0, len(content)))]
    (folder / "vectors.db").write_bytes(content)
    kept = SqliteVectors(folder / "vectors.db", ROOM)
    expected = _entries(range(40), 384)
    for _ in range(2):
        for key, vector in kept.get_many(list(expected)).items():
            assert np.array_equal(vector, expected[key])
        kept.put_many({_key(7): expected[_key(7)]})
        assert kept.count() >= 0
    kept.close()
    shutil.rmtree(folder)


def test_beginning_anew_spares_the_file_another_process_has_begun(
    path: Path, open_file: Callable[..., SqliteVectors], monkeypatch: pytest.MonkeyPatch
) -> None:
    def damaged(*_: object) -> None:
        raise apsw.CorruptError

    kept = open_file()
    kept.put_many(_entries(range(1)))
    for file in list(path.parent.iterdir()):
        file.unlink()
    other = open_file()
    other.put_many(_entries(range(1, 3)))
    with monkeypatch.context() as patch:
        patch.setattr(sqlite_vectors, "_read", damaged)
        assert kept.get_many([_key(0)]) == {}
    # From now on both share the new file.
    assert _numbers(kept.get_many([_key(n) for n in range(3)])) == {1, 2}
    kept.put_many(_entries(range(5, 6)))
    assert _numbers(other.get_many([_key(5)])) == {5}


# Bad places


def test_a_file_that_another_process_holds_is_as_good_as_none(
    path: Path, open_file: Callable[..., SqliteVectors], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_vectors, "_BUSY_MS", 10)
    moment = [1000.0]
    kept = open_file(ROOM, lambda: moment[0])
    kept.put_many(_entries(range(2)))
    # Old enough that reading would like to note the use.
    moment[0] += 1000
    holder = apsw.Connection(str(path))
    holder.execute("BEGIN IMMEDIATE")
    kept.put_many(_entries(range(2, 4)))
    assert _numbers(kept.get_many([_key(n) for n in range(4)])) == {0, 1}
    holder.close()
    kept.put_many(_entries(range(2, 4)))
    assert _numbers(kept.get_many([_key(n) for n in range(4)])) == {0, 1, 2, 3}


def test_a_folder_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("hello")
    for path in (tmp_path / "file" / "vectors.db", tmp_path / "file" / "deeper" / "vectors.db"):
        kept = SqliteVectors(path, ROOM)
        kept.put_many(_entries(range(1)))
        assert kept.get_many([_key(0)]) == {}
        assert kept.count() == 0
    assert (tmp_path / "file").read_text() == "hello"


@pytest.fixture
def open_to_all(tmp_path: Path) -> Path:
    """A folder that another user may reach: pytest's own parents are closed to others."""
    for parent in (tmp_path, *tmp_path.parents):
        if parent.stat().st_uid == os.getuid() and str(parent).startswith("/tmp/"):
            parent.chmod(0o755)
    tmp_path.chmod(0o777)
    return tmp_path


def test_places_where_nothing_may_be_written(open_to_all: Path) -> None:
    closed, readable = open_to_all / "closed", open_to_all / "readable"
    closed.mkdir(mode=0o555)
    readable.mkdir()
    readable.chmod(0o777)
    kept = SqliteVectors(readable / "vectors.db", ROOM, lambda: 0.0)
    kept.put_many(_entries(range(3)))
    kept.close()
    _sql(readable / "vectors.db", "UPDATE vector SET vector = x'00' WHERE key = ?", _key(1))
    (readable / "vectors.db").chmod(0o444)
    # Root could write anywhere. The imports come first: the interpreter may lie where only root can read.
    script = f"""
        import os
        from pathlib import Path
        import numpy as np
        from cortex_py.core.embedding.sqlite_vectors import SqliteVectors
        if os.getuid() == 0:
            os.setgroups([]); os.setgid(65534); os.setuid(65534)
        keys = [bytes.fromhex(key) for key in {[_key(n).hex() for n in range(3)]}]
        for path in ({str(closed / "vectors.db")!r}, {str(closed / "deeper" / "vectors.db")!r}):
            kept = SqliteVectors(Path(path), 1000000)
            kept.put_many({{keys[0]: np.zeros(4, np.float32)}})
            print(kept.get_many(keys), kept.count())
        kept = SqliteVectors(Path({str(readable / "vectors.db")!r}), 1000000)
        kept.put_many({{keys[1]: np.zeros(4, np.float32)}})
        print([kept.get_many([key])[key].tolist() for key in kept.get_many(keys)], kept.count())
    """
    run = subprocess.run(
        [*python_command(), "-c", textwrap.dedent(script)], capture_output=True, text=True, timeout=60, check=False
    )
    assert run.stderr == ""
    assert run.stdout.splitlines() == ["{} 0", "{} 0", "[[0.0, 0.0, 0.0, 0.0], [2.0, 2.0, 2.0, 2.0]] 3"]
    assert list(closed.iterdir()) == []


# Several processes


_WORKER = """
import sys
from hashlib import sha256
from pathlib import Path
import numpy as np
from cortex_py.core.embedding.sqlite_vectors import SqliteVectors

path, number = Path(sys.argv[1]), int(sys.argv[2])
keys = [sha256(str(n).encode()).digest() for n in range(600)]
kept = SqliteVectors(path, 600_000)
print("ready", flush=True)
sys.stdin.readline()
seen = 0
for turn in range(150):
    base = (turn * 7 + number * 3) % 590
    kept.put_many({keys[n]: np.full(384, n, np.float32) for n in range(base, base + 10)})
    for key, vector in kept.get_many(keys[turn % 60 * 10 :][:40]).items():
        assert vector.tolist() == [keys.index(key)] * 384
        seen += 1
kept.close()
print(seen)
"""


@pytest.mark.slow
def test_two_processes_at_once_never_read_anything_wrong(path: Path, open_file: Callable[..., SqliteVectors]) -> None:
    command = [*python_command(), "-c", _WORKER, str(path)]
    workers = [
        subprocess.Popen([*command, str(n)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for n in range(2)
    ]
    for worker in workers:
        assert worker.stdout is not None
        assert worker.stdout.readline() == "ready\n"
    for worker in workers:
        assert worker.stdin is not None
        worker.stdin.write("go\n")
        worker.stdin.flush()
    for worker in workers:
        output, _ = worker.communicate(timeout=60)
        assert worker.returncode == 0
        assert int(output) > 100
    assert _sql(path, "PRAGMA integrity_check") == [("ok",)]
    assert path.stat().st_size < 800_000
    found = open_file().get_many([_key(n) for n in range(600)])
    assert len(_numbers(found)) > 100
