"""Runs the protocol's conformance suite against Cortex: `make conformance`.

First `cortex serve --http` as it is, with every scenario that needs no fixtures; then the same server with
the fixtures, with everything that two revisions of the protocol require. Findings stay in
`.make/conformance/results`.
"""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from .suite import Check, Requirements, Suite, SuiteUnavailable, read_results
from servers import serve_command, serve_environment

TESTS = Path(__file__).parents[1]
FOLDER = TESTS.parent / ".make" / "conformance"
RESULTS = FOLDER / "results"
EXPECTED = Path(__file__).with_name("expected-failures.yml")

# By revision: what needs no fixtures. `server-stateless` has six checks that do, and says so itself.
PLAIN = {
    "2026-07-28": (
        "server-stateless",
        "completion-complete",
        "tools-list",
        "server-sse-multiple-streams",
        "resources-list",
        "sep-2164-resource-not-found",
        "prompts-list",
        "dns-rebinding-protection",
        "caching",
        "input-required-result-unsupported-methods",
        "http-header-validation",
    ),
    "2025-11-25": (
        "server-initialize",
        "server-session-lifecycle",
        "logging-set-level",
        "ping",
        "completion-complete",
        "tools-list",
        "server-sse-multiple-streams",
        "resources-list",
        "resources-subscribe",
        "resources-unsubscribe",
        "prompts-list",
        "dns-rebinding-protection",
    ),
}

Results = dict[str, list[Check]]
# By scenario the checks that may fail; none named means any.
Expected = dict[str, set[str]]
ROW = "{:<10}{:<12}{:<13}{:>9}{:>8}{:>8}{:>9}{:>8}{:>8}"
BROKE_OFF = Check("run", "FAILURE", "left no findings")


class Report:
    """The table, and everything that must not be."""

    def __init__(self) -> None:
        self.problems: list[str] = []
        self._rows: list[tuple[object, ...]] = [
            ("", "", "", "scenarios", "", "", "checks", "", ""),
            ("server", "revision", "", "run", "passed", "failed", "passed", "failed", "left"),
        ]

    def row(self, server: str, revision: str, kind: str, results: Results, left: int = 0) -> None:
        """`left` are checks that need a fixture this server does not have."""
        checks = [check for findings in results.values() for check in findings]
        failed = sum(any(check.failed for check in findings) for findings in results.values())
        scenarios = (len(results), len(results) - failed, failed)
        counts = (sum(check.passed for check in checks), sum(check.failed for check in checks), left)
        self._rows.append((server, revision, kind, *scenarios, *counts))

    def show(self) -> None:
        for row in self._rows:
            print(ROW.format(*row), flush=True)
        for problem in self.problems:
            print(problem, file=sys.stderr)


def main() -> int:
    # Ending this process has to end the servers too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    suite = Suite(FOLDER)
    try:
        suite.install()
        requirements = {revision: suite.requirements(revision) for revision in PLAIN}
    except SuiteUnavailable as error:
        print(f"Conformance was not checked: {error}.", file=sys.stderr)
        return 1
    shutil.rmtree(RESULTS, ignore_errors=True)
    expected = expected_failures(EXPECTED.read_text("utf-8"))
    report = Report()
    report.problems += misplaced(expected, requirements.values())
    with serving("plain", serve_command(own_interpreter=True)) as url:
        for revision, scenarios in PLAIN.items():
            run_plain(suite, url, revision, scenarios, report)
    with serving("fixtures", [sys.executable, "-m", "conformance.serve"], TESTS) as url:
        for revision, required in requirements.items():
            run_all(suite, url, revision, required, expected, report)
    report.show()
    return 1 if report.problems else 0


