"""The canonical text of a filter, to check that parsing it gives the same filter again."""

import re
from datetime import UTC, datetime

from cortex_py.core.clock import in_utc
from cortex_py.core.errors import InvalidInput
from cortex_py.core.memory.recall.filters import parse_filter
from cortex_py.core.store.search.filters import Condition, Filter, Value

_NEEDS_QUOTES = re.compile(r'[\s,"]')


def format_filter(filter: Filter) -> str:
    """The canonical text of a filter: parsing it gives the same filter again.

    Raises `InvalidInput` for a filter that the language cannot express, such as two positive
    `namespace` conditions joined by AND.
    """
    text = " ".join(_format_condition(condition) for condition in filter.conditions)
    if parse_filter(text, now=datetime(1970, 1, 1, tzinfo=UTC)).filter != filter:
        raise InvalidInput(f"This filter has no text form; the nearest is {text[:200]!r}.", field="filter")
    return text


def _format_condition(condition: Condition) -> str:
    key = "ns" if condition.key == "namespace" else condition.key
    values = ",".join(_format_value(value) for value in condition.values)
    return f"{'-' if condition.negated else ''}{key}:{values}"


def _format_value(value: Value) -> str:
    if isinstance(value, datetime):
        return in_utc(value).isoformat().replace("+00:00", "Z")
    if value and not _NEEDS_QUOTES.search(value):
        return value
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
