"""The SDK still has the internals that `mcp/sdk_adapter.py` touches, and nothing else touches them."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import mcp_types
import pytest
from mcp.server.connection import Connection
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server

import cortex_py
from cortex_py.surfaces.mcp.sdk_adapter import HttpEndpoint, connection_of

from clients import connected

SOURCE = Path(cortex_py.__file__).parent
# The one module behind which FastMCP stays touches what mounts a dispatcher into it.
ADAPTERS = {"sdk_adapter.py", "fastmcp_server.py"}


def test_requests_know_their_connection() -> None:
    seen: list[object] = []

    async def complete(context: ServerRequestContext[Any, Any], _: Any) -> mcp_types.EmptyResult:
        seen.append(connection_of(context))
        return mcp_types.EmptyResult()

    server: Server[Any] = Server("guard", on_ping=complete)
    with connected(server, "legacy") as caller:
        for _ in range(2):
            caller.portal.call(caller.client.ping)
    assert isinstance(seen[0], Connection)
    assert seen[0] is seen[1]


def test_the_server_behind_a_path_is_reached() -> None:
    endpoint = HttpEndpoint(Server("guard"), sessions=True, largest_body=123)
    app = endpoint.app("/mcp", [])
    assert not endpoint.is_open

    async def start() -> tuple[bool, object]:
        async with app.router.lifespan_context(app):
            connection = Connection.from_envelope("2026-07-28", None, None)
            return endpoint.is_open, endpoint.runner(connection).on_request

    is_open, on_request = anyio.run(start)
    assert is_open
    assert inspect.iscoroutinefunction(on_request)


def _foreign_internals(path: Path) -> Iterator[str]:
    """Private attributes of objects that are not `self` or `cls`, which the module itself does not define."""
    tree = ast.parse(path.read_text("utf-8"))
    own = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute) and _is_self(node.value)}
    own |= {
        one.target.id for one in ast.walk(tree) if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name)
    }
    for node in ast.walk(tree):
        if not isinstance(node, ast.Attribute) or _is_self(node.value) or ast.unparse(node) == "os._exit":
            continue
        if node.attr.startswith("_") and not node.attr.startswith("__") and node.attr not in own:
            yield f"{path.name}:{node.lineno}: {ast.unparse(node)}"


def _is_self(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id in ("self", "cls")


@pytest.mark.parametrize("package", ["mcp", "http"])
def test_only_the_adapter_touches_internals(package: str) -> None:
    modules = [path for path in (SOURCE / package).rglob("*.py") if path.name not in ADAPTERS]
    assert [found for path in modules for found in _foreign_internals(path)] == []
