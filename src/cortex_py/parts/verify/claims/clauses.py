"""Splits a sentence into atomic clauses, each with all words that belong to it. Pure.

"Added X to a.py and removed Y from b.py" says two things. So does "implemented login and logout in auth.py", and both
are in auth.py: a clause is a list of pieces of the sentence, and clauses can share pieces. In doubt, words stay
together.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice, pairwise

from ..words import load_pattern
from .mentions import Mention
from .passages import Span
from .verbs import CHANGES, Verb, begins_with_action, find_verb, has_finite_verb

__all__ = ["Clause", "split_clauses"]


@dataclass(frozen=True, slots=True)
class Clause:
    """The spans of its words, in order; `own` is the span that no other clause shares."""

    pieces: tuple[Span, ...]
    own: Span


_JOINT = load_pattern("claims", "joint", 0)
_OPENER = load_pattern("claims", "opener")
_PROMISE = re.compile(r"(?:I['’]ll|we['’]ll|will|should|plan|let['’]s)\b", re.I)
_RELATIVE = re.compile(r"\b(?:which|that|who|whose|where|to|when|if|because|so|as|how|whether|for|with)\b", re.I)
_BE = load_pattern("claims", "clauses_be")
_PLACE = load_pattern("claims", "place")
_AT_FILE = load_pattern("claims", "at_file")
_WITH = re.compile(r"\s(?:with|using|via|by|for)\s", re.I)
_LEADING = re.compile(r"(?:in|inside|within|for|under)\s+[^,;]{1,120}?,\s+", re.I)
_DETERMINER = re.compile(r"(?:an?|the|some|new|its|our|two|three|\d+)\s", re.I)
_APART = re.compile(r"\b(?:between|both|either|from)\b[^,]*$", re.I)
_CLOSED = re.compile(r"`[^`\n]*`|\([^()\n]*\)")
_FINITE = load_pattern("claims", "finite")
_ELSEWHERE = re.compile(r"test|spec|\.(?:md|rst|txt|lock)$", re.I)
_MOST_ITEMS = 24  # of one sentence; the rest of a longer enumeration stays in one clause


def split_clauses(text: str, span: Span, found: Sequence[Mention], listed: bool = False) -> list[Clause]:
    """The clauses of the sentence in this span, in order."""
    joints = _joints(text, span, found)
    counted = [m.start for m in found if m.kind == "tests"]
    tests = set(counted) if len(counted) == 1 else set()  # "…, and 14 passing tests"
    begins = [joint for joint in joints
              if (joint["word"] and joint.end() in tests) or _begins_clause(text, span, joint, joints)]  # fmt: skip
    starts = [span[0], *(joint.end() for joint in begins)]
    ends = {joint.end(): joint.start() for joint in joints}
    parts = [(a, ends[b]) for a, b in pairwise(starts)] + [(starts[-1], span[1])]
    subject = _subject(text, parts[0], found) if len(parts) > 1 else None
    clauses = []
    for number, part in enumerate(parts):
        shared = _shared(text, parts, number, found)
        if number and subject is not None and shared == (None, None):
            if pronoun := _PRONOUN.match(text, *part):
                shared, part = (subject, None), (pronoun.end(), part[1])
            elif _NO_SUBJECT.match(text, *part):
                shared = (subject, None)
        clauses += [_with(clause, shared) for clause in _items(text, part, found, joints, listed)]
    return clauses


_OPEN_CONDITION = re.compile(r"\b(?:if|when|unless|whether|both|either|between)\b[^,;:]*$", re.I)
_PRONOUN = re.compile(r"(?:otherwise\s+|then\s+)?it\s+", re.I)
_NO_SUBJECT = re.compile(r"(?:(?:also|then|only|still|now)\s+)*(?:does|is|was|has|can|cannot|will|must|never)\b", re.I)
_LONGEST_SUBJECT = 6  # words


def _subject(text: str, first: Span, found: Sequence[Mention]) -> Span | None:
    """What the first clause is about, if it begins with that and names it: "`f` returns 1, and it never raises"."""
    verb, finite = find_verb(text, *first), _FINITE.search(text, *first)
    places = [place for place in (verb and verb.start, finite and finite.start()) if place is not None]
    if not places or min(places) <= first[0]:
        return None
    span = (first[0], min(places))
    words = text[slice(*span)]
    if len(words.split()) > _LONGEST_SUBJECT or "," in words or _RELATIVE.search(words):
        return None
    return span if _has_mention(found, span, ("symbol", "file")) else None


def _with(clause: Clause, shared: tuple[Span | None, Span | None]) -> Clause:
    before, after = shared
    return Clause((*((before,) if before else ()), *clause.pieces, *((after,) if after else ())), clause.own)


def _joints(text: str, span: Span, found: Sequence[Mention]) -> list[re.Match[str]]:
    """Where the sentence can be split: never inside a mention, a quotation or brackets."""
    closed = [(m.start, m.end) for m in found if m.kind not in ("number", "tests", "dependency")]
    closed += [match.span() for match in _CLOSED.finditer(text, *span)]
    return [
        joint
        for joint in islice(_JOINT.finditer(text, *span), _MOST_ITEMS)
        if not any(start < joint.end() and joint.start() < end and start <= joint.start() for start, end in closed)
    ]


def _begins_clause(text: str, span: Span, joint: re.Match[str], joints: Sequence[re.Match[str]]) -> bool:
    """Whether both sides of the joint have a verb."""
    end = next((other.start() for other in joints if other.start() >= joint.end()), span[1])
    right = text[joint.end() : end]
    left = text[span[0] : joint.start()]
    left_verb = find_verb(text, span[0], joint.start(), listed=True)
    if left_verb is None and not has_finite_verb(left):
        return False
    if joint["semicolon"] or _PROMISE.match(right):
        return True
    if joint["word"] and "," not in joint[0] and _OPEN_CONDITION.search(left):
        return False  # "if both `a` and `b` are given": still part of the condition
    opener = _OPENER.match(right)
    at = joint.end() + (opener.end() if opener else 0)
    verb = find_verb(text, at, end, listed=left_verb is not None and left_verb.form == "base")
    if verb is not None and verb.form == "noun":
        verb = None
    if verb is not None and verb.start == at and verb.form != "s":
        return verb.type in CHANGES or joint["comma"] is None
    if (
        (left_verb is None or left_verb.form in ("s", "noun"))
        and joint["word"]
        and begins_with_action(text, at, end, common="," in joint[0] or "then" in joint[0])
    ):
        return len(text[at:end].split()) > 1 or "then" in joint[0]
    if joint["comma"] is not None and at == joint.end():
        return False
    return _own_subject(text, joint.end(), end, verb)


def _own_subject(text: str, start: int, end: int, verb: Verb | None) -> bool:
    """ "and the parser now rejects it": a few words, then a verb outside any relative clause."""
    finite = _FINITE.search(text, start, end)
    places = [place for place in (verb and verb.start, finite and finite.start()) if place is not None]
    if not places:
        return False
    before = text[start : min(places)]
    if not before.strip():
        return finite is not None and finite.start() == min(places)
    return len(before.split()) <= 6 and not _RELATIVE.search(before)


def _shared(text: str, parts: Sequence[Span], number: int, found: Sequence[Mention]) -> tuple[Span | None, Span | None]:
    """What a clause without a file shares: "In auth.py, …" before the first, or "… in auth.py" after the last."""
    part, first = parts[number], parts[0]
    verb = find_verb(text, *first) if number and begins_with_action(text, *part) else None
    if verb is not None and verb.start > first[0]:
        return (first[0], verb.start), None  # the subject
    if len(parts) == 1 or _file_in(found, part):
        return None, None
    leading = _LEADING.match(text, *first)
    if number and leading and _file_in(found, leading.span()):
        return (leading.start(), leading.end()), None
    return None, None if number else _shared_after(text, parts, found)


def _shared_after(text: str, parts: Sequence[Span], found: Sequence[Mention]) -> Span | None:
    """Only for a short first clause: in "fixed the login form and added a test in …" only the test is there."""
    if len(parts) != 2 or _PLACE.search(text, *parts[0]) or len(text[slice(*parts[0])].split()) > 6:
        return None
    file = _file_in(found, parts[1])
    if file is None or _ELSEWHERE.search(file.value):
        return None
    before = _AT_FILE.search(text, parts[1][0], file.start)
    inside = before is not None and before[0].split()[0].lower() in ("in", "within", "inside", "under")
    return (before.start() + 1, parts[1][1]) if before and inside else None


def _file_in(found: Sequence[Mention], span: Span) -> Mention | None:
    return next((m for m in found if m.kind == "file" and span[0] <= m.start and m.end <= span[1]), None)


def _items(
    text: str, part: Span, found: Sequence[Mention], joints: Sequence[re.Match[str]], listed: bool
) -> list[Clause]:
    """One clause for each item of an enumeration."""
    whole = [Clause((part,), part)]
    verb = find_verb(text, *part, listed=listed)
    inner = [
        joint for joint in joints if part[0] <= joint.start() and joint.end() <= part[1] and not joint["semicolon"]
    ]
    if verb is None or not inner:
        return whole
    be = _BE.search(text, part[0], verb.start)
    if be is not None:
        items = _parted((part[0], be.start()), inner)
        rest = (be.start(), part[1])
        if len(items) > 1 and all(_has_mention(found, item) for item in items):
            return [Clause((item, rest), item) for item in items]
        return whole
    items = _parted((verb.end, part[1]), inner)
    packages = all(_has_mention(found, item, ("dependency",)) for item in items)
    if (verb.type not in CHANGES or verb.form == "s") and not packages:
        return whole
    if len(items) < 2 or not _separable(text, items, found):
        return whole
    head = (part[0], verb.end)
    return [Clause((head, item, *_tail(text, item, items[-1], found)), item) for item in items]


def _parted(region: Span, joints: Sequence[re.Match[str]]) -> list[Span]:
    inside = [joint for joint in joints if region[0] < joint.start() and joint.end() < region[1]]
    # Commas alone do not make a list: "added caching, again".
    if not any("and" in (joint["word"] or "") or "plus" in (joint["word"] or "") for joint in inside):
        return [region]
    starts = [region[0], *(joint.end() for joint in inside)]
    ends = [*(joint.start() for joint in inside), region[1]]
    return list(zip(starts, ends, strict=True))


_NAMES = ("file", "symbol", "dependency", "command", "quote")


def _has_mention(found: Sequence[Mention], span: Span, kinds: Sequence[str] = _NAMES, least: int = 1) -> bool:
    return sum(m.kind in kinds and span[0] <= m.start and m.end <= span[1] for m in found) >= least


def _separable(text: str, items: Sequence[Span], found: Sequence[Mention]) -> bool:
    """Whether each item makes sense alone; those of "unit and integration tests" do not."""
    shown = [text[a:b].strip() for a, b in items]
    if _APART.search(shown[0]) and not all(_has_mention(found, item) for item in items):
        return False
    # An enumeration after a preposition belongs to it, not to the verb: "for users and admins".
    loose = [_PLACE.split(f" {item}", maxsplit=1)[0].strip() for item in shown]
    if any(not words for words in loose) or any(_RELATIVE.match(item) for item in shown):
        return False
    if any(_WITH.search(item) for item in shown[:-1]):
        return False
    placed = [span for item, span in zip(shown[:-1], items[:-1], strict=True) if _PLACE.search(item)]
    if not all(_file_in(found, span) or _has_mention(found, span, least=2) for span in placed):
        return False
    if all(_has_mention(found, item) for item in items):
        return True
    if any(len(words.split()) > 10 for words in loose):
        return False
    if any(_DETERMINER.match(words) for words in loose[:-1]):
        return all(
            _DETERMINER.match(words) or _has_mention(found, span) for words, span in zip(loose, items, strict=True)
        )
    counts = [len(words.split()) for words in loose]
    return max(counts) == 1 or min(counts[:-1]) > 1


def _tail(text: str, item: Span, last: Span, found: Sequence[Mention]) -> tuple[Span, ...]:
    """The place that the last item gives for all of them."""
    if item == last:
        return ()
    own, file = _file_in(found, item), _file_in(found, last)
    if own is not None and _PLACE.search(text, item[0], item[1]):
        return ()
    if file is not None and (before := _AT_FILE.search(text, last[0], file.start)):
        first = _PLACE.search(text, *last)
        start = first.start() if first and not _PLACE.search(text, *item) else before.start()
        return ((start + 1, last[1]),) if own is None else ()
    place = _PLACE.search(text, *last)
    return ((place.start() + 1, last[1]),) if place and own is None and not _PLACE.search(text, *item) else ()
