"""Results of test runs, from report files and from the output of test runners."""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from .formats import Datum, XmlNode, read_json, read_xml

__all__ = ["RunReport", "is_report_name", "read_output", "read_report"]

_CHARACTERS_MOST = 8_000_000
_NAME = re.compile(
    r"[^/]*junit[^/]*\.xml|test-[^/]*\.xml|(nosetests|xunit|test[_-]?(results?|reports?))\.xml|\.report\.json"
    r"|[^/]*\.report\.json|(pytest|jest|vitest|test|tests)[_.-]?(results?|reports?|output)\.(json|txt|log|xml)"
    r"|(pytest|jest|vitest|unittest|go-?test|cargo-?test|tests?)\.(log|out)|[^/]+\.tap"
)
_PLACE = re.compile(
    r"(.*/)?(test-?results?|test-?reports?|surefire-reports|failsafe-reports|junit)/(.*/)?[^/]+\.xml"
    r"|(.*/)?reports?/(.*/)?(report|tests?|results?|index)\.xml"
    r"|report\.xml"
)
_XML_START = re.compile(r"\ufeff?\s*<(\?xml|testsuites?)\b")


def is_report_name(path: str) -> bool:
    """Whether a path is where test runners usually leave a report."""
    lower = path.lower()
    return _NAME.fullmatch(posixpath.basename(lower)) is not None or _PLACE.fullmatch(lower) is not None


def read_report(path: str, text: str) -> RunReport | None:
    """The test run in a report file; None if there is none, or the file is broken or too large."""
    if len(text) > _CHARACTERS_MOST:
        return None
    try:
        if path.lower().endswith(".xml") or _XML_START.match(text):
            return _junit(read_xml(text))
        if path.lower().endswith(".json") and (report := _json(text)):
            return report
    except (ValueError, RecursionError):
        return None
    return read_output(text)


# -- JUnit -----------------------------------------------------------------------------------------


def _junit(root: XmlNode) -> RunReport | None:
    if root.tag not in ("testsuites", "testsuite"):
        return None
    tally = Tally()
    cases = 0
    for one in root.all():
        if one.tag == "testcase":
            cases += 1
            place, name = one.attributes.get("classname", ""), one.attributes.get("name", "")
            tally.add_case(f"{place}.{name}" if place else name, _junit_result(one))
    if not cases:
        _junit_counts(tally, root)
    return tally.report(root.line)


def _junit_result(case: XmlNode) -> CaseResult:
    tags = {one.tag for one in case.children}
    return (
        "failed" if "failure" in tags else "error" if "error" in tags else "skipped" if "skipped" in tags else "passed"
    )


def _junit_counts(tally: Tally, root: XmlNode) -> None:
    """Some reports hold only the numbers of each suite."""
    suites = [root] if "tests" in root.attributes else [one for one in root.children if one.tag == "testsuite"]
    for suite in suites:
        failed, errors, skipped, ran = (_number(suite, key) for key in ("failures", "errors", "skipped", "tests"))
        tally.add("failed", failed)
        tally.add("error", errors)
        tally.add("skipped", skipped)
        tally.add("passed", max(0, ran - failed - errors - skipped))


def _number(element: XmlNode, key: str) -> int:
    text = element.attributes.get(key, "")
    return int(text) if re.fullmatch(r"[0-9]{1,9}", text) else 0


# -- JSON ------------------------------------------------------------------------------------------


def _json(text: str) -> RunReport | None:
    try:
        content = read_json(text.removeprefix("\ufeff"))
    except (ValueError, RecursionError):
        # Go writes one object to a line, which is no JSON as a whole.
        return None
    if "numTotalTests" in content.table:
        return _jest_json(content)
    return _pytest_json(content) if content.at("summary").table and "tests" in content.table else None


def _pytest_json(content: Datum) -> RunReport:
    tally = Tally()
    summary = content.at("summary")
    for word, count in summary.table.items():
        if word not in ("total", "collected", "deselected"):
            tally.add(word, _count(count))
    for test in content.at("tests").items:
        tally.case(test.at("nodeid").text or "", test.at("outcome").text or "")
    return tally.report(summary.line)


