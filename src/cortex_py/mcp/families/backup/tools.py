"""The functions of the tools for snapshots and sync. Each calls the library and builds the answer."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from ..tool import FamilyTools
from .models import (
    CreateSnapshotAnswer,
    ListSnapshotsAnswer,
    PullAnswer,
    PushAnswer,
    RestoreSnapshotAnswer,
    SnapshotItem,
)

__all__ = ["BackupTools"]


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
