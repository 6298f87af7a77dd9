"""What all families of tools have in common: how they answer, and what they work on."""

from __future__ import annotations

from collections.abc import Sized
from datetime import datetime
from functools import cache
from typing import TYPE_CHECKING, Any, Self, TypeVar

from pydantic import BaseModel, ConfigDict

from ....core.clock import iso
from ....core.errors import InvalidInput
from ....core.memory.capture.capture import Progress

if TYPE_CHECKING:
    from ....app import Cortex

__all__ = ["Answer", "FamilyTools", "Progress", "require_argument"]

_T = TypeVar("_T")


class FamilyTools:
    """The tools of a family over one opened Cortex.

    A function that takes `progress` may work long: clients get its reports, and can cancel it between two of them.
    """

    def __init__(self, cortex: Cortex) -> None:
        self._cortex = cortex


def require_argument(value: _T | None, field: str) -> _T:
    """An argument that only some actions of a tool need."""
    if value is None:
        raise InvalidInput(f"{field} is missing.", remedy="This action needs it.", field=field)
    return value


class Answer(BaseModel):
    """A field that a call does not fill is left out of the answer, never sent as null."""

    model_config = ConfigDict(extra="forbid")

    @classmethod
    def from_record(cls, record: object, **values: Any) -> Self:
        """Copy the fields that the record has under the same name; `values` replace or add to them.

        Times are written in ISO form. An empty value of an optional field is left out.
        """
        for name, optional in _fields(cls):
            if name in values or (value := getattr(record, name, values)) is values:
                continue
            if isinstance(value, datetime):
                value = iso(value)
            elif optional and not value and isinstance(value, Sized):
                continue
            values[name] = value
        return cls(**values)

    def payload(self) -> dict[str, Any]:
        """What goes over the wire."""
        return self.model_dump(mode="json", exclude_none=True, by_alias=True)


@cache
def _fields(kind: type[Answer]) -> tuple[tuple[str, bool], ...]:
    """The fields of a model, each with whether it is optional. Cached, because answers are built for every call."""
    return tuple((name, not field.is_required()) for name, field in kind.model_fields.items())
