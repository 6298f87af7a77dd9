"""What every family of claims needs: the commits that are looked at, names as people write them, and plausible lies."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

import grounding_wording
from grounding_facts import SCRIPTS, Definition, Project, Source, flat, is_test

_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|_+|\$+")
_ALIKE = {
    "get": ("fetch", "read"), "fetch": ("get", "pull"), "set": ("assign", "put"), "make": ("build", "create"),
    "create": ("make", "build"), "build": ("make", "assemble"), "parse": ("decode", "scan"), "load": ("read", "open"),
    "is": ("has", "can"), "has": ("is", "holds"), "add": ("append", "insert"), "remove": ("delete", "drop"),
    "request": ("query", "message"), "response": ("reply", "answer"), "error": ("failure", "fault"),
    "client": ("session", "agent"), "handler": ("listener", "processor"), "name": ("label", "title"),
    "type": ("sort", "category"), "value": ("amount", "item"), "path": ("folder", "route"), "file": ("folder", "sheet"),
    "url": ("link", "address"), "format": ("render", "style"), "write": ("store", "save"), "run": ("execute", "start"),
    "check": ("verify", "inspect"), "default": ("standard", "initial"), "context": ("scope", "frame"),
    "config": ("option", "preference"), "base": ("root", "core"), "max": ("top", "peak"), "size": ("length", "volume"),
}  # fmt: skip
_ENDINGS = ("data", "state", "info", "list", "helper", "entry", "index", "group", "cache", "table", "queue", "batch")
NUMBERS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
NOUNS = {"async function": "function", "async method": "method", "attribute": "attribute", "type": "type"}


@dataclass(frozen=True)
class Place:
    """What shows that a claim is true: lines of a file, or a commit."""

    path: str | None = None
    first: int = 0
    last: int = 0
    commit: str | None = None


@dataclass(frozen=True)
class LabelledClaim:
    text: str
    true: bool
    kind: str
    change: str | None = None
    """What was changed to make it false: name, file, number, value, version, polarity or time."""
    places: tuple[Place, ...] = ()


@dataclass(frozen=True)
class Release:
    """A commit that claims are made at, with the version it is tagged with."""

    project: Project
    version: str | None


def place(*definitions: Definition) -> tuple[Place, ...]:
    return tuple(Place(one.path, one.first, one.last) for one in definitions)


def noun(one: Definition) -> str:
    if one.is_property:
        return "property"
    return NOUNS.get(one.kind, one.kind)


def parts(name: str) -> list[str]:
    return _PARTS.findall(name)


class Scene:
    """A commit to stand at, those before and after it, and one way of wording; every choice is its random's."""

    def __init__(self, history: Sequence[Release], at: int, known: frozenset[str], wording: str, seed: str) -> None:
        self.history, self.at, self.known = history, at, known
        self.project = history[at].project
        self.version = history[at].version
        self.before = history[at - 1] if at else None
        self.after = history[at + 1] if at + 1 < len(history) else None
        self.wording = grounding_wording.OF[wording]
        self.random = random.Random(seed)
        self._vocabulary = sorted(
            {
                part.lower()
                for name, ones in self.project.defined.items()
                for part in parts(name)
                if part.isalpha() and len(part) > 2 and not is_test(ones[0].path)
            }
        )

    # What is looked at.

    def shuffled(self, items: Sequence[Definition]) -> list[Definition]:
        """In any order, but what is not a test comes first."""
        chosen = self.random.sample(items, len(items))
        return sorted(chosen, key=lambda one: is_test(one.path))

    def symbols(self, project: Project | None = None) -> list[Definition]:
        """Definitions that people would speak of, in any order."""
        found = []
        for source in (project or self.project).sources.values():
            for one in source.definitions:
                spoken = len(one.name) > 3 and not one.name.startswith("__")
                constant = one.kind in ("constant", "attribute")
                if spoken and not (constant and not one.name.isupper() and not one.path.endswith(SCRIPTS)):
                    found.append(one)
        return self.shuffled(found)

    def functions(self) -> list[Definition]:
        every = [one for source in self.project.sources.values() for one in source.definitions]
        kinds = ("function", "method", "async function", "async method")
        return self.shuffled([one for one in every if one.kind in kinds and not is_test(one.path)])

    def group(self, one: Definition) -> list[Definition]:
        """All that the name of a definition, as it is written in a claim, may mean; empty where it is not one thing."""
        same = [other for other in self.project.defined[one.name] if one.owner is None or other.owner == one.owner]
        single = all((other.path, other.qualified) == (one.path, one.qualified) for other in same)
        return same if single else []

    def elsewhere(self, one: Definition) -> Source | None:
        """A file that does not define the name: half the time one that mentions it, where there is one."""
        bare, mentioning = [], []
        for source in self.project.sources.values():
            name = PurePosixPath(source.path).name
            same_language = (source.path.endswith(".py")) == (one.path.endswith(".py"))
            if not same_language or source.stars or name.startswith(("__init__", "index", "_compat")):
                continue
            if one.name in source.bound or not source.definitions or (is_test(source.path) and not is_test(one.path)):
                continue
            if one.name not in source.words:
                bare.append(source)
            elif source.path.endswith(".py"):
                mentioning.append(source)
        if mentioning and (not bare or self.random.random() < 0.5):
            return self.random.choice(mentioning)
        return self.random.choice(bare) if bare else None

    def only(self, one: Definition, source: Source) -> str:
        """What a phrasing has to have: where a file mentions a name, only the word `define` says what is meant."""
        return "defin" if one.name in source.words else ""

    # What is written.

    def say(self, family: str, true: bool, kind: str | None = None, change: str | None = None,
            places: tuple[Place, ...] = (), *, only: str = "", **fields: str) -> LabelledClaim:  # fmt: skip
        """A claim in one of the family's phrasings, `only` those that have a certain field."""
        wordings = [text for text in self.wording[family] if only in text]
        text = self.random.choice(wordings or self.wording[family]).format(**fields)
        if "sentence" not in fields:
            text = re.sub(r"\b([Aa])n? (`?)(?=[AEIOUaeiou])", r"\1n \2", text)
            text = re.sub(r"\b([Aa])n (`?)(?=[B-DF-HJ-NP-TV-Zb-df-hj-np-tv-z])", r"\1 \2", text)
        if text.startswith(tuple(NUMBERS)) and "count" in fields:
            text = text[0].upper() + text[1:]
        return LabelledClaim(text, true, kind or family, change, places)

    def code(self, text: str) -> str:
        """A name in backticks, or bare where it looks like one."""
        inner = re.sub(r"^\W+|\W+$", "", text)
        looks = bool(re.search(r"[_\d.(/=@]|[a-z][A-Z]", inner))
        return text if looks and self.random.random() < 0.4 else f"`{text}`"

    def name(self, one: Definition, bare: str | None = None) -> str:
        """What a definition is called: a method with its class, unless there is no other of its name."""
        called = bare or one.name
        if one.owner and (len(self.project.defined[one.name]) > 1 or self.random.random() < 0.5):
            called = f"{one.owner}.{called}"
        callable_ = one.kind.endswith(("function", "method")) and not one.is_property
        return self.code(called + "()" if callable_ and self.random.random() < 0.3 else called)

    def file(self, path: str, project: Project | None = None) -> str:
        """A path, or as little of its end as only this file has."""
        pieces = PurePosixPath(path).parts
        every = (project or self.project).paths
        for length in self.random.sample((1, 2), 2):
            short = "/".join(pieces[-length:])
            if (
                self.random.random() < 0.6
                and sum(other == short or other.endswith("/" + short) for other in every) <= 1
            ):
                return self.code(short)
        return self.code(path)

    # What is false.

    def other_name(self, name: str, extra: frozenset[str] = frozenset()) -> str | None:
        """A name made like another one that no file of any commit has, however it is written."""
        pieces = parts(name)
        words = [number for number, part in enumerate(pieces) if part.isalpha()]
        if not words:
            return None
        for _ in range(40):
            changed = list(pieces)
            number = self.random.choice(words)
            part = pieces[number]
            likes = _ALIKE.get(part.lower())
            fresh = self.random.choice(likes if likes and self.random.random() < 0.7 else self._vocabulary or _ENDINGS)
            if len(words) == 1 and not likes:
                fresh = self.random.choice((*_ENDINGS, fresh))
                joined = "_" if "_" in name or name.islower() or name.isupper() else ""
                cased = _cased(fresh, name if joined else "Xx")
                changed.insert(number + 1, joined + cased)
            else:
                changed[number] = _cased(fresh, part)
            made = "".join(changed)
            if flat(made) not in self.known and flat(made) not in extra and flat(made) != flat(name):
                return made
        return None

    def other_number(self, written: str, taken: set[str]) -> str | None:
        """Another number, written alike."""
        if re.fullmatch(r"-?\d+", written):
            value = int(written)
            made = [str(value + step) for step in (1, 2, 5, -1)] + [str(value * 2), str(value * 10 or 10)]
        elif re.fullmatch(r"-?\d+\.\d+", written):
            made = [
                str(round(float(written) * factor + step, 3)) for factor, step in ((2, 0), (1, 0.5), (1, 1), (10, 0))
            ]
        elif match := re.fullmatch(r"(\d[\d.]*e-)(\d+)", written):
            made = [match[1] + str(int(match[2]) + step).zfill(2) for step in (1, 2, 3)]
        else:
            return None
        free = [
            one for one in made if one not in taken and one != written and not (one[0] == "-" and written[0] != "-")
        ]
        return self.random.choice(free) if free else None

    def other_value(self, written: str, taken: set[str]) -> tuple[str, str] | None:
        """Another literal and the kind of change that makes it."""
        number = self.other_number(written, taken)
        if number is not None:
            return number, "number"
        swaps = {"True": "False", "False": "True", "None": "True", "true": "false", "false": "true", "null": "true"}
        made = swaps.get(written)
        if made is None and written[0] in "'\"":
            strings = self._strings()
            free = [one for one in strings if one.strip("'\"") not in {other.strip("'\"") for other in taken}]
            made = self.random.choice(free) if free else None
        return (made, "value") if made is not None and made not in taken else None

    def _strings(self) -> list[str]:
        found = {"'auto'", "'strict'", "'ascii'", "'latin-1'", "'default'", "'ignore'"}
        for ones in self.project.defined.values():
            for one in ones:
                found.update(given.default for given in one.parameters if given.default and given.default[0] in "'\"")
        return sorted(found)

    def value(self, written: str) -> str:
        if written[0] in "'\"":
            quoted = self.random.choice("'\"") + written[1:-1]
            written = quoted + quoted[0]
        return f"`{written}`" if self.random.random() < 0.5 else written


def _cased(word: str, like: str) -> str:
    if like.isupper() and len(like) > 1:
        return word.upper()
    return word.capitalize() if like[:1].isupper() else word
