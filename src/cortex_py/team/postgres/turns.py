"""Whose turn it is among the threads of a process that write: one per space, or one for the whole store."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from ...core.jobs import renew_in_forks

__all__ = ["WriterTurns"]


class WriterTurns:
    def __init__(self) -> None:
        self.renew()
        renew_in_forks(self)

    def renew(self) -> None:
        self._changed = threading.Condition()
        self._held: set[str] = set()
        self._alone = False
        # A writer of the whole store comes next: others would keep it waiting for ever.
        self.asked = 0
        # How long writers waited in all, here and for other processes.
        self.waited = 0.0

    def note(self, seconds: float) -> None:
        with self._changed:
            self.waited += seconds

    @contextmanager
    def take(self, spaces: frozenset[str], seconds: float) -> Iterator[bool]:
        """Wait until no other thread writes to any of the spaces; without any, until none writes at all.

        False if that takes too long.
        """
        with self._changed:
            if spaces:
                taken = self._changed.wait_for(
                    lambda: not (self._alone or self.asked or spaces & self._held), timeout=seconds
                )
                if taken:
                    self._held |= spaces
            else:
                self.asked += 1
                try:
                    taken = self._changed.wait_for(lambda: not (self._alone or self._held), timeout=seconds)
                finally:
                    self.asked -= 1
                    self._changed.notify_all()
                self._alone = self._alone or taken
        try:
            yield taken
        finally:
            if taken:
                with self._changed:
                    if spaces:
                        self._held -= spaces
                    else:
                        self._alone = False
                    self._changed.notify_all()
