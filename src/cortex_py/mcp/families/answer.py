"""What every answer of a tool has in common."""

from __future__ import annotations

from collections.abc import Sized
from datetime import datetime
from functools import cache
from typing import Any, Self

from pydantic import BaseModel, ConfigDict

from ...clock import iso

__all__ = ["Answer"]


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
