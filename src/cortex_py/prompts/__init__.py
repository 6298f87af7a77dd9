"""Saved prompts and templates: kept, found, filled in."""
