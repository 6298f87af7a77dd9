"""Finds and removes secrets in text, before anything is stored or embedded.

`find_secrets` returns the position and kind of each secret; `redact` replaces them by `[REDACTED:kind]`. Both are pure
functions of the text. `formats` knows the formats of providers, `names` the names of secrets, `context` the places they
appear in, and `values` judges a single value; this module runs them and merges their findings.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeVar

from ...lazy import regex

if TYPE_CHECKING:
    from .values import Span

__all__ = ["Redaction", "SensitiveSpan", "cached_if_empty", "find_key_blocks", "find_secrets", "mask", "redact"]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class SensitiveSpan:
    """Where a secret is, and of what kind; never what it is."""

    kind: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Redaction:
    """The text without its secrets; the findings count characters of the original."""

    text: str
    findings: tuple[SensitiveSpan, ...]


_MARKER = regex(r"\[REDACTED:[a-z0-9-]{1,40}\]")
_SHORTEST_TOKEN = 13
_SHORTEST_RUN = 20
_ROUNDS = 6
# A text without any of these has none of the names that `names` knows.
_HINTS = """
    pass pw secret token key auth cred mnemonic phrase connection session cookie bearer login dsn
    kennwort contraseña senha пароль 密 パスワード
"""
_NAME_HINTS = tuple(_HINTS.split())


def find_secrets(text: str) -> tuple[SensitiveSpan, ...]:
    """Every secret in the text, in order and without overlap."""
    return _settle(text)[0]


def redact(text: str) -> Redaction:
    """The text with each secret replaced by `[REDACTED:kind]`; redacting the result finds nothing more."""
    findings, clean = _settle(text)
    return Redaction(clean, findings)


def _settle(text: str) -> tuple[tuple[SensitiveSpan, ...], str]:
    """Scan until the redacted text is clean: removing one secret can expose a piece of another."""
    findings = _merge(_scan(text))
    for _ in range(_ROUNDS):
        if not findings:
            return (), text
        clean = mask(text, findings)
        more = list(_scan(clean))
        if not more:
            return findings, clean
        known = [(finding.start, finding.end, finding.kind) for finding in findings]
        findings = _merge([*known, *_to_original(more, findings)])
    everything = (SensitiveSpan("secret", 0, len(text)),)
    return everything, mask(text, everything)


def mask(text: str, findings: Iterable[SensitiveSpan], *, keep_lines: bool = False) -> str:
    """The text with a marker in the place of each finding, if asked with all its line feeds."""
    pieces: list[str] = []
    done = 0
    for finding in findings:
        feeds = text.count("\n", finding.start, finding.end) if keep_lines else 0
        pieces += (text[done : finding.start], _marker(finding), "\n" * feeds)
        done = finding.end
    return "".join((*pieces, text[done:])) if done else text


def _marker(finding: SensitiveSpan) -> str:
    return f"[REDACTED:{finding.kind}]"


class _Found(Exception):
    def __init__(self, found: tuple[Any, ...]) -> None:
        super().__init__()
        self.found = found


def cached_if_empty(size: int) -> Callable[[Callable[[str], tuple[T, ...]]], Callable[[str], tuple[T, ...]]]:
    """Cache so many texts in which a function finds nothing: others stay in memory no longer than necessary."""

    def decorate(find: Callable[[str], tuple[T, ...]]) -> Callable[[str], tuple[T, ...]]:
        @lru_cache(maxsize=size)
        def check(text: str) -> None:
            if found := find(text):
                raise _Found(found)

        def look(text: str) -> tuple[T, ...]:
            try:
                check(text)
            except _Found as error:
                return error.found
            return ()

        return look

    return decorate


def _to_original(spans: Iterable[Span], findings: tuple[SensitiveSpan, ...]) -> Iterator[Span]:
    """Map spans of the redacted text to the original; a span that touches a marker includes its secret."""
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


def _merge(spans: Iterable[Span]) -> tuple[SensitiveSpan, ...]:
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
    return tuple(SensitiveSpan(kind, start, end) for start, end, _, kind in merged)


def _scan(text: str) -> Iterator[Span]:
    """All spans that any rule names, most specific rules first.

    Rules are imported where a text needs them: most short texts need none, and the rules take long to load.
    """
    if "[REDACTED:" in text:
        text = _MARKER.sub(lambda marker: "\0" * len(marker.group()), text)
    if "PRIVATE KEY" in text:
        yield from find_key_blocks(text)
    words = [word for word in text.split() if len(word) >= _SHORTEST_TOKEN]
    longest = max(map(len, words), default=0)
    if words:
        from .formats import find_formats

        yield from find_formats(text, words)
        if "://" in text and "@" in text:
            from .context import find_in_urls

            yield from find_in_urls(text)
    lower = _lower(text)
    named = any(hint in lower for hint in _NAME_HINTS)
    if named:
        from .context import find_in_headers
        from .names import find_assigned

        if "authorization" in lower or "bearer" in lower or "basic" in lower:
            yield from find_in_headers(text, lower)
        yield from find_assigned(text, lower)
        if "phrase" in lower or "mnemonic" in lower:
            from .context import find_seed_phrases

            yield from find_seed_phrases(text, lower)
    if longest >= _SHORTEST_RUN:
        from .names import find_random_near_names

        yield from find_random_near_names(text, lower)
    if named or " -" in text:
        from .context import find_in_commands

        yield from find_in_commands(text)
    if "Secret" in text and "kind" in text:
        from .context import find_in_manifests

        yield from find_in_manifests(text)


def _lower(text: str) -> str:
    """Lower case with every character in its place."""
    lower = text.lower()
    if len(lower) == len(text):
        return lower
    return "".join(small if len(small := character.lower()) == 1 else character for character in text)


# -- Blocks of private keys, whole or cut off ------------------------------------------------------


_KEY_BEGIN = regex(r"-{4,5} ?BEGIN (?:[A-Z0-9]{1,12} ){0,4}PRIVATE KEY(?: BLOCK)? ?-{4,5}")
_KEY_END = regex(r"-{4,5} ?END (?:[A-Z0-9]{1,12} ){0,4}PRIVATE KEY(?: BLOCK)? ?-{4,5}")
_KEY_BODY = regex(
    r"""(?:
            (?:\\[nr]|[\s>\#*|"',])*+
            (?:[A-Za-z0-9+/=]{16,}+|(?:Proc-Type|DEK-Info|Version|Comment|Charset|Hash):[^\n\\]{0,120})
        )*+
        (?:(?:\\[nr]|\s)++[A-Za-z0-9+/]{1,15}={0,2}(?=[\s\\"']*\Z))?""",
    re.VERBOSE,
)
_KEY_LINE = regex(r"(?:\\n|\r?\n)[ \t]*(?P<line>[^\n\\]{10,200})")
_KEY_RUN = regex(r"[A-Za-z0-9+/]{40}")
_LONGEST_KEY = 20_000
_SHORTEST_KEY = 10


def find_key_blocks(text: str) -> Iterator[Span]:
    """Private keys from BEGIN to END, or as far as the key goes when END was cut off."""
    from .values import is_filler_token, is_reference

    begins = list(_KEY_BEGIN.finditer(text))
    ends = [match.span() for match in _KEY_END.finditer(text)]
    nearest = 0
    for place, begin in enumerate(begins):
        while nearest < len(ends) and ends[nearest][0] < begin.end():
            nearest += 1
        limit = begins[place + 1].start() if place + 1 < len(begins) else len(text)
        if nearest < len(ends) and ends[nearest][0] <= min(limit, begin.end() + _LONGEST_KEY):
            body, stop = text[begin.end() : ends[nearest][0]], ends[nearest][1]
        else:
            stop = _cut_off(text, begin.end(), limit)
            body = text[begin.end() : stop]
        filler = not _KEY_RUN.search(body) and (is_filler_token(body) or is_reference(body.strip(), quoted=True))
        if sum(not character.isspace() for character in body) >= _SHORTEST_KEY and not filler:
            yield begin.start(), stop, "private-key"


def _cut_off(text: str, start: int, limit: int) -> int:
    """Where a key without END stops: after its last line of base64, or after the line that follows BEGIN."""
    body = _KEY_BODY.match(text, start, limit)
    if body is not None and body.end() > start:
        return body.end()
    line = _KEY_LINE.match(text, start, limit)
    return line.end() if line is not None else start
