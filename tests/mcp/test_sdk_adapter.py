"""FastMCP and the SDK still have the internals that `mcp/sdk_adapter.py` touches, and nothing else touches them."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import mcp_types
import pytest
from fastmcp import FastMCP
from fastmcp.client import Client
from fastmcp.server.providers import Provider
from mcp.server.connection import Connection
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from starlette.applications import Starlette
from starlette.routing import Route

import cortex_py
from cortex_py.mcp import sdk_adapter

SOURCE = Path(cortex_py.__file__).parent


@pytest.fixture
def server() -> FastMCP[Any]:
    server: FastMCP[Any] = FastMCP("guard")

    @server.tool
    def hello() -> str:
        return "hello"

    return server


@pytest.mark.parametrize(
    ("owner", "name"),
    [
        ("server", "_mcp_server"),
        ("server", "_lifespan_manager"),
        ("server", "_on_list_prompts"),
        ("server", "_state_store"),
        ("inner", "middleware"),
        ("inner", "get_tool_input_schema"),
        ("inner", "add_request_handler"),
        ("inner", "create_initialization_options"),
        ("inner", "run"),
    ],
)
def test_an_internal_is_still_there(server: FastMCP[Any], owner: str, name: str) -> None:
    place = server if owner == "server" else server._mcp_server
    assert hasattr(place, name), (
        f"{type(place).__module__}.{type(place).__name__} no longer has {name}: see sdk_adapter"
    )


@pytest.mark.parametrize("name", ["_list_prompts", "_get_prompt", "get_tasks"])
def test_a_provider_still_has_the_methods_that_are_overridden(name: str) -> None:
    assert inspect.iscoroutinefunction(getattr(Provider, name, None)), f"fastmcp's Provider no longer has {name}"


def test_a_middleware_of_the_sdk_sees_requests_that_the_framework_does_not(server: FastMCP[Any]) -> None:
    seen: list[str] = []

    class Recorder:
        async def __call__(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
            seen.append(ctx.method)
            return await call_next(ctx)

    async def call() -> None:
        async with Client(server) as client:
            await client.list_tools()

    sdk_adapter.add_sdk_middleware(server, Recorder())
    anyio.run(call)
    assert "tools/list" in seen


@pytest.mark.filterwarnings("ignore:resources/subscribe is removed")
def test_handlers_are_added_and_requests_know_their_connection(server: FastMCP[Any]) -> None:
    seen: list[object] = []

    async def subscribe(context: ServerRequestContext[Any, Any], _: Any) -> mcp_types.EmptyResult:
        seen.append(sdk_adapter.connection_of(context))
        return mcp_types.EmptyResult()

    async def call() -> None:
        async with Client(server, mode="legacy") as client:
            for _ in range(2):
                await client.session.subscribe_resource("subcog://topics")

    sdk_adapter.add_request_handler(server, "resources/subscribe", mcp_types.SubscribeRequestParams, subscribe)
    anyio.run(call)
    assert isinstance(seen[0], Connection)
    assert seen[0] is seen[1]


def test_the_list_of_prompts_and_the_schemas_are_reached(server: FastMCP[Any]) -> None:
    assert inspect.iscoroutinefunction(sdk_adapter.prompt_lister(server))
    repeated = {"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}}
    sdk_adapter.set_tool_schemas(server, {"hello": repeated, "plain": {"type": "object"}})
    look_up = server._mcp_server.get_tool_input_schema
    assert look_up is not None
    assert look_up("hello") == repeated
    assert look_up("plain") == {}, "what has no argument in a header need not be searched for one at each call"


def test_the_server_behind_a_path_is_reached(server: FastMCP[Any]) -> None:
    app = server.http_app(path="/mcp")
    endpoint = sdk_adapter.HttpEndpoint(server, app, "/mcp")
    assert not endpoint.is_open

    async def start() -> tuple[bool, object]:
        async with app.router.lifespan_context(app):
            connection = Connection.from_envelope("2026-07-28", None, None)
            return endpoint.is_open, endpoint.runner(connection).on_request

    is_open, on_request = anyio.run(start)
    assert is_open
    assert inspect.iscoroutinefunction(on_request)
    assert sdk_adapter.server_info(server)["name"] == "guard"


def test_the_bound_on_bodies_can_be_set(server: FastMCP[Any]) -> None:
    app = server.http_app(path="/mcp")
    sdk_adapter.set_largest_body(app, "/mcp", 123)

    async def start() -> int:
        async with app.router.lifespan_context(app):
            endpoint: Any = next(one.endpoint for one in app.routes if isinstance(one, Route) and one.path == "/mcp")
            return int(endpoint.session_manager.asgi_app.max_body_size)

    assert isinstance(app, Starlette)
    assert anyio.run(start) == 123


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
    modules = [path for path in (SOURCE / package).rglob("*.py") if path.name != "sdk_adapter.py"]
    assert [found for path in modules for found in _foreign_internals(path)] == []
