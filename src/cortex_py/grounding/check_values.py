"""Checks of numbers, versions, packages and test results: compared by value, never by how they are written."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from ..security.secrets import redact
from ..worktree.manifests import Dependency, admits, agrees, is_dependency_file
from ..worktree.reports import Report
from ..worktree.settings_keys import Setting
from .check_changes import of_change
from .checks import Check
from .claims import Claim
from .evidence import Evidence
from .found import Definition
from .lookup import Lookup
from .mentions import Mention
from .resolving import Resolved, is_aside
from .source_reading import header_end, values_on

__all__ = ["check_dependencies", "check_tests", "check_values", "check_versions"]

_CONSTRAINT = re.compile(r"(>=|<=|==|~=|!=|\^|~|>|<)\s*`?v?(\d[\w.*+-]*)")
_FLOOR = re.compile(r"\b(?:at least|or (?:newer|later|higher|above)|minimum|and up|onwards?)\b|\d\+", re.IGNORECASE)
_FROM_TO = re.compile(r"\bfrom\b.+?\bto\b", re.IGNORECASE)
# With a sign of equality, after a type perhaps; with a colon only where that cannot begin a type.
_ASSIGNED = r"(?<![\w$.]){name}\s*(?::[^=\n]{{1,120}}?)?=(?!=)\s*(?P<value>[^,\n#]*)"
_KEYED = r"(?<![\w$.])[\"']?{name}[\"']?\s*:\s*(?P<value>[^,\n#]*)"
_LITERAL = re.compile(r"(?<![\w.])(?:True|False|None|null|undefined|true|false)(?!\w)")
_QUOTED = re.compile(r"(?<!\w)(?:'([^'\n]{1,80})'|\"([^\"\n]{1,80})\")(?!\w)")
_VALUED = re.compile(r"\b(?:default\w*|as|equals?|value|set|to)\b|=", re.IGNORECASE)
_SIGNED = re.compile(r"[\^~]\s*\d|[<>=~]=\s*\d|[<>]\s*\d")
_MOST_PATCHES = 8
_LONG = 220  # characters of a claim that says more than one thing
_ORDINAL = re.compile(r"^(?:first|second|third|once|twice|one)\b", re.IGNORECASE)
_OF_VERSION = re.compile(r"\b(?:versions?|released?|releases|v\d+\.\d)", re.IGNORECASE)
_RELEASED = re.compile(r"\b(?:released?|tag(?:ged)?|shipped|published)\b", re.IGNORECASE)
_STUB = re.compile(r"\.\.\.|…")


def check_values(claim: Claim, found: Resolved, lookup: Lookup) -> Iterator[Check]:
    """Whether the number, or the literal, that a claim gives to a name is the one that it has."""
    numbers = [mention for mention in claim.mentions if mention.kind == "number" and not _ORDINAL.search(mention.text)]
    if claim.type == "version" or not found.names or (not numbers and not _literals(claim, found)):
        return
    if _FROM_TO.search(claim.text) and len(numbers) == 2:
        yield from _exchanged(found, numbers[0], numbers[1], lookup)
        numbers = numbers[1:]  # what it is now
    for thing in reversed(found.names):
        spans = _spans(thing.last, found, lookup)
        places = [place for path, first, last in spans for place in _assignments(thing.last, path, first, last, lookup)]
        places += [(path, one.line, one.value) for path, one in _set_there(thing.name, found, lookup)][:20]
        if not places:
            continue
        check = _compared(thing.name, places, numbers, _literals(claim, found))
        # Another value speaks against a claim only where the claim gives its own to this very name.
        if check.holds or _is_given(claim, found):
            yield check
        return


def _is_given(claim: Claim, found: Resolved) -> bool:
    """Whether the claim itself says what value the name has, in one breath."""
    if " | " in claim.text or len(claim.text) > _LONG or len(found.names) > 2:
        return False
    return _VALUED.search(claim.text) is not None or re.search(r"\b(?:is|are|was|has)\b", claim.text) is not None


def _set_there(name: str, found: Resolved, lookup: Lookup) -> list[tuple[str, Setting]]:
    """The settings of a name: of the files that are named, else of those that configure the project itself."""
    every = lookup.settings(name)
    if found.paths:
        return [one for one in every if one[0] in found.paths]
    return [one for one in every if one[0].count("/") <= 1 and not one[0].endswith(".json") and not is_aside(one[0])]


def _exchanged(found: Resolved, old: Mention, new: Mention, lookup: Lookup) -> Iterator[Check]:
    """Whether a change took one number away and put another in its place, on lines of the name that is told."""
    for thing in found.names:
        for seen in lookup.changes("touched", thing.last, found.paths or None)[:_MOST_PATCHES]:
            lines = [line for line in lookup.patch(seen) if thing.last in line.text]
            taken = _has_number([line.text for line in lines if line.sign == "-"], old)
            put = _has_number([line.text for line in lines if line.sign == "+"], new)
            if taken and put:
                line = next(line.number for line in lines if line.sign == "+")
                evidence = replace(of_change(seen), line=line)
                yield Check("change", True, f"{old.text} became {new.text} with {evidence.location}", evidence)
                return
    if lookup.has_history and lookup.standing.whole_history and lookup.standing.complete:
        yield Check("change", False, f"no change put {new.text} in the place of {old.text}")


def _has_number(lines: Sequence[str], mention: Mention) -> bool:
    wanted = set(_meanings(mention))
    return any(_close(one, other) for line in lines for one in values_on(line) for other in wanted)


def _literals(claim: Claim, found: Resolved) -> list[str]:
    """Values that are no numbers: `None`, "utf-8". What a claim of existence quotes is no value of anything."""
    if claim.type == "exists" and not _VALUED.search(claim.text):
        return []
    quoted = [mention.value for mention in claim.mentions if mention.kind == "quote"]
    quotes = [one or other for one, other in _QUOTED.findall(claim.text)]
    return list(dict.fromkeys([*found.literals, *quoted, *_LITERAL.findall(claim.text), *quotes]))


def _spans(name: str, found: Resolved, lookup: Lookup) -> list[tuple[str, int, int]]:
    """Where to look for the value of a name: the heads of the other names' definitions, else where it is itself."""
    others = [one for thing in found.names if thing.last != name for one in (thing.placed or thing.defined)[:4]]
    heads = [(one.path, one.line, _end_of_head(one, lookup)) for one in others]
    own = [(one.path, one.line, one.line + 3) for thing in found.names if thing.last == name
           for one in (thing.placed or thing.defined)[:8]]  # fmt: skip
    whole = [(path, 1, len(lookup.lines(path))) for path in found.paths[:3]]
    return heads + own + whole


