"""`cortex serve`: the memory as an MCP server, on stdio or over HTTP; `cortex ui`: the page with a server behind it."""

from __future__ import annotations

import hmac
import json
import os
import secrets
import shutil
import sys
import sysconfig
import time
import urllib.error
import urllib.request
import webbrowser
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .options import command, command_session
from .output import print_json, say

if TYPE_CHECKING:
    from ...app import Cortex
    from ...core.config import Settings
    from ..http.connections import Worker
    from ..http.sessions import PageLinks

__all__ = ["serve_command", "ui_command"]

_PAUSE_SECONDS = 0.5
_ANSWER_SECONDS = 2.0
_MOST_BYTES = 10_000


@command("serve")
@click.option("--http", is_flag=True, help="Serve over HTTP instead of standard input and output.")
@click.option("--host", default="127.0.0.1", show_default=True)
@click.option("--port", type=click.IntRange(0, 65535), default=8765, show_default=True, help="0 picks a free one.")
@click.option(
    "--workers", type=click.IntRange(1, 64), default=1, show_default=True, help="Processes that answer on the port."
)
@click.option("--toolsets", help="Only these sets of tools: core, context, memory, …, or all.")
@click.option("--tools", help="Only these tools, or these beside the toolsets.")
@click.option("--exclude-tools", help="Not these tools.")
@click.option("--read-only", is_flag=True, default=None, help="Only tools that change nothing.")
@click.option("--portable-names", is_flag=True, default=None, help="List tool names without dots.")
@click.pass_context
def serve_command(context: click.Context, /, http: bool, host: str, port: int, workers: int, **tools: Any) -> None:
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
    if workers > 1 and not http:
        raise click.UsageError("--workers needs --http: on standard input and output there is one client.")
    if not http:
        from ..mcp.stdio.serve import serve_stdio

        sys.exit(serve_stdio(home, folder, tools))
    from ...core.config import load_settings
    from ...core.embedding.backends.onnx import threads_beside_others
    from ..http.access import check_exposure

    settings = load_settings(home, **tools)
    check_exposure(host, settings.token, settings.auth)
    settings = replace(settings, threads=settings.threads or threads_beside_others())
    from ...parts.hooks.warm import serving_hooks
    from ..http.server import serve_http

    needs_token = settings.token is not None or settings.auth != "token"
    worker = _forked(settings, folder, host, port, workers, needs_token) if workers > 1 else None
    with _opened(settings, folder) as cortex, serving_hooks(cortex):

        def started(url: str, page: str) -> None:
            if worker is None:
                _announce(url, page, cortex.project.root or str(Path(folder).absolute()), needs_token)
            else:
                worker.ready()

        serve_http(cortex, host, port, started, worker)


def _forked(settings: Settings, folder: str, host: str, port: int, workers: int, needs_token: bool) -> Worker:
    """Bind the port and start the workers; returns in each of them."""
    from ..http.connections import bind_ports, fork_workers
    from ..http.server import announced_address
    from ..mcp.middleware.logs import set_up_logs

    set_up_logs(settings)
    sockets = bind_ports(host, port, workers)

    def announce(links: PageLinks | None) -> None:
        _announce(*announced_address(host, sockets[0], links), str(Path(folder).absolute()), needs_token)

    return fork_workers(settings, sockets, announce)


def _opened(settings: Settings, folder: str) -> Cortex:
    """A shared server may be started before its database; it waits as it does for one that restarts."""
    from ...app import Cortex
    from ...core.errors import StoreUnavailable

    until = time.monotonic() + settings.database_retry_seconds
    while True:
        try:
            return Cortex.from_settings(settings, folder)
        except StoreUnavailable:
            if time.monotonic() >= until:
                raise
        time.sleep(_PAUSE_SECONDS)


def _announce(url: str, page: str, root: str, needs_token: bool) -> None:
    bearer = '"Authorization: Bearer $CORTEX_TOKEN"'
    header, curl_header = (f" --header {bearer}", f" -H {bearer}") if needs_token else ("", "")
    programs = sysconfig.get_path("scripts")
    shell = "" if shutil.which("cortex") else f'In another shell:  export PATH="{programs}:$PATH"\n'
    say(
        f"""Cortex serves {url} for the project in {root}. Stop it with Ctrl-C.

Look at it:        {page}
Connect a client:  claude mcp add --transport http cortex {url}/mcp{header}
{shell}Remember:          cortex capture 'Use PostgreSQL for JSONB' -n decisions
Recall:            cortex recall 'which database'
See how it does:   curl{curl_header} {url}/status"""
    )


# -- the page ------------------------------------------------------------------------------------


@command("ui")
@click.option("--port", type=click.IntRange(0, 65535), default=8765, show_default=True, help="0 picks a free one.")
@click.option("--no-browser", is_flag=True, help="Only print the link.")
@click.pass_context
def ui_command(context: click.Context, /, port: int, no_browser: bool) -> None:
    """Open the page that shows, searches and corrects the memory.

    A server of this home that runs on the port is used. Else one is started, until interrupted. The link works once.
    """
    session = command_session(context)
    from ...core.config import load_settings
    from ..http.access import check_exposure

    settings = load_settings(session.home)
    url = f"http://127.0.0.1:{port}"
    address = _running(url, settings) if port else None
    if address is not None:
        if session.as_json:
            print_json({"url": address})
        else:
            _show(address, no_browser)
        return
    if session.as_json:
        raise click.UsageError("No server of this home runs there, and a server has no JSON form. Leave out --json.")
    check_exposure("127.0.0.1", settings.token, settings.auth)
    from ...parts.hooks.warm import serving_hooks
    from ..http.server import serve_http

    folder = session.project or os.environ.get("CLAUDE_PROJECT_DIR") or "."
    with _opened(settings, folder) as cortex, serving_hooks(cortex):
        serve_http(cortex, "127.0.0.1", port, lambda _url, page: _show(page, no_browser, starts=True))


def _running(url: str, settings: Settings) -> str | None:
    """The page of a server of this home; None where nothing answers, or something else.

    The server must show that it has the key of the home before it is given a link.
    """
    from ..http.sessions import PageLinks, page_address, page_key

    if settings.auth != "token":
        return f"{url}/" if _answer(f"{url}/health/live") == {"status": "live"} else None
    key, nonce = page_key(settings), secrets.token_hex(16)
    found = _answer(f"{url}/session?nonce={nonce}")
    links = PageLinks(key, run=str(found.get("run", "")))
    if not hmac.compare_digest(str(found.get("proof", "")).encode(), links.proof(nonce).encode()):
        return None
    return page_address(url, links)


def _answer(url: str) -> dict[str, object]:
    # Directly, whatever proxy the environment names: the server is on this machine.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(url, timeout=_ANSWER_SECONDS) as response:
            found = json.loads(response.read(_MOST_BYTES))
    except (OSError, ValueError, urllib.error.URLError):
        return {}
    return found if isinstance(found, dict) else {}


def _show(address: str, no_browser: bool, *, starts: bool = False) -> None:
    say(address)
    if starts:
        say("Stop it with Ctrl-C.")
    if not no_browser:
        webbrowser.open(address)
