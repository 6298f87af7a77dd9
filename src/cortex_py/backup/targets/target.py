"""What goes wrong at a target, how long to go on trying, and what is told of it."""

from __future__ import annotations

import time
from collections.abc import Callable
from enum import Enum
from typing import TypeVar

from ..errors import NetworkError
from ..remote import Patience, RemoteProblem, persevere

__all__ = ["TargetProblem", "Trouble", "persist", "problem_of_status", "too_large"]

T = TypeVar("T")

_ATTEMPTS = 5
_FIRST_PAUSE = 0.2


class Trouble(Enum):
    """A kind of fault: what is said after the target's name, and what to do."""

    UNREACHABLE = "cannot be reached", "Check the address and the network, and try again."
    BROKEN_OFF = "broke the connection off", "Try again; if it happens again, look into the server's log."
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
    MOVED = "answers that it lies elsewhere", "Give the address, or the region, where it lies; nothing was sent there."
    FOREIGN = (
        "holds objects that are not from Cortex, under names that cannot be read",
        "Remove them, or give Cortex a prefix of its own.",
    )
    REFUSED = "refuses", "Check the address and what it is an address of."


class TargetProblem(RemoteProblem):
    """A fault at a target. `undone` says that the request surely had no effect."""

    def __init__(
        self,
        trouble: Trouble,
        *,
        status: int | None = None,
        passing: bool = False,
        undone: bool = False,
        after: float | None = None,
    ) -> None:
        super().__init__(trouble.value[0], status=status, passing=passing, after=after)
        self.trouble = trouble
        self.undone = undone


def problem_of_status(status: int, *, after: float | None = None) -> TargetProblem:
    """The problem that an HTTP status tells of."""
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
        trouble, status=status, passing=trouble is Trouble.BUSY, undone=status in (423, 429, 503), after=after
    )


def persist(shown: str, timeout: float, attempt: Callable[[float], T], *, repeatable: bool = True) -> T:
    """What `attempt` gives, tried again while that can help; it is called with the seconds it may take.

    All attempts together take `timeout` seconds at most. What is not `repeatable` is tried again only where the
    attempt before surely had no effect.
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
                # The last attempt had little time left; the one before it knows better what is wrong.
                before.passing = False
                raise before from None
            before = problem
            problem.passing &= repeatable or problem.undone
            raise

    patience = Patience(attempts=_ATTEMPTS, seconds=timeout, first=_FIRST_PAUSE, longest=timeout)
    try:
        return persevere(bounded, patience)
    except TargetProblem as problem:
        answered = f" (it answered {problem.status})" if problem.status else ""
        said, remedy = problem.trouble.value
        # Without the cause: what libraries say of a request may hold more than is to be shown.
        raise NetworkError(f"{shown} {said}{answered}.", remedy=remedy) from None


def too_large(shown: str, name: str, limit: int) -> NetworkError:
    """The refusal of an object that has more bytes than were asked for."""
    return NetworkError(
        f"{name} in {shown} has more than {limit:,} bytes, which nothing of Cortex has there.",
        remedy="Remove it from there if it is not yours; it may have been put there to do harm.",
    )
