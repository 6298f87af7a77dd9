"""The three primitives that all encrypted forms of Cortex are made of: AES-256-GCM, HKDF-SHA256, HMAC-SHA256.

Nothing else in this room calls the cryptographic library for them; it is imported when it is first needed.
"""

from __future__ import annotations

import hashlib
import hmac

__all__ = ["NONCE_BYTES", "TAG_BYTES", "Cipher", "expand", "mac", "same"]

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
        """The plaintext; None where key, nonce, ciphertext or associated data is not the one it was made with."""
        if len(sealed) < TAG_BYTES:
            return None
        try:
            return self._aead.decrypt(nonce, sealed, associated)
        except self._invalid:
            return None


def expand(key: bytes, *, salt: bytes, info: bytes, length: int = 32) -> bytes:
    """Further keys from one: HKDF-SHA256, extracted with the salt, expanded with the info."""
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF

    return HKDF(algorithm=SHA256(), length=length, salt=salt, info=info).derive(key)


def mac(key: bytes, data: bytes) -> bytes:
    """HMAC-SHA256."""
    return hmac.digest(key, data, hashlib.sha256)


def same(left: bytes, right: bytes) -> bool:
    """Whether two values are equal, in a time that does not tell where they differ."""
    return hmac.compare_digest(left, right)