def _jest_json(content: Datum) -> RunReport:
    tally = Tally()
    for word in ("Passed", "Failed", "Pending", "Todo"):
        tally.add(word, _count(content.at(f"num{word}Tests")))
    # A file that cannot be loaded has no tests to fail.
    tally.add("error", _count(content.at("numRuntimeErrorTestSuites")))
    for suite in content.at("testResults").items:
        for test in suite.at("assertionResults").items:
            tally.case(test.at("fullName").text or test.at("title").text or "", test.at("status").text or "")
    return tally.report(content.at("numTotalTests").line)


def _count(part: Datum) -> int:
    value = part.value
    return int(value) if isinstance(value, str) and re.fullmatch(r"[0-9]{1,9}", value) else 0


# -- Output of test runners ------------------------------------------------------------------------


CaseResult = Literal["passed", "failed", "skipped", "error"]

_RESULTS: tuple[CaseResult, ...] = ("passed", "failed", "skipped", "error")
_CASES_MOST = 20_000
_LINE_MOST = 2_000
_COLOUR = re.compile(r"\x1b\[[\d;]*[A-Za-z]")
# Services that build projects put the time before every line.
_TIME = re.compile(r"^\ufeff?\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[\d.]*Z ")
_COUNT = re.compile(r"(\d{1,9}) (\w+)")
_PYTEST = re.compile(r"(?:=+ )?((?:\d+ [a-z]+(?:, )?)+|no tests ran) in \d[\d.]*s(?: \([\d:]+\))?(?: =+)?")
_PYTEST_CASE = re.compile(r"([^\s:]+\.py::.+?) (PASSED|FAILED|SKIPPED|ERROR|XFAIL|XPASS)\b.*")
_PYTEST_WORKER = re.compile(r"\[gw\d+\] \[ *\d+%\] (PASSED|FAILED|SKIPPED|ERROR|XFAIL|XPASS) ([^\s:]+\.py::.+)")
_PYTEST_SHORT = re.compile(r"(FAILED|ERROR) ([^\s:]+\.py(?:::.+?)?)(?: - .*)?")
_UNITTEST = re.compile(r"Ran (\d{1,9}) tests? in \d[\d.]*s")
# A failure line always says what failed; without that the line is cut off.
_UNITTEST_END = re.compile(r"(?:OK|NO TESTS RAN|FAILED(?= ))(?: \((.*)\))?")
_UNITTEST_COUNT = re.compile(r"(?<![a-z ])([a-z ]++)=(\d{1,9})")
_UNITTEST_CASE = re.compile(r"(\w+) \(([\w.]+)\) \.\.\. (ok|FAIL|ERROR|skipped|expected failure)\b.*")
_JEST = re.compile(r"\s*Tests:\s+((?:\d+ \w+, )*)(\d+) total")
_VITEST = re.compile(r"\s*Tests\s+(\d+ \w+(?: \| \d+ \w+)*) \((\d+)\)")
_JEST_CASE = re.compile(r"(\s*)([✓✔√✕✗×○↓]) (.+?)(?: \(?[\d.]+ ?m?s\)?)?")
_JEST_FILE = re.compile(r"(?:PASS|FAIL) (\S+).*")
_VITEST_FILE = re.compile(r".* \(\d+ tests?.*\)")
_CARGO = re.compile(r"test result: (?:ok|FAILED)\. (\d{1,9}) passed; (\d{1,9}) failed; (\d{1,9}) ignored;.*")
_CARGO_CASE = re.compile(r"test (.+?) \.\.\. (ok|FAILED|ignored)\b.*")
_GO_CASE = re.compile(r"\s*--- (PASS|FAIL|SKIP): (\S+) \(\d[\d.]*s\)")
_GO_PACKAGE = re.compile(r"(ok|FAIL)\s+([\w./-]+)\s+(\(cached\)|\d[\d.]*s|\[[a-z ]+ failed\]).*")
_TAP_PLAN = re.compile(r"1\.\.(\d{1,9})(?: .*)?")
_TAP_CASE = re.compile(r"(not )?ok\b *(\d{1,9})?(?: *- *| +)?([^#]*)(?:# *(SKIP|TODO)\b.*)?", re.IGNORECASE)

