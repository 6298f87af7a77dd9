"""Logs of the server: plain lines on standard error, from warnings upwards."""

from __future__ import annotations

import logging

__all__ = ["quiet_logs"]

# These warn of every request that is refused. The client is told; the log of the server is not the place.
_CLIENTS_FAULTS = ("fastmcp.server.server", "mcp.server.runner")


def quiet_logs() -> None:
    """Replace the framework's decorated output. Call it after the framework is imported."""
    import fastmcp

    fastmcp.settings.show_server_banner = False
    logger = logging.getLogger("fastmcp")
    for handler in list(logger.handlers):
        logger.removeHandler(handler)
    logger.propagate = True
    for name in _CLIENTS_FAULTS:
        logging.getLogger(name).setLevel(logging.ERROR)
    logging.basicConfig(level=logging.WARNING, format="cortex: %(levelname)s %(name)s: %(message)s")
