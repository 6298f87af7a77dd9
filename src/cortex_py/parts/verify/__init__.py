"""Checks the claims of an answer against the files, the history and the memories of a project.

`service` is the entry point. `claims` reads the claims of a text, `index` keeps what the project contains, `checks`
compares the two, `judges` turns checks into a probability, and `contradictions` finds claims that exclude each other.
"""
