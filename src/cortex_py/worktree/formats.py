"""Readers for configuration files and XML that keep the line of every value.

Scalars stay the text they were written as. Nothing is executed or expanded: a YAML alias becomes a part without a
value. Each reader raises ValueError (or RecursionError) for a text it cannot read.
"""

from __future__ import annotations

import json
import posixpath
import re
import tomllib
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any
from xml.parsers import expat

__all__ = [
    "DEPTH_MOST",
    "Datum",
    "FileSetting",
    "XmlNode",
    "env_entries",
    "ini_entries",
    "leaves",
    "number_lines",
    "properties_entries",
    "read_json",
    "read_plain_toml",
    "read_settings",
    "read_toml",
    "read_xml",
    "read_yaml",
]  # fmt: skip

DEPTH_MOST = 100

_JSON_TOKEN = re.compile(
    r'(?P<blank>[ \t\r\n]++)|(?P<text>"[^"\\\n]*+(?:\\.[^"\\\n]*+)*+")|(?P<mark>[{}\[\],:])'
    r"|(?P<scalar>-?\d[\d.eE+-]*+|true|false|null)|(?P<comment>//[^\n]*+|/\*.*?\*/)",
    re.DOTALL,
)
_JSON_CLOSING = {"}": dict, "]": list}
_FIRST, _VALUE, _KEY, _COLON, _COMMA = range(5)


@dataclass(frozen=True, slots=True)
class Datum:
    """A table, a list or a scalar; `line` is the line of its key, if it has one."""

    value: dict[str, Datum] | list[Datum] | str | None
    line: int
    # False for numbers and booleans of a typed format.
    is_text: bool = True

    @property
    def text(self) -> str | None:
        return self.value if isinstance(self.value, str) and self.is_text else None

    @property
    def table(self) -> dict[str, Datum]:
        return self.value if isinstance(self.value, dict) else {}

    @property
    def items(self) -> list[Datum]:
        return self.value if isinstance(self.value, list) else []

    def at(self, *keys: str) -> Datum:
        """The part under these keys, or a part without a value."""
        part = self
        for key in keys:
            part = part.table.get(key, Datum(None, part.line))
        return part


def leaves(part: Datum) -> Iterator[tuple[tuple[str, ...], Datum]]:
    """Every scalar with the keys that lead to it, in order; items of lists are numbered from 0."""
    waiting: list[tuple[tuple[str, ...], Datum]] = [((), part)]
    while waiting:
        path, one = waiting.pop()
        if isinstance(one.value, dict):
            waiting.extend((*reversed([((*path, key), inner) for key, inner in one.value.items()]),))
        elif isinstance(one.value, list):
            waiting.extend((*reversed([((*path, str(at)), inner) for at, inner in enumerate(one.value)]),))
        elif one.value is not None:
            yield path, one


class _Builder:
    """Builds parts from a parser's events."""

    def __init__(self) -> None:
        self.done: list[Datum] = []
        self.key: tuple[str, int] | None = None
        self._open: list[tuple[Datum, tuple[str, int] | None]] = []

    @property
    def inside(self) -> type | None:
        return type(self._open[-1][0].value) if self._open else None

    def open(self, value: dict[str, Datum] | list[Datum], line: int) -> None:
        if len(self._open) >= DEPTH_MOST:
            raise ValueError("nested too deeply")
        self._open.append((Datum(value, self.key[1] if self.key else line), self.key))
        self.key = None

    def close(self) -> None:
        part, self.key = self._open.pop()
        self.add(part)

    def add(self, part: Datum) -> None:
        if not self._open:
            self.done.append(part)
            return
        holder = self._open[-1][0].value
        if isinstance(holder, list):
            holder.append(part)
        elif isinstance(holder, dict) and self.key is not None:
            name, line = self.key
            holder[name] = Datum(part.value, line, part.is_text)
            self.key = None
        else:
            raise ValueError("a value without a name")


def read_json(text: str) -> Datum:  # noqa: C901  # one branch for each state of the reader
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
            builder.add(Datum(json.loads(token) if kind == "text" else token, line, kind == "text"))
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


def read_yaml(text: str) -> list[Datum]:
    """The documents of a YAML file."""
    # Imported here because most calls never read YAML.
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
    # PyYAML is untyped; its events are used only here.
    line = event.start_mark.line + 1
    names_value = builder.inside is dict and builder.key is None
    if isinstance(event, (yaml.MappingEndEvent, yaml.SequenceEndEvent)):
        builder.close()
    elif isinstance(event, yaml.ScalarEvent):
        if names_value:
            builder.key = (event.value, line)
        else:
            builder.add(Datum(event.value, line))
    elif names_value and isinstance(event, yaml.NodeEvent):
        raise ValueError("a key that is no text")
    elif isinstance(event, yaml.MappingStartEvent):
        builder.open({}, line)
    elif isinstance(event, yaml.SequenceStartEvent):
        builder.open([], line)
    elif isinstance(event, yaml.AliasEvent):
        builder.add(Datum(None, line))


