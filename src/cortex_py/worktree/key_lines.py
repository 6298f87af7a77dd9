"""Formats of one key and one value on a line: INI, Java properties, and examples of environment files."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

__all__ = ["Entry", "env_entries", "ini_entries", "numbered", "properties_entries"]

_SECTION = re.compile(r"\[([^\[\]]+)\]\s*(?:[#;].*)?")
_PAIR = re.compile(r"([^\s=:\[][^=:]*+)[=:]\s*+(.*)")
_NOTE = re.compile(r"\s[#;].*")
_VARIABLE = re.compile(r"(?:export\s+)?([A-Za-z_][\w.]*)\s*=\s*(.*)")
_QUOTED = re.compile(r"(?:\"([^\"\\]*)\"|'([^']*)')\s*(?:#.*)?")
_PROPERTY = re.compile(r"((?:[^\s=:\\]|\\.)++)(?:\s*[=:]\s*|\s+|$)(.*)")
_UNICODE = re.compile(r"\\u([0-9A-Fa-f]{4})|\\(.)")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "f": "\f"}


@dataclass(frozen=True, slots=True)
class Entry:
    """A key in its section, with the lines of its value that hold something."""

    section: str
    key: str
    line: int
    values: Sequence[tuple[int, str]]

    @property
    def value(self) -> str:
        return "\n".join(text for _, text in self.values)


def numbered(text: str) -> Iterator[tuple[int, str]]:
    """Lines as editors count them: Python would also break at marks that only look like an end."""
    return enumerate((line.rstrip("\r") for line in text.split("\n")), 1)


def ini_entries(text: str) -> list[Entry]:
    """Raises ValueError at a line that is no section, pair, comment or continuation."""
    found: list[Entry] = []
    values: list[tuple[int, str]] = []
    section, indent, is_open = "", 0, False
    for number, line in numbered(text):
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
            found.append(Entry(section, match[1].rstrip(), number, values))
            indent, is_open = depth, True
        else:
            raise ValueError("no INI")
    return found


def env_entries(text: str) -> list[Entry]:
    found = []
    for number, line in numbered(text):
        stripped = line.strip()
        if not stripped or stripped.startswith("#"):
            continue
        match = _VARIABLE.fullmatch(stripped)
        if match is None:
            raise ValueError("no environment file")
        quoted = _QUOTED.fullmatch(match[2])
        value = (quoted[1] or quoted[2] or "") if quoted else _NOTE.sub("", " " + match[2]).strip()
        found.append(Entry("", match[1], number, ((number, value),)))
    return found


def properties_entries(text: str) -> list[Entry]:
    found = []
    for number, line in _whole_lines(text):
        match = _PROPERTY.fullmatch(line)
        if match is None:
            raise ValueError("no properties")
        found.append(Entry("", _plain(match[1]), number, ((number, _plain(match[2])),)))
    return found


def _whole_lines(text: str) -> Iterator[tuple[int, str]]:
    """Lines with their continuations, less comments."""
    held: list[str] = []
    start = 0
    for number, line in numbered(text):
        stripped = line.lstrip()
        if not held and (not stripped or stripped[0] in "#!"):
            continue
        start = start if held else number
        # An even number of backslashes stands for themselves.
        goes_on = (len(stripped) - len(stripped.rstrip("\\"))) % 2 == 1
        held.append(stripped[:-1] if goes_on else stripped)
        if not goes_on:
            yield start, "".join(held)
            held = []
    if held:
        yield start, "".join(held)


def _plain(text: str) -> str:
    return _UNICODE.sub(lambda match: chr(int(match[1], 16)) if match[1] else _ESCAPES.get(match[2], match[2]), text)
