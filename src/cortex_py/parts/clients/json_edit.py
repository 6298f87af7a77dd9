"""Edits of JSON files that people keep: a change touches nothing but its own lines, and comments stay.

Comments and trailing commas, which some clients allow, are read; what is written has neither.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

__all__ = ["add_item", "put_source", "read_json", "remove", "remove_empty", "set_member", "source_of"]

_Steps = Sequence[str | int]

_BLANK = re.compile(r"(?:\s+|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
_SCALAR = re.compile(r"[^\s,\]}/]+")
_GAP = re.compile(r"//[^\n]*|/\*.*?\*/|,", re.DOTALL)
_LINE_COMMENT = re.compile(r"[ \t]*//[^\r\n]*")
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
    try:
        # Most have no comments, and this reader is a hundred times as fast.
        return json.loads(text)
    except RecursionError as error:
        raise ValueError("it is nested too deep") from error
    except ValueError:
        pass
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


def _find(node: _Node, path: _Steps) -> tuple[_Node, _Steps]:
    """The deepest existing value on a path, and the rest of the path."""
    while path and (number := _number(node, path[0])) is not None:
        node, path = node.values[number], path[1:]
    return node, path


def _number(node: _Node, step: str | int) -> int | None:
    """Which member of a container a step names; None if it has none. Of two with one key, readers take the last."""
    if isinstance(step, int):
        return step if node.keys is None and step < len(node.values) else None
    if node.keys is None or step not in node.keys:
        return None
    return len(node.keys) - 1 - node.keys[::-1].index(step)


def set_member(text: str, path: Sequence[str], value: object) -> str:
    """The text with a value at a path of keys; objects that are missing are made."""
    if not text.strip():
        text = "{}\n"
    node, rest = _find(_parse(text), path)
    if not rest:
        written = _write(text, value, _indent_of(text, node.start), _unit(text))
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


def source_of(text: str, path: Sequence[str]) -> str | None:
    """A value as it is written in the text; None if there is none."""
    if not text.strip():
        return None
    node, rest = _find(_parse(text), path)
    return None if rest else text[node.start : node.end]


def put_source(text: str, path: Sequence[str], source: str) -> str:
    """The text with a value as `source_of` gave it."""
    text = set_member(text, path, read_json(source))
    node, _ = _find(_parse(text), path)
    return text[: node.start] + source + text[node.end :]


def remove(text: str, path: _Steps) -> str:
    """The text without the member or item at a path. A number in a path counts the items of an array."""
    parent, rest = _find(_parse(text), path[:-1])
    number = None if rest else _number(parent, path[-1])
    return text if number is None else _cut(text, parent, number)


def remove_empty(text: str, path: Sequence[str]) -> str:
    """The text without the object or array at a path if there is nothing in it, not even a comment."""
    node, rest = _find(_parse(text), path)
    is_empty = not rest and node.scalar is _EMPTY and not node.values
    return remove(text, path) if is_empty and not text[node.start + 1 : node.end - 1].strip() else text


def _insert(text: str, node: _Node, head: str, value: object) -> str:
    """One more member at the end of a container, in lines of its own."""
    unit = _unit(text)
    outer = _indent_of(text, node.start)
    line_end = _line_end(text)
    if node.values:
        last = node.values[-1].end
        same_line = "\n" not in text[node.start : node.begins[0]]
        inner = outer + unit if same_line else _indent_of(text, node.begins[-1])
        written = f"{head}{_write(text, value, inner, unit)}"
        # A comment behind the last member stays there.
        comment = _LINE_COMMENT.match(text, last)
        place = comment.end() if comment else last
        between = f"{line_end}{inner}" if comment or not same_line else " "
        return f"{text[:last]},{text[last:place]}{between}{written}{text[place:]}"
    inner = outer + unit
    before = text[node.start + 1 : node.end - 1].rstrip()
    body = f"{before}{line_end}{inner}{head}{_write(text, value, inner, unit)}{line_end}{outer}"
    return text[: node.start + 1] + body + text[node.end - 1 :]


def _cut(text: str, node: _Node, number: int) -> str:
    """The text without one member, its comma and its line; comments beside it stay."""
    is_last = number == len(node.values) - 1
    start = node.values[number - 1].end if number else node.start + 1
    end = node.end - 1 if is_last else node.begins[number + 1]
    before, after = text[start : node.begins[number]], text[node.values[number].end : end]
    if number and "/" not in before:
        # The comma between them goes; one behind it stays, as it was behind the last one before.
        return text[:start] + after + text[end:]
    if "/" not in before + after:
        return text[:start] + ("" if is_last else before) + text[end:]
    commas = [found.start() for found in _GAP.finditer(before + after) if found[0] == ","]
    if commas and commas[-1] < len(before):
        before = before[: commas[-1]] + before[commas[-1] + 1 :]
    elif commas:
        comma = commas[-1] - len(before)
        after = after[:comma] + after[comma + 1 :]
    if after.lstrip(" \t\r").startswith("\n"):
        kept = before.rstrip(" \t")
        before = kept.removesuffix("\n").removesuffix("\r") if kept.endswith("\n") else before
    return text[:start] + before + after + text[end:]


def _write(text: str, value: object, indent: str, unit: str) -> str:
    return json.dumps(value, indent=unit, ensure_ascii=False).replace("\n", f"{_line_end(text)}{indent}")


def _line_end(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _indent_of(text: str, place: int) -> str:
    """The blanks that begin the line of a place."""
    line = text[text.rfind("\n", 0, place) + 1 : place]
    return line[: len(line) - len(line.lstrip())]


def _unit(text: str) -> str:
    """One step of indentation in a text."""
    found = re.search(r"\n([ \t]+)\S", text)
    return found[1] if found else "  "
