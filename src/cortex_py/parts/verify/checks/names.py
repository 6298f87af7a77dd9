"""Resolves the names in a claim to files and definitions of the project, and checks that they exist."""

from __future__ import annotations

import builtins
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from ....worktree.manifests.manifests import is_dependency_file
from ..claims.claims import Claim
from ..claims.mentions import Mention
from ..index.facts import Definition
from ..index.lookup import Lookup
from ..words import load_pattern, load_words
from .check import Check, Evidence

__all__ = [
    "NamedFile", "NamedSymbol", "ResolvedClaim", "check_files", "check_lines", "check_names", "definition_evidence",
    "is_auxiliary", "is_configuration", "resolve",
]  # fmt: skip

_MOST_NAMES = 12
# Literals and keywords, which no project defines.
LITERALS = load_words("checks", "literals")


@dataclass(frozen=True, slots=True)
class NamedFile:
    """A path as written in the claim, with the files it may mean; `ignored` if it exists but git ignores it."""

    written: str
    paths: tuple[str, ...]
    ignored: bool

    @property
    def exists(self) -> bool:
        return bool(self.paths) or self.ignored


@dataclass(frozen=True, slots=True)
class NamedSymbol:
    """A name in the claim: all its definitions, those in the claim's files (`placed`), and where else it occurs."""

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
        """The definition that the claim most likely means: in its files, then outside tests."""
        every = self.placed or self.defined
        return min(
            every,
            key=lambda one: (is_auxiliary(one.path), _is_stub(one.path), one.path.count("/"), one.path, one.line),
            default=None,
        )


@dataclass(frozen=True, slots=True)
class ResolvedClaim:
    """`terms` are the other words in backticks: packages, options, plain words."""

    files: tuple[NamedFile, ...]
    names: tuple[NamedSymbol, ...]
    literals: tuple[str, ...]
    terms: tuple[str, ...] = ()

    @property
    def paths(self) -> tuple[str, ...]:
        """The files of the project that the claim names."""
        return tuple(dict.fromkeys(path for file in self.files for path in file.paths))


def resolve(claim: Claim, lookup: Lookup) -> ResolvedClaim:
    known = {mention.text.strip("`") for mention in claim.mentions if mention.kind in ("file", "symbol")}
    ticked = [word for word in dict.fromkeys(_TICKED.findall(claim.text)) if word not in known]
    pathlike = dict.fromkeys([*ticked, *_PATH.findall(claim.text)])
    more = [word for word in pathlike if ("/" in word or "." in word) and word not in known and lookup.files(word)]
    # `res.json` looks like a file, and is a method if there is one of that name and no such file.
    dotted = [one for one in claim.mentions if one.kind == "file" and _is_member(one.value, lookup)]
    members = {mention.value for mention in dotted}
    products = {name for name in claim.files if _PRODUCT.fullmatch(name) and not lookup.files(name)}
    written_files = [name for name in [*claim.files, *more] if name not in members and name not in products]
    files = tuple(_resolve_file(written, lookup) for written in written_files[:_MOST_NAMES])
    paths = tuple(dict.fromkeys(path for file in files for path in file.paths))
    symbols = {one.value: one for one in reversed(claim.mentions) if one.kind == "symbol"}
    symbols |= {one.value: one for one in dotted}
    literals = [value for value in symbols if value.lower() in LITERALS]
    names = [_resolve_symbol(mention, paths, lookup) for value, mention in symbols.items() if value not in literals]
    # A word in capitals (TOKEN, HTTP2) is a name only if the project defines it or did.
    names += [
        _resolve_symbol(Mention("symbol", match[0], match.start(), match.end(), match[0]), paths, lookup)
        for match in _CAPITALS.finditer(claim.text)
        if match[0] not in symbols
        and claim.type in _NAMING
        and _is_defined_here(match[0], lookup, was=claim.type != "behaviour")
    ]
    names.sort(key=lambda one: one.at)
    others = {mention.text.strip("`") for mention in claim.mentions if mention.kind in _VALUES}
    terms = tuple(word for word in ticked if word not in more and word not in others and word.lower() not in LITERALS)
    return ResolvedClaim(files, tuple(names[:_MOST_NAMES]), tuple(literals), terms[:_MOST_NAMES])


_NAMING = frozenset(("value", "exists", "removed", "implemented", "modified", "behaviour"))
_VALUES = frozenset(("number", "version", "command", "commit", "tests", "url"))
_PRODUCT = re.compile(r"[A-Z]\w*\.(?:js|io|py|rs)")  # Node.js
_TICKED = re.compile(r"`([^`\s]{2,120})`")
_CAPITALS = load_pattern("checks", "capitals", 0)
_PATH = re.compile(r"(?<![\w`/.@-])(?:\.?[\w@-]+/)+[\w.@~-]+\w|(?<![\w`/.])\.[a-z]\w{3,30}(?![\w/])")


