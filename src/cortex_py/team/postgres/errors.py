"""Errors of PostgreSQL as errors of the store. No message contains a password."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from psycopg import errors

from ...core.clock import check_deadline
from ...core.errors import (
    AccessDenied,
    StorageError,
    StoreBusy,
    StoreCorrupt,
    StoreDenied,
    StoreFull,
    StoreReadOnly,
    StoreUnavailable,
)

__all__ = ["cannot_connect", "connection_lost", "guard_commit", "is_read_only", "translate_errors"]

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
# The server itself reports them: of a distributed store, a worker does not answer.
_WORKER_LOST = (
    errors.ConnectionException,
    errors.ConnectionFailure,
    errors.ConnectionDoesNotExist,
    errors.SqlclientUnableToEstablishSqlconnection,
)
# A refused connection has no error code; these phrases are in the message of every version.
_REFUSED = ("authentication failed", "no pg_hba.conf entry", "permission denied", "no password supplied")
_STARTING = (
    "starting up",
    "shutting down",
    "recovery mode",
    "not yet accepting connections",
    "too many clients",
    "remaining connection slots",
    # Of an address with several hosts, only a replica answers: perhaps it is being promoted.
    "session is read-only",
    "hot standby mode",
)


@contextmanager
def translate_errors(place: str, *, bound: bool = False) -> Iterator[None]:
    """Raise errors of the engine as errors of the store, each with a remedy. `place` is the location of the database.

    `bound`: the work is done for a caller, so a refusal is an `AccessDenied` for them.
    """
    try:
        yield
    except _BUSY as error:
        check_deadline()
        raise StoreBusy(f"The store at {place} is busy: {_words(error)}.", remedy=_AGAIN) from error
    except errors.DiskFull as error:
        raise StoreFull(
            f"The disk behind {place} is full.", remedy="Nothing was written; free some space and repeat."
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
    except _WORKER_LOST as error:
        raise StoreUnavailable(
            f"A server that has rows of the store at {place} cannot be reached: {_words(error)}.",
            remedy="Nothing was written. Spaces on other servers work; try again when it is back.",
        ) from error
    except (psycopg.OperationalError, psycopg.InterfaceError) as error:
        raise connection_lost(place, error) from error
    except psycopg.DataError as error:
        raise StorageError(
            f"The store at {place} cannot hold a value: {_words(error)}.", remedy="Nothing was written; change it."
        ) from error
    except psycopg.Error as error:
        raise _other(place, error) from error


@contextmanager
def guard_commit(place: str) -> Iterator[None]:
    """Around a commit: if the connection is lost in it, the change may or may not have been written.

    If a coordinator loses its worker instead, it reports an internal error.
    """
    try:
        yield
    except (psycopg.OperationalError, psycopg.InterfaceError, errors.InternalError_) as error:
        if isinstance(error, _BUSY):
            raise
        raise StoreUnavailable(
            f"The connection to {place} was lost while a change was committed: {_words(error)}.",
            remedy="It may have been written or not; look before you repeat it, or repeat it with its idempotency key.",
            perhaps_written=True,
        ) from error


def _other(place: str, error: psycopg.Error) -> StorageError:
    if is_read_only(error):
        return StoreReadOnly(
            f"The store at {place} cannot be written.", remedy="Point database_url at the primary server."
        )
    return StorageError(
        f"The store at {place} failed: {_words(error)}.", remedy="Nothing was written; see the server's log."
    )


def is_read_only(error: psycopg.Error) -> bool:
    """Whether a server refused to write because it is a replica or was made read-only."""
    # A replica refuses the beginning of a transaction that writes with this code, which others have too.
    return isinstance(error, errors.ReadOnlySqlTransaction) or "during recovery" in _words(error)


def connection_lost(place: str, error: psycopg.Error) -> StoreUnavailable:
    """The error for a connection that was lost before the commit."""
    return StoreUnavailable(
        f"The connection to {place} was lost: {_words(error)}.", remedy="Nothing was written; try again."
    )


def cannot_connect(place: str, password: str, error: psycopg.Error) -> StorageError:
    """The error for a connection that could not be opened."""
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
    """The message of the server, on one line."""
    message = error.diag.message_primary or str(error) or type(error).__name__
    return " ".join(message.split())[:300].rstrip(".")
