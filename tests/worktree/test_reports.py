"""Reports of test runs as the runners leave them, counted and read to their cases."""

from __future__ import annotations

import json
from functools import partial

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cases import each
from cortex_py.worktree.test_reports import RunReport, is_report_name, read_report
from timing import quick

JUNIT = """<?xml version="1.0" encoding="utf-8"?>
<!-- made by pytest -->
<testsuites>
  <testsuite name="pytest" errors="1" failures="1" skipped="1" tests="5">
    <testcase classname="tests.test_a" name="test_ok" time="0.1"/>
    <testcase classname="tests.test_a" name="test_flaky"><flakyFailure/></testcase>
    <testcase classname="tests.test_a" name="test_bad"><failure><![CDATA[<!DOCTYPE html>]]></failure></testcase>
    <testcase name="test_broken"><error message="y"/></testcase>
    <testcase classname="tests.test_a" name="test_later"><skipped/></testcase>
  </testsuite>
</testsuites>
"""
PYTEST = """\x1b[1m============ test session starts ============\x1b[0m
tests/test_a.py::test_ok \x1b[32mPASSED\x1b[0m                     [ 25%]
tests/test_a.py::test_two[a b] FAILED               [ 50%]
tests/test_a.py::test_later SKIPPED (why)           [ 75%]
[gw1] [ 90%] PASSED tests/test_b.py::test_far

=========== short test summary info ===========
FAILED tests/test_a.py::test_two[a b] - assert 1 == 2
ERROR tests/test_c.py - ImportError
\x1b[31m==== 1 failed, 2 passed, 1 skipped, 1 xfailed, 3 warnings, 1 error in 4.21s (0:00:04) ====\x1b[0m
"""
UNITTEST = """test_a (tests.test_x.TestX.test_a) ... ok
test_b (tests.test_x.TestX) ... FAIL
test_c (tests.test_x.TestX.test_c) ... skipped 'why'

----------------------------------------------------------------------
Ran 12 tests in 0.003s

FAILED (failures=1, errors=2, skipped=3, expected failures=1)
"""
JEST = """PASS src/sum.test.js
  sum
    ✓ adds numbers (3 ms)
    with zero
      ✓ stays
    ✕ fails (1 ms)
FAIL src/other.test.js
  ○ skipped later

Test Suites: 1 failed, 1 passed, 2 total
Tests:       1 failed, 1 skipped, 2 passed, 4 total
Snapshots:   0 total
"""
VITEST = """ ✓ src/a.test.ts (3 tests) 5ms
 ✓ src/b.test.ts > sum > adds 2ms
 × src/b.test.ts > sum > fails 4ms
 ↓ src/b.test.ts > later

 Test Files  1 failed | 1 passed (2)
      Tests  1 failed | 4 passed | 1 skipped (6)
"""
GO = """=== RUN   TestA
--- PASS: TestA (0.00s)
=== RUN   TestB
    --- FAIL: TestB/sub (0.00s)
--- FAIL: TestB (0.01s)
FAIL
FAIL\texample.org/w/a\t0.012s
--- SKIP: TestC (0.00s)
ok  \texample.org/w/b\t(cached)
ok  \texample.org/w/plain\t0.010s
FAIL\texample.org/w/broken [build failed]
"""
GO_JSON = """{"Time":"x","Action":"run","Package":"p","Test":"TestA"}
{"Action":"output","Package":"p","Test":"TestA","Output":"--- FAIL: TestZ (0.00s)\\n"}
{"Action":"pass","Package":"p","Test":"TestA","Elapsed":0}
{"Action":"fail","Package":"p","Test":"TestB"}
{"Action":"skip","Package":"p","Test":"TestC"}
{"Action":"fail","Package":"p"}
{"Action":"fail","Package":"broken"}
"""
CARGO = """running 2 tests
test parse::empty ... ok
test parse::long ... FAILED
test parse::slow ... ignored, takes long

test result: FAILED. 1 passed; 1 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.01s

   Doc-tests w
test result: ok. 3 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.20s
"""
TAP = """TAP version 13
1..6
ok 1 - opens
    1..1
    ok 1 - within
not ok 2 - closes
ok 3 - later # SKIP no network
not ok 4 - someday # TODO write
ok 5
"""

