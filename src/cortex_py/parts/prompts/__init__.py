"""Saved prompts and templates: checked, stored, listed, filled in and exchanged as files."""
