"""Checks of numbers, versions, packages and test results, compared by value and not by spelling."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from ....worktree.files.choice import decode_text, skip_by_name
from ....worktree.files.files import FileRef, read_file
from ....worktree.manifests.manifests import Dependency, admits, agrees, is_dependency_file
from ....worktree.test_reports import RunReport, is_report_name, read_report
from ..claims.claims import Claim
from ..claims.mentions import Mention
from ..index.lookup import Lookup
from ..words import distinctive_words, load_pattern, load_words
from .changes import change_evidence
from .check import Check, Evidence
from .names import ResolvedClaim, is_auxiliary
from .scene import number_meanings, read_numbers, same_number

__all__ = [
    "check_dependencies", "check_earlier_value", "check_no_dependencies", "check_replacement", "check_runtimes",
    "check_tests", "check_versions", "find_reports",
]  # fmt: skip

_CONSTRAINT = re.compile(r"(>=|<=|==|~=|!=|\^|~|>|<)\s*`?v?(\d[\w.*+-]*)")
_FLOOR = re.compile(r"\b(?:at least|or (?:newer|later|higher|above)|minimum|and up|onwards?)\b|\d\+", re.I)
_FROM_TO = re.compile(r"\bfrom\b.+?\bto\b", re.I)
_SIGNED = re.compile(r"[\^~]\s*\d|[<>=~]=\s*\d|[<>]\s*\d")
_MOST_PATCHES = 8
_OF_VERSION = re.compile(
    r"\b(?:versions?|released?|releases|v\d+\.\d|(?:package|project|library|we)\s+(?:is|are)\s+(?:\w+\s+)?(?:at|on)\b)",
    re.I,
)
_RELEASED = re.compile(r"\b(?:released?|tag(?:ged)?|shipped|published)\b", re.I)


def check_replacement(claim: Claim, found: ResolvedClaim, lookup: Lookup) -> Iterator[Check]:
    """Whether a change replaced one number by another on lines with the claim's name."""
    numbers = [mention for mention in claim.mentions if mention.kind == "number"]
    if not _FROM_TO.search(claim.text) or len(numbers) != 2 or not found.names or claim.type == "version":
        return
    old, new = numbers
    for symbol in found.names:
        for seen in lookup.changes("touched", symbol.last, found.paths or None)[:_MOST_PATCHES]:
            lines = [line for line in lookup.patch(seen) if symbol.last in line.text]
            taken = _has_number([line.text for line in lines if line.sign == "-"], old)
            put = _has_number([line.text for line in lines if line.sign == "+"], new)
            if taken and put:
                line = next(line.number for line in lines if line.sign == "+")
                evidence = replace(change_evidence(seen), line=line)
                yield Check("change", True, f"{old.text} became {new.text} in {evidence.location}", evidence)
                return
    if lookup.has_history and lookup.state.whole_history and lookup.state.complete:
        yield Check("change", False, f"no change replaced {old.text} by {new.text}")


def check_earlier_value(claim: Claim, found: ResolvedClaim, lookup: Lookup) -> Iterator[Check]:
    """Whether a name once had the values that a claim gives, by the lines that changes took away."""
    past = _USED_TO_BE.search(claim.text)
    if past is None or not found.names or claim.negated:
        return
    numbers = [mention for mention in claim.mentions if mention.kind == "number"]
    literal = _PAST_LITERAL.search(claim.text) if not numbers else None
    if not numbers and literal is None:
        return
    shown = " and ".join(mention.text for mention in numbers) if numbers else literal[1] if literal else ""
    is_read = False
    for symbol in found.names:
        for seen in lookup.changes("touched", symbol.last, found.paths or None)[:_MOST_PATCHES]:
            lines = [line for line in lookup.patch(seen) if symbol.last in line.text and line.sign == "-"]
            texts = [line.text for line in lines]
            is_read = is_read or any(numbers or _BOOLEAN.search(text) for text in texts)
            if numbers:
                holds = all(_has_number(texts, number) for number in numbers)
            else:
                holds = any(re.search(rf"(?<!\w){re.escape(shown)}(?!\w)", text, re.I) for text in texts)
            if lines and holds:
                evidence = replace(change_evidence(seen), line=lines[0].number)
                yield Check("value", True, f"`{symbol.name}` was {shown} until {evidence.location}", evidence)
                return
    known = lookup.has_history and lookup.state.whole_history and lookup.state.complete
    if known and len(numbers) < 2 and (numbers or is_read):
        yield Check("value", False, f"no change took {shown} away from `{found.names[0].name}`")


