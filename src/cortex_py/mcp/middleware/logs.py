"""Logs of the server: lines on standard error, plain or as JSON. Never what a memory holds, never a token.

What Cortex itself logs begins at the setting's level. Libraries begin at warnings: below, they log whole messages.
"""

from __future__ import annotations

import json
import logging
import sys
import traceback
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any

from ..config import Settings

__all__ = ["REQUEST_ID", "JsonLines", "PlainLines", "set_up_logs"]

# By which the lines of one request are found; HTTP sets it.
REQUEST_ID: ContextVar[str | None] = ContextVar("cortex_request_id", default=None)

# These warn of every request that is refused. The client is told; the log of the server is not the place.
_CLIENTS_FAULTS = ("fastmcp.server.server", "mcp.server.runner")
_OURS = "cortex_py"
_DETAILS = ("method", "path", "status", "tool", "outcome", "seconds")
_LONGEST_FOREIGN = 300
_MOST_FRAMES = 30


def set_up_logs(settings: Settings) -> None:
    """Replace the framework's decorated output. Call it after the framework is imported."""
    import fastmcp

    fastmcp.settings.show_server_banner = False
    logger = logging.getLogger("fastmcp")
    for handler in list(logger.handlers):
        logger.removeHandler(handler)
    logger.propagate = True
    for name in _CLIENTS_FAULTS:
        logging.getLogger(name).setLevel(logging.ERROR)
    level = logging.getLevelName(settings.log_level.upper())
    lines = logging.StreamHandler(sys.stderr)
    lines.setFormatter(JsonLines() if settings.log_format == "json" else PlainLines())
    root = logging.getLogger()
    for handler in list(root.handlers):
        if isinstance(handler.formatter, JsonLines | PlainLines):
            root.removeHandler(handler)
    root.addHandler(lines)
    root.setLevel(max(level, logging.WARNING))
    logging.getLogger(_OURS).setLevel(level)


class PlainLines(logging.Formatter):
    """For a person: one line, with an error's trace below it."""

    def __init__(self) -> None:
        super().__init__("cortex: %(levelname)s %(name)s: %(message)s")

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802
        told = " ".join(f"{name}={value}" for name, value in _details(record).items())
        return f"{super().formatMessage(record)}{f' ({told})' if told else ''}"


class JsonLines(logging.Formatter):
    """For a collector of logs: one object a line. Of an error its type and place; its words may quote data."""

    def format(self, record: logging.LogRecord) -> str:
        moment = datetime.fromtimestamp(record.created, UTC)
        line: dict[str, Any] = {
            "time": moment.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": _message(record),
            **_details(record),
        }
        if record.exc_info and record.exc_info[1] is not None:
            error = record.exc_info[1]
            frames = traceback.extract_tb(error.__traceback__)[-_MOST_FRAMES:]
            line["error"] = type(error).__name__
            line["trace"] = [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in frames]
        return json.dumps(line, ensure_ascii=False, default=str)


def _message(record: logging.LogRecord) -> str:
    """What is said; of a library the first line alone, for what follows may show what it works on."""
    text = record.getMessage()
    if record.name.partition(".")[0] == _OURS:
        return text
    return text.partition("\n")[0][:_LONGEST_FOREIGN]


def _details(record: logging.LogRecord) -> dict[str, Any]:
    request = REQUEST_ID.get()
    found = {name: getattr(record, name) for name in _DETAILS if hasattr(record, name)}
    return {**({"request_id": request} if request else {}), **found}
