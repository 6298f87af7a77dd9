"""Record ids, and the parsing of all their spellings.

An id is 40 hexadecimal digits, ordered by time and independent of content. The first 8 digits count quarter seconds
since 2024, so that the short form is nearly always unique; the next 8 are the fraction, so that ids of one process
never run backwards; the last 24 are random.
"""

from __future__ import annotations

import re
import secrets
from dataclasses import dataclass
from datetime import UTC, datetime

from .clock import Clock, to_micros
from .errors import InvalidId
from .pools import ForkLock

__all__ = [
    "ID_LENGTH", "MIN_PREFIX", "SCHEME", "IdMaker", "MemoryRef", "context_id", "full_address", "memory_uri",
    "memory_urn", "parse_ref",
]  # fmt: skip

SCHEME = "subcog://"
ID_LENGTH = 40
MIN_PREFIX = 8

_EPOCH_MICROS = to_micros(datetime(2024, 1, 1, tzinfo=UTC))
_TICK_MICROS = 250_000
_FRACTION = 1 << 32
_HEX = re.compile(r"[0-9a-f]+\Z")
_URN = re.compile(r"subcog:(?://)?(?P<scope>[^/]+)/(?:(?P<namespace>[^/]+)/)?(?P<id>[^/]+)\Z")


class IdMaker:
    """Makes ids that grow with time, even if the clock stands still or steps back."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._last = 0
        self._lock = ForkLock()

    def new(self) -> str:
        elapsed = max(0, to_micros(self._clock.now()) - _EPOCH_MICROS)
        moment = elapsed * _FRACTION // _TICK_MICROS
        with self._lock:
            self._last = max(moment, self._last + 1)
            stamp = self._last % (1 << 64)
        return f"{stamp:016x}{secrets.token_hex(12)}"


@dataclass(frozen=True, slots=True)
class MemoryRef:
    """A whole id or a prefix of one, as a caller gave it."""

    prefix: str

    @property
    def is_whole(self) -> bool:
        return len(self.prefix) == ID_LENGTH


def parse_ref(text: str) -> MemoryRef:
    """Read an id, a prefix of at least 8 digits, a `context_…` id, a URN or a URI."""
    raw = text.strip()
    urn = _URN.match(raw)
    digits = (urn["id"] if urn else raw).removeprefix("context_").rstrip(".…").lower()
    if not _HEX.match(digits) or len(digits) > ID_LENGTH:
        raise InvalidId(
            f"{text[:80]!r} is not a memory id.",
            remedy="Give the 40 hexadecimal digits, a prefix of at least 8, or a subcog:// address.",
            field="id",
        )
    if len(digits) < MIN_PREFIX:
        raise InvalidId(
            f"The id prefix {digits!r} is too short.",
            remedy=f"Give at least {MIN_PREFIX} digits.",
            field="id",
        )
    return MemoryRef(digits)


def context_id(memory_id: str) -> str:
    return f"context_{memory_id}"


def full_address(uri: str) -> str:
    """The address as it is listed; `subcog:topics` is short for `subcog://topics`."""
    return SCHEME + uri.removeprefix("subcog:") if uri.startswith("subcog:") and not uri.startswith(SCHEME) else uri


def memory_uri(memory_id: str) -> str:
    return f"subcog://memory/{memory_id}"


def memory_urn(domain: str, namespace: str, memory_id: str) -> str:
    return f"subcog://{domain}/{namespace}/{memory_id}"
