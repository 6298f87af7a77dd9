"""Where the work happens: the repository, the project, and the lines of work in it."""
