"""Checks of how something is declared: exported or private, a property, static, abstract, a generator."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..words import distinctive_words, load_pattern
from .check import Check
from .scene import Scene, Subject, decide, last_part

__all__ = ["check_traits"]

_PUBLIC = load_pattern("checks", "public")
_PRIVATE = load_pattern("checks", "private")
_MARKS = {
    "property": (
        re.compile(r"\b(?:is|are|as|into) (?:an? )?(?:[\w-]+ ){0,2}(?:propert(?:y|ies)\b(?! of)|getters?\b)", re.I),
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
    yield from decide(_kind(scene, one) for one in subjects)
    public, private = _PUBLIC.search(scene.said), _PRIVATE.search(scene.said)
    if bool(public) != bool(private):
        wants = public is not None
        denied = scene.denies(_PUBLIC if wants else _PRIVATE)
        yield from decide([_visibility(scene, one, wants != denied)] for one in subjects)
        return
    for shown, (cue, marks) in _MARKS.items():
        if cue.search(scene.main):
            yield from decide(_mark(scene, one, shown, cue, marks) for one in subjects)
            return


# What something is declared as, by the words for it and by the kinds of definitions that count as it.
_KINDS = {
    "class": ("class", "record"), "struct": ("struct", "record"), "interface": ("interface",), "trait": ("trait",),
    "enum": ("enum", "class"), "enumeration": ("enum", "class"), "type alias": ("type",),
    "macro": ("macro", "function"), "record": ("record", "struct"),
    "function": ("function", "method", "variable", "class", "constant"),
}  # fmt: skip
_KIND = re.compile(
    r"`\S* (?:is|are) (?:(?:declared|defined|implemented|written|exported) as )?"
    r"(?:only |just |merely |not )?(?:an? |the )?"
    rf"(?:(?:plain|simple|normal|ordinary|public|generic|small|empty|abstract|final|private|exported) )*"
    rf"({'|'.join(_KINDS)})\b(?![- ](?:of|method|member|property|attribute|field|component|name|type|object))",
    re.I,
)
_READ = (".py", ".js", ".mjs", ".cjs", ".ts", ".tsx", ".mts", ".go", ".rs", ".java")


def _kind(scene: Scene, subject: Subject) -> Iterator[Check]:
    """Whether the claim's name is a class, a struct, an interface or a function, as the claim says."""
    match, one = _KIND.search(scene.said), subject.definition
    if match is None or not one.path.endswith(_READ):
        return
    fits = _KINDS[match[1].lower()]
    if one.kind not in fits and one.kind in ("variable", "property", "constant"):
        return
    if one.kind == "type" and match[1].lower() == "function":
        return  # a type of functions
    holds = (one.kind in fits) != scene.denies(_KIND)
    if not holds or not distinctive_words(scene.said[match.end() :].partition(" in ")[0]):
        yield scene.answer("relation", holds, f"{subject.shown} is a {one.kind}", one.path, one.line, sure=0.9)


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
        exported = rf"\bexports?\b[^\n{{}}]{{0,200}}(?:\{{[^{{}}]{{0,2000}})?(?<![\w$]){re.escape(name)}(?![\w$])"
        return re.search(exported, "\n".join(scene.lookup.lines(path))) is not None
    return not name.startswith("_")


def _mark(scene: Scene, subject: Subject, shown: str, cue: re.Pattern[str], marks: tuple[str, ...]) -> Iterator[Check]:
    one = subject.definition
    facts = scene.facts(subject)
    if one.kind not in ("function", "method", "class", "property") or not facts:
        return
    own = [
        fact
        for fact in facts
        if (fact.role == "decorator" and fact.line <= one.line)
        or (fact.role == "modifier" and fact.owner in (one.name, ""))
    ]
    here = any(last_part(fact.name) in marks or set(fact.name.split()) & set(marks) for fact in own)
    said = f"{subject.shown} is {'' if here else 'not '}{shown if shown != 'property' else 'a property'}"
    yield scene.answer("relation", here != scene.denies(cue), said, one.path, one.line, sure=0.9)
