"""Snapshots of one space: created while others write, verified, listed, restored and pruned.

Over time the newest of each hour, day and week are kept, up to the numbers set.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from ....core.clock import Clock, from_micros, to_micros
from ....core.errors import (
    BackupCorrupt,
    BackupError,
    ContentTooLarge,
    InvalidId,
    InvalidInput,
    SnapshotNotFound,
    storage_error,
)
from ....core.files import exclusive_lock
from ....core.jobs import reported
from ....core.paths import read_regular
from ....core.security.home_key import HomeKey
from ....core.security.policy import ScreenedText
from ....core.store.documents.memories import check_memory
from ....core.store.store import Store
from ..source import BackupSource
from .archive import ArchiveManifest, ArchivePart, read_manifest, read_parts, verify_archive, write_archive
from .replacement import StateDigest, documents_in, parts_of, replace_state

__all__ = ["RestoreResult", "Retention", "Snapshot", "Snapshots", "ids_to_keep"]


@dataclass(frozen=True, slots=True)
class Retention:
    """For how many hours, days and weeks one snapshot each is kept."""

    hourly: int = 24
    daily: int = 7
    weekly: int = 8

    def __post_init__(self) -> None:
        if min(self.hourly, self.daily, self.weekly) < 0:
            raise InvalidInput("A number of snapshots to keep is negative.", field="keep")


def ids_to_keep(snapshots: Sequence[tuple[datetime, str]], retention: Retention) -> frozenset[str]:
    """The ids that stay, of intact snapshots given by time and id. The last one always stays."""
    newest_first = sorted(snapshots, reverse=True)
    staying = {snapshot_id for _, snapshot_id in newest_first[:1]}
    periods: list[tuple[int, Callable[[datetime], object]]] = [
        (retention.hourly, lambda moment: (moment.date(), moment.hour)),
        (retention.daily, lambda moment: moment.date()),
        (retention.weekly, lambda moment: moment.isocalendar()[:2]),
    ]
    for most, period in periods:
        seen: dict[object, str] = {}
        for moment, snapshot_id in newest_first:
            seen.setdefault(period(moment), snapshot_id)
        staying.update(list(seen.values())[:most])
    return frozenset(staying)


logger = logging.getLogger(__name__)

_FORM = "cortex-snapshot"
_FORM_VERSION = 1
_ID = re.compile(r"snapshot_\d{8}_\d{6}(?:_\d{1,4})?\Z")
_NO_WORDS = ScreenedText("")
_DESCRIPTION_MOST = 2_000
_MOST_MARKS = 10_000_000
_MANUAL, _AUTOMATIC, _SAFETY = "manual", "automatic", "safety"


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A snapshot in a list. `verified`: all of it was read and found intact since it last changed."""

    id: str
    path: Path
    created_at: datetime
    description: str
    kind: str
    size_bytes: int
    verified: bool
    counts: Mapping[str, int]
    fault: str = ""


@dataclass(frozen=True, slots=True)
class RestoreResult:
    """The result of a restore; `safety` is the snapshot of the state before it."""

    snapshot_id: str
    safety: str
    memories: int
    branches: int
    written: int
    removed: int