def _end_of_head(one: Definition, lookup: Lookup) -> int:
    # A class has its values in its body, a function in its brackets.
    is_class = one.kind in ("class", "struct", "interface", "enum", "object")
    return one.end_line if is_class else header_end(lookup.lines(one.path), one.line, one.end_line)


def _assignments(name: str, path: str, first: int, last: int, lookup: Lookup) -> list[tuple[str, int, str]]:
    typed = path.endswith((".py", ".pyi", ".ts", ".tsx", ".rs", ".kt", ".swift", ".go"))
    pattern = re.compile(
        (_ASSIGNED if typed else f"{_ASSIGNED}|{_KEYED.replace('<value>', '<keyed>')}").format(name=re.escape(name))
    )
    lines = lookup.lines(path)
    found = ((n, match) for n in range(first, min(last, len(lines)) + 1) if (match := pattern.search(lines[n - 1])))
    # A stub that stands for any value says nothing about which.
    values = [(path, n, _value(match).strip().rstrip("):},; ")) for n, match in found]
    return [one for one in values if one[2] and not _STUB.fullmatch(one[2])][:20]


def _value(match: re.Match[str]) -> str:
    found = match.groupdict()
    return found["value"] or found.get("keyed") or ""


def _compared(
    name: str, places: Sequence[tuple[str, int, str]], numbers: Sequence[Mention], literals: Sequence[str]
) -> Check:
    wanted = {value for mention in numbers for value in _meanings(mention)}
    for path, line, value in places:
        if any(_close(one, other) for one in values_on(value) for other in wanted) or _has_literal(value, literals):
            return Check("value", True, _told(name, value, path, line), Evidence("line", path, line))
    path, line, value = places[0]
    return Check("value", False, _told(name, value, path, line), Evidence("line", path, line))


