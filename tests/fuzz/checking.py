"""One example against one target: which errors it may end with, and how long it may take."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from fuzz.targets import Target

__all__ = ["Failure", "allowed_seconds", "check"]

# Seconds of the processor for any example, and for each of its bytes: 2 s for 100 KB.
_BASE = 0.5
_A_BYTE = 15e-6
# Beyond this an example is broken off; it is far above what it may take, since a machine can be busy.
_PATIENCE = 20


class Failure(Exception):
    """What is wrong with an example; `kind` is the same for examples with the same cause, as far as one can tell."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


def allowed_seconds(data: bytes) -> float:
    return _BASE + _A_BYTE * len(data)


def check(target: Target, data: bytes) -> str:
    """Run an example; how it ended, for examples that end in a new way. Raises `Failure`."""
    began = time.process_time()
    try:
        with _broken_off():
            target.read(data)
        ended = "ok"
    except target.documented as error:
        ended = f"{type(error).__name__} {str(error)[:24]}"
    except _TooLong:
        raise Failure("slow", f"it did not end within {_PATIENCE} s") from None
    except Exception as error:
        trace = error.__traceback__
        while trace and trace.tb_next:
            trace = trace.tb_next
        place = trace.tb_frame.f_code.co_name if trace else ""
        raise Failure(f"{type(error).__name__}-{place.strip('_<>')}", f"{type(error).__name__}: {error}") from error
    taken = time.process_time() - began
    if taken > allowed_seconds(data):
        raise Failure("slow", f"{taken:.2f} s for {len(data)} bytes, {allowed_seconds(data):.2f} s are allowed")
    return ended


class _TooLong(BaseException):
    pass


@contextmanager
def _broken_off() -> Iterator[None]:
    def stop(number: int, frame: FrameType | None) -> None:
        raise _TooLong

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, _PATIENCE)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
