"""Checks of claims about changes, against commits, uncommitted work and the changelog.

A claim of a change needs a change of the very thing and in the file that it names; that the thing exists is no proof.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import lru_cache
from typing import Literal

from ..claims.claims import Claim
from ..claims.verbs import CHANGES, find_verb
from ..index.facts import FileChange, Revision
from ..index.lookup import Lookup
from ..words import distinctive_words, load_pattern
from .check import Check, Evidence
from .names import NamedFile, NamedSymbol, ResolvedClaim, definition_evidence, is_auxiliary
from .passages import weigh_words

__all__ = [
    "LAST_COMMIT", "change_evidence", "check_changelog", "check_changes", "check_commits", "check_moves", "find_scope",
    "is_changelog", "is_rename", "read_sections", "revision_evidence",
]  # fmt: skip

_IN_RELEASE = load_pattern("checks", "in_release")
_NEW_IN = load_pattern("checks", "new_in")
_STATES = load_pattern("checks", "states")
_PAST = load_pattern("checks", "past")
_RENAMED = re.compile(r"\brenam\w+\b.*?\b(?:to|into|as)\b|→|->", re.I)


def revision_evidence(revision: Revision, path: str | None = None) -> Evidence:
    return Evidence("log", path, None, revision.id, revision.time, revision.subject)


def change_evidence(seen: FileChange) -> Evidence:
    if seen.revision is None:
        return Evidence("diff", seen.path)
    return Evidence("diff", seen.path, None, seen.revision.id, seen.revision.time, seen.revision.subject)


def _seen_in(name: Literal["change", "gone"], words: str, seen: FileChange) -> Check:
    evidence = change_evidence(seen)
    return Check(name, True, f"{words} {evidence.location}", evidence)


@dataclass(frozen=True, slots=True)
class ChangeScope:
    """A commit that a claim names, or a release, which includes all commits since the release before it."""

    revision: Revision
    is_release: bool = False
    after: datetime | None = None

    @property
    def id(self) -> str:
        return self.revision.id

    def is_known(self, lookup: Lookup) -> bool:
        """Whether all changes of the commit, or of the release, were read."""
        return lookup.state.whole_history if self.is_release else self.revision.whole

    def holds(self, revision: Revision | None) -> bool:
        if revision is None:
            return False
        if not self.is_release or revision.time > self.revision.time:
            return revision.id == self.revision.id
        return self.after is None or self.after < revision.time


# "The last commit to auth.py" may be an older one.
LAST_COMMIT = re.compile(
    r"\b(?:last|latest|newest|most recent) commit\b(?!\s+(?:to|of|on|in|for|by|before|that|which|with)\b)", re.I
)


def find_scope(claim: Claim, lookup: Lookup) -> ChangeScope | None:
    """The commit or release that the claim names, by id or by version."""
    for mention in claim.mentions:
        if mention.kind == "commit" and (revision := lookup.commit(mention.value)):
            return ChangeScope(revision)
    if LAST_COMMIT.search(claim.text) and (newest := lookup.head):
        return ChangeScope(newest)
    release = _IN_RELEASE.search(claim.text)
    versions = [release[1]] if release else [m.value for m in claim.mentions if m.kind == "version" and "." in m.value]
    release_of = next((found for version in versions if (found := lookup.tagged(version))), None)
    return None if release_of is None else ChangeScope(release_of, True, lookup.release_before(release_of))


def check_commits(claim: Claim, lookup: Lookup) -> Iterator[Check]:
    """Whether the commits that a claim names exist."""
    for mention in claim.mentions:
        if mention.kind == "commit" and lookup.has_history:
            revision = lookup.commit(mention.value)
            if revision is not None:
                yield Check("commit", True, f"commit {revision.id[:7]} exists", revision_evidence(revision), core=False)
            elif lookup.state.whole_history:
                yield Check("commit", False, f"there is no commit {mention.value}", core=False)


def check_changes(claim: Claim, found: ResolvedClaim, lookup: Lookup) -> Iterator[Check]:
    """Whether the history shows the change that a claim describes."""
    scope = find_scope(claim, lookup)
    kind = _kind(claim, found, scope)
    if kind is None or (scope is None and _names_release(claim)):
        return
    if claim.negated and scope is not None and not scope.is_release:
        return  # what a commit left alone
    if is_rename(claim, found):
        yield from _check_renamed(found, lookup, scope) if found.names else _check_renamed_file(found, lookup, scope)
        return
    if kind == "implemented" and found.names:
        direct = [symbol for symbol in found.names if _is_direct(claim, symbol)]
        if not direct:
            return  # something without a name was added to what is named
        found = replace(found, names=tuple(direct))
    if kind == "removed" and found.names:
        direct = [symbol for symbol in found.names if _is_removed_itself(claim, symbol)]
        if not direct:
            return  # a part of what is named was removed: "the default of `x`"
        found = replace(found, names=tuple(direct))
    look = {"removed": _check_removed, "implemented": _check_introduced}.get(kind, _check_touched)
    checks = [check for symbol in found.names for check in look(symbol, found, lookup, scope)]
    # Of several names only one was changed, the others say where: "added `close` to `Session`".
    yield from [check for check in checks if check.holds][:1] or checks[:1]
    if not found.names:
        for file in found.files:
            before = claim.text.partition(file.written)[0]
            if is_changelog(file.written) and len(claim.mentions) > 1 and not _CHANGED.search(before):
                continue  # "as CHANGELOG.md says"
            yield from _check_file_change(kind, claim, file, lookup, scope)


_CHANGED = re.compile(
    r"\b(?:chang|modif|touch|updat|edit|add|remov|delet|alter|revis)\w*\s+(?:the\s+|file\s+)*`?$", re.I
)


def _names_release(claim: Claim) -> bool:
    """Whether a claim names a release, so that a change at any other time says nothing about it."""
    return _IN_RELEASE.search(claim.text) is not None or any(mention.kind == "version" for mention in claim.mentions)


def _is_direct(claim: Claim, symbol: NamedSymbol) -> bool:
    """Whether a name is what was added, and not what something was added to: "added a flag to `f`"."""
    before = claim.text[: max(0, claim.text.find(symbol.name))]
    verb = None
    for match in _ADDED.finditer(before):
        verb = match
    return (
        verb is None
        or re.search(r"\b(?:to|into|for|of|on|onto|from|with|in)\s+(?:the\s+)?`?$", before[verb.end() :]) is None
    )


_PART_OF = re.compile(
    r"\b(?:defaults?|support|values?|types?|annotations?|docs?|documentation|tests?|checks?|handling|calls?|uses?|usages?"
    r"|restrictions?|limits?|warnings?|workarounds?|references?)\s+(?:\w+\s+){0,2}?(?:of|for|from|in|to|on|around)\s+"
    r"(?:the\s+|an?\s+)?`?$",
    re.I,
)


def _is_removed_itself(claim: Claim, symbol: NamedSymbol) -> bool:
    """Whether a name is what was removed, and not what a part of was: "removed the default of `x`"."""
    before = claim.text[: max(0, claim.text.find(symbol.name))]
    if "`" in before[:-1] and re.search(r"\b(?:from|in|of|on|at)\s+(?:the\s+)?`?$", before):
        return False  # "removed `x` from `C`"
    return _PART_OF.search(before) is None


_ADDED = re.compile(r"\b(?:add|implement|creat|introduc|writ|wrote|built|build|expos|includ|register|provid)\w*", re.I)


def _kind(claim: Claim, found: ResolvedClaim, scope: ChangeScope | None) -> str | None:
    """The kind of change: by the claim's type, or by its verb if it names a release or a commit."""
    if claim.type in CHANGES:
        return claim.type
    kinds = ("version", "dependency", "behaviour", "reference", "exists")
    if not (found.names or found.files) or claim.type not in kinds:
        return None
    if _NEW_IN.search(claim.text):
        return "implemented"
    if _PAST.search(claim.text) and found.names and not any(symbol.defined for symbol in found.names):
        return "removed"  # what once was there, and is not any more
    verb = find_verb(claim.text, 0, len(claim.text))
    if verb is not None and verb.type in CHANGES and not _STATES.search(claim.text) and scope is not None:
        return verb.type
    # "sets the version to 2.0" describes a file, not a release.
    is_release = scope is not None and (
        _IN_RELEASE.search(claim.text) or any(m.kind == "commit" for m in claim.mentions)
    )
    return "modified" if is_release and not _STATES.search(claim.text) else None


