"""Texts of any size that make careless parsers slow: one short unit over and over, deep nesting, odd scripts."""

from __future__ import annotations

import base64
import random
from collections.abc import Callable
from functools import cache

__all__ = ["HOSTILE", "hostile"]

# Repeated until the text is long enough.
_UNITS: dict[str, str] = {
    # One character.
    "open-square": "[",
    "close-square": "]",
    "open-round": "(",
    "close-round": ")",
    "open-curly": "{",
    "close-curly": "}",
    "less-than": "<",
    "greater-than": ">",
    "double-quote": '"',
    "single-quote": "'",
    "backtick": "`",
    "curly-quote": "“",
    "blank": " ",
    "newline": "\n",
    "carriage-return": "\r",
    "tab": "\t",
    "full-stop": ".",
    "comma": ",",
    "question": "?",
    "exclamation": "!",
    "hyphen": "-",
    "underscore": "_",
    "star": "*",
    "hash": "#",
    "pipe": "|",
    "tilde": "~",
    "backslash": "\\",
    "slash": "/",
    "equals": "=",
    "colon": ":",
    "semicolon": ";",
    "at": "@",
    "dollar": "$",
    "percent": "%",
    "ampersand": "&",
    "plus": "+",
    "ellipsis": "…",
    "no-break-space": "\u00a0",
    "one-lower": "a",
    "one-upper": "A",
    "one-digit": "1",
    "one-control": "\x01",
    "line-separator": "\u2028",
    # Short sequences.
    "question-blank": "? ",
    "stop-blank": ". ",
    "comma-blank": ", ",
    "blank-newline": " \n",
    "newline-tab": "\n\t",
    "carriage-newline": "\r\n",
    "bullet": "- ",
    "heading": "# ",
    "heading-line": "# \n",
    "quote-line": "> ",
    "table-cell": "| ",
    "fence": "``` ",
    "fence-line": "```\n",
    "double-curly": "{{",
    "curly-percent": "{%",
    "each-open": "{{#each a}}",
    "placeholder": "{{a}} ",
    "double-square": "[[",
    "link-middle": "](",
    "link": "[a](b) ",
    "image": "![",
    "tag-open": "<a ",
    "tag-pair": "<a></a>",
    "comment-open": "<!--",
    "entity": "&amp;",
    "address-middle": "://",
    "address": "https://a.b/c ",
    "mail-start": "a@",
    "numbered": "1.",
    "numbered-line": "1. a\n",
    "zero-comma": "0,",
    "word-lower": "a ",
    "word-upper": "A ",
    "camel": "aA",
    "dotted-names": "A.B ",
    "dotted": "a.",
    "snake": "_a",
    "call": "foo(",
    "call-closed": "foo() ",
    "definition": "def ",
    "class": "class A:\n",
    "import": "import ",
    "if": "if ",
    "not": "not ",
    "and": "and ",
    "task-line": "- [ ] a\n",
    "key-value": "key: value\n",
    "assignment": "a = 1\n",
    "section": "[a]\n",
    "user-turn": "User: a\n",
    "user-label": "User: ",
    "human-label": "Human: ",
    "bold": "**a** ",
    "negation": "we do not use it. ",
    "decision": "We decided to use Redis because it is fast. ",
    "uses": "Api uses Redis and Kafka, ",
    # Scripts and marks.
    "cjk": "数据库",
    "cjk-stop": "数。",
    "emoji-joined": "👩\u200d💻",
    "combining": "e\u0301",
    "combining-only": "\u0301",
    "right-to-left": "שלום ",
    "zero-width": "a\u200b",
    "mixed-scripts": "aбγ漢",
    "turkish": "İi",
    # Things that repeat in real files.
    "date": "2024-01-31 ",
    "version": "1.2.3 ",
    "number": "12345 ",
    "percentages": "10% 5ms ",
    "path": "src/a/b.py ",
    "path-deep": "a/",
    "symbol": "Foo::bar() ",
    "memory-link": "[[memory:abc]] ",
    "json-pair": '{"a":1},',
    "xml-deep": "<a>",
    "json-deep": '{"a":[',
    "yaml-deep": "- - ",
    "html-entity-open": "&#",
    "escape": "\\u0041",
    "pem": "-----BEGIN ",
    "diff-line": "@@ -1 +1 @@\n",
}


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
