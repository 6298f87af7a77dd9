"""Checks by words: how much of a claim a place in the code has, and what prose says of it.

Words of code find the place and rank it, and never make a claim supported. Prose (documentation, commit messages,
memories) is read by the support model.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ..claims.claims import Claim
from ..claims.verbs import CHANGES
from ..index.facts import Revision
from ..judges.support import support
from .changes import find_scope, revision_evidence
from .check import Check, Evidence
from .passages import Passage, is_prose, mark_lines
from .scene import Scene, number_meanings, read_numbers, same_number

__all__ = ["RelatedMemory", "check_memories", "check_text"]

_ENOUGH = 0.5
_PROSE_LINES = 120  # lines of a passage that are read for prose
_MOST_SENTENCES = 40
_SHORT_SUBJECT = 2  # words that are too few to say what was done


@dataclass(frozen=True, slots=True)
class RelatedMemory:
    """A stored memory about a claim, in sentences."""

    id: str
    sentences: tuple[str, ...]


def check_text(scene: Scene) -> Iterator[Check]:
    """The place that has most of the claim's words, how many of its details are there, and what prose says of it."""
    words = scene.words
    if not words:
        return
    passages = _own_passages(scene) or scene.passages[:4]
    if not passages:
        if scene.lookup.state.complete:
            yield Check("words", False, "nothing mentions it", None, 0.0)
    else:
        best = passages[0]
        evidence = Evidence("line", best.path, best.best_line, end_line=best.last)
        shown = f"{evidence.location} has {best.covered:.0%} of the claim's words"
        yield Check("words", best.covered >= _ENOUGH, shown, evidence, best.covered)
        yield from _check_details(scene, passages)
    yield from _check_documentation(scene, passages)
    yield from _check_messages(scene)


def _own_passages(scene: Scene) -> list[Passage]:
    """The definitions that the claim names, as passages."""
    found = []
    for subject in scene.named[:3]:
        one = subject.definition
        covered = scene.fit(one)
        lines = mark_lines(one.path, sorted(scene.weights), scene.lookup)
        inside = [line for line in lines if one.line <= line <= one.end_line]
        line = max(inside, key=lambda n: (lines[n].bit_count(), -n), default=one.line)
        found.append(Passage(one.path, one.line, one.end_line, one.qualified, one.kind, covered, covered, line))
    return found


def _check_details(scene: Scene, passages: Sequence[Passage]) -> Iterator[Check]:
    """Which of the numbers and code words of the claim the passages have; a missing one makes it less likely."""
    text = "\n".join("\n".join(scene.lookup.lines(one.path)[one.first - 1 : one.last]) for one in passages[:3])[:60_000]
    numbers = set(read_numbers(text))
    own = {one.definition.name for one in scene.named}
    details = [item.last for item in scene.objects if item.last not in own and not item.denied]
    found = sum(
        re.search(rf"(?<![A-Za-z0-9]){re.escape(name)}(?![A-Za-z0-9])", text, re.I) is not None for name in details
    )
    meanings = [number_meanings(mention) for mention in scene.numbers]
    found += sum(any(same_number(a, b) for a in meaning for b in numbers) for meaning in meanings)
    total = len(details) + len(meanings)
    if total:
        first = passages[0]
        share = found / total
        shown = f"{found} of the {total} details of the claim are there"
        yield Check("detail", share >= 1, shown, Evidence("line", first.path, first.best_line), share, core=False)


def _check_documentation(scene: Scene, passages: Sequence[Passage]) -> Iterator[Check]:
    """What documentation, docstrings and comments say of the claim, read by the support model for prose."""
    places = [*passages[:3], *scene.passages[:6]]
    best: tuple[float, str, int] | None = None
    for one in dict.fromkeys(places):
        rows = _sentences(
            scene.lookup.lines(one.path), one.first, min(one.last, one.first + _PROSE_LINES), is_prose(one.path)
        )
        if not rows:
            continue
        match = support(scene.text, [text for _, text in rows])
        if best is None or match.probability > best[0]:
            best = match.probability, one.path, rows[max(0, match.best)][0]
    if best is not None:
        sure, path, line = best
        shown = f"the text in {path} line {line} says so" if sure >= _ENOUGH else f"{path} line {line} does not say so"
        yield Check("documented", sure >= _ENOUGH, shown, Evidence("line", path, line), round(sure, 3), core=False)


