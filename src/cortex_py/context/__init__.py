"""Projects, their branches, and the services that work on them.

`session.py` builds the services of a project and connects them; `service.py` is `cortex.contexts`. `project.py`
identifies projects, `git_follower.py` keeps memories in step with git, `scan.py` reads a project's files, and
`relations.py` computes the graph of contexts.
"""