# -- TOML: the values are tomllib's, the lines come from a scan beside it --------------------------


_Path = tuple[str | int, ...]

_BLANK = re.compile(r"(?:[ \t\r\n]++|#[^\n]*+)*+")
_TOML_KEY = re.compile(r"[ \t]*+([A-Za-z0-9_-]++|\"(?:[^\"\\\n]|\\.)*+\"|'[^'\n]*+')[ \t]*+")
_SCALAR = re.compile(
    r'"""(?:[^\\]|\\.)*?"{3,5}|\'\'\'.*?\'{3,5}|"(?:[^"\\\n]|\\.)*+"|\'[^\'\n]*+\'|[^,\]}\n#\[{"\']++', re.DOTALL
)


def read_toml(text: str) -> Datum:
    """A document as parts. Raises ValueError or RecursionError if it is not TOML."""
    value, lines = _checked(text)
    return _part(value, (), 1, lines)


def read_plain_toml(text: str) -> dict[str, Any]:
    """A document as plain values. Raises ValueError or RecursionError if it is not TOML."""
    return _checked(text)[0]


def _checked(text: str) -> tuple[dict[str, Any], Mapping[_Path, int]]:
    # The scan comes first: it refuses input on which tomllib would take minutes.
    lines = _Scan(text).lines()
    return tomllib.loads(text), lines


def _part(value: object, path: _Path, line: int, lines: Mapping[_Path, int]) -> Datum:
    line = lines.get(path, line)
    if isinstance(value, dict):
        return Datum({key: _part(one, (*path, key), line, lines) for key, one in value.items()}, line)
    if isinstance(value, list):
        return Datum([_part(one, (*path, at), line, lines) for at, one in enumerate(value)], line)
    if isinstance(value, bool):
        return Datum(str(value).lower(), line, is_text=False)
    return Datum(str(value), line, is_text=isinstance(value, str))


