"""`cortex.backups`: local snapshots and encrypted copies elsewhere, of a project or of a person's data."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from ...core.clock import Clock
from ...core.config import Settings
from ...core.records import Domain
from ...core.security.callers import current_caller
from ...core.security.home_key import HomeKey
from ...core.security.path_access import PathAccess
from ...core.security.policy import Screen
from ...core.security.tenant_files import TenantFiles
from ...core.store.store import Store
from .snapshots.snapshots import RestoreResult, Retention, Snapshot, Snapshots
from .source import AdministeredSources, BackupSources

if TYPE_CHECKING:
    from .sync.sync import Exchange, PullResult, PushResult, SyncStatus
    from .transfer.export import ExportResult
    from .transfer.importer import ImportResult
    from .transfer.readers.discovery import Discovery

__all__ = ["Backups"]

_EVERY = {"hourly": timedelta(hours=1), "daily": timedelta(days=1), "weekly": timedelta(weeks=1)}


class Backups:
    """Snapshots, sync and plain files of what `sources` offers."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        settings: Settings,
        sources: BackupSources,
        places: PathAccess,
        files: TenantFiles,
        key: HomeKey | None = None,
    ) -> None:
        self._key = key
        self._store = store
        self._clock = clock
        self._settings = settings
        self._sources = sources
        self._places = places
        self._files = files
        self._scheduled: dict[Path, Snapshots] = {}

    # -- snapshots -------------------------------------------------------------------------------

    def create(self, description: str = "", *, project_id: str | None = None, domain: Domain = "project") -> Snapshot:
        """Save everything of a project in one file, while others continue to write, and verify it."""
        kept = Screen.by(self._settings).prose(description, "description")
        return self._of(project_id, domain).create(kept)

    def snapshots(self, *, project_id: str | None = None, domain: Domain = "project") -> list[Snapshot]:
        """The snapshots, newest first; a damaged one with its fault."""
        return self._of(project_id, domain).all()

    def verify(self, snapshot_id: str, *, project_id: str | None = None, domain: Domain = "project") -> Snapshot:
        """Read all of a snapshot and check every part and document."""
        return self._of(project_id, domain).verify(snapshot_id)

    def restore(
        self,
        snapshot_id: str,
        *,
        project_id: str | None = None,
        domain: Domain = "project",
        step: Callable[[str], None] = lambda _name: None,
    ) -> RestoreResult:
        """Restore a project in one transaction that comes last; the present state is saved first.

        `step` is called with the name of each step.
        """
        return self._of(project_id, domain).restore(snapshot_id, step)

    def prune(
        self,
        retention: Retention | None = None,
        *,
        everything: bool = False,
        project_id: str | None = None,
        domain: Domain = "project",
    ) -> list[str]:
        """Remove old scheduled and safety snapshots, and with `everything` manual ones too.

        The newest intact one always stays.
        """
        return self._of(project_id, domain).prune(retention or self._retention, everything=everything)

    def scheduled(self) -> list[Snapshot]:
        """Create the snapshots that are due by the setting `snapshot_every`; servers call this in the background."""
        every = _EVERY.get(self._settings.snapshot_every)
        if every is None:
            return []
        domains: Sequence[Domain] = ("project", "user", "org")
        made = []
        for domain in domains:
            one = self._of(None, domain)
            # Kept, because each remembers when it was last checked.
            one = self._scheduled.setdefault(one.folder, one)
            made.append(one.create_if_due(every, self._retention))
        return [one for one in made if one is not None]

    # -- sync ------------------------------------------------------------------------------------

    def push(self, *, project_id: str | None = None, whole: bool = False) -> PushResult:
        """Upload what changed here to the target of the settings, encrypted; `whole` uploads everything again."""
        return self._exchange.push(project_id, whole=whole)

    def pull(self, *, project_id: str | None = None) -> PullResult:
        """Merge what other machines uploaded. Nothing changes until all of it is verified."""
        return self._exchange.pull(project_id)

    def sync_status(self, *, project_id: str | None = None) -> SyncStatus:
        """What waits to be pushed and pulled. Changes nothing."""
        return self._exchange.status(project_id)

    def change_passphrase(self, new: str) -> None:
        """Replace the passphrase that encrypts the target."""
        self._exchange.change_passphrase(new)

    @cached_property
    def _exchange(self) -> Exchange:
        from .sync.sync import Exchange

        return Exchange(self._store, self._clock, self._settings, self._sources)

    # -- plain files -----------------------------------------------------------------------------

    def export_to(
        self,
        target: str | Path | BinaryIO,
        *,
        format: str = "jsonl",
        domains: Sequence[Domain] = (),
        project_id: str | None = None,
    ) -> ExportResult:
        """Write everything as JSON Lines to a file or stream, or as Markdown to a new folder.

        The format `server-memory` is that of the MCP memory server: live memories and the graph. `mem0` is the JSON of
        mem0: live memories.

        The export is one state of the store, of all domains by default, in plain text and readable by its owner only:
        encrypt it before it leaves the machine.
        """
        from .transfer.export import export, wanted_domains

        sources = AdministeredSources(self._sources, project_id)
        held = {domain: sources[domain] for domain in wanted_domains(domains)}
        if isinstance(target, str | Path):
            target = Path(target)
            # The folder is what must exist already.
            self._places.check(target.parent)
        return export(self._store, self._clock, held, target, format=format)

    def import_from(
        self,
        paths: Sequence[str | Path],
        *,
        domain: Domain | None = None,
        replace: bool = False,
        dry_run: bool = False,
        project_id: str | None = None,
        kind: str | None = None,
        fields: Mapping[str, str] | None = None,
        since: datetime | None = None,
        folder: str | Path | None = None,
        limit: int | None = None,
    ) -> ImportResult:
        """Add what exports of Cortex and files of other programs contain.

        A fault in an export changes nothing. Existing documents stay unless `replace` is given; those that differ are
        reported as conflicts. `domain` restricts exports to one domain, and is where memories of other programs go.

        Of other programs, what is damaged is left out and reported, and the rest is taken. `kind` names what wrote
        the files, where their content does not tell. `fields` says which field holds the `content`, the `created_at`
        and so on. Not taken are records from before `since`, of another project folder than `folder`, and more than
        `limit`.
        """
        from .transfer.export import wanted_domains
        from .transfer.importer import Importer, report_text
        from .transfer.intake import IntakeOptions

        chosen = wanted_domains([domain])[0] if domain is not None else None
        importer = Importer(self._store, self._clock, self._settings, self._sources, project_id)
        # Absolute: the same file is the same source, wherever the command is run.
        places = [self._places.check(path) for path in paths]
        options = IntakeOptions(chosen, since, None if folder is None else str(folder), limit, dry_run)
        done = importer.run(places, options, kind=kind, fields=fields, replace=replace)
        # The facts of a store are shared by its tenants: only who has it alone leaves names there.
        if not dry_run and current_caller() is None:
            with self._store.database.write() as session:
                self._store.settings.put(session, self._report_key(project_id), report_text(done, self._clock.now()))
        return done

    def last_import(self, project_id: str | None = None) -> tuple[datetime, ImportResult] | None:
        """When the last import into a project ended, and what came of it; None if there was none.

        Of what was left out, is gone or is in conflict, the first 1,000 are kept. A shared server keeps no reports.
        """
        from .transfer.importer import read_report

        with self._store.database.read() as session:
            found = self._store.settings.get(session, self._report_key(project_id))
        return read_report(found) if found and current_caller() is None else None

    def _report_key(self, project_id: str | None) -> str:
        return f"import-report:{self._sources.memories(project_id).place.project.id}"

    def discover(self, home: Path | None = None) -> list[Discovery]:
        """What this machine has to import: sessions and memory of agents, and documents of the current project."""
        from .transfer.readers.discovery import discover

        root = self._sources.memories(None).place.project.root
        return discover(self._places.check(home or Path.home()), Path(root) if root else None)

    @property
    def _retention(self) -> Retention:
        settings = self._settings
        return Retention(settings.snapshot_keep_hourly, settings.snapshot_keep_daily, settings.snapshot_keep_weekly)

    def _of(self, project_id: str | None, domain: Domain) -> Snapshots:
        held = AdministeredSources(self._sources, project_id)[domain]
        folder = self._files.folder("backups", held.space)
        return Snapshots(self._store, self._clock, folder, held, self._key)