_WORDS: Mapping[str, CaseResult] = {
    "passed": "passed", "pass": "passed", "ok": "passed", "xpass": "passed", "xpassed": "passed",
    "failed": "failed", "fail": "failed",
    "skipped": "skipped", "skip": "skipped", "ignored": "skipped", "xfail": "skipped", "xfailed": "skipped",
    "expected failure": "skipped", "todo": "skipped", "pending": "skipped", "disabled": "skipped",
    "error": "error", "errors": "error", "broken": "error",
}  # fmt: skip
_MARKS = dict.fromkeys("✓✔√", "passed") | dict.fromkeys("✕✗×", "failed") | dict.fromkeys("○↓", "skipped")


@dataclass(frozen=True, slots=True)
class RunReport:
    """One test run: its counts, the cases it names, and the line of its summary.

    Expected failures and tests to be written count as skipped.
    """

    passed: int
    failed: int
    skipped: int
    errors: int
    cases: Mapping[str, CaseResult]
    source_line: int


@dataclass(slots=True)
class Tally:
    """Counts and cases as they are met."""

    counts: dict[CaseResult, int] = field(default_factory=dict)
    cases: dict[str, CaseResult] = field(default_factory=dict)
    line: int = 0

    def add(self, word: str, count: int = 1) -> None:
        result = _WORDS.get(word.lower())
        if result is not None:
            self.counts[result] = self.counts.get(result, 0) + count

    def case(self, name: str, word: str) -> None:
        result = _WORDS.get(word.lower())
        if result is not None and (len(self.cases) < _CASES_MOST or name in self.cases):
            self.cases[name] = result

    def add_case(self, name: str, word: str) -> None:
        self.add(word)
        self.case(name, word)

    def report(self, line: int | None = None) -> RunReport:
        passed, failed, skipped, errors = (self.counts.get(one, 0) for one in _RESULTS)
        return RunReport(passed, failed, skipped, errors, dict(self.cases), line or self.line)


_Lines = list[tuple[int, str]]


def read_output(text: str) -> RunReport | None:
    """The last test run in a text; None if no known runner printed a summary."""
    lines: _Lines = []
    for number, line in enumerate(text.split("\n"), 1):
        if len(line) <= _LINE_MOST:
            lines.append((number, _TIME.sub("", _COLOUR.sub("", line.rstrip("\r")))))
    found = [report for reader in _READERS if (report := reader(lines)) is not None]
    return max(found, key=lambda report: report.source_line, default=None)


def _summed(tally: Tally, counts: Iterable[tuple[str, str]], line: int) -> None:
    """A later summary replaces the counts of an earlier run."""
    tally.counts, tally.line = {}, line
    for number, word in counts:
        tally.add(word, int(number))


def _pytest(lines: _Lines) -> RunReport | None:
    tally = Tally()
    for number, line in lines:
        if match := _PYTEST.fullmatch(line.strip()):
            _summed(tally, _COUNT.findall(match[1]), number)
        elif match := _PYTEST_CASE.fullmatch(line):
            tally.case(match[1], match[2])
        elif match := _PYTEST_WORKER.fullmatch(line):
            tally.case(match[2].strip(), match[1])
        elif match := _PYTEST_SHORT.fullmatch(line):
            tally.case(match[2], match[1])
    return tally.report() if tally.line else None


def _unittest(lines: _Lines) -> RunReport | None:
    tally = Tally()
    ran = -1
    for number, line in lines:
        if match := _UNITTEST.fullmatch(line):
            ran = int(match[1])
        elif ran >= 0 and (match := _UNITTEST_END.fullmatch(line)):
            counts = {name.strip(): int(count) for name, count in _UNITTEST_COUNT.findall(match[1] or "")}
            failed = counts.get("failures", 0) + counts.get("unexpected successes", 0)
            skipped = counts.get("skipped", 0) + counts.get("expected failures", 0)
            errors = counts.get("errors", 0)
            tally.line = number
            tally.counts = {
                "passed": max(0, ran - failed - skipped - errors),
                "failed": failed,
                "skipped": skipped,
                "error": errors,
            }
            ran = -1
        elif match := _UNITTEST_CASE.fullmatch(line):
            # Later Pythons repeat the method after the class.
            place = match[2] if match[2].endswith(f".{match[1]}") else f"{match[2]}.{match[1]}"
            tally.case(place, match[3])
    return tally.report() if tally.line else None


