"""Reports of test runs as the runners leave them, counted and read to their cases."""

from __future__ import annotations

from functools import partial

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cases import each
from code_samples import read_samples
from cortex_py.worktree.test_reports import RunReport, is_report_name, read_report
from timing import quick

SAMPLES = read_samples("test_runs")
JUNIT, CARGO, GO_JSON, TAP = (SAMPLES[name]["text"] for name in ("junit", "cargo", "go json", "tap"))

RUNS = {
    name: (one["path"], one["text"], RunReport(*one["counts"], one["cases"], one["line"]))
    for name, one in SAMPLES.items()
}


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