def _within(seen: Sequence[FileChange], scope: ChangeScope | None) -> list[FileChange]:
    return [one for one in seen if scope is None or scope.holds(one.revision)]


def _named_in(
    seen: Sequence[FileChange], symbol: NamedSymbol, lookup: Lookup, scope: ChangeScope | None
) -> list[FileChange]:
    """The changes of a scope; those of one commit only where a line has the whole name, not `old_x` for `x`."""
    here = _within(seen, scope)
    if scope is None or scope.is_release:
        return here
    whole = re.compile(rf"(?<!\w){re.escape(symbol.last)}(?!\w)")
    return [one for one in here if any(whole.search(line.text) for line in lookup.patch(one))]


def _is_recorded(symbol: NamedSymbol) -> bool:
    """Whether the history says which changes have the name: names of one letter are not recorded."""
    return len(symbol.last) > 1


def _check_introduced(
    symbol: NamedSymbol, found: ResolvedClaim, lookup: Lookup, scope: ChangeScope | None
) -> Iterator[Check]:
    if not lookup.has_history or not _is_recorded(symbol):
        return
    paths = found.paths or None
    if paths is None and symbol.defined:
        paths = tuple(dict.fromkeys(one.path for one in symbol.defined))
    every = lookup.changes("introduced", symbol.last, paths)
    here = _named_in(every, symbol, lookup, scope)
    if here:
        yield _seen_in("change", f"`{symbol.name}` was introduced by", here[0])
    elif scope is not None:
        if not scope.is_known(lookup):
            return
        other = f"; it was introduced by {change_evidence(every[0]).location}" if every else ""
        reason = f"`{symbol.name}` was not introduced by commit {scope.id[:7]}{other}"
        yield Check("change", False, reason, change_evidence(every[0]) if every else revision_evidence(scope.revision))
    elif lookup.state.whole_history and lookup.state.complete:
        yield Check("change", False, f"no change introduced `{symbol.name}`" + (f" in {paths[0]}" if paths else ""))


