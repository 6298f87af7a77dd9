"""Snapshots of one space: made while others write, verified, listed, restored in one step, thinned out with time."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from urllib.parse import quote

from ..clock import Clock, from_micros, to_micros
from ..errors import (
    BackupCorrupt,
    BackupError,
    ContentTooLarge,
    InvalidId,
    SnapshotNotFound,
    storage_error,
)
from ..store.document_memories import check_memory
from ..store.store import Store
from .archive import Part, write_archive
from .archive_manifest import Manifest
from .archive_reading import read_manifest, read_parts, verify_archive
from .document_parts import StateDigest, documents_in, parts_of
from .held import Held
from .locking import alone
from .replacement import replace_state, state_of
from .retention import Kept, Retention, kept

__all__ = ["Restored", "Snapshot", "Snapshots"]

_FORM = "cortex-snapshot"
_FORM_VERSION = 1
_ID = re.compile(r"snapshot_\d{8}_\d{6}(?:_\d{1,4})?\Z")
_DESCRIPTION_MOST = 2_000
_MANUAL, _AUTOMATIC, _SAFETY = "manual", "automatic", "safety"


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A snapshot as it is listed. `verified`: all of it was read and found right since it last changed."""

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
class Restored:
    """What a restore did; `safety` is the snapshot of the state before it."""

    snapshot_id: str
    safety: str
    memories: int
    branches: int
    written: int
    removed: int