def _jest(lines: _Lines) -> RunReport | None:
    """Jest and Vitest, which mark cases alike; a case has the names of the blocks around it before its own."""
    tally = Tally()
    above: list[tuple[int, str]] = []
    for number, line in lines:
        if (match := _JEST.fullmatch(line)) or (match := _VITEST.fullmatch(line)):
            _summed(tally, _COUNT.findall(match[1]), number)
        elif match := _JEST_FILE.fullmatch(line.strip()):
            above = []
        elif match := _JEST_CASE.fullmatch(line):
            if not _VITEST_FILE.fullmatch(match[3]):
                blocks = [name for indent, name in above if indent < len(match[1])]
                tally.case(" › ".join([*blocks, match[3]]), _MARKS[match[2]])
        elif line.strip():
            indent = len(line) - len(line.lstrip())
            above = [one for one in above if one[0] < indent]
            if indent:
                above.append((indent, line.strip()))
    return tally.report() if tally.line else None


def _cargo(lines: _Lines) -> RunReport | None:
    """cargo prints one summary for each crate and its doctests; together they are the run."""
    tally = Tally()
    for number, line in lines:
        if match := _CARGO.fullmatch(line):
            for word, count in zip(("passed", "failed", "ignored"), match.groups(), strict=True):
                tally.add(word, int(count))
            tally.line = number
        elif match := _CARGO_CASE.fullmatch(line):
            tally.case(match[1], match[2])
    return tally.report() if tally.line else None


def _go(lines: _Lines) -> RunReport | None:
    """A package that lists none of its tests counts as one case of its own name."""
    tally = Tally()
    listed = False
    for number, line in lines:
        if match := _GO_CASE.fullmatch(line):
            tally.add_case(match[2], match[1])
            listed = True
        elif match := _GO_PACKAGE.fullmatch(line):
            word = "error" if match[3].startswith("[") else match[1]
            # Without -v only failures are listed, so a failed package has its cases and a good one none.
            if word == "error" or not listed:
                tally.add_case(match[2], word)
            tally.line, listed = number, False
    return tally.report() if tally.line else None


def _go_json(lines: _Lines) -> RunReport | None:
    tally = Tally()
    listed: set[str] = set()
    for number, line in lines:
        if not line.startswith("{") or '"Action"' not in line:
            continue
        try:
            event = json.loads(line)
        except (ValueError, RecursionError):
            continue
        action, package, test = (event.get(key) for key in ("Action", "Package", "Test"))
        if not isinstance(package, str) or action not in ("pass", "fail", "skip"):
            continue
        tally.line = number
        if isinstance(test, str):
            tally.add_case(f"{package}.{test}", action)
            listed.add(package)
        elif action == "fail" and package not in listed:
            # It did not build, or ended before its first test.
            tally.add_case(package, "error")
    return tally.report() if tally.line else None


def _tap(lines: _Lines) -> RunReport | None:
    """Only the outer cases, which sum up the nested ones."""
    tally = Tally()
    planned: int | None = None
    seen, first = 0, 0
    for number, line in lines:
        if match := _TAP_PLAN.fullmatch(line):
            planned, first = int(match[1]), first or number
        elif line.startswith("TAP version"):
            first = number
        elif line.startswith("Bail out!"):
            tally.add("error")
        elif match := _TAP_CASE.fullmatch(line):
            seen += 1
            word = match[4] or ("failed" if match[1] else "passed")
            tally.add_case(match[3].strip() or f"test {match[2] or seen}", word)
    if planned is None or not (seen or planned == 0):
        return None
    # A planned test that never ran is an error.
    tally.add("error", max(0, planned - seen))
    return tally.report(first)


_READERS: tuple[Callable[[_Lines], RunReport | None], ...] = (_pytest, _unittest, _jest, _cargo, _go, _go_json, _tap)
