"""The header of a vault file: its fixed part, the slots with its key, and the proofs over both.

The fixed part never changes, and every chunk of the content is bound to it. Each slot holds the file's key under one
passphrase; slots are replaced without touching the content. A header is read before anything in it is proved, so the
costs of its key derivation are limited in both directions: a low cost would make guessing cheap, a high one would
exhaust the machine. Byte by byte: formats.md.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import BinaryIO

from ....core.errors import BackupCorrupt, BackupError, InvalidInput, WrongKey
from ....core.files import read_exactly
from ....core.security.ciphers import NONCE_BYTES, Cipher, Random, compute_mac, derive_key, equal_in_constant_time

__all__ = [
    "DEFAULT_CHUNK_BITS", "DEFAULT_PARAMETERS", "LIMITS", "Kdf", "KdfLimits", "KdfParameters", "OpenedHeader",
    "altered", "derive", "new_header", "new_slot", "read_header",
]  # fmt: skip


KEY_BYTES = 32

_MAX_PASSPHRASE_BYTES = 4096
_SCRYPT_BLOCK = 8  # With blocks of 8 the cost N of scrypt is its memory in KiB.


class Kdf(IntEnum):
    """The key derivation functions, by their number in the file."""

    ARGON2ID = 1
    SCRYPT = 2


@dataclass(frozen=True, slots=True)
class KdfParameters:
    """The cost of one derivation. For scrypt `memory_kib` is N, with blocks of 8, and `passes` is p."""

    kdf: Kdf = Kdf.ARGON2ID
    memory_kib: int = 64 * 1024
    passes: int = 3
    lanes: int = 4

    @property
    def work_kib(self) -> int:
        """Memory times passes, which the time is proportional to."""
        return self.memory_kib * self.passes

    @property
    def sound(self) -> bool:
        """Whether the function can run with these numbers at all."""
        if min(self.memory_kib, self.passes, self.lanes) < 1:
            return False
        if self.kdf is Kdf.SCRYPT:
            return self.lanes == 1 and self.memory_kib > 1 and self.memory_kib & (self.memory_kib - 1) == 0
        return self.memory_kib >= 8 * self.lanes


@dataclass(frozen=True, slots=True)
class KdfLimits:
    """Limits on the costs of a vault file; `most_work_kib` is for all its slots together."""

    least_memory_kib: int = 19 * 1024
    least_work_kib: int = 38 * 1024
    most_memory_kib: int = 512 * 1024
    most_work_kib: int = 4 * 1024 * 1024
    most_lanes: int = 16

    def fault(self, slots: Sequence[KdfParameters]) -> str | None:
        """What is wrong with the derivations of a file's slots, or None."""
        for each in slots:
            if not each.sound:
                return "impossible numbers"
            if each.memory_kib < self.least_memory_kib or each.work_kib < self.least_work_kib:
                return "a key derivation weaker than is allowed"
            if each.memory_kib > self.most_memory_kib or each.lanes > self.most_lanes:
                return "a key derivation costlier than is allowed"
        if sum(each.work_kib for each in slots) > self.most_work_kib:
            return "a key derivation costlier than is allowed"
        return None

    def check_read(self, slots: Sequence[KdfParameters]) -> None:
        """Refuse a file whose header asks for too little or too much."""
        if fault := self.fault(slots):
            raise BackupCorrupt(
                f"The header of the encrypted file asks for {fault}.", remedy="It was altered; use another copy."
            )

    def check_written(self, slots: Sequence[KdfParameters]) -> None:
        """Refuse to write what could not be read again."""
        if fault := self.fault(slots):
            raise InvalidInput(
                f"The parameters ask for {fault}.", remedy="Take the default parameters.", field="parameters"
            )


LIMITS = KdfLimits()
DEFAULT_PARAMETERS = KdfParameters()


