"""What PostgreSQL refuses, as our errors. No message holds a password."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from psycopg import errors

from ..errors import (
    AccessDenied,
    StorageError,
    StoreBusy,
    StoreCorrupt,
    StoreDenied,
    StoreFull,
    StoreReadOnly,
    StoreUnavailable,
)

__all__ = ["cannot_connect", "committing", "connection_lost", "translated"]

_AGAIN = "Nothing was written; try again."
_BUSY = (
    errors.LockNotAvailable,
    errors.QueryCanceled,
    errors.DeadlockDetected,
    errors.SerializationFailure,
    errors.TooManyConnections,
    errors.CannotConnectNow,
    errors.IdleInTransactionSessionTimeout,
)
_DENIED = (errors.InsufficientPrivilege, errors.InvalidAuthorizationSpecification, errors.InvalidPassword)
_CORRUPT = (errors.DataCorrupted, errors.IndexCorrupted)
_FOREIGN = (errors.DuplicateTable, errors.DuplicateObject, errors.UndefinedTable, errors.UndefinedColumn)
# The server answers a refused connection in words only; these are among them in every version.
_REFUSED = ("authentication failed", "no pg_hba.conf entry", "permission denied", "no password supplied")
_STARTING = (
    "starting up",
    "shutting down",
    "recovery mode",
    "not yet accepting connections",
    "too many clients",
    "remaining connection slots",
)


@contextmanager
def translated(place: str, *, bound: bool = False) -> Iterator[None]:
    """Errors of the engine as ours, each with what to do about it. `place` names the database without a password.

    `bound` says that the work is done for a caller: what is refused then is refused to them.
    """
    try:
        yield
    except _BUSY as error:
        raise StoreBusy(f"The store at {place} is busy: {_words(error)}.", remedy=_AGAIN) from error
    except errors.DiskFull as error:
        raise StoreFull(
            f"The disk behind {place} is full.", remedy="Nothing was written; free some space and repeat."
        ) from error
    except errors.ReadOnlySqlTransaction as error:
        raise StoreReadOnly(
            f"The store at {place} cannot be written.", remedy="Point database_url at the primary server."
        ) from error
    except _DENIED as error:
        if bound:
            raise AccessDenied(
                f"The store refuses this to the caller: {_words(error)}.",
                remedy="Nothing was written; ask for the right to write there.",
            ) from error
        raise StoreDenied(
            f"The store at {place} refuses: {_words(error)}.",
            remedy="Give the role of database_url the right to create and change tables in its schema.",
        ) from error
    except _CORRUPT as error:
        raise StoreCorrupt(
            f"The store at {place} is damaged: {_words(error)}.", remedy="Restore the database from a backup."
        ) from error
    except _FOREIGN as error:
        raise StoreCorrupt(
            f"The schema at {place} is not that of a Cortex store: {_words(error)}.",
            remedy="Choose a database or schema of its own; this one was not changed.",
        ) from error
    except (psycopg.OperationalError, psycopg.InterfaceError) as error:
        raise connection_lost(place, error) from error
    except psycopg.DataError as error:
        raise StorageError(
            f"The store at {place} cannot hold a value: {_words(error)}.", remedy="Nothing was written; change it."
        ) from error
    except psycopg.Error as error:
        raise StorageError(
            f"The store at {place} failed: {_words(error)}.", remedy="Nothing was written; see the server's log."
        ) from error


@contextmanager
def committing(place: str) -> Iterator[None]:
    """Around the commit of a change: if the connection goes away in it, nobody here knows what became of it."""
    try:
        yield
    except (psycopg.OperationalError, psycopg.InterfaceError) as error:
        if isinstance(error, _BUSY):
            raise
        raise StoreUnavailable(
            f"The connection to {place} was lost while a change was committed: {_words(error)}.",
            remedy="It may have been written or not; look before you repeat it, or repeat it with its idempotency key.",
            perhaps_written=True,
        ) from error


def connection_lost(place: str, error: psycopg.Error) -> StoreUnavailable:
    """The connection went away in the middle of a transaction, before its commit."""
    return StoreUnavailable(
        f"The connection to {place} was lost: {_words(error)}.", remedy="Nothing was written; try again."
    )


def cannot_connect(place: str, password: str, error: psycopg.Error) -> StorageError:
    """No connection could be made."""
    words = _words(error)
    if password:
        words = words.replace(password, "***")
    if any(sign in words for sign in _REFUSED):
        return StoreDenied(
            f"PostgreSQL at {place} refuses: {words}.", remedy="Check the user and the password in database_url."
        )
    if any(sign in words for sign in _STARTING):
        return StoreBusy(f"PostgreSQL at {place} takes no connection now: {words}.", remedy="Try again.")
    return StoreUnavailable(
        f"PostgreSQL at {place} cannot be reached: {words}.", remedy="Check database_url, and that the server runs."
    )


def _words(error: psycopg.Error) -> str:
    """The server's own first words, on one line."""
    told = error.diag.message_primary or str(error) or type(error).__name__
    return " ".join(told.split())[:300].rstrip(".")
