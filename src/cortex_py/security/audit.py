"""The chain of an audit log: events in one spelling, each sealed together with all before it. Pure.

The hash of an event is HMAC-SHA256 over the hash before it and the event's text; the head, how many there are and
the last hash, is sealed too. Whoever lacks the key can therefore not change, take out, reorder or add an event, nor
cut the last ones off, without it being seen.
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
    "BEGINNING",
    "AuditEvent",
    "Broken",
    "Head",
    "Link",
    "decode",
    "encode",
    "first_broken",
    "head_is_sealed",
    "link_hash",
    "seal_head",
]

# Comes before the first event.
BEGINNING = "0" * 64


@dataclass(frozen=True, slots=True)
class AuditEvent:
    """Who did what, when, to which records, and how it went. Never what a record holds."""

    at: datetime
    user: str | None
    agent: str | None
    via: str
    action: str
    outcome: str
    project: str | None = None
    ids: tuple[str, ...] = ()


class Link(NamedTuple):
    """An event as it is kept."""

    number: int
    text: str
    hash: str


class Head(NamedTuple):
    events: int
    hash: str
    seal: str


class Broken(NamedTuple):
    """Where a chain no longer holds: at an event's number, 0 for the head itself."""

    at: int
    reason: str


def encode(event: AuditEvent) -> str:
    """One event, one text."""
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


def decode(text: str) -> AuditEvent:
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


def head_is_sealed(key: bytes, head: Head) -> bool:
    """Whether nobody without the key wrote the head. That of a log that has not begun needs no seal."""
    if head == (0, "", ""):
        return True
    return hmac.compare_digest(head.seal.encode(), seal_head(key, head.events, head.hash).encode())


def _mac(key: bytes, kind: bytes, before: str, number: int, text: str) -> str:
    # The parts before the text have a fixed length, or end with a line: no two events make the same bytes.
    message = b"%s\n%s\n%d\n%s" % (kind, before.encode(), number, text.encode("utf-8", "surrogatepass"))
    return hmac.new(key, message, hashlib.sha256).hexdigest()


def first_broken(key: bytes, links: Iterable[Link], head: Head | None) -> Broken | None:
    """The first place where a chain does not hold, from its beginning; None if all of it does."""
    if head is None or not head_is_sealed(key, head):
        return Broken(0, "the head is missing, was changed, or was sealed with another key")
    before, count = BEGINNING, 0
    for link in links:
        count += 1
        if link.number != count:
            return Broken(count, "it is missing")
        if count > head.events:
            return Broken(count, "it was added after the end")
        if not hmac.compare_digest(link.hash.encode(), link_hash(key, before, count, link.text).encode()):
            return Broken(count, "it was changed or put in another place, or one before it was")
        before = link.hash
    if count < head.events:
        return Broken(count + 1, "it is missing, with all after it")
    if head.events and not hmac.compare_digest(before.encode(), head.hash.encode()):
        return Broken(count, "the head tells of another last event")
    return None