def _check_touched(
    symbol: NamedSymbol, found: ResolvedClaim, lookup: Lookup, scope: ChangeScope | None
) -> Iterator[Check]:
    if not lookup.has_history or not _is_recorded(symbol):
        return
    paths = found.paths or tuple(dict.fromkeys(one.path for one in symbol.defined)) or None
    every = [
        one for column in ("touched", "introduced", "dropped") for one in lookup.changes(column, symbol.last, paths)
    ]
    here = _named_in(every, symbol, lookup, scope)
    if here:
        newest = next((one for one in here if one.status != "added"), here[0])
        evidence = change_evidence(newest)
        sure = 1.0 if newest.status != "added" else 0.5
        yield Check("touched", True, f"`{symbol.name}` was changed: {evidence.location}", evidence, sure)
    elif lookup.state.complete and (scope.is_known(lookup) if scope else lookup.state.whole_history):
        yield Check("touched", False, f"no change of `{symbol.name}` is recorded")


def _check_removed(
    symbol: NamedSymbol, found: ResolvedClaim, lookup: Lookup, scope: ChangeScope | None
) -> Iterator[Check]:
    still = symbol.placed if found.paths else symbol.defined
    if still and scope is None:
        one = still[0]
        reason = f"`{symbol.name}` is still defined in {one.path} line {one.line}"
        yield Check("gone", False, reason, definition_evidence(one))
        return
    if not _is_recorded(symbol):
        return
    written = [file.written for file in found.files]
    dropped = [one for one in lookup.changes("dropped", symbol.last) if not written or _named(one, written)]
    here = _named_in(dropped, symbol, lookup, scope)
    if here:
        yield _seen_in("gone", f"`{symbol.name}` was removed by", here[0])
    elif lookup.has_history and lookup.state.whole_history and lookup.state.complete:
        yield Check("gone", False, f"no change removed `{symbol.name}`")
    elif not symbol.known:
        yield Check("gone", True, f"`{symbol.name}` is not in the project", sure=0.5)


def _named(seen: FileChange, written: Sequence[str]) -> bool:
    every = [path.lower() for path in (seen.path, seen.old_path) if path]
    return any(f"/{path}".endswith(f"/{name.lower().strip('/')}") for path in every for name in written)


