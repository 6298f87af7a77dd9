"""The tools for snapshots and sync."""
