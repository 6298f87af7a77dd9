"""Snapshots, sync, export and import of what a home holds."""
