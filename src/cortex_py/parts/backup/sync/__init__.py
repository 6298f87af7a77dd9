"""Sync between machines: sealed packs and heads in a target, merged into each home."""
