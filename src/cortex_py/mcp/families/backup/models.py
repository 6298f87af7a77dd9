"""What the tools for snapshots and sync answer, field by field as the published document shows it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from ..answer import Answer
from ..context.models import Success

if TYPE_CHECKING:
    from ....backup.sync.sync import PushResult

__all__ = [
    "CreateSnapshotAnswer", "ListSnapshotsAnswer", "PullAnswer", "PushAnswer", "RestoreSnapshotAnswer", "SnapshotItem",
]  # fmt: skip


class CreateSnapshotAnswer(Success):
    snapshot_id: str
    snapshot_path: str
    size_bytes: int
    verified: bool


class SnapshotItem(Answer):
    snapshot_id: str
    created_at: str
    description: str
    size_bytes: int
    verified: bool
    fault: str | None = None


class ListSnapshotsAnswer(Success):
    snapshots: list[SnapshotItem]
    total_snapshots: int


class RestoreSnapshotAnswer(Success):
    restored_contexts: int
    restored_branches: int
    verified: bool
    safety_snapshot_id: str


class PushAnswer(Success):
    uploaded_bytes: int
    encrypted: bool
    cloud_path: str

    @classmethod
    def from_sent(cls, sent: PushResult) -> Self:
        message = "Backup uploaded successfully" if sent.uploaded_bytes else "Nothing had changed since the last upload"
        if sent.stayed:
            message += f"; not uploaded, for personal data: {sent.stayed}"
        return cls.from_record(sent, encrypted=True, message=message)


class PullAnswer(Success):
    downloaded_bytes: int
    decrypted: bool
    restored_contexts: int
    conflicts: list[str] | None = None
    faults: list[str] | None = None
