"""API tokens: how one is made, recognised and remembered without being kept. Pure.

    ctx_<32 random bytes in base64url without padding>

Only the SHA-256 of a token is kept. A slow hash would protect guessable passwords; nobody guesses 256 random bits,
so it would only make every call slower.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import secrets
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

__all__ = ["PREFIX", "State", "TokenRecord", "digest", "encode", "is_token", "new_token"]

PREFIX = "ctx_"
_BYTES = 32

State = Literal["valid", "expired", "revoked"]


@dataclass(frozen=True, slots=True)
class TokenRecord:
    """What is known of a token. Its text is known to its holder alone."""

    id: str
    user: str
    agent: str | None
    scopes: frozenset[str]
    created_at: datetime
    expires_at: datetime | None = None
    last_used_at: datetime | None = None
    revoked_at: datetime | None = None
    # Where it is used: the organisation (None: the server's own), and the project where a call names none.
    org: str | None = None
    project_id: str | None = None

    def state(self, now: datetime) -> State:
        if self.revoked_at is not None:
            return "revoked"
        return "expired" if self.expires_at is not None and now >= self.expires_at else "valid"


def new_token() -> str:
    return encode(secrets.token_bytes(_BYTES))


def encode(secret: bytes) -> str:
    """The text of a token for its secret bytes."""
    if len(secret) != _BYTES:
        raise ValueError(f"a token has {_BYTES} bytes")
    return PREFIX + base64.urlsafe_b64encode(secret).rstrip(b"=").decode("ascii")


def is_token(text: str) -> bool:
    """Whether a text is a token's: one secret has one spelling."""
    if not text.isascii() or not text.startswith(PREFIX):
        return False
    body = text.removeprefix(PREFIX)
    try:
        secret = base64.b64decode(f"{body}=", altchars=b"-_", validate=True)
    except binascii.Error:
        return False
    return len(secret) == _BYTES and encode(secret) == text


def digest(token: str) -> str:
    """What is kept of a token, and by which it is found again."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()
