"""Reads a project's folder: its git repository, its files, and what those files say.

`git` asks the repository, `files` lists and selects files, `code` parses source, `formats` reads configuration files
with line numbers, `manifests` reads dependencies and versions, `test_reports` reads the results of test runs.
"""
