"""What a project folder contains, without secrets: read from files and git, kept in SQLite, looked up by name."""
