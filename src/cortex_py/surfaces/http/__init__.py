"""The server over HTTP: the protocol at `/mcp`, and plain pages beside it.

`server` builds and runs the application; `connections` bounds connections, `middleware` and `callers` guard requests,
`access` says who may reach what. The pages: `monitoring` and `embeddings`.
"""
