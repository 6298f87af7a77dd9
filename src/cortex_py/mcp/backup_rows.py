"""The rows of the tools for snapshots and sync."""

from __future__ import annotations

from .tool_spec import ToolSpec

__all__ = ["BACKUP_TOOLS"]

BACKUP_TOOLS: tuple[ToolSpec, ...] = (
    ToolSpec(
        "create_snapshot",
        "backup",
        "create_snapshot",
        "Make snapshot",
        "Save a whole project in one verified file, for example before a large change.",
        ("backup",),
        errors="cortex",
    ),
    ToolSpec(
        "list_snapshots",
        "backup",
        "list_snapshots",
        "List snapshots",
        "List a project's snapshots, newest first.",
        ("backup",),
        read_only=True,
        idempotent=True,
        errors="cortex",
    ),
    ToolSpec(
        "restore_snapshot",
        "backup",
        "restore_snapshot",
        "Restore snapshot",
        "Put a project back to a snapshot, all at once; the present state is saved first.",
        ("backup",),
        destructive=True,
        errors="cortex",
    ),
    ToolSpec(
        "sync_to_cloud",
        "backup",
        "sync_to_cloud",
        "Push to cloud",
        "Bring what changed to the configured target, encrypted end to end.",
        ("backup",),
        idempotent=True,
        reaches_out=True,
        errors="cortex",
    ),
    ToolSpec(
        "sync_from_cloud",
        "backup",
        "sync_from_cloud",
        "Pull from cloud",
        "Merge what other machines brought to the configured target; rival changes are both kept.",
        ("backup",),
        idempotent=True,
        reaches_out=True,
        errors="cortex",
    ),
)