def _is_member(written: str, lookup: Lookup) -> bool:
    is_name = re.fullmatch(r"[A-Za-z_]\w*\.[A-Za-z_]\w*", written) is not None
    if not is_name or lookup.files(written):
        return False
    if lookup.definitions(written):
        return True
    called = re.compile(rf"(?<![\w./\"'])`?{re.escape(written)}\s?\(")
    near = lookup.files_with(written.partition(".")[0])[:20]
    return any(called.search(line) for path in near for line in lookup.lines(path))


def _is_defined_here(name: str, lookup: Lookup, *, was: bool) -> bool:
    defined = [one for one in lookup.definitions(name) if one.name == name and not is_auxiliary(one.path)]
    return bool(defined) or (was and any(not is_auxiliary(seen.path) for seen in lookup.changes("dropped", name)))


def _resolve_file(written: str, lookup: Lookup) -> NamedFile:
    paths = tuple(lookup.files(written))
    return NamedFile(written, paths, not paths and lookup.on_disk(written))


def _resolve_symbol(mention: Mention, paths: tuple[str, ...], lookup: Lookup) -> NamedSymbol:
    name = re.sub(r"\(.*\)$", "", mention.value).lstrip("@$")
    defined = tuple(lookup.definitions(name))
    inside = set(paths)
    placed = tuple(one for one in defined if one.path in inside)
    last = re.split(r"\.|::|#|->", name)[-1]
    used = None if placed else next(
        ((path, lines[0]) for path in paths[:20] if (lines := lookup.lines_with(path, last))), None
    )  # fmt: skip
    modules = tuple(lookup.module(name)) if not defined else ()
    known = bool(defined or used or modules) or lookup.knows(last)
    return NamedSymbol(name, mention.start, defined, placed, used, modules, known)


_ASIDE = load_pattern("checks", "aside", 0)
_PAST = load_pattern("checks", "past")
_BUILT_IN = frozenset(dir(builtins)) | load_words("checks", "built_in")


def _is_stub(path: str) -> bool:
    return path.endswith((".pyi", ".d.ts"))


def is_auxiliary(path: str) -> bool:
    """Whether a file only tests, demonstrates or documents the project."""
    return _ASIDE.search(path) is not None


def is_configuration(path: str) -> bool:
    """Whether a file holds settings and not code."""
    return path.lower().endswith(
        (".toml", ".json", ".yml", ".yaml", ".ini", ".cfg", ".conf", ".env", ".properties", ".mod", ".xml")
    )


def definition_evidence(definition: Definition) -> Evidence:
    return Evidence("symbol", definition.path, definition.line, detail=definition.qualified)


def check_files(claim: Claim, found: ResolvedClaim, lookup: Lookup) -> Iterator[Check]:
    """Whether the files exist. For a claim that names nothing else, this is what it claims."""
    alone = not found.names and claim.type in ("exists", "reference", "implemented", "behaviour")
    for file in found.files:
        # `express.json` may be a function.
        named = bool(found.names) and not file.written.endswith(".json")
        owner, _, member = file.written.partition(".")
        is_member = member.isidentifier() and owner.isidentifier() and lookup.knows(owner)
        if is_member and not file.exists and not _OF_FILES.search(claim.text):
            continue  # of something that is there
        stated = claim.type != "behaviour" or named or "/" in file.written or _OF_FILES.search(claim.text)
        if file.exists or (stated and _is_a_path(file.written) and not lookup.outside(file.written)):
            yield _check_file(file, lookup, "present" if alone else "file")


_OF_FILES = load_pattern("checks", "of_files")


def _is_a_path(written: str) -> bool:
    """Whether a name can be a path of the project: no placeholder, no URL, not in a home folder."""
    if re.fullmatch(r"\.\w{1,4}|\w(?:\.\w){1,3}|[./]+", written):
        return False
    return not re.search(r"[<>*{}$\[]|://|^~|^/|\.\.\.", written) and not written.startswith(".env")


def _check_file(file: NamedFile, lookup: Lookup, name: Literal["present", "file"]) -> Check:
    core = name == "present"
    if file.paths:
        return Check(name, True, f"{file.paths[0]} exists", Evidence("file", file.paths[0]), core=core)
    if file.ignored:
        evidence = Evidence("file", file.written, detail="ignored by git")
        return Check(name, True, f"{file.written} exists and is ignored by git", evidence, core=core)
    near = lookup.nearest_file(file.written)
    hint = f"; nearest: {near}" if near else ""
    return Check(name, False, f"there is no file {file.written}{hint}", core=core)


def check_names(claim: Claim, found: ResolvedClaim, lookup: Lookup) -> Iterator[Check]:
    """Whether the names are defined, and in the files that the claim names."""
    denied = _denied(claim, found.names) if claim.negated else None
    for symbol in found.names:
        checks = _check_name(symbol, found, lookup, claim)
        # "`Session` has no `close`" denies only one of them.
        yield from (replace(one, core=False) for one in checks) if denied not in (None, symbol) else checks


