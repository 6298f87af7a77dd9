"""Readers of what other programs keep: conversations, instructions, notes, tables. `registry` chooses among them."""
