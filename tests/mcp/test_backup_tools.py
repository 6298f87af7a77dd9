"""The published document of the tools for snapshots and sync, replayed, and how they fail."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cortex_py import Cortex
from cortex_py.surfaces.mcp.registry import family_tools
from cortex_py.surfaces.mcp.server import build_server
from documented_shapes import differences

from clients import MODES, TRANSPORTS, Caller, connected, served
from stub_backend import StubBackend

ISO = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
DESCRIPTION = "Before major refactor"
ANSWERS: dict[str, dict[str, Any]] = {
    "create_snapshot": {
        "success": True,
        "snapshot_id": "snapshot_20260102_123456",
        "snapshot_path": "~/.cortex/backups/abc123/snapshot_20260102_123456.tar.gz",
        "size_bytes": 1048576,
        "verified": True,
        "message": "Snapshot created and verified",
    },
    "list_snapshots": {
        "success": True,
        "snapshots": [
            {
                "snapshot_id": "snapshot_20260102_123456",
                "created_at": "2026-01-02T12:34:56Z",
                "description": DESCRIPTION,
                "size_bytes": 1048576,
                "verified": True,
            }
        ],
        "total_snapshots": 5,
    },
    "restore_snapshot": {
        "success": True,
        "restored_contexts": 15,
        "restored_branches": 3,
        "verified": True,
        "message": "Snapshot restored and verified successfully",
    },
    "sync_to_cloud": {
        "success": True,
        "uploaded_bytes": 2097152,
        "encrypted": True,
        "cloud_path": "cortex-backups/abc123def456_20260102.enc",
        "message": "Backup uploaded successfully",
    },
    "sync_from_cloud": {
        "success": True,
        "downloaded_bytes": 2097152,
        "decrypted": True,
        "restored_contexts": 20,
        "message": "Backup restored from cloud",
    },
}


@pytest.fixture
def variables(tmp_path: Path) -> dict[str, str]:
    return {"CORTEX_CLOUD_URL": f"file://{tmp_path}/cloud", "CORTEX_PASSPHRASE": "correct horse battery staple"}


@pytest.fixture(params=TRANSPORTS)
def client(request: pytest.FixtureRequest, home: Path, project: Path, variables: dict[str, str]) -> Iterator[Caller]:
    mode = MODES[TRANSPORTS.index(request.param) % len(MODES)]
    with served(request.param, mode, home, project, **variables) as caller:
        yield caller


def _opened(client: Caller, project: Path) -> tuple[str, str]:
    """A project with one line of work and one context in it."""
    project_id = client.call("initialize_context", project_path=str(project), mode="none")["project_id"]
    branch = client.call("create_branch", project_id=project_id, branch_topic="Sign in")["branch_id"]
    client.call("update_memory", project_id=project_id, branch_id=branch, content="We sign tokens", role="user")
    return project_id, branch


def test_the_document_holds(
    client: Caller, home: Path, project: Path, tmp_path: Path, variables: dict[str, str]
) -> None:
    project_id, branch = _opened(client, project)
    told = {
        "create_snapshot": client.call("create_snapshot", project_id=project_id, description=DESCRIPTION),
        "list_snapshots": client.call("list_snapshots", project_id=project_id),
    }
    made = told["create_snapshot"]
    assert re.fullmatch(r"snapshot_\d{8}_\d{6}", made["snapshot_id"])
    assert made["snapshot_path"] == str(home / "backups" / project_id / f"{made['snapshot_id']}.tar.gz")
    assert Path(made["snapshot_path"]).stat().st_size == made["size_bytes"]
    (listed,) = told["list_snapshots"]["snapshots"]
    assert (listed["snapshot_id"], listed["description"]) == (made["snapshot_id"], DESCRIPTION)
    assert ISO.fullmatch(listed["created_at"])

    client.call("update_memory", project_id=project_id, branch_id=branch, content="And forget it", role="user")
    told["restore_snapshot"] = client.call("restore_snapshot", project_id=project_id, snapshot_id=made["snapshot_id"])
    assert (told["restore_snapshot"]["restored_contexts"], told["restore_snapshot"]["restored_branches"]) == (1, 1)
    summary = client.call("get_active_summary", project_id=project_id, branch_id=branch)
    assert "We sign tokens" in summary["content"] and "forget" not in summary["content"]

    told["sync_to_cloud"] = client.call("sync_to_cloud", project_id=project_id)
    assert re.fullmatch(r"cortex-backups/[0-9a-f]+_\d{8}\.enc", told["sync_to_cloud"]["cloud_path"])
    assert (tmp_path / "cloud" / told["sync_to_cloud"]["cloud_path"]).is_file()
    with served("stdio", MODES[0], tmp_path / "other", project, **variables) as other:
        other.call("initialize_context", project_path=str(project), mode="none")
        told["sync_from_cloud"] = other.call("sync_from_cloud", project_id=project_id)
        (hit,) = other.call("subcog_recall", query="tokens")["results"]
        assert hit["content"] == "We sign tokens"
    assert told["sync_from_cloud"]["restored_contexts"] == 1
    assert told.keys() == {spec.name for spec in family_tools("backup")} == ANSWERS.keys()
    for tool, answer in ANSWERS.items():
        assert differences(answer, told[tool]) == [], tool
        assert told[tool]["message"] == answer.get("message", told[tool]["message"])


@pytest.mark.parametrize(
    ("tool", "arguments", "code"),
    [
        ("create_snapshot", {"project_id": "abc123def456"}, "PROJECT_NOT_FOUND"),
        ("list_snapshots", {"project_id": "../../x"}, "PROJECT_NOT_FOUND"),
        ("sync_to_cloud", {"project_id": "abc123def456"}, "PROJECT_NOT_FOUND"),
        ("sync_from_cloud", {"project_id": "abc123def456"}, "PROJECT_NOT_FOUND"),
        ("create_snapshot", {"description": "x" * 3_000}, "INVALID_PARAMS"),
        ("create_snapshot", {"description": 7}, "INVALID_PARAMS"),
        ("restore_snapshot", {}, "INVALID_PARAMS"),
        ("restore_snapshot", {"snapshot_id": "../../x"}, "INVALID_PARAMS"),
        ("restore_snapshot", {"snapshot_id": "snapshot_20250101_000000"}, "SNAPSHOT_NOT_FOUND"),
        ("sync_from_cloud", {}, "STORAGE_ERROR"),  # nobody has pushed
        ("sync_to_cloud", {"passphrase": "given here"}, "INVALID_PARAMS"),
    ],
)
def test_what_cannot_be_done_is_told(
    home: Path, project: Path, variables: dict[str, str], tool: str, arguments: dict[str, Any], code: str
) -> None:
    settings = {"cloud_url": variables["CORTEX_CLOUD_URL"], "passphrase": variables["CORTEX_PASSPHRASE"]}
    with (
        Cortex.open(home, project=project, backend=StubBackend(), **settings) as cortex,
        connected(build_server(cortex), MODES[0]) as caller,
    ):
        told = caller.failed(tool, **{"project_id": cortex.project.id, **arguments})
        assert told.keys() == {"success", "error", "error_code", "details"}
        assert (told["success"], told["error_code"]) == (False, code)


@pytest.mark.parametrize(
    ("settings", "code", "named"),
    [
        ({"cloud_url": "http://127.0.0.1:9/dav", "passphrase": "long enough"}, "NETWORK_ERROR", ""),
        ({"passphrase": "long enough"}, "INVALID_PARAMS", "CORTEX_CLOUD_URL"),
        ({"cloud_url": "/nowhere/at/all/cloud"}, "INVALID_PARAMS", "CORTEX_PASSPHRASE"),
        ({"cloud_url": "/nowhere/at/all/cloud", "passphrase": "long enough"}, "NETWORK_ERROR", ""),
    ],
)
def test_a_target_that_cannot_be_used_is_told_with_what_to_do(
    home: Path, project: Path, settings: dict[str, Any], code: str, named: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cortex_py.parts.backup.targets.target.FIRST_PAUSE", 0.01)
    with (
        Cortex.open(home, project=project, backend=StubBackend(), **settings) as cortex,
        connected(build_server(cortex), MODES[0]) as caller,
    ):
        cortex.memories.capture("something")
        for tool in ("sync_to_cloud", "sync_from_cloud"):
            told = caller.failed(tool, project_id=cortex.project.id)
            assert told["error_code"] == code, told
            assert named in told["details"]


def test_the_days_number_of_calls_is_told(home: Path, project: Path, variables: dict[str, str]) -> None:
    settings = {"cloud_url": variables["CORTEX_CLOUD_URL"], "passphrase": variables["CORTEX_PASSPHRASE"]}
    with (
        Cortex.open(home, project=project, backend=StubBackend(), **settings) as cortex,
        connected(build_server(cortex), MODES[0]) as caller,
    ):
        with cortex._store.database.write() as session:
            for _ in range(100):
                cortex._store.replicas.count(session, f"{cortex._clock.now():%Y-%m-%d}", "push")
        told = caller.failed("sync_to_cloud", project_id=cortex.project.id)
        assert told["error_code"] == "RATE_LIMITED"
