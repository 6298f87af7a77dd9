"""What the tools for snapshots and sync answer, field by field as the published document shows it."""

from __future__ import annotations

from .answers import Answer
from .context_answers import Success

__all__ = ["CloudRestored", "CloudSynced", "ListedSnapshot", "SnapshotCreated", "SnapshotRestored", "Snapshots"]


class SnapshotCreated(Success):
    snapshot_id: str
    snapshot_path: str
    size_bytes: int
    verified: bool


class ListedSnapshot(Answer):
    snapshot_id: str
    created_at: str
    description: str
    size_bytes: int
    verified: bool
    fault: str | None = None


class Snapshots(Success):
    snapshots: list[ListedSnapshot]
    total_snapshots: int


class SnapshotRestored(Success):
    restored_contexts: int
    restored_branches: int
    verified: bool
    safety_snapshot_id: str


class CloudSynced(Success):
    uploaded_bytes: int
    encrypted: bool
    cloud_path: str


class CloudRestored(Success):
    downloaded_bytes: int
    decrypted: bool
    restored_contexts: int
    conflicts: list[str] | None = None
    faults: list[str] | None = None
