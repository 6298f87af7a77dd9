"""`kill -9` in the middle of a snapshot, a restore or a sync: the old state or the new one, never a mixture."""

from __future__ import annotations

import random
import subprocess
import time
from pathlib import Path

import pytest

from cortex_py import Cortex
from cortex_py.core.store.documents.document import SHARED_KINDS

from forking import python_command
from helpers import FakeClock
from homes import fill, forget_sync_day, opened, state

WORKER = Path(__file__).with_name("backup_worker.py")
CLOUD = {"passphrase": "correct horse battery"}


def _kill(home: Path, project: Path, cloud: Path, work: str, after: float, *ids: str) -> int:
    """Let a worker work for a while, kill it, and return how often it was done."""
    process = subprocess.Popen(
        [*python_command(), str(WORKER), str(home), str(project), str(cloud), work, *ids],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    end = time.monotonic() + after
    try:
        process.wait(max(0.0, end - time.monotonic()))
    except subprocess.TimeoutExpired:
        process.kill()
    done = process.stdout.read().count("done")
    process.wait()
    process.stdout.close()
    return done


def _two_states(home: Path, project: Path) -> tuple[dict[str, list[bytes]], FakeClock]:
    clock = FakeClock()
    with opened(home, project, clock) as cortex:
        found = {}
        for name in ("first", "second"):
            for number in range(60):
                cortex.memories.capture(f"{name} {number}: BillingService uses PostgreSQL and Redis")
            fill(cortex, name)
            found[cortex.backups.create(name).id] = state(cortex)
            clock.advance(minutes=1)
    return found, clock


def check_restores(home: Path, project: Path, tmp_path: Path, rounds: int) -> None:
    states, _ = _two_states(home, project)
    moments = random.Random(5)
    for _ in range(rounds):
        _kill(home, project, tmp_path / "cloud", "restore", moments.uniform(0.0, 1.5), *states)
        with opened(home, project) as cortex:
            assert state(cortex) in list(states.values())
            assert cortex.check() == []
            for one in cortex.backups.snapshots():
                assert one.verified, one.fault
                if one.kind == "safety":
                    one.path.unlink()


def check_creates(home: Path, project: Path, tmp_path: Path, rounds: int) -> None:
    states, _ = _two_states(home, project)
    moments = random.Random(6)
    for _ in range(rounds):
        _kill(home, project, tmp_path / "cloud", "create", moments.uniform(0.0, 0.8))
        with opened(home, project) as cortex:
            assert [one.fault for one in cortex.backups.snapshots() if not one.verified] == []
            assert cortex.backups.create().verified
    assert len(states) == 2


def check_syncs(tmp_path: Path, project: Path, rounds: int) -> None:
    cloud = tmp_path / "cloud"
    moments = random.Random(7)

    def home(name: str) -> Cortex:
        return opened(tmp_path / name, project, cloud_url=str(cloud), **CLOUD)

    with home("one") as one:
        # There is something to share, however early the workers are killed on a busy machine.
        fill(one)
    for number in range(rounds):
        _kill(tmp_path / ("one", "two")[number % 2], project, cloud, "sync", moments.uniform(0.2, 2.0))
    with home("one") as one, home("two") as two:
        for cortex in (one, two, one, two):
            forget_sync_day(cortex.settings.home)
            cortex.backups.push()
            cortex.backups.pull()
        assert state(one, SHARED_KINDS) == state(two, SHARED_KINDS) != []
        assert one.check() == two.check() == []


@pytest.mark.slow
def test_a_restore_that_is_killed_leaves_one_of_the_two_states(home: Path, project: Path, tmp_path: Path) -> None:
    check_restores(home, project, tmp_path, 1)


@pytest.mark.slow
def test_a_snapshot_that_is_killed_is_not_there(home: Path, project: Path, tmp_path: Path) -> None:
    check_creates(home, project, tmp_path, 1)


@pytest.mark.slow
def test_a_sync_that_is_killed_loses_nothing(project: Path, tmp_path: Path) -> None:
    check_syncs(tmp_path, project, 2)


@pytest.mark.soak
def test_backups_survive_many_kills(home: Path, project: Path, tmp_path: Path) -> None:
    check_restores(home, project, tmp_path, 60)
    check_creates(tmp_path / "other", project, tmp_path, 40)
    check_syncs(tmp_path, project, 40)
