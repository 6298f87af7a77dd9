"""The tools for the knowledge graph."""
