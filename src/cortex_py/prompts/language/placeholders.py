"""Where the placeholders of a saved text are: `{{…}}` told from plain text, escapes and fenced code. Pure.

Of three or more braces in a row the innermost two count, so that `{{{x}}}` is a placeholder in braces. `\\{{` is
plain text, and `\\\\{{` a placeholder after a backslash. Plain text may hold `}}` only where it closes braces of
its own, as in JSON.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ..errors import Fault

__all__ = ["Mark", "fenced", "split"]

_FENCE = re.compile(r"^ {0,3}(?P<fence>`{3,}+(?!.*`)|~{3,}+).*$", re.MULTILINE)
# A placeholder holds no braces, so that one left open is found where it begins.
_TOKEN = re.compile(r"(?P<slashes>\\{1,2})?(?P<open>\{+)|(?P<close>\}+)")
_INSIDE = re.compile(r"[^{}]*")
# Enough to mend a text by; a hostile one has no end of them.
_FAULTS_MOST = 20


@dataclass(frozen=True, slots=True)
class Mark:
    """A placeholder: what stands between its braces, and where it begins with them and ends."""

    inner: str
    start: int
    end: int


def fenced(content: str) -> tuple[tuple[int, int], ...]:
    """The spans of fenced code blocks, fences included; one that is never closed goes to the end."""
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
    """Plain text and placeholders in order, escapes resolved, and what is wrong with the braces, up to twenty faults.

    What lies in a verbatim span is plain text whatever it holds.
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
            # The braces stay as text; the backslash that says so goes. What they open is closed by plain braces.
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