RUNS: dict[str, tuple[str, str, RunReport]] = {
    "junit": (
        "reports/junit.xml",
        JUNIT,
        RunReport(
            2, 1, 1, 1,
            {
                "tests.test_a.test_ok": "passed", "tests.test_a.test_flaky": "passed",
                "tests.test_a.test_bad": "failed", "test_broken": "error", "tests.test_a.test_later": "skipped",
            },
            3,
        ),
    ),
    "junit counts": (
        "TEST-a.xml",
        '\n<testsuites><testsuite tests="5" failures="1" errors="1" skipped="1"/><testsuite tests="2"/></testsuites>',
        RunReport(4, 1, 1, 1, {}, 2),
    ),
    "pytest": (
        "test-output.txt",
        PYTEST,
        RunReport(
            2, 1, 2, 1,
            {
                "tests/test_a.py::test_ok": "passed", "tests/test_a.py::test_two[a b]": "failed",
                "tests/test_a.py::test_later": "skipped", "tests/test_b.py::test_far": "passed",
                "tests/test_c.py": "error",
            },
            10,
        ),
    ),
    "pytest quiet": ("out.log", "...F\n3 failed, 12 passed in 4.2s\n", RunReport(12, 3, 0, 0, {}, 2)),
    "pytest none": ("out.log", "\n=== no tests ran in 0.01s ===\n", RunReport(0, 0, 0, 0, {}, 2)),
    "pytest twice": ("out.log", "1 failed in 1s\n2 passed in 1.00s\n", RunReport(2, 0, 0, 0, {}, 2)),
    "pytest in CI": ("ci.log", "2024-05-01T10:00:00.1234567Z 2 passed in 1.00s\r\n", RunReport(2, 0, 0, 0, {}, 1)),
    "unittest": (
        "out.txt",
        UNITTEST,
        RunReport(
            5, 1, 4, 2,
            {
                "tests.test_x.TestX.test_a": "passed",
                "tests.test_x.TestX.test_b": "failed",
                "tests.test_x.TestX.test_c": "skipped",
            },
            8,
        ),
    ),
    "unittest good": ("out.txt", "..\n---\nRan 2 tests in 0.000s\n\nOK\n", RunReport(2, 0, 0, 0, {}, 5)),
    "jest": (
        "jest.log",
        JEST,
        RunReport(
            2, 1, 1, 0,
            {
                "sum › adds numbers": "passed", "sum › with zero › stays": "passed", "sum › fails": "failed",
                "skipped later": "skipped",
            },
            11,
        ),
    ),
    "vitest": (
        "vitest.log",
        VITEST,
        RunReport(
            4, 1, 1, 0,
            {
                "src/b.test.ts > sum > adds": "passed",
                "src/b.test.ts > sum > fails": "failed",
                "src/b.test.ts > later": "skipped",
            },
            7,
        ),
    ),
    "go": (
        "test.log",
        GO,
        RunReport(
            2, 2, 1, 1,
            {
                "TestA": "passed", "TestB/sub": "failed", "TestB": "failed", "TestC": "skipped",
                "example.org/w/plain": "passed", "example.org/w/broken": "error",
            },
            11,
        ),
    ),
    "go json": (
        "report.json",
        GO_JSON,
        RunReport(1, 1, 1, 1, {"p.TestA": "passed", "p.TestB": "failed", "p.TestC": "skipped", "broken": "error"}, 7),
    ),
    "cargo": (
        "out.txt",
        CARGO,
        RunReport(4, 1, 1, 0, {"parse::empty": "passed", "parse::long": "failed", "parse::slow": "skipped"}, 9),
    ),
    "tap": (
        "run.tap",
        TAP,
        RunReport(
            2, 1, 2, 1,
            {"opens": "passed", "closes": "failed", "later": "skipped", "someday": "skipped", "test 5": "passed"},
            1,
        ),
    ),
    "pytest json": (
        ".report.json",
        '{\n"created": 1.5,\n"summary": {"passed": 2, "failed": 1, "xfailed": 1, "total": 4, "collected": 4},\n'
        '"tests": [{"nodeid": "a.py::b", "outcome": "passed"}, {"nodeid": "a.py::c", "outcome": "xfailed"}]}',
        RunReport(2, 1, 1, 0, {"a.py::b": "passed", "a.py::c": "skipped"}, 3),
    ),
    "jest json": (
        "jest-results.json",
        json.dumps(
            {
                "numPassedTests": 3, "numFailedTests": 1, "numPendingTests": 1, "numTodoTests": 1,
                "numRuntimeErrorTestSuites": 1, "numTotalTests": 6,
                "testResults": [{"assertionResults": [{"fullName": "sum adds", "status": "passed"}]}],
            },
            indent=1,
        ),
        RunReport(3, 1, 2, 1, {"sum adds": "passed"}, 7),
    ),
}  # fmt: skip


