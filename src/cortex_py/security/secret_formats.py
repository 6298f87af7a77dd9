"""Secrets known by their own form: the formats of `secret_patterns`, and blocks of private keys."""

from __future__ import annotations

import re
from collections.abc import Iterator

from .secret_patterns import PREFIXED, SHAPED, Check, Prefixed, Shaped, compiled
from .secret_values import Span, is_filler_token, is_jwt_header, is_random, is_reference, is_wordy

__all__ = ["find_formats", "find_key_blocks"]

# Most formats begin a word with a fixed prefix: the word's first characters are looked up, nothing is searched for.
_HEAD = re.compile(r"(?<![A-Za-z0-9+])(?=([A-Za-z0-9]...))")
_HEAD_LENGTH = 4


def _by_head(rows: tuple[Prefixed, ...]) -> dict[str, tuple[Prefixed, ...]]:
    table: dict[str, tuple[Prefixed, ...]] = {}
    for row in rows:
        head = row.prefix[:_HEAD_LENGTH]
        table[head] = (*table.get(head, ()), row)
    return table


_ROWS = _by_head(PREFIXED)
_ANCHORED = tuple((anchor, row) for row in SHAPED for anchor in row.anchors)


def find_formats(text: str, long_words: str) -> Iterator[Span]:
    """Every known format in the text; `long_words` are those of its words that are long enough to hold one."""
    if any(head in _ROWS or head[:3] in _ROWS or head[:2] in _ROWS for head in _HEAD.findall(long_words)):
        yield from _find_prefixed(text)
    for anchor, row in _ANCHORED:
        if anchor in text:
            yield from _find_shaped(row, text)


def _rows_at(head: str) -> tuple[Prefixed, ...]:
    """The rows whose prefix may begin here, longest first; a prefix may be shorter than a head."""
    return _ROWS.get(head, ()) + _ROWS.get(head[:3], ()) + _ROWS.get(head[:2], ())


def _find_prefixed(text: str) -> Iterator[Span]:
    passed: dict[str, int] = {}  # how far each prefix has read, so that no character is read twice for it
    for head in _HEAD.finditer(text):
        start = head.start()
        for row in _rows_at(head[1]):
            if start < passed.get(row.prefix, 0) or not text.startswith(row.prefix, start):
                continue
            if start and row.not_after and text[start - 1] in row.not_after:
                continue
            body = compiled(row.body).match(text, start + len(row.prefix))
            if body is not None:
                passed[row.prefix] = body.end()
                if _passes(row.check, body.group()):
                    yield start, body.end(), row.kind


def _find_shaped(row: Shaped, text: str) -> Iterator[Span]:
    pattern = compiled(row.expression)
    groups = pattern.groupindex
    for match in pattern.finditer(text):
        start, end = match.span("secret" if "secret" in groups else 0)
        body = match["body"] if "body" in groups else text[start:end]
        if _passes(row.check, body):
            yield _widen(text, start) if row.widens else start, end, row.kind


def _passes(check: Check, body: str) -> bool:
    if check is Check.NONE:
        return True
    if check is Check.JWT:
        return is_jwt_header(body)
    if check is Check.UNREADABLE:
        return not is_wordy(body)
    if is_filler_token(body):
        return False
    return check is Check.MIXED or is_random(body, least=8)


def _widen(text: str, start: int) -> int:
    """The start of the word that a match stands in."""
    least = max(0, start - 64)
    while start > least and (text[start - 1].isalnum() or text[start - 1] in "_-.~"):
        start -= 1
    return start


_KEY_BEGIN = re.compile(r"-{4,5} ?BEGIN (?:[A-Z0-9]{1,12} ){0,4}PRIVATE KEY(?: BLOCK)? ?-{4,5}")
_KEY_END = re.compile(r"-{4,5} ?END (?:[A-Z0-9]{1,12} ){0,4}PRIVATE KEY(?: BLOCK)? ?-{4,5}")
_KEY_BODY = re.compile(
    r"""(?:
            (?:\\[nr]|[\s>\#*|"',])*+
            (?:[A-Za-z0-9+/=]{16,}+|(?:Proc-Type|DEK-Info|Version|Comment|Charset|Hash):[^\n\\]{0,120})
        )*+
        (?:(?:\\[nr]|\s)++[A-Za-z0-9+/]{1,15}={0,2}(?=[\s\\"']*\Z))?""",
    re.VERBOSE,
)
_KEY_LINE = re.compile(r"(?:\\n|\r?\n)[ \t]*(?P<line>[^\n\\]{10,200})")
_KEY_RUN = re.compile(r"[A-Za-z0-9+/]{40}")
_LONGEST_KEY = 20_000
_SHORTEST_KEY = 10


def find_key_blocks(text: str) -> Iterator[Span]:
    """Private keys from BEGIN to END, or as far as the key goes when END was cut off."""
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
    """Where a key without END stops: behind its last line of base64, or behind the line that follows BEGIN."""
    body = _KEY_BODY.match(text, start, limit)
    if body is not None and body.end() > start:
        return body.end()
    line = _KEY_LINE.match(text, start, limit)
    return line.end() if line is not None else start
