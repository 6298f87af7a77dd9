"""The protocol of a target: a place for sealed objects outside the home, the names of objects, and faults."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from enum import Enum
from typing import NamedTuple, Protocol, TypeVar

from ....core.errors import InvalidInput, NetworkError
from ....core.remote import RemoteProblem, RetryPolicy, retry

__all__ = [
    "StoredObject", "Target", "TargetProblem", "Trouble", "check_name", "check_prefix", "is_name", "problem_of_status",
    "retry_request", "too_large",
]  # fmt: skip


_LONGEST = 512
# Leaves space for the suffix of a draft within the 255 bytes that file systems allow.
_LONGEST_PART = 180
# No part begins with a dot: such names belong to drafts, and to what programs that sync folders keep for themselves.
_NAME = re.compile(r"[a-z0-9_-][a-z0-9._-]*(?:/[a-z0-9_-][a-z0-9._-]*)*")
_PREFIX = re.compile(r"(?:[a-z0-9_-][a-z0-9._-]*(?:/|$))*")
# Syncthing keeps a copy of a conflicting file under such a name; it is never an object.
_FOREIGN = ".sync-conflict-"


def is_name(name: str) -> bool:
    """Whether an object can have this name."""
    return (
        len(name) <= _LONGEST
        and _NAME.fullmatch(name) is not None
        and _FOREIGN not in name
        and all(len(part) <= _LONGEST_PART for part in name.split("/"))
    )


def check_name(name: str) -> str:
    """The name, if an object can have it."""
    if not is_name(name):
        raise InvalidInput(
            f"{name[:80]!r} is not a valid name of an object.",
            remedy="Use lower-case letters, digits, '_', '-' and '.', in parts joined by '/'.",
            field="name",
        )
    return name


def check_prefix(prefix: str) -> str:
    """The prefix, if names can begin with it."""
    if len(prefix) > _LONGEST or _PREFIX.fullmatch(prefix) is None:
        raise InvalidInput(
            f"No name in a target begins with {prefix[:80]!r}.",
            remedy="Use lower-case letters, digits, '_', '-' and '.', in parts joined by '/'.",
            field="prefix",
        )
    return prefix


class StoredObject(NamedTuple):
    """The name and the size of an object."""

    name: str
    size: int


class Target(Protocol):
    """Objects by name; a name consists of lower-case letters, digits, `_`, `-` and `.`, in parts joined by `/`.

    No part begins with a dot or has more than 180 characters; a name has at most 512 and holds no `.sync-conflict-`,
    which marks files made by synchronisation programs. An object is seen whole or not at all. Faults are
    `NetworkError`, with a remedy.
    """

    @property
    def shown(self) -> str:
        """The target as it may be shown: without user name, password or query."""

    def put(self, name: str, data: bytes) -> None:
        """Write an object, replacing an existing one."""

    def create(self, name: str, data: bytes) -> bool:
        """Write an object unless it exists; returns whether it was written."""

    def get(self, name: str, limit: int) -> bytes | None:
        """An object, or None if there is none; one with more bytes than the limit is refused."""

    def list(self, prefix: str) -> Iterator[StoredObject]:
        """The objects whose names begin with a prefix, in order."""

    def delete(self, name: str) -> None:
        """Remove an object, if it exists."""

    def close(self) -> None: ...


T = TypeVar("T")

_ATTEMPTS = 5
FIRST_PAUSE = 0.2


class Trouble(Enum):
    """A kind of fault: the message after the target's name, and the remedy."""

    UNREACHABLE = "cannot be reached", "Check the address and the network, and try again."
    BROKEN_OFF = "closed the connection", "Try again; if it happens again, look into the server's log."
    TIMED_OUT = "did not answer in time", "Check the network, and try again."
    TLS = (
        "has no certificate that this machine trusts",
        "Check the address; name the file of a certificate authority of your own in SSL_CERT_FILE.",
    )
    DENIED = (
        "denies access",
        "Check the credentials, that they may list, read, write and delete there, and this machine's clock.",
    )
    MISSING = "does not exist", "Create the bucket or the folder there, or check its name."
    FULL = "is full", "Free some space there, or raise its quota, and try again."
    BUSY = "is busy or out of order", "Try again later."
    MOVED = "redirects to another address", "Give that address, or the right region; nothing was sent there."
    FOREIGN = (
        "holds objects that are not from Cortex, under names that cannot be read",
        "Remove them, or give Cortex a prefix of its own.",
    )
    REFUSED = "refuses the request", "Check the address."


class TargetProblem(RemoteProblem):
    """A fault at a target. `undone`: the request certainly had no effect."""

    def __init__(
        self,
        trouble: Trouble,
        *,
        status: int | None = None,
        retryable: bool = False,
        undone: bool = False,
        after: float | None = None,
    ) -> None:
        super().__init__(trouble.value[0], status=status, retryable=retryable, after=after)
        self.trouble = trouble
        self.undone = undone


def problem_of_status(status: int, *, after: float | None = None) -> TargetProblem:
    """The problem behind an HTTP status."""
    if status in (401, 403):
        trouble = Trouble.DENIED
    elif status in (404, 409, 410):
        trouble = Trouble.MISSING
    elif status in (413, 507):
        trouble = Trouble.FULL
    elif status in (408, 423, 429) or (status >= 500 and status not in (501, 505)):
        trouble = Trouble.BUSY
    elif 300 <= status < 400:
        trouble = Trouble.MOVED
    else:
        trouble = Trouble.REFUSED
    return TargetProblem(
        trouble, status=status, retryable=trouble is Trouble.BUSY, undone=status in (423, 429, 503), after=after
    )


def retry_request(shown: str, timeout: float, attempt: Callable[[float], T], *, repeatable: bool = True) -> T:
    """Call `attempt` with the seconds it may take, and retry while that can help.

    All attempts together take at most `timeout` seconds. If not `repeatable`, a request is retried only if the one
    before certainly had no effect.
    """
    end = time.monotonic() + timeout
    before: TargetProblem | None = None

    def bounded() -> T:
        nonlocal before
        try:
            left = end - time.monotonic()
            if left <= 0:
                raise TargetProblem(Trouble.TIMED_OUT)
            return attempt(left)
        except TargetProblem as problem:
            if before is not None and problem.trouble is Trouble.TIMED_OUT:
                # The last attempt had little time left; the one before it describes the fault better.
                before.retryable = False
                raise before from None
            before = problem
            problem.retryable &= repeatable or problem.undone
            raise

    policy = RetryPolicy(attempts=_ATTEMPTS, seconds=timeout, first=FIRST_PAUSE, longest=timeout)
    try:
        return retry(bounded, policy)
    except TargetProblem as problem:
        answered = f" (it answered {problem.status})" if problem.status else ""
        said, remedy = problem.trouble.value
        # Without the cause: messages of libraries may contain credentials.
        raise NetworkError(f"{shown} {said}{answered}.", remedy=remedy) from None


def too_large(shown: str, name: str, limit: int) -> NetworkError:
    """The error for an object with more bytes than the limit."""
    return NetworkError(
        f"{name} in {shown} has more than {limit:,} bytes; Cortex writes no such object.",
        remedy="Remove it if it is not yours; it may be an attack.",
    )
