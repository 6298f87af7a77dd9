"""What parameters and fields of the tools for snapshots and sync mean, for the page that `reference` writes."""

from __future__ import annotations

__all__ = ["BACKUP_FIELDS", "BACKUP_PARAMETERS"]

BACKUP_PARAMETERS: dict[tuple[str, str], str] = {
    ("create_snapshot", "description"): "What it is for, up to 2,000 characters",
}

BACKUP_FIELDS: dict[str, str] = {
    "snapshot_id": "Its id",
    "snapshot_path": "Where the file lies",
    "create_snapshot.size_bytes": "Size of the file",
    "create_snapshot.verified": "True: all of it was read again, and each document in it checked",
    "snapshots": "Newest first",
    "snapshots[].created_at": "When it was made, UTC",
    "snapshots[].description": "What was given when it was made",
    "snapshots[].size_bytes": "Size of the file",
    "snapshots[].verified": "Whether all of it was read and found right since the file last changed",
    "snapshots[].fault": "What is wrong with it, if anything",
    "total_snapshots": "How many there are",
    "restored_contexts": "Memories in the snapshot; of a pull, those that were added or changed",
    "restored_branches": "Lines of work in the snapshot",
    "restore_snapshot.verified": "True: what was restored was read back and is what was saved",
    "safety_snapshot_id": "The snapshot of the state before",
    "uploaded_bytes": "Bytes sent; 0 where nothing had changed",
    "encrypted": "True: nothing leaves the machine otherwise",
    "cloud_path": "The object in the target from which this machine's state is read",
    "downloaded_bytes": "Bytes read",
    "decrypted": "True: all of it was decrypted and verified before anything was changed",
    "sync_from_cloud.conflicts": "Memories and prompts changed on both sides: ids of the copies kept",
    "faults": "What other machines brought and could not be read",
}
