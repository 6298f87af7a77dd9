"""A store that is gone while the home still holds what was made from it: an error that says so, not a new store."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

from cortex_py import Cortex
from cortex_py.core.errors import SnapshotNotFound, StoreMissing
from cortex_py.surfaces.cli import cli

from forking import python_command
from homes import opened
from stub_backend import StubBackend

pytestmark = pytest.mark.sqlite_only


def _lose(home: Path, *, empty: bool) -> None:
    for path in home.glob("cortex.db*"):
        path.unlink()
    if empty:
        (home / "cortex.db").touch()


@pytest.fixture(autouse=True)
def _no_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands run without the real model, which is not what these tests are about."""
    monkeypatch.setattr("cortex_py.app.open_backend", lambda *, settings: StubBackend())


@pytest.mark.parametrize("empty", [True, False])
def test_a_lost_store_beside_snapshots_is_named_and_comes_back_from_one(home: Path, project: Path, empty: bool) -> None:
    with opened(home, project) as cortex:
        cortex.memories.capture("kept in the snapshot")
        snapshot = cortex.backups.create().id
    _lose(home, empty=empty)
    with pytest.raises(StoreMissing, match=rf"snapshots \(1\).*{snapshot}.*cortex snapshot restore.*--new-store"):
        opened(home, project)
    assert (home / "cortex.db").exists() == empty

    words = ["--home", str(home), "--project", str(project)]
    missing = CliRunner().invoke(cli, ["snapshot", "restore", "snapshot_20200101_000000", "--yes", *words])
    assert isinstance(missing.exception, SnapshotNotFound)
    with pytest.raises(StoreMissing):
        opened(home, project)
    done = CliRunner().invoke(cli, ["snapshot", "restore", snapshot, "--yes", *words])
    assert done.exit_code == 0, done.output
    with opened(home, project) as cortex:
        assert [hit.memory.content for hit in cortex.memories.recall().results] == ["kept in the snapshot"]


def test_a_lost_store_beside_branch_files_is_named(home: Path, project: Path) -> None:
    with opened(home, project) as cortex:
        cortex.contexts.create_branch("Old work")
    _lose(home, empty=True)
    with pytest.raises(StoreMissing, match=r"\.md.*--new-store"):
        opened(home, project)
    with Cortex.open(home, project=project, backend=StubBackend(), new_store=True) as cortex:
        assert cortex.contexts.branches() == []
    opened(home, project).close()


def test_a_log_without_its_store_is_named(home: Path, project: Path) -> None:
    opened(home, project).close()
    _lose(home, empty=False)
    (home / "cortex.db-wal").write_bytes(b"x" * 100)
    with pytest.raises(StoreMissing, match=r"cortex\.db-wal"):
        opened(home, project)
    assert (home / "cortex.db-wal").read_bytes() == b"x" * 100


def test_an_empty_file_in_a_new_home_becomes_a_store(home: Path, project: Path) -> None:
    home.mkdir()
    (home / "cortex.db").touch()
    with opened(home, project) as cortex:
        cortex.memories.capture("the first")


def test_processes_that_start_at_once_agree_on_one_store(home: Path, project: Path) -> None:
    """Each writes branch files as soon as it can, while others may still see an empty store."""
    script = f"""
import sys
sys.path.insert(0, {str(Path(__file__).parents[1])!r})
from pathlib import Path
from homes import opened
sys.stdin.readline()
with opened(Path({str(home)!r}), Path({str(project)!r})) as cortex:
    cortex.contexts.create_branch(f"Work {{sys.argv[1]}}")
"""
    starting = [
        subprocess.Popen([*python_command(), "-c", script, str(number)], stdin=subprocess.PIPE, text=True)
        for number in range(4)
    ]
    for process in starting:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    for process in starting:
        process.communicate(timeout=90)
        assert process.returncode == 0
    with opened(home, project) as cortex:
        assert len(cortex.contexts.branches()) == 4