_USED_TO_BE = re.compile(
    r"\bused to (?:be|have|contain|default)\b|\b(?:formerly|previously|once|originally|at first)\b"
    r"|\b(?:was|were|had)\b[^.]{0,60}\b(?:until|before it|and was then|, then)\b",
    re.I,
)
_PAST_LITERAL = re.compile(r"\b(?:be|was|had|to|were)\s+`?(true|false|none|null)\b", re.I)
_BOOLEAN = re.compile(r"\b(?:true|false|none|null)\b", re.I)


def _has_number(lines: Sequence[str], mention: Mention) -> bool:
    wanted = number_meanings(mention)
    return any(same_number(one, other) for line in lines for one in read_numbers(line) for other in wanted)


def check_dependencies(claim: Claim, found: ResolvedClaim, lookup: Lookup) -> Iterator[Check]:
    """Whether the manifests name the packages, in the version that the claim gives."""
    named = [mention.text.strip("`") for mention in claim.mentions if mention.kind == "dependency"]
    manifest = any(is_dependency_file(path) for path in found.paths)
    if not named and (manifest or _SIGNED.search(claim.text)) and not _DEPENDS.search(claim.text):
        # A name in a claim about a manifest means a package if the manifest has one of that name.
        every = [*(symbol.name for symbol in found.names), *found.terms]
        words = set(re.findall(r"[\w@./-]*\w", claim.text))
        every += [row.name for path in found.paths for row in lookup.dependencies_of(path)
                  if row.name in words or row.name.rpartition("/")[2] in words]  # fmt: skip
        named = [name for name in every if lookup.dependencies(name)][:1]
    elif not named and _DEPENDS.search(claim.text):
        plain = _PACKAGE.search(claim.text)
        terms = [term for term in found.terms if term[0].isalpha() or term[0] == "@"]
        named = [*([plain[1]] if plain else []), *(symbol.name for symbol in found.names), *terms][:1]
    if not named:
        # "React 17": a package that a manifest names, with a version.
        named = list(_with_versions(claim, lookup))[:1]
    listed = _LISTED.search(claim.text)
    if listed and named:
        named += [name for name in re.split(r",\s*(?:and\s+)?|\s+and\s+", listed[1]) if _PLAIN_PACKAGE.fullmatch(name)]
    checks = [
        check for name in dict.fromkeys(named) for check in _check_dependency(claim, name.strip("`"), found, lookup)
    ]
    # Of several packages all must be there.
    yield from [check for check in checks if not check.holds] or checks


_WITH_VERSION = re.compile(r"(?<![\w./-])`?([A-Za-z][\w.-]*[A-Za-z])`?\s+(?:version\s+)?v?\d+(?:\.\d+)*(?![\w.]*\d)")
_LISTED = load_pattern("checks", "listed", 0)
_PLAIN_PACKAGE = re.compile(r"`?@?[a-z][\w./-]{1,60}`?")


_DEPENDS = re.compile(r"\b(?:depend(?:s|ed|ing)?\s+on|dependenc(?:y|ies)|requirements?|requires?|pin(?:s|ned))\b", re.I)
_PACKAGE = re.compile(
    r"\b(?:pins|requires?|depends on|pinned)\s+(?!(?:to|at|in|by|on|the|an?|no|for|with|its|that)\b)"
    r"`?([A-Za-z@][\w.@/-]*\w)"
)


def _with_versions(claim: Claim, lookup: Lookup) -> Iterator[str]:
    """The packages of the manifests that a claim gives a version of; languages are read elsewhere."""
    for match in _WITH_VERSION.finditer(claim.text):
        if any(row.group != "language" for _, row in lookup.dependencies(match[1].lower())):
            yield match[1]


def _names_package(text: str, name: str, in_manifest: bool) -> bool:
    """Whether the claim says that a name is a package; only then does its absence refute the claim."""
    if name.isalpha() and name.islower() and f"`{name}`" not in text and not in_manifest:
        return False  # "installed packages": a plain word is a package only in backticks
    spelled = re.escape(name)
    before = (
        r"(?:depend(?:s|ed|ing)?\s+on|dependency\s+on|requires?|pin(?:s|ned)|install(?:s|ed)?|bump(?:s|ed)|upgrad\w+)"
    )
    after = r"(?:\S+\s+){0,6}(?:dependency|requirement|package|library)\b"
    return (
        re.search(
            rf"{before}\s+(?:\w+\s+)?[`*]*{spelled}|{spelled}[`*]*\s+{after}|{spelled}[`*]*\s*(?:[<>=~^]=?|@)\s*\d"
            rf"|dependenc\w+\b.{{0,60}}{spelled}|(?:relies|rely)\s+on\s.{{0,30}}{spelled}",
            text,
            re.I,
        )
        is not None
    )


