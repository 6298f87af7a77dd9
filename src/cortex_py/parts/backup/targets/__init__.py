"""Targets of sync: folders, buckets and WebDAV servers behind one protocol."""
