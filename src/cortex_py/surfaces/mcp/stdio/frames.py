"""JSON-RPC messages as lines of text, read strictly, with the protocol's errors for invalid ones.

Standard library only; part of the instant front.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

__all__ = [
    "INTERNAL_ERROR",
    "INVALID_REQUEST",
    "PARSE_ERROR",
    "Malformed",
    "MessageFrame",
    "TooLong",
    "error_line",
    "read_frame",
    "read_lines",
    "result_line",
]  # fmt: skip

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
INTERNAL_ERROR = -32603

# Deeper than any sensible request, and well within what every parser behind this one takes.
_DEEPEST = 64
_TOO_DEEP = f"The message is nested more than {_DEEPEST} deep."
_CHUNK = 1 << 16
_LARGEST_ID = 1 << 63


class Malformed(Exception):
    """A line that is not a message, with the error to answer."""

    def __init__(self, code: int, message: str, id: str | int | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.id = id


@dataclass(frozen=True, slots=True)
class MessageFrame:
    """One message: a request has an id and a method, a notification only a method, a response only an id."""

    message: dict[str, Any]

    @property
    def id(self) -> str | int | None:
        value: str | int | None = self.message.get("id")
        return value

    @property
    def method(self) -> str | None:
        value: str | None = self.message.get("method")
        return value

    @property
    def params(self) -> dict[str, Any]:
        return self.message.get("params") or {}

    @property
    def is_request(self) -> bool:
        return self.method is not None and self.id is not None


def read_frame(line: bytes) -> MessageFrame:
    """Read one line; raises `Malformed` with the code the protocol gives to the fault."""
    try:
        message = json.loads(line.decode("utf-8"), parse_constant=_refuse_constant)
        if b"\\ud" in line or b"\\uD" in line:
            # Half of a surrogate pair is legal JSON, but not text.
            json.dumps(message, ensure_ascii=False).encode("utf-8")
    except RecursionError:
        raise Malformed(INVALID_REQUEST, _TOO_DEEP) from None
    except ValueError as error:
        raise Malformed(PARSE_ERROR, f"The message is not valid JSON: {_reason(error)}.") from None
    if not isinstance(message, dict):
        raise Malformed(INVALID_REQUEST, "A message is one JSON object.")
    id = _checked_id(message)
    if line.count(b"[") + line.count(b"{") > _DEEPEST and _depth(message) > _DEEPEST:
        raise Malformed(INVALID_REQUEST, _TOO_DEEP, id)
    _check_shape(message, id)
    return MessageFrame(message)


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not a number")


def _reason(error: ValueError) -> str:
    return str(error) if isinstance(error, json.JSONDecodeError) else "it is not UTF-8 text with ordinary numbers"


def _checked_id(message: dict[str, Any]) -> str | int | None:
    id = message.get("id")
    if isinstance(id, bool) or not isinstance(id, str | int | None):
        raise Malformed(INVALID_REQUEST, "The id is neither a text nor a whole number.")
    if isinstance(id, int) and abs(id) >= _LARGEST_ID:
        raise Malformed(INVALID_REQUEST, "The id is too large a number.")
    if "id" in message and id is None and "error" not in message:
        raise Malformed(INVALID_REQUEST, "The id is null.")
    return id


def _check_shape(message: dict[str, Any], id: str | int | None) -> None:
    if message.get("jsonrpc") != "2.0":
        raise Malformed(INVALID_REQUEST, 'The message does not say "jsonrpc": "2.0".', id)
    if "method" not in message:
        if "result" in message or "error" in message:
            return
        raise Malformed(INVALID_REQUEST, "The message has no method.", id)
    if not isinstance(message["method"], str):
        raise Malformed(INVALID_REQUEST, "The method is not a text.", id)
    if not isinstance(message.get("params", {}), dict):
        raise Malformed(INVALID_REQUEST, "The params are not an object.", id)


def _depth(message: dict[str, Any]) -> int:
    """How deep objects and lists are nested, found without recursion."""
    deepest = 0
    level: list[dict[str, Any] | list[Any]] = [message]
    while level:
        deepest += 1
        level = [
            child
            for item in level
            for child in (item.values() if isinstance(item, dict) else item)
            if isinstance(child, dict | list)
        ]
    return deepest


def result_line(id: str | int | None, result: object) -> bytes:
    return _line({"jsonrpc": "2.0", "id": id, "result": result})


def error_line(id: str | int | None, code: int, message: str, data: object = None) -> bytes:
    error = {"code": code, "message": message} | ({} if data is None else {"data": data})
    return _line({"jsonrpc": "2.0", "id": id, "error": error})


def _line(message: object) -> bytes:
    return json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace") + b"\n"


class Source(Protocol):
    """Where bytes come from: what is available, at most `size`; empty at the end."""

    def __call__(self, size: int, /) -> bytes: ...


class TooLong:
    """In place of a line that was larger than allowed and was dropped."""


def read_lines(read: Source, most: int) -> Iterator[bytes | TooLong]:
    """Lines without their ends, holding at most `most` bytes of any; empty ones are skipped."""
    parts: list[bytes] = []
    size = 0
    while chunk := read(_CHUNK):
        *ends, tail = chunk.split(b"\n")
        for end in ends:
            parts.append(end)
            line = _whole(parts, size + len(end), most)
            # Drop the parts first, so that a long line is not held twice while it is handled.
            parts, size = [], 0
            if line:
                yield line
        size += len(tail)
        # A line that is too long already is counted, not kept.
        if size <= most:
            parts.append(tail)
        else:
            parts.clear()
    if last := _whole(parts, size, most):
        yield last


def _whole(parts: list[bytes], size: int, most: int) -> bytes | TooLong:
    return TooLong() if size > most else b"".join(parts).strip()
