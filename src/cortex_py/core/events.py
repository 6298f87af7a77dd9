"""Events of one process: a part publishes a change, and the parts that depend on it have subscribed.

Handlers run at once, in the publishing thread, in the order of their subscription. An error in a handler reaches the
publisher. `session.py` makes the subscriptions of a project, `app.py` those of the whole store.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

__all__ = ["BranchesChanged", "Events", "MemoriesChanged", "TenantsChanged"]

_Event = TypeVar("_Event")


@dataclass(frozen=True, slots=True)
class MemoriesChanged:
    """Memories of these branches were written, changed or removed, and the change is committed."""

    branch_ids: frozenset[str]


@dataclass(frozen=True, slots=True)
class BranchesChanged:
    """Git renamed, merged or deleted a git branch, which changed these branches of the project."""

    branch_ids: frozenset[str]


@dataclass(frozen=True, slots=True)
class TenantsChanged:
    """A project was assigned to an organisation, or restricted."""


class Events:
    """The subscriptions of one project, or of one store."""

    def __init__(self) -> None:
        self._handlers: dict[type, list[Callable[[Any], None]]] = {}

    def subscribe(self, event: type[_Event], handler: Callable[[_Event], None]) -> None:
        self._handlers.setdefault(event, []).append(handler)

    def publish(self, event: object) -> None:
        for handler in self._handlers.get(type(event), ()):
            handler(event)