def is_rename(claim: Claim, found: ResolvedClaim) -> bool:
    """Whether a claim says that one name, or one file, became another."""
    return _RENAMED.search(claim.text) is not None and len(found.names or found.files) == 2


def _check_renamed(found: ResolvedClaim, lookup: Lookup, scope: ChangeScope | None) -> Iterator[Check]:
    old, new = found.names[:2]
    if (found.paths and new.placed) or (not found.paths and new.defined):
        one = new.best or new.defined[0]
        reason = f"`{new.name}` is defined in {one.path} line {one.line}"
        yield Check("defined", True, reason, definition_evidence(one))
    elif not new.known:
        yield Check("defined", False, f"there is no `{new.name}`")
    yield from _check_removed(old, found, lookup, scope)
    yield from _check_introduced(new, found, lookup, scope)


def _check_renamed_file(found: ResolvedClaim, lookup: Lookup, scope: ChangeScope | None) -> Iterator[Check]:
    old, new = found.files[:2]
    if not new.exists:
        yield Check("file", False, f"there is no file {new.written}", core=False)
        return
    added = _within(lookup.changes_named(new.written), scope)
    deleted = [one for one in _within(lookup.changes_named(old.written), scope) if one.status == "deleted"]
    renamed = [one for one in added if one.old_path and f"/{one.old_path}".endswith(f"/{old.written}")]
    if gone := renamed or (deleted if any(one.status == "added" for one in added) else []):
        yield _seen_in("gone", f"{old.written} became {new.written}:", gone[0])
    elif old.paths:
        yield Check("gone", False, f"{old.paths[0]} still exists", Evidence("file", old.paths[0]))
    elif lookup.has_history and lookup.state.whole_history and lookup.state.complete:
        yield Check("gone", False, f"no change renamed {old.written} to {new.written}")


def _check_file_change(
    kind: str, claim: Claim, file: NamedFile, lookup: Lookup, scope: ChangeScope | None
) -> Iterator[Check]:
    """Whether a file was added, changed or deleted, for a claim that names no symbol in it."""
    written, paths = file.written, file.paths
    if not lookup.has_history:
        if kind == "removed":
            yield Check("gone", not paths, f"{written} {'still exists' if paths else 'does not exist'}", sure=0.5)
        return
    every = _within(lookup.changes_named(written), scope)
    if kind == "removed" and _about_file(claim, written):
        gone = [one for one in every if one.status == "deleted"]
        if paths and scope is None:
            yield Check("gone", False, f"{paths[0]} still exists", Evidence("file", paths[0]))
        elif gone:
            yield _seen_in("gone", f"{gone[0].path} was removed by", gone[0])
        elif lookup.state.whole_history:
            yield Check("gone", False, f"no change removed {written}")
        return
    if every:
        wanted = [one for one in every if (one.status == "added") == (kind == "implemented")]
        seen = (wanted or every)[0]
        evidence = change_evidence(seen)
        reason = f"{seen.path} was changed: {evidence.location}"
        yield Check("touched", True, reason, evidence, 1.0 if wanted else 0.6)
    elif scope is not None and scope.is_known(lookup):
        reason = f"commit {scope.id[:7]} did not change {paths[0] if paths else written}"
        yield Check("touched", False, reason, revision_evidence(scope.revision))
    elif scope is None and paths and lookup.state.whole_history:
        yield Check("touched", False, f"no change of {paths[0]} is recorded", Evidence("file", paths[0]))


def _about_file(claim: Claim, written: str) -> bool:
    """Whether the claim is about the file itself: "removed old.py", unlike "removed a check from old.py"."""
    place = claim.text.find(written)
    return place < 0 or not re.search(
        r"\b(?:from|in|of|inside|within)\s+(?:the\s+)?(?:file\s+)?`?$", claim.text[:place]
    )


# Changelogs

_FILE = re.compile(r"(?:change(?:s|log)|history|news|releases?|release[-_]notes)(?:[-_.].*)?", re.I)
_VERSION = re.compile(r"(?<![\w.])v?(\d+(?:\.\d+){1,3}\w*)")
_HEADING = re.compile(r"\s{0,3}(?:#{1,4}\s|version\b|release\b|\[|v?\d+\.\d|\*\*|={2,}\s)", re.I)
_UNDERLINE = re.compile(r"([=\-~^*+#\"'`])\1{2,}")
_LONGEST_HEADING = 100
_MOST_FILES = 3


