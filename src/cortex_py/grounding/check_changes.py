"""Checks of what was done: a claim of change needs a change, in the file and of the thing that it names.

That something is there proves no change, and that something changed last proves nothing about this.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from .checks import Check
from .claim_words import CHANGES, first_verb
from .claims import Claim
from .evidence import Evidence
from .found import Revision, Seen
from .lookup import Lookup
from .resolving import NamedFile, NamedThing, Resolved

__all__ = ["Scope", "check_changes", "check_commits", "of_change", "of_revision", "scope_of"]

_IN_RELEASE = re.compile(
    r"\b(?:in|by|with|since|as of|for|release[ds]?(?:\s+(?:in|as))?|version)\s+(?:the\s+)?(?:release\s+|version\s+)?"
    r"v?(\d+(?:\.\d+)+\w*)",
    re.IGNORECASE,
)
_NEW_IN = re.compile(
    r"\b(?:is|are|was|were)\s+new\s+(?:in|since)\b|\b(?:available|existed|exists|there) since\b|\bintroduced\b"
    r"|\bfirst\s+(?:appeared|shipped|release[d]?|came)\b|\b(?:came|arrived)\s+(?:in|with)\b|\bcame\b",
    re.IGNORECASE,
)
_STATES = re.compile(
    r"\b(?:sets?|has|states?|declares?|bumps?)\s+(?:the\s+|its\s+)?(?:\w+\s+)?version\b"
    r"|\bversion\b.{0,60}\b(?:is|to|says|equals)\b",
    re.IGNORECASE,
)
_RENAMED = re.compile(r"\brenam\w+\b.*?\b(?:to|into|as)\b|→|->", re.IGNORECASE)


def of_revision(revision: Revision, path: str | None = None) -> Evidence:
    return Evidence("log", path, None, revision.id, revision.time, revision.subject)


def of_change(seen: Seen) -> Evidence:
    if seen.revision is None:
        return Evidence("diff", seen.path)
    return Evidence("diff", seen.path, None, seen.revision.id, seen.revision.time, seen.revision.subject)


@dataclass(frozen=True, slots=True)
class Scope:
    """A commit that a claim names, or a release: then all that came since the one before belongs to it."""

    revision: Revision
    after: datetime | None = None

    @property
    def id(self) -> str:
        return self.revision.id

    def holds(self, revision: Revision | None) -> bool:
        if revision is None:
            return False
        since = self.after is not None and self.after < revision.time <= self.revision.time
        return revision.id == self.revision.id or since


def scope_of(claim: Claim, lookup: Lookup) -> Scope | None:
    """The commit that the claim says it was done in: by its id, or by the version it was released as."""
    for mention in claim.mentions:
        if mention.kind == "commit" and (revision := lookup.commit(mention.value)):
            return Scope(revision)
    release = _IN_RELEASE.search(claim.text)
    versions = [release[1]] if release else [m.value for m in claim.mentions if m.kind == "version"]
    release_of = next((found for version in versions if (found := lookup.tagged(version))), None)
    return None if release_of is None else Scope(release_of, lookup.release_before(release_of))


def check_commits(claim: Claim, lookup: Lookup) -> Iterator[Check]:
    """Whether the commits that a claim names are there."""
    for mention in claim.mentions:
        if mention.kind == "commit" and lookup.has_history:
            revision = lookup.commit(mention.value)
            if revision is not None:
                yield Check("commit", True, f"commit {revision.id[:7]} is there", of_revision(revision), core=False)
            elif lookup.standing.whole_history:
                yield Check("commit", False, f"there is no commit {mention.value} here", core=False)


def check_changes(claim: Claim, found: Resolved, lookup: Lookup) -> Iterator[Check]:
    """Whether what is said to have been done can be seen in what was changed."""
    scope = scope_of(claim, lookup)
    kind = _kind(claim, found, scope)
    if kind is None:
        return
    if _RENAMED.search(claim.text) and len(found.names) == 2:
        yield from _renamed(found.names, found, lookup)
        return
    look = {"removed": _removed, "implemented": _introduced}.get(kind, _touched)
    checks = [check for thing in found.names for check in look(thing, found, lookup, scope)]
    # Of several names one is what was done something to, the others tell where: "added `close` to `Session`".
    yield from [check for check in checks if check.holds][:1] or checks[:1]
    if not found.names:
        for file in found.files:
            yield from _changed_file(kind, claim, file, lookup, scope)


def _kind(claim: Claim, found: Resolved, scope: Scope | None) -> str | None:
    """What is said to have been done: by the claim's type, else by its verb where it names a release or a commit."""
    if claim.type in CHANGES:
        return claim.type
    if not (found.names or found.files) or claim.type not in ("version", "dependency", "behaviour", "reference"):
        return None
    if _NEW_IN.search(claim.text):
        return "implemented"
    verb = first_verb(claim.text, 0, len(claim.text))
    if (
        verb is not None
        and verb.type in CHANGES
        and not _STATES.search(claim.text)
        and (scope is not None or claim.type in ("version", "dependency"))
    ):
        return verb.type
    # "sets the version to 2.0" tells what a file says, not what a release did.
    return "modified" if scope is not None and not _STATES.search(claim.text) else None


def _here(seen: Sequence[Seen], scope: Scope | None) -> list[Seen]:
    return [one for one in seen if scope is None or scope.holds(one.revision)]


