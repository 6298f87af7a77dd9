"""The knowledge graph: who and what memories speak of, and how that hangs together."""
