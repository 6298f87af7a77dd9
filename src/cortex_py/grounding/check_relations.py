"""Checks of how two names belong together in the source: who raises, inherits, imports, takes or has what."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Literal

from ..worktree.manifests import is_dependency_file
from .check_names import of_definition
from .checks import Check
from .claims import Claim
from .evidence import Evidence
from .found import Definition
from .lookup import Lookup
from .resolving import NamedThing, Resolved
from .source_reading import header_end, parameters

__all__ = ["check_relations"]

Relation = Literal["decorator", "raise", "base", "import", "parameter", "return", "member", "call"]

# What the words of a claim say of two names, the most telling first: "the method f has the decorator d" is about d.
_RELATIONS: tuple[tuple[Relation, re.Pattern[str]], ...] = tuple(
    (kind, re.compile(rf"\b(?:{words})\b", re.IGNORECASE))  # type: ignore[misc]
    for kind, words in (
        ("decorator", r"decorat(?:ed|ors?|es)"),
        ("raise", r"rais(?:es?|ed|ing)|throws?|throwing|thrown|fails? with|comes? out of"),
        ("base", r"inherits?|inheriting|extends|extending|subclass(?:es|ing|ed)?|derive[sd]?|child (?:class )?of"
                 r"|(?:base|parent|super) ?class(?:es)?|parent|extended"),
        ("import", r"imports?|imported|importing|requires?|pulls? in"),
        ("parameter", r"parameters?|arguments?|args?|kwargs?|keywords?|accepts?|takes?|signature|defaults?"
                      r"|pass(?:ed|ing|es)?|expects?"),
        ("return", r"return(?:s|ed|ing)?"),
        ("member", r"methods?|implemented on|instance|attributes?|propert(?:y|ies)|fields?|members?|exposes|implements"
                   r"|provides|belongs|has"),
        ("call", r"calls?|invokes?|delegates? to|called|uses?"),
    )
)  # fmt: skip
_MISSING = {
    "raise": "does not raise", "base": "does not inherit from", "parameter": "takes no", "member": "has no",
    "decorator": "is not decorated with", "call": "does not call", "return": "does not return",
}  # fmt: skip
# Words that turn round who does it: what comes second raises, inherits, calls.
_TURNED = re.compile(
    r"\b(?:raised|thrown|called|invoked|extended|inherited|subclassed)\b.*\bby\b"
    r"|\b(?:class(?:es)?|parent) (?:of|for)\b(?!.*\bis\b)",
    re.I,
)
_HOLDERS = frozenset(("class", "struct", "interface", "trait", "enum", "object", "module", "type", "namespace"))
_CONSTRUCTORS = ("__init__", "constructor", "__new__", "new", "initialize")
_MOST_DEFINITIONS = 12
_LONG = 220
_COUNT = re.compile(
    r"\b(\d{1,3}|no|one|two|three|four|five|six|seven|eight|nine|ten)\s+(?:\w+\s+)?(?:parameter|argument)s?\b", re.I
)
_NUMBERS = {
    "no": 0, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9,
    "ten": 10,
}  # fmt: skip


def check_relations(claim: Claim, found: Resolved, lookup: Lookup) -> Iterator[Check]:
    """Whether the source of one name has the other where the claim says that it does."""
    said = _without_names(claim, found)
    yield from _asynchronous(said, found.names, lookup)
    kind = next((kind for kind, pattern in _RELATIONS if pattern.search(said)), None)
    if kind == "import":
        if any(is_dependency_file(path) for path in found.paths):
            return  # a manifest requires packages, it imports nothing
        yield from _imports(claim, found, lookup)
    elif kind is not None:
        pairs = _pairs(kind, claim, found.names)
        if pairs:
            check = _related(kind, pairs, lookup)
            # Among many names, or in a row of a table, nobody can tell which of them is said to have which.
            if check.holds or (len(found.names) == 2 and " | " not in claim.text and len(claim.text) <= _LONG):
                yield check
        if kind == "parameter":
            yield from _counted(claim, found.names, lookup)


_ASYNC = re.compile(r"\b(?:async(?:hronous(?:ly)?)?|coroutines?|awaitable|awaited)\b", re.IGNORECASE)
_SYNC = re.compile(r"\b(?:synchronous(?:ly)?|sync|blocking)\b", re.IGNORECASE)


def _asynchronous(said: str, names: Sequence[NamedThing], lookup: Lookup) -> Iterator[Check]:
    """Whether a function is asynchronous, or is not, as the claim says."""
    is_async, is_sync = _ASYNC.search(said) is not None, _SYNC.search(said) is not None
    one = next((thing.best for thing in names if thing.best is not None), None)
    if is_async == is_sync or one is None or len(names) != 1 or one.kind not in ("function", "method"):
        return
    head = "\n".join(lookup.lines(one.path)[one.line - 1 : header_end(lookup.lines(one.path), one.line, one.end_line)])
    found = re.search(r"\basync\b|\bsuspend\b|\bPromise<|\bFuture<", head) is not None
    reason = f"`{one.qualified}` in {one.path} line {one.line} is {'' if found else 'not '}asynchronous"
    yield Check("relation", found == is_async, reason, of_definition(one))


def _without_names(claim: Claim, found: Resolved) -> str:
    """The words of a claim alone: `Parameter` and `invoke` say nothing about what they have to do with each other."""
    text = re.sub(r"`[^`]*`", " ", claim.text)
    for name in [*(thing.name for thing in found.names), *(file.written for file in found.files)]:
        # A name that is an ordinary word may stand for itself: "the default for default".
        text = text if name.isalpha() and name.islower() else text.replace(name, " ")
    return text


def _pairs(kind: Relation, claim: Claim, names: Sequence[NamedThing]) -> list[tuple[NamedThing, NamedThing]]:
    """Who may have what: each that is defined with each other one, in the order that the words give where they do."""
    every = [(a, b) for a in names for b in names if a is not b and a.best is not None and a.last != b.last]
    if kind == "member":
        every = [(a, b) for a, b in every if any(one.kind in _HOLDERS for one in a.placed or a.defined)] or every
    if kind == "raise":
        # What is raised raises nothing itself.
        every = [(a, b) for a, b in every if not _is_error(a)] or every
    if kind in ("base", "call") and len(names) == 2:
        turned = _TURNED.search(claim.text) is not None
        return [(a, b) for a, b in every if (a.at < b.at) != turned]
    return every


def _is_error(thing: NamedThing) -> bool:
    return re.search(r"(?:Error|Exception|Warning|Exit|Interrupt|Abort)$", thing.last) is not None


def _related(kind: Relation, pairs: Sequence[tuple[NamedThing, NamedThing]], lookup: Lookup) -> Check:
    name: Literal["member", "relation"] = "member" if kind == "member" else "relation"
    for owner, other in pairs if kind == "member" else ():
        # Some languages write methods apart from their type.
        inside = next((one for one in other.defined if owner.last in one.qualified.split(".")[:-1]), None)
        if inside is not None:
            reason = f"`{inside.qualified}` is defined in {inside.path} line {inside.line}"
            return Check("member", True, reason, of_definition(inside))
    for owner, other in pairs:
        for definition in (owner.placed or owner.defined)[:_MOST_DEFINITIONS]:
            if line := _place(kind, definition, other.last, lookup):
                reason = f"`{other.last}` at line {line} of {definition.path}, in `{definition.qualified}`"
                return Check(name, True, reason, Evidence("line", definition.path, line))
    owner, other = pairs[-1] if kind in ("decorator", "parameter", "member") and len(pairs) > 1 else pairs[0]
    one = owner.best or owner.defined[0]
    reason = f"`{one.qualified}` in {one.path} line {one.line} {_MISSING[kind]} `{other.last}`"
    return Check(name, False, reason, of_definition(one))


def _place(kind: Relation, definition: Definition, name: str, lookup: Lookup) -> int | None:
    """The line where the source of a definition has a name in the way that is meant."""
    path, first, last = definition.path, definition.line, definition.end_line
    if kind in ("base", "parameter"):
        return _in_head(definition, name, lookup, constructors=kind == "parameter")
    if kind == "decorator":
        lines = lookup.lines(path)
        around = lookup.places(path, name, max(1, first - 8), header_end(lines, first, last))
        return next((n for n in around if lines[n - 1].lstrip().startswith("@")), None)
    if kind == "member":
        own = (one.line for one in lookup.in_file(path) if one.name == name and first < one.line <= last)
        field = re.compile(rf"(?:^\s*|\b(?:self|this)\.|[\s({{,]){re.escape(name)}\??\s*[:=(]")
        lines = lookup.lines(path)
        return next(own, None) or next(
            (n for n in range(first, min(last, len(lines)) + 1) if field.search(lines[n - 1])), None
        )
    return _in_body(kind, definition, name, lookup)


def _in_head(definition: Definition, name: str, lookup: Lookup, *, constructors: bool) -> int | None:
    """Where the brackets after a name have another; those of a class are its constructor's for parameters."""
    path, first, last = definition.path, definition.line, definition.end_line
    lines = lookup.lines(path)
    spans = [(first, header_end(lines, first, last))]
    if constructors:
        inner = [one for one in lookup.in_file(path) if first < one.line <= last and one.name in _CONSTRUCTORS]
        spans += [(one.line, header_end(lines, one.line, one.end_line)) for one in inner[:1]]
    return next((n for low, high in spans for n in lookup.places(path, name, low, high)), None)


