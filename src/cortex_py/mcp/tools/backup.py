"""The tools for snapshots and sync. Each function only calls the library and shapes the answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from .. import backup_answers as answers
from .. import backup_shapes as shapes

if TYPE_CHECKING:
    from ...app import Cortex

__all__ = ["BackupTools"]


class BackupTools:
    """The tools over one opened Cortex."""

    def __init__(self, cortex: Cortex) -> None:
        self._cortex = cortex

    def create_snapshot(self, project_id: str, description: str | None = None) -> answers.SnapshotCreated:
        return shapes.created(self._cortex.backups.create(description or "", project_id=project_id))

    def list_snapshots(self, project_id: str) -> answers.Snapshots:
        return shapes.snapshots(self._cortex.backups.snapshots(project_id=project_id))

    def restore_snapshot(
        self, project_id: str, snapshot_id: Annotated[str, Field(description="As list_snapshots shows it")]
    ) -> answers.SnapshotRestored:
        return shapes.restored(self._cortex.backups.restore(snapshot_id, project_id=project_id))

    def sync_to_cloud(self, project_id: str) -> answers.CloudSynced:
        return shapes.pushed(self._cortex.backups.push(project_id=project_id))

    def sync_from_cloud(self, project_id: str) -> answers.CloudRestored:
        return shapes.pulled(self._cortex.backups.pull(project_id=project_id))
