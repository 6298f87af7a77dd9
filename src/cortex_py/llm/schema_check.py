"""From what a model wrote to an object that keeps to its schema, or to what is wrong with it.

What is wrong is told by place and rule, without the words that the model wrote: they may be anything.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NoReturn

from ..errors import InvalidInput
from .provider import Schema

if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError

__all__ = ["Invalid", "SchemaCheck"]

_FENCED = re.compile(r"```(?:json)?[ \t]*\n(.*?)```", re.DOTALL | re.IGNORECASE)
# A wordy model writes a few braces before its answer, not thousands.
_STARTS = 200
_FAULTS = 5
_TOLD_LENGTH = 160
# Rules that tell more than place and rule, in words that hold names only.
_NAMING = ("required", "additionalProperties")


class Invalid(ValueError):
    """An answer that is not what was asked for; the message says why."""


class SchemaCheck:
    """Reads answers to one schema. The validator is loaded here, so make one only when it is needed."""

    def __init__(self, schema: Schema) -> None:
        from jsonschema import Draft202012Validator
        from jsonschema.exceptions import SchemaError
        from referencing import Registry

        try:
            Draft202012Validator.check_schema(schema)
        except SchemaError as error:
            raise InvalidInput(f"This is not a JSON schema: {error.message}.", field="schema") from error
        # A registry of its own, because the usual one would fetch what a schema refers to.
        self._validator = Draft202012Validator(schema, registry=Registry())

    def read(self, text: str) -> dict[str, Any]:
        """The object in an answer; Invalid where there is none, or one that breaks the schema."""
        from referencing.exceptions import Unresolvable

        value = _object(text)
        try:
            # Half of a surrogate pair can be written in JSON and stored nowhere.
            json.dumps(value, ensure_ascii=False).encode()
            faults = sorted(self._validator.iter_errors(value), key=lambda fault: list(map(str, fault.absolute_path)))
        except UnicodeEncodeError:
            raise Invalid("It holds characters that are not whole.") from None
        except RecursionError:
            raise Invalid("It is nested too deeply.") from None
        except Unresolvable as error:
            raise InvalidInput("The schema refers to another one.", field="schema") from error
        if faults:
            raise Invalid(" ".join(_told(fault) for fault in faults[:_FAULTS]))
        return value


def _told(fault: ValidationError) -> str:
    rule = str(fault.validator)
    said = fault.message if rule in _NAMING else f"{rule} must be {json.dumps(fault.validator_value)}"
    return f"At {fault.json_path[:_TOLD_LENGTH]}: {said[:_TOLD_LENGTH]}."


def _object(text: str) -> dict[str, Any]:
    """The object that an answer is or, between other words, holds."""
    for candidate in (text, *reversed(_FENCED.findall(text))):
        try:
            value = _DECODER.decode(candidate.strip())
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict):
            return value
        raise Invalid("It is JSON, but not an object.")
    # The largest, because models think aloud in small ones.
    _, found = max(_objects(text), key=lambda one: one[0], default=(0, None))
    if found is None:
        raise Invalid("It holds no JSON object.")
    return found


def _objects(text: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """Every object that begins at a brace of its own, with its length."""
    start = text.find("{")
    for _ in range(_STARTS):
        if start < 0:
            return
        try:
            value, end = _DECODER.raw_decode(text, start)
        except (ValueError, RecursionError):
            end = start + 1
        else:
            yield end - start, value
        start = text.find("{", end)


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


_DECODER = json.JSONDecoder(parse_constant=_no_number)
