"""Snapshots: a space saved in one verified archive, restored in one transaction, and pruned over time."""
