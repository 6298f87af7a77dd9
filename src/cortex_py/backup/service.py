"""`cortex.backups`: snapshots here and encrypted copies elsewhere, for a project or for what belongs to a person."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from pathlib import Path

from ..clock import Clock
from ..config import Settings
from ..records import Domain
from ..store.store import Store
from .held import Held
from .retention import Retention
from .snapshots import Restored, Snapshot, Snapshots

__all__ = ["Backups"]

_EVERY = {"hourly": timedelta(hours=1), "daily": timedelta(days=1), "weekly": timedelta(weeks=1)}


class Backups:
    """`hold` gives what is to be saved, by project id (None: the present one) and domain."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        settings: Settings,
        hold: Callable[[str | None, Domain], Held],
        model: str,
    ) -> None:
        self._store = store
        self._clock = clock
        self._settings = settings
        self._hold = hold
        self._model = model
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

    @property
    def folder(self) -> Path:
        """Where this home keeps its snapshots."""
        return self._settings.home / "backups"

    @property
    def _retention(self) -> Retention:
        settings = self._settings
        return Retention(settings.snapshot_keep_hourly, settings.snapshot_keep_daily, settings.snapshot_keep_weekly)

    def _of(self, project_id: str | None, domain: Domain) -> Snapshots:
        held = self._hold(project_id, domain)
        if held.space not in self._kept:
            self._kept[held.space] = Snapshots(self._store, self._clock, self.folder, held, self._model)
        return self._kept[held.space]
