"""The peer of the server benchmarks: FastMCP with one tool that does nothing, on stdio or on a port."""

import sys

from fastmcp import FastMCP

server = FastMCP("trivial")


@server.tool
def echo(text: str) -> dict[str, str]:
    return {"text": text}


if __name__ == "__main__":
    if len(sys.argv) > 1:
        # Neither server speaks WebSocket, and the package for it is not installed.
        options = {"host": "127.0.0.1", "port": int(sys.argv[1]), "uvicorn_config": {"ws": "none"}}
        server.run(transport="http", show_banner=False, log_level="ERROR", **options)
    else:
        server.run(show_banner=False, log_level="ERROR")
