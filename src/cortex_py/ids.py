"""Record ids, and the parsing of all their spellings.

An id is 40 hexadecimal digits, independent of content. The first 8 digits count microseconds and start again after 72
minutes: they tell apart the ids of a burst, and those of other times nearly as well as random digits do. The other 32
are random. Lists order records by their time; an id only orders records of the same microsecond, whose ids mostly sort
in the order in which they were made. Ids of earlier versions begin with a slower clock, so several can share 8 digits.
"""

from __future__ import annotations

import re
import secrets
from dataclasses import dataclass

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

_SHORT_FORMS = 1 << 32
_HEX = re.compile(r"[0-9a-f]+\Z")
_URN = re.compile(r"subcog:(?://)?(?P<scope>[^/]+)/(?:(?P<namespace>[^/]+)/)?(?P<id>[^/]+)\Z")


class IdMaker:
    """Makes ids whose first 8 digits differ, even if the clock stands still or steps back."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._last = 0
        self._lock = ForkLock()

    def new(self) -> str:
        with self._lock:
            self._last = max(to_micros(self._clock.now()), self._last + 1)
            return f"{self._last % _SHORT_FORMS:08x}{secrets.token_hex(16)}"


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
