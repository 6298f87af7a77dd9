"""The header of an encrypted vault file: its fixed part, the slots of its keys, and the proofs over both.

The fixed part never changes in the life of a file, and every chunk of the content is bound to it. The
slots each hold the file's key under one passphrase; they are replaced without touching the content.
Byte by byte: docs/formats.md.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import BinaryIO

from ..errors import BackupCorrupt, BackupError, InvalidInput, WrongKey
from .byte_streams import read_exactly
from .ciphers import NONCE_BYTES, Cipher, expand, mac, same
from .key_derivation import KEY_BYTES, Kdf, KdfLimits, KdfParameters, derive

__all__ = [
    "DEFAULT_CHUNK_BITS",
    "MAGIC",
    "MAX_SLOTS",
    "PREFIX_BYTES",
    "VERSION",
    "FixedPart",
    "Header",
    "OpenedHeader",
    "Random",
    "Slot",
    "altered",
    "new_header",
    "new_slot",
    "read_header",
]

Random = Callable[[int], bytes]

# No text, and broken by whatever changes line ends or ends a file at an end mark.
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
    """What stays the same from the writing of a file to its end."""

    file_id: bytes
    nonce_prefix: bytes
    chunk_bits: int = DEFAULT_CHUNK_BITS

    def encoded(self) -> bytes:
        return _FIXED.pack(MAGIC, VERSION, _SUITE, self.chunk_bits, _PADDING, self.file_id, self.nonce_prefix)

    @property
    def binding(self) -> bytes:
        """What every chunk carries as associated data, so that none can be moved into another file."""
        return hashlib.sha256(self.encoded()).digest()


@dataclass(frozen=True, slots=True)
class Slot:
    """The file's key under one passphrase. `check` tells whether a passphrase is the one, and commits to it."""

    parameters: KdfParameters
    salt: bytes
    nonce: bytes
    check: bytes
    wrapped: bytes

    def start(self) -> bytes:
        """All but the wrapped key, in the file's form."""
        cost = self.parameters
        return _SLOT_START.pack(cost.kdf, cost.memory_kib, cost.passes, cost.lanes, self.salt, self.nonce, self.check)

    def encoded(self) -> bytes:
        return self.start() + self.wrapped

    def wrapping_key(self, passphrase: str) -> bytes | None:
        """The key that wraps the file's key, or None where the passphrase is not this slot's."""
        wrapping, check = _slot_keys(passphrase, self.parameters, self.salt)
        return wrapping if same(check, self.check) else None


@dataclass(frozen=True, slots=True)
class Header:
    """A whole header. `proof` is the keyed one, over the fixed part and all slots."""

    fixed: FixedPart
    slots: tuple[Slot, ...]
    proof: bytes

    @classmethod
    def proved(cls, fixed: FixedPart, slots: tuple[Slot, ...], file_key: bytes) -> Header:
        return cls(fixed, slots, mac(_table_key(fixed, file_key), _told(fixed, slots)))

    def encoded(self) -> bytes:
        told = _told(self.fixed, self.slots) + self.proof
        return told + hashlib.sha256(told).digest()

    def opened(self, passphrase: str) -> OpenedHeader:
        """The header with the file's key. Tries the slots in turn."""
        for number, slot in enumerate(self.slots):
            wrapping = slot.wrapping_key(passphrase)
            if wrapping is None:
                continue
            # From here on the passphrase is known to be right, so what fails was altered.
            file_key = Cipher(wrapping).decrypt(slot.nonce, slot.wrapped, self.fixed.encoded() + slot.start())
            if file_key is None:
                raise altered("the slot of this passphrase is not what was written")
            expected = mac(_table_key(self.fixed, file_key), _told(self.fixed, self.slots))
            if not same(expected, self.proof):
                raise altered("its header is not what was written")
            return OpenedHeader(self, file_key, number)
        raise WrongKey(
            "The passphrase opens none of the file's slots.",
            remedy="Check the passphrase; where it is surely right, the header was altered: use another copy.",
        )


@dataclass(frozen=True, slots=True)
class OpenedHeader:
    """A header whose proofs held, with the key they held under and the slot that gave it."""

    header: Header
    file_key: bytes = field(repr=False)
    slot: int

    @property
    def content_key(self) -> bytes:
        return expand(self.file_key, salt=self.header.fixed.file_id, info=b"cortex/vault/1/content")

    def with_slots(self, slots: tuple[Slot, ...]) -> Header:
        """The same file under other slots."""
        return Header.proved(self.header.fixed, slots, self.file_key)