def read_sections(lines: tuple[str, ...]) -> Iterator[tuple[str, int, int]]:
    """The sections of a changelog: version, first and last line, counted from 1."""
    opened: tuple[str, int] | None = None
    for number, line in enumerate(lines, 1):
        under = lines[number].strip() if number < len(lines) else ""
        if len(line) > _LONGEST_HEADING or not (_HEADING.match(line) or _UNDERLINE.fullmatch(under)):
            continue
        version = _VERSION.search(line)
        if version is None or line.lstrip().startswith(("-", "*  ", "+")):
            continue
        if opened is not None:
            yield opened[0], opened[1], number - 1
        opened = version[1], number
    if opened is not None:
        yield opened[0], opened[1], len(lines)


_MOVED = re.compile(
    r"\bfrom\s+`?([\w@./:-]{3,80})`?\s+to\s+`?([\w@./:-]{3,80})`?|\b(?:renamed|replaced|became)\b", re.I
)


def check_moves(claim: Claim, lookup: Lookup) -> Iterator[Check]:
    """Whether what a claim says was replaced is gone, and what replaced it is there."""
    match = _MOVED.search(claim.text)
    if match is None or not match[1] or claim.type == "version":
        return
    old, new = match[1].rstrip("."), match[2].rstrip(".")
    if not all(re.search(r"[A-Z_./:-]|\d", name) and not name.replace(".", "").isdigit() for name in (old, new)):
        return
    places = [next(_places(name, lookup), None) for name in (old, new)]
    if (places[0] is None) == (places[1] is None):
        return
    path, line = places[1] or places[0] or ("", 1)
    holds = places[1] is not None
    reason = f"{new if holds else old} is in {path} line {line}, {old if holds else new} is not"
    yield Check("moved", holds, reason, Evidence("line", path, line), 0.8, core=False)


def _places(name: str, lookup: Lookup) -> Iterator[tuple[str, int]]:
    parts = re.findall(r"\w+", name)
    for path in lookup.files_with(max(parts, key=len, default=""))[:40]:
        if not is_changelog(path) and not is_auxiliary(path):
            lines = lookup.lines_with(path, name)
            if lines:
                yield path, lines[0]


def check_changelog(claim: Claim, lookup: Lookup) -> Iterator[Check]:
    """Whether the changelog says what a claim tells of a release, under the version that the claim gives.

    The entry with most of the claim's words decides: it must stand under that version, and add, remove, rename or fix
    as the claim says.
    """
    versions = [mention.value for mention in claim.mentions if mention.kind == "version"]
    versions += [version for version in _VERSION.findall(claim.text) if version not in versions]
    words = [word for word in distinctive_words(claim.text) if not word.isdigit() and word not in _OF_RELEASES]
    if not words or not _OF_HISTORY.search(claim.text):
        return
    rows = [row for path in _changelogs(lookup) for row in _entries(path, lookup)]
    released = {row[1] for row in rows}
    # "Python 3.8" is no release of the project.
    versions = [version for version in versions if any(_same_release(one, version) for one in released)]
    dated = bool(versions) or _TELLS.search(claim.text) is not None
    if not dated and len(words) < _LONG:
        return
    weights = weigh_words(words, lookup)
    scored = sorted(((_covered(text, weights), row) for row in rows if (text := row[3])), key=lambda one: -one[0])
    if not scored or scored[0][0] < (_SAYS if dated else _REPEATS):
        return
    best = scored[0][0]
    top = [row for score, row in scored if score >= best - 0.05]
    own = [row for row in top if not versions or any(_same_release(row[1], version) for version in versions)]
    path, version, line, text = (own or top)[0]
    evidence = Evidence("line", path, line, end_line=line + text.count("\n"))
    acts = _acts(claim.text), _acts(text)
    if not own and _UP_TO.search(claim.text):
        return  # what was so before
    if not own:
        yield Check(
            "changelog", False, f"{path} line {line} lists it under {version}, not {versions[0]}", evidence, best
        )
    elif any(one.kind == "number" and one.text not in versions and one.text not in text for one in claim.mentions):
        return  # another number may stand there
    elif acts[0] and not acts[1]:
        return  # that it was added or removed was not read
    elif acts[0] and not acts[0] & acts[1]:
        yield Check("changelog", False, f"{path} line {line} says: {text[:100]}", evidence, best)
    elif _is_turned(claim.text, text):
        yield Check("changelog", False, f"{path} line {line} says it the other way round", evidence, best)
    else:
        yield Check("changelog", True, f"{path} line {line} lists it under {version}", evidence, best)


