"""What a claim is about and where to look: its subject's definitions, the things it says of them, and its values.

A name that exists is only where to look. A claim without a name is looked up in the definitions that have most of its
words.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from ....worktree.code.behaviour import CodeFact
from ..claims.claims import Claim
from ..claims.mentions import Mention
from ..index.facts import Definition
from ..index.lookup import Lookup
from ..words import distinctive_words, load_pattern, name_parts, stem_words
from .check import Check, CheckName, Evidence
from .names import NamedSymbol, ResolvedClaim, is_auxiliary
from .passages import Passage, claim_words, find_passages, weigh_words

__all__ = [
    "HOLDERS", "Object", "Scene", "Subject", "decide", "is_error_name", "last_part", "number_meanings", "read_numbers",
    "same_number",
]  # fmt: skip

HOLDERS = frozenset(("class", "struct", "interface", "trait", "enum", "object", "module", "type", "namespace", "impl"))
_MOST_SUBJECTS = 6
_MOST_METHODS = 40
_RETRIEVED = 3
_MOST_CALLEES = 12
_MOST_NEAR = 24
_ENOUGH = 0.35  # the score from which a passage may be what a claim without names means
_CONDITION = load_pattern("checks", "condition")
_DENIES = load_pattern("checks", "denies")
_DENIAL = load_pattern("checks", "denial")
_TERM = re.compile(r"`([^`\n]{1,120})`")
_CODE_WORD = re.compile(
    r"(?<![\w`./-])(?:[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+|[A-Z][a-z]+(?:[A-Z][a-z0-9]*)+|[A-Z]{3,12})(?![\w`/])"
)
_ERROR = re.compile(r"(?:Error|Exception|Warning|Exit|Interrupt|Abort|Timeout|Failure|DoesNotExist|NotFound)$")


def last_part(name: str) -> str:
    return re.split(r"\.|::|#|->", name.rstrip("!"))[-1]


def is_error_name(name: str) -> bool:
    return _ERROR.search(name) is not None


@dataclass(frozen=True, slots=True)
class Subject:
    """A definition that the claim may be about; `named` if the claim gives its name, else it was found by words."""

    definition: Definition
    named: bool
    weight: float

    @property
    def shown(self) -> str:
        return f"`{self.definition.qualified}`"


@dataclass(frozen=True, slots=True)
class Object:
    """A piece of code that the claim says something with: a name or an expression; `denied` if it is excluded."""

    text: str
    at: int
    denied: bool
    ticked: bool

    @property
    def last(self) -> str:
        return last_part(re.sub(r"\(.*", "", self.text)).lstrip("@$")


class Scene:
    """One claim with everything that its checks look at, read once."""

    def __init__(self, claim: Claim, found: ResolvedClaim, lookup: Lookup) -> None:
        self.claim = claim
        self.found = found
        self.lookup = lookup
        self.text = claim.text

    # -- what the claim says -----------------------------------------------------------------------

    @cached_property
    def said(self) -> str:
        """The words of the claim without its code: the names `Parameter` and `invoke` express no relation."""
        text = re.sub(r"`[^`]*`", " ` ", self.text)
        for name in [*(symbol.name for symbol in self.found.names), *(file.written for file in self.found.files)]:
            # A name that is an ordinary word may be used as that word: "the default for default".
            text = text if name.isalpha() and name.islower() else text.replace(name, " ` ")
        return " ".join(text.split())

    @cached_property
    def words(self) -> list[str]:
        return claim_words(self.claim)

    @cached_property
    def weights(self) -> dict[str, float]:
        return weigh_words(self.words, self.lookup)

    @cached_property
    def stems(self) -> frozenset[str]:
        """All stems of the claim, those of its code too."""
        return frozenset(distinctive_words(self.text)) | frozenset(stem_words(name_parts(self.text)))

    @cached_property
    def spoken(self) -> frozenset[str]:
        """The stems of the claim without those of the definitions that it names."""
        text = self.text
        for one in self.named:
            text = re.sub(rf"(?<!\w){re.escape(one.definition.name)}(?!\w)", " ", text)
        return frozenset(distinctive_words(text)) | frozenset(stem_words(name_parts(text)))

    @cached_property
    def condition(self) -> tuple[str, str]:
        """The subordinate clause of the claim and the word that opens it: ("if", "the key is missing")."""
        match = _CONDITION.search(self.text)
        return (match[1].lower(), self.text[match.end() :]) if match else ("", "")

    @cached_property
    def main(self) -> str:
        """The claim without its subordinate clause."""
        match = _CONDITION.search(self.text)
        if match is None:
            return re.split(r"\bso that\b|, so\b|\bbecause\b", self.text, maxsplit=1)[0]
        if match.start() > 2:
            return self.text[: match.start()]
        comma = self.text.find(",", match.end())
        return self.text[comma + 1 :] if comma > 0 else self.text

    @cached_property
    def numbers(self) -> list[Mention]:
        given = " ".join(match[1] for match in _TERM.finditer(self.text) if re.match(r"\w+=[^=]", match[1]))
        return [one for one in self.claim.mentions if one.kind == "number" and not _ORDINAL.search(one.text)
                and one.text not in given]  # fmt: skip

    @cached_property
    def objects(self) -> list[Object]:
        """The names and expressions of the claim in its order, without its files."""
        files = {file.written for file in self.found.files}
        found: dict[str, Object] = {}
        for match in [*_TERM.finditer(self.text), *_CODE_WORD.finditer(self.text)]:
            ticked = match.re is _TERM
            text = match[1] if ticked else match[0]
            if text not in files and text not in found:
                found[text] = Object(text, match.start(), self._is_denied(match.start()), ticked)
        for name in (symbol.name for symbol in self.found.names):
            at = self.text.find(name)
            if at >= 0 and name not in found and not any(name in one for one in found):
                found[name] = Object(name, at, self._is_denied(at), False)
        return sorted(found.values(), key=lambda one: one.at)

    def denies(self, cue: re.Pattern[str]) -> bool:
        """Whether the claim denies the relation that a cue expresses: "does not call", "never raises"."""
        match = cue.search(self.said)
        if match is None:
            return False
        before = re.split(r"[,;:]|\b(?:when|if|unless|which|that|because|so)\b", self.said[: match.start()])[-1]
        return _DENIAL.search(f"{before} {match[0]}") is not None

    def _is_denied(self, at: int) -> bool:
        """Whether the words right before a name exclude it: "rather than `f`", "and not from `C`"."""
        before = self.text[max(0, at - 40) : at]
        return _DENIES.search(before) is not None

    # -- what it is about --------------------------------------------------------------------------

    @cached_property
    def named(self) -> list[Subject]:
        """The definitions that the claim names, in its order, then those that enclose names it gives."""
        found: list[Subject] = []
        for symbol in self.found.names:
            found += [Subject(one, True, 1.0) for one in self._definitions(symbol)]
        found.sort(key=lambda one: is_error_name(one.definition.name))  # an exception is raised, it does not raise
        if all(is_error_name(one.definition.name) or one.definition.kind in ("variable", "property") for one in found):
            found = [*(Subject(one, True, 0.8) for one in self._enclosing()), *found]
        return found[:_MOST_SUBJECTS]

    @cached_property
    def subjects(self) -> list[Subject]:
        """The named definitions; without any, those that have most of the claim's words."""
        if any(not is_error_name(one.definition.name) for one in self.named):
            return self.named
        return [*self.retrieved, *self.named]

    @cached_property
    def passages(self) -> list[Passage]:
        """The best passages by words, of the claim's files if it names any."""
        paths = [path for path in self.found.paths if not path.endswith(".lock")]
        return find_passages(self.words, self.lookup, paths, 24)

    @cached_property
    def retrieved(self) -> list[Subject]:
        found = []
        for one in self.passages:
            if one.kind == "text" or one.score < _ENOUGH or is_auxiliary(one.path):
                continue
            name = one.name.rpartition(".")[2]
            definition = Definition(one.path, name, one.name, one.kind, one.first, one.last)
            found.append(Subject(definition, False, min(1.0, one.score)))
        return found[:_RETRIEVED]

    def _definitions(self, symbol: NamedSymbol) -> list[Definition]:
        every = [one for one in symbol.placed or symbol.defined if not one.path.endswith((".pyi", ".d.ts"))]
        every = every or list(symbol.placed or symbol.defined)
        code = [one for one in every if not is_auxiliary(one.path)] or every
        best = symbol.best
        return sorted(code, key=lambda one: (one is not best, one.path, one.line))[:4]

    def _enclosing(self) -> list[Definition]:
        """The functions around the names that the claim gives and nothing defines: options, fields, keywords."""
        names = [symbol.last for symbol in self.found.names if not symbol.defined]
        names += [term for term in self.found.terms if term.isidentifier() and term not in names]
        found: dict[Definition, float] = {}
        for name in names[:3]:
            paths = self.found.paths or [path for path in self.lookup.files_with(name) if not is_auxiliary(path)]
            for path in paths[:6]:
                functions = [one for one in self.lookup.in_file(path) if one.kind in ("function", "method")]
                for line in self.lookup.lines_with(path, name)[:12]:
                    around = [one for one in functions if one.line <= line <= one.end_line]
                    if around:
                        inner = min(around, key=lambda one: one.end_line - one.line)
                        found[inner] = max(found.get(inner, 0.0), self.fit(inner))
        return sorted(found, key=lambda one: (-found[one], one.path, one.line))[:2]

    def fit(self, definition: Definition) -> float:
        """How much of the claim the words of a definition have."""
        text = " ".join(self.lookup.lines(definition.path)[definition.line - 1 : definition.end_line])
        have = set(distinctive_words(text[:20_000]))
        total = sum(self.weights.values()) or 1.0
        return sum(weight for word, weight in self.weights.items() if word in have) / total

    # -- the source of what it is about ------------------------------------------------------------

    def facts(self, subject: Subject) -> Sequence[CodeFact]:
        """The facts of a definition; those of a type include its methods elsewhere in the file."""
        one = subject.definition
        found = list(self.lookup.facts(one))
        if one.kind in ("struct", "type", "enum", "trait", "interface") and one.path.endswith((".go", ".rs")):
            methods = [other for other in self.lookup.in_file(one.path) if other.qualified.startswith(f"{one.name}.")]
            for method in methods[:_MOST_METHODS]:
                found += self.lookup.facts(method)
        return found

    def callees(self, facts: Sequence[CodeFact], path: str) -> Iterator[tuple[Definition, Sequence[CodeFact]]]:
        """The definitions of the project that some facts call, nearest first."""
        seen: set[str] = set()
        for fact in facts:
            name = last_part(fact.name)
            if fact.role != "call" or name in seen or len(seen) >= _MOST_CALLEES:
                continue
            seen.add(name)
            every = [one for one in self.lookup.definitions(name) if one.kind in ("function", "method", "class")]
            here = [one for one in every if one.path == path] or [one for one in every if not is_auxiliary(one.path)]
            if 1 <= len(here) <= 3:
                yield here[0], self.lookup.facts(here[0])

    def is_read(self, subject: Subject) -> bool:
        """Whether the body of a definition was read: a declaration without one says nothing of what is missing."""
        roles = {fact.role for fact in self.facts(subject) if "implicit" not in fact.traits}
        return bool(roles & {"call", "return", "raise", "value", "condition"})

    def names(self, subject: Subject, name: str) -> bool:
        """Whether a definition names something, in whatever way."""
        one = subject.definition
        return bool(self.lookup.lines_with(one.path, name, one.line, one.end_line))

    def near(self, subject: Subject) -> list[Definition]:
        """What a definition may call, or stand below: all definitions of the project with those names."""
        facts = self.facts(subject)
        called = {last_part(fact.name) for fact in facts if fact.role in ("call", "base", "decorator")}
        found = [one for word in sorted(called)[:_MOST_NEAR] for one in self.lookup.definitions(word)[:_MOST_NEAR]]
        return [one for one in found if not is_auxiliary(one.path)]

    def reaches(self, subject: Subject, name: str) -> bool:
        """Whether a definition, or anything that it calls, names something, in whatever way."""
        return self.names(subject, name) or any(
            self.lookup.lines_with(one.path, name, one.line, one.end_line) for one in self.near(subject)
        )

    def overlap(self, words: Sequence[str], text: str) -> float:
        """The weighted share of some words that a text has."""
        have = set(distinctive_words(text)) | set(stem_words(name_parts(text)))
        total = sum(self.weights.get(word, 1.0) for word in words)
        return sum(self.weights.get(word, 1.0) for word in words if word in have) / total if total else 0.0

    # -- answers -----------------------------------------------------------------------------------

    def answer(
        self, name: CheckName, holds: bool, reason: str, path: str, line: int, end_line: int | None = None,
        sure: float = 1.0,
    ) -> Check:  # fmt: skip
        """A check that has read the relation itself, so that a denial is already part of it."""
        evidence = Evidence("line", path, line, end_line=end_line)
        return Check(name, holds, f"{reason} in {path} line {line}", evidence, sure, core=False)


