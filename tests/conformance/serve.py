"""`cortex serve`, with the fixtures of the conformance suite beside its own tools.

    python -m conformance.serve --http --port 0

Takes the options of `cortex serve`. Only what is registered differs: command, settings, transport, guards
and middleware are those of the real server.
"""

from __future__ import annotations

import sys
from typing import Any

from fastmcp import FastMCP
from fastmcp.prompts import Prompt
from fastmcp.resources import Resource, ResourceTemplate
from fastmcp.tools import Tool
from mcp.server.context import ServerRequestContext

from cortex_py.app import Cortex
from cortex_py.surfaces.cli import cli
from cortex_py.surfaces.http import server as serving
from cortex_py.surfaces.mcp.server import MemoryServer

from . import content, probes, questions

# What lists, and the field of its answers.
LISTS = {
    "tools/list": "tools",
    "prompts/list": "prompts",
    "resources/list": "resources",
    "resources/templates/list": "resource_templates",
}
REQUESTS = ("tools/call", "prompts/get", "resources/read")


def fixtures() -> tuple[FastMCP[Any], dict[str, dict[str, Any]]]:
    """A server with the fixtures alone, and the schemas of its tools."""
    server: FastMCP[Any] = FastMCP("fixtures", dereference_schemas=False)
    functions = (*content.TOOLS, *questions.TOOLS, *probes.TOOLS)
    tools = [*(Tool.from_function(function, output_schema=None) for function in functions), content.schema_tool()]
    for tool in tools:
        server.add_tool(tool)
    for prompt in (*content.PROMPTS, *questions.PROMPTS):
        server.add_prompt(Prompt.from_function(prompt))
    for uri, read, mime_type in content.RESOURCES:
        server.add_resource(Resource.from_function(read, uri=uri, mime_type=mime_type))
    for uri, read, mime_type in content.TEMPLATES:
        server.add_template(ResourceTemplate.from_function(read, uri_template=uri, mime_type=mime_type))
    return server, {tool.name: tool.parameters for tool in tools}


def with_fixtures(server: MemoryServer) -> MemoryServer:
    """Let the server list and answer the fixtures beside its own tools; the same server."""
    added, schemas = fixtures()
    inner = added._mcp_server
    probes.watch(server)
    for method in (*LISTS, *REQUESTS):
        ours, theirs = server.get_request_handler(method), inner.get_request_handler(method)
        assert ours and theirs

        async def answer(
            ctx: ServerRequestContext[Any, Any],
            params: Any,
            ours: Any = ours.handler,
            theirs: Any = theirs.handler,
            field: str | None = LISTS.get(method),
        ) -> Any:
            if field is not None:
                result = await ours(ctx, params)
                more = getattr(await theirs(ctx, params), field)
                return result.model_copy(update={field: [*getattr(result, field), *more]})
            wanted = getattr(params, "name", None) or params.uri
            known = wanted in schemas or (ctx.method != "tools/call" and wanted.startswith("test"))
            return await (theirs if known else ours)(ctx, params)

        server.add_request_handler(method, ours.params_type, answer)
    server.get_tool_input_schema = schemas.get
    return server


def main() -> None:
    plain = serving.build_server

    def build(cortex: Cortex, **options: Any) -> MemoryServer:
        server = plain(cortex, **options)
        with_fixtures(server)
        return server

    # The application takes its server from this name, whatever command started it.
    serving.build_server = build
    cli(["serve", *sys.argv[1:]])


if __name__ == "__main__":
    main()