def _introduced(thing: NamedThing, found: Resolved, lookup: Lookup, scope: Scope | None) -> Iterator[Check]:
    if not lookup.has_history:
        return
    paths = found.paths or None
    if paths is None and thing.defined:
        paths = tuple(dict.fromkeys(one.path for one in thing.defined))
    every = lookup.changes("introduced", thing.last, paths)
    here = _here(every, scope)
    if here:
        seen = here[0]
        yield Check("change", True, f"`{thing.name}` came with {of_change(seen).location}", of_change(seen))
    elif scope is not None:
        other = f"; it came with {of_change(every[0]).location}" if every else ""
        reason = f"`{thing.name}` did not come with commit {scope.id[:7]}{other}"
        yield Check("change", False, reason, of_change(every[0]) if every else of_revision(scope.revision))
    elif lookup.standing.whole_history and lookup.standing.complete:
        yield Check("change", False, f"no change introduced `{thing.name}`" + (f" in {paths[0]}" if paths else ""))


def _touched(thing: NamedThing, found: Resolved, lookup: Lookup, scope: Scope | None) -> Iterator[Check]:
    if not lookup.has_history:
        return
    paths = found.paths or tuple(dict.fromkeys(one.path for one in thing.defined)) or None
    every = [
        one for column in ("touched", "introduced", "dropped") for one in lookup.changes(column, thing.last, paths)
    ]
    here = _here(every, scope)
    if here:
        newest = next((one for one in here if one.status != "added"), here[0])
        yield Check("touched", True, f"`{thing.name}` was changed: {of_change(newest).location}", of_change(newest),
                    1.0 if newest.status != "added" else 0.5)  # fmt: skip
    elif (scope is not None or lookup.standing.whole_history) and lookup.standing.complete:
        yield Check("touched", False, f"no change of `{thing.name}` is recorded")


def _removed(thing: NamedThing, found: Resolved, lookup: Lookup, scope: Scope | None) -> Iterator[Check]:
    still = thing.placed if found.paths else thing.defined
    if still and scope is None:
        one = still[0]
        evidence = Evidence("symbol", one.path, one.line, detail=one.qualified)
        yield Check("gone", False, f"`{thing.name}` is still defined in {one.path} line {one.line}", evidence)
        return
    written = [file.written for file in found.files]
    dropped = [one for one in lookup.changes("dropped", thing.last) if not written or _named(one, written)]
    here = _here(dropped, scope)
    if here:
        yield Check("gone", True, f"`{thing.name}` went with {of_change(here[0]).location}", of_change(here[0]))
    elif lookup.has_history and lookup.standing.whole_history and lookup.standing.complete:
        yield Check("gone", False, f"no change removed `{thing.name}`")
    elif not thing.known:
        yield Check("gone", True, f"`{thing.name}` is not in the project", sure=0.5)


def _named(seen: Seen, written: Sequence[str]) -> bool:
    every = [path.lower() for path in (seen.path, seen.old_path) if path]
    return any(f"/{path}".endswith(f"/{name.lower().strip('/')}") for path in every for name in written)


def _renamed(names: Sequence[NamedThing], found: Resolved, lookup: Lookup) -> Iterator[Check]:
    old, new = names[0], names[1]
    if (found.paths and new.placed) or (not found.paths and new.defined):
        one = new.best or new.defined[0]
        evidence = Evidence("symbol", one.path, one.line, detail=one.qualified)
        yield Check("defined", True, f"`{new.name}` is defined in {one.path} line {one.line}", evidence)
    elif not new.known:
        yield Check("defined", False, f"there is no `{new.name}`")
    yield from _removed(old, found, lookup, None)
    yield from _introduced(new, found, lookup, None)


def _changed_file(kind: str, claim: Claim, file: NamedFile, lookup: Lookup, scope: Scope | None) -> Iterator[Check]:
    """Whether a file was added, changed or taken away, where a claim names nothing inside of it."""
    written, paths = file.written, file.paths
    if not lookup.has_history:
        if kind == "removed":
            yield Check("gone", not paths, f"{written} is {'still there' if paths else 'not there'}", sure=0.5)
        return
    every = _here(lookup.changes_named(written), scope)
    if kind == "removed" and _about_file(claim, written):
        gone = [one for one in every if one.status == "deleted"]
        if paths and scope is None:
            yield Check("gone", False, f"{paths[0]} is still there", Evidence("file", paths[0]))
        elif gone:
            yield Check("gone", True, f"{gone[0].path} went with {of_change(gone[0]).location}", of_change(gone[0]))
        elif lookup.standing.whole_history:
            yield Check("gone", False, f"no change removed {written}")
        return
    if every:
        wanted = [one for one in every if (one.status == "added") == (kind == "implemented")]
        seen = (wanted or every)[0]
        yield Check("touched", True, f"{seen.path} was changed: {of_change(seen).location}", of_change(seen),
                    1.0 if wanted else 0.6)  # fmt: skip
    elif scope is not None:
        reason = f"commit {scope.id[:7]} did not change {paths[0] if paths else written}"
        yield Check("touched", False, reason, of_revision(scope.revision))
    elif paths and lookup.standing.whole_history:
        yield Check("touched", False, f"no change of {paths[0]} is recorded", Evidence("file", paths[0]))


def _about_file(claim: Claim, written: str) -> bool:
    """Whether the file itself is what was done something to: "removed old.py", not "removed a check from old.py"."""
    place = claim.text.find(written)
    return place < 0 or not re.search(
        r"\b(?:from|in|of|inside|within)\s+(?:the\s+)?(?:file\s+)?`?$", claim.text[:place]
    )