@contextmanager
def serving(name: str, command: list[str], folder: Path | None = None) -> Iterator[str]:
    """A server on a free port of this machine, with a home of its own. Gives the protocol's address."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as place, (RESULTS / f"{name}.log").open("wb") as log:
        project = Path(place) / "project"
        project.mkdir()
        process = subprocess.Popen(
            [*command, "--http", "--port", "0", "--project", str(project)],
            cwd=folder or project,
            env=serve_environment(Path(place) / "home"),
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
        try:
            assert process.stdout
            words = process.stdout.readline().split()
            if words[:2] != ["Cortex", "serves"]:
                sys.exit(f"The {name} server did not start; see {log.name}.")
            yield f"{words[2]}/mcp"
        finally:
            _stop(process)


def _stop(process: subprocess.Popen[str]) -> None:
    process.terminate()
    try:
        process.communicate(timeout=10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()


def run_plain(suite: Suite, url: str, revision: str, scenarios: tuple[str, ...], report: Report) -> None:
    """Each scenario by itself. What the suite could not test here, it tests on the server with the fixtures."""
    place = RESULTS / f"plain-{revision}"
    for scenario in scenarios:
        suite.run(url, place, "--scenario", scenario, "--spec-version", revision)
    found = _of(scenarios, read_results(place))
    results = {name: [check for check in checks if not check.untestable] for name, checks in found.items()}
    left = sum(check.untestable for checks in found.values() for check in checks)
    report.row("plain", revision, "no fixtures", results, left)
    report.problems += _objections(f"plain {revision}", results)


def run_all(suite: Suite, url: str, revision: str, required: Requirements, expected: Expected, report: Report) -> None:
    """Everything the revision names. What is scored passes; what is not may fail only if it is listed."""
    place, where = RESULTS / f"fixtures-{revision}", f"fixtures {revision}"
    code = suite.run(url, place, "--requirements", revision, "--expected-failures", str(EXPECTED))
    found = read_results(place)
    scored, unscored = _of(required.scored, found), _of(required.unscored, found)
    report.row("fixtures", revision, "scored", scored)
    report.row("fixtures", revision, "not scored", unscored)
    problems = _objections(where, scored)
    for scenario, checks in unscored.items():
        problems += judge(where, scenario, checks, expected.get(scenario))
    if code and not problems:
        problems.append(f"{where}: the suite ended with {code}; see {place / 'output.txt'}")
    report.problems += problems


def _of(scenarios: tuple[str, ...], found: Results) -> Results:
    """The findings of these scenarios; one that has left none has failed."""
    return {scenario: found.get(scenario) or [BROKE_OFF] for scenario in scenarios}


def _objections(where: str, results: Results) -> list[str]:
    return [
        _problem(where, scenario, check) for scenario, checks in results.items() for check in checks if check.objects
    ]


def expected_failures(text: str) -> Expected:
    """What the list holds. The suite itself checks the syntax."""
    expected: Expected = {}
    for line in text.splitlines():
        if (entry := line.strip()).startswith("- "):
            scenario, _, check = entry[2:].partition(":")
            expected.setdefault(scenario, set()).update({check} if check else ())
    return expected


def misplaced(expected: Expected, requirements: Iterable[Requirements]) -> list[str]:
    """Entries that may not stand in the list: only what no revision scores may."""
    sets = list(requirements)
    scored = {name for required in sets for name in required.scored}
    unscored = {name for required in sets for name in required.unscored} - scored
    return [f"{EXPECTED.name}: {name} is not a scenario that goes unscored." for name in expected.keys() - unscored]


def judge(where: str, scenario: str, checks: list[Check], excused: set[str] | None) -> list[str]:
    """What is wrong with an unscored scenario: a failure nobody expects, or an expected one that is none."""
    failing = {check.id for check in checks if check.failed}
    if excused is None:
        return [_problem(where, scenario, check) for check in checks if check.failed]
    if not excused:
        return [] if failing else [f"{where}: {scenario} passes by now; take it out of {EXPECTED.name}."]
    passing = {check.id for check in checks if check.passed} - failing
    stale = [f"{where}: {scenario}:{id} passes by now; take it out of {EXPECTED.name}." for id in excused & passing]
    return stale + [_problem(where, scenario, check) for check in checks if check.failed and check.id not in excused]


def _problem(where: str, scenario: str, check: Check) -> str:
    return f"{where}: {scenario}: {check.id}: {check.message or check.status}"


if __name__ == "__main__":
    sys.exit(main())