def new_header(
    passphrase: str, parameters: KdfParameters, chunk_bits: int, limits: KdfLimits, random: Random
) -> OpenedHeader:
    """A header for a new file, under a new key. The random bytes are drawn in the order of docs/formats.md."""
    limits.check_written([parameters])
    if not _LEAST_CHUNK_BITS <= chunk_bits <= _MOST_CHUNK_BITS:
        raise InvalidInput(
            f"A chunk has 2^{_LEAST_CHUNK_BITS} to 2^{_MOST_CHUNK_BITS} bytes, not 2^{chunk_bits}.", field="chunk_bits"
        )
    fixed = FixedPart(random(_ID_BYTES), random(PREFIX_BYTES), chunk_bits)
    file_key = random(KEY_BYTES)
    slots = (new_slot(fixed, file_key, passphrase, parameters, random),)
    return OpenedHeader(Header.proved(fixed, slots, file_key), file_key, 0)


def new_slot(fixed: FixedPart, file_key: bytes, passphrase: str, parameters: KdfParameters, random: Random) -> Slot:
    """The file's key under a passphrase, with a salt of its own."""
    salt = random(_SALT_BYTES)
    wrapping, check = _slot_keys(passphrase, parameters, salt)
    slot = Slot(parameters, salt, random(NONCE_BYTES), check, b"")
    wrapped = Cipher(wrapping).encrypt(slot.nonce, file_key, fixed.encoded() + slot.start())
    return replace(slot, wrapped=wrapped)


def read_header(source: BinaryIO, limits: KdfLimits) -> Header:
    """The header at the start of a file, undamaged and within the bounds, though nothing in it is proved yet."""
    start = read_exactly(source, _FIXED.size + _TABLE.size)
    if start[: len(MAGIC)] != MAGIC:
        raise BackupCorrupt("This is not an encrypted file of Cortex.", remedy="Check which file was meant.")
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
        raise altered("the length of its header cannot be")
    data = start + read_exactly(source, length - len(start))
    if len(data) < length:
        raise altered("it ends within its header")
    told, digest = data[:-_PROOF_BYTES], data[-_PROOF_BYTES:]
    if hashlib.sha256(told).digest() != digest:
        raise altered("its header is damaged")
    header = _parsed(told, count)
    limits.check_read([slot.parameters for slot in header.slots])
    return header


def altered(what: str) -> BackupCorrupt:
    """The one error for whatever is not as it was written."""
    return BackupCorrupt(f"The encrypted file is damaged or was altered: {what}.", remedy="Use another copy.")


def _parsed(told: bytes, count: int) -> Header:
    _, version, suite, chunk_bits, padding, file_id, prefix = _FIXED.unpack_from(told)
    known = version == VERSION and suite == _SUITE and padding == _PADDING
    if not known or not _LEAST_CHUNK_BITS <= chunk_bits <= _MOST_CHUNK_BITS:
        raise altered("its header says what no version of Cortex writes")
    offset = _FIXED.size + _TABLE.size
    slots = tuple(_slot(told, offset + number * _SLOT_BYTES) for number in range(count))
    header = Header(FixedPart(file_id, prefix, chunk_bits), slots, told[-_PROOF_BYTES:])
    # Catches the bytes between the fields, which are zero.
    if _told(header.fixed, slots) + header.proof != told:
        raise altered("its header says what no version of Cortex writes")
    return header


def _slot(told: bytes, offset: int) -> Slot:
    kdf, memory, passes, lanes, salt, nonce, check = _SLOT_START.unpack_from(told, offset)
    if kdf not in Kdf.__members__.values():
        raise altered("its header says what no version of Cortex writes")
    wrapped = told[offset + _SLOT_START.size : offset + _SLOT_BYTES]
    return Slot(KdfParameters(Kdf(kdf), memory, passes, lanes), salt, nonce, check, wrapped)


def _told(fixed: FixedPart, slots: tuple[Slot, ...]) -> bytes:
    """All of the header before its proofs."""
    length = _FIXED.size + _TABLE.size + len(slots) * _SLOT_BYTES + 2 * _PROOF_BYTES
    return b"".join((fixed.encoded(), _TABLE.pack(length, len(slots)), *(slot.encoded() for slot in slots)))


def _slot_keys(passphrase: str, parameters: KdfParameters, salt: bytes) -> tuple[bytes, bytes]:
    """The key that wraps, and the value that tells whether it is the right one."""
    derived = derive(passphrase, parameters, salt)
    both = expand(derived, salt=salt, info=b"cortex/vault/1/slot", length=2 * KEY_BYTES)
    return both[:KEY_BYTES], both[KEY_BYTES:]


def _table_key(fixed: FixedPart, file_key: bytes) -> bytes:
    return expand(file_key, salt=fixed.file_id, info=b"cortex/vault/1/header")
