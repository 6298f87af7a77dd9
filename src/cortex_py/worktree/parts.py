"""JSON, TOML and YAML as parts that know their lines, for answers that point into a file.

Scalars stay the text they were written as. Nothing is executed or expanded: a YAML alias is a part without a value.
Each reader raises ValueError (or RecursionError) for what it cannot read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

__all__ = ["DEPTH_MOST", "Part", "leaves", "read_json", "read_yaml"]

DEPTH_MOST = 100

_JSON_TOKEN = re.compile(
    r'(?P<blank>[ \t\r\n]++)|(?P<text>"[^"\\\n]*+(?:\\.[^"\\\n]*+)*+")|(?P<mark>[{}\[\],:])'
    r"|(?P<scalar>-?\d[\d.eE+-]*+|true|false|null)|(?P<comment>//[^\n]*+|/\*.*?\*/)",
    re.DOTALL,
)
_JSON_CLOSING = {"}": dict, "]": list}
_FIRST, _VALUE, _KEY, _COLON, _COMMA = range(5)


@dataclass(frozen=True, slots=True)
class Part:
    """A table, a list or a scalar; `line` is that of its name where it has one."""

    value: dict[str, Part] | list[Part] | str | None
    line: int
    # A number or a truth value of a typed format is no text.
    is_text: bool = True

    @property
    def text(self) -> str | None:
        return self.value if isinstance(self.value, str) and self.is_text else None

    @property
    def table(self) -> dict[str, Part]:
        return self.value if isinstance(self.value, dict) else {}

    @property
    def items(self) -> list[Part]:
        return self.value if isinstance(self.value, list) else []

    def at(self, *keys: str) -> Part:
        """The part under these keys; one without a value where there is none."""
        part = self
        for key in keys:
            part = part.table.get(key, Part(None, part.line))
        return part


def leaves(part: Part) -> Iterator[tuple[tuple[str, ...], Part]]:
    """Every scalar with the keys that lead to it, in order; items of lists are numbered from 0."""
    waiting: list[tuple[tuple[str, ...], Part]] = [((), part)]
    while waiting:
        path, one = waiting.pop()
        if isinstance(one.value, dict):
            waiting.extend((*reversed([((*path, key), inner) for key, inner in one.value.items()]),))
        elif isinstance(one.value, list):
            waiting.extend((*reversed([((*path, str(at)), inner) for at, inner in enumerate(one.value)]),))
        elif one.value is not None:
            yield path, one


class _Builder:
    """Puts parts together in the order of a parser's events."""

    def __init__(self) -> None:
        self.done: list[Part] = []
        self.key: tuple[str, int] | None = None
        self._open: list[tuple[Part, tuple[str, int] | None]] = []

    @property
    def inside(self) -> type | None:
        return type(self._open[-1][0].value) if self._open else None

    def open(self, value: dict[str, Part] | list[Part], line: int) -> None:
        if len(self._open) >= DEPTH_MOST:
            raise ValueError("nested too deeply")
        self._open.append((Part(value, self.key[1] if self.key else line), self.key))
        self.key = None

    def close(self) -> None:
        part, self.key = self._open.pop()
        self.add(part)

    def add(self, part: Part) -> None:
        if not self._open:
            self.done.append(part)
            return
        holder = self._open[-1][0].value
        if isinstance(holder, list):
            holder.append(part)
        elif isinstance(holder, dict) and self.key is not None:
            name, line = self.key
            holder[name] = Part(part.value, line, part.is_text)
            self.key = None
        else:
            raise ValueError("a value without a name")


def read_json(text: str) -> Part:
    """JSON, also with comments and trailing commas, as configuration often has it."""
    builder = _Builder()
    wanted = _FIRST
    for kind, token, line in _json_tokens(text):
        if builder.done:
            raise ValueError("more than one value")
        if wanted == _COLON:
            if token != ":":
                raise ValueError("no colon")
            wanted = _VALUE
        elif token in _JSON_CLOSING and kind == "mark":
            if builder.inside is not _JSON_CLOSING[token] or (wanted == _VALUE and builder.inside is dict):
                raise ValueError("a bracket too many")
            builder.close()
            wanted = _COMMA
        elif wanted == _COMMA:
            if token != ",":
                raise ValueError("no comma")
            wanted = _KEY if builder.inside is dict else _VALUE
        elif wanted == _KEY:
            if kind != "text":
                raise ValueError("no key")
            builder.key = (json.loads(token), line)
            wanted = _COLON
        elif kind == "mark":
            if token not in "{[":
                raise ValueError("no value")
            builder.open({} if token == "{" else [], line)
            wanted = _KEY if token == "{" else _VALUE
        else:
            builder.add(Part(json.loads(token) if kind == "text" else token, line, kind == "text"))
            wanted = _COMMA
    if len(builder.done) != 1:
        raise ValueError("unfinished")
    return builder.done[0]


def _json_tokens(text: str) -> Iterator[tuple[str, str, int]]:
    at, line = 0, 1
    while at < len(text):
        match = _JSON_TOKEN.match(text, at)
        if match is None:
            raise ValueError("no JSON")
        kind = match.lastgroup or ""
        if kind in ("blank", "comment"):
            line += match[0].count("\n")
        else:
            yield kind, match[0], line
        at = match.end()


def read_yaml(text: str) -> list[Part]:
    """The documents of a YAML file."""
    # Imported here, since most calls of most programs never read such a file.
    import yaml  # type: ignore[import-untyped]

    builder = _Builder()
    try:
        for event in yaml.parse(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
            _take(builder, yaml, event)
    except yaml.YAMLError as error:
        raise ValueError("no YAML") from error
    except OverflowError as error:
        # An escape beyond the last character.
        raise ValueError("an impossible value") from error
    return builder.done


def _take(builder: _Builder, yaml: Any, event: Any) -> None:
    # PyYAML is untyped; only here are its events looked into.
    line = event.start_mark.line + 1
    names_value = builder.inside is dict and builder.key is None
    if isinstance(event, (yaml.MappingEndEvent, yaml.SequenceEndEvent)):
        builder.close()
    elif isinstance(event, yaml.ScalarEvent):
        if names_value:
            builder.key = (event.value, line)
        else:
            builder.add(Part(event.value, line))
    elif names_value and isinstance(event, yaml.NodeEvent):
        raise ValueError("a key that is no text")
    elif isinstance(event, yaml.MappingStartEvent):
        builder.open({}, line)
    elif isinstance(event, yaml.SequenceStartEvent):
        builder.open([], line)
    elif isinstance(event, yaml.AliasEvent):
        builder.add(Part(None, line))
