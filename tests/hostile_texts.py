"""Texts of any size that make careless parsers slow: one short unit over and over, deep nesting, odd scripts."""

from __future__ import annotations

import base64
import random
from collections.abc import Callable
from functools import cache
from typing import Any

from code_samples import read_samples

__all__ = ["HOSTILE", "hostile"]

# Repeated until the text is long enough.
_UNITS: dict[str, Any] = read_samples("hostile_units")


def _repeated(unit: str) -> Callable[[int], str]:
    return lambda size: (unit * (size // len(unit) + 1))[:size]


def _short_lines(size: int) -> str:
    return "a\n" * (size // 2)


def _growing_indent(size: int) -> str:
    lines, length, depth = [], 0, 0
    while length < size:
        lines.append(" " * depth + "a:")
        length += depth + 3
        depth += 1
    return "\n".join(lines)[:size]


def _nested(opening: str, middle: str, closing: str) -> Callable[[int], str]:
    def text(size: int) -> str:
        depth = (size - len(middle)) // (len(opening) + len(closing))
        return opening * depth + middle + closing * depth

    return text


def _random_text(size: int) -> str:
    made = random.Random(7)
    return "".join(chr(made.randrange(1, 0x250)) for _ in range(size))


def _base64(size: int) -> str:
    return base64.b64encode(random.Random(8).randbytes(size)).decode()[:size]


def _minified(size: int) -> str:
    made = random.Random(9)
    parts, length = [], 0
    while length < size:
        a, b, c = (made.choice("abcdefghijklmnop") for _ in range(3))
        part = f"function {a}{b}({c},{a}){{if({c}=={a}&&!{b})return{{{a}:{c}[{made.randrange(99)}],{b}:'{c}'}};}}"
        parts.append(part)
        length += len(part)
    return "".join(parts)[:size]


def _log_file(size: int) -> str:
    made = random.Random(10)
    parts, length, second = [], 0, 0
    while length < size:
        second += 1
        part = (
            f"2026-03-04T05:{second // 60 % 60:02d}:{second % 60:02d}Z WARN api.gateway[{made.randrange(9999)}] "
            f"GET /v1/users/{made.randrange(10**6)} took {made.randrange(900)}ms status=50{made.randrange(5)}\n"
        )
        parts.append(part)
        length += len(part)
    return "".join(parts)[:size]


def _distinct_words(size: int) -> str:
    return " ".join(f"w{number:x}" for number in range(size // 5))[:size]


def _distinct_names(size: int) -> str:
    return " ".join(f"Name{number:x} uses Tool{number:x}." for number in range(size // 24))[:size]


def _table(size: int) -> str:
    return "| a | b |\n|---|---|\n" + "| 1 | 2 |\n" * (size // 10)


_MADE: dict[str, Callable[[int], str]] = {
    "short-lines": _short_lines, "growing-indent": _growing_indent, "nested-json": _nested('{"a":', "1", "}"),
    "nested-lists": _nested("[", "1", "]"), "nested-round": _nested("(", "a", ")"),
    "nested-xml": _nested("<a>", "b", "</a>"), "nested-each": _nested("{{#each a}}", "b", "{{/each}}"),
    "random-text": _random_text, "base64": _base64, "minified-code": _minified, "log-file": _log_file,
    "distinct-words": _distinct_words, "distinct-names": _distinct_names, "markdown-table": _table,
    "blanks-inside": lambda size: "a" + " " * (size - 2) + "b",
    "newlines-inside": lambda size: "a" + "\n" * (size - 2) + "b",
    "quote-then-word": lambda size: '"' + "a " * (size // 2),
    "fence-never-closed": lambda size: "```python\n" + "x = 1\n" * (size // 6),
}  # fmt: skip

HOSTILE: dict[str, Callable[[int], str]] = {name: _repeated(unit) for name, unit in _UNITS.items()} | _MADE


@cache
def hostile(name: str, size: int = 100_000) -> str:
    """One of the texts, about `size` characters long."""
    return HOSTILE[name](size)
