"""API tokens: creation, validation, and the hash that is stored. Pure.

    ctx_<32 random bytes in base64url without padding>

Only the SHA-256 of a token is stored. A slow hash protects guessable passwords; nobody can guess 256 random bits, so it
would only slow down every call.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import secrets
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

__all__ = ["PREFIX", "TokenRecord", "TokenState", "encode_token", "hash_token", "is_token", "new_token"]

PREFIX = "ctx_"
_BYTES = 32

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
