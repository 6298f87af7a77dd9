"""A collection: everything in a target under one root key, the encrypted file that holds this key, and what a replica
records about the collection between exchanges.

The first push creates the key, which never changes; passphrases unlock it. The format: docs/reference/formats.md.
"""

from __future__ import annotations

import io
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ....core.errors import BackupCorrupt, BackupError, WrongKey
from ....core.security.ciphers import ObjectKeys, Random
from ....core.store.documents.document import canonical_json
from ..targets.target import Target
from ..vault.header import LIMITS, KdfLimits, KdfParameters
from ..vault.vault import decrypt, encrypt, rewrap
from .packs import ROOT, PackHead, PackRef

if TYPE_CHECKING:
    from .store_replica import StoreReplica

__all__ = ["KEY_PATH", "Collection", "CollectionKey", "MergedHead", "OwnHead", "SyncState"]


KEY_PATH = f"{ROOT}key.vault"

_MOST_BYTES = 64 * 1024
_ROOT_BYTES = 32
_ID_BYTES = 16


@dataclass(frozen=True, slots=True)
class Collection:
    """The keys of all objects, and an id that separates what is recorded about one collection from others."""

    id: str
    keys: ObjectKeys


class CollectionKey:
    """The file in a target that holds the key of its collection, under a passphrase."""

    def __init__(
        self,
        target: Target,
        passphrase: str,
        *,
        parameters: KdfParameters | None = None,
        limits: KdfLimits = LIMITS,
        random: Random = os.urandom,
    ) -> None:
        self._target = target
        self._passphrase = passphrase
        self._parameters = parameters
        self._limits = limits
        self._random = random
        # By their sealed bytes, because key derivation is slow on purpose.
        self._known: dict[bytes, Collection] = {}

    def open(self) -> Collection | None:
        """The collection; None if there is none yet."""
        sealed = self._read()
        if sealed is None:
            if next(iter(self._target.list(ROOT)), None) is None:
                return None
            # Another machine may have created it between the two requests.
            sealed = self._read()
        if sealed is None:
            raise BackupCorrupt(
                f"{self._target.shown} holds a backup whose key, {KEY_PATH}, is missing.",
                remedy=f"Put {KEY_PATH} back from a copy, or use an empty place.",
            )
        if sealed not in self._known:
            self._known[sealed] = self._unseal(sealed, self._passphrase)
        return self._known[sealed]

    def open_or_make(self) -> Collection:
        """The collection, created if there is none; if several machines create one at once, one of them wins."""
        found = self.open()
        if found is not None:
            return found
        names = {"id": self._random(_ID_BYTES).hex(), "root": self._random(_ROOT_BYTES).hex()}
        vault, content = io.BytesIO(), io.BytesIO(canonical_json({"form": 1, **names}))
        encrypt(content, vault, self._passphrase, parameters=self._parameters, limits=self._limits, random=self._random)
        self._target.create(KEY_PATH, vault.getvalue())
        # Read back in every case: the key that other machines find is the one that counts.
        sealed = self._read()
        if sealed is None:
            raise BackupError(f"{self._target.shown} did not keep {KEY_PATH}.", remedy="Use another place.")
        return self._unseal(sealed, self._passphrase)

    def change_passphrase(self, new: str) -> None:
        """Replace the passphrase. No other object is written.

        Anyone with the old passphrase and a copy of the key file can still read the collection.
        """
        sealed = self._read()
        if sealed is None:
            raise BackupError(f"{self._target.shown} holds no backup.", remedy="Push first.")
        costs, limits = self._parameters, self._limits
        rewrapped = rewrap(sealed, self._passphrase, new, parameters=costs, limits=limits, random=self._random)
        self._target.put(KEY_PATH, rewrapped)
        written = self._read()
        try:
            held = written is not None and self._unseal(written, new) is not None
        except WrongKey:
            held = False
        if not held:
            raise BackupError(
                "Someone else changed the passphrase at the same time.", remedy="Agree on one, and change it again."
            )

    def _read(self) -> bytes | None:
        return self._target.get(KEY_PATH, _MOST_BYTES)

    def _unseal(self, sealed: bytes, passphrase: str) -> Collection:
        content = io.BytesIO()
        decrypt(io.BytesIO(sealed), content, passphrase, limits=self._limits)
        try:
            fields = json.loads(content.getvalue())
            if fields["form"] != 1:
                raise BackupError("The key of the backup has a newer format.", remedy="Update Cortex.")
            return Collection(str(fields["id"]), ObjectKeys.of(bytes.fromhex(fields["root"])))
        except (ValueError, KeyError, TypeError) as error:
            raise BackupCorrupt("The key of the backup is malformed.", remedy="Use another copy.") from error


# Enough to distinguish the packs of one machine.
_SHORT = 16


@dataclass(frozen=True, slots=True)
class OwnHead:
    """The head that this replica wrote last, or was about to write."""

    sequence: int
    head: str
    day: str


@dataclass(frozen=True, slots=True)
class MergedHead:
    """The last head of another machine that was merged."""

    sequence: int = -1
    head: str = ""
    packs: frozenset[str] = frozenset()
    machine: str = ""

    def has(self, pack: PackRef) -> bool:
        return pack.name[:_SHORT] in self.packs


class SyncState:
    """Typed access to the facts that a replica stores.

    They are kept per collection, since a target that was emptied and reused is another one, and facts about the machine
    itself under its name, since a copy of a home may continue under another.
    """

    def __init__(self, replica: StoreReplica, collection: Collection) -> None:
        self._replica = replica
        self._prefix = f"{collection.id[:12]}:"
        self._own = f"own:{replica.machine}"
        self._actor = f"actor:{replica.machine}"
        self._uploaded = f"uploaded:{replica.machine}"

    @property
    def own(self) -> OwnHead | None:
        values = self._read(self._own)
        return OwnHead(int(values[0]), str(values[1]), str(values[2])) if values is not None else None

    def own_is(self, own: OwnHead) -> None:
        self._write(self._own, [own.sequence, own.head, own.day])

    def is_foreign(self, head: PackHead) -> bool:
        """Whether another home wrote this head of this machine: an earlier home, or a copy of this one."""
        own = self.own
        return own is None or (head.head != own.head and head.sequence >= own.sequence)

    @property
    def actor(self) -> str:
        """The name under which local changes are counted: the machine's, or another if that was used before."""
        return str(self._read(self._actor) or self._replica.machine)

    def actor_is(self, actor: str) -> None:
        self._write(self._actor, actor)

    @property
    def uploaded(self) -> list[PackRef]:
        """Packs uploaded for a head that may not have been written."""
        return [PackRef(str(name), int(size), int(count)) for name, size, count in self._read(self._uploaded) or ()]

    def uploaded_are(self, packs: Sequence[PackRef]) -> None:
        self._write(self._uploaded, [[pack.name, pack.size, pack.documents] for pack in packs])

    def merged(self, mark: str) -> MergedHead:
        values = self._read(f"merged:{mark}")
        if values is None:
            return MergedHead()
        sequence, head, packs, machine = values
        return MergedHead(int(sequence), str(head), frozenset(packs), str(machine))

    def merged_is(self, mark: str, head: PackHead) -> None:
        packs = [pack.name[:_SHORT] for pack in head.packs]
        self._write(f"merged:{mark}", [head.sequence, head.head, packs, head.machine])

    def _read(self, key: str) -> Any:
        text = self._replica.fact(self._prefix + key)
        return None if text is None else json.loads(text)

    def _write(self, key: str, value: object) -> None:
        self._replica.remember(self._prefix + key, json.dumps(value, separators=(",", ":")))
