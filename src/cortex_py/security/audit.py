"""The chain of an audit log: each event is authenticated together with all events before it. Pure functions.

The hash of an event is HMAC-SHA256 over the previous hash and the event's text. The head (number of events and last
hash) is authenticated too. Without the key nobody can change, remove, reorder or add an event, or cut off the last
ones, without detection.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from ..clock import from_micros, to_micros

__all__ = [
    "BEGINNING", "AuditEvent", "BrokenLink", "ChainHead", "ChainLink", "decode_event", "encode_event",
    "find_broken_link", "head_is_sealed", "link_hash", "seal_head",
]  # fmt: skip

# The hash before the first event.
BEGINNING = "0" * 64


@dataclass(frozen=True, slots=True)
class AuditEvent:
    """Who did what, when, to which records, with which outcome. Never the content of a record."""

    at: datetime
    user: str | None
    agent: str | None
    via: str
    action: str
    outcome: str
    project: str | None = None
    ids: tuple[str, ...] = ()


class ChainLink(NamedTuple):
    """An event as it is stored."""

    number: int
    text: str
    hash: str


class ChainHead(NamedTuple):
    events: int
    hash: str
    seal: str


class BrokenLink(NamedTuple):
    """The first invalid event by number, 0 for the head."""

    at: int
    reason: str


def encode_event(event: AuditEvent) -> str:
    """The canonical text of an event."""
    fields: dict[str, Any] = {
        "at": to_micros(event.at),
        "user": event.user,
        "agent": event.agent,
        "via": event.via,
        "action": event.action,
        "outcome": event.outcome,
        "project": event.project,
        "ids": list(event.ids),
    }
    filled = {name: value for name, value in fields.items() if value not in (None, [])}
    return json.dumps(filled, sort_keys=True, separators=(",", ":"))


def decode_event(text: str) -> AuditEvent:
    fields = json.loads(text)
    return AuditEvent(
        at=from_micros(fields["at"]),
        user=fields.get("user"),
        agent=fields.get("agent"),
        via=fields["via"],
        action=fields["action"],
        outcome=fields["outcome"],
        project=fields.get("project"),
        ids=tuple(fields.get("ids", ())),
    )


def link_hash(key: bytes, before: str, number: int, text: str) -> str:
    return _mac(key, b"event", before, number, text)


def seal_head(key: bytes, events: int, last: str) -> str:
    return _mac(key, b"head", last, events, "")


def head_is_sealed(key: bytes, head: ChainHead) -> bool:
    """Whether the head was written with the key. The head of an empty log needs no seal."""
    if head == (0, "", ""):
        return True
    return hmac.compare_digest(head.seal.encode(), seal_head(key, head.events, head.hash).encode())


def _mac(key: bytes, kind: bytes, before: str, number: int, text: str) -> str:
    # The parts before the text have a fixed length or end with a line feed, so different events give different bytes.
    message = b"%s\n%s\n%d\n%s" % (kind, before.encode(), number, text.encode("utf-8", "surrogatepass"))
    return hmac.new(key, message, hashlib.sha256).hexdigest()


def find_broken_link(key: bytes, links: Iterable[ChainLink], head: ChainHead | None) -> BrokenLink | None:
    """The first invalid link of a chain; None if the chain is valid."""
    if head is None or not head_is_sealed(key, head):
        return BrokenLink(0, "the head is missing, was changed, or was sealed with another key")
    before, count = BEGINNING, 0
    for link in links:
        count += 1
        if link.number != count:
            return BrokenLink(count, "it is missing")
        if count > head.events:
            return BrokenLink(count, "it was added after the end")
        if not hmac.compare_digest(link.hash.encode(), link_hash(key, before, count, link.text).encode()):
            return BrokenLink(count, "it was changed or moved, or one before it was")
        before = link.hash
    if count < head.events:
        return BrokenLink(count + 1, "it is missing, with all after it")
    if head.events and not hmac.compare_digest(before.encode(), head.hash.encode()):
        return BrokenLink(count, "the head names another last event")
    return None
