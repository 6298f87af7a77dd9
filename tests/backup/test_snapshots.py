"""Snapshots by what they are for: nothing is lost, nothing is mixed, and what is damaged says so."""

from __future__ import annotations

import random
import shutil
import threading
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cortex_py import Cortex
from cortex_py.core.errors import BackupCorrupt, BackupError, CortexError, InvalidId, SnapshotNotFound, StorageError
from cortex_py.parts.backup.snapshots import archive
from cortex_py.parts.backup.snapshots.snapshots import Retention, ids_to_keep

from helpers import FakeClock
from homes import OtherBackend, fill, opened, state


def found(cortex: Cortex, text: str) -> list[str]:
    hits = cortex.memories.recall(text).results
    return [hit.memory.content for hit in hits if hit.memory.domain == "project"]


def test_a_snapshot_brings_back_what_was_there_and_nothing_else(home: Path, project: Path, clock: FakeClock) -> None:
    with opened(home, project, clock) as cortex:
        ids = fill(cortex)
        before = state(cortex)
        made = cortex.backups.create("Before major refactor")
        assert made.verified
        assert made.path == home / "backups" / cortex.project.id / f"{made.id}.tar.gz"
        assert made.id == "snapshot_20260102_123456"

        clock.advance(hours=1)
        fill(cortex, "second")
        cortex.memories.delete(ids[0])
        cortex.memories.update(ids[1], content="changed since")
        cortex.prompts.delete("first-review", domain="project")
        assert state(cortex) != before

        done = cortex.backups.restore(made.id)
        assert state(cortex) == before
        assert (done.memories, done.branches) == (6, 1)
        assert cortex.prompts.get("first-review").content == "Review {{file}} closely for {{what}}."
        assert not any("second" in text for text in found(cortex, "PostgreSQL Kafka"))
        assert cortex.memories.get(ids[0]).content.startswith("first: the API")
        assert not cortex.check()


def test_the_state_before_a_restore_can_be_had_back(home: Path, project: Path, clock: FakeClock) -> None:
    with opened(home, project, clock) as cortex:
        fill(cortex)
        made = cortex.backups.create()
        clock.advance(minutes=5)
        fill(cortex, "second")
        after = state(cortex)
        done = cortex.backups.restore(made.id)
        assert state(cortex) != after
        cortex.backups.restore(done.safety)
        assert state(cortex) == after


def test_what_is_deleted_for_good_comes_back_with_the_names_in_it(home: Path, project: Path, clock: FakeClock) -> None:
    """The same name is held by what goes and by what comes: it must not go with the one and be missed by the other."""
    with opened(home, project, clock) as cortex:
        first = cortex.memories.capture("BillingService uses PostgreSQL", idempotency_key="same")
        before = state(cortex)
        made = cortex.backups.create()
        cortex.memories.delete(first.id, hard=True)
        cortex.memories.capture("BillingService still uses PostgreSQL", idempotency_key="same")
        cortex.backups.restore(made.id)
        assert state(cortex) == before


