"""Files from which a fresh process has the numbers of a space: they spare work, and never change an answer."""

from __future__ import annotations

import errno
import mmap
import os
import random
import shutil
import stat
from collections.abc import Callable
from datetime import UTC, datetime
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from cortex_py import Cortex, NewMemory
from cortex_py.core.clock import to_micros
from cortex_py.core.memory.recall.filters import parse_filter
from cortex_py.core.sqlite_file import can_encrypt
from cortex_py.core.store.search import process_space
from cortex_py.core.store.search.filters import View
from cortex_py.core.store.search.kept_file import RUN, KeptFile, KeptSpace
from cortex_py.core.store.search.process_space import Segment
from cortex_py.encryption import encrypt_home, encryption_of
from inside import database_of, store_of

from stub_backend import StubBackend

pytestmark = [pytest.mark.sqlite_only, pytest.mark.skipif(not hasattr(os, "pread"), reason="files are not kept there")]

WORDS = ["amber", "basil", "cedar", "delta", "ember", "fjord", "grove", "heron", "inlet", "jade", "kelp", "lotus"]
QUERIES = ["amber basil", "heron jade lotus", "kelp", "delta ember fjord grove"]


@pytest.fixture(autouse=True)
def _worth_keeping(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("SMALL", -1), ("_KEPT_LEAST", 1), ("_KEPT_CHANGES", 0), ("_KEPT_SHARE", 0.0)):
        monkeypatch.setattr(f"cortex_py.core.store.search.process_space.{name}", value)


def _open(home: Path, project: Path) -> Cortex:
    return Cortex.open(home, project=project, backend=StubBackend())


def _note(chance: random.Random) -> NewMemory:
    tags = (chance.choice(("red", "blue")),)
    return NewMemory(content=" ".join(chance.choices(WORDS, k=8)) + f" {chance.random()}", tags=tags)


def _fill(home: Path, project: Path, count: int = 60) -> list[str]:
    """Notes, and the file, which is written when the first process that searched them ends."""
    chance = random.Random(3)
    with _open(home, project) as cortex:
        ids = [one.id for one in cortex.memories.capture_many([_note(chance) for _ in range(count)])]
        _answers(cortex)
    return ids


def _answers(cortex: Cortex) -> list[list[float]]:
    """The cosines of the nearest records; not their ranking, for which each process may draw its sample of words at
    another time, and not which of two equally near ones it is."""
    store, place, now = store_of(cortex), cortex.memories.place, datetime.now(UTC)
    view = View(place.spaces(), to_micros(now))
    found = []
    with store.database.read() as session:
        for text, written in product(QUERIES, ("", "ns:decisions", "tag:red", "-tag:red since:1d", "user:nobody")):
            scope = store.scope(session, parse_filter(written, now=now).filter, view)
            query = StubBackend().embed([text])[0]
            nearest = store.search.candidates(session, scope, (), query, 8).details
            assert nearest.size == len(nearest.vectors)
            found.append(sorted((nearest.vectors @ query).tolist()))
    return found


def _file(home: Path) -> Path:
    (found,) = (home / "spaces").glob("*.space")
    return found


def _segment(cortex: Cortex) -> Segment:
    (found,) = _segments(cortex)
    return found


def _segments(cortex: Cortex) -> list[Segment]:
    return [one for one in store_of(cortex).search.segments().values() if one.columns.size]


def _same_without_files(home: Path, project: Path) -> None:
    with _open(home, project) as cortex:
        found = _answers(cortex)
    shutil.rmtree(home / "spaces")
    with _open(home, project) as cortex:
        assert _answers(cortex) == [pytest.approx(cosines, abs=0.01) for cosines in found]
        assert _segment(cortex).unkept is None
        assert cortex.memories.recall("amber kelp", limit=3).results


