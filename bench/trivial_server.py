"""The peer of the server benchmarks: FastMCP with one tool that does nothing, on stdio or on a port."""

import sys

from fastmcp import FastMCP

server = FastMCP("trivial")


@server.tool
def echo(text: str) -> dict[str, str]:
    return {"text": text}


if __name__ == "__main__":
    if len(sys.argv) > 1:
        server.run(transport="http", host="127.0.0.1", port=int(sys.argv[1]), show_banner=False, log_level="ERROR")
    else:
        server.run(show_banner=False, log_level="ERROR")
