"""Capture: check, screen, chunk, index and store records, from callers, from files and from documents."""
