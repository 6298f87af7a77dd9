"""Projects, their branches, and the services that work on them.

`session.py` builds the services of a project and keeps its memories in step with git; `service.py` is
`cortex.contexts`. `project.py` identifies projects, `scan.py` reads a project's files, and `relations.py` computes the
graph of contexts.
"""
