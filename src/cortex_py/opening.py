"""Opens the store that the settings name: the file in the home, or a PostgreSQL database."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from .core.clock import Clock
from .core.config import Settings
from .core.embedding.backends.backend import Backend
from .core.errors import ConfigurationError, StoreMissing, extra_remedy, storage_error
from .core.graph_values import keys_of
from .core.jobs import Pace
from .core.memory.capture.capture import entity_words
from .core.security.callers import current_caller
from .core.security.home_key import HomeKey
from .core.security.permission import may_read
from .core.security.policy import Screen
from .core.store.database import Bounds, Database
from .core.store.search.filters import Naming
from .core.store.sqlite import open_sqlite
from .core.store.store import Store

__all__ = ["World", "bounds_now", "open_store"]


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """What a process that opens homes is built on; tests choose another."""

    pace: Pace = field(default_factory=Pace)
    # Whether a write is forced to the disk before it is acknowledged. Never turn this off for data that counts.
    durable: bool = True
    open_file: Callable[..., Database] = open_sqlite


def bounds_now() -> Bounds | None:
    """What the next transaction may see, for engines that enforce access themselves."""
    caller = current_caller()
    return None if caller is None else Bounds(caller.user, caller.rights.read, caller.rights.write)


def _make_home(home: Path) -> None:
    """Make a home that is not there yet. In a repository, git takes no notice of it: what it holds is private."""
    if home.exists():
        return
    try:
        home.mkdir(parents=True, mode=0o700, exist_ok=True)
        (home / ".gitignore").write_text("*\n", encoding="ascii")
    except OSError as error:
        raise storage_error(error, home) from error


def _open_database(settings: Settings, clock: Clock, key: HomeKey | None, new_store: bool, world: World) -> Database:
    if not settings.database_url:
        if not new_store:
            _refuse_lost_store(settings.home, settings.database)
        _make_home(settings.home)
        return world.open_file(settings.database, clock, key.database if key else None, durable=world.durable)
    if not settings.database_url.startswith(("postgresql://", "postgres://")):
        raise ConfigurationError(
            "database_url is not the address of a PostgreSQL database.",
            remedy="Begin it with postgresql://, or leave it unset to keep the store in the home.",
            field="database_url",
        )
    try:
        from .team.postgres.engine import open_postgres
    except ImportError as error:
        raise ConfigurationError(
            f"The driver for database_url cannot be loaded: {error}.",
            remedy=extra_remedy("postgres"),
            field="database_url",
        ) from error
    return open_postgres(
        settings.database_url,
        clock,
        bounds_now,
        required=settings.auth != "token",
        retry_seconds=settings.database_retry_seconds,
        read_url=settings.database_read_url,
        direct_url=settings.database_direct_url,
    )


def _refuse_lost_store(home: Path, path: Path) -> None:
    """Raise where the store is gone or empty but the home holds files made from it: a new store would hide the loss.

    Another process may be creating the file right now. Files made from a store come after it, so if the store is still
    empty once they were found, it was empty before.
    """
    if not _is_empty(path) or not home.is_dir():
        return
    snapshots = sorted(home.glob("**/backups/**/snapshot_*.tar.gz"), key=lambda one: one.name, reverse=True)
    log = path.with_name(f"{path.name}-wal")
    others = [log] if not _is_empty(log) else sorted(home.glob("**/memory/*/*.md"))
    if (not snapshots and not others) or not _is_empty(path):
        return
    if snapshots:
        found = f"the home holds snapshots ({len(snapshots)}), the newest {snapshots[0]}"
        name = snapshots[0].name.removesuffix(".tar.gz")
        remedy = f"Run `cortex snapshot restore {name}` in its project, or"
    else:
        found = f"the home holds {others[0]}"
        remedy = "Put a copy of the file back, or"
    raise StoreMissing(
        f"{path} is {'empty' if path.exists() else 'missing'}, but {found}.",
        remedy=f"{remedy} run `cortex init --new-store` to begin with an empty one.",
    )


def _is_empty(path: Path) -> bool:
    try:
        return path.stat().st_size == 0
    except FileNotFoundError:
        return True
    except OSError:
        return False  # opening it raises the right error


def open_store(
    settings: Settings,
    backend: Backend,
    clock: Clock,
    key: HomeKey | None = None,
    *,
    new_store: bool = False,
    world: World | None = None,
) -> Store:
    """`new_store`: create a store even where another one seems to be lost."""
    database = _open_database(settings, clock, key, new_store, world or World())
    database.cleaner = Screen.by(settings).column
    return Store(database, backend.dimensions, Naming(entity_words, keys_of), may_read)
