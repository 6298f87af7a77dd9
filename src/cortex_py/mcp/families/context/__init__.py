"""The tools for projects, branches of work, contexts and suggestions."""
