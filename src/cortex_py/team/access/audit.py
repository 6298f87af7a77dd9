"""The audit log of a store: every event is added to one chain, whichever process it comes from.

Each event is authenticated together with all events before it: its hash is HMAC-SHA256 over the previous hash and the
event's text. The head (number of events and last hash) is authenticated too. Without the key nobody can change, remove,
reorder or add an event, or cut off the last ones, without detection.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import NamedTuple

from ...core.clock import Clock, from_micros, to_micros
from ...core.echo import clean_text
from ...core.errors import StorageError, StoreCorrupt
from ...core.security.callers import Caller, as_system
from ...core.security.key_file import KeyFile
from ...core.store.database import AUDIT, Session
from ...core.store.store import CommitGroups, Store

__all__ = [
    "BEGINNING", "Audit", "AuditEntry", "AuditEvent", "BrokenLink", "ChainHead", "ChainLink", "VerifiedChain",
    "decode_event", "encode_event", "find_broken_link", "head_is_sealed", "link_hash", "seal_head",
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
    fields = {**asdict(event), "at": to_micros(event.at)}
    filled = {name: value for name, value in fields.items() if value not in (None, ())}
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


# -- The log of a store ----------------------------------------------------------------------------

_AT_ONCE = 1_000
_MOST_IDS = 100
_LONGEST = 200
# Ids of records, projects and branches. Anything else could be content and is left out.
_ID = re.compile(r"[0-9a-f]{8,64}|(?:branch|proj|project|snap|ctx|session)[-_][A-Za-z0-9_-]{4,80}")


def _one_line(text: str) -> str:
    """A text as the log keeps it: without secrets, because a client may call a method whatever it likes."""
    return "".join(one for one in clean_text(text, _LONGEST) if one.isprintable())


@dataclass(frozen=True, slots=True)
class AuditEntry:
    number: int
    event: AuditEvent


@dataclass(frozen=True, slots=True)
class VerifiedChain:
    """A valid chain. `head` names its end; store it elsewhere to prove later that nothing was cut off."""

    events: int
    head: str


class Audit:
    """The audit log of one store, with its key."""

    def __init__(self, store: Store, key: KeyFile, clock: Clock) -> None:
        self._store = store
        self._key = key
        self._clock = clock
        self._groups: CommitGroups[str, int] = CommitGroups()

    def record(
        self,
        caller: Caller | None,
        action: str,
        outcome: str,
        *,
        project: str | None = None,
        ids: Iterable[str] = (),
        via: str = "local",
    ) -> int:
        """Add an event and return its number. `via` is used if there is no caller."""
        event = AuditEvent(
            at=self._clock.now(),
            user=caller.user if caller else None,
            agent=caller.agent if caller else None,
            via=caller.via if caller else via,
            action=_one_line(action),
            outcome=_one_line(outcome),
            project=project if project and _ID.fullmatch(project) else None,
            ids=tuple(dict.fromkeys(id for id in ids if _ID.fullmatch(id)))[:_MOST_IDS],
        )
        return self._groups.run(AUDIT, encode_event(event), self._append)

    def _append(self, take: Callable[[], Sequence[str]]) -> list[int]:
        """Add events, which are taken once it is this transaction's turn; their numbers."""
        table, numbers = self._store.audit, []
        # Writing the log is the server's own work, not the caller's.
        with as_system(), self._store.database.write(AUDIT) as session:
            for text in take():
                found = table.next(session)
                head = ChainHead(*found) if found else None
                key = self._sealing_key(head)
                # The head decides, not the rows: otherwise a truncated log would be continued unnoticed.
                events, last = (head.events, head.hash) if head else (0, "")
                number = events + 1
                hash = link_hash(key, last or BEGINNING, number, text)
                table.append(session, number, text, hash, seal_head(key, number, hash))
                numbers.append(number)
        return numbers

    def list(self, limit: int = 50) -> tuple[AuditEntry, ...]:
        """The latest events, newest first."""
        with as_system(), self._store.database.read() as session:
            rows = self._store.audit.latest(session, limit)
        try:
            return tuple(AuditEntry(number, decode_event(text)) for number, text in rows)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise StoreCorrupt("The audit log was changed.", remedy="Run: cortex audit verify") from error

    def verify(self, expected: str | None = None) -> VerifiedChain:
        """Read the whole chain; `StoreCorrupt` names the first event that does not hold.

        `expected` is an earlier head, which must be part of this chain.
        """
        with as_system(), self._store.database.read() as session:
            found = self._store.audit.head(session)
            head = ChainHead(*found) if found else None
            links = _HeadWatcher(self._links(session), expected)
            key = self._key.read()
            if key is None:
                if head == (0, "", "") and not any(True for _ in links) and expected is None:
                    return VerifiedChain(0, _head_name(0, ""))
                raise StoreCorrupt(
                    f"The audit log cannot be checked: its key {self._key.path} is missing.",
                    remedy="Put it back from a copy.",
                )
            broken = find_broken_link(key, links, head)
        if broken is not None:
            where = f"at event {broken.at}: {broken.reason}" if broken.at else f"at its end: {broken.reason}"
            raise StoreCorrupt(
                f"The audit log is broken {where}.", remedy="Compare it with a backup; what follows proves nothing."
            )
        if not links.found:
            raise StoreCorrupt(
                "The audit log does not hold the head that was expected.",
                remedy="The log was restarted or restored to an earlier state; compare it with a backup.",
            )
        events, hash = (head.events, head.hash) if head else (0, "")
        return VerifiedChain(events, _head_name(events, hash))

    def _sealing_key(self, head: ChainHead | None) -> bytes:
        begun = head is None or head.events > 0
        key = self._key.read() if begun else self._key.make()
        if key is None:
            raise StorageError(
                f"The audit key {self._key.path} is missing; the log is not continued with another.",
                remedy="Put it back from a copy.",
            )
        if head is None or not head_is_sealed(key, head):
            raise StoreCorrupt(
                "The audit log was changed, or sealed with another key; it is not continued.",
                remedy="Run: cortex audit verify",
            )
        return key

    def _links(self, session: Session) -> Iterator[ChainLink]:
        # Start far below the first number, so that a row inserted there is seen.
        from_number = -(2**62)
        while rows := self._store.audit.after(session, from_number, _AT_ONCE):
            yield from (ChainLink(*row) for row in rows)
            from_number = rows[-1][0]


class _HeadWatcher:
    """Passes links through and records whether one of them is the expected head."""

    def __init__(self, links: Iterator[ChainLink], expected: str | None) -> None:
        self._links = links
        self._expected = expected
        self.found = expected is None or expected == _head_name(0, "")

    def __iter__(self) -> Iterator[ChainLink]:
        for link in self._links:
            self.found = self.found or _head_name(link.number, link.hash) == self._expected
            yield link


def _head_name(events: int, hash: str) -> str:
    return f"{events}:{hash or BEGINNING}"
