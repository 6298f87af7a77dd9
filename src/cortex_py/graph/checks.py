"""What callers give for the graph, checked: types of closed lists, numbers in range, properties that can be kept."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from ..errors import InvalidInput
from ..memory.prepare import check_no_secret
from .values import ENTITY_TYPES, RELATIONSHIP_TYPES, EntityType, RelationshipType

__all__ = [
    "check_confidence",
    "check_entities",
    "check_entity_type",
    "check_limit",
    "check_properties",
    "check_relationship_type",
]

_LIMIT_MOST = 1_000
_OFFSET_MOST = 1_000_000
_ENTITIES_MOST = 1_000
_PROPERTY_BYTES = 65_536
# What is nested deeper not every client can read.
_PROPERTY_DEPTH = 32


def check_entity_type(text: str, field: str = "entity_type") -> EntityType:
    """A type by its name, in any case."""
    for known in ENTITY_TYPES:
        if text.strip().casefold() == known.casefold():
            return known
    raise InvalidInput(
        f"Unknown entity type {text[:40]!r}.", remedy=f"Choose one of {', '.join(ENTITY_TYPES)}.", field=field
    )


def check_relationship_type(text: str, field: str = "relationship_type") -> RelationshipType:
    """A type by its name, in any case."""
    for known in RELATIONSHIP_TYPES:
        if text.strip().casefold() == known.casefold():
            return known
    raise InvalidInput(
        f"Unknown relationship type {text[:40]!r}.",
        remedy=f"Choose one of {', '.join(RELATIONSHIP_TYPES)}.",
        field=field,
    )


def check_confidence(value: float, field: str = "min_confidence") -> None:
    if not 0.0 <= value <= 1.0:
        raise InvalidInput(f"The confidence {value} is out of range.", remedy="Give 0.0 to 1.0.", field=field)


def check_limit(limit: int, offset: int = 0) -> None:
    if not 1 <= limit <= _LIMIT_MOST:
        raise InvalidInput(f"The limit {limit} is out of range.", remedy=f"Give 1 to {_LIMIT_MOST}.", field="limit")
    if not 0 <= offset <= _OFFSET_MOST:
        raise InvalidInput(f"The offset {offset} is out of range.", remedy=f"Give 0 to {_OFFSET_MOST}.", field="offset")


def check_entities(refs: Sequence[str]) -> None:
    """Enough entities to make something of, and not too many."""
    if len(dict.fromkeys(refs)) < 2:
        raise InvalidInput("There are fewer than two entities.", remedy="Give two or more.", field="entity_ids")
    if len(refs) > _ENTITIES_MOST:
        raise InvalidInput(f"There are more than {_ENTITIES_MOST:,} entities.", field="entity_ids")


def check_properties(properties: Mapping[str, object] | None) -> dict[str, object]:
    """Properties as JSON holds them, of bounded size: keys are texts, and a tuple is a list."""
    try:
        text = json.dumps(dict(properties or {}), ensure_ascii=False, allow_nan=False)
        size = len(text.encode())
    except (TypeError, ValueError, RecursionError):
        raise InvalidInput(
            "The properties cannot be kept as JSON.",
            remedy="Give texts, numbers and lists of them.",
            field="properties",
        ) from None
    if size > _PROPERTY_BYTES:
        raise InvalidInput(f"The properties are larger than {_PROPERTY_BYTES:,} bytes.", field="properties")
    kept: dict[str, object] = json.loads(text)
    if _depth(kept) > _PROPERTY_DEPTH:
        raise InvalidInput(f"The properties are nested more than {_PROPERTY_DEPTH} deep.", field="properties")
    check_no_secret(text, "properties")
    return kept


def _depth(value: object) -> int:
    """How many objects and lists stand one in another."""
    depth, inside = 0, [value]
    while inside := [one for one in inside if isinstance(one, dict | list)]:
        depth += 1
        inside = [item for one in inside for item in (one.values() if isinstance(one, dict) else one)]
    return depth
