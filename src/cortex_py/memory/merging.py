"""One text of several, without a language model and without loss: deterministic, and no fact is left behind. Pure.

A fact is what a reader could not guess from the other texts: a number, an identifier, an address, a quotation, a name,
a line of code, a clause that denies something. Whatever holds one that is not there yet is kept word for word.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from .opposites import COMMON

__all__ = ["Piece", "added_numbers", "digest", "facts", "lost_facts", "merge"]

_FENCE = re.compile(r"^[ \t]*(`{3,}|~{3,})")
_BREAK = re.compile(r"(?<=[.!?。！？])[\"'”’)\]]*(?P<gap>\s+)(?=[^\sa-z])")
_QUOTED = re.compile(r"""`[^`\n]+`|"[^"\n]{1,200}"|“[^”\n]{1,200}”""")
_BULLET = re.compile(r"^\s*[-*+•]\s+")
_MARK = re.compile(r"^\s*(?:[-*+•]|\d{1,3}[.)])\s+")
# Runs are looked at from their beginning alone, and are bounded where they are not: a long one is read once.
_TOKEN = re.compile(
    r"""[a-z][a-z0-9+.-]{0,20}://[^\s<>"'`)\]]+"""  # addresses
    r"""|(?<![\w.@+-])(?:~|\.{1,2})?/?(?:[\w.@+-]+/)+[\w.@+-]*"""  # paths
    r"""|`[^`\n]+`|"[^"\n]{1,200}"|“[^”\n]{1,200}”"""  # quotations
    r"""|--?[A-Za-z][\w-]*(?:=\S+)?"""  # flags
    r"""|\$?[\w$€£#@&%°]+(?:[.:,_'’/+-][\w%]+)*%?""",
    re.IGNORECASE,
)
_TELLING = re.compile(r"\d|_|://|/|^[`\"“]|^--?[A-Za-z]|[a-z][A-Z]|[A-Z]{2}|\w\.\w|\w::\w")
_NEGATION = re.compile(
    r"(?i)\b(?:not|no|never|none|neither|nor|nobody|nothing|nowhere|cannot|without|except|unless|avoid|forbidden)\b"
    r"|(?<=\w)n['’]t\b|\b(?:nicht|kein\w*|nie|ohne|pas|jamais|sans|ningún|nunca|sin)\b"
)
_NAME = re.compile(r"(?<![\w'’-])[^\W\d_a-z][\w'’-]+")
_CALL = re.compile(r"(?<![\w.])[\w.]+\([^()\n]{0,200}\)")
_CODE = re.compile(r"[{};]\s*$|[=!<>]=|=>|->|\w = |&&|\|\|")
_SPACES = re.compile(r"\s+")
_WORD = re.compile(r"\w+")
_DENIED = "not: "
_STEM = 4


@dataclass(frozen=True, slots=True)
class Piece:
    """A text to be merged, and when it was written."""

    text: str
    created_at: datetime


def facts(text: str) -> frozenset[str]:
    """What must not be lost of a text: its telling tokens as they are written, and its clauses that deny something."""
    return frozenset(_facts(text).values())


def lost_facts(originals: Iterable[str], merged: str) -> frozenset[str]:
    """Facts of the originals that do not occur in a text; for one that somebody else has merged."""
    flat, said = _flat(merged), f" {' '.join(_words(merged))} "
    present, stems = {*_facts(merged), *_tokens(merged)}, _stems(merged)
    lost: set[str] = set()
    for text in originals:
        for key, written in _facts(text).items():
            denied = key.removeprefix(_DENIED)
            there = f" {denied} " in said if denied != key else _stands_in(written, flat)
            if key not in present and not there:
                lost.add(written)
        lost.update(
            word for part in _segments(text) if (word := _opener(part)) and word.casefold()[:_STEM] not in stems
        )
    return frozenset(lost)


def added_numbers(originals: Iterable[str], merged: str) -> frozenset[str]:
    """What has digits in a text and stands in none of the originals; list marks do not count."""
    told = list(originals)
    known, flat = {token for text in told for token in _tokens(text)}, _flat("\n".join(told))
    numbered = (token for part in _segments(merged) for token in _tokens(_MARK.sub("", part)))
    return frozenset(
        token
        for token in numbered
        if token not in known and any(map(str.isdigit, token)) and not _stands_in(token, flat)
    )


def merge(pieces: Sequence[Piece]) -> str:
    """The fullest of the texts, the newest of equals, and below it what only the others tell."""
    if not pieces:
        return ""
    ordered = sorted(pieces, key=lambda one: (-len(_facts(one.text)), -one.created_at.timestamp(), one.text))
    base = ordered[0].text.strip("\n")
    known, stems = set(_facts(base)), _stems(base)
    more: list[str] = []
    for piece in ordered[1:]:
        for segment in _segments(piece.text):
            told, opener = _facts_of(segment), _opener(segment)
            if not known.issuperset(told) or (opener and opener.casefold()[:_STEM] not in stems):
                more.append(segment)
                known.update(told)
                stems |= _stems(segment)
    return "\n".join([_closed(base), *more]) if more else base


