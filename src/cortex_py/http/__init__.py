"""HTTP: the protocol on a port, with its guards, and plain pages beside it."""
