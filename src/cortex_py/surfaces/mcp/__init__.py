"""The MCP server.

`families` has the tools, `registry` their table, `calls` runs them, `middleware` is what every request passes, and
`server` puts the SDK's server together. `stdio` serves one client over standard input and output, `reference` writes
the generated documents. `sdk_adapter` is the only module that touches internals of the SDK.
"""