@each("runner", RUNS)
def test_a_run_is_read(runner: str) -> None:
    path, text, report = RUNS[runner]
    assert read_report(path, text) == report


@each(
    ("path", "text"),
    [
        ("notes.txt", "We ran the tests, 3 passed and all is well."), ("notes.txt", "Ran 12 tests in 0.1s"),
        ("notes.txt", "ok then\nok 5 of them"), ("notes.txt", "1..3\nnothing more"),
        ("a.xml", "<project><testcase name='a'/></project>"), ("a.xml", "<testsuite><testcase>"),
        ("a.xml", "3 passed in 1.0s"), ("package.json", '{"name": "w", "tests": []}'), ("a.txt", ""),
    ],
)  # fmt: skip
def test_what_is_no_report_is_none(path: str, text: str) -> None:
    assert read_report(path, text) is None


@pytest.mark.parametrize(
    "declaration",
    [
        '<!DOCTYPE testsuites [<!ENTITY a "aaaa">]>',
        '<!DOCTYPE testsuites SYSTEM "file:///etc/passwd">',
        "<!-- x --> <!DOCTYPE a>",
    ],
)
def test_document_types_are_refused(declaration: str) -> None:
    assert read_report("junit.xml", JUNIT) is not None
    assert read_report("junit.xml", JUNIT.replace("<testsuites>", f"{declaration}\n<testsuites>")) is None


def test_the_last_runner_counts() -> None:
    found = read_report("ci.log", f"{CARGO}\n5 passed in 1.0s\n")
    assert found is not None
    assert (found.passed, found.failed) == (5, 0)


def test_cases_are_bounded_and_counts_are_not() -> None:
    cases = "".join(f'<testcase name="t{n}"/>' for n in range(20_500))
    found = read_report("junit.xml", f"<testsuite>{cases}</testsuite>")
    assert found is not None
    assert (found.passed, len(found.cases)) == (20_500, 20_000)


def test_a_report_beyond_all_measure_is_not_read() -> None:
    assert read_report("junit.xml", JUNIT + " " * 8_000_000) is None


@each(
    "path",
    [
        "junit.xml", "build/junit-results.xml", "target/surefire-reports/TEST-com.acme.AppTest.xml", "TEST-a.xml",
        "test-results/unit/out.xml", "build/test-results/test/a.xml", "reports/report.xml", "report.xml",
        ".report.json", "test-output.txt", "out/pytest.log", "run.tap", "test_results.json",
        "nosetests.xml", "jest-results.json",
    ],
)  # fmt: skip
def test_reports_are_known_by_name(path: str) -> None:
    assert is_report_name(path)


@each(
    "path", ["pom.xml", "src/report.xml", "package.json", "src/test_output.py", "notes.txt", "tests/data.xml", "a.log"]
)
def test_other_files_are_not_taken_for_reports(path: str) -> None:
    assert not is_report_name(path)


UNITS = [
    "[", '{"a":', "<testsuite>", "1 a", "ok 1 ", "ok\n", "--- PASS: ", "a.py::", "✓ ", " ", "\n", "test a ... ",
    "Tests: 1 a, ",
]  # fmt: skip


@pytest.mark.parametrize("path", ["a.xml", "a.json", "a.txt"])
def test_no_text_takes_long(path: str) -> None:
    for unit in UNITS:
        for text in (unit * (40_000 // len(unit)), (unit * (1_900 // len(unit)) + "\n") * 10):
            quick(partial(read_report, path, text), 5)


@pytest.mark.parametrize("path", ["a.xml", "a.json", "a.txt"])
@settings(suppress_health_check=[HealthCheck.too_slow])
@given(
    lines=st.lists(
        st.one_of(st.text(max_size=60), st.sampled_from([*UNITS, *GO_JSON.split("\n"), *TAP.split("\n")])), max_size=8
    )
)
def test_no_text_is_too_strange(path: str, lines: list[str]) -> None:
    text = "\n".join(lines)
    report = read_report(path, text)
    if report is not None:
        assert 1 <= report.source_line <= text.count("\n") + 1
        assert min(report.passed, report.failed, report.skipped, report.errors) >= 0


@each("runner", RUNS)
def test_half_a_report_tells_of_no_more_success(runner: str) -> None:
    path, text, whole = RUNS[runner]
    for cut in range(len(text)):
        report = read_report(path, text[:cut])
        if report is not None:
            assert report.source_line <= whole.source_line, cut
            assert report.passed <= whole.passed, cut