def test_the_next_process_answers_the_same_from_the_file(home: Path, project: Path) -> None:
    _fill(home, project)
    assert stat.S_IMODE((home / "spaces").stat().st_mode) == 0o700
    assert stat.S_IMODE(_file(home).stat().st_mode) == 0o600
    before = _file(home).stat().st_ino
    with _open(home, project) as cortex:
        _answers(cortex)
        assert _segment(cortex).unkept == 0
    assert _file(home).stat().st_ino == before
    assert not any(word.encode() in _file(home).read_bytes() for word in (*WORDS, "decisions", "red"))
    _same_without_files(home, project)


def test_every_change_since_the_file_was_written_counts(home: Path, project: Path) -> None:
    ids = _fill(home, project)
    chance = random.Random(5)
    for _ in range(4):
        kept = _file(home).read_bytes()
        with _open(home, project) as cortex:
            branch = cortex.contexts.create_branch("work").id
            for _ in range(12):
                match chance.randrange(6):
                    case 0:
                        cortex.memories.update(chance.choice(ids), content=_note(chance).content)
                    case 1:
                        cortex.memories.delete(ids.pop(chance.randrange(len(ids))))
                    case 2:
                        cortex.memories.delete(ids.pop(chance.randrange(len(ids))), hard=True)
                    case 3:
                        cortex.contexts.append(branch, _note(chance).content, "user")
                    case _:
                        ids.append(cortex.memories.capture(_note(chance).content, tags=("red",)).id)
        assert kept  # the file is of the state before, apart from what was purged
        _same_without_files(home, project)


def test_a_purge_leaves_nothing_of_a_record_in_the_file(home: Path, project: Path) -> None:
    ids = _fill(home, project)
    with _open(home, project) as cortex:
        content = cortex.memories.get(ids[7]).content
        vector = StubBackend().embed([content])[0]
        pattern = np.rint(vector / (np.abs(vector).max() / 127)).astype(np.int8).tobytes()
        assert pattern in _file(home).read_bytes()
        leftover = _file(home).with_name(f"{_file(home).name}.killed.part")
        leftover.write_bytes(pattern)
        _answers(cortex)
        cortex.memories.delete(ids[7], hard=True)
        # Another process may still write what it read before.
        assert pattern not in _file(home).read_bytes()
        assert not leftover.exists()
        with KeptFile.open(_file(home)) as file:
            file.check()
    with _open(home, project) as cortex:
        _answers(cortex)
        assert _segment(cortex).unkept == 1
    assert pattern not in _file(home).read_bytes()
    _same_without_files(home, project)


def test_a_purge_of_many_removes_the_file(home: Path, project: Path) -> None:
    ids = _fill(home, project)
    with _open(home, project) as cortex:
        kept = database_of(cortex).kept_spaces
        with database_of(cortex).write() as session:
            (space,) = {row[0] for row in session.rows("SELECT space FROM memory")}
            nums = [row[0] for row in session.rows("SELECT num FROM memory")]
            seq = store_of(cortex).memories.next_seq(session, space)
            store_of(cortex).memories.purge(session, space, nums[:30], seq)
        assert kept is not None
        assert not kept.path(space).exists()
        assert len(cortex.memories.recall(limit=100).results) == len(ids) - 30


def test_a_purge_that_fails_leaves_no_file_in_use(home: Path, project: Path) -> None:
    ids = _fill(home, project)
    with _open(home, project) as cortex:
        memories, database = store_of(cortex).memories, database_of(cortex)
        with pytest.raises(ZeroDivisionError), database.write() as session:
            ((space, num),) = session.rows("SELECT space, num FROM memory WHERE id = ?", (ids[0],))
            memories.purge(session, space, [num], memories.next_seq(session, space))
            raise ZeroDivisionError
        _answers(cortex)
        assert _segment(cortex).unkept is None
        assert cortex.memories.recall(cortex.memories.get(ids[0]).content).results[0].memory.id == ids[0]


