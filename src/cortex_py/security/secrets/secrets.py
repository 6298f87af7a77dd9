"""Find secrets in text, and take them out, before anything is stored or embedded.

`find_secrets` tells where secrets are and of what kind; `redact` puts `[REDACTED:kind]` in their place. Both are
pure functions of the text. What a secret looks like is in `secret_formats`, the names it is given in `secret_names`,
the places it stands in in `secret_context`, the judgement of one value in `secret_values`; here they are run, merged
and applied. The text of a secret goes nowhere.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from .secret_context import find_in_commands, find_in_headers, find_in_manifests, find_in_urls
from .secret_formats import find_formats, find_key_blocks
from .secret_names import NAME_HINTS, find_assigned, find_random_near_names
from .secret_values import Span

__all__ = ["Finding", "Redaction", "find_secrets", "redact"]


@dataclass(frozen=True, slots=True)
class Finding:
    """Where a secret is, and of what kind; never what it is."""

    kind: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Redaction:
    """The text without its secrets; the findings count characters of the original."""

    text: str
    findings: tuple[Finding, ...]


_MARKER = re.compile(r"\[REDACTED:[a-z0-9-]{1,40}\]")
_SHORTEST_TOKEN = 13
_SHORTEST_RUN = 20
_ROUNDS = 6


def find_secrets(text: str) -> tuple[Finding, ...]:
    """Every secret in the text, in order and without overlap."""
    return _settle(text)[0]


def redact(text: str) -> Redaction:
    """The text with each secret replaced by `[REDACTED:kind]`; redacting the result finds nothing more."""
    findings, clean = _settle(text)
    return Redaction(clean, findings)


def _settle(text: str) -> tuple[tuple[Finding, ...], str]:
    """Scan until the redacted text is clean: taking one secret out can leave a piece of another in the open."""
    findings = _merge(_scan(text))
    for _ in range(_ROUNDS):
        if not findings:
            return (), text
        clean = _apply(text, findings)
        more = list(_scan(clean))
        if not more:
            return findings, clean
        known = [(finding.start, finding.end, finding.kind) for finding in findings]
        findings = _merge([*known, *_to_original(more, findings)])
    everything = (Finding("secret", 0, len(text)),)
    return everything, _apply(text, everything)


def _apply(text: str, findings: tuple[Finding, ...]) -> str:
    pieces: list[str] = []
    done = 0
    for finding in findings:
        pieces += (text[done : finding.start], _marker(finding))
        done = finding.end
    pieces.append(text[done:])
    return "".join(pieces)


def _marker(finding: Finding) -> str:
    return f"[REDACTED:{finding.kind}]"


def _to_original(spans: Iterable[Span], findings: tuple[Finding, ...]) -> Iterator[Span]:
    """Spans of the redacted text in places of the original; one that touches a marker takes its secret along."""
    marked: list[tuple[int, int]] = []
    grown = 0
    for finding in findings:
        begin = finding.start + grown
        marked.append((begin, begin + len(_marker(finding))))
        grown = marked[-1][1] - finding.end

    begins = [begin for begin, _ in marked]

    def place(position: int) -> tuple[int, int]:
        """The original characters behind one character of the redacted text."""
        before = bisect_right(begins, position) - 1
        if before < 0:
            return position, position + 1
        if position < marked[before][1]:
            return findings[before].start, findings[before].end
        moved = position - marked[before][1] + findings[before].end
        return moved, moved + 1

    for start, end, kind in spans:
        yield place(start)[0], place(end - 1)[1], kind


def _merge(spans: Iterable[Span]) -> tuple[Finding, ...]:
    """Overlapping spans become one, of the kind that was named first."""
    ranked = sorted((start, end, rank, kind) for rank, (start, end, kind) in enumerate(spans))
    merged: list[tuple[int, int, int, str]] = []
    for start, end, rank, kind in ranked:
        if merged and start < merged[-1][1]:
            before = merged[-1]
            named = min((before[2], before[3]), (rank, kind))
            merged[-1] = (before[0], max(before[1], end), *named)
        else:
            merged.append((start, end, rank, kind))
    return tuple(Finding(kind, start, end) for start, end, _, kind in merged)


def _scan(text: str) -> Iterator[Span]:
    """All spans that any rule names, most specific rules first."""
    if "[REDACTED:" in text:
        text = _MARKER.sub(lambda marker: "\0" * len(marker.group()), text)
    if "PRIVATE KEY" in text:
        yield from find_key_blocks(text)
    words = [word for word in text.split() if len(word) >= _SHORTEST_TOKEN]
    longest = max(map(len, words), default=0)
    if words:
        yield from find_formats(text, " ".join(words))
        if "://" in text and "@" in text:
            yield from find_in_urls(text)
    lower = _lower(text)
    named = any(hint in lower for hint in NAME_HINTS)
    if named:
        if "authorization" in lower or "bearer" in lower or "basic" in lower:
            yield from find_in_headers(text, lower)
        yield from find_assigned(text, lower)
    if longest >= _SHORTEST_RUN:
        yield from find_random_near_names(text, lower)
    if named or " -" in text:
        yield from find_in_commands(text)
    if "Secret" in text and "kind" in text:
        yield from find_in_manifests(text)


def _lower(text: str) -> str:
    """Lower case with every character in its place."""
    lower = text.lower()
    if len(lower) == len(text):
        return lower
    return "".join(small if len(small := character.lower()) == 1 else character for character in text)
