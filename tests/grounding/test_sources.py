"""The sources of evidence as callers write them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases import each
from cortex_py.core.errors import InvalidInput
from cortex_py.parts.verify.sources import EVERYTHING, Sources, read_sources


@pytest.mark.parametrize("names", [None, [], ()])
def test_nothing_named_means_everything(names: list[str] | None) -> None:
    sources = read_sources(names)
    assert sources == EVERYTHING
    assert not sources.narrowed
    assert sources.takes("anything/at/all.py")


@each(
    ("name", "history", "memories", "reports"),
    [
        ("git log", True, False, False),
        ("Git History", True, False, False),
        ("the commits", True, False, False),
        ("git diff", True, False, False),
        ("memories", False, True, False),
        ("stored memory", False, True, False),
        ("notes", False, True, False),
        ("test report", False, False, True),
        ("the test results", False, False, True),
    ],
)
def test_kinds_are_known_by_what_people_call_them(name: str, history: bool, memories: bool, reports: bool) -> None:
    sources = read_sources([name])
    assert (sources.history, sources.memories, sources.reports) == (history, memories, reports)
    assert sources.narrowed
    assert not sources.takes("auth.py")


@each("name", ["files", "the code", "source code", "codebase", "repository", "project files"])
def test_all_files_can_be_asked_for(name: str) -> None:
    sources = read_sources([name])
    assert sources.takes("any/file.py")
    assert not sources.history


@each(
    ("written", "taken", "left"),
    [
        ("auth.py", ["auth.py", "src/auth.py"], ["my_auth.py", "auth.pyi", "auth.py.bak"]),
        ("src/auth.py", ["src/auth.py", "pkg/src/auth.py"], ["auth.py", "other/auth.py"]),
        ("./src/auth.py", ["src/auth.py"], ["auth.py"]),
        ("src", ["src/auth.py", "src/deep/x.go", "lib/src/y.ts"], ["srcs/auth.py", "a/src.py"]),
        ("src/", ["src/auth.py"], ["auth.py"]),
        ("*.py", ["auth.py", "src/deep/auth.py"], ["auth.pyc", "py"]),
        ("src/**/*.py", ["src/auth.py", "src/deep/auth.py"], ["lib/auth.py", "src/auth.ts"]),
        ("src/*.py", ["src/auth.py"], ["auth.py"]),
        ("File: auth.py line 45", ["auth.py"], ["line", "45"]),
        ("file: src/auth.py lines 4-9", ["src/auth.py"], ["src/auth.ts"]),
        ("auth.py:45", ["auth.py"], ["45"]),
        ("auth.py:45-60", ["auth.py"], []),
        ("auth.py#L45", ["auth.py"], []),
        ("`auth.py`", ["auth.py"], []),
        ("src\\auth.py", ["src/auth.py"], ["auth.py"]),
        ("/src/auth.py", ["src/auth.py"], ["auth.py"]),
        (".", ["auth.py", "a/b.c"], []),
        ("../auth.py", [], ["auth.py", "src/auth.py"]),
    ],
)
def test_paths_and_patterns(written: str, taken: list[str], left: list[str]) -> None:
    sources = read_sources([written])
    assert [path for path in taken if not sources.takes(path)] == []
    assert [path for path in left if sources.takes(path)] == []
    assert not sources.history
    assert not sources.memories
    assert sources.reports  # a file that is named may be a report


def test_sources_add_up() -> None:
    sources = read_sources(["auth.py", "git log", "*.ts"])
    assert (sources.takes("auth.py"), sources.takes("a.ts"), sources.takes("b.py")) == (True, True, False)
    assert (sources.history, sources.memories) == (True, False)


@each("names", [[""], ["  "], ["auth.py", ""], ["x" * 501], ["a"] * 101])
def test_what_cannot_be_read_is_refused_by_name(names: list[str]) -> None:
    with pytest.raises(InvalidInput) as caught:
        read_sources(names)
    assert caught.value.field == "evidence_sources"
    assert caught.value.remedy


@given(st.lists(st.text(min_size=1, max_size=40), max_size=5), st.text(max_size=60))
def test_whatever_is_written_is_read_or_refused(names: list[str], path: str) -> None:
    try:
        sources = read_sources(names)
    except InvalidInput:
        return
    assert isinstance(sources, Sources)
    assert sources.takes(path) in (True, False)
