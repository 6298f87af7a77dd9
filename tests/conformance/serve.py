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

from cortex_py.app import Cortex
from cortex_py.cli import cli
from cortex_py.http import server as serving
from cortex_py.mcp.server import MemoryServer

from . import content, probes, questions


def with_fixtures(server: FastMCP[Any]) -> FastMCP[Any]:
    """Register the fixtures; the same server."""
    functions = (*content.TOOLS, *questions.TOOLS, *probes.TOOLS)
    tools = [*(Tool.from_function(function, output_schema=None) for function in functions), content.schema_tool()]
    for tool in tools:
        server.add_tool(tool)
    _know_schemas(server, tools)
    for prompt in (*content.PROMPTS, *questions.PROMPTS):
        server.add_prompt(Prompt.from_function(prompt))
    for uri, read, mime_type in content.RESOURCES:
        server.add_resource(Resource.from_function(read, uri=uri, mime_type=mime_type))
    for uri, read, mime_type in content.TEMPLATES:
        server.add_template(ResourceTemplate.from_function(read, uri_template=uri, mime_type=mime_type))
    return server


def _know_schemas(server: FastMCP[Any], tools: list[Tool]) -> None:
    """Let the server find the schemas of the fixtures where it looks up those of its own tools."""
    known = server._mcp_server.get_tool_input_schema
    added = {tool.name: tool.parameters for tool in tools}
    if known is not None:
        server._mcp_server.get_tool_input_schema = lambda name: known(name) or added.get(name)


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