def _in_body(kind: Relation, definition: Definition, name: str, lookup: Lookup) -> int | None:
    path, first, last = definition.path, definition.line, definition.end_line
    word = rf"(?<![\w$]){re.escape(name)}(?![\w$])"
    patterns = {
        "raise": rf"\b(?:raise|throw)\b.*{word}",
        "call": rf"(?<![\w$]){re.escape(name)}\s*\(",
        "return": rf"(?:\breturn\b|->|=>|\byield\b).*{word}",
    }
    found, lines = re.compile(patterns[kind]), lookup.lines(path)
    place = next((n for n in range(first, min(last, len(lines)) + 1) if found.search(lines[n - 1])), None)
    # Raised by a helper, perhaps, and told in the description.
    return place if place is not None or kind != "raise" else next(iter(lookup.places(path, name, first, last)), None)


def _imports(claim: Claim, found: Resolved, lookup: Lookup) -> Iterator[Check]:
    """Whether a file imports what is named with it."""
    packages = [mention.text.strip("`") for mention in claim.mentions if mention.kind == "dependency"]
    wanted = [thing.name for thing in found.names] or list(found.terms) or packages
    for path in found.paths[:1]:
        for name in wanted[:4]:
            imports = lookup.imports(path)
            line = next((one.line for one in imports if _is_import(name, one.module, one.names)), None)
            line = line or _import_line(path, name, lookup)
            if line is not None:
                yield Check("relation", True, f"{path} imports `{name}` in line {line}", Evidence("line", path, line))
            elif imports and " | " not in claim.text:
                yield Check("relation", False, f"{path} does not import `{name}`", Evidence("file", path))


