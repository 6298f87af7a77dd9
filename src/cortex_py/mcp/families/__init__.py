"""The tools, one folder per family.

A family has `spec.toml` (its rows of the tool table), `models.py` (what its tools answer), `tools.py` (the functions,
which call the library and build the answers) and `reference.toml` (the meaning of parameters and fields, for
`docs/reference/tools.md`). To add a tool, edit those files of its family, then run `make snapshot reference`.
"""