class _Scan:
    """Walks through the statements of a document and records the line of each name."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._breaks = [match.start() for match in re.finditer("\n", text)]
        self._lines: dict[_Path, int] = {}
        self._last: dict[_Path, int] = {}

    def lines(self) -> Mapping[_Path, int]:
        table: _Path = ()
        while self._next():
            if self._text.startswith("[", self._at):
                marks = 2 if self._text.startswith("[[", self._at) else 1
                start = self._at
                self._at += marks
                table = self._table(self._key(), start, repeated=marks == 2)
                self._expect("]" * marks)
            else:
                self._statement(table)
        return self._lines

    def _next(self) -> str:
        """The character that begins what comes next; nothing at the end."""
        if match := _BLANK.match(self._text, self._at):
            self._at = match.end()
        return self._text[self._at : self._at + 1]

    def _expect(self, mark: str) -> None:
        if not self._text.startswith(mark, self._at):
            raise ValueError("no TOML")
        self._at += len(mark)

    def _note(self, path: _Path, at: int) -> None:
        self._lines.setdefault(path, bisect_right(self._breaks, at - 1) + 1)

    def _key(self) -> list[str]:
        parts: list[str] = []
        while match := _TOML_KEY.match(self._text, self._at):
            self._at = match.end()
            bare = match[1]
            parts.append(_unquoted(bare))
            if not self._text.startswith(".", self._at):
                break
            self._at += 1
        if not parts or len(parts) > DEPTH_MOST:
            raise ValueError("no key, or too long a one")
        return parts

    def _table(self, parts: list[str], start: int, *, repeated: bool) -> _Path:
        path: _Path = ()
        for at, part in enumerate(parts, 1):
            path = (*path, part)
            self._note(path, start)
            if repeated and at == len(parts):
                self._last[path] = self._last.get(path, -1) + 1
            if path in self._last:
                path = (*path, self._last[path])
                self._note(path, start)
        return path

    def _statement(self, table: _Path) -> None:
        start = self._at
        path = table
        for part in self._key():
            path = (*path, part)
            self._note(path, start)
        self._expect("=")
        self._value(path)

    def _value(self, path: _Path) -> None:
        if len(path) > 2 * DEPTH_MOST:
            raise ValueError("nested too deeply")
        first = self._next()
        if first == "[":
            self._at += 1
            number = 0
            while self._next() not in ("]", ""):
                self._note((*path, number), self._at)
                self._value((*path, number))
                number += 1
                if self._next() == ",":
                    self._at += 1
            self._expect("]")
        elif first == "{":
            self._at += 1
            while self._next() not in ("}", ""):
                self._statement(path)
                if self._next() == ",":
                    self._at += 1
            self._expect("}")
        elif match := _SCALAR.match(self._text, self._at):
            self._at = match.end()
        else:
            raise ValueError("no value")


def _unquoted(key: str) -> str:
    if key[0] == "'":
        return key[1:-1]
    # An escape in a key is rare enough to let Python's parser read it.
    return key if key[0] != '"' else next(iter(tomllib.loads(f"{key} = 0"))) if "\\" in key else key[1:-1]


# Formats with one key and value a line: INI, Java properties, and example .env files.

_SECTION = re.compile(r"\[([^\[\]]+)\]\s*(?:[#;].*)?")
_PAIR = re.compile(r"([^\s=:\[][^=:]*+)[=:]\s*+(.*)")
_NOTE = re.compile(r"\s[#;].*")
_VARIABLE = re.compile(r"(?:export\s+)?([A-Za-z_][\w.]*)\s*=\s*(.*)")
_QUOTED = re.compile(r"(?:\"([^\"\\]*)\"|'([^']*)')\s*(?:#.*)?")
_PROPERTY = re.compile(r"((?:[^\s=:\\]|\\.)++)(?:\s*[=:]\s*|\s+|$)(.*)")
_UNICODE = re.compile(r"\\u([0-9A-Fa-f]{4})|\\(.)")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "f": "\f"}


@dataclass(frozen=True, slots=True)
class KeyEntry:
    """A key in its section, with the non-empty lines of its value."""

    section: str
    key: str
    line: int
    values: Sequence[tuple[int, str]]

    @property
    def value(self) -> str:
        return "\n".join(text for _, text in self.values)


def number_lines(text: str) -> Iterator[tuple[int, str]]:
    """Lines numbered as in an editor; `str.splitlines` also breaks at other characters."""
    return enumerate((line.rstrip("\r") for line in text.split("\n")), 1)


def ini_entries(text: str) -> list[KeyEntry]:
    """Raises ValueError at a line that is not a section, pair, comment or continuation."""
    found: list[KeyEntry] = []
    values: list[tuple[int, str]] = []
    section, indent, is_open = "", 0, False
    for number, line in number_lines(text):
        stripped = line.strip()
        if not stripped or stripped[0] in "#;":
            continue
        depth = len(line) - len(line.lstrip())
        if is_open and depth > indent:
            values.append((number, _NOTE.sub("", stripped).rstrip()))
        elif match := _SECTION.fullmatch(stripped):
            section, is_open = match[1].strip(), False
        elif match := _PAIR.fullmatch(stripped):
            value = _NOTE.sub("", match[2]).rstrip()
            values = [(number, value)] if value else []
            found.append(KeyEntry(section, match[1].rstrip(), number, values))
            indent, is_open = depth, True
        else:
            raise ValueError("no INI")
    return found


def env_entries(text: str) -> list[KeyEntry]:
    found = []
    for number, line in number_lines(text):
        stripped = line.strip()
        if not stripped or stripped.startswith("#"):
            continue
        match = _VARIABLE.fullmatch(stripped)
        if match is None:
            raise ValueError("no environment file")
        quoted = _QUOTED.fullmatch(match[2])
        value = (quoted[1] or quoted[2] or "") if quoted else _NOTE.sub("", " " + match[2]).strip()
        found.append(KeyEntry("", match[1], number, ((number, value),)))
    return found


def properties_entries(text: str) -> list[KeyEntry]:
    found = []
    for number, line in _whole_lines(text):
        match = _PROPERTY.fullmatch(line)
        if match is None:
            raise ValueError("no properties")
        found.append(KeyEntry("", _plain(match[1]), number, ((number, _plain(match[2])),)))
    return found


def _whole_lines(text: str) -> Iterator[tuple[int, str]]:
    """Lines joined with their continuations, without comments."""
    held: list[str] = []
    start = 0
    for number, line in number_lines(text):
        stripped = line.lstrip()
        if not held and (not stripped or stripped[0] in "#!"):
            continue
        start = start if held else number
        # An even number of backslashes is literal.
        goes_on = (len(stripped) - len(stripped.rstrip("\\"))) % 2 == 1
        held.append(stripped[:-1] if goes_on else stripped)
        if not goes_on:
            yield start, "".join(held)
            held = []
    if held:
        yield start, "".join(held)


def _plain(text: str) -> str:
    return _UNICODE.sub(lambda match: chr(int(match[1], 16)) if match[1] else _ESCAPES.get(match[2], match[2]), text)


# XML elements with line numbers. Documents with a DTD or entities are refused before parsing.

_DEPTH_MOST = 200
# Longer texts in a report are the output of a test, which is not needed.
_TEXT_MOST = 10_000
_PROLOGUE = re.compile(r"(?:\s++|<\?.*?\?>|<!--.*?-->)*+", re.DOTALL)


@dataclass(slots=True)
class XmlNode:
    """An element, its name without a namespace's prefix."""

    tag: str
    line: int
    attributes: dict[str, str]
    children: list[XmlNode] = field(default_factory=list)
    text: str = ""

    def child(self, tag: str) -> XmlNode | None:
        return next((one for one in self.children if one.tag == tag), None)

    def text_of(self, tag: str) -> str:
        one = self.child(tag)
        return one.text.strip() if one else ""

    def all(self) -> Iterator[XmlNode]:
        """This element and those within, in order."""
        waiting = [self]
        while waiting:
            one = waiting.pop()
            yield one
            waiting.extend(reversed(one.children))


