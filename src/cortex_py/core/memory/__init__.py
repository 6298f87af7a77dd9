"""Memories: capture, recall, labels, comparison and consolidation; `service.Memories` is the entry point."""