class Snapshots:
    """`folder` is where the home keeps its backups."""

    def __init__(self, store: Store, clock: Clock, folder: Path, held: Held, model: Callable[[], str]) -> None:
        self._store = store
        self._clock = clock
        self._folder = folder / quote(held.space, safe="")
        self._held = held
        self._model = model
        self._looked_at: datetime | None = None

    # -- making ----------------------------------------------------------------------------------

    def create(self, description: str = "", *, kind: str = _MANUAL) -> Snapshot:
        """Save the space as it is now, and read it all again to see that it can be restored."""
        if len(description) > _DESCRIPTION_MOST:
            raise ContentTooLarge(
                f"The description is longer than {_DESCRIPTION_MOST:,} characters.", field="description"
            )
        with self._locked():
            return self._create(description, kind)

    def _create(self, description: str, kind: str) -> Snapshot:
        self._held.settle()
        model = self._model()
        now = self._clock.now()
        path = self._free_path(now)
        state = StateDigest()
        with self._store.database.read() as session:

            def parts() -> Iterator[Part]:
                yield from parts_of(self._store.documents.scan(session, self._held.space, vectors=True), state)
                for name, data in self._held.files():
                    yield Part(f"files/{name}", data)

            write_archive(
                path,
                parts(),
                lambda: {
                    "form": _FORM,
                    "form_version": _FORM_VERSION,
                    "space": self._held.space,
                    "about": dict(self._held.facts),
                    "created_at": to_micros(now),
                    "description": description,
                    "kind": kind,
                    "model": model,
                    "documents": dict(sorted(state.counts.items())),
                    "state_sha256": state.hexdigest(),
                },
            )
        try:
            return self._verified(path)
        except BackupError:
            # A backup that cannot be read back is none.
            path.unlink(missing_ok=True)
            raise

    def create_if_due(self, every: timedelta, retention: Retention) -> Snapshot | None:
        """A snapshot by the clock: where the last one is old enough and something has changed since; then prune.

        Of several processes that ask, one makes it.
        """
        if not self._is_due(every):
            return None
        with self._locked(wait=False) as mine:
            self._looked_at = None
            if not mine or not self._is_due(every):
                return None
            made = self._create("", _AUTOMATIC)
            self._prune(retention, everything=False)
        return made

    def _is_due(self, every: timedelta) -> bool:
        now = self._clock.now()
        if self._looked_at is not None and timedelta(0) <= now - self._looked_at < every / 24:
            return False
        self._looked_at = now
        newest: Manifest | None = None
        for path in sorted(self._paths(), reverse=True):
            try:
                newest = read_manifest(path)
                break
            except BackupError:
                continue
        if newest is not None:
            age = now - from_micros(_number(newest, "created_at"))
            # A clock that was set back must not stop snapshots until it has caught up.
            if timedelta(0) <= age < every:
                return False
        with self._store.database.read() as session:
            state = state_of(self._store, session, self._held.space)
        if not state.counts["memory"] and not state.counts["saved"]:
            return False
        return newest is None or newest.facts.get("state_sha256") != state.hexdigest()

    # -- looking ---------------------------------------------------------------------------------

    def all(self) -> list[Snapshot]:
        """All snapshots, newest first. One that is damaged is listed with its fault."""
        found = [self._listed(path) for path in self._paths()]
        return sorted(found, key=lambda one: (one.created_at, one.id), reverse=True)

    def verify(self, snapshot_id: str) -> Snapshot:
        """Read all of a snapshot and check it, whatever was found before."""
        return self._verified(self.path(snapshot_id))

    def path(self, snapshot_id: str) -> Path:
        """Where a snapshot lies."""
        if not _ID.match(snapshot_id):
            raise InvalidId(
                f"{snapshot_id[:80]!r} is not the id of a snapshot.",
                remedy="Ids look like snapshot_20260102_123456; list_snapshots shows them.",
                field="snapshot_id",
            )
        path = self._folder / f"{snapshot_id}.tar.gz"
        if not path.is_file() or path.is_symlink():
            raise SnapshotNotFound(
                f"There is no snapshot {snapshot_id!r} of this project.",
                remedy="list_snapshots shows those that are there.",
                field="snapshot_id",
            )
        return path

    def _listed(self, path: Path) -> Snapshot:
        try:
            manifest = read_manifest(path)
            if self._marks().get(path.name) == _stamp(path):
                return self._snapshot(path, manifest, verified=True)
            return self._verified(path)
        except BackupError as error:
            return Snapshot(
                _id_of(path), path, _moment_in(path), "", "", path.stat().st_size, False, {}, fault=str(error)
            )

    def _verified(self, path: Path) -> Snapshot:
        """Check an archive and every document in it, and remember that it was found right."""
        stamp = _stamp(path)
        manifest = verify_archive(path)
        for _ in self._documents(path, manifest):
            pass
        self._mark(path.name, stamp)
        return self._snapshot(path, manifest, verified=True)

    def _documents(self, path: Path, manifest: Manifest) -> Iterator[object]:
        state = StateDigest()
        for document in documents_in(read_parts(path), state):
            if document.kind == "memory":
                check_memory(document)
            yield document
        self._check_facts(manifest, state)

    def _check_facts(self, manifest: Manifest, state: StateDigest) -> None:
        facts = manifest.facts
        if facts.get("form") != _FORM or facts.get("form_version") != _FORM_VERSION:
            raise BackupError(
                "The snapshot was made by another version of Cortex.", remedy="Update Cortex and try again."
            )
        if facts.get("space") != self._held.space:
            raise BackupCorrupt(
                "The snapshot is of another project.", remedy="Restore it in the project it was made of."
            )
        if facts.get("state_sha256") != state.hexdigest():
            raise BackupCorrupt(
                "The documents of the snapshot are not those it was made of.", remedy="Use another snapshot."
            )

    # -- restoring -------------------------------------------------------------------------------

    def restore(self, snapshot_id: str, *, step: Callable[[str], None] = lambda _name: None) -> Restored:
        """Put the space back to what it was. Until the last moment nothing is changed, and then all at once.

        The state before is saved in a snapshot of its own first. `step` is told what is done next.
        """
        path = self.path(snapshot_id)
        with self._locked():
            step("verify")
            found = self._verified(path)
            manifest = read_manifest(path)
            step("save")
            safety = self._create(f"Before restoring {snapshot_id}", _SAFETY)
            step("switch")
            with self._store.database.write() as session:
                done = replace_state(
                    self._store,
                    session,
                    self._held,
                    documents_in(read_parts(path), StateDigest(), checked=True),
                    str(manifest.facts["state_sha256"]),
                )
                self._store.replicas.forget(session, self._held.space, done.removed)
                step("commit")
        step("files")
        self._held.changed()
        return Restored(
            snapshot_id,
            safety.id,
            found.counts.get("memory", 0),
            found.counts.get("branch", 0),
            done.written,
            len(done.removed),
        )

    # -- thinning out ----------------------------------------------------------------------------

    def prune(self, retention: Retention, *, everything: bool = False) -> list[str]:
        """Remove old snapshots that were made by the clock or before a restore; `everything`: those asked for too."""
        with self._locked():
            return self._prune(retention, everything=everything)

    def _prune(self, retention: Retention, *, everything: bool) -> list[str]:
        listed = self.all()
        staying = kept([Kept(one.id, one.created_at, one.verified) for one in listed], retention)
        last_good = next((one.id for one in listed if one.verified), None)
        gone = []
        for one in listed:
            # A damaged one is kept too: it may be all that is left of something, and says what is wrong with it.
            ours = one.verified and (everything or one.kind != _MANUAL)
            if ours and one.id not in staying and one.id != last_good:
                one.path.unlink(missing_ok=True)
                gone.append(one.id)
        return gone

    # -- files -----------------------------------------------------------------------------------

    def _paths(self) -> list[Path]:
        if not self._folder.is_dir():
            return []
        return [path for path in self._folder.glob("snapshot_*.tar.gz") if _ID.match(_id_of(path)) and path.is_file()]

    def _free_path(self, now: datetime) -> Path:
        name = f"snapshot_{now:%Y%m%d_%H%M%S}"
        names = (name, *(f"{name}_{n}" for n in range(2, 10_000)))
        return next(path for one in names if not (path := self._folder / f"{one}.tar.gz").exists())

    @contextmanager
    def _locked(self, *, wait: bool = True) -> Iterator[bool]:
        """One at a time in all processes; without waiting, whether it is ours."""
        try:
            for folder in (self._folder.parent, self._folder):
                folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError as error:
            raise storage_error(error, self._folder) from error
        with alone(self._folder / ".lock", "Another snapshot of this project is being made.", wait=wait) as mine:
            yield mine

    def _snapshot(self, path: Path, manifest: Manifest, *, verified: bool) -> Snapshot:
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

    # Which files were found right, as they are now. It only saves reading them again.

    def _marks(self) -> dict[str, str]:
        try:
            found = json.loads((self._folder / ".verified").read_bytes())
        except (OSError, ValueError):
            return {}
        return found if isinstance(found, dict) else {}

    def _mark(self, name: str, stamp: str) -> None:
        marks = {known: mark for known, mark in self._marks().items() if (self._folder / known).is_file()}
        draft = self._folder / ".verified.part"
        try:
            draft.write_text(json.dumps({**marks, name: stamp}))
            draft.replace(self._folder / ".verified")
        except OSError:
            return  # it is verified again next time


def _id_of(path: Path) -> str:
    return path.name.removesuffix(".tar.gz")


def _stamp(path: Path) -> str:
    try:
        state = path.stat()
    except OSError as error:
        raise storage_error(error, path) from error
    return f"{state.st_size}:{state.st_mtime_ns}:{state.st_ino}"


def _moment_in(path: Path) -> datetime:
    """When a snapshot was made by its name, where it cannot be read."""
    found = re.match(r"snapshot_(\d{8}_\d{6})", path.name)
    try:
        moment = datetime.strptime(f"{found[1]} +0000" if found else "", "%Y%m%d_%H%M%S %z")
    except ValueError:
        return from_micros(0)
    return moment


def _number(manifest: Manifest, name: str) -> int:
    value = manifest.facts.get(name)
    if not isinstance(value, int):
        raise BackupCorrupt(f"The snapshot does not say its {name}.", remedy="Use another snapshot.")
    return value
