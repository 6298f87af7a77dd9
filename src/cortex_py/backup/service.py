"""`cortex.backups`: snapshots here and encrypted copies elsewhere, for a project or for what belongs to a person."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from ..clock import Clock
from ..config import Settings
from ..records import Domain
from ..security.permission import require_admin
from ..store.store import Store
from .held import Held
from .retention import Retention
from .snapshots import Restored, Snapshot, Snapshots

if TYPE_CHECKING:
    from .exchange import Exchange, Received, Sent, SyncState
    from .exporting import Exported
    from .importing import Imported, Memories

__all__ = ["Backups"]

_EVERY = {"hourly": timedelta(hours=1), "daily": timedelta(days=1), "weekly": timedelta(weeks=1)}


class Backups:
    """`hold` gives what is to be saved, by project id (None: the present one) and domain; `memories` those of one."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        settings: Settings,
        hold: Callable[[str | None, Domain], Held],
        model: Callable[[], str],
        memories: Callable[[str | None], Memories],
    ) -> None:
        self._store = store
        self._clock = clock
        self._settings = settings
        self._held = hold
        self._model = model
        self._memories = memories
        self._kept: dict[str, Snapshots] = {}

    # -- snapshots -------------------------------------------------------------------------------

    def create(self, description: str = "", *, project_id: str | None = None, domain: Domain = "project") -> Snapshot:
        """Save all of a project in one file, while others go on writing, and read it back to be sure of it."""
        return self._of(project_id, domain).create(description)

    def snapshots(self, *, project_id: str | None = None, domain: Domain = "project") -> list[Snapshot]:
        """The snapshots that are there, newest first; a damaged one with what is wrong with it."""
        return self._of(project_id, domain).all()

    def verify(self, snapshot_id: str, *, project_id: str | None = None, domain: Domain = "project") -> Snapshot:
        """Read all of a snapshot and check every part and document of it."""
        return self._of(project_id, domain).verify(snapshot_id)

    def restore(self, snapshot_id: str, *, project_id: str | None = None, domain: Domain = "project") -> Restored:
        """Put a project back to what it was, all at once or not at all; the state before is saved first."""
        return self._of(project_id, domain).restore(snapshot_id)

    def prune(
        self,
        retention: Retention | None = None,
        *,
        everything: bool = False,
        project_id: str | None = None,
        domain: Domain = "project",
    ) -> list[str]:
        """Remove old snapshots made by the clock or before a restore, and with `everything` those asked for as well.

        The newest good one always stays.
        """
        return self._of(project_id, domain).prune(retention or self._retention, everything=everything)

    def scheduled(self) -> list[Snapshot]:
        """Make the snapshots that are due by the setting `snapshot_every`; called in the background of a server."""
        every = _EVERY.get(self._settings.snapshot_every)
        if every is None:
            return []
        domains: Sequence[Domain] = ("project", "user", "org")
        made = [self._of(None, domain).create_if_due(every, self._retention) for domain in domains]
        return [one for one in made if one is not None]

    # -- sync ------------------------------------------------------------------------------------

    def push(self, *, project_id: str | None = None, whole: bool = False) -> Sent:
        """Bring what changed here to the target of the settings, encrypted; `whole` writes all of it anew."""
        return self._exchange.push(project_id, whole=whole)

    def pull(self, *, project_id: str | None = None) -> Received:
        """Merge what other machines brought to the target. Nothing changes before all of it was verified."""
        return self._exchange.pull(project_id)

    def sync_status(self, *, project_id: str | None = None) -> SyncState:
        """What waits to be pushed and pulled; nothing is changed."""
        return self._exchange.status(project_id)

    def change_passphrase(self, new: str) -> None:
        """Put another passphrase in the place of the one the target is encrypted under."""
        self._exchange.change_passphrase(new)

    @cached_property
    def _exchange(self) -> Exchange:
        from .exchange import Exchange

        return Exchange(self._store, self._clock, self._settings, self._held)

    # -- plain files -----------------------------------------------------------------------------

    def export_to(
        self,
        target: str | Path | BinaryIO,
        *,
        format: str = "jsonl",
        domains: Sequence[Domain] = (),
        project_id: str | None = None,
    ) -> Exported:
        """Write everything as JSON Lines to a file or stream, or as Markdown to a new folder; all domains by default.

        It is one state of the store, as plain text, for its reader alone: encrypt what leaves the machine.
        """
        from .exporting import export, wanted_domains

        held = {domain: self._hold(project_id, domain) for domain in wanted_domains(domains)}
        return export(
            self._store, self._clock, held, Path(target) if isinstance(target, str) else target, format=format
        )

    def import_from(
        self,
        paths: Sequence[str | Path],
        *,
        domain: Domain | None = None,
        replace: bool = False,
        dry_run: bool = False,
        project_id: str | None = None,
    ) -> Imported:
        """Add what exports, notes in Markdown and files of other programs hold. A bad line, and nothing changes.

        What is here already stays, unless `replace` is given; where it differs, that is told as a conflict. `domain`
        is the only one that is taken of exports, and where plain memories go.
        """
        from .exporting import wanted_domains
        from .importing import Importer

        chosen = wanted_domains([domain])[0] if domain is not None else None
        importer = Importer(
            self._store,
            self._clock,
            self._settings,
            lambda wanted: self._hold(project_id, wanted),
            self._memories(project_id),
        )
        return importer.run([Path(path) for path in paths], domain=chosen, replace=replace, dry_run=dry_run)

    @property
    def folder(self) -> Path:
        """Where this home keeps its snapshots."""
        return self._settings.home / "backups"

    @property
    def _retention(self) -> Retention:
        settings = self._settings
        return Retention(settings.snapshot_keep_hourly, settings.snapshot_keep_daily, settings.snapshot_keep_weekly)

    def _hold(self, project_id: str | None, domain: Domain) -> Held:
        """What is held of a space, for whoever may do anything with it: a copy holds all of it, and replaces all."""
        held = self._held(project_id, domain)
        require_admin(held.space)
        return held

    def _of(self, project_id: str | None, domain: Domain) -> Snapshots:
        held = self._hold(project_id, domain)
        if held.space not in self._kept:
            self._kept[held.space] = Snapshots(self._store, self._clock, self.folder, held, self._model)
        return self._kept[held.space]
