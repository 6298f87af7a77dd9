"""Writes the generated files: the snapshot of the front, `docs/tools.md`, and the table in `docs/settings.md`."""