class Snapshots:
    """`folder` holds the snapshots of the space; `key` seals them."""

    def __init__(
        self, store: Store, clock: Clock, folder: Path, source: BackupSource, key: HomeKey | None = None
    ) -> None:
        self._key = key
        self._store = store
        self._clock = clock
        self.folder = folder
        self._source = source
        self._looked_at: datetime | None = None

    # -- creating --------------------------------------------------------------------------------

    def create(self, description: ScreenedText = _NO_WORDS, *, kind: str = _MANUAL) -> Snapshot:
        """Save the space as it is now, and read the archive back to verify that it can be restored."""
        if len(description) > _DESCRIPTION_MOST:
            raise ContentTooLarge(
                f"The description is longer than {_DESCRIPTION_MOST:,} characters.", field="description"
            )
        with self._locked():
            return self._create(description, kind)

    def _create(self, description: ScreenedText, kind: str) -> Snapshot:
        self._source.settle()
        model = self._source.model
        now = self._clock.now()
        path = self._free_path(now)
        state = StateDigest()
        with self._store.database.read() as session:

            def parts() -> Iterator[ArchivePart]:
                found = self._store.documents.scan(session, self._source.space, tag=self._source.tag)
                yield from parts_of(reported("documents", found), state)
                for name, data in self._source.files():
                    yield ArchivePart(f"files/{name}", data)

            write_archive(
                path,
                parts(),
                lambda: {
                    "form": _FORM,
                    "form_version": _FORM_VERSION,
                    "space": self._source.space,
                    "about": dict(self._source.facts),
                    "created_at": to_micros(now),
                    "description": description,
                    "kind": kind,
                    "model": model,
                    "documents": dict(sorted(state.counts.items())),
                    "state_sha256": state.hexdigest(),
                },
                key=self._key,
            )
        try:
            return self._verified(path)
        except BackupError:
            # A backup that cannot be read back is useless.
            path.unlink(missing_ok=True)
            raise

    def create_if_due(self, every: timedelta, retention: Retention) -> Snapshot | None:
        """Create a scheduled snapshot if the last one is old enough and something changed; then prune.

        If several processes ask, one of them creates it.
        """
        if not self._is_due(every):
            return None
        with self._locked(wait=False) as mine:
            self._looked_at = None
            if not mine or not self._is_due(every):
                return None
            made = self._create(_NO_WORDS, _AUTOMATIC)
            self._prune(retention, everything=False)
        return made

    def _is_due(self, every: timedelta) -> bool:
        now = self._clock.now()
        if self._looked_at is not None and timedelta(0) <= now - self._looked_at < every / 24:
            return False
        self._looked_at = now
        newest: ArchiveManifest | None = None
        for path in sorted(self._paths(), reverse=True):
            try:
                newest = read_manifest(path, key=self._key)
                break
            except BackupError as error:
                logger.debug("a damaged snapshot does not count as the last one: %s", type(error).__name__)
        if newest is not None:
            age = now - from_micros(_number(newest, "created_at"))
            # A clock that was set back must not suspend snapshots until it has caught up.
            if timedelta(0) <= age < every:
                return False
        with self._store.database.read() as session:
            found = reported("documents", self._store.documents.scan(session, self._source.space))
            if newest is None:
                return any(one.kind in ("memory", "saved") for one in found)
            state = StateDigest.of(found)
        if not state.counts["memory"] and not state.counts["saved"]:
            return False
        return newest.facts.get("state_sha256") != state.hexdigest()

    # -- reading ---------------------------------------------------------------------------------

    def all(self) -> list[Snapshot]:
        """All snapshots, newest first. A damaged one is listed with its fault."""
        found = [self._listed(path) for path in self._paths()]
        return sorted(found, key=lambda one: (one.created_at, one.id), reverse=True)

    def verify(self, snapshot_id: str) -> Snapshot:
        """Read all of a snapshot and check it, even if it was verified before."""
        return self._verified(self.path(snapshot_id))

    def path(self, snapshot_id: str) -> Path:
        """The path of a snapshot."""
        if not _ID.match(snapshot_id):
            raise InvalidId(
                f"{snapshot_id[:80]!r} is not the id of a snapshot.",
                remedy="Ids look like snapshot_20260102_123456; list_snapshots shows them.",
                field="snapshot_id",
            )
        path = self.folder / f"{snapshot_id}.tar.gz"
        if not path.is_file() or path.is_symlink():
            raise SnapshotNotFound(
                f"There is no snapshot {snapshot_id!r} of this project.",
                remedy="list_snapshots shows those that are there.",
                field="snapshot_id",
            )
        return path

    def _listed(self, path: Path) -> Snapshot:
        try:
            manifest = read_manifest(path, key=self._key)
            if self._marks().get(path.name) == _stamp(path):
                return self._snapshot(path, manifest, verified=True)
            return self._verified(path)
        except BackupError as error:
            return Snapshot(
                _id_of(path), path, _moment_in(path), "", "", path.stat().st_size, False, {}, fault=str(error)
            )

    def _verified(self, path: Path) -> Snapshot:
        """Check an archive and every document in it, and record that it is intact."""
        stamp = _stamp(path)
        manifest = verify_archive(path, key=self._key)
        for _ in self._documents(path, manifest):
            pass
        self._mark(path.name, stamp)
        return self._snapshot(path, manifest, verified=True)

    def _documents(self, path: Path, manifest: ArchiveManifest) -> Iterator[object]:
        state = StateDigest()
        counts = manifest.facts.get("documents")
        total = sum(counts.values()) if isinstance(counts, dict) else 0
        for document in reported("documents", documents_in(read_parts(path, key=self._key), state), total):
            if document.kind == "memory":
                check_memory(document)
            yield document
        self._check_facts(manifest, state)

    def _check_facts(self, manifest: ArchiveManifest, state: StateDigest) -> None:
        facts = manifest.facts
        if facts.get("form") != _FORM or facts.get("form_version") != _FORM_VERSION:
            raise BackupError(
                "The snapshot was made by another version of Cortex.", remedy="Update Cortex and try again."
            )
        if facts.get("space") != self._source.space:
            raise BackupCorrupt("The snapshot is of another project.", remedy="Restore it in the project it is of.")
        if facts.get("state_sha256") != state.hexdigest():
            raise BackupCorrupt("The documents of the snapshot were changed.", remedy="Use another snapshot.")

    # -- restoring -------------------------------------------------------------------------------

    def restore(self, snapshot_id: str, step: Callable[[str], None]) -> RestoreResult:
        """Restore the space, in one transaction that comes last.

        A safety snapshot of the present state is created first. `step` is called with the name of each step.
        """
        path = self.path(snapshot_id)
        with self._locked():
            step("verify")
            found = self._verified(path)
            manifest = read_manifest(path, key=self._key)
            step("save")
            safety = self._create(ScreenedText(f"Before restoring {snapshot_id}"), _SAFETY)
            step("switch")
            with self._store.database.write() as session:
                done = replace_state(
                    self._store,
                    session,
                    self._source.space,
                    self._source,
                    documents_in(read_parts(path, key=self._key), StateDigest(), checked=True),
                    str(manifest.facts["state_sha256"]),
                )
                self._store.replicas.forget(session, self._source.space, done.removed)
                step("commit")
        step("files")
        self._source.changed()
        return RestoreResult(
            snapshot_id,
            safety.id,
            found.counts.get("memory", 0),
            found.counts.get("branch", 0),
            done.written,
            len(done.removed),
        )

    # -- pruning ---------------------------------------------------------------------------------

    def prune(self, retention: Retention, *, everything: bool = False) -> list[str]:
        """Remove old scheduled and safety snapshots, and with `everything` manual ones too."""
        with self._locked():
            return self._prune(retention, everything=everything)

    def _prune(self, retention: Retention, *, everything: bool) -> list[str]:
        listed = self.all()
        staying = ids_to_keep([(one.created_at, one.id) for one in listed if one.verified], retention)
        gone = []
        for one in listed:
            # Damaged ones stay: they may be all that is left, and the list shows what is wrong with them.
            ours = one.verified and (everything or one.kind != _MANUAL)
            if ours and one.id not in staying:
                one.path.unlink(missing_ok=True)
                gone.append(one.id)
        return gone

    # -- files -----------------------------------------------------------------------------------

    def _paths(self) -> list[Path]:
        if not self.folder.is_dir():
            return []
        return [path for path in self.folder.glob("snapshot_*.tar.gz") if _ID.match(_id_of(path)) and path.is_file()]

    def _free_path(self, now: datetime) -> Path:
        name = f"snapshot_{now:%Y%m%d_%H%M%S}"
        names = (name, *(f"{name}_{n}" for n in range(2, 10_000)))
        return next(path for one in names if not (path := self.folder / f"{one}.tar.gz").exists())

    @contextmanager
    def _locked(self, *, wait: bool = True) -> Iterator[bool]:
        """Exclude other processes; without `wait`, yields whether the lock was free."""
        try:
            for folder in (self.folder.parent, self.folder):
                folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError as error:
            raise storage_error(error, self.folder) from error
        with exclusive_lock(
            self.folder / ".lock", "Another snapshot of this project is being made.", wait=wait
        ) as mine:
            yield mine

    def _snapshot(self, path: Path, manifest: ArchiveManifest, *, verified: bool) -> Snapshot:
        counts = manifest.facts.get("documents")
        return Snapshot(
            _id_of(path),
            path,
            from_micros(_number(manifest, "created_at")),
            str(manifest.facts.get("description", "")),
            str(manifest.facts.get("kind", "")),
            manifest.size_bytes,
            verified,
            {str(kind): n for kind, n in counts.items() if isinstance(n, int)} if isinstance(counts, dict) else {},
        )

    # The file `.verified` records which archives are intact, to save reading them again.

    def _marks(self) -> dict[str, str]:
        try:
            found = json.loads(read_regular(self.folder / ".verified", _MOST_MARKS) or b"{}")
        except ValueError:
            return {}
        return found if isinstance(found, dict) else {}

    def _mark(self, name: str, stamp: str) -> None:
        marks = {known: mark for known, mark in self._marks().items() if (self.folder / known).is_file()}
        draft = self.folder / ".verified.part"
        try:
            draft.write_text(json.dumps({**marks, name: stamp}))
            draft.replace(self.folder / ".verified")
        except OSError:
            # It is verified again next time.
            logger.debug("the record of verified snapshots cannot be written")


def _id_of(path: Path) -> str:
    return path.name.removesuffix(".tar.gz")


def _stamp(path: Path) -> str:
    try:
        state = path.stat()
    except OSError as error:
        raise storage_error(error, path) from error
    return f"{state.st_size}:{state.st_mtime_ns}:{state.st_ino}"


def _moment_in(path: Path) -> datetime:
    """The time in the name of a snapshot that cannot be read."""
    found = re.match(r"snapshot_(\d{8}_\d{6})", path.name)
    try:
        moment = datetime.strptime(f"{found[1]} +0000" if found else "", "%Y%m%d_%H%M%S %z")
    except ValueError:
        return from_micros(0)
    return moment


def _number(manifest: ArchiveManifest, name: str) -> int:
    value = manifest.facts.get(name)
    if not isinstance(value, int):
        raise BackupCorrupt(f"The snapshot does not say its {name}.", remedy="Use another snapshot.")
    return value
