"""The folder a project lives in: git, files, and the syntax inside them. Knows no memories, and writes but the hook."""
