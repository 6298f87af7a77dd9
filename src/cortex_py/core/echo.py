"""Cleans texts from outside for errors, logs and standard error: without secrets, and of bounded length.

Errors quote what a caller gave, and exceptions of other libraries quote what they were working on. All of it passes one
of two functions on its way out. `clean_text` looks at the text alone. `cleaner_for` also knows what the caller gave,
and so recognises a piece of a secret that was cut off, taken apart or lower-cased before it was quoted.

The policy on secrets does not matter here: a message needs no secret, even if memories may contain them. The scanner is
loaded when the first such text is shown.
"""

from __future__ import annotations

import re
import traceback
from collections.abc import Callable, Iterator

__all__ = ["clean_text", "clean_value", "cleaner_for", "describe_error", "format_trace"]

_MOST = 4_000
# Scan this far beyond the limit, so that a secret that crosses it is seen whole.
_AHEAD = 4_000
_MOST_LINE = 300
# A shorter piece of a secret reveals nothing about it.
_PIECE = 8
_MOST_GIVEN = 200_000
_MOST_BEHIND = 5
_MOST_FRAMES = 30
_HIDDEN = "[REDACTED]"
_BESIDE = re.compile(r"[/=?&#,\s]+")
_PARTS = re.compile(r"[A-Za-z0-9+/=._~-]{8,}")


def clean_text(text: str, most: int = _MOST) -> str:
    """The text without secrets, cut to `most` characters."""
    from .security.secrets.secrets import redact

    clean = redact(text[: most + _AHEAD]).text
    return clean if len(clean) <= most else f"{clean[:most]}…"


def describe_error(error: BaseException) -> str:
    """The first line of another library's exception; further lines may show its input."""
    return clean_text(str(error).strip().partition("\n")[0], _MOST_LINE)


def format_trace(error: BaseException) -> str:
    """The stack traces of an exception and its causes, each with one line of message, latest last."""
    chain: list[BaseException] = []
    behind: BaseException | None = error
    while behind is not None and behind not in chain and len(chain) < _MOST_BEHIND:
        chain.append(behind)
        behind = behind.__cause__ or (None if behind.__suppress_context__ else behind.__context__)
    parts = []
    for one in reversed(chain):
        parts += traceback.format_tb(one.__traceback__, _MOST_FRAMES)
        parts.append(f"{type(one).__name__}: {describe_error(one)}\n")
    return "".join(parts).rstrip("\n")


def clean_value(value: object, show: Callable[[str], str] = clean_text) -> object:
    """The same for a value of JSON, with all texts in it."""
    if isinstance(value, str):
        return show(value)
    if isinstance(value, dict):
        return {show(name) if isinstance(name, str) else name: clean_value(one, show) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [clean_value(one, show) for one in value]
    return value


def cleaner_for(given: object) -> Callable[[str], str]:
    """A cleaner for a caller who gave these values: it also removes pieces of the secrets in them."""
    pieces = tuple(_secrets_in(given))
    return (lambda text: _without_pieces(clean_text(text), pieces)) if pieces else clean_text


def _secrets_in(given: object) -> Iterator[str]:
    from .security.secrets.secrets import find_secrets

    for text in _texts(given):
        for found in find_secrets(text):
            yield from _PARTS.findall(text[found.start : found.end])


def _texts(value: object) -> Iterator[str]:
    """All texts of a value, each up to a limit."""
    if isinstance(value, str):
        beginning = value[:_MOST_GIVEN]
        yield beginning
        # In an address, a path or an option, a secret is joined to other words.
        yield from (part for part in _BESIDE.split(beginning) if part != beginning and len(part) > _PIECE)
    elif isinstance(value, dict):
        for name, one in value.items():
            yield from _texts(name)
            yield from _texts(one)
            if isinstance(name, str) and isinstance(one, str):
                # Some secrets are recognised only by the name before them.
                yield f"{name[:_MOST_GIVEN]}={one[:_MOST_GIVEN]}"
    elif isinstance(value, list | tuple):
        for one in value:
            yield from _texts(one)


def _without_pieces(text: str, secrets: tuple[str, ...]) -> str:
    """The text without any longer piece of these secrets, ignoring case."""
    lower = text.lower()
    covered = bytearray(len(text))
    if len(lower) != len(text):
        return _HIDDEN if any(secret.lower()[:_PIECE] in lower for secret in secrets) else text
    for secret in secrets:
        known = secret.lower()
        for first in range(len(known) - _PIECE + 1):
            piece = known[first : first + _PIECE]
            place = lower.find(piece)
            while place >= 0:
                covered[place : place + _PIECE] = b"\1" * _PIECE
                place = lower.find(piece, place + 1)
    if not any(covered):
        return text
    parts = re.split(rb"(\x01+)", bytes(covered))
    made, done = [], 0
    for part in parts:
        made.append(_HIDDEN if part.startswith(b"\1") else text[done : done + len(part)])
        done += len(part)
    return "".join(made)