def digest(pieces: Sequence[Piece], topics: Sequence[str] = ()) -> str:
    """A list of what the texts say, oldest first, each statement once and with its date."""
    about = f" on {', '.join(topics)}" if topics else ""
    lines = [f"Summary of {len(pieces)} notes{about}:"]
    known: set[str] = set()
    said: set[str] = set()
    for piece in sorted(pieces, key=lambda one: (one.created_at, one.text)):
        day = piece.created_at.date().isoformat()
        for segment in _segments(piece.text):
            told, statement = _facts_of(segment), " ".join(_words(segment)) or _flat(segment)
            if statement in said and known.issuperset(told):
                continue
            lines.append(_entry(segment, day))
            known.update(told)
            said.add(statement)
    return "\n".join(lines)


def _entry(segment: str, day: str) -> str:
    if "\n" in segment:
        return f"- ({day})\n{segment}"
    return f"- ({day}) {_BULLET.sub('', segment).strip()}"


def _segments(text: str) -> Iterator[str]:
    """Sentences, list entries and blocks of code, as they are written."""
    block: list[str] = []
    fence = ""
    for line in text.splitlines():
        opened = _FENCE.match(line)
        if fence:
            block.append(line)
            if opened and opened[1].startswith(fence):
                yield "\n".join(block)
                block, fence = [], ""
        elif opened:
            block, fence = [line], opened[1]
        elif line.strip():
            yield from _sentences(line.rstrip())
    if block:
        # Never closed: closed here, so that what follows stays outside.
        yield "\n".join([*block, fence])


def _closed(text: str) -> str:
    """A text whose last block of code is closed, so that what follows stays outside."""
    fence = ""
    for line in text.splitlines():
        opened = _FENCE.match(line)
        if not fence:
            fence = opened[1] if opened else ""
        elif opened and opened[1].startswith(fence):
            fence = ""
    return f"{text}\n{fence}" if fence else text


def _sentences(line: str) -> Iterator[str]:
    """The sentences of a line. A number that marks a list entry stays with it, and quotations are not cut."""
    mark = _MARK.match(line)
    quoted = _QUOTED.finditer(line)
    inside = next(quoted, None)
    start = 0
    for found in _BREAK.finditer(line):
        at = found.start("gap")
        while inside and inside.end() <= at:
            inside = next(quoted, None)
        if (mark and at < mark.end()) or (inside and inside.start() < at):
            continue
        yield line[start:at]
        start = found.end()
    yield line[start:]


def _facts(text: str) -> dict[str, str]:
    return {key: fact for segment in _segments(text) for key, fact in _facts_of(segment).items()}


def _facts_of(segment: str) -> dict[str, str]:
    """Facts as they are written, by what makes two the same."""
    if _FENCE.match(segment):
        lines = (_flat(line) for line in segment.splitlines()[1:-1])
        return {line: line for line in lines if line}
    body = _MARK.sub("", segment)
    found = [token for token in _tokens(body) if _TELLING.search(token)]
    # The first word is capitalised by rule, not because it is a name; see `_opener`.
    found += [name for name in _NAME.findall(body.partition(" ")[2]) if not name[0].islower()]
    found += [_flat(call) for call in _CALL.findall(body)]
    if _CODE.search(body):
        found.append(_flat(body))
    told = {fact: fact for fact in found if fact}
    if _NEGATION.search(body):
        told[_DENIED + " ".join(_words(body))] = _flat(body)
    return told


def _tokens(text: str) -> Iterator[str]:
    return (token.rstrip(".,;:!?") for token in _TOKEN.findall(text))


def _opener(segment: str) -> str | None:
    """The first word where it may be a name; it is one unless another text has a word that begins alike."""
    found = _WORD.search(_MARK.sub("", segment)) if not _FENCE.match(segment) else None
    if not found or len(found[0]) < 3 or not found[0][0].isupper():
        return None
    return None if found[0].casefold() in COMMON or _NEGATION.match(found[0]) else found[0]


def _stems(text: str) -> set[str]:
    """How the words of a text begin."""
    words = set(_words(text))
    return {word[:_STEM] for word in words} | {word[: _STEM - 1] for word in words}


def _stands_in(fact: str, flat: str) -> bool:
    """Whether a fact occurs in a text by itself, not as a part of a longer number, name or path."""
    inner = re.escape(_flat(fact).strip('`"“”'))
    return bool(re.search(rf"(?<!\w)(?<!\w[.,:/'’-]){inner}(?!\w)(?![.,:/'’-]\w)", flat))


def _words(segment: str) -> list[str]:
    return [word.casefold() for word in _WORD.findall(segment)]


def _flat(text: str) -> str:
    return _SPACES.sub(" ", text).strip().rstrip(".,;:!?")