def derive(passphrase: str, parameters: KdfParameters, salt: bytes) -> bytes:
    """The key of 32 bytes for a passphrase, which is normalised: equal characters give equal keys."""
    secret = _encoded_secret(passphrase)
    if not parameters.sound:
        raise InvalidInput("The parameters are impossible numbers.", field="parameters")
    # Imported here, since most programs never make a backup.
    from cryptography.exceptions import UnsupportedAlgorithm

    try:
        return (
            _scrypt(secret, parameters, salt) if parameters.kdf is Kdf.SCRYPT else _argon2id(secret, parameters, salt)
        )
    except UnsupportedAlgorithm as error:
        raise BackupError(
            f"The cryptographic library of this machine offers no {parameters.kdf.name.lower()}.",
            remedy="Install `cryptography` from its own wheel.",
        ) from error
    except MemoryError as error:
        raise BackupError(
            f"Deriving the key takes {-(-parameters.memory_kib // 1024)} MiB of memory, and less is free.",
            remedy="Free some memory and repeat.",
        ) from error


def _argon2id(secret: bytes, parameters: KdfParameters, salt: bytes) -> bytes:
    from cryptography.hazmat.primitives.kdf.argon2 import Argon2id

    passes, lanes, memory = parameters.passes, parameters.lanes, parameters.memory_kib
    return Argon2id(salt=salt, length=KEY_BYTES, iterations=passes, lanes=lanes, memory_cost=memory).derive(secret)


def _scrypt(secret: bytes, parameters: KdfParameters, salt: bytes) -> bytes:
    from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

    function = Scrypt(salt=salt, length=KEY_BYTES, n=parameters.memory_kib, r=_SCRYPT_BLOCK, p=parameters.passes)
    return function.derive(secret)


def _encoded_secret(passphrase: str) -> bytes:
    import unicodedata

    try:
        secret = unicodedata.normalize("NFC", passphrase).encode("utf-8")
    except UnicodeEncodeError:
        # Without its cause, which would carry the passphrase into a log.
        raise InvalidInput("The passphrase holds characters that are not text.", field="passphrase") from None
    if not secret:
        raise InvalidInput("The passphrase is empty.", remedy="Give one.", field="passphrase")
    if len(secret) > _MAX_PASSPHRASE_BYTES:
        raise InvalidInput(f"The passphrase is longer than {_MAX_PASSPHRASE_BYTES} bytes.", field="passphrase")
    return secret


# Not text, and broken by tools that convert line ends or stop at an end-of-file character.
MAGIC = b"\x89CXV\r\n\x1a\n"
VERSION = 1
MAX_SLOTS = 8
DEFAULT_CHUNK_BITS = 18
PREFIX_BYTES = 7

_SUITE = 1
_PADDING = 1
_LEAST_CHUNK_BITS, _MOST_CHUNK_BITS = 10, 24
_ID_BYTES = 32
_SALT_BYTES = 32
_PROOF_BYTES = 32
_FIXED = struct.Struct(">8sHBBB3x32s7sx")
_TABLE = struct.Struct(">IH2x")
_SLOT_START = struct.Struct(">B3xIII32s12s4x32s")
_WRAPPED_BYTES = KEY_BYTES + 16
_SLOT_BYTES = _SLOT_START.size + _WRAPPED_BYTES
_VERSION_END = 10


@dataclass(frozen=True, slots=True)
class FixedPart:
    """What stays the same for the life of a file."""

    file_id: bytes
    nonce_prefix: bytes
    chunk_bits: int = DEFAULT_CHUNK_BITS

    def encoded(self) -> bytes:
        return _FIXED.pack(MAGIC, VERSION, _SUITE, self.chunk_bits, _PADDING, self.file_id, self.nonce_prefix)

    @property
    def binding(self) -> bytes:
        """The associated data of every chunk, which keeps chunks from being moved into another file."""
        return hashlib.sha256(self.encoded()).digest()


