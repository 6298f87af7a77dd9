"""The MCP server.

`families` has the tools, `registry` their table, `server` puts the server together. `stdio` serves one client over
standard input and output, `middleware` is what every request passes, `reference` writes the generated documents.
`sdk_adapter` is the only module that touches internals of FastMCP and the SDK.
"""
