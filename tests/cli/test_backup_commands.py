"""`cortex snapshot` and `cortex sync`, as a person and as a script use them."""

from __future__ import annotations

from pathlib import Path

import pytest

from cortex_py import Cortex

from shell import Shell
from stub_backend import StubBackend
from terminal import at_terminal


@pytest.fixture
def shell(home: Path, project: Path, tmp_path: Path) -> Shell:
    variables = {"CORTEX_CLOUD_URL": str(tmp_path / "cloud"), "CORTEX_PASSPHRASE": "correct horse battery staple"}
    return Shell(home, project, **variables)


@pytest.mark.slow
def test_a_project_is_saved_shown_checked_and_put_back(shell: Shell) -> None:
    assert "There is no snapshot yet." in shell.run("snapshot", "list").stderr
    shell.text("capture", "we use PostgreSQL")
    made = shell.json("snapshot", "create", "before the change")
    assert made["verified"] is True
    assert made["documents"]["memory"] == 1
    shell.text("capture", "we use Redis too")
    (listed,) = shell.json("snapshot", "list")
    assert (listed["snapshot_id"], listed["description"]) == (made["snapshot_id"], "before the change")
    assert "before the change" in shell.text("snapshot", "list")
    assert "is whole" in shell.text("snapshot", "verify")
    refused = shell.run("snapshot", "restore", made["snapshot_id"], given="y\n")
    assert (refused.returncode, "add --yes" in refused.stderr) == (2, True)
    assert at_terminal(shell, "snapshot", "restore", made["snapshot_id"], keys="n\n").code == 130
    assert "Redis" in shell.text("recall", "what do we use")
    done = shell.json("snapshot", "restore", made["snapshot_id"], "--yes")
    assert done["memories"] == 1
    assert "Redis" not in shell.text("recall", "what do we use")
    assert "Restored 2 memories" in shell.text("snapshot", "restore", done["safety"], "--yes")
    assert "Redis" in shell.text("recall", "what do we use")


def test_old_snapshots_go_and_those_made_by_hand_stay(shell: Shell) -> None:
    shell.text("capture", "we use PostgreSQL")
    made = shell.json("snapshot", "create")["snapshot_id"]
    safety = [shell.json("snapshot", "restore", made, "--yes")["safety"] for _ in range(3)]
    gone = shell.json("snapshot", "prune", "--hourly", "0", "--daily", "0", "--weekly", "0")["removed"]
    assert set(gone) == set(safety[:2])
    assert {one["snapshot_id"] for one in shell.json("snapshot", "list")} == {made, safety[2]}
    assert "Nothing to remove." in shell.text("snapshot", "prune")


def test_a_damaged_or_unknown_snapshot_ends_with_its_code(shell: Shell) -> None:
    shell.text("capture", "we use PostgreSQL")
    made = shell.json("snapshot", "create")
    path = Path(made["path"])
    path.write_bytes(path.read_bytes()[:-3])
    assert shell.run("snapshot", "verify", made["snapshot_id"]).returncode == 7
    assert shell.run("snapshot", "restore", made["snapshot_id"], "--yes").returncode == 7
    assert shell.run("snapshot", "restore", "snapshot_20250101_000000", "--yes").returncode == 4
    assert shell.run("snapshot", "restore", "../../x", "--yes").returncode == 2
    assert shell.run("doctor").returncode == 7


@pytest.mark.slow
def test_two_machines_share_through_a_folder(shell: Shell, tmp_path: Path) -> None:
    shell.text("capture", "we use PostgreSQL")
    assert "changes" in shell.text("sync", "push")
    assert "Nothing had changed" in shell.text("sync", "push")
    other = Shell(tmp_path / "other", shell.project, **shell.variables | {"CORTEX_HOME": str(tmp_path / "other")})
    told = other.json("sync", "status")
    assert [one["merged"] for one in told["domains"]["project"]["machines"]] == [False]
    assert "to be pulled" in other.text("sync", "status")
    assert other.json("sync", "pull")["memories"] == 1
    assert "PostgreSQL" in other.text("recall", "what do we use")
    shell.text("capture", "and Redis")
    assert "to be pushed" in shell.text("sync", "status")


def test_what_cannot_be_synced_ends_with_its_code(home: Path, project: Path, tmp_path: Path) -> None:
    assert Shell(home, project).run("sync", "push").returncode == 2
    away = {"CORTEX_CLOUD_URL": str(tmp_path / "not" / "mounted"), "CORTEX_PASSPHRASE": "long enough"}
    gone = Shell(home, project, **away)
    gone.text("capture", "something")
    told = gone.run("sync", "push")
    assert told.returncode == 14
    assert "long enough" not in told.stderr + told.stdout


@pytest.mark.slow
def test_a_passphrase_is_changed_from_standard_input_and_never_shown(shell: Shell, tmp_path: Path) -> None:
    shell.text("capture", "we use PostgreSQL")
    shell.text("sync", "push")
    told = shell.text("sync", "passphrase", "--change", given="an entirely new one\n")
    assert "entirely" not in told
    assert shell.run("sync", "pull").returncode == 7
    changed = Shell(shell.home, shell.project, **shell.variables | {"CORTEX_PASSPHRASE": "an entirely new one"})
    assert changed.run("sync", "pull").returncode == 0
    assert shell.run("sync", "passphrase", "--change", given="\n").returncode == 2


def test_a_server_makes_a_snapshot_when_one_is_due(home: Path, project: Path) -> None:
    with Cortex.open(home, project=project, backend=StubBackend()) as cortex:
        cortex.memories.capture("something to keep")
        cortex.upkeep()
        (made,) = cortex.backups.snapshots()
        assert made.kind == "automatic"
        cortex.upkeep()
        assert len(cortex.backups.snapshots()) == 1
    assert (home / "backups").stat().st_mode & 0o077 == 0
