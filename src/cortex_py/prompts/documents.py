"""A rendered template as a document for programs: JSON or XML of nested values, always well-formed.

In XML a field is an element of its name, or `<entry key="…">` where its name can be none; the items of `memories` are
`<memory>` elements, those of other lists `<item>`. Parsing gives the text of every value back exactly, but for
characters that XML cannot hold: they become U+FFFD.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from datetime import datetime
from xml.etree import ElementTree

from ..errors import LimitExceeded
from ..records import JsonValue
from .names import singular
from .printing import DEPTH_MOST, moment_text, number_text

__all__ = ["VALUES_MOST", "as_json", "as_xml"]

VALUES_MOST = 1_000_000

# Names that begin with "xml" belong to the standard.
_ELEMENT = re.compile(r"(?!xml)[A-Za-z_][A-Za-z0-9._-]*", re.IGNORECASE | re.ASCII)
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_SURROGATE = re.compile("[\ud800-\udfff]")
_REPLACEMENT = "\ufffd"


def as_json(fields: Mapping[str, object]) -> str:
    """An object with these fields."""
    return json.dumps(_Plain().of(fields, 0), ensure_ascii=False, indent=2, allow_nan=False)


def as_xml(root: str, fields: Mapping[str, object]) -> str:
    """A document whose root element holds these fields."""
    top = _element(root)
    _fill(top, _Plain().of(fields, 0), root)
    ElementTree.indent(top)
    text = ElementTree.tostring(top, encoding="unicode")
    # Parsers read a bare carriage return as a line feed.
    return '<?xml version="1.0"?>\n' + text.replace("\r", "&#13;")


class _Plain:
    """Brings values into the form that JSON knows, and counts them: a list that holds itself has no end."""

    def __init__(self) -> None:
        self._count = 0

    def of(self, value: object, depth: int) -> JsonValue:
        self._count += 1
        if depth > DEPTH_MOST:
            raise _too_much(f"be nested deeper than {DEPTH_MOST} levels")
        if self._count > VALUES_MOST:
            raise _too_much(f"hold more than {VALUES_MOST:,} values")
        if isinstance(value, Mapping):
            return {_text(key): self.of(item, depth + 1) for key, item in value.items()}
        if isinstance(value, (list, tuple)):
            return [self.of(item, depth + 1) for item in value]
        return _scalar(value)


def _too_much(what: str) -> LimitExceeded:
    return LimitExceeded(f"The document would {what}.", remedy="Give fewer values, or render as Markdown.")


def _scalar(value: object) -> JsonValue:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, int):
        # Refuses what has too many digits to be written.
        number_text(value)
        return value
    return moment_text(value) if isinstance(value, datetime) else _text(value)


def _text(value: object) -> str:
    return _SURROGATE.sub(_REPLACEMENT, str(value))


def _fill(element: ElementTree.Element, value: JsonValue, name: str) -> None:
    if isinstance(value, dict):
        for key, item in value.items():
            child = _element(key)
            element.append(child)
            _fill(child, item, key)
    elif isinstance(value, list):
        tag = _item_tag(name)
        for item in value:
            _fill(ElementTree.SubElement(element, tag), item, tag)
    elif isinstance(value, str):
        element.text = _NOT_XML.sub(_REPLACEMENT, value)
    elif value is not None:
        element.text = number_text(value)


def _element(name: str) -> ElementTree.Element:
    if _ELEMENT.fullmatch(name):
        return ElementTree.Element(name)
    return ElementTree.Element("entry", {"key": _NOT_XML.sub(_REPLACEMENT, name)})


def _item_tag(name: str) -> str:
    one = singular(name)
    return one if one and _ELEMENT.fullmatch(one) else "item"
