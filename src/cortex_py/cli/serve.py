"""`cortex serve`: health and status over HTTP, on this machine only."""

from __future__ import annotations

import signal
import threading

import click

from .options import open_cortex

__all__ = ["serve_command"]


@click.command("serve")
@click.option("--host", default="127.0.0.1", show_default=True)
@click.option("--port", type=click.IntRange(0, 65535), default=8765, show_default=True, help="0 picks a free one.")
@click.option("--home", type=click.Path(), help="Home folder (default: CORTEX_HOME or ~/.cortex).")
@click.option("--project", type=click.Path(), default=".", help="Project folder (default: here).")
def serve_command(host: str, port: int, home: str | None, project: str) -> None:
    """Serve health and status as JSON until interrupted."""
    from ..http.health import HealthServer

    with open_cortex(home, project) as cortex, HealthServer(cortex, host, port) as server:
        stop = threading.Event()
        for name in (signal.SIGINT, signal.SIGTERM):
            signal.signal(name, lambda *_: stop.set())
        threading.Thread(target=server.serve_forever, daemon=True).start()
        click.echo(f"Cortex serves {server.url}/status for {cortex.project.name}. Stop it with Ctrl-C.")
        click.echo("Try: cortex capture 'Use PostgreSQL for JSONB' -n decisions")
        click.echo("     cortex recall 'which database'")
        stop.wait()
        server.shutdown()