@dataclass(frozen=True, slots=True)
class KeySlot:
    """The file's key under one passphrase. `check` identifies the passphrase and commits to it."""

    parameters: KdfParameters
    salt: bytes
    nonce: bytes
    check: bytes
    wrapped: bytes

    def start(self) -> bytes:
        """All but the wrapped key, as encoded in the file."""
        cost = self.parameters
        return _SLOT_START.pack(cost.kdf, cost.memory_kib, cost.passes, cost.lanes, self.salt, self.nonce, self.check)

    def encoded(self) -> bytes:
        return self.start() + self.wrapped

    def wrapping_key(self, passphrase: str) -> bytes | None:
        """The key that wraps the file's key, or None if the passphrase is not this slot's."""
        wrapping, check = _slot_keys(passphrase, self.parameters, self.salt)
        return wrapping if equal_in_constant_time(check, self.check) else None


@dataclass(frozen=True, slots=True)
class Header:
    """A whole header. `proof` is the keyed proof over the fixed part and all slots."""

    fixed: FixedPart
    slots: tuple[KeySlot, ...]
    proof: bytes

    @classmethod
    def proved(cls, fixed: FixedPart, slots: tuple[KeySlot, ...], file_key: bytes) -> Header:
        return cls(fixed, slots, compute_mac(_table_key(fixed, file_key), _encoded(fixed, slots)))

    def encoded(self) -> bytes:
        data = _encoded(self.fixed, self.slots) + self.proof
        return data + hashlib.sha256(data).digest()

    def opened(self, passphrase: str) -> OpenedHeader:
        """Find the file's key by trying the slots in turn."""
        for number, slot in enumerate(self.slots):
            wrapping = slot.wrapping_key(passphrase)
            if wrapping is None:
                continue
            # The passphrase is right, so a failure from here on means that the file was altered.
            file_key = Cipher(wrapping).decrypt(slot.nonce, slot.wrapped, self.fixed.encoded() + slot.start())
            if file_key is None:
                raise altered("the slot of this passphrase is not what was written")
            expected = compute_mac(_table_key(self.fixed, file_key), _encoded(self.fixed, self.slots))
            if not equal_in_constant_time(expected, self.proof):
                raise altered("its header is not what was written")
            return OpenedHeader(self, file_key, number)
        raise WrongKey(
            "The passphrase opens none of the file's slots.",
            remedy="Check the passphrase; if it is right, the header was altered: use another copy.",
        )


@dataclass(frozen=True, slots=True)
class OpenedHeader:
    """A header whose proofs hold, with the file's key and the slot it came from."""

    header: Header
    file_key: bytes = field(repr=False)
    slot: int

    @property
    def content_key(self) -> bytes:
        return derive_key(self.file_key, salt=self.header.fixed.file_id, info=b"cortex/vault/1/content")

    def with_slots(self, slots: tuple[KeySlot, ...]) -> Header:
        """The same file with other slots."""
        return Header.proved(self.header.fixed, slots, self.file_key)


def new_header(
    passphrase: str, parameters: KdfParameters, chunk_bits: int, limits: KdfLimits, random: Random
) -> OpenedHeader:
    """A header for a new file, under a new key. The random bytes are drawn in the order of formats.md."""
    limits.check_written([parameters])
    if not _LEAST_CHUNK_BITS <= chunk_bits <= _MOST_CHUNK_BITS:
        raise InvalidInput(
            f"A chunk has 2^{_LEAST_CHUNK_BITS} to 2^{_MOST_CHUNK_BITS} bytes, not 2^{chunk_bits}.", field="chunk_bits"
        )
    fixed = FixedPart(random(_ID_BYTES), random(PREFIX_BYTES), chunk_bits)
    file_key = random(KEY_BYTES)
    slots = (new_slot(fixed, file_key, passphrase, parameters, random),)
    return OpenedHeader(Header.proved(fixed, slots, file_key), file_key, 0)


def new_slot(fixed: FixedPart, file_key: bytes, passphrase: str, parameters: KdfParameters, random: Random) -> KeySlot:
    """The file's key under a passphrase, with a new salt."""
    salt = random(_SALT_BYTES)
    wrapping, check = _slot_keys(passphrase, parameters, salt)
    slot = KeySlot(parameters, salt, random(NONCE_BYTES), check, b"")
    wrapped = Cipher(wrapping).encrypt(slot.nonce, file_key, fixed.encoded() + slot.start())
    return replace(slot, wrapped=wrapped)


