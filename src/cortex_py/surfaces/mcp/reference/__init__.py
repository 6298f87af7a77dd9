"""Writes the generated files: the snapshot of the front, and the pages of tools, settings and errors."""
