"""The audit log of a store: every event added to one chain, whichever process it comes from."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ..clock import Clock
from ..errors import StorageError, StoreCorrupt
from ..security.audit import (
    BEGINNING,
    AuditEvent,
    Head,
    Link,
    decode,
    encode,
    first_broken,
    head_is_sealed,
    link_hash,
    seal_head,
)
from ..security.callers import Caller, acting_as
from ..store.database import Session
from ..store.store import Store
from .audit_key import AuditKey

__all__ = ["Audit", "Entry", "Verified"]

_AT_ONCE = 1_000
_MOST_IDS = 100
_LONGEST = 200
# Ids of records, projects and lines of work. What does not look like one is content, and stays out.
_ID = re.compile(r"[0-9a-f]{8,64}|(?:branch|proj|project|snap|ctx|session)[-_][A-Za-z0-9_-]{4,80}")


@dataclass(frozen=True, slots=True)
class Entry:
    number: int
    event: AuditEvent


@dataclass(frozen=True, slots=True)
class Verified:
    """A chain that holds. `head` names its present end; keep it elsewhere to prove later that nothing was cut off."""

    events: int
    head: str


class Audit:
    """The audit log of one store, with its key."""

    def __init__(self, store: Store, key: AuditKey, clock: Clock) -> None:
        self._store = store
        self._key = key
        self._clock = clock

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
        """Add an event and tell its number. `via` is for where nobody vouches for a caller."""
        event = AuditEvent(
            at=self._clock.now(),
            user=caller.user if caller else None,
            agent=caller.agent if caller else None,
            via=caller.via if caller else via,
            action=action[:_LONGEST],
            outcome=outcome[:_LONGEST],
            project=project if project and _ID.fullmatch(project) else None,
            ids=tuple(dict.fromkeys(id for id in ids if _ID.fullmatch(id)))[:_MOST_IDS],
        )
        text = encode(event)
        table = self._store.audit
        # The log is the server's own work, whoever it is about.
        with acting_as(None), self._store.database.write() as session:
            found = table.next(session)
            head = Head(*found) if found else None
            key = self._sealing_key(head)
            # What the head says comes before what rows there are: else cutting some off would be healed here.
            events, last = (head.events, head.hash) if head else (0, "")
            number = events + 1
            hash = link_hash(key, last or BEGINNING, number, text)
            table.append(session, number, text, hash, seal_head(key, number, hash))
        return number

    def list(self, limit: int = 50) -> tuple[Entry, ...]:
        """The latest events, newest first."""
        with acting_as(None), self._store.database.read() as session:
            rows = self._store.audit.latest(session, limit)
        try:
            return tuple(Entry(number, decode(text)) for number, text in rows)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise StoreCorrupt("The audit log was changed.", remedy="Run: cortex audit verify") from error

    def verify(self, expected: str | None = None) -> Verified:
        """Read the whole chain; `StoreCorrupt` names the first event that does not hold.

        `expected` is a head told earlier: it must be part of this chain.
        """
        with acting_as(None), self._store.database.read() as session:
            found = self._store.audit.head(session)
            head = Head(*found) if found else None
            links = _Watched(self._links(session), expected)
            key = self._key.read()
            if key is None:
                if head == (0, "", "") and not any(True for _ in links) and expected is None:
                    return Verified(0, _named(0, ""))
                raise StoreCorrupt(
                    f"The audit log cannot be checked: its key {self._key.path} is missing.",
                    remedy="Put it back from a copy.",
                )
            broken = first_broken(key, links, head)
        if broken is not None:
            where = f"at event {broken.at}: {broken.reason}" if broken.at else f"at its end: {broken.reason}"
            raise StoreCorrupt(
                f"The audit log is broken {where}.", remedy="Compare it with a backup; what follows proves nothing."
            )
        if not links.seen:
            raise StoreCorrupt(
                "The audit log does not hold the head that was expected.",
                remedy="It was begun anew, or put back to an earlier state; compare it with a backup.",
            )
        return Verified(head.events, _named(head.events, head.hash)) if head else Verified(0, _named(0, ""))

    def _sealing_key(self, head: Head | None) -> bytes:
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

    def _links(self, session: Session) -> Iterator[Link]:
        # From far below the first: a row that was added there is not to be passed over.
        from_number = -(2**62)
        while rows := self._store.audit.after(session, from_number, _AT_ONCE):
            yield from (Link(*row) for row in rows)
            from_number = rows[-1][0]


class _Watched:
    """Links on their way, and whether one of them was the expected head."""

    def __init__(self, links: Iterator[Link], expected: str | None) -> None:
        self._links = links
        self._expected = expected
        self.seen = expected is None or expected == _named(0, "")

    def __iter__(self) -> Iterator[Link]:
        for link in self._links:
            self.seen = self.seen or _named(link.number, link.hash) == self._expected
            yield link


def _named(events: int, hash: str) -> str:
    return f"{events}:{hash or BEGINNING}"