def test_other_projects_and_the_persons_own_memories_stay(
    home: Path, project: Path, tmp_path: Path, clock: FakeClock
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    with opened(home, project, clock) as cortex, opened(home, elsewhere, clock) as other:
        fill(cortex)
        made = cortex.backups.create()
        fill(other, "other")
        cortex.memories.capture("mine alone", domain="user")
        theirs = state(other)
        own = state(cortex, space=cortex.memories.place.space("user"))
        cortex.backups.restore(made.id)
        assert state(other) == theirs
        assert state(cortex, space=cortex.memories.place.space("user")) == own


def test_what_belongs_to_a_person_has_snapshots_of_its_own(home: Path, project: Path, clock: FakeClock) -> None:
    with opened(home, project, clock) as cortex:
        fill(cortex)
        space = cortex.memories.place.space("user")
        before = state(cortex, space=space)
        made = cortex.backups.create(domain="user")
        cortex.memories.capture("mine alone", domain="user")
        here = state(cortex)
        cortex.backups.restore(made.id, domain="user")
        assert state(cortex, space=space) == before
        assert state(cortex) == here
        assert cortex.backups.snapshots() == []


def test_a_snapshot_moves_to_another_home(tmp_path: Path, project: Path, clock: FakeClock) -> None:
    with opened(tmp_path / "one", project, clock) as cortex, opened(tmp_path / "two", project, clock) as other:
        fill(cortex)
        made = cortex.backups.create()
        folder = tmp_path / "two" / "backups" / cortex.project.id
        folder.mkdir(parents=True)
        shutil.copy(made.path, folder)
        other.backups.restore(made.id)
        assert state(other) == state(cortex)
        assert found(other, "PostgreSQL") == found(cortex, "PostgreSQL")


def test_vectors_of_another_model_are_made_anew(tmp_path: Path, project: Path, clock: FakeClock) -> None:
    with opened(tmp_path / "one", project, clock) as cortex:
        fill(cortex)
        made = cortex.backups.create()
        before = state(cortex)
    folder = tmp_path / "two" / "backups" / cortex.project.id
    folder.mkdir(parents=True)
    shutil.copy(made.path, folder)
    # The home has a snapshot and no store, as on a new machine.
    with Cortex.open(tmp_path / "two", project=project, backend=OtherBackend(), clock=clock, new_store=True) as other:
        other.backups.restore(made.id)
        assert state(other) == before
        with other.store.database.read() as session:
            lengths = {len(row[0]) for row in session.rows("SELECT vector FROM chunk")}
        assert lengths == {48 * 4}
        assert found(other, "Kafka events")[0] == "first: we decided on Kafka for events"


def test_other_processes_that_are_open_see_the_restored_state(home: Path, project: Path, clock: FakeClock) -> None:
    with opened(home, project, clock) as cortex, opened(home, project, clock) as window:
        fill(cortex)
        made = cortex.backups.create()
        cortex.memories.capture("Elasticsearch is new")
        cortex.prompts.save("newer", "Say {{what}}.", domain="project")
        assert found(window, "Elasticsearch")[0] == "Elasticsearch is new"
        assert window.prompts.get("newer")
        cortex.backups.restore(made.id)
        assert "Elasticsearch is new" not in found(window, "Elasticsearch")
        assert "newer" not in [one.name for one in window.prompts.visible()]
        window.memories.capture("goes on as before")
        assert found(cortex, "goes on")[0] == "goes on as before"


def test_a_snapshot_is_of_one_moment_while_others_write(home: Path, project: Path, clock: FakeClock) -> None:
    """Each writer keeps two memories alike; a snapshot that saw one of them changed and not the other is mixed."""
    with opened(home, project, clock) as cortex:
        pair = [cortex.memories.capture(f"count 0 {side}").id for side in ("left", "right")]
        stop = threading.Event()
        store = cortex.store

        def write() -> None:
            n = 0
            while not stop.is_set():
                n += 1
                with store.database.write() as session:
                    for one, side in zip(pair, ("left", "right"), strict=True):
                        session.as_is.run("UPDATE memory SET content = ? WHERE id = ?", (f"count {n} {side}", one))

        writer = threading.Thread(target=write)
        writer.start()
        try:
            made = [cortex.backups.create() for _ in range(5)]
        finally:
            stop.set()
            writer.join()
        for one in made:
            cortex.backups.restore(one.id)
            contents = {cortex.memories.get(each).content.rsplit(" ", 1)[0] for each in pair}
            assert len(contents) == 1, contents


def test_edits_of_a_branch_file_are_in_the_snapshot(home: Path, project: Path, clock: FakeClock) -> None:
    with opened(home, project, clock) as cortex:
        fill(cortex)
        branch = cortex.contexts.branches()[0]
        path = cortex.contexts.check_branch(branch.id).path
        text = path.read_text()
        path.write_text(text.replace("we decided on Kafka", "we decided on NATS"))
        made = cortex.backups.create()
        cortex.contexts.append(branch.id, "later", "user")
        cortex.backups.restore(made.id)
        assert "first: we decided on NATS for events" in [one.content for one in cortex.contexts.content(branch.id)]
        assert "NATS" in path.read_text()
        assert "later" not in path.read_text()


def test_the_file_of_a_line_of_work_that_came_later_goes(home: Path, project: Path, clock: FakeClock) -> None:
    with opened(home, project, clock) as cortex:
        fill(cortex)
        made = cortex.backups.create()
        clock.advance(seconds=2)
        later = cortex.contexts.create_branch("Later work")
        path = cortex.contexts.check_branch(later.id).path
        assert path.is_file()
        cortex.backups.restore(made.id)
        assert not path.exists()
        assert [one.id for one in cortex.contexts.branches()] != [later.id]


class Crash(Exception):
    """Stands for a process that ends here."""


@pytest.mark.parametrize("at", ["verify", "save", "switch", "commit"])
def test_a_restore_that_ends_before_the_commit_changed_nothing(
    home: Path, project: Path, clock: FakeClock, at: str
) -> None:
    with opened(home, project, clock) as cortex:
        fill(cortex)
        made = cortex.backups.create()
        fill(cortex, "second")
        before = state(cortex)

        def crash(step: str) -> None:
            if step == at:
                raise Crash

        with pytest.raises(Crash):
            cortex.backups.restore(made.id, step=crash)
        assert state(cortex) == before


def test_after_the_commit_the_new_state_is_there_whatever_happens(home: Path, project: Path, clock: FakeClock) -> None:
    with opened(home, project, clock) as cortex:
        fill(cortex)
        wanted = state(cortex)
        made = cortex.backups.create()
        fill(cortex, "second")

        def crash(step: str) -> None:
            if step == "files":
                raise Crash

        with pytest.raises(Crash):
            cortex.backups.restore(made.id, step=crash)
        assert state(cortex) == wanted


@pytest.mark.slow
def test_a_fault_at_any_document_of_a_restore_leaves_the_old_state(
    home: Path, project: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(home, project, clock) as cortex:
        fill(cortex)
        made = cortex.backups.create()
        fill(cortex, "second")
        before = state(cortex)
        table = cortex.store.documents
        steps = 0
        for name in ("put", "remove"):
            real = getattr(table, name)
            for n in range(200):
                count = 0

                def failing(*given: object, real=real, n=n) -> None:  # type: ignore[no-untyped-def]
                    nonlocal count
                    count += 1
                    if count > n:
                        raise StorageError("the disk is gone")
                    real(*given)

                monkeypatch.setattr(table, name, failing)
                try:
                    cortex.backups.restore(made.id)
                except StorageError:
                    steps += 1
                    assert state(cortex) == before
                else:
                    break
                finally:
                    monkeypatch.undo()
            cortex.backups.restore(cortex.backups.snapshots()[0].id)
            if state(cortex) != before:
                fill(cortex, "second")
                before = state(cortex)
        assert steps > 10


def test_what_does_not_read_back_is_rolled_back(
    home: Path, project: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(home, project, clock) as cortex:
        ids = fill(cortex)
        made = cortex.backups.create()
        cortex.memories.update(ids[0], content="changed")
        before = state(cortex)
        monkeypatch.setattr(cortex.store.documents, "put", lambda *_given: None)
        with pytest.raises(BackupCorrupt, match="do not read back"):
            cortex.backups.restore(made.id)
        assert state(cortex) == before


def test_a_full_disk_leaves_no_snapshot(
    home: Path, project: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(home, project, clock) as cortex:
        fill(cortex)

        def full(_file: object, _data: object) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(archive, "write_fully", full)
        with pytest.raises(StorageError, match="full"):
            cortex.backups.create()
        monkeypatch.undo()
        assert cortex.backups.snapshots() == []
        assert [path.name for path in (home / "backups" / cortex.project.id).iterdir() if ".part" in path.name] == []


def test_flipped_bits_are_found_and_nothing_is_restored_from_them(home: Path, project: Path, clock: FakeClock) -> None:
    chance = random.Random(11)
    with opened(home, project, clock) as cortex:
        fill(cortex)
        made = cortex.backups.create()
        good = made.path.read_bytes()
        before = state(cortex)
        for _ in range(60):
            place = chance.randrange(len(good) * 8)
            bad = bytearray(good)
            bad[place // 8] ^= 1 << place % 8
            made.path.write_bytes(bad)
            with pytest.raises(BackupError):
                cortex.backups.verify(made.id)
        with pytest.raises(BackupError):
            cortex.backups.restore(made.id)
        listed = cortex.backups.snapshots()
        assert [(one.verified, bool(one.fault)) for one in listed if one.id == made.id] == [(False, True)]
        assert state(cortex) == before


@pytest.mark.parametrize("wrong", ["../../x", "snapshot_1", "snapshot_20260102_123456/../../x", "", "a\0b"])
def test_what_is_no_id_is_refused(home: Path, project: Path, wrong: str) -> None:
    with opened(home, project) as cortex:
        for call in (cortex.backups.restore, cortex.backups.verify):
            with pytest.raises(InvalidId):
                call(wrong)


def test_a_snapshot_that_is_not_there_is_told(home: Path, project: Path) -> None:
    with opened(home, project) as cortex, pytest.raises(SnapshotNotFound):
        cortex.backups.restore("snapshot_20250101_000000")


def test_a_snapshot_of_another_project_is_refused(home: Path, project: Path, tmp_path: Path, clock: FakeClock) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    with opened(home, project, clock) as cortex, opened(home, elsewhere, clock) as other:
        fill(cortex)
        made = cortex.backups.create()
        folder = home / "backups" / other.project.id
        folder.mkdir(parents=True)
        shutil.copy(made.path, folder)
        before = state(other)
        with pytest.raises(BackupCorrupt, match="another project"):
            other.backups.restore(made.id)
        assert state(other) == before


def test_two_snapshots_of_one_second_have_names_of_their_own(home: Path, project: Path, clock: FakeClock) -> None:
    with opened(home, project, clock) as cortex:
        fill(cortex)
        names = [cortex.backups.create(f"number {n}").id for n in range(3)]
        assert len(set(names)) == 3
        assert sorted(one.description for one in cortex.backups.snapshots()) == ["number 0", "number 1", "number 2"]


def test_snapshots_by_the_clock_come_when_due_and_something_changed(
    home: Path, project: Path, clock: FakeClock
) -> None:
    with opened(home, project, clock) as empty:
        assert not empty.backups.scheduled()
    with Cortex.open(home, project=project, backend=OtherBackend(), clock=clock, snapshot_every="daily") as cortex:
        assert cortex.backups.scheduled() == []
        cortex.memories.capture("something to keep")
        clock.advance(hours=2)
        assert len(cortex.backups.scheduled()) == 1
        clock.advance(hours=23)
        cortex.memories.capture("something more")
        assert cortex.backups.scheduled() == []
        clock.advance(hours=2)
        assert len(cortex.backups.scheduled()) == 1
        clock.advance(days=3)
        assert cortex.backups.scheduled() == []  # nothing changed
        clock.advance(days=-2000)
        cortex.memories.capture("after the clock was set back")
        assert len(cortex.backups.scheduled()) == 1


def test_pruning_keeps_what_was_asked_for_and_the_last_good_one(home: Path, project: Path, clock: FakeClock) -> None:
    with opened(home, project, clock, snapshot_every="hourly") as cortex:
        fill(cortex)
        asked = cortex.backups.create("by hand")
        for _ in range(5):
            clock.advance(hours=2)
            cortex.memories.capture(f"written at {clock.now()}")
            cortex.backups.scheduled()
        newest = cortex.backups.snapshots()[0]
        gone = cortex.backups.prune(Retention(0, 0, 0))
        assert len(gone) == 4
        assert {one.id for one in cortex.backups.snapshots()} == {asked.id, newest.id}
        data = bytearray(newest.path.read_bytes())
        data[100] ^= 1
        newest.path.write_bytes(data)
        cortex.backups.prune(Retention(0, 0, 0), everything=True)
        assert {one.id for one in cortex.backups.snapshots()} == {asked.id, newest.id}


@given(
    st.lists(st.tuples(st.integers(0, 3_000), st.booleans()), max_size=40),
    st.integers(0, 5),
    st.integers(0, 5),
    st.integers(0, 5),
)
def test_retention_keeps_the_last_good_one_and_no_more_than_asked(
    made: list[tuple[int, bool]], hourly: int, daily: int, weekly: int
) -> None:
    start = FakeClock().now()
    good = [(start + timedelta(hours=hours), f"s{n}") for n, (hours, good) in enumerate(made) if good]
    staying = ids_to_keep(good, Retention(hourly, daily, weekly))
    assert staying <= {snapshot_id for _, snapshot_id in good}
    assert len(staying) <= max(1, hourly + daily + weekly)
    if good:
        assert max(good)[1] in staying


def test_a_call_with_too_long_a_description_makes_nothing(home: Path, project: Path) -> None:
    with opened(home, project) as cortex:
        with pytest.raises(CortexError):
            cortex.backups.create("x" * 3_000)
        assert cortex.backups.snapshots() == []
