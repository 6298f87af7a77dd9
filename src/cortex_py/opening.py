"""Opening the store that the settings name: the file in the home, or a PostgreSQL database."""

from __future__ import annotations

from .clock import Clock
from .config import Settings
from .embedding.backend import Backend
from .errors import ConfigurationError
from .graph.naming import keys_of
from .memory.carrying import tag_of
from .memory.prepare import entity_words, space_word
from .memory.terms import index_word
from .security.callers import current_caller
from .security.permission import readable
from .store.bounds import Bounds
from .store.database import Database
from .store.sqlite import open_sqlite
from .store.store import Store
from .store.where import Names

__all__ = ["bounds_now", "open_store"]


def bounds_now() -> Bounds | None:
    """What the transaction that begins now may see, for engines that look after that themselves."""
    caller = current_caller()
    return None if caller is None else Bounds(caller.user, caller.rights.read, caller.rights.write)


def _open_database(settings: Settings, clock: Clock) -> Database:
    if not settings.database_url:
        return open_sqlite(settings.database, clock)
    if not settings.database_url.startswith(("postgresql://", "postgres://")):
        raise ConfigurationError(
            "database_url is not the address of a PostgreSQL database.",
            remedy="Begin it with postgresql://, or leave it unset to keep the store in the home.",
            field="database_url",
        )
    try:
        from .store.postgres import open_postgres
    except ImportError as error:
        raise ConfigurationError(
            f"The driver for database_url cannot be loaded: {error}.",
            remedy="Install it: pip install 'cortex-py[postgres]'.",
            field="database_url",
        ) from error
    return open_postgres(
        settings.database_url,
        clock,
        bounds_now,
        required=settings.auth != "token",
        retry_seconds=settings.database_retry_seconds,
    )


def open_store(settings: Settings, backend: Backend, clock: Clock) -> Store:
    return Store(
        _open_database(settings, clock),
        dimensions=backend.dimensions,
        word=index_word,
        space_word=space_word,
        names=Names(entity_words, keys_of),
        tag=lambda: tag_of(backend),
        readable=readable,
    )
