"""A space as portable documents, for snapshots, sync, export and a move to another engine."""
