"""Renders a template in one walk through its tree, within limits of steps, time and size.

Values are printed and never parsed, so braces in them stay text. A missing variable prints nothing, and is listed in
the result.
"""

from __future__ import annotations

import json
import math
import re
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from xml.etree import ElementTree

from ....core.errors import LimitExceeded
from ....core.records import JsonValue
from .expressions import Path, TemplateExpression
from .filters import apply
from .placeholders import singular
from .printing import DEPTH_MOST, RenderBudget, moment_text, number_text, printed
from .syntax import Choice, Each, Node, Output, Template, Text

__all__ = ["ITEMS_MOST", "OUTPUT_LONGEST", "RenderResult", "as_json", "as_xml", "render"]

# -- documents for programs: JSON or XML of nested values, always well-formed
# In XML a field is an element of its name, or `<entry key="…">` if its name is not valid; the items of `memories` are
# `<memory>` elements, those of other lists `<item>`. Parsing returns the text of every value exactly, except that
# characters outside XML become U+FFFD.

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
    """Converts values to those of JSON, and counts them: a list that contains itself has no end."""

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
        # Refuses numbers with too many digits.
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


OUTPUT_LONGEST = 1_000_000
ITEMS_MOST = 10_000


@dataclass(frozen=True, slots=True)
class RenderResult:
    """The text, and the names of missing variables in order."""

    text: str
    missing: tuple[str, ...]


def render(
    template: Template,
    values: Mapping[str, object],
    *,
    seconds: float = 2.0,
    monotonic: Callable[[], float] = time.monotonic,
) -> RenderResult:
    """Render a template. Raises `LimitExceeded` if it takes too much work, time or space."""
    writer = _Writer(values, RenderBudget(seconds, monotonic))
    writer.write(template.nodes, None)
    return RenderResult("".join(writer.pieces), writer.missing())


@dataclass(frozen=True, slots=True)
class _Scope:
    """One item of a list block, and the scope around the block."""

    item: object
    names: tuple[str, ...]
    index: int
    count: int
    key: object
    outer: _Scope | None

    def data(self, word: str) -> object:
        match word:
            case "@index":
                return self.index
            case "@number":
                return self.index + 1
            case "@first":
                return self.index == 0
            case "@last":
                return self.index == self.count - 1
            case _:
                return self.key


@dataclass(frozen=True, slots=True)
class _Found:
    """The value of a path; not `there` if its first name does not exist."""

    value: object
    there: bool = True


class _Writer:
    def __init__(self, values: Mapping[str, object], budget: RenderBudget) -> None:
        self.pieces: list[str] = []
        self._values = values
        self._budget = budget
        self._size = 0
        # Names without a value, and whether they can only be variables.
        self._nothing: dict[str, bool] = {}
        self._fields: set[str] = set()

    def missing(self) -> tuple[str, ...]:
        """The missing variables. A name in a list block that some item has as a field is not one."""
        return tuple(name for name, surely in self._nothing.items() if surely or name not in self._fields)

    def write(self, nodes: tuple[Node, ...], scope: _Scope | None) -> None:
        for node in nodes:
            self._budget.spend()
            match node:
                case Text(text):
                    self._put(text)
                case Output(expression):
                    self._put(printed(self._value(expression, scope), self._budget))
                case Each():
                    self._each(node, scope)
                case Choice():
                    self._choose(node, scope)

    def _put(self, text: str) -> None:
        self._size += len(text)
        if self._size > OUTPUT_LONGEST:
            raise LimitExceeded(
                f"The filled-in template would have more than {OUTPUT_LONGEST:,} characters.",
                remedy="Give it shorter lists, or cut values with `truncate`.",
            )
        self.pieces.append(text)

    def _each(self, node: Each, scope: _Scope | None) -> None:
        over = self._find(node.path, scope).value
        if not isinstance(over, (list, tuple, Mapping)) or not over:
            self.write(node.otherwise, scope)
            return
        if len(over) > ITEMS_MOST:
            raise LimitExceeded(
                f"`#each` would go through {len(over):,} items; {ITEMS_MOST:,} are allowed.",
                remedy="Give it a shorter list.",
            )
        pairs: Iterable[tuple[object, object]] = (
            over.items() if isinstance(over, Mapping) else ((None, item) for item in over)
        )
        for index, (key, item) in enumerate(pairs):
            self._budget.spend()
            self.write(node.body, _Scope(item, node.names, index, len(over), key, scope))

    def _choose(self, node: Choice, scope: _Scope | None) -> None:
        for branch in node.branches:
            self._budget.spend()
            if bool(self._find(branch.path, scope).value) != branch.negated:
                self.write(branch.body, scope)
                return
        self.write(node.otherwise, scope)

    # -- values --------------------------------------------------------------------------------------

    def _value(self, expression: TemplateExpression, scope: _Scope | None) -> object:
        found = self._find(expression.path, scope)
        if not found.there and not expression.optional:
            name = expression.path.root
            self._nothing[name] = self._nothing.get(name, False) or scope is None
        value = found.value
        for call in expression.filters:
            value = apply(call.name, value, call.argument, self._budget)
        return value

    def _find(self, path: Path, scope: _Scope | None) -> _Found:
        for _ in range(path.ups):
            scope = scope.outer if scope else None
        if path.root == "this":
            found = _Found(scope.item if scope else None)
        elif path.root.startswith("@"):
            found = _Found(scope.data(path.root) if scope else None)
        else:
            found = self._look_up(path.root, scope)
        value = found.value
        for field in path.fields:
            value = _field(value, field)
        return _Found(value, found.there)

    def _look_up(self, name: str, scope: _Scope | None) -> _Found:
        while scope:
            if name in scope.names:
                return _Found(scope.item)
            if isinstance(scope.item, Mapping) and name in scope.item:
                self._fields.add(name)
                return _Found(scope.item[name])
            scope = scope.outer
        return _Found(self._values[name]) if name in self._values else _Found(None, there=False)


def _field(value: object, field: str) -> object:
    if isinstance(value, Mapping):
        return value.get(field)
    if isinstance(value, (list, tuple)) and field.isdecimal():
        return value[int(field)] if int(field) < len(value) else None
    return None
