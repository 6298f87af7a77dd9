"""API tokens of a home, and authentication of a shared server's callers as the settings configure it.

    ctx_<32 random bytes in base64url without padding>

Only the SHA-256 of a token is stored. A slow hash protects guessable passwords; nobody can guess 256 random bits, so it
would only slow down every call.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import secrets
import threading
from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Literal

from ...core.clock import Clock, from_micros, to_micros
from ...core.config import Settings
from ...core.errors import AccessDenied, ConfigurationError, InvalidInput, NotFound
from ...core.security.callers import Caller, as_system, check_name
from ...core.security.rights import Level, check_scopes, level_of_scopes
from ...core.store.database import Row
from ...core.store.store import Store
from .oidc import SignedTokens
from .tenants import Tenants

__all__ = [
    "PREFIX", "Access", "NewToken", "TokenRecord", "TokenState", "Verifier", "encode_token", "hash_token", "is_token",
    "new_token", "open_verifier",
]  # fmt: skip

PREFIX = "ctx_"
_BYTES = 32
_LONGEST_DAYS = 36_500
_VIA = "token:"
# A use this soon after the last recorded one is not recorded.
_USE_EVERY = timedelta(minutes=5)

TokenState = Literal["valid", "expired", "revoked"]


@dataclass(frozen=True, slots=True)
class TokenRecord:
    """What is stored about a token. Only its holder knows its text."""

    id: str
    user: str
    agent: str | None
    scopes: frozenset[str]
    created_at: datetime
    expires_at: datetime | None = None
    last_used_at: datetime | None = None
    revoked_at: datetime | None = None
    # The organisation (None: the server's own), and the project of calls that name none.
    org: str | None = None
    project_id: str | None = None

    def state(self, now: datetime) -> TokenState:
        if self.revoked_at is not None:
            return "revoked"
        return "expired" if self.expires_at is not None and now >= self.expires_at else "valid"


def new_token() -> str:
    return encode_token(secrets.token_bytes(_BYTES))


def encode_token(secret: bytes) -> str:
    """The text of a token for its secret bytes."""
    if len(secret) != _BYTES:
        raise ValueError(f"a token has {_BYTES} bytes")
    return PREFIX + base64.urlsafe_b64encode(secret).rstrip(b"=").decode("ascii")


def is_token(text: str) -> bool:
    """Whether a text is a canonically encoded token."""
    if not text.isascii() or not text.startswith(PREFIX):
        return False
    body = text.removeprefix(PREFIX)
    try:
        secret = base64.b64decode(f"{body}=", altchars=b"-_", validate=True)
    except binascii.Error:
        return False
    return len(secret) == _BYTES and encode_token(secret) == text


def hash_token(token: str) -> str:
    """The hash under which a token is stored and looked up."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


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
        """Create a token for a person or an agent of theirs; without `days` it is valid until it is revoked.

        It is for one organisation, by default that of the settings. A person who is not a member becomes one, with the
        level that the scopes need. `project` is used by calls that name none.
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
        with as_system(), self._store.database.write() as session:
            self._store.access.add(session, _row(record), hash_token(token))
        return NewToken(token, record, level if joined else None)

    def list(self) -> tuple[TokenRecord, ...]:
        """All tokens, also expired and revoked ones, oldest first."""
        with self._store.database.read() as session:
            return tuple(_record(row) for row in self._store.access.all(session))

    def revoke(self, id: str) -> TokenRecord:
        """Revoke a token; the next call with it is refused. Revoking twice is harmless."""
        with self._store.database.write() as session:
            self._store.access.revoke(session, id, to_micros(self._clock.now()))
            row = self._store.access.by_id(session, id)
        if row is None:
            raise NotFound(f"There is no token {id[:40]!r}.", remedy="See: cortex token list.", field="id")
        return _record(row)

    def verify(self, token: str) -> Caller:
        """The caller of a token; `AccessDenied` if it is unknown, expired or revoked.

        `Tenants.admitted` adds their rights.
        """
        row = None
        if is_token(token):
            with as_system(), self._store.database.read() as session:
                row = self._store.access.by_digest(session, hash_token(token))
        if row is None:
            raise AccessDenied("The token is not known.", remedy="Ask the operator of this server for one.")
        record, now = _record(row), self._clock.now()
        _check_valid(record, now)
        if record.last_used_at is None or now - record.last_used_at >= _USE_EVERY:
            with self._lock:
                self._used[record.id] = now
        return Caller(
            record.user,
            record.agent,
            record.scopes,
            f"{_VIA}{record.id}",
            org=record.org or "",
            project=record.project_id,
        )

    def _recheck(self, caller: Caller) -> None:
        """Raise `AccessDenied` once the token that a caller came with has expired or was revoked."""
        with as_system(), self._store.database.read() as session:
            row = self._store.access.by_id(session, caller.via.removeprefix(_VIA))
        if row is None:
            raise AccessDenied("The token is not known.")
        _check_valid(_record(row), self._clock.now())

    def write_uses(self) -> None:
        """Record when tokens were last used. Done in batches, so that read calls do not become writes."""
        with self._lock:
            used, self._used = self._used, {}
        if used:
            with as_system(), self._store.database.write() as session:
                self._store.access.used(session, [(id, to_micros(moment)) for id, moment in used.items()])


def _check_valid(record: TokenRecord, now: datetime) -> None:
    state = record.state(now)
    if state != "valid":
        reason = "has expired" if state == "expired" else "was revoked"
        raise AccessDenied(f"The token {record.id} {reason}.", remedy="Ask the operator of this server for a new one.")


def _row(record: TokenRecord) -> Row:
    scopes, created = " ".join(sorted(record.scopes)), to_micros(record.created_at)
    expires = None if record.expires_at is None else to_micros(record.expires_at)
    return record.id, record.user, record.agent, scopes, created, expires, None, None, record.org, record.project_id


def _record(row: Row) -> TokenRecord:
    id, user, agent, scopes, created, *others, org, project_id = row
    expires, used, revoked = (None if moment is None else from_micros(moment) for moment in others)
    known = frozenset(scopes.split())
    return TokenRecord(id, user, agent, known, from_micros(created), expires, used, revoked, org, project_id)


class Verifier:
    """Turns a bearer token into a caller with rights; `AccessDenied` if the token is not valid."""

    def __init__(self, tokens: Access | SignedTokens, tenants: Tenants) -> None:
        self._tokens = tokens
        self._tenants = tenants

    def __call__(self, token: str, project: str | None = None) -> Caller:
        """The caller with their rights; `project` is the one they want to work in."""
        return self.admitted(self.recognised(token), project)

    def recognised(self, token: str) -> Caller:
        """The caller, without their rights yet."""
        return self._tokens.verify(token)

    def admitted(self, caller: Caller, project: str | None = None) -> Caller:
        """The caller with their current rights."""
        return self._tenants.admitted(caller, project)

    def readmitted(self, caller: Caller) -> Caller:
        """The caller of an open stream with their current rights; `AccessDenied` once their token has ended.

        A signed token is not held to its end: its client has a newer one by then, and the stream goes on.
        """
        if isinstance(self._tokens, Access):
            self._tokens._recheck(caller)
        return self._tenants.admitted(caller)


def open_verifier(settings: Settings, access: Access, tenants: Tenants, clock: Clock) -> Verifier | None:
    """The configured verifier; None if all callers share one token or need none."""
    if settings.auth == "token":
        return None
    if settings.token:
        # One of the two would be ignored silently.
        raise ConfigurationError(
            f"Both token and auth = {settings.auth} are set.", remedy="Unset token (CORTEX_TOKEN).", field="token"
        )
    tokens = access if settings.auth == "tokens" else SignedTokens.from_settings(settings, clock)
    return Verifier(tokens, tenants)
