"""Edits of JSON files that people keep: a change touches nothing but its own lines, and comments stay.

Comments and trailing commas, which some clients allow, are read; what is written has neither.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

__all__ = ["add_item", "read_json", "remove_items", "remove_member", "set_member"]

_BLANK = re.compile(r"(?:\s+|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
_SCALAR = re.compile(r"[^\s,\]}/]+")
_DEEPEST = 100


@dataclass(slots=True)
class _Node:
    """A value with its place in the text. An object has keys, an array none."""

    start: int
    end: int = 0
    keys: list[str] | None = None
    # Where each member begins: its key in an object, its value in an array.
    begins: list[int] = field(default_factory=list)
    values: list[_Node] = field(default_factory=list)
    scalar: Any = None

    @property
    def is_container(self) -> bool:
        return bool(self.values) or self.scalar is _EMPTY

    def plain(self) -> Any:
        if self.keys is not None:
            return dict(zip(self.keys, (one.plain() for one in self.values), strict=True))
        return [one.plain() for one in self.values] if self.is_container else self.scalar


_EMPTY = object()


def read_json(text: str) -> Any:
    """The value of a JSON text with or without comments; ValueError if it is none. An empty text is an object."""
    return _parse(text).plain() if text.strip() else {}


def _parse(text: str) -> _Node:
    node = _value(text, _skip(text, 1 if text.startswith("\ufeff") else 0), 0)
    if _skip(text, node.end) != len(text):
        raise ValueError("there is more than one value")
    return node


def _skip(text: str, place: int) -> int:
    found = _BLANK.match(text, place)
    return found.end() if found else place


def _value(text: str, place: int, depth: int) -> _Node:
    if depth > _DEEPEST:
        raise ValueError("it is nested too deep")
    opening = text[place : place + 1]
    if opening in ("{", "["):
        return _container(text, place, depth, "}" if opening == "{" else "]")
    found = (_STRING if opening == '"' else _SCALAR).match(text, place)
    if not found:
        raise ValueError(f"there is no value at character {place}")
    return _Node(place, found.end(), scalar=json.loads(found[0]))


def _container(text: str, place: int, depth: int, closing: str) -> _Node:
    node = _Node(place, scalar=_EMPTY, keys=[] if closing == "}" else None)
    place = _skip(text, place + 1)
    while text[place : place + 1] != closing:
        node.begins.append(place)
        if node.keys is not None:
            key = _STRING.match(text, place)
            place = _skip(text, key.end()) if key else place
            if not key or text[place : place + 1] != ":":
                raise ValueError(f"there is no key at character {place}")
            node.keys.append(json.loads(key[0]))
            place = _skip(text, place + 1)
        value = _value(text, place, depth + 1)
        node.values.append(value)
        place = _skip(text, value.end)
        if text[place : place + 1] == ",":
            place = _skip(text, place + 1)
        elif text[place : place + 1] != closing:
            raise ValueError(f"a comma is missing at character {place}")
    node.end = place + 1
    return node


def _find(node: _Node, path: Sequence[str]) -> tuple[_Node, Sequence[str]]:
    """The deepest existing object or value on a path, and the rest of the path."""
    while path and node.keys is not None and path[0] in node.keys:
        node, path = node.values[node.keys.index(path[0])], path[1:]
    return node, path


def set_member(text: str, path: Sequence[str], value: object) -> str:
    """The text with a value at a path of keys; objects that are missing are made."""
    if not text.strip():
        text = "{}\n"
    node, rest = _find(_parse(text), path)
    if not rest:
        written = _write(value, _indent_of(text, node.start), _unit(text))
        return text if node.plain() == value else text[: node.start] + written + text[node.end :]
    if node.keys is None:
        raise ValueError(f"{'.'.join(path[: len(path) - len(rest)]) or 'the file'} is not an object")
    for key in reversed(rest[1:]):
        value = {key: value}
    return _insert(text, node, f"{json.dumps(rest[0], ensure_ascii=False)}: ", value)


def add_item(text: str, path: Sequence[str], item: object) -> str:
    """The text with one more item at the end of the array at a path, which is made if it is missing."""
    if not text.strip():
        text = "{}\n"
    node, rest = _find(_parse(text), path)
    if rest:
        return set_member(text, path, [item])
    if node.keys is not None or not node.is_container:
        raise ValueError(f"{'.'.join(path)} is not a list")
    return text if item in node.plain() else _insert(text, node, "", item)


def remove_member(text: str, path: Sequence[str], *, with_empty: int = 0) -> str:
    """The text without the member at a path, and without up to so many objects around it that become empty."""
    parent, rest = _find(_parse(text), path[:-1])
    if rest or parent.keys is None or path[-1] not in parent.keys:
        return text
    text = _cut(text, parent, parent.keys.index(path[-1]))
    left, _ = _find(_parse(text), path[:-1])
    if with_empty and len(path) > 1 and not left.values:
        return remove_member(text, path[:-1], with_empty=with_empty - 1)
    return text


def remove_items(text: str, path: Sequence[str], gone: Callable[[Any], bool], *, with_empty: int = 0) -> str:
    """The text without the items of an array that are `gone`; an array that becomes empty goes too."""
    node, rest = _find(_parse(text), path)
    if rest or node.keys is not None or not node.is_container:
        return text
    for number in reversed([number for number, one in enumerate(node.values) if gone(one.plain())]):
        text = _cut(text, node, number)
        node, _ = _find(_parse(text), path)
    return text if node.values else remove_member(text, path, with_empty=with_empty)


def _insert(text: str, node: _Node, head: str, value: object) -> str:
    """One more member at the end of a container, in lines of its own."""
    unit = _unit(text)
    outer = _indent_of(text, node.start)
    if node.values:
        last = node.values[-1]
        same_line = "\n" not in text[node.start : node.begins[0]]
        inner = outer + unit if same_line else _indent_of(text, node.begins[-1])
        written = f"{head}{_write(value, inner, unit)}"
        between = ", " if same_line else f",\n{inner}"
        return (
            text[: last.end] + between + written + text[last.end :].removeprefix("," if _has_comma(text, last) else "")
        )
    inner = outer + unit
    comments = text[node.start + 1 : node.end - 1].strip()
    before = f"{text[node.start + 1 : node.end - 1].rstrip()}" if comments else ""
    body = f"{before}\n{inner}{head}{_write(value, inner, unit)}\n{outer}"
    return text[: node.start + 1] + body + text[node.end - 1 :]


def _has_comma(text: str, last: _Node) -> bool:
    return text[last.end : last.end + 1] == ","


def _cut(text: str, node: _Node, number: int) -> str:
    """The text without one member, its comma and its line."""
    value = node.values[number]
    if number > 0:
        # From the end of the one before, with the comma between them; comments of its own lines go with it.
        return text[: node.values[number - 1].end] + text[value.end :]
    if len(node.values) > 1:
        return text[: node.begins[0]] + text[node.begins[1] :]
    inside = text[node.start + 1 : node.begins[0]].strip() + text[value.end : node.end - 1].strip(" \t\r\n,")
    return text[: node.start + 1] + (f"{inside}\n" if inside else "") + text[node.end - 1 :]


def _write(value: object, indent: str, unit: str) -> str:
    return json.dumps(value, indent=unit, ensure_ascii=False).replace("\n", f"\n{indent}")


def _indent_of(text: str, place: int) -> str:
    """The blanks that begin the line of a place."""
    line = text[text.rfind("\n", 0, place) + 1 : place]
    return line[: len(line) - len(line.lstrip())]


def _unit(text: str) -> str:
    """One step of indentation in a text."""
    found = re.search(r"\n([ \t]+)\S", text)
    return found[1] if found else "  "
