"""The PostgreSQL engine: connections, dialect, row-level security, text and vector indexes."""
