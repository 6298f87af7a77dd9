"""Encrypted vault files: any bytes under a passphrase, in a form that shows every change.

A stream that is decrypted gives out what is proved so far; only a call that returns has proved the
whole, so nothing may act on the bytes before. `decrypt_file` keeps to that by itself: the file appears
when all of it was verified. The form: docs/formats.md.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from ..errors import Conflict, InvalidInput
from .byte_streams import write_fully
from .key_derivation import DEFAULT_PARAMETERS, LIMITS, KdfLimits, KdfParameters
from .replacing import replacing, whole_file
from .vault_chunks import Content, open_chunks, seal_chunks
from .vault_header import (
    DEFAULT_CHUNK_BITS,
    MAX_SLOTS,
    OpenedHeader,
    Random,
    Slot,
    new_header,
    new_slot,
    read_header,
)

__all__ = [
    "Verified",
    "add_passphrase",
    "decrypt",
    "decrypt_file",
    "encrypt",
    "encrypt_file",
    "remove_passphrase",
    "rewrap",
    "verify",
]

_COPY_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Verified:
    """What a file was found to hold, once all of it was verified."""

    size: int
    chunks: int
    passphrases: int


def encrypt(
    source: BinaryIO,
    target: BinaryIO,
    passphrase: str,
    *,
    parameters: KdfParameters | None = None,
    limits: KdfLimits = LIMITS,
    chunk_bits: int = DEFAULT_CHUNK_BITS,
    random: Random = os.urandom,
) -> None:
    """Write what the source holds, encrypted. Other limits than the usual have to be given to the reader too."""
    opened = new_header(passphrase, parameters or DEFAULT_PARAMETERS, chunk_bits, limits, random)
    write_fully(target, opened.header.encoded())
    for chunk in seal_chunks(source, opened):
        write_fully(target, chunk)


def decrypt(source: BinaryIO, target: BinaryIO, passphrase: str, *, limits: KdfLimits = LIMITS) -> None:
    """Write what an encrypted source holds, chunk by proved chunk; raises at the first fault.

    What was written before an error is authentic but may be incomplete: discard it.
    """
    opened = read_header(source, limits).opened(passphrase)
    for piece in open_chunks(source, opened, Content()):
        write_fully(target, piece)


def encrypt_file(
    path: Path,
    target: Path,
    passphrase: str,
    *,
    parameters: KdfParameters | None = None,
    limits: KdfLimits = LIMITS,
) -> None:
    """Encrypt a file into another, which appears when it is whole and on the disk."""
    with replacing(target) as draft, whole_file(path) as source:
        encrypt(source, draft, passphrase, parameters=parameters, limits=limits)


def decrypt_file(path: Path, target: Path, passphrase: str, *, limits: KdfLimits = LIMITS) -> None:
    """Decrypt a file into another, which appears when the whole was verified and is on the disk."""
    with replacing(target) as draft, whole_file(path) as source:
        decrypt(source, draft, passphrase, limits=limits)


def verify(path: Path, passphrase: str, *, limits: KdfLimits = LIMITS) -> Verified:
    """Read a file to its end as `decrypt` would, keeping nothing."""
    content = Content()
    with whole_file(path) as source:
        opened = read_header(source, limits).opened(passphrase)
        for _ in open_chunks(source, opened, content):
            pass
    return Verified(content.size, content.chunks, len(opened.header.slots))


def rewrap(
    path: Path,
    old: str,
    new: str,
    *,
    parameters: KdfParameters | None = None,
    limits: KdfLimits = LIMITS,
    random: Random = os.urandom,
) -> None:
    """Put a new passphrase in the place of an old one. The content is copied as it is, not encrypted anew.

    Who knew the old passphrase and kept a copy of the file can still read it: the file's key stays.
    """

    def replaced(opened: OpenedHeader) -> tuple[Slot, ...]:
        others = opened.header.slots[: opened.slot] + opened.header.slots[opened.slot + 1 :]
        _refuse_known(others, new)
        slot = new_slot(opened.header.fixed, opened.file_key, new, parameters or DEFAULT_PARAMETERS, random)
        return (*opened.header.slots[: opened.slot], slot, *opened.header.slots[opened.slot + 1 :])

    _with_other_slots(path, old, replaced, limits)


def add_passphrase(
    path: Path,
    passphrase: str,
    new: str,
    *,
    parameters: KdfParameters | None = None,
    limits: KdfLimits = LIMITS,
    random: Random = os.urandom,
) -> None:
    """Let a further passphrase open the file, beside those that do."""

    def added(opened: OpenedHeader) -> tuple[Slot, ...]:
        slots = opened.header.slots
        if len(slots) >= MAX_SLOTS:
            raise InvalidInput(
                f"{path} has {MAX_SLOTS} passphrases already.", remedy="Remove one first.", field="passphrase"
            )
        _refuse_known(slots, new)
        slot = new_slot(opened.header.fixed, opened.file_key, new, parameters or DEFAULT_PARAMETERS, random)
        return (*slots, slot)

    _with_other_slots(path, passphrase, added, limits)


def remove_passphrase(path: Path, passphrase: str, *, limits: KdfLimits = LIMITS) -> None:
    """Let a passphrase, which must be one of the file's, open it no longer. The last one stays."""

    def rest(opened: OpenedHeader) -> tuple[Slot, ...]:
        slots = opened.header.slots
        if len(slots) == 1:
            raise InvalidInput(
                f"Without this passphrase {path} could not be opened.", remedy="Add another first.", field="passphrase"
            )
        return slots[: opened.slot] + slots[opened.slot + 1 :]

    _with_other_slots(path, passphrase, rest, limits)


def _with_other_slots(
    path: Path, passphrase: str, change: Callable[[OpenedHeader], tuple[Slot, ...]], limits: KdfLimits
) -> None:
    # A link stays one, and its target is what gets replaced.
    path = path.resolve()
    with replacing(path) as draft, whole_file(path) as source:
        before = os.fstat(source.fileno())
        opened = read_header(source, limits).opened(passphrase)
        slots = change(opened)
        limits.check_written([slot.parameters for slot in slots])
        write_fully(draft, opened.with_slots(slots).encoded())
        shutil.copyfileobj(source, draft, _COPY_BYTES)
        if _stamp(path.stat()) != _stamp(before):
            raise Conflict(f"{path} changed meanwhile.", remedy="Nothing was written; try again.")


def _refuse_known(slots: tuple[Slot, ...], passphrase: str) -> None:
    """Refuse a passphrase that opens one of these slots: removing it would leave the other."""
    if any(slot.wrapping_key(passphrase) is not None for slot in slots):
        raise InvalidInput("The new passphrase opens the file already.", remedy="Choose another.", field="passphrase")


def _stamp(state: os.stat_result) -> tuple[int, int, int]:
    return state.st_ino, state.st_size, state.st_mtime_ns