def _told(name: str, value: str, path: str, line: int) -> str:
    # Half a secret is hard to tell from anything else, so it goes before the value is cut.
    return f"`{name}` is {redact(value).text[:60]} in {path} line {line}"


def _meanings(mention: Mention) -> Iterator[float]:
    """The numbers that may stand in the source for one in the text: as written, and in the units programs use."""
    written = re.search(r"-?\d[\d,_]*(?:\.\d+)?", mention.text)
    if written:
        yield float(written[0].replace(",", "").replace("_", ""))
    value = re.fullmatch(r"[<>]?=?(-?\d+(?:\.\d+)?)(?:\s*(\S+))?", mention.value)
    if value:
        number = float(value[1])
        yield number
        if value[2] == "s":
            yield from (number * 1000, number / 60, number / 3600, number / 86400)


def _close(one: float, other: float) -> bool:
    return abs(one - other) <= 1e-9 * max(1.0, abs(one), abs(other))


def _has_literal(value: str, literals: Sequence[str]) -> bool:
    words = {word.lower() for word in re.findall(r"\w+", value)}
    return any(literal.lower() in words or literal.lower() == value.strip("\"'`; ").lower() for literal in literals)


def check_dependencies(claim: Claim, found: Resolved, lookup: Lookup) -> Iterator[Check]:
    """Whether the packages are those of the manifests, in the version that is told."""
    named = [mention.text.strip("`") for mention in claim.mentions if mention.kind == "dependency"]
    manifest = any(is_dependency_file(path) for path in found.paths)
    if not named and (manifest or _SIGNED.search(claim.text)) and not _DEPENDS.search(claim.text):
        # Whatever a manifest is said to have, a package of it is meant where it has one of the name.
        every = [*(thing.name for thing in found.names), *found.terms]
        named = [name for name in every if lookup.dependencies(name)][:1]
    elif not named and _DEPENDS.search(claim.text):
        plain = _PACKAGE.search(claim.text)
        terms = [term for term in found.terms if term[0].isalpha() or term[0] == "@"]
        named = [*([plain[1]] if plain else []), *(thing.name for thing in found.names), *terms][:1]
    for name in dict.fromkeys(named):
        yield from _dependency(claim, name, found, lookup)


_DEPENDS = re.compile(
    r"\b(?:depend(?:s|ed|ing)?\s+on|dependenc(?:y|ies)|requirements?|requires?|pin(?:s|ned))\b", re.IGNORECASE
)
_PACKAGE = re.compile(r"\b(?:pins|requires?|depends on|pinned)\s+`?([A-Za-z@][\w.@/-]*\w)")


def _says_so(text: str, name: str) -> bool:
    """Whether the words around a name say that it is a package: only then does its absence speak against them."""
    if name.isalpha() and name.islower() and f"`{name}`" not in text:
        return False  # "installed packages": a plain word is a package only where it is marked as a name
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
            re.IGNORECASE,
        )
        is not None
    )


def _dependency(claim: Claim, name: str, found: Resolved, lookup: Lookup) -> Iterator[Check]:
    named = [path for path in found.paths if is_dependency_file(path)]
    rows = [row for row in lookup.dependencies(name) if not named or row[0] in named]
    if not rows and not _says_so(claim.text, name):
        return
    if not rows:
        if lookup.has_dependencies and lookup.standing.complete and not lookup.sources.narrowed:
            near = lookup.nearest_dependency(name)
            hint = f"; nearest: {near}" if near and near != name else ""
            where = ", ".join(named) or "no manifest"
            told = f"{where} does not name {name}" if named else f"no manifest names {name}"
            yield Check("dependency", False, f"{told}{hint}")
        return
    path, first = rows[0]
    evidence = Evidence("dependency", path, first.line, detail=f"{first.name} {first.constraint}".strip())
    yield Check("dependency", True, f"{first.name} is in {path} line {first.line}", evidence)
    yield from _their_version(claim, name, rows)


