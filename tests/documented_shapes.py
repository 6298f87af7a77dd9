"""Whether an answer has the shape that a published document shows."""

from __future__ import annotations

from typing import Any

__all__ = ["differences"]

# Objects whose keys are data, not fields.
TALLIES = {"statistics.namespace_counts"}


def differences(documented: Any, answered: Any, place: str = "") -> list[str]:
    """Where an answer has not the documented shape: a field is missing, or of another type, at any depth."""
    if _kind(documented) != _kind(answered) and (_kind(documented), _kind(answered)) != ("float", "int"):
        return [f"{place or 'answer'}: {_kind(answered)} instead of {_kind(documented)}"]
    if documented == []:
        # The document does not say what would be in it.
        return []
    if isinstance(documented, list):
        shapes = [(f"{place}[{number}]", documented[0], item) for number, item in enumerate(answered)]
        absent = [] if answered else [f"{place}: empty"]
    elif place in TALLIES:
        shapes = [(f"{place}.{key}", next(iter(documented.values())), item) for key, item in answered.items()]
        absent = [] if answered else [f"{place}: empty"]
    elif isinstance(documented, dict):
        inside = f"{place}." if place else ""
        shapes = [(inside + key, item, answered[key]) for key, item in documented.items() if key in answered]
        absent = [f"{inside}{key}: missing" for key in documented if key not in answered]
    else:
        return []
    return absent + [fault for where, shape, item in shapes for fault in differences(shape, item, where)]


def _kind(value: Any) -> str:
    return type(value).__name__
