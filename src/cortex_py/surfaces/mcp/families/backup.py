"""The tools for snapshots and sync."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Self

from pydantic import Field

from .answer import Answer, FamilyTools
from .context import Success

if TYPE_CHECKING:
    from ....parts.backup.sync.sync import PushResult

__all__ = ["BackupTools"]


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


class BackupTools(FamilyTools):
    def create_snapshot(self, project_id: str, description: str | None = None) -> CreateSnapshotAnswer:
        made = self._cortex.backups.create(description or "", project_id=project_id)
        return CreateSnapshotAnswer.from_record(
            made, snapshot_id=made.id, snapshot_path=str(made.path), message="Snapshot created and verified"
        )

    def list_snapshots(self, project_id: str) -> ListSnapshotsAnswer:
        found = self._cortex.backups.snapshots(project_id=project_id)
        count, damaged = len(found), sum(1 for one in found if not one.verified)
        message = f"{count} snapshot{'' if count == 1 else 's'}" + (f", {damaged} of them damaged" if damaged else "")
        return ListSnapshotsAnswer(
            snapshots=[SnapshotItem.from_record(one, snapshot_id=one.id) for one in found],
            total_snapshots=count,
            message=message,
        )

    def restore_snapshot(
        self, project_id: str, snapshot_id: Annotated[str, Field(description="As list_snapshots shows it")]
    ) -> RestoreSnapshotAnswer:
        done = self._cortex.backups.restore(snapshot_id, project_id=project_id)
        return RestoreSnapshotAnswer(
            restored_contexts=done.memories,
            restored_branches=done.branches,
            verified=True,
            safety_snapshot_id=done.safety,
            message="Snapshot restored and verified successfully",
        )

    def sync_to_cloud(self, project_id: str) -> PushAnswer:
        return PushAnswer.from_sent(self._cortex.backups.push(project_id=project_id))

    def sync_from_cloud(self, project_id: str) -> PullAnswer:
        done = self._cortex.backups.pull(project_id=project_id)
        message = "Backup restored from cloud" if done.machines else "Nothing new from other machines"
        if done.conflicts:
            message += f"; {len(done.conflicts)} changed on both sides, and both are kept"
        if done.faults:
            message += "; some of it could not be read, see faults"
        return PullAnswer(
            downloaded_bytes=done.downloaded_bytes,
            decrypted=True,
            restored_contexts=done.memories,
            conflicts=[one.kept.key if one.kept else one.name.key for one in done.conflicts] or None,
            faults=[str(one) for one in done.faults] or None,
            message=message,
        )
