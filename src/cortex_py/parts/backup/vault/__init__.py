"""Encrypted vault files: the header with its passphrase slots, key derivation, and the passphrase's sources."""
