"""Every error that Cortex raises on purpose, and its form on the wire.

    CortexError
    ├── InvalidInput            bad argument, nothing was changed
    │   ├── BadArguments        arguments of a call that do not fit it, all named
    │   ├── FilterSyntaxError   a filter expression, with the position of the fault
    │   ├── ContentSyntaxError  placeholders that cannot be read, each with its position
    │   ├── LimitExceeded       work that would grow beyond its bounds
    │   ├── UnknownNamespace
    │   ├── InvalidId
    │   ├── ContentTooLarge
    │   ├── LicenceInvalid      a licence that was changed, has expired, or is not one
    │   └── ConfigurationError
    ├── NotFound
    │   ├── MemoryNotFound
    │   ├── ProjectNotFound
    │   ├── BranchNotFound
    │   ├── EntityNotFound
    │   ├── RelationshipNotFound
    │   ├── PromptNotFound      no saved prompt or template of that name
    │   ├── SnapshotNotFound
    │   └── SuggestionNotFound  no such session of suggestions
    ├── AmbiguousId             a prefix that names several records
    ├── ContentBlocked          a secret, under the policy "block"
    ├── Conflict                the record changed meanwhile
    │   └── SuggestionClosed    a session of suggestions that was answered or has expired
    ├── LicenseRequired         the settings ask for a licence, and none opens this
    ├── AccessDenied            a caller that is not known, or may not do this
    ├── RateLimited             too many requests; says when to try again
    ├── DeadlineExceeded        a call that took longer than the settings allow, and was stopped
    ├── StorageError
    │   ├── StoreBusy
    │   ├── StoreUnavailable    the database went away; says whether something may have been written
    │   ├── StoreFull
    │   ├── StoreReadOnly
    │   ├── StoreDenied         the operating system refused access
    │   ├── StoreLocked         the home is encrypted, and no key was given
    │   ├── StoreMissing        the store is gone, though the home holds what was made from it
    │   ├── StoreCorrupt
    │   └── StoreTooNew         written by a later version of Cortex
    ├── BackupError             a backup cannot be made or read
    │   ├── BackupCorrupt       damaged or altered; nothing of it was used
    │   ├── WrongKey            a passphrase that does not open it
    │   └── NetworkError        the place for backups cannot be reached, or refuses
    ├── GitFailed               a git command ended with an error
    ├── EmbeddingError
    │   ├── EmbeddingUnavailable  the endpoint is away; words are kept, their vectors follow
    │   ├── ModelMissing
    │   ├── ModelCorrupt
    │   └── ModelMismatch       the store's vectors come from another model
    └── LLMError                a language model failed; with the provider's reason
        └── LLMBudgetSpent      the day's tokens are used up

A message names the thing, what is wrong with it, and what to do next. It may quote what a caller gave, so
`message`, `remedy` and `field` are redacted and bounded in length when they are read; see `echo`.
"""

from __future__ import annotations

import errno
import logging
from collections.abc import Sequence
from contextvars import ContextVar
from dataclasses import dataclass

from .echo import clean_text

__all__ = [
    "CALLED_FROM_ELSEWHERE",
    "WIRE_FORMS",
    "AccessDenied",
    "AmbiguousId",
    "BackupCorrupt",
    "BackupError",
    "BadArguments",
    "BranchNotFound",
    "ConfigurationError",
    "Conflict",
    "ContentBlocked",
    "ContentSyntaxError",
    "ContentTooLarge",
    "CortexError",
    "DeadlineExceeded",
    "EmbeddingError",
    "EmbeddingUnavailable",
    "EntityNotFound",
    "Fault",
    "FilterSyntaxError",
    "GitFailed",
    "InvalidId",
    "InvalidInput",
    "LLMBudgetSpent",
    "LLMError",
    "LicenceInvalid",
    "LicenseRequired",
    "LimitExceeded",
    "MemoryNotFound",
    "ModelCorrupt",
    "ModelMismatch",
    "ModelMissing",
    "NetworkError",
    "NotFound",
    "ProjectNotFound",
    "PromptNotFound",
    "RateLimited",
    "RelationshipNotFound",
    "SnapshotNotFound",
    "StorageError",
    "StoreBusy",
    "StoreCorrupt",
    "StoreDenied",
    "StoreFull",
    "StoreLocked",
    "StoreMissing",
    "StoreReadOnly",
    "StoreTooNew",
    "StoreUnavailable",
    "SuggestionClosed",
    "SuggestionNotFound",
    "UnknownNamespace",
    "WireForm",
    "WrongKey",
    "advice_on_limits",
    "extra_remedy",
    "storage_error",
    "wire_form",
]


