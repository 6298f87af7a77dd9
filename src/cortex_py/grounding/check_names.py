"""Checks of what is there: files, definitions, lines."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Literal

from ..worktree.manifests import is_dependency_file
from .checks import Check
from .claims import Claim
from .evidence import Evidence
from .found import Definition
from .lookup import Lookup
from .resolving import NamedFile, NamedThing, Resolved

__all__ = ["check_files", "check_lines", "check_names", "of_definition"]


def of_definition(definition: Definition) -> Evidence:
    return Evidence("symbol", definition.path, definition.line, detail=definition.qualified)


def check_files(claim: Claim, found: Resolved, lookup: Lookup) -> Iterator[Check]:
    """Whether the files are there. A claim about a file alone is about its being there."""
    alone = not found.names and claim.type in ("exists", "reference", "implemented", "behaviour")
    for file in found.files:
        told = claim.type != "behaviour" or found.names or _OF_FILES.search(claim.text)
        if file.exists or (told and _is_a_path(file.written) and not lookup.outside(file.written)):
            yield _check_file(file, lookup, "present" if alone else "file")


_OF_FILES = re.compile(
    r"\b(?:files?|modules?|scripts?|part of|contains?|includes?|exists?|present|there|found|find|lives?|repository"
    r"|project)\b",
    re.IGNORECASE,
)


def _is_a_path(written: str) -> bool:
    """Whether a name can be that of one file of the project: no blank to fill in, no address, nobody's home."""
    if re.fullmatch(r"\.\w{1,4}|\w(?:\.\w){1,3}|[./]+", written):
        return False
    return not re.search(r"[<>*{}$\[]|://|^~|^/|\.\.\.", written) and not written.startswith(".env")


def _check_file(file: NamedFile, lookup: Lookup, name: Literal["present", "file"]) -> Check:
    core = name == "present"
    if file.paths:
        return Check(name, True, f"{file.paths[0]} is there", Evidence("file", file.paths[0]), core=core)
    if file.ignored:
        evidence = Evidence("file", file.written, detail="ignored by git")
        return Check(name, True, f"{file.written} lies in the folder and is ignored by git", evidence, core=core)
    near = lookup.nearest_file(file.written)
    hint = f"; nearest: {near}" if near else ""
    return Check(name, False, f"there is no file {file.written}{hint}", core=core)


def check_names(claim: Claim, found: Resolved, lookup: Lookup) -> Iterator[Check]:
    """Whether the names are defined, and in the files that are named with them."""
    denied = _denied(claim, found.names) if claim.negated else None
    for thing in found.names:
        checks = _check_name(thing, found, lookup, claim)
        # "`Session` has no `close`" denies only one of them.
        yield from (replace(one, core=False) for one in checks) if denied not in (None, thing) else checks


def _denied(claim: Claim, names: Sequence[NamedThing]) -> NamedThing | None:
    """The name whose presence a claim denies: the last, unless the one before is said to be missing from it."""
    if len(names) < 2:
        return None
    first, last = names[0], names[-1]
    between = claim.text.partition(first.name)[2].partition(last.name)[0]
    return first if re.search(r"\b(?:from|in|of|on|inside)\b", between) else last


def _check_name(thing: NamedThing, found: Resolved, lookup: Lookup, claim: Claim) -> Iterator[Check]:
    shown, where = f"`{thing.name}`", ", ".join(found.paths[:2])
    if thing.placed:
        one = thing.best or thing.placed[0]
        yield Check("placed", True, f"{shown} is defined in {one.path} line {one.line}", of_definition(one))
    elif found.paths and thing.used:
        path, line = thing.used
        # Where it is defined elsewhere, that it is used here denies nothing.
        evidence = Evidence("line", path, line)
        yield Check("used", True, f"{shown} stands in {path} line {line}", evidence, core=not thing.defined)
        told = claim.type in ("exists", "implemented") and not all(map(is_dependency_file, found.paths))
        if thing.defined and thing is found.names[0] and told:
            one = thing.best or thing.defined[0]
            reason = f"{shown} is defined in {one.path} line {one.line}, not in {where}"
            yield Check("defined", False, reason, of_definition(one))
    elif found.paths and (thing.defined or thing.known):
        yield _elsewhere(thing, where)
    elif thing.defined:
        one = thing.best or thing.defined[0]
        yield Check("defined", True, f"{shown} is defined in {one.path} line {one.line}", of_definition(one))
    elif thing.modules:
        yield Check("defined", True, f"{shown} is {thing.modules[0]}", Evidence("file", thing.modules[0]))
    elif thing.known:
        yield _known(thing, lookup)
    elif not any(file.ignored for file in found.files) and (found.paths or not lookup.sources.narrowed):
        # A file that git ignores was not read, nor was what lies outside of the sources.
        yield _absent(thing, found, lookup)


def _elsewhere(thing: NamedThing, where: str) -> Check:
    if one := thing.best:
        reason = f"`{thing.name}` is not in {where}; it is defined in {one.path} line {one.line}"
        return Check("placed", False, reason, of_definition(one))
    return Check("placed", False, f"`{thing.name}` is not in {where}")


def _known(thing: NamedThing, lookup: Lookup) -> Check:
    for path in lookup.having(thing.last)[:20]:
        if lines := lookup.places(path, thing.last):
            reason = f"`{thing.name}` stands in {path} line {lines[0]}, but is defined nowhere"
            return Check("known", True, reason, Evidence("line", path, lines[0]), core=False)
    return Check("known", True, f"`{thing.name}` occurs in the project, but is defined nowhere", core=False)


def _absent(thing: NamedThing, found: Resolved, lookup: Lookup) -> Check:
    near = lookup.nearest(thing.last, found.paths)
    hint = f"; nearest: `{near.name}`" if near else ""
    where = ", ".join(found.paths[:2]) or "the project"
    return Check("defined", False, f"no symbol `{thing.name}` in {where}{hint}", of_definition(near) if near else None)


def check_lines(claim: Claim, found: Resolved, lookup: Lookup) -> Iterator[Check]:
    """Whether what is said to stand on a line does."""
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
    for thing in found.names:
        here = lookup.places(path, thing.last, max(1, low - 1), high + 1)
        own = [one for one in thing.placed if one.line <= high and one.end_line >= low]
        if here or own:
            yield Check(
                "line", True, f"`{thing.name}` is at line {low}", Evidence("line", path, here[0] if here else low)
            )
        elif places := lookup.places(path, thing.last):
            reason = f"`{thing.name}` is at line {places[0]} of {path}, not {low}"
            yield Check("line", False, reason, Evidence("line", path, places[0]))
