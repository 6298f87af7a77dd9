"""Logs of the server: plain lines on standard error, from warnings upwards."""

from __future__ import annotations

import logging

__all__ = ["quiet_logs"]


def quiet_logs() -> None:
    """Replace the framework's decorated output. Call it after the framework is imported."""
    import fastmcp

    fastmcp.settings.show_server_banner = False
    logger = logging.getLogger("fastmcp")
    for handler in list(logger.handlers):
        logger.removeHandler(handler)
    logger.propagate = True
    logging.basicConfig(level=logging.WARNING, format="cortex: %(levelname)s %(name)s: %(message)s")
