"""From a passphrase to a key: the functions a vault file may name, what they cost, and the bounds on that.

A header is read before anything in it is proved, so its costs are held between two bounds: below the
lower one it would make guessing cheap, above the upper one reading it would exhaust the machine.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

from ..errors import BackupCorrupt, BackupError, InvalidInput

__all__ = ["DEFAULT_PARAMETERS", "KEY_BYTES", "LIMITS", "Kdf", "KdfLimits", "KdfParameters", "derive"]

KEY_BYTES = 32

_MAX_PASSPHRASE_BYTES = 4096
_SCRYPT_BLOCK = 8  # With blocks of 8 the cost N of scrypt is its memory in KiB.


class Kdf(IntEnum):
    """The key derivation functions, by their number in the file."""

    ARGON2ID = 1
    SCRYPT = 2


@dataclass(frozen=True, slots=True)
class KdfParameters:
    """What one derivation costs. For scrypt `memory_kib` is N, with blocks of 8, and `passes` is p."""

    kdf: Kdf = Kdf.ARGON2ID
    memory_kib: int = 64 * 1024
    passes: int = 3
    lanes: int = 4

    @property
    def work_kib(self) -> int:
        """Memory times passes: what the time grows with."""
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
    """Bounds on what a vault file may ask for; `most_work_kib` is for all its slots together."""

    least_memory_kib: int = 19 * 1024
    least_work_kib: int = 38 * 1024
    most_memory_kib: int = 512 * 1024
    most_work_kib: int = 4 * 1024 * 1024
    most_lanes: int = 16

    def fault(self, slots: Sequence[KdfParameters]) -> str | None:
        """What is wrong with the derivations of a file's slots, or None."""
        for each in slots:
            if not each.sound:
                return "numbers that cannot be"
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
    """The key of 32 bytes that belongs to a passphrase; the same characters give the same key, however composed."""
    secret = _encoded(passphrase)
    if not parameters.sound:
        raise InvalidInput("The parameters are numbers that cannot be.", field="parameters")
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
            f"Deriving the key takes {-(-parameters.memory_kib // 1024)} MiB of memory, and there was less.",
            remedy="Free some memory and repeat.",
        ) from error


def _argon2id(secret: bytes, parameters: KdfParameters, salt: bytes) -> bytes:
    from cryptography.hazmat.primitives.kdf.argon2 import Argon2id

    function = Argon2id(
        salt=salt,
        length=KEY_BYTES,
        iterations=parameters.passes,
        lanes=parameters.lanes,
        memory_cost=parameters.memory_kib,
    )
    return function.derive(secret)


def _scrypt(secret: bytes, parameters: KdfParameters, salt: bytes) -> bytes:
    from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

    function = Scrypt(salt=salt, length=KEY_BYTES, n=parameters.memory_kib, r=_SCRYPT_BLOCK, p=parameters.passes)
    return function.derive(secret)


def _encoded(passphrase: str) -> bytes:
    import unicodedata

    try:
        secret = unicodedata.normalize("NFC", passphrase).encode("utf-8")
    except UnicodeEncodeError:
        # Without its cause, which would carry the passphrase into a log.
        raise InvalidInput("The passphrase holds characters that are no text.", field="passphrase") from None
    if not secret:
        raise InvalidInput("The passphrase is empty.", remedy="Give one.", field="passphrase")
    if len(secret) > _MAX_PASSPHRASE_BYTES:
        raise InvalidInput(f"The passphrase is longer than {_MAX_PASSPHRASE_BYTES} bytes.", field="passphrase")
    return secret
