"""Placeholders of saved texts: `{{…}}` outside fenced code, shared by prompts and templates; and filling prompts. Pure.

Of three or more braces in a row the innermost two count, so that `{{{x}}}` is a placeholder in braces. A backslash
before `{{` makes it plain text, and two a placeholder after a backslash. Plain text may contain `}}` only if it closes
braces of its own, as in JSON.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ....core.errors import ContentSyntaxError, Fault, InvalidInput, LimitExceeded
from ....core.records import JsonValue

__all__ = [
    "FILLED_MOST",
    "NAME_LONGEST",
    "RESERVED_PREFIXES",
    "Blanks",
    "Mark",
    "check_name",
    "fenced",
    "find_blanks",
    "shown",
    "singular",
    "split",
    "value_text",
]

# The variables that Cortex fills in itself.
AUTOMATIC = ("memories", "total_count", "namespace_counts", "statistics", "project", "branch", "now")
NAME_LONGEST = 64
RESERVED_PREFIXES = ("__", "cortex_", "subcog_", "system_")
_SHOWN = 40


def check_name(name: str) -> str | None:
    """What is wrong with a name, or None."""
    if not name:
        return "A name is missing."
    if len(name) > NAME_LONGEST:
        return f"The name {shown(name)} is longer than {NAME_LONGEST} characters."
    if not name.isidentifier():
        return f"{shown(name)} is not a valid name; use letters, digits and underscores, and begin with no digit."
    if name.startswith(RESERVED_PREFIXES):
        return f"The name {shown(name)} is reserved: none may begin with {', '.join(RESERVED_PREFIXES)}."
    return None


def shown(text: str) -> str:
    """A text for a message: in quotes, on one line, shortened."""
    return repr(text if len(text) <= _SHOWN else text[:_SHOWN] + "…")


def singular(name: str) -> str | None:
    """`memories` gives `memory` and `users` gives `user`; None for other endings."""
    if name.endswith("ies") and len(name) > 3:
        return name[:-3] + "y"
    if name.endswith("s") and not name.endswith("ss") and len(name) > 1:
        return name[:-1]
    return None


# Characters of a filled-in prompt; more than any model reads.
FILLED_MOST = 1_000_000

_FENCE = re.compile(r"^ {0,3}(?P<fence>`{3,}+(?!.*`)|~{3,}+).*$", re.MULTILINE)
# A placeholder contains no braces, so that an unclosed one is reported where it begins.
_TOKEN = re.compile(r"(?P<slashes>\\{1,2})?(?P<open>\{+)|(?P<close>\}+)")
_INSIDE = re.compile(r"[^{}]*")
# Enough to correct a text; a hostile one could have any number.
_FAULTS_MOST = 20


@dataclass(frozen=True, slots=True)
class Mark:
    """A placeholder: the text between its braces, and its start and end including them."""

    inner: str
    start: int
    end: int


def fenced(content: str) -> tuple[tuple[int, int], ...]:
    """The spans of fenced code blocks, fences included; an unclosed one extends to the end."""
    spans: list[tuple[int, int]] = []
    opened: tuple[int, str] | None = None
    for match in _FENCE.finditer(content):
        fence = match["fence"]
        if opened is None:
            opened = (match.start(), fence)
        elif fence[0] == opened[1][0] and len(fence) >= len(opened[1]) and not match[0].strip().strip(fence[0]):
            spans.append((opened[0], match.end()))
            opened = None
    if opened is not None:
        spans.append((opened[0], len(content)))
    return tuple(spans)


def split(content: str, verbatim: Sequence[tuple[int, int]] = ()) -> tuple[list[str | Mark], list[Fault]]:
    """Plain text and placeholders in order, with escapes resolved, and up to twenty faults of the braces.

    Verbatim spans are plain text.
    """
    parts: list[str | Mark] = []
    faults: list[Fault] = []
    at = 0
    for start, end in (*verbatim, (len(content), len(content))):
        if len(faults) < _FAULTS_MOST:
            _split_span(content, at, start, parts, faults)
        parts.append(content[start:end])
        at = end
    return [part for part in parts if part != ""], faults


def _split_span(content: str, at: int, end: int, parts: list[str | Mark], faults: list[Fault]) -> None:
    depth = 0
    for_text = at
    while len(faults) < _FAULTS_MOST and (match := _TOKEN.search(content, at, end)):
        at = match.end()
        if match["close"]:
            depth -= len(match["close"])
            if depth < 0 and len(match["close"]) > 1:
                faults.append(Fault.at(content, match.start(), "`}}` closes nothing; `{{` is missing before it."))
            depth = max(depth, 0)
            continue
        braces, slashes = len(match["open"]), match["slashes"] or ""
        if braces == 1:
            depth += 1
            continue
        if slashes == "\\":
            # The braces stay as text, the backslash goes. Plain braces close what they open.
            parts.append(content[for_text : match.start()])
            for_text = match.start() + 1
            depth += braces
            continue
        opening = match.end() - 2
        parts.append(content[for_text : opening - len(slashes) // 2 if braces == 2 else opening])
        depth += braces - 2
        inside = _INSIDE.match(content, at, end)
        closing = inside.end() if inside else at
        if not content.startswith("}}", closing, end):
            faults.append(Fault.at(content, opening, "`{{` is never closed."))
            for_text = opening
            continue
        parts.append(Mark(content[at:closing], opening, closing + 2))
        at = for_text = closing + 2
    parts.append(content[for_text:end])


@dataclass(frozen=True, slots=True)
class Blanks:
    """A parsed prompt: plain text and placeholders, and the names of the variables."""

    parts: tuple[str | Mark, ...]
    names: tuple[str, ...]

    def fill(self, values: Mapping[str, str]) -> str:
        """The text with its values, in which placeholders are not expanded; missing values are empty."""
        texts = [values.get(part.inner.strip(), "") if isinstance(part, Mark) else part for part in self.parts]
        if sum(map(len, texts)) > FILLED_MOST:
            raise LimitExceeded(
                f"The filled-in prompt is longer than {FILLED_MOST:,} characters.",
                remedy="Give shorter values.",
                field="variables",
            )
        return "".join(texts)


def find_blanks(content: str) -> Blanks:
    """The placeholders of a prompt, each name once, in order of appearance; ContentSyntaxError for a bad prompt."""
    parts, faults = split(content, fenced(content))
    names: dict[str, None] = {}
    for part in parts:
        if isinstance(part, Mark):
            name = part.inner.strip()
            if fault := check_name(name):
                faults.append(Fault.at(content, part.start, fault))
                if len(faults) >= 20:
                    break
            names[name] = None
    if faults:
        remedy = "Write \\{{ for braces that are meant as text."
        raise ContentSyntaxError("prompt", faults, remedy=remedy)
    return Blanks(tuple(parts), tuple(names))


def value_text(name: str, value: JsonValue) -> str:
    """A value as it appears in the text: text as it is, anything else as JSON."""
    if isinstance(value, str):
        return value
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    except (ValueError, TypeError, RecursionError) as error:
        raise InvalidInput(f"The value of {name[:64]!r} is not JSON.", field="variables") from error
