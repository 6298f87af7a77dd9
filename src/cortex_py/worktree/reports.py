"""Reports of test runs: JUnit XML, the JSON of pytest, Jest and Vitest, and what runners print."""

from __future__ import annotations

import posixpath
import re

from .markup import Element, read_xml
from .parts import Part, read_json
from .report_output import Report, Result, Tally, read_output

__all__ = ["Report", "Result", "is_report_name", "read_report"]

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


def read_report(path: str, text: str) -> Report | None:
    """The run that a file tells of; None where it tells of none, or is broken or too large."""
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


def _junit(root: Element) -> Report | None:
    if root.tag not in ("testsuites", "testsuite"):
        return None
    tally = Tally()
    cases = 0
    for one in root.all():
        if one.tag == "testcase":
            cases += 1
            place, name = one.attributes.get("classname", ""), one.attributes.get("name", "")
            tally.both(f"{place}.{name}" if place else name, _junit_result(one))
    if not cases:
        _junit_counts(tally, root)
    return tally.report(root.line)


def _junit_result(case: Element) -> Result:
    tags = {one.tag for one in case.children}
    return (
        "failed" if "failure" in tags else "error" if "error" in tags else "skipped" if "skipped" in tags else "passed"
    )


def _junit_counts(tally: Tally, root: Element) -> None:
    """Some reports hold only the numbers of each suite."""
    suites = [root] if "tests" in root.attributes else [one for one in root.children if one.tag == "testsuite"]
    for suite in suites:
        failed, errors, skipped, ran = (_number(suite, key) for key in ("failures", "errors", "skipped", "tests"))
        tally.add("failed", failed)
        tally.add("error", errors)
        tally.add("skipped", skipped)
        tally.add("passed", max(0, ran - failed - errors - skipped))


def _number(element: Element, key: str) -> int:
    text = element.attributes.get(key, "")
    return int(text) if re.fullmatch(r"[0-9]{1,9}", text) else 0


# -- JSON ------------------------------------------------------------------------------------------


def _json(text: str) -> Report | None:
    try:
        content = read_json(text.removeprefix("\ufeff"))
    except (ValueError, RecursionError):
        # Go writes one object to a line, which is no JSON as a whole.
        return None
    if "numTotalTests" in content.table:
        return _jest_json(content)
    return _pytest_json(content) if content.at("summary").table and "tests" in content.table else None


def _pytest_json(content: Part) -> Report:
    tally = Tally()
    summary = content.at("summary")
    for word, count in summary.table.items():
        if word not in ("total", "collected", "deselected"):
            tally.add(word, _count(count))
    for test in content.at("tests").items:
        tally.case(test.at("nodeid").text or "", test.at("outcome").text or "")
    return tally.report(summary.line)


def _jest_json(content: Part) -> Report:
    tally = Tally()
    for word in ("Passed", "Failed", "Pending", "Todo"):
        tally.add(word, _count(content.at(f"num{word}Tests")))
    # A file that cannot be loaded has no tests to fail.
    tally.add("error", _count(content.at("numRuntimeErrorTestSuites")))
    for suite in content.at("testResults").items:
        for test in suite.at("assertionResults").items:
            tally.case(test.at("fullName").text or test.at("title").text or "", test.at("status").text or "")
    return tally.report(content.at("numTotalTests").line)


def _count(part: Part) -> int:
    value = part.value
    return int(value) if isinstance(value, str) and re.fullmatch(r"[0-9]{1,9}", value) else 0
