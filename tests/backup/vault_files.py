"""Vault files as whole files, and with several passphrases."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from cortex_py.backup.files import atomic_write, open_existing
from cortex_py.backup.vault.header import LIMITS, KdfLimits, KdfParameters, new_slot, read_header
from cortex_py.backup.vault.vault import Content, decrypt, encrypt, open_chunks, rewrap
from cortex_py.security.ciphers import Random


@dataclass(frozen=True, slots=True)
class VaultInfo:
    size: int
    chunks: int
    passphrases: int


def encrypt_file(
    path: Path, target: Path, passphrase: str, *, parameters: KdfParameters | None = None, limits: KdfLimits = LIMITS
) -> None:
    with atomic_write(target) as draft, open_existing(path) as source:
        encrypt(source, draft, passphrase, parameters=parameters, limits=limits)


def decrypt_file(path: Path, target: Path, passphrase: str, *, limits: KdfLimits = LIMITS) -> None:
    with atomic_write(target) as draft, open_existing(path) as source:
        decrypt(source, draft, passphrase, limits=limits)


def verify(path: Path, passphrase: str, *, limits: KdfLimits = LIMITS) -> VaultInfo:
    """Read a file to its end as `decrypt` does, keeping nothing."""
    content = Content()
    with open_existing(path) as source:
        opened = read_header(source, limits).opened(passphrase)
        for _ in open_chunks(source, opened, content):
            pass
    return VaultInfo(content.size, content.chunks, len(opened.header.slots))


def add_passphrase(
    path: Path,
    passphrase: str,
    new: str,
    *,
    parameters: KdfParameters,
    limits: KdfLimits = LIMITS,
    random: Random = os.urandom,
) -> None:
    """Let another passphrase open the file as well."""
    with path.open("rb") as source:
        opened = read_header(source, limits).opened(passphrase)
        content = source.read()
    slot = new_slot(opened.header.fixed, opened.file_key, new, parameters, random)
    path.write_bytes(opened.with_slots((*opened.header.slots, slot)).encoded() + content)


def rewrap_file(path: Path, old: str, new: str, *, parameters: KdfParameters, limits: KdfLimits = LIMITS) -> None:
    path.write_bytes(rewrap(path.read_bytes(), old, new, parameters=parameters, limits=limits))