def read_xml(text: str) -> XmlNode:
    """Raises ValueError for what is no XML, or has a document type."""
    text = text.removeprefix("\ufeff")
    prologue = _PROLOGUE.match(text)
    if prologue is None or not text.startswith("<", prologue.end()) or text.startswith("<!", prologue.end()):
        raise ValueError("no plain XML")
    # Above the outermost element, which is its only child.
    top = XmlNode("", 0, {})
    opened = [top]
    parser = expat.ParserCreate()
    parser.buffer_text = True

    def start(tag: str, attributes: dict[str, str]) -> None:
        if len(opened) > _DEPTH_MOST:
            raise ValueError("nested too deeply")
        node = XmlNode(tag.rpartition(":")[2], parser.CurrentLineNumber, attributes)
        opened[-1].children.append(node)
        opened.append(node)

    def add(data: str) -> None:
        if len(opened[-1].text) < _TEXT_MOST:
            opened[-1].text += data[:_TEXT_MOST]

    def refuse(*_declaration: object) -> None:
        raise ValueError("a document type")

    parser.StartElementHandler, parser.EndElementHandler = start, lambda _tag: opened.pop()
    parser.CharacterDataHandler, parser.StartDoctypeDeclHandler = add, refuse
    try:
        parser.Parse(text, True)
    except expat.ExpatError as error:
        raise ValueError("no XML") from error
    if not top.children:
        raise ValueError("empty")
    return top.children[0]


# The settings in a configuration file: a dotted key, the value as text, and the line.
#
# Files with secrets are not read; of .env files only the examples that a repository shares.

_SETTINGS_MOST = 5_000
_CHARACTERS_MOST = 1_000_000
_EXAMPLES = (".env.example", ".env.sample", ".env.template", ".env.dist", "env.example", "env.sample")


@dataclass(frozen=True, slots=True)
class FileSetting:
    """One setting; the key of a list item is its number, from 0."""

    key: str
    value: str
    line: int


def read_settings(path: str, text: str) -> list[FileSetting]:
    """The settings of a file, in order; none if the file is unknown, broken or too large."""
    reader = _reader(posixpath.basename(path).lower())
    if reader is None or len(text) > _CHARACTERS_MOST:
        return []
    try:
        return list(islice(reader(text.removeprefix("\ufeff")), _SETTINGS_MOST))
    except (ValueError, RecursionError):
        return []


def _reader(name: str) -> Callable[[str], Iterator[FileSetting]] | None:
    if name in _EXAMPLES:
        return lambda text: _of_entries(env_entries(text))
    return _READERS.get(posixpath.splitext(name)[1])


def _of_parts(parts: list[Datum]) -> Iterator[FileSetting]:
    for part in parts:
        for keys, leaf in leaves(part):
            if keys and isinstance(leaf.value, str):
                yield FileSetting(".".join(keys), leaf.value, leaf.line)


def _of_entries(entries: list[KeyEntry]) -> Iterator[FileSetting]:
    for one in entries:
        yield FileSetting(f"{one.section}.{one.key}" if one.section else one.key, one.value, one.line)


_READERS: dict[str, Callable[[str], Iterator[FileSetting]]] = {
    ".toml": lambda text: _of_parts([read_toml(text)]),
    **dict.fromkeys((".json", ".jsonc"), lambda text: _of_parts([read_json(text)])),
    **dict.fromkeys((".yaml", ".yml"), lambda text: _of_parts(read_yaml(text))),
    **dict.fromkeys((".ini", ".cfg"), lambda text: _of_entries(ini_entries(text))),
    ".properties": lambda text: _of_entries(properties_entries(text)),
}
