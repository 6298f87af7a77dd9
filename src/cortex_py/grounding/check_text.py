"""Checks of what only words can tell: how much of a claim a place in the source, a message or a document says.

This is the weakest kind of evidence and weighs least; a claim that names nothing has no other.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ..memory.opposites import word_set
from .check_changes import of_revision
from .checks import Check
from .claims import Claim
from .evidence import Evidence
from .lookup import Lookup
from .resolving import Resolved
from .support import support
from .words import names_in, telling_words, words_of

__all__ = ["Remembered", "Told", "best_text", "check_memories", "check_text"]

_MOST_WORDS = 24
_FILES = 6
_WINDOW = 12  # lines that are read as one place
_PROSE = (".md", ".rst", ".txt", ".adoc", ".mdx", ".markdown")
_ENOUGH = 0.5
# Without their endings, as words are compared: they say that something was done, not what.
_OF_ANY_WORK = word_set(
    """ad add implement creat introduc updat chang modifi fix remov delet drop touch edit releas version commit file
    modul code project repositori new now use contain part exist includ defin provid function method class defin resid
    call name handl done work make write wrote written built build set support successfulli complet"""
)
_MOST_HITS = 500  # of one word in one file
_SHORT = 3


@dataclass(frozen=True, slots=True)
class Remembered:
    """A stored memory that may bear on a claim, as its sentences."""

    id: str
    sentences: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Told:
    """How much of the claim's words a place has, and how likely it bears the claim out as prose; 0 where it is none."""

    covered: float
    likely: float
    evidence: Evidence


def check_text(claim: Claim, found: Resolved, lookup: Lookup) -> Iterator[Check]:
    """The place that says most of the claim."""
    words = _wanted(claim)
    if not words:
        return
    best = best_text(claim, words, found, lookup)
    if best is None:
        if lookup.standing.complete:
            yield Check("words", False, "nothing speaks of it", None, 0.0)
        return
    sure = max(best.covered, best.likely)
    shown = f"{best.evidence.location} has {best.covered:.0%} of what the claim speaks of"
    yield Check("words", sure >= _ENOUGH, shown, best.evidence, sure)


def best_text(claim: Claim, words: Sequence[str], found: Resolved, lookup: Lookup) -> Told | None:
    weights = _weights(words, lookup)
    every = [*_in_files(words, weights, found, lookup), *_in_messages(claim, words, weights, lookup)]
    return max(every, key=lambda one: (max(one.covered, one.likely), one.covered), default=None)


def _wanted(claim: Claim) -> list[str]:
    """The words to look for, without the files, which are looked at anyway, and without those of any report of work."""
    text = claim.text
    for mention in claim.mentions:
        if mention.kind in ("file", "line", "version", "commit"):
            text = text.replace(mention.text, " ")
    return [word for word in telling_words(text) if word not in _OF_ANY_WORK][:_MOST_WORDS]


def _weights(words: Sequence[str], lookup: Lookup) -> dict[str, float]:
    """How telling each word is in this project: one that few files have counts most; one that none has, too."""
    total = max(2, len(lookup.paths))
    return {word: math.log1p(total / (1 + len(lookup.having(word)))) for word in words}


def _in_files(words: Sequence[str], weights: dict[str, float], found: Resolved, lookup: Lookup) -> Iterator[Told]:
    total = sum(weights.values())
    for path in _candidates(words, weights, found, lookup):
        on_line = _words_on_lines(path, words, lookup)
        best, at = 0.0, 0
        for first in sorted(on_line):
            here = set().union(*(on_line.get(line, set()) for line in range(first, first + _WINDOW)))
            if (worth := sum(weights[word] for word in sorted(here))) > best:
                best, at = worth, first
        if best:
            line = max(
                (n for n in on_line if at <= n < at + _WINDOW),
                key=lambda n: (sum(weights[word] for word in sorted(on_line[n])), -n),
            )
            yield Told(min(1.0, best / total), 0.0, Evidence("line", path, line))


def _words_on_lines(path: str, words: Sequence[str], lookup: Lookup) -> dict[int, set[str]]:
    """The words that stand on each line that has any, counted from 1; short ones only where a word begins."""
    text, starts = lookup.lowered(path)
    found: dict[int, set[str]] = {}
    for word in words:
        at, hits = text.find(word), 0
        while at >= 0 and hits < _MOST_HITS:
            if len(word) > _SHORT or not text[at - 1 : at].isalpha():
                found.setdefault(bisect_right(starts, at), set()).add(word)
                hits += 1
            at = text.find(word, at + 1)
    return found


def _candidates(words: Sequence[str], weights: dict[str, float], found: Resolved, lookup: Lookup) -> list[str]:
    """The files that the claim names, else those that have most of its words."""
    if found.paths:
        return list(found.paths[:_FILES])
    named = [one.path for thing in found.names for one in (thing.placed or thing.defined)[:2]]
    scores: dict[str, float] = {}
    for word in words:
        for path in lookup.having(word):
            scores[path] = scores.get(path, 0.0) + weights[word]
    best = sorted(scores, key=lambda path: (-scores[path], path))
    return list(dict.fromkeys([*named, *best]))[:_FILES]


def _in_messages(claim: Claim, words: Sequence[str], weights: dict[str, float], lookup: Lookup) -> Iterator[Told]:
    total = sum(weights.values())
    for revision, _ in lookup.messages(words)[:5]:
        sentences = [line.strip(" -*") for line in (revision.subject, *revision.body.split("\n")) if line.strip(" -*")]
        have = words_of(names_in(f"{revision.subject}\n{revision.body}")) & weights.keys()
        told = support(claim.text, sentences[:60])
        covered = sum(weights[word] for word in sorted(have)) / total
        yield Told(covered, told.probability, of_revision(revision))


def check_memories(claim: Claim, remembered: Sequence[Remembered]) -> Iterator[Check]:
    """The stored memory that bears the claim out best."""
    found = [(support(claim.text, one.sentences), one) for one in remembered if one.sentences]
    if found:
        told, memory = max(found, key=lambda pair: (pair[0].probability, pair[1].id))
        shown = f"memory {memory.id} says: {memory.sentences[told.best][:120]}" if told.best >= 0 else memory.id
        evidence = Evidence("memory", detail=memory.id)
        yield Check("memory", told.probability >= _ENOUGH, shown, evidence, told.probability)