def test_a_draft_is_given_up_if_a_record_was_purged_meanwhile(
    home: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = _fill(home, project)
    write = KeptFile.write
    with _open(home, project) as cortex, _open(home, project) as other:
        _answers(cortex)
        cortex.memories.capture("one more")

        def purged_meanwhile(*given: object) -> None:
            write(*given)  # type: ignore[arg-type]
            other.memories.delete(ids[3], hard=True)

        monkeypatch.setattr(KeptFile, "write", purged_meanwhile)
        segment = _segment(cortex)
        assert not segment.keep(database_of(cortex))
        monkeypatch.setattr(KeptFile, "write", write)
        assert segment.keep(database_of(cortex))
    _same_without_files(home, project)


def _cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def _change_at(share: float) -> Callable[[Path], None]:
    def change(path: Path) -> None:
        with path.open("r+b") as file:
            file.seek(int(path.stat().st_size * share))
            was = file.read(1)
            file.seek(-1, os.SEEK_CUR)
            file.write(bytes([was[0] ^ 0xFF]))

    return change


def _change_a_place(path: Path) -> None:
    with KeptFile.open(path) as file:
        _, at, _, _ = file.facts["arrays"]["place"]
        begin = file.facts["begin"]
    with path.open("r+b") as changed:
        changed.seek(begin + at)
        changed.write(b"\xff\xff\xff\x7f")


@pytest.mark.slow
@pytest.mark.parametrize(
    "damage",
    [_cut, _change_at(0.0), _change_at(0.00001), _change_a_place, lambda path: path.write_bytes(b""), Path.unlink],
    ids=["cut", "magic", "facts", "place", "empty", "gone"],
)
def test_a_damaged_file_is_not_used_and_is_written_again(
    home: Path, project: Path, damage: Callable[[Path], None]
) -> None:
    _fill(home, project)
    path = _file(home)
    damage(path)
    with _open(home, project) as cortex:
        _answers(cortex)
        assert _segment(cortex).unkept is None
    with KeptFile.open(_file(home)) as file:
        file.check()
    _same_without_files(home, project)


def test_a_store_put_back_from_a_copy_does_not_meet_a_later_file(home: Path, project: Path, tmp_path: Path) -> None:
    ids = _fill(home, project)
    shutil.copy(home / "cortex.db", tmp_path / "copy.db")
    with _open(home, project) as cortex:
        for memory_id in ids[:20]:
            cortex.memories.update(memory_id, content="replaced " + memory_id)
        _answers(cortex)
    shutil.copy(tmp_path / "copy.db", home / "cortex.db")
    with _open(home, project) as cortex:
        cortex.memories.capture("a note of another history")
        _answers(cortex)
        assert _segment(cortex).unkept is None
    _same_without_files(home, project)


def test_a_kill_between_the_file_and_the_store_leaves_the_file_unused(
    home: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _fill(home, project)
    with _open(home, project) as cortex:
        cortex.memories.capture("one more")
        _answers(cortex)

        def killed(*_given: object) -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr("cortex_py.core.store.search.kept_spaces._set", killed)
        with pytest.raises(KeyboardInterrupt):
            _segment(cortex).keep(database_of(cortex))
        monkeypatch.undo()
    with _open(home, project) as cortex:
        _answers(cortex)
        assert _segments(cortex)[0].unkept is None


def test_a_full_disk_leaves_no_file_and_no_error(home: Path, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_given: object) -> int:
        raise OSError(errno.ENOSPC, "no space")

    with monkeypatch.context() as patched:
        patched.setattr(os, "pwrite", full)
        _fill(home, project)
    assert list((home / "spaces").iterdir()) == []
    with _open(home, project) as cortex:
        assert any(_answers(cortex))


def test_a_folder_that_cannot_be_written_is_no_error(home: Path, project: Path) -> None:
    home.mkdir()
    (home / "spaces").write_text("not a folder")
    _fill(home, project)
    assert (home / "spaces").read_text() == "not a folder"
    with _open(home, project) as cortex:
        cortex.memories.delete(cortex.memories.recall("amber").results[0].memory.id, hard=True)


def test_dropped_vectors_make_files_invalid(home: Path, project: Path) -> None:
    _fill(home, project)
    with _open(home, project) as cortex:
        with database_of(cortex).write() as session:
            store_of(cortex).memories.drop_vectors(session)
        cortex.memories.recall("amber", mode="text")
        assert _segment(cortex).unkept is None


@pytest.mark.skipif(not can_encrypt(), reason="the SQLite of this Python knows no ciphers")
def test_an_encrypted_home_keeps_no_files(home: Path, project: Path) -> None:
    _fill(home, project)
    with _open(home, project) as cortex:
        settings = cortex.settings
    encrypt_home(settings, "correct horse battery")
    assert list((home / "spaces").iterdir()) == []
    with Cortex.open(home, project=project, backend=StubBackend(), home_passphrase="correct horse battery") as cortex:
        assert any(_answers(cortex))
    assert list((home / "spaces").iterdir()) == []
    assert encryption_of(settings).unfinished == ()


def test_upkeep_finds_damage_in_the_vectors_and_drops_them(home: Path, project: Path) -> None:
    _fill(home, project)
    path = _file(home)
    with KeptFile.open(path) as file:
        at = file.facts["begin"] + file.facts["arrays"]["fine"][1]
    with path.open("r+b") as changed:
        changed.seek(at)
        changed.write(bytes(64))
    with _open(home, project) as cortex:
        _answers(cortex)
        assert _segment(cortex).unkept == 0
        cortex.upkeep()
        assert not path.exists()
        _answers(cortex)
    _same_without_files(home, project)


def test_of_several_processes_one_writes(home: Path, project: Path) -> None:
    _fill(home, project)
    with _open(home, project) as cortex, _open(home, project) as other:
        _answers(cortex)
        _answers(other)
        cortex.memories.capture("one more")
        _answers(cortex)
        _answers(other)
        store_of(cortex).keep_spaces()
        written = _file(home).stat().st_ino
        store_of(other).keep_spaces()
        assert _file(home).stat().st_ino == written
        _answers(other)
        assert _segment(other).unkept == 0


@pytest.mark.slow
def test_rows_in_groups_give_the_same_answers(home: Path, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("vectors", "kept_file"):
        monkeypatch.setattr(f"cortex_py.core.store.search.{module}.GROUPED_FROM", 1)
    monkeypatch.setattr("cortex_py.core.store.search.vectors._PROBED", 1.0)
    ids = _fill(home, project, 300)
    with _open(home, project) as cortex:
        # Memory is given back after each search; what this process changed stays.
        before = _answers(cortex)
        assert _answers(cortex) == before
        cortex.memories.delete(ids[4])
        cortex.memories.capture("amber basil")
        assert _answers(cortex) != before
    _same_without_files(home, project)


@pytest.mark.skipif(not Path("/proc/self/pagemap").exists(), reason="the system does not tell which pages are mapped")
def test_what_a_search_mapped_goes_back_to_the_system(
    home: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("vectors", "kept_file"):
        monkeypatch.setattr(f"cortex_py.core.store.search.{module}.GROUPED_FROM", 1)
    monkeypatch.setattr("cortex_py.core.store.search.kept_file._BLOCK", mmap.PAGESIZE)
    _fill(home, project, 300)
    with _open(home, project) as cortex:
        cortex.memories.recall("amber basil")
        segment = _segment(cortex)
        assert segment._mapped is not None
        rows = segment._mapped.arrays["fine"]
        pages = 300 * rows.shape[1] // mmap.PAGESIZE
        process_space._RELEASING.close()  # it finishes what it has to do
        assert _mapped_pages(rows, pages) == 0
        rows[:300].sum()
        assert _mapped_pages(rows, pages) == pages >= 2
        cortex.memories.recall("heron jade")
        process_space._RELEASING.close()
        assert _mapped_pages(rows, pages) == 0


@pytest.mark.skipif(not Path("/proc/self/pagemap").exists(), reason="the system does not tell which pages are mapped")
def test_what_was_changed_in_mapped_memory_stays(tmp_path: Path) -> None:
    rows = np.arange(5 * RUN + 3, dtype=np.int64)
    (tmp_path / "rows").write_bytes(rows.tobytes())
    with (tmp_path / "rows").open("rb") as file:
        mapped = np.frombuffer(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY), np.int64)
    space = KeptSpace({"chunks": 1, "arrays": {"nums": ("<i8", 0, [], len(rows))}}, {"nums": mapped})
    pages = RUN * 8 // mmap.PAGESIZE
    for changed in ((), (2,), (0, 2, 3), (0, 2, 3, 4, 5)):
        for run in changed:
            mapped[run * RUN] = rows[run * RUN] = -run
        assert mapped.sum() == rows.sum()
        space.release(["nums"], changed)
        kept = [_mapped_pages(mapped[run * RUN :], pages) for run in range(5)]
        assert [count > 0 for count in kept] == [run in changed for run in range(5)]
        assert (mapped == rows).all()


def _mapped_pages(array: np.ndarray, pages: int) -> int:
    """How many of the first pages of an array this process has mapped."""
    with Path("/proc/self/pagemap").open("rb", buffering=0) as pagemap:
        pagemap.seek(array.ctypes.data // mmap.PAGESIZE * 8)
        return int(np.count_nonzero(np.frombuffer(pagemap.read(8 * pages), np.uint64) >> np.uint64(63)))


def test_records_that_came_or_went_after_their_space_was_grouped(
    home: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("vectors", "kept_file"):
        monkeypatch.setattr(f"cortex_py.core.store.search.{module}.GROUPED_FROM", 1)
    ids = _fill(home, project, 300)
    with _open(home, project) as cortex:
        gone = [cortex.memories.get(one).content for one in ids[:2]]
        cortex.memories.delete(ids[0])
        cortex.memories.delete(ids[1], hard=True)
        new = cortex.memories.capture("amber basil tundra").id
        for query in ("amber basil tundra", *gone):
            found = [one.memory.id for one in cortex.memories.recall(query, limit=20).results]
            assert not {*found} & {*ids[:2]}
            assert query in gone or found[0] == new


def test_a_file_of_another_version_is_replaced(home: Path, project: Path, caplog: pytest.LogCaptureFixture) -> None:
    _fill(home, project)
    path = _file(home)
    with path.open("r+b") as changed:
        changed.seek(len(b"CORTEXKS"))
        changed.write((1).to_bytes(4, "little"))
    with _open(home, project) as cortex:
        assert any(_answers(cortex))
        assert _segment(cortex).unkept is None
    assert "damaged" not in caplog.text
    with KeptFile.open(_file(home)) as file:
        file.check()
    with _open(home, project) as cortex:
        _answers(cortex)
        assert _segment(cortex).unkept == 0


@pytest.mark.parametrize("seconds", [0.0, 60.0])
def test_a_process_drops_the_spaces_that_it_no_longer_searches(
    home: Path, project: Path, monkeypatch: pytest.MonkeyPatch, seconds: float
) -> None:
    monkeypatch.setattr("cortex_py.core.store.search.search._RECORDS_MOST", 3)
    monkeypatch.setattr("cortex_py.core.store.search.search._USED_SECONDS", seconds)
    with _open(home, project) as cortex:
        for domain, word in product(("project", "user"), WORDS[:5]):
            cortex.memories.capture(f"{word} of the {domain}", domain="user" if domain == "user" else "project")
        store_of(cortex).search.forget_all()
        for domain in ("project", "user", "project"):
            (found,) = cortex.memories.recall(
                f"amber {domain}", domain="user" if domain == "user" else "project", limit=1
            ).results
            assert found.memory.content == f"amber of the {domain}"
        assert len(_segments(cortex)) == (1 if seconds == 0.0 else 2)