def read_header(source: BinaryIO, limits: KdfLimits) -> Header:
    """Read the header at the start of a file. It is undamaged and within the limits, but not proved yet."""
    start = read_exactly(source, _FIXED.size + _TABLE.size)
    if start[: len(MAGIC)] != MAGIC:
        raise BackupCorrupt("This is not an encrypted file of Cortex.", remedy="Check the path.")
    if len(start) < _FIXED.size + _TABLE.size:
        raise altered("it ends within its header")
    version = int.from_bytes(start[len(MAGIC) : _VERSION_END], "big")
    if version > VERSION:
        raise BackupError(
            f"The encrypted file has format {version}; this version of Cortex reads format {VERSION}.",
            remedy="Update Cortex.",
        )
    length, count = _TABLE.unpack_from(start, _FIXED.size)
    if not 1 <= count <= MAX_SLOTS or length != len(start) + count * _SLOT_BYTES + 2 * _PROOF_BYTES:
        raise altered("the length of its header is impossible")
    data = start + read_exactly(source, length - len(start))
    if len(data) < length:
        raise altered("it ends within its header")
    proved, digest = data[:-_PROOF_BYTES], data[-_PROOF_BYTES:]
    if hashlib.sha256(proved).digest() != digest:
        raise altered("its header is damaged")
    header = _parse(proved, count)
    limits.check_read([slot.parameters for slot in header.slots])
    return header


def altered(what: str) -> BackupCorrupt:
    """The error for a file that is not as it was written."""
    return BackupCorrupt(f"The encrypted file is damaged or was altered: {what}.", remedy="Use another copy.")


def _parse(data: bytes, count: int) -> Header:
    _, version, suite, chunk_bits, padding, file_id, prefix = _FIXED.unpack_from(data)
    known = version == VERSION and suite == _SUITE and padding == _PADDING
    if not known or not _LEAST_CHUNK_BITS <= chunk_bits <= _MOST_CHUNK_BITS:
        raise altered("its header has a form that no version of Cortex writes")
    offset = _FIXED.size + _TABLE.size
    slots = tuple(_slot(data, offset + number * _SLOT_BYTES) for number in range(count))
    header = Header(FixedPart(file_id, prefix, chunk_bits), slots, data[-_PROOF_BYTES:])
    # Checks the bytes between the fields, which are zero.
    if _encoded(header.fixed, slots) + header.proof != data:
        raise altered("its header has a form that no version of Cortex writes")
    return header


def _slot(data: bytes, offset: int) -> KeySlot:
    kdf, memory, passes, lanes, salt, nonce, check = _SLOT_START.unpack_from(data, offset)
    if kdf not in Kdf.__members__.values():
        raise altered("its header has a form that no version of Cortex writes")
    wrapped = data[offset + _SLOT_START.size : offset + _SLOT_BYTES]
    return KeySlot(KdfParameters(Kdf(kdf), memory, passes, lanes), salt, nonce, check, wrapped)


def _encoded(fixed: FixedPart, slots: tuple[KeySlot, ...]) -> bytes:
    """The header before its proofs."""
    length = _FIXED.size + _TABLE.size + len(slots) * _SLOT_BYTES + 2 * _PROOF_BYTES
    return b"".join((fixed.encoded(), _TABLE.pack(length, len(slots)), *(slot.encoded() for slot in slots)))


def _slot_keys(passphrase: str, parameters: KdfParameters, salt: bytes) -> tuple[bytes, bytes]:
    """The key that wraps, and the value that identifies the passphrase."""
    derived = derive(passphrase, parameters, salt)
    both = derive_key(derived, salt=salt, info=b"cortex/vault/1/slot", length=2 * KEY_BYTES)
    return both[:KEY_BYTES], both[KEY_BYTES:]


def _table_key(fixed: FixedPart, file_key: bytes) -> bytes:
    return derive_key(file_key, salt=fixed.file_id, info=b"cortex/vault/1/header")
