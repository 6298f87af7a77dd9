"""A collection: what lies in a target under one root key, and the encrypted file that holds this key.

The key is made once, by whoever pushes first, and never changes; passphrases open it. The form: docs/formats.md.
"""

from __future__ import annotations

import io
import json
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

from ..errors import BackupCorrupt, BackupError, WrongKey
from ..store.document import canonical_json
from .heads import ROOT
from .key_derivation import LIMITS, KdfLimits, KdfParameters
from .sealing import ObjectKeys
from .target import Target
from .vault import decrypt, encrypt, rewrap
from .vault_header import Random

__all__ = ["KEY_PATH", "Collection", "change_passphrase", "open_collection", "open_or_make_collection"]

KEY_PATH = f"{ROOT}key.vault"

_MOST_BYTES = 64 * 1024
_ROOT_BYTES = 32
_ID_BYTES = 16


@dataclass(frozen=True, slots=True)
class Collection:
    """The keys of all objects, and an id: what is remembered about one collection is not true of another."""

    id: str
    keys: ObjectKeys


def open_collection(
    target: Target, passphrase: str, *, limits: KdfLimits = LIMITS, known: dict[bytes, Collection] | None = None
) -> Collection | None:
    """The collection of a target, or None where there is none yet.

    `known` remembers what was opened by its bytes: deriving a key takes a while, on purpose.
    """
    sealed = target.get(KEY_PATH, _MOST_BYTES)
    if sealed is None:
        if next(iter(target.list(ROOT)), None) is None:
            return None
        # Between the two looks somebody may have made it.
        sealed = target.get(KEY_PATH, _MOST_BYTES)
    if sealed is None:
        raise BackupCorrupt(
            f"{target.shown} holds a backup whose key, {KEY_PATH}, is missing.",
            remedy=f"Put {KEY_PATH} back from a copy, or use an empty place.",
        )
    if known is None:
        return _opened(sealed, passphrase, limits)
    if sealed not in known:
        known[sealed] = _opened(sealed, passphrase, limits)
    return known[sealed]


def open_or_make_collection(
    target: Target,
    passphrase: str,
    *,
    parameters: KdfParameters | None = None,
    limits: KdfLimits = LIMITS,
    random: Random = os.urandom,
    known: dict[bytes, Collection] | None = None,
) -> Collection:
    """The collection of a target, made where there is none. Of several who make one at once, one does."""
    found = open_collection(target, passphrase, limits=limits, known=known)
    if found is not None:
        return found
    content = canonical_json({"form": 1, "id": random(_ID_BYTES).hex(), "root": random(_ROOT_BYTES).hex()})
    vault = io.BytesIO()
    encrypt(io.BytesIO(content), vault, passphrase, parameters=parameters, limits=limits, random=random)
    target.create(KEY_PATH, vault.getvalue())
    # Read back in every case: what counts is what the others will find.
    sealed = target.get(KEY_PATH, _MOST_BYTES)
    if sealed is None:
        raise BackupError(f"{target.shown} did not keep {KEY_PATH}.", remedy="Use another place.")
    return _opened(sealed, passphrase, limits)


def change_passphrase(
    target: Target,
    old: str,
    new: str,
    *,
    parameters: KdfParameters | None = None,
    limits: KdfLimits = LIMITS,
    random: Random = os.urandom,
) -> None:
    """Let a new passphrase open the collection in the place of an old one. No other object is written.

    Who knew the old one and kept a copy of the key's file can read the collection for ever.
    """
    sealed = target.get(KEY_PATH, _MOST_BYTES)
    if sealed is None:
        raise BackupError(f"{target.shown} holds no backup.", remedy="Push first.")
    with tempfile.TemporaryDirectory(prefix="cortex-key-") as folder:
        path = Path(folder) / "key.vault"
        path.write_bytes(sealed)
        rewrap(path, old, new, parameters=parameters, limits=limits, random=random)
        target.put(KEY_PATH, path.read_bytes())
    written = target.get(KEY_PATH, _MOST_BYTES)
    try:
        held = written is not None and _opened(written, new, limits) is not None
    except WrongKey:
        held = False
    if not held:
        raise BackupError(
            "The passphrase was changed by somebody else at the same time.", remedy="Agree on one, and change it again."
        )


def _opened(sealed: bytes, passphrase: str, limits: KdfLimits) -> Collection:
    content = io.BytesIO()
    decrypt(io.BytesIO(sealed), content, passphrase, limits=limits)
    try:
        told = json.loads(content.getvalue())
        if told["form"] != 1:
            raise BackupError("The key of the backup has a later form.", remedy="Update Cortex.")
        return Collection(str(told["id"]), ObjectKeys.of(bytes.fromhex(told["root"])))
    except (ValueError, KeyError, TypeError) as error:
        raise BackupCorrupt("The key of the backup is not formed as one.", remedy="Use another copy.") from error