_IMPORTING = re.compile(r"^\s*(?:from|import|use|require|include|#include|export)\b|\b(?:require|import)\s*\(")


def _import_line(path: str, name: str, lookup: Lookup) -> int | None:
    """The line of an import inside a function, or in another form than most."""
    lines = lookup.lines(path)
    return next((n for n in lookup.places(path, name) if _IMPORTING.search(lines[n - 1])), None)


def _is_import(name: str, module: str, names: Sequence[str]) -> bool:
    last = re.split(r"\.|::|/", name)[-1]
    whole = module.strip("./")
    ends = whole.endswith((f".{name}", f"/{name}", f":{name}"))
    return last in names or module == name or whole == name or ends or re.split(r"[./]", whole)[0] == name


def _counted(claim: Claim, names: Sequence[NamedThing], lookup: Lookup) -> Iterator[Check]:
    """How many parameters a function takes, where a number of them is told."""
    told = _COUNT.search(claim.text)
    one = next((thing.best for thing in names if thing.best is not None), None)
    if told is None or one is None or len(names) > 1 or "optional" in claim.text:
        return
    wanted = int(told[1]) if told[1].isdigit() else _NUMBERS[told[1].lower()]
    method = one.kind == "method" or "." in one.qualified
    takes = parameters(lookup.lines(one.path), one.line, one.end_line, method=method)
    if takes is not None:
        reason = f"`{one.qualified}` takes {len(takes)} parameters"
        yield Check("value", len(takes) == wanted, reason, of_definition(one))