def _sentences(lines: Sequence[str], first: int, last: int, prose: bool) -> list[tuple[int, str]]:
    """The sentences of prose, of comments and of docstrings between two lines, each with its line."""
    found: list[tuple[int, str]] = []
    text, start, quoted = "", first, prose
    for number in range(first, min(last, len(lines)) + 1):
        line = lines[number - 1].strip()
        marks = line.count('"""') + line.count("'''")
        is_text = quoted or marks > 0 or line.startswith(("#", "//", "*", "/*", "--"))
        if not prose and marks % 2:
            quoted = not quoted
        plain = line.strip("#/*-\"' \t>`") if is_text else ""
        if not plain:
            if text:
                found.append((start, text))
            text = ""
            continue
        start = start if text else number
        text = f"{text} {plain}".strip()
        if text.endswith((".", ":", "!")) or len(text) > 400:
            found.append((start, text[:600]))
            text = ""
    if text:
        found.append((start, text[:600]))
    return found[:_MOST_SENTENCES]


def _check_messages(scene: Scene) -> Iterator[Check]:
    """The commit whose message says most of a claim about work that was done."""
    claim, lookup = scene.claim, scene.lookup
    scope = find_scope(claim, lookup)
    named = scope if scope is not None and not scope.is_release else None
    if claim.type not in CHANGES and named is None:
        return
    found = []
    touched = [
        {one.revision.id for one in lookup.changes_named(file.written) if one.revision} for file in scene.found.files
    ]
    likely = [named.revision] if named is not None else [row[0] for row in lookup.messages(scene.words)[:5]]
    for revision in likely:
        if any(revision.id not in ids for ids in touched) or not _is_about(revision, scene):
            continue  # a commit that left alone what the claim names
        sentences = [line.strip(" -*") for line in (revision.subject, *revision.body.split("\n")) if line.strip(" -*")]
        # What was done, without who did it and where.
        plain = _NAMED_COMMIT.sub("", claim.text) if named is not None else claim.text
        said = [plain, *([claim.subject] if len(claim.subject.split()) > _SHORT_SUBJECT else [])]
        found.append((max(support(text, sentences[:60]).probability for text in said), revision))
    if found:
        sure, revision = max(found, key=lambda row: (row[0], row[1].time))
        shown = f"commit {revision.id[:7]} says: {revision.subject[:100]}"
        yield Check("message", sure >= _ENOUGH, shown, revision_evidence(revision), round(sure, 3))


_NAMED_COMMIT = re.compile(r"^(?:\w+ ){0,4}commit\s+(?:`?[0-9a-f]{7,40}`?\s+)?|^`?[0-9a-f]{7,40}`?\s+", re.I)


def _is_about(revision: Revision, scene: Scene) -> bool:
    """Whether a commit names or changes all definitions that a claim names."""
    message = f"{revision.subject}\n{revision.body}"
    return all(
        symbol.last in message
        or any(
            seen.revision is not None and seen.revision.id == revision.id
            for column in ("touched", "introduced", "dropped")
            for seen in scene.lookup.changes(column, symbol.last)
        )
        for symbol in scene.found.names
        if symbol.defined
    )


def check_memories(claim: Claim, memories: Sequence[RelatedMemory]) -> Iterator[Check]:
    """Find the memory that supports the claim best."""
    found = [(support(claim.text, one.sentences), one) for one in memories if one.sentences]
    if found:
        match, memory = max(found, key=lambda pair: (pair[0].probability, pair[1].id))
        shown = f"memory {memory.id} says: {memory.sentences[match.best][:120]}" if match.best >= 0 else memory.id
        evidence = Evidence("memory", detail=memory.id)
        yield Check("memory", match.probability >= _ENOUGH, shown, evidence, match.probability)
