"""The audit log of a store: every event is added to one chain, whichever process it comes from."""

from __future__ import annotations

import os
import re
import secrets
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from ..clock import Clock
from ..errors import ConfigurationError, StorageError, StoreCorrupt, storage_error
from ..security.audit import (
    BEGINNING,
    AuditEvent,
    ChainHead,
    ChainLink,
    decode_event,
    encode_event,
    find_broken_link,
    head_is_sealed,
    link_hash,
    seal_head,
)
from ..security.callers import Caller, as_system
from ..store.database import Session
from ..store.store import Store

__all__ = ["Audit", "AuditEntry", "AuditKey", "VerifiedChain"]

_AT_ONCE = 1_000
_MOST_IDS = 100
_LONGEST = 200
# Ids of records, projects and branches. Anything else could be content and is left out.
_ID = re.compile(r"[0-9a-f]{8,64}|(?:branch|proj|project|snap|ctx|session)[-_][A-Za-z0-9_-]{4,80}")


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
        """Add an event and return its number. `via` is used if there is no caller."""
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
        text = encode_event(event)
        table = self._store.audit
        # Writing the log is the server's own work, not the caller's.
        with as_system(), self._store.database.write() as session:
            found = table.next(session)
            head = ChainHead(*found) if found else None
            key = self._sealing_key(head)
            # The head decides, not the rows: otherwise a truncated log would be continued unnoticed.
            events, last = (head.events, head.hash) if head else (0, "")
            number = events + 1
            hash = link_hash(key, last or BEGINNING, number, text)
            table.append(session, number, text, hash, seal_head(key, number, hash))
        return number

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
        return (
            VerifiedChain(head.events, _head_name(head.events, head.hash))
            if head
            else VerifiedChain(0, _head_name(0, ""))
        )

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


# -- The key of the log ----------------------------------------------------------------------------


_BYTES = 32


class AuditKey:
    def __init__(self, path: Path) -> None:
        self.path = path
        self._key: bytes | None = None

    def read(self) -> bytes | None:
        """The key; None if there is no file yet."""
        if self._key is None:
            self._key = self._from_file()
        return self._key

    def make(self) -> bytes:
        """Create the key, or read the one that another process created first."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            partial = self.path.with_name(f".{self.path.name}.{secrets.token_hex(4)}")
            handle = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(secrets.token_hex(_BYTES).encode() + b"\n")
                    file.flush()
                    os.fsync(file.fileno())
                # Fails if the file exists: another process's key is never replaced, and no partial key is visible.
                os.link(partial, self.path)
            except FileExistsError:
                pass
            finally:
                partial.unlink()
        except OSError as error:
            raise storage_error(error, self.path) from error
        key = self.read()
        if key is None:
            raise StorageError(f"The audit key {self.path} vanished.", remedy="Put it back from a copy.")
        return key

    def _from_file(self) -> bytes | None:
        try:
            with self.path.open("rb") as file:
                mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
                text = file.read(1_000)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise storage_error(error, self.path) from error
        if os.name == "posix" and mode & 0o077:
            raise ConfigurationError(
                f"The audit key {self.path} can be read by others.",
                remedy=f"Run: chmod 600 {self.path}",
                field="audit_key_file",
            )
        try:
            key = bytes.fromhex(text.decode("ascii").strip())
        except ValueError:
            key = b""
        if len(key) != _BYTES:
            raise ConfigurationError(
                f"{self.path} holds no audit key.", remedy="Put it back from a copy.", field="audit_key_file"
            )
        return key
