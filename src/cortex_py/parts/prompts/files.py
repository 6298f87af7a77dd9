"""Saved texts as files: Markdown with front matter, YAML or JSON. What is written reads back exactly. Pure.

In Markdown the content is everything after the line `---` that closes the front matter, byte for byte. A file without
front matter is a content alone, named after the file. YAML and JSON hold one mapping or a list of them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePath
from typing import Literal, cast, get_args

from ...core.errors import InvalidInput, LimitExceeded
from ...core.records import JsonValue, Saved, SavedKind, Variable
from ...texts.structured import Found, Source, Steps, check, read_json, read_yaml, yaml_mapping
from .checks import Draft

Format = Literal["markdown", "yaml", "json"]

FORMATS: tuple[Format, ...] = get_args(Format)
SUFFIXES: Mapping[str, Format] = {".md": "markdown", ".yaml": "yaml", ".yml": "yaml", ".json": "json"}
FILE_MOST = 1_000_000
ENTRIES_MOST = 1_000

_FOLDER = Path(__file__).with_name("builtin")
_FIELDS = ("name", "description", "tags", "variables", "kind")
_VARIABLE_FIELDS = ("name", "description", "default", "required", "choices")
_FENCE = re.compile(r"^---[ \t]*+(?:\r?\n|\Z)", re.MULTILINE)


def format_of(filename: str) -> Format | None:
    """The format of a file by its suffix in any case; None for other files."""
    return SUFFIXES.get(PurePath(filename).suffix.lower())


# Writing


def dump(saved: Saved, format: Format) -> bytes:
    """The file of one text. A text that would not read back is refused."""
    fields = _fields(saved)
    whole = {**fields, "content": saved.content}
    if fault := check(whole):
        raise InvalidInput(f"The text cannot be written to a file: {fault}.", field="file")
    if format == "json":
        text = json.dumps(whole, indent=2, ensure_ascii=False) + "\n"
    else:
        text = yaml_mapping(whole) if format == "yaml" else f"---\n{yaml_mapping(fields)}---\n{saved.content}"
    data = text.encode("utf-8")
    if len(data) > FILE_MOST:
        raise LimitExceeded(
            f"The file would be larger than {FILE_MOST:,} bytes, the most that is read back.", field="file"
        )
    return data


def _fields(saved: Saved) -> dict[str, JsonValue]:
    """All fields but the content; defaults are left out."""
    given: dict[str, JsonValue] = {"name": saved.name}
    if saved.kind == "template":
        given["kind"] = saved.kind
    if saved.description is not None:
        given["description"] = saved.description
    if saved.tags:
        given["tags"] = list(saved.tags)
    if declared := [variable for variable in saved.variables if variable.required is not None]:
        given["variables"] = [_variable_fields(variable) for variable in declared]
    return given


def _variable_fields(variable: Variable) -> dict[str, JsonValue]:
    given: dict[str, JsonValue] = {"name": variable.name}
    if variable.description is not None:
        given["description"] = variable.description
    if variable.default is not None:
        given["default"] = variable.default
    if variable.required is not (variable.default is None):
        given["required"] = variable.required
    if variable.choices:
        given["choices"] = list(variable.choices)
    return given


# Reading


def load(data: bytes, *, filename: str, kind: SavedKind) -> list[Draft]:
    """Parse a file. A file that is ambiguous is refused, with the line."""
    form = format_of(filename)
    source = _decoded(data, filename)
    if form is None:
        raise source.fault(f"only files with the endings {', '.join(SUFFIXES)} are read")
    if form == "markdown":
        return [_from_markdown(source, kind)]
    found = read_yaml(source) if form == "yaml" else read_json(source)
    if not isinstance(found.value, list):
        return [_Entry(found, kind).draft(_stem(source))]
    if len(found.value) > ENTRIES_MOST:
        raise source.fault(f"it holds {len(found.value):,} texts, more than {ENTRIES_MOST:,}")
    return [_Entry(found, kind, (index,)).draft() for index in range(len(found.value))]


def _decoded(data: bytes, filename: str) -> Source:
    if len(data) > FILE_MOST:
        raise Source(filename, "").fault(f"it is larger than {FILE_MOST:,} bytes")
    try:
        return Source(filename, data.decode("utf-8").removeprefix("\ufeff"))
    except UnicodeDecodeError as error:
        raise Source(filename, "").fault("it is not UTF-8", data.count(b"\n", 0, error.start) + 1) from error


def _stem(source: Source) -> str:
    return PurePath(source.filename).stem


def _from_markdown(source: Source, kind: SavedKind) -> Draft:
    text, name = source.text, _stem(source)
    opening = _FENCE.match(text)
    if not opening:
        return _Entry(Found(source, {"content": text}), kind).draft(name)
    closing = _FENCE.search(text, opening.end())
    if not closing:
        raise source.fault("the front matter that begins here is never closed by a line of ---", 1)
    front = read_yaml(Source(source.filename, text[opening.end() : closing.start()], lines_before=1))
    value = {} if front.value is None else front.value
    found = Found(front.source, value, front.lines)
    return _Entry(found, kind).draft(name, text[closing.end() :])


@dataclass(frozen=True, slots=True)
class _Entry:
    """One text of a file: the mapping at these steps, and the expected kind."""

    found: Found
    kind: SavedKind
    steps: Steps = ()

    def draft(self, name: str | None = None, content: str | None = None) -> Draft:
        """`name` is the default name; `content` is given if it is outside the mapping."""
        known = (*_FIELDS, "content") if content is None else _FIELDS
        given = self._mapping(self._value(), self.steps, known)
        self._check_kind(given)
        if given.get("name") is None and name is not None:
            if check(name):
                raise self._fault("it has no name, and that of the file is not UTF-8")
            given = {**given, "name": name}
        return Draft(
            name=self._text(given, "name", self.steps),
            content=self._text(given, "content", self.steps) if content is None else content,
            description=self._optional_text(given, "description", self.steps),
            tags=self._texts(given, "tags", self.steps),
            variables=self._variables(given),
            kind=self.kind,
        )

    def _value(self) -> JsonValue:
        value = self.found.value
        for step in self.steps:
            value = cast("list[JsonValue]", value)[cast("int", step)]
        return value

    def _check_kind(self, given: Mapping[str, JsonValue]) -> None:
        kind = given.get("kind")
        if kind is not None and kind not in get_args(SavedKind):
            raise self._fault("kind must be prompt or template", "kind")
        if kind not in (None, self.kind):
            raise self._fault(f"it is a {kind}, and a {self.kind} is looked for", "kind")

    def _variables(self, given: Mapping[str, JsonValue]) -> tuple[Variable, ...]:
        items = given.get("variables")
        if items is None:
            return ()
        if not isinstance(items, list):
            raise self._fault(f"variables must be a list of mappings with {', '.join(_VARIABLE_FIELDS)}", "variables")
        return tuple(self._variable(item, (*self.steps, "variables", index)) for index, item in enumerate(items))

    def _variable(self, item: JsonValue, steps: Steps) -> Variable:
        given = self._mapping(item, steps, _VARIABLE_FIELDS)
        default, required = given.get("default"), given.get("required")
        if required is None:
            required = default is None
        if not isinstance(required, bool):
            raise self._wrong("required", "true or false", steps)
        return Variable(
            name=self._text(given, "name", steps),
            description=self._optional_text(given, "description", steps),
            default=default,
            required=required,
            choices=self._texts(given, "choices", steps),
        )

    def _mapping(self, value: JsonValue, steps: Steps, known: Sequence[str]) -> dict[str, JsonValue]:
        if not isinstance(value, dict):
            raise self._wrong("", f"a mapping with {', '.join(known)}", steps)
        for name in value:
            if name not in known:
                what = f"{_label(steps)}the field {name[:40]!r} is not known; known are {', '.join(known)}"
                raise self.found.fault(what, (*steps, name))
        return value

    def _text(self, given: Mapping[str, JsonValue], field: str, steps: Steps) -> str:
        value = given.get(field)
        if not isinstance(value, str):
            quotes = "" if isinstance(value, list | dict) else "; put it in quotes"
            raise self._wrong(field, "there" if value is None else f"text{quotes}", steps)
        return value

    def _optional_text(self, given: Mapping[str, JsonValue], field: str, steps: Steps) -> str | None:
        return None if given.get(field) is None else self._text(given, field, steps)

    def _texts(self, given: Mapping[str, JsonValue], field: str, steps: Steps) -> tuple[str, ...]:
        value = given.get(field)
        items = [] if value is None else value
        if not isinstance(items, list):
            raise self._wrong(field, "a list of texts", steps)
        texts = [item for item in items if isinstance(item, str)]
        if len(texts) < len(items):
            raise self._wrong(field, "a list of texts; put each in quotes", steps)
        return tuple(texts)

    def _fault(self, what: str, *field: str) -> InvalidInput:
        return self.found.fault(f"{_label(self.steps)}{what}", (*self.steps, *field))

    def _wrong(self, field: str, wanted: str, steps: Steps) -> InvalidInput:
        return self.found.fault(f"{_label(steps)}{field or 'it'} must be {wanted}", (*steps, field))


def _label(steps: Steps) -> str:
    """Which of several is meant, counted from 1."""
    match steps:
        case (int(entry), "variables", int(variable)):
            return f"entry {entry + 1}, variable {variable + 1}: "
        case ("variables", int(variable)):
            return f"variable {variable + 1}: "
        case (int(entry),):
            return f"entry {entry + 1}: "
    return ""


@cache
def builtins() -> tuple[Draft, ...]:
    """The built-in prompts by name, one Markdown file each in `builtin`; read on the first call."""
    from importlib import resources

    names = sorted(one.name for one in _FOLDER.glob("*.md"))
    files = {name: resources.files(__package__).joinpath("builtin", name).read_bytes() for name in names}
    return tuple(draft for name, data in files.items() for draft in load(data, filename=name, kind="prompt"))
