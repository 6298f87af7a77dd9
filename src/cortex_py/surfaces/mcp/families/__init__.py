"""The tools, by family.

A family is a module (what its tools answer, and the functions that call the library), its rows of the tool table
(`FAMILY.toml`), and the meaning of its parameters and fields (`FAMILY.reference.toml`, for
`docs/reference/tools.md`). To add a tool, edit the three files of its family, then run `make snapshot reference`.
"""
