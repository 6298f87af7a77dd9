"""Which locks of Cortex a thread holds, for tests of what must not be done under one."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Any

import filelock
import pytest

__all__ = ["watch_locks"]


class _Held(threading.local):
    def __init__(self) -> None:
        self.names: list[str] = []


class _Watched:
    """A lock that notes which thread holds it."""

    def __init__(self, lock: Any, name: str, held: _Held) -> None:
        self._lock, self._name, self._held = lock, name, held

    def acquire(self, *arguments: Any, **options: Any) -> bool:
        done: bool = self._lock.acquire(*arguments, **options)
        if done:
            self._held.names.append(self._name)
        return done

    def release(self) -> None:
        self._held.names.remove(self._name)
        self._lock.release()

    def locked(self) -> bool:
        return bool(self._lock.locked())

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()


def watch_locks(monkeypatch: pytest.MonkeyPatch) -> Callable[[], list[str]]:
    """Watch the locks that Cortex makes from now on; returns what tells the ones that the calling thread holds."""
    held = _Held()

    def watched(make: Callable[[], Any]) -> Callable[[], Any]:
        def made() -> Any:
            maker = sys._getframe(1).f_globals.get("__name__", "")
            return _Watched(make(), maker, held) if maker.startswith("cortex_py") else make()

        return made

    plain_acquire, plain_release = filelock.BaseFileLock.acquire, filelock.BaseFileLock.release

    def acquire(self: Any, *arguments: Any, **options: Any) -> Any:
        done = plain_acquire(self, *arguments, **options)
        held.names.append(str(self.lock_file))
        return done

    def release(self: Any, *arguments: Any, **options: Any) -> None:
        if str(self.lock_file) in held.names:
            held.names.remove(str(self.lock_file))
        plain_release(self, *arguments, **options)

    monkeypatch.setattr(threading, "Lock", watched(threading.Lock))
    monkeypatch.setattr(threading, "RLock", watched(threading.RLock))
    monkeypatch.setattr(filelock.BaseFileLock, "acquire", acquire)
    monkeypatch.setattr(filelock.BaseFileLock, "release", release)
    return lambda: list(held.names)
