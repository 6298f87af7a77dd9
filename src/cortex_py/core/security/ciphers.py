"""The cryptographic primitives of all encrypted formats: AES-256-GCM, HKDF-SHA256, HMAC-SHA256.

Only this module uses the cryptographic library for them, and imports it when first needed.
"""

from __future__ import annotations

import hashlib
import hmac
import os
from collections.abc import Callable
from dataclasses import dataclass, field

from ..errors import BackupCorrupt

__all__ = [
    "NONCE_BYTES", "TAG_BYTES", "Cipher", "ObjectKeys", "Random", "compute_mac", "derive_key", "equal_in_constant_time",
    "name_object", "open_object", "seal_object",
]  # fmt: skip

NONCE_BYTES = 12
TAG_BYTES = 16


class Cipher:
    """AES-256-GCM under one key."""

    __slots__ = ("_aead", "_invalid")

    def __init__(self, key: bytes) -> None:
        from cryptography.exceptions import InvalidTag
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        if len(key) != 32:
            raise ValueError("a key has 32 bytes")
        self._aead = AESGCM(key)
        self._invalid = InvalidTag

    def encrypt(self, nonce: bytes, plain: bytes | bytearray | memoryview, associated: bytes) -> bytes:
        """The ciphertext with its tag at the end."""
        return self._aead.encrypt(nonce, plain, associated)

    def decrypt(self, nonce: bytes, sealed: bytes, associated: bytes) -> bytes | None:
        """The plaintext; None if key, nonce, ciphertext or associated data do not match."""
        if len(sealed) < TAG_BYTES:
            return None
        try:
            return self._aead.decrypt(nonce, sealed, associated)
        except self._invalid:
            return None


def derive_key(key: bytes, *, salt: bytes, info: bytes, length: int = 32) -> bytes:
    """Derive a key with HKDF-SHA256."""
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF

    return HKDF(algorithm=SHA256(), length=length, salt=salt, info=info).derive(key)


def compute_mac(key: bytes, data: bytes) -> bytes:
    """HMAC-SHA256."""
    return hmac.digest(key, data, hashlib.sha256)


def equal_in_constant_time(left: bytes, right: bytes) -> bool:
    """Whether two values are equal, in a time that does not depend on where they differ."""
    return hmac.compare_digest(left, right)


# Seals small objects under one long-lived key, and names them without revealing their content.
#
# Sealing the same bytes twice gives different results; naming them twice gives the same name, which only a holder of
# the key can compute or check. The format: docs/reference/formats.md.

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
            derive_key(root, salt=b"", info=b"cortex/object/1/sealing"),
            derive_key(root, salt=b"", info=b"cortex/object/1/naming"),
        )


def seal_object(data: bytes, keys: ObjectKeys, *, context: bytes, random: Random = os.urandom) -> bytes:
    """Seal an object; it opens only with the same context, which states its purpose and is not stored."""
    salt, nonce = random(_SALT_BYTES), random(NONCE_BYTES)
    start = _FORM + salt + nonce
    return start + _cipher(keys, salt).encrypt(nonce, data, start + context)


def open_object(sealed: bytes, keys: ObjectKeys, *, context: bytes) -> bytes:
    """Open a sealed object; BackupCorrupt if bytes, key or context differ."""
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


def name_object(keys: ObjectKeys, data: bytes) -> str:
    """The name of an object by its content, as 64 hexadecimal digits; meaningless without the key."""
    return compute_mac(keys.naming, data).hex()


def _cipher(keys: ObjectKeys, salt: bytes) -> Cipher:
    """A key for each object, so that nonces never repeat under one key."""
    return Cipher(derive_key(keys.sealing, salt=salt, info=b"cortex/object/1/one"))


Random = Callable[[int], bytes]
