"""TOML as parts that know their lines: the values are Python's own, the lines come from a scan beside it."""

from __future__ import annotations

import re
import tomllib
from bisect import bisect_right
from collections.abc import Mapping

from .parts import DEPTH_MOST, Part

__all__ = ["read_toml"]

_Path = tuple[str | int, ...]

_BLANK = re.compile(r"(?:[ \t\r\n]++|#[^\n]*+)*+")
_KEY = re.compile(r"[ \t]*+([A-Za-z0-9_-]++|\"(?:[^\"\\\n]|\\.)*+\"|'[^'\n]*+')[ \t]*+")
_SCALAR = re.compile(
    r'"""(?:[^\\]|\\.)*?"{3,5}|\'\'\'.*?\'{3,5}|"(?:[^"\\\n]|\\.)*+"|\'[^\'\n]*+\'|[^,\]}\n#\[{"\']++', re.DOTALL
)


def read_toml(text: str) -> Part:
    """Raises ValueError or RecursionError for what is no TOML."""
    # The scan comes first: it refuses what Python's parser would chew on for minutes.
    lines = _Scan(text).lines()
    return _part(tomllib.loads(text), (), 1, lines)


def _part(value: object, path: _Path, line: int, lines: Mapping[_Path, int]) -> Part:
    line = lines.get(path, line)
    if isinstance(value, dict):
        return Part({key: _part(one, (*path, key), line, lines) for key, one in value.items()}, line)
    if isinstance(value, list):
        return Part([_part(one, (*path, at), line, lines) for at, one in enumerate(value)], line)
    if isinstance(value, bool):
        return Part(str(value).lower(), line, is_text=False)
    return Part(str(value), line, is_text=isinstance(value, str))


class _Scan:
    """Walks through the statements of a document and notes on which line each name stands."""

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
        while match := _KEY.match(self._text, self._at):
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
