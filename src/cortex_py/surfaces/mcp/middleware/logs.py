"""Logs on standard error, as plain lines or as JSON. They never contain secrets or the content of memories.

The chosen level holds for what Cortex itself logs. Libraries log from warnings on: below that they log whole messages.
"""

from __future__ import annotations

import json
import logging
import sys
import traceback
from collections import Counter
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any

from ....core.config import LogFormat, LogLevel, Settings
from ....core.echo import clean_text, format_trace
from ....core.errors import RateLimited
from ....core.security.rate_limit import TokenBuckets

__all__ = ["REQUEST_ID", "JsonLines", "PlainLines", "RepeatFilter", "log_to_stderr", "set_up_logs"]

# Marks the log lines of one request; HTTP sets it.
REQUEST_ID: ContextVar[str | None] = ContextVar("cortex_request_id", default=None)

# It warns of every request that is refused. The client gets the error; it does not belong into the server's log.
_CLIENTS_FAULTS = "mcp.server.runner"
_OURS = "cortex_py"
_DETAILS = ("method", "path", "status", "tool", "outcome", "seconds", "left_out")
# Warnings and errors of one kind a minute; clients can cause some of them as often as they like.
_REPEATS_PER_MINUTE = 10
_LONGEST_FOREIGN = 300
_MOST_FRAMES = 30


def set_up_logs(settings: Settings) -> None:
    """Log as the settings say."""
    logging.getLogger(_CLIENTS_FAULTS).setLevel(logging.ERROR)
    log_to_stderr(settings.log_level, settings.log_format)


def log_to_stderr(log_level: LogLevel, log_format: LogFormat = "text") -> None:
    """Write what this package logs, from a level on, to standard error."""
    level = logging.getLevelName(log_level.upper())
    lines = logging.StreamHandler(sys.stderr)
    lines.addFilter(RepeatFilter())
    lines.setFormatter(JsonLines() if log_format == "json" else PlainLines())
    root = logging.getLogger()
    for handler in list(root.handlers):
        if isinstance(handler.formatter, JsonLines | PlainLines):
            root.removeHandler(handler)
    root.addHandler(lines)
    root.setLevel(max(level, logging.WARNING))
    logging.getLogger(_OURS).setLevel(level)


class RepeatFilter(logging.Filter):
    """Lets through a few warnings and errors of one kind a minute; the next one says how many were left out.

    Of one kind are records of the same logger with the same message template, and an error raised at the same place.
    """

    def __init__(self, per_minute: int = _REPEATS_PER_MINUTE) -> None:
        super().__init__()
        self._buckets = TokenBuckets(per_minute)
        self._left_out: Counter[str] = Counter()

    def filter(self, record: logging.LogRecord) -> bool:
        if record.levelno < logging.WARNING:
            return True
        kind = _kind(record)
        try:
            self._buckets.take(kind)
        except RateLimited:
            self._left_out[kind] += 1
            return False
        if left_out := self._left_out.pop(kind, 0):
            record.left_out = left_out
        return True


def _kind(record: logging.LogRecord) -> str:
    place = ""
    if record.exc_info and record.exc_info[1] is not None:
        frames = traceback.extract_tb(record.exc_info[1].__traceback__, limit=-1)
        place = f"{record.exc_info[0]} {frames[-1].filename}:{frames[-1].lineno}" if frames else str(record.exc_info[0])
    return f"{record.name} {str(record.msg).partition(chr(10))[0][:_LONGEST_FOREIGN]} {place}"


class PlainLines(logging.Formatter):
    """For people: one line, with the stack trace of an error below it."""

    def __init__(self) -> None:
        super().__init__("cortex: %(levelname)s %(name)s: %(message)s")

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802
        details = " ".join(f"{name}={value}" for name, value in _details(record).items())
        return clean_text(f"{super().formatMessage(record)}{f' ({details})' if details else ''}")

    def formatException(self, ei: Any) -> str:  # noqa: N802
        return format_trace(ei[1])


class JsonLines(logging.Formatter):
    """For log collectors: one object a line. Errors come with type and stack trace; their message may quote data."""

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
    """The message; of other libraries only its first line, because the rest may quote data."""
    text = clean_text(record.getMessage())
    if record.name.partition(".")[0] == _OURS:
        return text
    return text.partition("\n")[0][:_LONGEST_FOREIGN]


def _details(record: logging.LogRecord) -> dict[str, Any]:
    request = REQUEST_ID.get()
    found = {name: getattr(record, name) for name in _DETAILS if hasattr(record, name)}
    return {**({"request_id": request} if request else {}), **found}
