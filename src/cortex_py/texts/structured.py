"""YAML and JSON as plain values. Files come from strangers: what could grow, recurse or surprise is refused. Pure.

A bare word of YAML means what it means in JSON, and is text otherwise: `no`, `12:30`, `010` and `2026-01-02` are text.
Anchors, aliases and tags are refused before anything is built.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..core.errors import InvalidInput
from ..core.records import JsonValue

__all__ = ["Found", "Source", "Steps", "check", "one_line", "read_json", "read_yaml", "yaml_item", "yaml_mapping"]

# The way to a value: keys of mappings, and places in lists from 0.
Steps = tuple[str | int, ...]

_DEPTH_MOST = 32
_VALUES_MOST = 100_000
_BITS_MOST = 1024

_NULL = frozenset(("", "~", "null", "Null", "NULL"))
_TRUE, _FALSE = frozenset(("true", "True", "TRUE")), frozenset(("false", "False", "FALSE"))
_INT = re.compile(r"[-+]?(?:0|[1-9][0-9]*)")
_FLOAT = re.compile(r"[-+]?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?")

# Characters that need no escape in YAML; those that it reads as line ends and the byte order mark are excluded.
_CARRIED = "\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff"
_ESCAPED = re.compile(f'[^{_CARRIED}]|["\\\\]')
_NOT_LITERAL = re.compile(f"[^\t\n{_CARRIED}]|[ \t]\n|[ \t\n]\\Z(?<!\\S\n)")
_UNREADABLE = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_BARE = re.compile(r"[A-Za-z][A-Za-z0-9_./-]*(?: [A-Za-z0-9_./-]+)*")
# Other YAML parsers read these as true, false or null.
_NOT_BARE = frozenset(("null", "true", "false", "yes", "no", "on", "off", "y", "n"))
# YAML accepts a key of up to 1024 characters without a `?` before it.
_SHORT_KEY = 100


@dataclass(frozen=True, slots=True)
class Source:
    """The text of a file, or of a part of it after `lines_before` lines."""

    filename: str
    text: str
    lines_before: int = 0

    def fault(self, what: str, line: int | None = None) -> InvalidInput:
        place = "" if line is None else f", line {line + self.lines_before}"
        return InvalidInput(f"{one_line(self.filename)}{place}: {one_line(what)}.", field="file")


@dataclass(frozen=True, slots=True)
class Found:
    """A value, and the lines where its parts begin, as far as known."""

    source: Source
    value: JsonValue
    lines: Mapping[Steps, int] = field(default_factory=dict)

    def fault(self, what: str, steps: Steps) -> InvalidInput:
        known = (self.lines[steps[:length]] for length in range(len(steps), -1, -1) if steps[:length] in self.lines)
        return self.source.fault(what, next(known, None))


def one_line(text: str) -> str:
    """A text for a message, with unprintable characters escaped."""
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)


def check(value: JsonValue) -> str | None:
    """What keeps a value from being written as YAML and JSON, if anything."""
    level: list[object] = [value]
    count = 0
    for _ in range(_DEPTH_MOST + 1):
        count += len(level)
        if count > _VALUES_MOST:
            return f"it holds more than {_VALUES_MOST:,} values"
        if fault := next(filter(None, map(_check_one, level)), None):
            return fault
        level = [inner for outer in level for inner in _inside(outer)]
        if not level:
            return None
    return f"it is nested deeper than {_DEPTH_MOST} levels"


def _inside(value: object) -> Iterable[object]:
    if isinstance(value, dict):
        return [*value, *value.values()]
    return value if isinstance(value, list) else ()


def _check_one(value: object) -> str | None:
    if isinstance(value, str):
        try:
            value.encode("utf-8")
        except UnicodeEncodeError:
            return "it holds half of a surrogate pair, which is not a character"
    elif isinstance(value, float):
        return None if math.isfinite(value) else "it holds a number that is not finite"
    elif isinstance(value, int):
        return None if value.bit_length() <= _BITS_MOST else "it holds a number with hundreds of digits"
    elif value is not None and not isinstance(value, list | dict):
        return f"it holds a value of the type {type(value).__name__}"
    return None


# JSON


def read_json(source: Source) -> Found:
    def pairs(items: list[tuple[str, JsonValue]]) -> JsonValue:
        found: dict[str, JsonValue] = {}
        for name, value in items:
            if name in found:
                raise source.fault(f"the field {name[:40]!r} occurs twice in one object")
            found[name] = value
        return found

    def constant(name: str) -> JsonValue:
        raise source.fault(f"{name} is not a number in JSON")

    try:
        value = json.loads(source.text, object_pairs_hook=pairs, parse_constant=constant)
    except json.JSONDecodeError as error:
        raise source.fault(f"it is not valid JSON ({error.msg})", error.lineno) from error
    except RecursionError as error:
        raise source.fault("it is nested too deeply") from error
    except ValueError as error:
        # More digits than Python parses.
        raise source.fault("it holds a number with hundreds of digits") from error
    if fault := check(value):
        raise source.fault(fault)
    return Found(source, value)


# Reading YAML


def read_yaml(source: Source) -> Found:
    # Imported here, since most calls of most programs never read a file.
    import yaml  # type: ignore[import-untyped]

    if unreadable := _UNREADABLE.search(source.text):
        line = source.text.count("\n", 0, unreadable.start()) + 1
        raise source.fault(f"YAML does not hold the character U+{ord(unreadable[0]):04X} as it is", line)
    builder = _Builder(source, yaml, yaml.parse(source.text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)))
    try:
        value = builder.document()
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        problem = str(getattr(error, "problem", None) or "it cannot be parsed")
        raise source.fault(f"it is not valid YAML ({problem[:120]})", mark.line + 1 if mark else None) from error
    except (ValueError, OverflowError) as error:
        # An escape beyond the last character, a number with thousands of digits.
        raise source.fault("it holds an impossible value") from error
    if fault := check(value):
        raise source.fault(fault)
    return Found(source, value, builder.lines)


class _Builder:
    """Builds values from the events of a YAML parser, so that refused ones are never built."""

    def __init__(self, source: Source, yaml: Any, events: Iterator[Any]) -> None:
        self.lines: dict[Steps, int] = {}
        self._source = source
        self._yaml = yaml
        self._events = events
        self._count = 0

    def document(self) -> JsonValue:
        """The only value of the text; None if it is empty."""
        yaml = self._yaml
        value: JsonValue = None
        documents = 0
        for event in self._events:
            if isinstance(event, yaml.DocumentStartEvent):
                documents += 1
                if documents > 1:
                    raise self._fault("it holds more than one YAML document", event)
            elif not isinstance(event, yaml.StreamStartEvent | yaml.DocumentEndEvent | yaml.StreamEndEvent):
                value = self._value(event, ())
        return value

    def _value(self, event: Any, steps: Steps) -> JsonValue:
        yaml = self._yaml
        self._guard(event, steps)
        self.lines[steps] = event.start_mark.line + 1
        if isinstance(event, yaml.ScalarEvent):
            return _scalar(event.value) if event.implicit[0] else str(event.value)
        if isinstance(event, yaml.SequenceStartEvent):
            inner = self._until(yaml.SequenceEndEvent)
            return [self._value(item, (*steps, index)) for index, item in enumerate(inner)]
        mapping: dict[str, JsonValue] = {}
        for key_event in self._until(yaml.MappingEndEvent):
            key = self._key(key_event, steps)
            if key in mapping:
                raise self._fault(f"the field {key[:40]!r} occurs twice", key_event)
            mapping[key] = self._value(next(self._events), (*steps, key))
            self.lines[*steps, key] = key_event.start_mark.line + 1
        return mapping

    def _key(self, event: Any, steps: Steps) -> str:
        self._guard(event, steps)
        if not isinstance(event, self._yaml.ScalarEvent):
            raise self._fault("the name of a field must be text", event)
        return str(event.value)

    def _until(self, end: Any) -> Iterator[Any]:
        while not isinstance(event := next(self._events), end):
            yield event

    def _guard(self, event: Any, steps: Steps) -> None:
        self._count += 1
        if getattr(event, "anchor", None) or getattr(event, "tag", None):
            raise self._fault("anchors, aliases and tags of YAML are not read", event)
        if self._count > _VALUES_MOST:
            raise self._fault(f"it holds more than {_VALUES_MOST:,} values", event)
        if len(steps) > _DEPTH_MOST:
            raise self._fault(f"it is nested deeper than {_DEPTH_MOST} levels", event)

    def _fault(self, what: str, event: Any) -> InvalidInput:
        return self._source.fault(what, event.start_mark.line + 1)


def _scalar(word: str) -> JsonValue:
    if word in _NULL:
        return None
    if word in _TRUE or word in _FALSE:
        return word in _TRUE
    if _INT.fullmatch(word):
        return int(word)
    return float(word) if _FLOAT.fullmatch(word) else word


# Writing YAML


def yaml_mapping(fields: Mapping[str, JsonValue]) -> str:
    """The fields in order; `variables` as a list of such mappings. The names of the fields are plain words."""
    return "".join(_field(name, value) for name, value in fields.items())


def yaml_item(mapping: str) -> str:
    """A mapping, as written above, as an item of a list."""
    lines = mapping.split("\n")
    return "\n".join([f"- {lines[0]}", *(f"  {line}" if line else "" for line in lines[1:])])


def _field(name: str, value: JsonValue) -> str:
    if name == "variables" and isinstance(value, list):
        items = (yaml_item(yaml_mapping(one)) for one in value if isinstance(one, dict))
        return f"{name}:\n{''.join(items)}"
    if isinstance(value, str) and "\n" in value and not _NOT_LITERAL.search(value):
        # The width of the indentation must be given if the text begins with white space.
        width = "2" if value[0] in " \t\n" else ""
        end = "" if value.endswith("\n") else "-"
        lines = value.removesuffix("\n").split("\n")
        return "\n".join([f"{name}: |{width}{end}", *(f"  {line}" if line else "" for line in lines), ""])
    return f"{name}: {_flow(value)}\n"


def _flow(value: JsonValue) -> str:
    """A value on one line."""
    if isinstance(value, str):
        return value if _BARE.fullmatch(value) and value.lower() not in _NOT_BARE else _quoted(value)
    if isinstance(value, list):
        return f"[{', '.join(map(_flow, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(_pair(key, inner) for key, inner in value.items())}}}"
    return json.dumps(value)


def _pair(key: str, value: JsonValue) -> str:
    sign = "? " if len(key) > _SHORT_KEY else ""
    return f"{sign}{_quoted(key)}: {_flow(value)}"


def _quoted(text: str) -> str:
    return f'"{_ESCAPED.sub(_escape, text)}"'


def _escape(found: re.Match[str]) -> str:
    char = found[0]
    if char in '"\\':
        return f"\\{char}"
    short = {"\n": "\\n", "\t": "\\t", "\r": "\\r"}.get(char)
    return short or (f"\\x{ord(char):02X}" if ord(char) < 256 else f"\\u{ord(char):04X}")
