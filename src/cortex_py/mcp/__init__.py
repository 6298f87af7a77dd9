"""The MCP server.

`families` has the tools, `registry` their table, `server` puts the server together. `stdio` serves one client over
standard input and output, `middleware` is what every request passes, `reference` writes the generated documents.
`sdk_adapter` is the only module that touches internals of FastMCP and the SDK.
"""

import os

# FastMCP takes settings from a file `.env` in the current folder, which may be a stranger's repository: whatever it
# said would hold for the server, and a pipe of that name would stop it.
os.environ.setdefault("FASTMCP_ENV_FILE", os.devnull)