def _check_dependency(claim: Claim, name: str, found: ResolvedClaim, lookup: Lookup) -> Iterator[Check]:
    named = [path for path in found.paths if is_dependency_file(path)]
    rows = [row for row in lookup.dependencies(name) if not named or row[0] in named]
    # A lock file pins what others need, too.
    rows = [row for row in rows if row[1].group != "lock"] or (rows if named or _CONSTRAINT.search(claim.text) else [])
    rows = [row for row in rows if named or not is_auxiliary(row[0])] or rows  # an example needs what it likes
    if not rows and not _names_package(claim.text, name, bool(named)):
        return
    if not rows:
        if not named and (name.lower().replace("-", "_") in lookup.modules or name in sys.stdlib_module_names):
            return  # what comes with the language needs no manifest
        if lookup.has_dependencies and lookup.state.complete and not lookup.sources.narrowed:
            near = lookup.nearest_dependency(name)
            hint = f"; nearest: {near}" if near and near != name else ""
            reason = f"{', '.join(named)} does not name {name}" if named else f"no manifest names {name}"
            yield Check("dependency", False, f"{reason}{hint}")
        return
    if (extra := _EXTRA.search(claim.text)) and not any(_is_group(row[1].group, extra[1]) for row in rows):
        path, first = rows[0]
        evidence = Evidence("dependency", path, first.line, detail=first.name)
        yield Check(
            "dependency", False, f"{first.name} is in the group {first.group} of {path} line {first.line}", evidence
        )
        return
    rows = [row for row in rows if extra is None or _is_group(row[1].group, extra[1])]
    path, first = rows[0]
    evidence = Evidence("dependency", path, first.line, detail=f"{first.name} {first.constraint}".strip())
    if _PINNED.search(claim.text):
        exact = next((row for row in rows if _EXACT.fullmatch(row[1].constraint)), None)
        shown = f"{first.name} is {first.constraint or 'without a version'} in {path} line {first.line}"
        yield Check("dependency", exact is not None, shown, evidence)
        rows = [exact] if exact is not None else rows
    else:
        yield Check("dependency", True, f"{first.name} is in {path} line {first.line}", evidence)
    yield from _check_version(claim, name, rows)


_PINNED = re.compile(r"\bpin(?:s|ned)\b", re.I)
_EXACT = re.compile(r"(?:===?\s*)?v?\d[\w.+-]*(?<!\*)")


_EXTRA = re.compile(r"\b`?([\w-]{2,30})`?\s+extra\b", re.I)


def _is_group(group: str, extra: str) -> bool:
    """Whether a dependency belongs to an extra; one of several words may be abbreviated."""
    return group.startswith("optional:") and group.partition(":")[2].lower().replace("-", "").startswith(
        extra.lower()[:4]
    )


_RUNTIME = load_pattern("checks", "runtime", 0)
_PROJECT = re.compile(
    r"\b(?:project|package|library|module|crate|repository|minimum|oldest|lowest|requires?|supports?|needs|manifest"
    r"|builds?|built|compil\w+|engines?|demands?|language|targets?)\b",
    re.I,
)
# "The project requires 3.8": of the language, if there is only one.
_SOME_RUNTIME = re.compile(r"\b(project|package|library)\s+(?:requires?|needs)\s+v?(\d+(?:\.\d+)+)")
_NONE_AT_ALL = re.compile(
    r"\bno\s+(?:\w+[- ]){0,3}(?:dependenc|requirement)|\bwithout (?:any )?dependenc|\bdependency[- ]free\b", re.I
)


def check_no_dependencies(claim: Claim, found: ResolvedClaim, lookup: Lookup) -> Iterator[Check]:
    """Whether a manifest lists no dependency at run time, as the claim says."""
    if not _NONE_AT_ALL.search(claim.text) or re.search(r"\bdev\w*\s+dependenc", claim.text, re.I):
        return
    named = [path for path in found.paths if is_dependency_file(path)]
    paths = named or [path for path in lookup.paths if is_dependency_file(path) and "/" not in path]
    rows = [(path, row) for path in paths for row in lookup.dependencies_of(path) if row.group == "runtime"]
    if rows:
        path, row = rows[0]
        yield Check(
            "dependency",
            False,
            f"{path} line {row.line} lists {row.name}",
            Evidence("dependency", path, row.line),
            core=False,
        )
    elif paths:
        line = next((one.line for one in lookup.dependencies_of(paths[0])), 1)
        yield Check(
            "dependency",
            True,
            f"{paths[0]} lists no dependency",
            Evidence("dependency", paths[0], line),
            0.9,
            core=False,
        )


