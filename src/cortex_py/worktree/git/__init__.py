"""Git repositories: running git safely, branches and HEAD, history and diffs, and the optional checkout hook."""
