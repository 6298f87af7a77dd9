"""Calls of the protocol without a handshake, as plain HTTP requests: every one stands alone."""

from __future__ import annotations

import json
from collections.abc import Mapping
from http.client import HTTPConnection, HTTPResponse
from typing import Any
from urllib.parse import urlsplit

_META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


def connection(url: str, timeout: float = 60) -> HTTPConnection:
    place = urlsplit(url)
    return HTTPConnection(place.hostname or "", place.port, timeout=timeout)


def get(url: str, path: str, **headers: str) -> tuple[int, Mapping[str, str], bytes]:
    """Status, headers and body, over a connection of its own."""
    to = connection(url)
    try:
        to.request("GET", path, headers=headers)
        return _read(to.getresponse())
    finally:
        to.close()


def send_call(
    to: HTTPConnection, tool: str, arguments: Mapping[str, Any], request_id: str = "", **headers: str
) -> None:
    meta = _META | ({"request_id": request_id} if request_id else {})
    params = {"name": tool, "arguments": arguments, "_meta": meta}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    usual = {
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": "2026-07-28",
        "Mcp-Method": "tools/call",
        "Mcp-Name": tool,
    }
    to.request("POST", "/mcp", json.dumps(body), {**usual, **headers})


def answer(to: HTTPConnection) -> tuple[int, Mapping[str, str], bytes]:
    return _read(to.getresponse())


def call(url: str, tool: str, arguments: Mapping[str, Any], **headers: str) -> tuple[int, Mapping[str, str], Any]:
    """A call over a connection of its own; the message that answers it."""
    to = connection(url)
    try:
        send_call(to, tool, arguments, **headers)
        status, told, body = answer(to)
        return status, told, message(body)
    finally:
        to.close()


def message(body: bytes) -> Any:
    """The message in a body, whether it came as JSON or as the last event of a stream."""
    events = [line.removeprefix(b"data: ") for line in body.splitlines() if line.startswith(b"data: ")]
    return json.loads(events[-1] if events else body)


def _read(response: HTTPResponse) -> tuple[int, Mapping[str, str], bytes]:
    with response:  # also when the server ends in the middle of its answer
        return response.status, {name.lower(): value for name, value in response.getheaders()}, response.read()
