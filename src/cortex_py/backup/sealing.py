"""Small objects under one long-lived key: sealed with what they are for, and named without telling what they hold.

Sealing the same bytes twice gives different results; naming them twice gives the same name, and only
who holds the key can compute or check it. The form: docs/formats.md.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field

from ..errors import BackupCorrupt
from .ciphers import NONCE_BYTES, TAG_BYTES, Cipher, expand, mac
from .vault_header import Random

__all__ = ["ObjectKeys", "content_name", "open_sealed", "seal"]

_FORM = b"\x01"
_SALT_BYTES = 16
_START = len(_FORM) + _SALT_BYTES + NONCE_BYTES
_KEY_BYTES = 32


@dataclass(frozen=True, slots=True)
class ObjectKeys:
    """The keys of one collection of objects: one seals, one names."""

    sealing: bytes = field(repr=False)
    naming: bytes = field(repr=False)

    @classmethod
    def of(cls, root: bytes) -> ObjectKeys:
        """Both keys from one of 32 random bytes."""
        if len(root) != _KEY_BYTES:
            raise ValueError("a key has 32 bytes")
        return cls(
            expand(root, salt=b"", info=b"cortex/object/1/sealing"),
            expand(root, salt=b"", info=b"cortex/object/1/naming"),
        )


def seal(data: bytes, keys: ObjectKeys, *, context: bytes, random: Random = os.urandom) -> bytes:
    """The object sealed; it opens only with the same context, which says what it is and is not stored."""
    salt, nonce = random(_SALT_BYTES), random(NONCE_BYTES)
    start = _FORM + salt + nonce
    return start + _cipher(keys, salt).encrypt(nonce, data, start + context)


def open_sealed(sealed: bytes, keys: ObjectKeys, *, context: bytes) -> bytes:
    """The object again, or BackupCorrupt where anything differs: bytes, key or context."""
    start = sealed[:_START]
    plain = None
    if len(sealed) >= _START + TAG_BYTES and start[:1] == _FORM:
        salt, nonce = start[1 : 1 + _SALT_BYTES], start[1 + _SALT_BYTES :]
        plain = _cipher(keys, salt).decrypt(nonce, sealed[_START:], start + context)
    if plain is None:
        raise BackupCorrupt(
            "A sealed object is damaged, was altered, or belongs elsewhere.", remedy="Use another copy of the backup."
        )
    return plain


def content_name(keys: ObjectKeys, data: bytes) -> str:
    """The name of an object by what it holds, as 64 hexadecimal digits; tells nothing without the key."""
    return mac(keys.naming, data).hex()


def _cipher(keys: ObjectKeys, salt: bytes) -> Cipher:
    """A key for each object, so that nonces never meet however many objects there are."""
    return Cipher(expand(keys.sealing, salt=salt, info=b"cortex/object/1/one"))
