"""From snapshots and exchanges to what their tools answer."""

from __future__ import annotations

from collections.abc import Sequence

from ..backup.exchange import Received, Sent
from ..backup.snapshots import Restored, Snapshot
from ..clock import iso
from . import backup_answers as answers

__all__ = ["created", "pulled", "pushed", "restored", "snapshots"]


def created(made: Snapshot) -> answers.SnapshotCreated:
    return answers.SnapshotCreated(
        snapshot_id=made.id,
        snapshot_path=str(made.path),
        size_bytes=made.size_bytes,
        verified=made.verified,
        message="Snapshot created and verified",
    )


def snapshots(found: Sequence[Snapshot]) -> answers.Snapshots:
    bad = sum(1 for one in found if not one.verified)
    count = len(found)
    told = f"{count} snapshot{'' if count == 1 else 's'}" + (f", {bad} of them damaged" if bad else "")
    return answers.Snapshots(
        snapshots=[
            answers.ListedSnapshot(
                snapshot_id=one.id,
                created_at=iso(one.created_at),
                description=one.description,
                size_bytes=one.size_bytes,
                verified=one.verified,
                fault=one.fault or None,
            )
            for one in found
        ],
        total_snapshots=count,
        message=told,
    )


def restored(done: Restored) -> answers.SnapshotRestored:
    return answers.SnapshotRestored(
        restored_contexts=done.memories,
        restored_branches=done.branches,
        verified=True,
        safety_snapshot_id=done.safety,
        message="Snapshot restored and verified successfully",
    )


def pushed(done: Sent) -> answers.CloudSynced:
    told = "Backup uploaded successfully" if done.uploaded_bytes else "Nothing had changed since the last upload"
    return answers.CloudSynced(
        uploaded_bytes=done.uploaded_bytes, encrypted=True, cloud_path=done.cloud_path, message=told
    )


def pulled(done: Received) -> answers.CloudRestored:
    told = "Backup restored from cloud" if done.machines else "Nothing new from other machines"
    if done.conflicts:
        told += f"; {len(done.conflicts)} changed on both sides, and both are kept"
    if done.faults:
        told += "; some of it could not be read, see faults"
    return answers.CloudRestored(
        downloaded_bytes=done.downloaded_bytes,
        decrypted=True,
        restored_contexts=done.memories,
        conflicts=[one.kept.key if one.kept else one.name.key for one in done.conflicts] or None,
        faults=[str(one) for one in done.faults] or None,
        message=told,
    )
