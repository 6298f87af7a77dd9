"""Commands for what is saved: prompts and templates, exports, snapshots, sync."""