_FAULTS_SHOWN = 5
_LONGEST_FIELD = 200

# Set while a request of a caller who signed in with a token is answered: they may sit anywhere.
CALLED_FROM_ELSEWHERE: ContextVar[bool] = ContextVar("called_from_elsewhere", default=False)

_log = logging.getLogger(__name__)


class CortexError(Exception):
    """Base of all errors that a caller may expect. Its texts are made fit to show when they are read."""

    # What a caller elsewhere gets in place of a message that names addresses and folders of the server.
    _elsewhere: str | None = None
    _remedy_elsewhere = "The server's log has the details."

    def __init__(self, message: str, *, remedy: str | None = None, field: str | None = None) -> None:
        # Not as an argument of the exception, which others show as it is.
        super().__init__()
        if self._elsewhere and CALLED_FROM_ELSEWHERE.get():
            _log.error("%s: %s %s", type(self).__name__, clean_text(message), clean_text(remedy or ""))
            message, remedy = self._elsewhere, self._remedy_elsewhere
        self._message = message
        self._remedy = remedy
        self._field = field

    @property
    def message(self) -> str:
        return clean_text(self._message)

    @message.setter
    def message(self, message: str) -> None:
        self._message = message

    @property
    def remedy(self) -> str | None:
        return self._remedy and clean_text(self._remedy)

    @property
    def field(self) -> str | None:
        return self._field and clean_text(self._field, _LONGEST_FIELD)

    @field.setter
    def field(self, field: str | None) -> None:
        self._field = field

    def __str__(self) -> str:
        return f"{self.message} {self.remedy}" if self._remedy else self.message

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.message!r})"


class InvalidInput(CortexError):
    pass


class BadArguments(InvalidInput):
    """Arguments that do not fit; `fields` names them all."""

    def __init__(self, message: str, *, fields: tuple[str, ...]) -> None:
        super().__init__(message, field=fields[0] if fields else None)
        self.fields = tuple(clean_text(name, _LONGEST_FIELD) for name in fields)


