"""Memories: the record, capture, recall and their life."""
