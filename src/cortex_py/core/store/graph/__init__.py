"""The knowledge graph: entities, mentions, relationships, and merges that can be undone."""
