"""Checks of how something is declared: exported or private, a property, static, abstract, a generator."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..words import load_pattern
from .check import Check
from .scene import Scene, Subject, last_part, prefer

__all__ = ["check_traits"]

_PUBLIC = load_pattern("checks", "public")
_PRIVATE = load_pattern("checks", "private")
_MARKS = {
    "property": (
        re.compile(r"\bpropert(?:y|ies)\b(?! of)|\bis an? property\b|\bgetter\b", re.I),
        ("property", "cached_property", "get"),
    ),
    "static": (re.compile(r"\bstatic\b", re.I), ("staticmethod", "static")),
    "a class method": (re.compile(r"\bclass ?method\b", re.I), ("classmethod",)),
    "abstract": (re.compile(r"\babstract\b", re.I), ("abstractmethod", "abstract")),
    "deprecated": (re.compile(r"\b(?:is|are|marked(?: as)?) deprecated\b", re.I), ("deprecated", "Deprecated")),
}


def check_traits(scene: Scene) -> Iterator[Check]:
    """Whether the claim's one name is declared as the claim says."""
    subjects = [one for one in scene.named if one.weight == 1.0]
    if not subjects or len({one.definition.name for one in subjects}) != 1:
        return
    public, private = _PUBLIC.search(scene.said), _PRIVATE.search(scene.said)
    if bool(public) != bool(private):
        wants = public is not None
        denied = scene.denies(_PUBLIC if wants else _PRIVATE)
        yield from prefer(_visibility(scene, one, wants != denied) for one in subjects[:3])
        return
    for shown, (cue, marks) in _MARKS.items():
        if cue.search(scene.main):
            answers = [answer for one in subjects[:3] if (answer := _mark(scene, one, shown, cue, marks)) is not None]
            yield from prefer(answers)
            return


def _visibility(scene: Scene, subject: Subject, wants: bool) -> Check:
    one = subject.definition
    line = scene.lookup.lines(one.path)[one.line - 1]
    found = _is_public(scene, one.path, one.name, line)
    return scene.answer(
        "relation", found == wants, f"{subject.shown} is {'public' if found else 'not public'}", one.path, one.line
    )


def _is_public(scene: Scene, path: str, name: str, line: str) -> bool:
    if path.endswith(".go"):
        return name[:1].isupper()
    if path.endswith(".rs"):
        return re.search(r"\bpub\s+(?!\()|\bpub\s*$", line.split(name)[0] + " ") is not None and "pub(" not in line
    if path.endswith((".java", ".kt", ".cs")):
        return "public" in line
    if path.endswith((".js", ".ts", ".mjs", ".cjs", ".tsx", ".jsx")):
        exported = re.compile(rf"\bexport\b.*\b{re.escape(name)}\b|\bexports\b.*\b{re.escape(name)}\b")
        lines = scene.lookup.lines(path)
        return any(exported.search(lines[number - 1]) for number in scene.lookup.lines_with(path, name)[:50])
    return not name.startswith("_")


def _mark(scene: Scene, subject: Subject, shown: str, cue: re.Pattern[str], marks: tuple[str, ...]) -> Check | None:
    one = subject.definition
    facts = scene.facts(subject)
    if one.kind not in ("function", "method", "class", "property") or not facts:
        return None
    own = [
        fact
        for fact in facts
        if (fact.role == "decorator" and fact.line <= one.line)
        or (fact.role == "modifier" and fact.owner in (one.name, ""))
    ]
    here = any(last_part(fact.name) in marks or set(fact.name.split()) & set(marks) for fact in own)
    said = f"{subject.shown} is {'' if here else 'not '}{shown if shown != 'property' else 'a property'}"
    return scene.answer("relation", here != scene.denies(cue), said, one.path, one.line, sure=0.9)