_UP_TO = re.compile(r"\b(?:until|before|up to) v?\d", re.I)
_SAYS = 0.5  # the share of a claim's words from which an entry is about it
_REPEATS = 0.95  # the share from which an entry says the same as a claim that names no release
_LONG = 5  # words of such a claim
_OF_RELEASES = frozenset(
    ("releas", "version", "changelog", "say", "record", "accord", "sinc", "first", "appear", "introduc")
)
_TELLS = re.compile(r"\b(?:changelog|changes\.(?:md|rst)|history\.md|release notes|used to|no longer)\b", re.I)
_OF_HISTORY = load_pattern("checks", "of_history")
_ACTS: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (name, re.compile(rf"\b(?:{words})", re.I))
    for name, words in (
        ("added", "add|introduc|new\\b|implement|support for|first appear|gain"),
        ("removed", "remov|dropp?|delet|no longer|gone\\b|discontinu"),
        ("deprecated", "deprecat"),
        ("reverted", "revert"),
        ("fixed", "fix|correct|resolv"),
        ("renamed", "renam"),
    )
)


def _acts(text: str) -> set[str]:
    return {name for name, pattern in _ACTS if pattern.search(text)}


def _is_turned(claim: str, entry: str) -> bool:
    """Whether a claim and an entry rename or move two things in opposite directions."""
    match = _RENAMES.search(claim)
    if match is None:
        return False
    left, right = match[1].rstrip("."), match[2].rstrip(".")
    one, other = entry.find(left), entry.find(right)
    return (
        one >= 0
        and other >= 0
        and other < one
        and re.search(r"\b(?:to|into|by|with|→|->)\b", entry[other:one]) is not None
    )


_RENAMES = re.compile(
    r"(?:from\s+|renam\w+\s+)?`?([\w.-]{3,60})`?,?\s+(?:\w+\s+){0,4}(?:to|into|by|with)\s+`?([\w.-]{3,60})`?"
)


def _same_release(listed: str, claimed: str) -> bool:
    return listed == claimed or listed.startswith(f"{claimed}.") or listed == f"{claimed}.0"


@lru_cache(65_536)  # asked of every file for every claim about a change
def is_changelog(path: str) -> bool:
    return _FILE.fullmatch(posixpath.basename(path)) is not None


def _changelogs(lookup: Lookup) -> list[str]:
    files = [path for path in lookup.paths if is_changelog(path)]
    return sorted(files, key=lambda path: (path.count("/"), path))[:_MOST_FILES]


def _entries(path: str, lookup: Lookup) -> list[tuple[str, str, int, str]]:
    """The entries of a changelog with their versions: path, version, line, text."""
    return lookup.cached_entries(path, _read_entries)


def _read_entries(path: str, lines: tuple[str, ...]) -> list[tuple[str, str, int, str]]:
    found: list[tuple[str, str, int, str]] = []
    for version, first, last in read_sections(lines):
        at, text = 0, ""
        for number in range(first + 1, min(last, len(lines)) + 1):
            line = lines[number - 1]
            begins = re.match(r"\s*(?:[-*+]|\d+\.)\s+\S", line) is not None
            if text and (begins or not line.strip()):
                found.append((path, version, at, text[:_LONGEST_ENTRY]))
                text = ""
            if line.strip():
                at = at if text else number
                text = f"{text}\n{line.strip()}" if text else line.strip()
        if text:
            found.append((path, version, at, text[:_LONGEST_ENTRY]))
        if len(found) > _MOST_ENTRIES:
            break
    return found


_LONGEST_ENTRY = 800
_MOST_ENTRIES = 5_000


def _covered(text: str, weights: dict[str, float]) -> float:
    have = text.lower()
    total = sum(weights.values()) or 1.0
    return sum(weight for word, weight in weights.items() if word in have) / total
