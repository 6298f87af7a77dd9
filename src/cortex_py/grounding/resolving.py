"""What the names in a claim stand for in the project: files that are there, definitions, or nothing."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ..memory.opposites import word_set
from .claims import Claim
from .found import Definition
from .lookup import Lookup
from .mentions import Mention

__all__ = ["LITERALS", "NamedFile", "NamedThing", "Resolved", "is_aside", "resolve"]

_MOST_NAMES = 12
# Values and words of languages, which no project defines.
LITERALS = word_set(
    """true false none null nil undefined nan self this cls int str bool float bytes list dict tuple set object any void
    string number boolean"""
)


@dataclass(frozen=True, slots=True)
class NamedFile:
    """A path as the claim has it, with the files that it may mean; `ignored` for one that only lies in the folder."""

    written: str
    paths: tuple[str, ...]
    ignored: bool

    @property
    def exists(self) -> bool:
        return bool(self.paths) or self.ignored


@dataclass(frozen=True, slots=True)
class NamedThing:
    """A name in the claim: where it is defined at all, where in the claim's own files, and where else it stands."""

    name: str
    at: int
    defined: tuple[Definition, ...]
    placed: tuple[Definition, ...]
    used: tuple[str, int] | None
    modules: tuple[str, ...]
    known: bool

    @property
    def last(self) -> str:
        return re.split(r"\.|::|#|->", self.name)[-1]

    @property
    def best(self) -> Definition | None:
        """The definition that is meant most likely: one in the claim's files, then one outside of tests."""
        every = self.placed or self.defined
        return min(
            every,
            key=lambda one: (is_aside(one.path), _is_stub(one.path), one.path.count("/"), one.path, one.line),
            default=None,
        )


@dataclass(frozen=True, slots=True)
class Resolved:
    """`terms` is what else stands between backticks: names of packages, options, words."""

    files: tuple[NamedFile, ...]
    names: tuple[NamedThing, ...]
    literals: tuple[str, ...]
    terms: tuple[str, ...] = ()

    @property
    def paths(self) -> tuple[str, ...]:
        """The files of the project that the claim names."""
        return tuple(dict.fromkeys(path for file in self.files for path in file.paths))


def resolve(claim: Claim, lookup: Lookup) -> Resolved:
    known = {mention.text.strip("`") for mention in claim.mentions if mention.kind in ("file", "symbol")}
    ticked = [word for word in dict.fromkeys(_TICKED.findall(claim.text)) if word not in known]
    pathlike = dict.fromkeys([*ticked, *_PATH.findall(claim.text)])
    more = [word for word in pathlike if ("/" in word or "." in word) and word not in known and lookup.files(word)]
    files = tuple(_file(written, lookup) for written in [*claim.files, *more][:_MOST_NAMES])
    paths = tuple(dict.fromkeys(path for file in files for path in file.paths))
    symbols = {one.value: one for one in reversed(claim.mentions) if one.kind == "symbol" and len(one.value) > 1}
    literals = [value for value in symbols if value.lower() in LITERALS]
    names = [_thing(mention, paths, lookup) for value, mention in symbols.items() if value not in literals]
    # Words in capitals are as often a word as a name: TOKEN, HTTP2. What the project defines, or did, is a name.
    names += [
        _thing(Mention("symbol", match[0], match.start(), match.end(), match[0]), paths, lookup)
        for match in _CAPITALS.finditer(claim.text)
        if match[0] not in symbols and claim.type in _NAMING and _is_ours(match[0], lookup)
    ]
    names.sort(key=lambda one: one.at)
    others = {mention.text.strip("`") for mention in claim.mentions if mention.kind in _VALUES}
    terms = tuple(word for word in ticked if word not in more and word not in others and word.lower() not in LITERALS)
    return Resolved(files, tuple(names[:_MOST_NAMES]), tuple(literals), terms[:_MOST_NAMES])


_NAMING = frozenset(("value", "exists", "removed", "implemented", "modified", "behaviour"))
_VALUES = frozenset(("number", "version", "command", "commit", "tests", "url"))
_TICKED = re.compile(r"`([^`\s]{2,120})`")
_CAPITALS = re.compile(
    r"(?<![\w`.-])(?:[A-Z]{2,}\d+(?![\w-])|[A-Z]{3,}(?![\w-])(?=\s*=|\s+(?:is|was|equals|has\s+the\s+value|holds|set)\b))"
)
_PATH = re.compile(r"(?<![\w`/.])(?:\.?[\w@-]+/)+[\w.@~-]+\w|(?<![\w`/.])\.[a-z]\w{3,30}(?![\w/])")


def _is_ours(name: str, lookup: Lookup) -> bool:
    defined = [one for one in lookup.definitions(name) if one.name == name and not is_aside(one.path)]
    return bool(defined) or any(not is_aside(seen.path) for seen in lookup.changes("dropped", name))


def _file(written: str, lookup: Lookup) -> NamedFile:
    paths = tuple(lookup.files(written))
    return NamedFile(written, paths, not paths and lookup.on_disk(written))


def _thing(mention: Mention, paths: tuple[str, ...], lookup: Lookup) -> NamedThing:
    name = re.sub(r"\(.*\)$", "", mention.value).lstrip("@$")
    defined = tuple(lookup.definitions(name))
    inside = set(paths)
    placed = tuple(one for one in defined if one.path in inside)
    last = re.split(r"\.|::|#|->", name)[-1]
    used = None if placed else next(
        ((path, lines[0]) for path in paths[:20] if (lines := lookup.places(path, last))), None
    )  # fmt: skip
    modules = tuple(lookup.module(name)) if not defined else ()
    known = bool(defined or used or modules) or lookup.knows(last)
    return NamedThing(name, mention.start, defined, placed, used, modules, known)


_ASIDE = re.compile(
    r"(?:^|/)(?:tests?|__tests__|examples?|docs?|bench(?:marks)?|fixtures?|typings?|stubs?)/|(?:^|/)test_"
)


def _is_stub(path: str) -> bool:
    return path.endswith((".pyi", ".d.ts"))


def is_aside(path: str) -> bool:
    """Whether a file only tests, shows or documents the project."""
    return _ASIDE.search(path) is not None