_HISTORY = re.compile(r"\b(?:dropp\w+|used to|was|were|until|since|added|removed)\b", re.I)


_OF_A_PART = re.compile(r"\W*(?:it|this|that|they|these)\b", re.I)


def check_runtimes(claim: Claim, found: ResolvedClaim, lookup: Lookup) -> Iterator[Check]:
    """Whether the manifests ask for the version of a language that the claim gives."""
    match = _RUNTIME.search(claim.text) or _SOME_RUNTIME.search(claim.text)
    if match is None or _HISTORY.search(claim.text) or found.names or not (found.paths or _PROJECT.search(claim.text)):
        return
    rows = lookup.runtimes(match[1].removesuffix(".js") if match.re is _RUNTIME else "")
    if match.re is _SOME_RUNTIME and len({row.name for _, row in rows}) != 1:
        return
    rows = [row for row in rows if not found.paths or row[0] in found.paths]
    for path, row in rows[:1]:
        floor = re.search(r"\d+(?:\.\d+)*", row.version or row.constraint)
        if floor is None:
            return
        stated = row.version or row.constraint
        holds = agrees(match[2], floor[0]) or agrees(floor[0], match[2])
        if not holds and _OF_A_PART.match(claim.text):
            return  # what "it" means may be a part of the project that needs more
        evidence = Evidence("dependency", path, row.line, detail=f"{row.name} {stated}")
        yield Check("version", holds, f"{path} line {row.line} asks for {row.name} {stated}", evidence, core=False)


def _check_version(claim: Claim, name: str, rows: Sequence[tuple[str, Dependency]]) -> Iterator[Check]:
    after = claim.text.partition(name)[2]
    written = _CONSTRAINT.search(after[:60])
    start = claim.text.find(name)
    versions = [m.value for m in claim.mentions if m.kind == "version" and claim.text.find(m.text) >= start]
    if not written and not versions:
        versions = re.findall(r"(?<![\w.])v?(\d+(?:\.\d+)+)", after[:60])
    if not written and (not versions or (len(versions) > 1 and not _FROM_TO.search(claim.text))):
        return  # of two versions one is of something else: "Flask 3.2 drops Python 3.9"
    claimed = written[2].rstrip(".") if written else versions[-1]
    for path, row in rows:
        if _matches_version(row, written[1] if written else "", claimed, bool(_FLOOR.search(claim.text))):
            evidence = Evidence("dependency", path, row.line, detail=f"{row.name} {row.version or row.constraint}")
            yield Check(
                "version", True, f"{row.name} {row.version or row.constraint} in {path} line {row.line}", evidence
            )
            return
    path, row = rows[0]
    stated = row.version or row.constraint or "without a version"
    evidence = Evidence("dependency", path, row.line, detail=f"{row.name} {stated}")
    yield Check("version", False, f"{path} line {row.line} has {row.name} {stated}, not {claimed}", evidence)


def _matches_version(row: Dependency, sign: str, claimed: str, floor: bool) -> bool:
    stated = [(one, number.rstrip(".")) for one, number in _CONSTRAINT.findall(row.constraint)]
    if sign:
        return any(one == sign and agrees(claimed, number) for one, number in stated)
    if row.version is not None and agrees(claimed, row.version):
        return True
    if any(agrees(claimed, number) for one, number in stated if one not in ("<", "!=")):
        return True
    if not stated and row.constraint and agrees(claimed, row.constraint):
        return True
    return floor and row.version is not None and admits(f">={claimed}", row.version) is True


_LANGUAGE_VERSION = re.compile(r"\b(?:Python|Node(?:\.js)?|Go|Rust|Java|PHP|Ruby|language|toolchain) versions?\b", re.I)


