"""`cortex serve`: the memory as an MCP server, on standard input and output or over HTTP."""

from __future__ import annotations

import os
import sys
import time
from typing import TYPE_CHECKING, Any

import click

from .options import command, command_session
from .output import say

if TYPE_CHECKING:
    from ..app import Cortex
    from ..config import Settings

__all__ = ["serve_command"]

_PAUSE_SECONDS = 0.5


@command("serve")
@click.option("--http", is_flag=True, help="Serve over HTTP instead of standard input and output.")
@click.option("--host", default="127.0.0.1", show_default=True)
@click.option("--port", type=click.IntRange(0, 65535), default=8765, show_default=True, help="0 picks a free one.")
@click.option("--toolsets", help="Only these sets of tools: core, context, memory, …, or all.")
@click.option("--tools", help="Only these tools, or these beside the toolsets.")
@click.option("--exclude-tools", help="Not these tools.")
@click.option("--read-only", is_flag=True, default=None, help="Only tools that change nothing.")
@click.option("--portable-names", is_flag=True, default=None, help="List tool names without dots.")
@click.pass_context
def serve_command(context: click.Context, /, http: bool, host: str, port: int, **tools: Any) -> None:
    """Serve the memory to MCP clients until they leave, or until interrupted.

    The project is that of --project, else CLAUDE_PROJECT_DIR, else the current folder.
    """
    session = command_session(context)
    if session.as_json:
        raise click.UsageError("serve has no JSON form. Leave out --json; clients are answered in JSON anyway.")
    home = session.home
    folder = session.project or os.environ.get("CLAUDE_PROJECT_DIR") or "."
    if session.verbose:
        tools["log_level"] = "debug"
    if not http:
        from ..mcp.stdio.serve import serve_stdio

        sys.exit(serve_stdio(home, folder, tools))
    from ..config import load_settings
    from ..http.access import check_exposure

    settings = load_settings(home, **tools)
    check_exposure(host, settings.token, settings.auth)
    from ..hooks.warm import serving_hooks
    from ..http.server import serve_http

    needs_token = settings.token is not None or settings.auth != "token"
    with _opened(settings, folder) as cortex, serving_hooks(cortex):
        serve_http(cortex, host, port, lambda url: _announce(url, cortex.project.name, needs_token))


def _opened(settings: Settings, folder: str) -> Cortex:
    """A shared server may be started before its database; it waits as it does for one that restarts."""
    from ..app import Cortex
    from ..errors import StoreUnavailable

    until = time.monotonic() + settings.database_retry_seconds
    while True:
        try:
            return Cortex.from_settings(settings, folder)
        except StoreUnavailable:
            if time.monotonic() >= until:
                raise
        time.sleep(_PAUSE_SECONDS)


def _announce(url: str, project: str, needs_token: bool) -> None:
    bearer = '"Authorization: Bearer $CORTEX_TOKEN"'
    header, curl_header = (f" --header {bearer}", f" -H {bearer}") if needs_token else ("", "")
    say(
        f"""Cortex serves {url} for {project}. Stop it with Ctrl-C.

Connect a client:  claude mcp add --transport http cortex {url}/mcp{header}
Remember:          cortex capture 'Use PostgreSQL for JSONB' -n decisions
Recall:            cortex recall 'which database'
See how it does:   curl{curl_header} {url}/status"""
    )