def _denied(claim: Claim, names: Sequence[NamedSymbol]) -> NamedSymbol | None:
    """The name whose existence a claim denies: the last, or the first in "`f` is missing from `C`"."""
    if len(names) < 2:
        return None
    first, last = names[0], names[-1]
    between = claim.text.partition(first.name)[2].partition(last.name)[0]
    return first if re.search(r"\b(?:from|in|of|on|inside)\b", between) else last


def _check_name(symbol: NamedSymbol, found: ResolvedClaim, lookup: Lookup, claim: Claim) -> Iterator[Check]:
    shown, where = f"`{symbol.name}`", ", ".join(found.paths[:2])
    if symbol.placed:
        one = symbol.best or symbol.placed[0]
        yield Check("placed", True, f"{shown} is defined in {one.path} line {one.line}", definition_evidence(one))
    elif found.paths and symbol.used:
        path, line = symbol.used
        # A name that is defined elsewhere can be used here.
        evidence = Evidence("line", path, line)
        yield Check("used", True, f"{shown} occurs in {path} line {line}", evidence, core=not symbol.defined)
        stated = claim.type in ("exists", "implemented") and not all(map(is_dependency_file, found.paths))
        if symbol.defined and symbol is found.names[0] and stated:
            one = symbol.best or symbol.defined[0]
            reason = f"{shown} is defined in {one.path} line {one.line}, not in {where}"
            yield Check("defined", False, reason, definition_evidence(one))
    elif found.paths and (symbol.defined or symbol.known):
        yield _check_elsewhere(symbol, where)
    elif symbol.defined:
        one = symbol.best or symbol.defined[0]
        yield Check("defined", True, f"{shown} is defined in {one.path} line {one.line}", definition_evidence(one))
    elif symbol.modules:
        yield Check("defined", True, f"{shown} is {symbol.modules[0]}", Evidence("file", symbol.modules[0]))
    elif symbol.known:
        yield _check_known(symbol, lookup)
    elif symbol.name in _BUILT_IN and not claim.negated:
        return  # an operation may raise it without naming it
    elif _PAST.search(claim.text) and lookup.changes("dropped", symbol.last):
        return  # it was there
    elif "." in symbol.name and symbol.name.partition(".")[0].lower() in lookup.modules:
        return  # a part of another package
    elif not any(file.ignored for file in found.files) and (found.paths or not lookup.sources.narrowed):
        # Ignored files and files outside the sources were not read.
        yield _check_absent(symbol, found, lookup)


def _check_elsewhere(symbol: NamedSymbol, where: str) -> Check:
    if one := symbol.best:
        reason = f"`{symbol.name}` is not in {where}; it is defined in {one.path} line {one.line}"
        return Check("placed", False, reason, definition_evidence(one))
    return Check("placed", False, f"`{symbol.name}` is not in {where}")


def _check_known(symbol: NamedSymbol, lookup: Lookup) -> Check:
    for path in lookup.files_with(symbol.last)[:20]:
        if lines := lookup.lines_with(path, symbol.last):
            reason = f"`{symbol.name}` is mentioned in {path} line {lines[0]} but never defined"
            return Check("known", True, reason, Evidence("line", path, lines[0]), core=False)
    return Check("known", True, f"`{symbol.name}` is mentioned in the project but never defined", core=False)


def _check_absent(symbol: NamedSymbol, found: ResolvedClaim, lookup: Lookup) -> Check:
    near = lookup.nearest(symbol.last, found.paths)
    hint = f"; nearest: `{near.name}`" if near else ""
    where = ", ".join(found.paths[:2]) or "the project"
    return Check(
        "defined", False, f"no symbol `{symbol.name}` in {where}{hint}", definition_evidence(near) if near else None
    )


def check_lines(claim: Claim, found: ResolvedClaim, lookup: Lookup) -> Iterator[Check]:
    """Whether the names are on the line that the claim gives."""
    written = next((mention.value for mention in claim.mentions if mention.kind == "line"), None)
    if written is None or not found.paths:
        return
    first, _, last = written.partition("-")
    low, high = int(first[:9]), int((last or first)[:9])
    path = found.paths[0]
    count = len(lookup.lines(path))
    if not 1 <= low <= count:
        yield Check("line", False, f"{path} has only {count} lines", Evidence("file", path))
        return
    for symbol in found.names:
        here = lookup.lines_with(path, symbol.last, max(1, low - 1), high + 1)
        own = [one for one in symbol.placed if one.line <= high and one.end_line >= low]
        if here or own:
            yield Check(
                "line", True, f"`{symbol.name}` is at line {low}", Evidence("line", path, here[0] if here else low)
            )
        elif places := lookup.lines_with(path, symbol.last):
            reason = f"`{symbol.name}` is at line {places[0]} of {path}, not {low}"
            yield Check("line", False, reason, Evidence("line", path, places[0]))
