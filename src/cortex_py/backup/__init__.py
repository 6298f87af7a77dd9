"""Backups: what leaves the home encrypted, and how it is read back. Import the module you need."""
