"""Branches as files that people can read and edit: ids, the file format, files on disk, and applying edits."""
