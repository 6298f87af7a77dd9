"""Writes the snapshot: the answers of a real server that the front gives in its place.

Run by `make snapshot` whenever a tool, a resource or the version changes.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
from pathlib import Path
from typing import Any

import anyio
from mcp.server.lowlevel import Server

from ....app import Cortex
from ....version import __version__
from ..registry import TOOLSETS
from ..server import build_server
from ..stdio.front import HANDSHAKE_VERSIONS, LISTS, MODERN_VERSIONS, SNAPSHOT_FILE, envelope
from ..stdio.streams import MessageServer

__all__ = ["EVERY_SET", "ask", "render", "requests_of"]

Request = dict[str, Any]

# What lists every tool, also those that must be asked for.
EVERY_SET = ",".join(("all", *TOOLSETS))


def requests_of(version: str) -> list[Request]:
    """The first requests of a client that speaks this version, in order."""
    if version in MODERN_VERSIONS:
        calls = [(method, envelope(version)) for method in ("server/discover", *LISTS)]
    else:
        hello = {"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "client", "version": "1"}}
        calls = [("initialize", hello), *((method, {}) for method in LISTS)]
    return [
        {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        for number, (method, params) in enumerate(calls)
    ]


async def ask(server: Server[Any], requests: list[Request]) -> dict[str, Any]:
    """The server's results by method, over the same streams that a client's requests take."""
    answers: dict[Any, Any] = {}
    done = asyncio.Event()

    def answered(line: bytes, id: str | int | None) -> None:
        if id is not None:
            answers[id] = json.loads(line)
        if len(answers) == len(requests):
            done.set()

    streams = MessageServer(server, answered)
    async with anyio.create_task_group() as group:
        group.start_soon(streams.run)
        for request in requests:
            streams.feed(request)
        await done.wait()
        streams.end()
    return {request["method"]: answers[request["id"]]["result"] for request in requests}


async def render(server: Server[Any]) -> dict[str, Any]:
    """The content of the snapshot. Equal results are kept once and named by their place."""
    results: list[Any] = []
    places: dict[str, dict[str, int]] = {}
    for version in (*HANDSHAKE_VERSIONS, *MODERN_VERSIONS):
        places[version] = {}
        for method, result in (await ask(server, requests_of(version))).items():
            if result not in results:
                results.append(result)
            places[version][method] = results.index(result)
    return {"version": __version__, "places": places, "results": results}


def main() -> None:
    with (
        tempfile.TemporaryDirectory() as folder,
        Cortex.open(Path(folder) / "home", project=folder, toolsets=EVERY_SET) as cortex,
    ):
        content = anyio.run(render, build_server(cortex))
    SNAPSHOT_FILE.write_text(json.dumps(content, ensure_ascii=False, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