def decide(rows: Iterable[Iterable[Check]]) -> list[Check]:
    """Of the answers of the definitions that may be meant: one that holds, else the surest if every one refutes."""
    every = [list(row) for row in rows]
    failing = [one for row in every for one in row] if all(every) else []
    return [one for row in every for one in row if one.holds][:1] or sorted(failing, key=lambda one: -one.sure)[:1]


_ORDINAL = re.compile(r"^(?:first|second|third|once|twice)\b", re.I)
_NUMBER = re.compile(r"(?<![\w.])-?(?:0x[0-9a-fA-F_]+|0o[0-7_]+|\d[\d_]*(?:\.\d+)?(?:[eE][-+]?\d+)?)(?![\w.]*\.\d)")
_PRODUCT = re.compile(r"(?<![\d_])\d[\d_]{0,20}+(?:\s{0,4}\*\s{0,4}\d[\d_]{0,20}+)+")
_POWER = re.compile(r"\b(\d{1,3})\s*\*\*\s*(\d{1,2})\b|\b(\d{1,4})\s*<<\s*(\d{1,2})\b")
_COMMENT = re.compile(r"(?:(?<=\s)|^)(?:#|//).*$", re.MULTILINE)


def read_numbers(line: str) -> list[float]:
    """The numbers on a line of source, including products and powers: `60 * 60` is also 3600."""
    plain = _COMMENT.sub("", line)
    found = [_number(match[0]) for match in _NUMBER.finditer(plain)]
    for match in _PRODUCT.finditer(plain):
        product = 1.0
        for factor in match[0].split("*"):
            product *= float(factor.replace("_", "").strip())
        found.append(product)
    for base, power, shifted, by in _POWER.findall(plain):
        found.append(float(base) ** int(power) if base else float(int(shifted) << int(by)))
    return found


def _number(written: str) -> float:
    plain = written.replace("_", "").replace("0o", "0")  # `0o644` is said as 0644
    return float(int(plain, 16)) if "0x" in plain else float(plain)


def same_number(one: float, other: float) -> bool:
    return abs(one - other) <= 1e-9 * max(1.0, abs(one), abs(other))


def number_meanings(mention: Mention) -> frozenset[float]:
    """The numbers in source code that one in the text may mean: as written, and converted to usual units."""
    return frozenset(_meanings(mention))


def _meanings(mention: Mention) -> Iterator[float]:
    value = re.fullmatch(r"[<>]?=?(-?\d+(?:\.\d+)?)(?:\s*(\S+))?", mention.value)
    written = re.search(r"-?\d[\d,_]*(?:\.\d+)?", mention.text)
    if written and not (value and value[2] == "B"):
        yield float(written[0].replace(",", "").replace("_", ""))
    if value:
        number = float(value[1])
        yield number
        if value[2] == "%":
            yield number / 100
        if value[2] == "s":
            yield from (number * 1000, number / 60, number / 3600, number / 86400)
        if value[2] == "B":  # a kilobyte is 1,000 bytes or 1,024
            yield number * 1.024 ** ((len(str(int(number))) - 1) // 3)