def check_versions(claim: Claim, found: ResolvedClaim, lookup: Lookup) -> Iterator[Check]:
    """Whether the claim gives the project's own version, or a release of it."""
    dependency = any(mention.kind == "dependency" for mention in claim.mentions)
    if claim.type != "version" or dependency or not _OF_VERSION.search(claim.text):
        return
    language = _RUNTIME.search(claim.text)
    if _LANGUAGE_VERSION.search(claim.text):
        return  # the version of a language
    if (language or not _RELEASED.search(claim.text)) and _HISTORY.search(claim.text):
        return  # when something happened
    claimed = [mention.value for mention in claim.mentions if mention.kind == "version"]
    claimed = [version for version in claimed if language is None or version != language[2]]
    if any(_with_versions(claim, lookup)):
        return  # the version of something else
    stated = [one for one in lookup.stated() if not is_auxiliary(one[0])]
    if found.files:
        stated = [one for one in lookup.stated() if one[0] in found.paths]
    if not claimed or found.names or (found.files and not stated):
        return
    for path, one in stated:
        if any(agrees(version, one.version) for version in claimed):
            evidence = Evidence("line", path, one.line)
            yield Check("version", True, f"the version in {path} line {one.line} is {one.version}", evidence)
            return
    for version in claimed if _RELEASED.search(claim.text) else ():
        if revision := lookup.tagged(version):
            evidence = Evidence("log", None, None, revision.id, revision.time, revision.subject)
            yield Check("version", True, f"{version} is a release", evidence, 0.7)
            return
    if stated and _is_of_project(claim, lookup):
        path, one = stated[0]
        reason = f"the version in {path} line {one.line} is {one.version}, not {claimed[0]}"
        yield Check("version", False, reason, Evidence("line", path, one.line))


_OF_PROJECT = load_words("checks", "version_words")


def _is_of_project(claim: Claim, lookup: Lookup) -> bool:
    """Whether a claim about a version speaks of nothing but the project."""
    text = claim.text
    for mention in claim.mentions:
        text = text.replace(mention.text, " ") if mention.kind in ("file", "version", "number") else text
    own = {*_OF_PROJECT, *distinctive_words(lookup.folder)}
    return all(word in own for word in distinctive_words(text))


_COUNT = re.compile(r"(\d+|all|none|some|no)\s+(passed|failed|skipped)")


def check_tests(claim: Claim, reports: Sequence[tuple[str, RunReport]]) -> Iterator[Check]:
    """Whether the newest test report agrees with the claim."""
    claimed = [match for m in claim.mentions if m.kind == "tests" and (match := _COUNT.fullmatch(m.value))]
    if not claimed or not reports:
        return
    path, report = reports[0]
    bad = report.failed + report.errors
    shown = f"{report.passed} passed, {bad} failed, {report.skipped} skipped"
    evidence = Evidence("test report", path, report.source_line, detail=shown)
    for match in claimed:
        count, result = match[1], match[2]
        number = {"passed": report.passed, "failed": bad, "skipped": report.skipped}[result]
        if count.isdigit():
            holds = int(count) == number
        elif count in ("none", "no"):
            holds = number == 0
        elif count == "some":
            holds = number > 0
        else:
            holds = bad == 0 and report.passed > 0 if result == "passed" else number > 0 and report.passed == 0
        yield Check("tests", holds, f"the report {path} says: {shown}", evidence)


# The test reports of a project: those that a caller names, and those in the usual places of test runners.

_MOST = 20
_BYTES = 4_000_000
# Git usually ignores reports, so the index does not list them.
_USUAL = (
    "junit.xml", "report.xml", "test-results.xml", "test-report.xml", "reports/junit.xml", "test-results/junit.xml",
    "build/test-results/junit.xml", ".report.json", "test-output.txt", "target/surefire-reports",
    "build/test-results/test",
)  # fmt: skip


def find_reports(root: Path, lookup: Lookup) -> list[tuple[str, RunReport]]:
    """The reports with their paths, the newest first."""
    if not lookup.sources.reports:
        return []
    named_any = bool(lookup.sources.patterns)
    named = [pattern for pattern in lookup.sources.patterns or () if not any(sign in pattern for sign in "*?[")]
    # A caller who allows reports but names no file means all of them.
    listed = [path for path in (lookup.paths if named_any else lookup.every_path) if is_report_name(path)]
    usual = [] if named_any else [path for place in _USUAL for path in _reports_at(root, place)]
    candidates = list(dict.fromkeys([*(n for n in named if (root / n).is_file()), *listed, *usual]))[:_MOST]
    found = []
    for path in candidates:
        if skip_by_name(path) == "private" or not _is_inside(root, path):
            continue
        data = read_file(root, FileRef(path, 0, None), max_bytes=_BYTES)
        text = decode_text(data) if data is not None else None
        if text and (report := read_report(path, text)) is not None:
            found.append((-_modified(root / path), path, report))
    return [(path, report) for _, path, report in sorted(found, key=lambda one: one[:2])]


def _reports_at(root: Path, place: str) -> list[str]:
    at = root / place
    if at.is_dir() and not at.is_symlink():
        return [f"{place}/{one.name}" for one in sorted(at.glob("*.xml"))[:_MOST]]
    return [place] if at.is_file() else []


def _is_inside(root: Path, path: str) -> bool:
    try:
        return (root / path).resolve().is_relative_to(root.resolve())
    except (OSError, ValueError):
        return False


def _modified(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0