def _their_version(claim: Claim, name: str, rows: Sequence[tuple[str, Dependency]]) -> Iterator[Check]:
    after = claim.text.partition(name)[2]
    written = _CONSTRAINT.search(after[:60])
    start = claim.text.find(name)
    versions = [m.value for m in claim.mentions if m.kind == "version" and claim.text.find(m.text) >= start]
    if not written and not versions:
        versions = re.findall(r"(?<![\w.])v?(\d+(?:\.\d+)+)", after[:60])
    if not written and not versions:
        return
    told = written[2].rstrip(".") if written else versions[-1]
    for path, row in rows:
        if _is_told(row, written[1] if written else "", told, bool(_FLOOR.search(claim.text))):
            evidence = Evidence("dependency", path, row.line, detail=f"{row.name} {row.version or row.constraint}")
            yield Check(
                "version", True, f"{row.name} {row.version or row.constraint} in {path} line {row.line}", evidence
            )
            return
    path, row = rows[0]
    stated = row.version or row.constraint or "without a version"
    evidence = Evidence("dependency", path, row.line, detail=f"{row.name} {stated}")
    yield Check("version", False, f"{path} line {row.line} has {row.name} {stated}, not {told}", evidence)


def _is_told(row: Dependency, sign: str, told: str, floor: bool) -> bool:
    stated = [(one, number.rstrip(".")) for one, number in _CONSTRAINT.findall(row.constraint)]
    if sign:
        return any(one == sign and agrees(told, number) for one, number in stated)
    if row.version is not None and agrees(told, row.version):
        return True
    if any(agrees(told, number) for one, number in stated if one not in ("<", "!=")):
        return True
    if not stated and row.constraint and agrees(told, row.constraint):
        return True
    return floor and row.version is not None and admits(f">={told}", row.version) is True


def check_versions(claim: Claim, found: Resolved, lookup: Lookup) -> Iterator[Check]:
    """Whether the project's own version, or a release of it, is the one told."""
    dependency = any(mention.kind == "dependency" for mention in claim.mentions)
    if claim.type != "version" or dependency or not _OF_VERSION.search(claim.text):
        return
    told = [mention.value for mention in claim.mentions if mention.kind == "version"]
    stated = [one for one in lookup.stated() if not is_aside(one[0])]
    if found.files:
        stated = [one for one in lookup.stated() if one[0] in found.paths]
    if not told or found.names or (found.files and not stated):
        return
    for path, one in stated:
        if any(agrees(version, one.version) for version in told):
            evidence = Evidence("line", path, one.line)
            yield Check("version", True, f"the version in {path} line {one.line} is {one.version}", evidence)
            return
    for version in told if _RELEASED.search(claim.text) else ():
        if revision := lookup.tagged(version):
            evidence = Evidence("log", None, None, revision.id, revision.time, revision.subject)
            yield Check("version", True, f"{version} is a release", evidence, 0.7)
            return
    if stated:
        path, one = stated[0]
        reason = f"the version in {path} line {one.line} is {one.version}, not {told[0]}"
        yield Check("version", False, reason, Evidence("line", path, one.line))


_COUNT = re.compile(r"(\d+|all|none|some|no)\s+(passed|failed|skipped)")


def check_tests(claim: Claim, reports: Sequence[tuple[str, Report]]) -> Iterator[Check]:
    """Whether a test report says what the claim says of the tests."""
    told = [match for m in claim.mentions if m.kind == "tests" and (match := _COUNT.fullmatch(m.value))]
    if not told or not reports:
        return
    path, report = reports[0]
    bad = report.failed + report.errors
    shown = f"{report.passed} passed, {bad} failed, {report.skipped} skipped"
    evidence = Evidence("test report", path, report.source_line, detail=shown)
    for match in told:
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
