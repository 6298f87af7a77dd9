"""Consolidation: merge repeated memories, supersede and enrich them, and report conflicts and other problems."""
