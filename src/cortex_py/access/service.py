"""API tokens of a home: made, listed, revoked, and checked when somebody calls with one."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from ..clock import Clock, from_micros, to_micros
from ..errors import AccessDenied, InvalidInput, NotFound
from ..security.callers import Caller, acting_as, check_name
from ..security.rights import Level, level_of_scopes
from ..security.scopes import check_scopes
from ..security.tokens import TokenRecord, digest, is_token, new_token
from ..store.access import TokenRow
from ..store.store import Store
from .tenants import Tenants

__all__ = ["Access", "NewToken"]

_LONGEST_DAYS = 36_500
# A use this soon after the last one written down is not worth another write.
_USE_EVERY = timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class NewToken:
    """A token just made. Its text is here and nowhere else."""

    token: str = field(repr=False)
    record: TokenRecord
    # The level with which the person became a member of the organisation; None for who was one.
    joined: Level | None = None


class Access:
    """The tokens of one store."""

    def __init__(self, store: Store, clock: Clock, tenants: Tenants) -> None:
        self._store = store
        self._clock = clock
        self._tenants = tenants
        self._used: dict[str, datetime] = {}
        self._lock = threading.Lock()

    def create(
        self,
        user: str,
        *,
        agent: str | None = None,
        scopes: Collection[str] = ("read",),
        days: int | None = None,
        org: str | None = None,
        project: str | None = None,
    ) -> NewToken:
        """A new token for a person, or for an agent of theirs; without `days` it holds until it is revoked.

        It is for one organisation, that of the settings where none is named. A person who is no member of it becomes
        one, with the level that the scopes ask for. `project` is the one that calls work in which name none.
        """
        if days is not None and not 0 < days <= _LONGEST_DAYS:
            raise InvalidInput(f"A token holds for 1 to {_LONGEST_DAYS} days.", field="days")
        now = self._clock.now()
        record = TokenRecord(
            id=secrets.token_hex(6),
            user=check_name(user, "subject"),
            agent=None if agent is None else check_name(agent, "agent"),
            scopes=check_scopes(scopes),
            created_at=now,
            expires_at=None if days is None else now + timedelta(days=days),
            org=org,
            project_id=None if project is None else self._tenants.project(project).id,
        )
        level = level_of_scopes(record.scopes)
        joined = self._tenants.enlist(record.user, level, org)
        token = new_token()
        with acting_as(None), self._store.database.write() as session:
            self._store.access.add(session, _row(record), digest(token))
        return NewToken(token, record, level if joined else None)

    def list(self) -> tuple[TokenRecord, ...]:
        """All tokens there ever were, oldest first."""
        with self._store.database.read() as session:
            return tuple(_record(row) for row in self._store.access.all(session))

    def revoke(self, id: str) -> TokenRecord:
        """End a token now; the next call with it is refused. One that was revoked before stays so."""
        with self._store.database.write() as session:
            self._store.access.revoke(session, id, to_micros(self._clock.now()))
            row = self._store.access.by_id(session, id)
        if row is None:
            raise NotFound(f"There is no token {id[:40]!r}.", remedy="See: cortex token list.", field="id")
        return _record(row)

    def verify(self, token: str) -> Caller:
        """Who holds a token and what it opens; `AccessDenied` if it is none, has expired or was revoked.

        What they may reach with it is told by `tenants.admitted`.
        """
        row = None
        if is_token(token):
            with acting_as(None), self._store.database.read() as session:
                row = self._store.access.by_digest(session, digest(token))
        if row is None:
            raise AccessDenied("The token is not known.", remedy="Ask whoever runs this server for one.")
        record, now = _record(row), self._clock.now()
        state = record.state(now)
        if state != "valid":
            told = "has expired" if state == "expired" else "was revoked"
            raise AccessDenied(f"The token {record.id} {told}.", remedy="Ask whoever runs this server for a new one.")
        if record.last_used_at is None or now - record.last_used_at >= _USE_EVERY:
            with self._lock:
                self._used[record.id] = now
        return Caller(
            record.user,
            record.agent,
            record.scopes,
            f"token:{record.id}",
            org=record.org or "",
            project=record.project_id,
        )

    def write_uses(self) -> None:
        """Write down when tokens were last used. Not done by the calls themselves, which would all become writers."""
        with self._lock:
            used, self._used = self._used, {}
        if used:
            with acting_as(None), self._store.database.write() as session:
                self._store.access.used(session, [(id, to_micros(moment)) for id, moment in used.items()])


def _row(record: TokenRecord) -> TokenRow:
    return TokenRow(
        record.id,
        record.user,
        record.agent,
        " ".join(sorted(record.scopes)),
        to_micros(record.created_at),
        None if record.expires_at is None else to_micros(record.expires_at),
        None,
        None,
        record.org,
        record.project_id,
    )


def _record(row: TokenRow) -> TokenRecord:
    return TokenRecord(
        id=row.id,
        user=row.user_id,
        agent=row.agent_id,
        scopes=frozenset(row.scopes.split()),
        created_at=from_micros(row.created_at),
        expires_at=None if row.expires_at is None else from_micros(row.expires_at),
        last_used_at=None if row.last_used_at is None else from_micros(row.last_used_at),
        revoked_at=None if row.revoked_at is None else from_micros(row.revoked_at),
        org=row.org,
        project_id=row.project_id,
    )
