"""Ignore files in a plain folder mean what they mean to git, which is asked about the same folder."""

from __future__ import annotations

import itertools
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cases import each
from cortex_py.worktree.files import files
from cortex_py.worktree.files.files import project_files
from cortex_py.worktree.files.ignore_rules import IgnoreRules
from timing import quick

from helpers import git


def ignored(rules: str, *paths: str) -> list[str]:
    """Those of the paths that the rules ignore; a trailing slash marks a folder."""
    found = IgnoreRules(rules.encode())
    return [path for path in paths if found.ignored(path.rstrip("/").encode(), is_folder=path.endswith("/"))]


@each(
    ("rules", "paths"),
    [
        ("*.log", ["a.log", "x/b.log"]), ("/a.log", ["a.log"]), ("x/b.log", ["x/b.log"]), ("**/b.log", ["x/b.log"]),
        ("x/**", ["x/b.log"]), ("log/", ["log/"]), ("*.log\n!a.log", ["x/b.log"]),
        ("!a.log\n*.log", ["a.log", "x/b.log"]), ("# a.log", []), ("\\#c", ["#c"]), ("\\!d", ["!d"]),
        ("a.log   ", ["a.log"]), ("e\\  ", ["e "]), ("e\\\\ ", []), ("a.log\r", ["a.log"]), ("\ufeffa.log", ["a.log"]),
        ("[a-c].log", ["a.log", "x/b.log"]), ("[!b].log", ["a.log"]), ("[[:alpha:]].log", ["a.log", "x/b.log"]),
        ("?.log", ["a.log", "x/b.log"]), ("[a", []), ("a.log\\", []), ("/", []), ("", []),
    ],
)  # fmt: skip
def test_a_rule(rules: str, paths: list[str]) -> None:
    assert ignored(rules, "a.log", "x/b.log", "log", "log/", "#c", "!d", "e ") == paths


def test_the_nearest_file_decides() -> None:
    above = IgnoreRules(b"*.txt\n")
    below = IgnoreRules(b"!keep.txt\n", b"docs", above)
    assert not below.ignored(b"docs/keep.txt", is_folder=False)
    assert below.ignored(b"docs/other.txt", is_folder=False)
    assert above.ignored(b"keep.txt", is_folder=False)


def test_a_hostile_pattern_takes_no_time() -> None:
    rules = IgnoreRules(b"*a" * 40 + b"b\n" + b"**/x/" * 40 + b"y\n" + b" " * 500_000 + b"x\n")
    assert not quick(lambda: rules.ignored(b"a" * 2_000, is_folder=False), 2)
    assert not quick(lambda: rules.ignored(b"x/" * 500 + b"z", is_folder=False), 2)


NAMES = ("a", "b", "ab", "a.b", "A", "a b", "é", "[", "-", "!a", "#b", "\\a")


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    root = tmp_path_factory.mktemp("tree")
    for folder in ("", "a", "b", "a/b", "ab/a"):
        for name in NAMES:
            place = root / folder / f"{name}.f" if name in ("a", "b", "ab") else root / folder / name
            place.parent.mkdir(parents=True, exist_ok=True)
            if not place.is_dir():
                place.write_text("x")
    subprocess.run(["git", "init", "-q", root], check=True)
    yield root


PIECES = st.sampled_from(
    ["a", "b", "ab", ".", "*", "**", "?", "/", "!", "\\", "[ab]", "[!a]", "[^b", "]", "-", " ", "é", "f", "#"]
)
PATTERNS = st.lists(PIECES, min_size=1, max_size=6).map("".join)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(PATTERNS, min_size=1, max_size=4), st.lists(PATTERNS, max_size=2))
def test_a_plain_folder_lists_what_git_lists(
    tree: Path, monkeypatch: pytest.MonkeyPatch, above: list[str], below: list[str]
) -> None:
    (tree / ".gitignore").write_text("\n".join(above))
    (tree / "a" / ".gitignore").write_text("\n".join(below))
    listed = git(tree, "-c", "core.quotepath=off", "ls-files", "-z", "--others", "--exclude-standard").split("\0")
    # A class that holds a slash, and a slash behind a backslash, are read by git alone.
    odd = [line for line in itertools.chain(above, below) if "\\/" in line or ("[" in line and "/" in line)]
    monkeypatch.setattr(files.Repository, "discover", lambda path: None)
    if not odd:
        assert [file.path for file in project_files(tree)] == sorted(path for path in listed if path)