class FilterSyntaxError(InvalidInput):
    """A filter expression that cannot be read; `position` counts characters from 0."""

    def __init__(self, message: str, *, position: int, remedy: str | None = None) -> None:
        super().__init__(message, remedy=remedy, field="filter")
        self.position = position


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing wrong in a text. `position` counts characters from 0, `line` and `column` from 1."""

    message: str
    position: int
    line: int
    column: int

    @classmethod
    def at(cls, text: str, position: int, message: str) -> Fault:
        before = text[:position]
        return cls(message, position, before.count("\n") + 1, position - before.rfind("\n"))

    def __str__(self) -> str:
        return f"Line {self.line}, column {self.column}: {self.message}"


class ContentSyntaxError(InvalidInput):
    """Placeholders of a prompt or template that cannot be read. `faults` has all in order, the message the first."""

    def __init__(self, kind: str, faults: Sequence[Fault], *, remedy: str | None = None) -> None:
        self.faults = tuple(sorted(faults, key=lambda fault: fault.position))
        first = " ".join(str(fault) for fault in self.faults[:_FAULTS_SHOWN])
        more = len(self.faults) - _FAULTS_SHOWN
        message = f"The {kind} cannot be read. {first}{f' And {more} more.' if more > 0 else ''}"
        super().__init__(message, remedy=remedy, field="content")


class LimitExceeded(InvalidInput):
    pass


class UnknownNamespace(InvalidInput):
    pass


class InvalidId(InvalidInput):
    pass


class ContentTooLarge(InvalidInput):
    pass


class LicenceInvalid(InvalidInput):
    pass


class ConfigurationError(InvalidInput):
    pass


class NotFound(CortexError):
    pass


class MemoryNotFound(NotFound): ...


class ProjectNotFound(NotFound): ...


class BranchNotFound(NotFound): ...


class EntityNotFound(NotFound): ...


class RelationshipNotFound(NotFound): ...


class SnapshotNotFound(NotFound): ...


class SuggestionNotFound(NotFound): ...


class PromptNotFound(NotFound): ...


class AmbiguousId(CortexError):
    """A prefix of several ids; `candidates` lists them."""

    def __init__(self, message: str, *, candidates: tuple[str, ...], remedy: str | None = None) -> None:
        super().__init__(message, remedy=remedy, field="id")
        self.candidates = candidates


class ContentBlocked(CortexError):
    """Content refused because it holds a secret; `kinds` names what was seen, never its text."""

    def __init__(
        self, message: str, *, kinds: tuple[str, ...], remedy: str | None = None, field: str = "content"
    ) -> None:
        super().__init__(message, remedy=remedy, field=field)
        self.kinds = kinds


class Conflict(CortexError):
    pass


class SuggestionClosed(Conflict):
    pass


class LicenseRequired(CortexError):
    pass


class AccessDenied(CortexError):
    pass


class RateLimited(CortexError):
    """Too many requests; `retry_after` is in seconds."""

    def __init__(self, message: str, *, retry_after: float, remedy: str | None = None) -> None:
        super().__init__(message, remedy=remedy)
        self.retry_after = retry_after


class DeadlineExceeded(CortexError):
    pass


class StorageError(CortexError):
    _elsewhere: str | None = "The store of this server failed."


class StoreBusy(StorageError):
    _elsewhere = "The store of this server is busy."
    _remedy_elsewhere = "Nothing was written; try again."


class StoreFull(StorageError):
    _elsewhere = "The disk behind the store of this server is full."


class StoreReadOnly(StorageError):
    _elsewhere = "The store of this server cannot be written."


class StoreDenied(StorageError): ...


class StoreLocked(StorageError): ...


class StoreMissing(StorageError): ...


class StoreCorrupt(StorageError): ...


class StoreTooNew(StorageError): ...


class StoreUnavailable(StorageError):
    """The database went away. `perhaps_written`: it broke while a change was made final, which may have happened."""

    _elsewhere = "The store of this server cannot be reached."
    _remedy_elsewhere = "Nothing was written; try again."

    def __init__(self, message: str, *, remedy: str, perhaps_written: bool = False) -> None:
        if perhaps_written:
            self._remedy_elsewhere = remedy  # it names no place, and says what must be looked at
        super().__init__(message, remedy=remedy)
        self.perhaps_written = perhaps_written


class BackupError(CortexError):
    pass


class BackupCorrupt(BackupError): ...


class WrongKey(BackupError): ...


class NetworkError(BackupError): ...


class GitFailed(CortexError):
    """A git command ended with an error."""


class EmbeddingError(CortexError):
    pass


class EmbeddingUnavailable(EmbeddingError): ...


class ModelMissing(EmbeddingError):
    _elsewhere = "The embedding model of this server is missing."


class ModelCorrupt(EmbeddingError):
    _elsewhere = "The embedding model of this server is damaged."


class ModelMismatch(EmbeddingError): ...


class LLMError(CortexError):
    pass


class LLMBudgetSpent(LLMError):
    pass


@dataclass(frozen=True, slots=True)
class WireForm:
    """The codes of one kind of error in each interface."""

    cortex: str
    subcog: int
    embedding: str
    exit_code: int


# Most specific first: the first class that matches decides.
WIRE_FORMS: tuple[tuple[type[CortexError], WireForm], ...] = (
    (ContentBlocked, WireForm("INVALID_PARAMS", -32605, "SECURITY_VIOLATION", 5)),
    (MemoryNotFound, WireForm("CONTEXT_NOT_FOUND", -32604, "VALIDATION_ERROR", 4)),
    (ProjectNotFound, WireForm("PROJECT_NOT_FOUND", -32604, "VALIDATION_ERROR", 4)),
    (BranchNotFound, WireForm("BRANCH_NOT_FOUND", -32604, "VALIDATION_ERROR", 4)),
    (SuggestionNotFound, WireForm("SESSION_NOT_FOUND", -32604, "VALIDATION_ERROR", 4)),
    (SnapshotNotFound, WireForm("SNAPSHOT_NOT_FOUND", -32604, "VALIDATION_ERROR", 4)),
    (PromptNotFound, WireForm("CONTEXT_NOT_FOUND", -32607, "VALIDATION_ERROR", 4)),
    (NotFound, WireForm("CONTEXT_NOT_FOUND", -32604, "VALIDATION_ERROR", 4)),
    (AmbiguousId, WireForm("INVALID_PARAMS", -32602, "VALIDATION_ERROR", 2)),
    (ContentTooLarge, WireForm("INVALID_PARAMS", -32602, "TEXT_TOO_LONG", 2)),
    (UnknownNamespace, WireForm("INVALID_PARAMS", -32608, "VALIDATION_ERROR", 2)),
    (InvalidInput, WireForm("INVALID_PARAMS", -32602, "VALIDATION_ERROR", 2)),
    (SuggestionClosed, WireForm("SESSION_CLOSED", -32608, "VALIDATION_ERROR", 6)),
    (Conflict, WireForm("INVALID_PARAMS", -32608, "VALIDATION_ERROR", 6)),
    (LicenseRequired, WireForm("LICENSE_REQUIRED", -32601, "VALIDATION_ERROR", 13)),
    (AccessDenied, WireForm("ACCESS_DENIED", -32601, "SECURITY_VIOLATION", 15)),
    (RateLimited, WireForm("RATE_LIMITED", -32603, "RATE_LIMITED", 9)),
    (DeadlineExceeded, WireForm("STORAGE_ERROR", -32603, "INTERNAL_ERROR", 16)),
    (StorageError, WireForm("STORAGE_ERROR", -32603, "INTERNAL_ERROR", 7)),
    (NetworkError, WireForm("NETWORK_ERROR", -32603, "INTERNAL_ERROR", 14)),
    (BackupError, WireForm("STORAGE_ERROR", -32603, "INTERNAL_ERROR", 7)),
    (EmbeddingError, WireForm("STORAGE_ERROR", -32603, "INTERNAL_ERROR", 8)),
    (LLMError, WireForm("STORAGE_ERROR", -32606, "INTERNAL_ERROR", 10)),
    (CortexError, WireForm("STORAGE_ERROR", -32603, "INTERNAL_ERROR", 1)),
)


def extra_remedy(extra: str) -> str:
    """What to type when the packages of an extra are missing."""
    return f"In the checkout of Cortex: pip install '.[{extra}]'. From a wheel: pip install 'THE_WHEEL.whl[{extra}]'."


_TOO_MANY_FILES = (errno.EMFILE, errno.ENFILE)
_NO_MEMORY_WORDS = ("Cannot allocate memory", "failed to map segment", "can't start new thread", "bad_alloc", "NoMem")
_FILES = "This process has as many files open as it may. Raise the limit, as with `ulimit -n 1024`, and repeat."
_MEMORY = "There is not enough memory. Close other programs or raise the limit (`ulimit -v`), and repeat."


def advice_on_limits(error: BaseException) -> str | None:
    """What to do, if an error or one behind it says that the system gives this process no more; else None."""
    seen: list[BaseException] = []
    behind: BaseException | None = error
    while behind is not None and behind not in seen:
        seen.append(behind)
        if isinstance(behind, OSError) and behind.errno in _TOO_MANY_FILES:
            return _FILES
        words = f"{type(behind).__name__} {behind}"
        if isinstance(behind, MemoryError) or any(one in words for one in _NO_MEMORY_WORDS):
            return _MEMORY
        behind = behind.__cause__ or behind.__context__
    return None


def storage_error(error: OSError, path: object) -> StorageError:
    """An error of the operating system as one of ours, with what to do about it."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return StoreFull(f"The disk that holds {path} is full.", remedy="Free some space and repeat.")
    if error.errno in _TOO_MANY_FILES:
        return StorageError(f"{path} cannot be opened.", remedy=_FILES)
    if error.errno == errno.EROFS:
        return StoreReadOnly(f"{path} is on a read-only file system.", remedy="Set CORTEX_HOME elsewhere.")
    if error.errno in (errno.EACCES, errno.EPERM):
        return StoreDenied(f"{path} may not be accessed.", remedy="Check the owner and the permissions.")
    return StorageError(f"{path}: {error.strerror or error}.", remedy="Set CORTEX_HOME to a usable folder.")


def wire_form(error: CortexError) -> WireForm:
    """The wire form of an error, by its most specific class."""
    return next(form for kind, form in WIRE_FORMS if isinstance(error, kind))
