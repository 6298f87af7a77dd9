"""The server on standard input and output: a front that answers at once, and the real server behind it."""
