"""Arguments that only some actions of a tool need."""

from __future__ import annotations

from typing import TypeVar

from ...errors import InvalidInput

__all__ = ["needed"]

T = TypeVar("T")


def needed(value: T | None, field: str) -> T:
    if value is None:
        raise InvalidInput(f"{field} is missing.", remedy="This action needs it.", field=field)
    return value
