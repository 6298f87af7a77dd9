"""Patches, as git prints them or could print them, and what is read from them."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable
from functools import partial
from io import BytesIO
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cases import each
from cortex_py.worktree.git import diffs
from cortex_py.worktree.git import runner as git_runner
from cortex_py.worktree.git.diffs import (
    ChangedLine,
    PatchFile,
    PatchReader,
    find_names,
    new_file_change,
    new_file_lines,
    path_label,
)
from cortex_py.worktree.git.runner import split_lines

from helpers import git

PLAIN = re.compile(r"(?<![\w$])[A-Za-z_$][\w$]{1,80}(?![\w$])")


def changes(text: str | bytes) -> tuple[tuple[PatchFile, ...], bool]:
    data = text.encode() if isinstance(text, str) else text
    return PatchReader(split_lines(BytesIO(data).read)).changes()


def patch(path: str, *hunks: str) -> str:
    return f"diff --git a/{path} b/{path}\nindex 1..2 100644\n--- a/{path}\n+++ b/{path}\n" + "".join(hunks)


# Names


def test_names_are_whole_words() -> None:
    lines = [
        b"+alpha = beta.gamma(x, _y, $el, 9lives, 0xff)",
        b"+caf\xc3\xa9 na\xefve \xc3\xa9cole \xe2\x80\x9cquoted\xe2\x80\x9d",
    ]
    assert find_names(lines) == {"alpha", "beta", "gamma", "_y", "$el", "café", "quoted"}
    assert find_names([b"a" * 81, b"b" * 82]) == {"a" * 81}
    assert find_names([]) == frozenset()


def test_a_long_line_is_read_up_to_the_end_of_a_word() -> None:
    line = b"first " + b"x " * 990 + b"cut_in_the_middle_of_this_name last"
    assert len(line) > 2_000
    assert find_names([line]) == {"first"}
    assert find_names([b"y" * 50_000]) == frozenset()


@given(st.lists(st.text(alphabet="ab_$ \u00e9\u65e5.9-+\\@\r", max_size=12), max_size=6))
def test_names_are_those_of_the_lines_one_by_one(lines: list[str]) -> None:
    found = find_names([line.encode() for line in lines])
    assert found == {name for line in lines for name in PLAIN.findall(line)}


# Lines


@given(st.lists(st.binary(max_size=30).map(lambda line: line.replace(b"\n", b"")), max_size=20), st.integers(1, 40))
def test_lines_are_the_same_however_the_stream_is_cut(lines: list[bytes], size: int) -> None:
    stream = BytesIO(b"".join(line + b"\n" for line in lines))
    assert list(split_lines(lambda _: stream.read(size))) == lines


def test_a_line_of_any_length_is_held_within_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(git_runner, "LONGEST_LINE", 10)
    for size in (1, 3, 7, 64, 1000):
        stream = BytesIO(b"short\n" + b"0123456789abcdef" * 9 + b"\nend")
        assert list(split_lines(partial(lambda size, stream, _: stream.read(size), size, stream))) == [
            b"short",
            b"0123456789",
            b"end",
        ]


# Changes


def test_names_that_came_went_and_stayed() -> None:
    found, whole = changes(
        patch("a.py", "@@ -3,2 +3 @@ def outer(one):\n-old(kept)\n-gone\n+new(kept)\n", "@@ -9 +8,0 @@\n-new\n")
    )
    assert found == (
        PatchFile(
            "a.py",
            None,
            "modified",
            1,
            3,
            frozenset(),
            frozenset(("old", "gone")),
            frozenset(("kept", "new", "def", "outer", "one")),
        ),
    )
    assert whole


def test_lines_that_look_like_headers_are_content() -> None:
    hunk = (
        "@@ -1,3 +1,4 @@\n--- a/fake\n-diff --git a/x b/x\n-@@ -1 +1 @@\n+++ b/fake\n+rename to y\n+\0zero\n+\\ slash\n"
    )
    found, _ = changes(patch("a.py", hunk) + patch("b.py", "@@ -0,0 +1 @@\n+bee\n"))
    assert [(one.path, one.status, one.added, one.removed) for one in found] == [
        ("a.py", "modified", 4, 3),
        ("b.py", "modified", 1, 0),
    ]
    assert "zero" in found[0].introduced


def test_a_copy_is_an_added_file_that_tells_where_it_was() -> None:
    header = 'diff --git "a/o\\tld" b/new b/x\nsimilarity index 90%\ncopy from "o\\tld"\ncopy to new b/x\n'
    assert changes(header + "@@ -0,0 +1 @@\n+xx\n")[0] == (
        PatchFile("new b/x", "o\tld", "added", 1, 0, frozenset(("xx",))),
    )


def test_a_missing_end_of_line_is_no_line() -> None:
    marker = "\\ No newline at end of file\n"
    both = patch("a", f"@@ -1 +1 @@\n-one\n{marker}+two\n{marker}") + patch("b", f"@@ -1 +0,0 @@\n-one\n{marker}")
    found, _ = changes(both + patch("c", f"@@ -1 +1,2 @@\n-one\n{marker}+one\n+two\n"))
    assert [(one.path, one.added, one.removed, one.introduced) for one in found] == [
        ("a", 1, 1, {"two"}),
        ("b", 0, 1, set()),
        ("c", 2, 1, {"two"}),
    ]


def test_the_patch_ends_at_a_nul_and_the_line_is_left() -> None:
    reader = PatchReader(iter([b"", *patch("a", "@@ -0,0 +1 @@\n+xx").encode().split(b"\n"), b"\0next", b"more"]))
    assert [one.path for one in reader.changes()[0]] == ["a"]
    assert reader.line == b"\0next"
    assert reader.advance() == b"more"


def test_a_context_that_git_cut_loses_its_last_word() -> None:
    context = "def some_function(" + "argument_one, " * 4 + "argum"
    context = context + "e" * (80 - len(context))
    found, _ = changes(patch("a", f"@@ -1 +1 @@ {context}\n-x1\n+x2\n"))
    assert found[0].touched == {"def", "some_function", "argument_one"}


@each("path", ["yarn.lock", "src/app.min.js", "logo.png", "node_modules/x/index.js", ".env", "certs/server.key"])
def test_files_that_nobody_wrote_or_should_tell_give_no_names(path: str) -> None:
    found, whole = changes(patch(path, "@@ -1 +1 @@ context\n-old_name\n+new_name\n"))
    assert found == (PatchFile(path, None, "modified", 1, 1),)
    assert whole
    assert new_file_change(path.encode(), b"new_name\n") == PatchFile(path, None, "added", 1, 0)


def test_minified_code_gives_no_names_but_prose_does() -> None:
    hunk = "@@ -0,0 +1,3 @@\n" + ("+" + "some_word;" * 150 + "\n") * 3
    assert changes(patch("a.js", hunk))[0][0].introduced == frozenset()
    assert changes(patch("a.md", hunk))[0][0].introduced == {"some_word"}


def test_beyond_the_limits_files_are_counted_without_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(diffs, "MOST_FILES", 2)
    monkeypatch.setattr(diffs, "MOST_LISTED", 3)
    text = "".join(patch(f"f{n}", "@@ -1 +1 @@\n-old\n+new\n") for n in range(5))
    found, whole = changes(text)
    assert [(one.path, one.added, bool(one.introduced)) for one in found] == [
        ("f0", 1, True),
        ("f1", 1, True),
        ("f2", 1, False),
    ]
    assert not whole


def test_a_patch_too_large_tells_counts_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(diffs, "MOST_BYTES", 100)
    monkeypatch.setattr(diffs, "LINES_AT_ONCE", 4)
    big = "@@ -1,20 +1,30 @@\n" + "-removed\n" * 20 + "+added\n" * 30
    found, whole = changes(
        patch("small", "@@ -1 +1 @@\n-old\n+new\n") + patch("big", big) + patch("last", "@@ -1 +1 @@\n-a1\n+b1\n")
    )
    assert [(one.added, one.removed, sorted(one.introduced | one.dropped)) for one in found] == [
        (1, 1, ["new", "old"]),
        (30, 20, []),
        (1, 1, []),
    ]
    assert not whole


def test_lines_of_one_file_bear_their_numbers() -> None:
    text = patch("other", "@@ -1 +1 @@\n-no\n+no\n") + patch(
        "a", "@@ -3,2 +4 @@ f\n-one\r\n-two\n+three\n", "@@ -9,0 +9,2 @@\n+four\n+five\n"
    )
    expected = (
        ChangedLine("-", 3, "one"),
        ChangedLine("-", 4, "two"),
        ChangedLine("+", 4, "three"),
        ChangedLine("+", 9, "four"),
        ChangedLine("+", 10, "five"),
    )
    assert PatchReader(iter(text.encode().split(b"\n"))).lines_of(b"a", 1_000) == (expected, True)
    assert PatchReader(iter(text.encode().split(b"\n"))).lines_of(b"a", 11) == (expected[:2], False)
    assert new_file_lines(b"one\ntwo", 100) == ((ChangedLine("+", 1, "one"), ChangedLine("+", 2, "two")), True)
    assert new_file_lines(b"\0", 100) == new_file_lines(b"", 100) == ((), True)


# What git makes of it


def numstat(root: Path, *options: str) -> list[list[str]]:
    return [line.split("\t") for line in git(root, "diff", "--numstat", "--no-renames", *options).split("\n")]


CONTENT = st.lists(
    st.sampled_from(
        [
            "alpha = beta", "-- a/x", "++ b/y", "", "@@ -1 +1 @@", "diff --git a/q b/q", "\\ No newline", "éa gamma\r",
            "delta($x)",
        ]
    ),
    max_size=9,
)  # fmt: skip
ENDED = st.tuples(CONTENT, st.booleans()).map(lambda pair: "\n".join(pair[0]) + ("\n" if pair[1] else ""))
VERSIONS = st.lists(st.tuples(ENDED, ENDED), min_size=6, max_size=10)


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(VERSIONS)
def test_what_git_prints_is_read_as_it_was_written(
    tmp_path_factory: pytest.TempPathFactory, versions: list[tuple[str, str]]
) -> None:
    root = tmp_path_factory.mktemp("r")
    git(root, "init", "-q")
    paths = [f"f {n}.txt" for n in range(len(versions))]
    for path, (old, _) in zip(paths, versions, strict=True):
        (root / path).write_bytes(old.encode())
    git(root, "add", ".")
    for path, (_, new) in zip(paths, versions, strict=True):
        (root / path).write_bytes(new.encode())
    done = git_bytes(root, "diff", "-U0")
    found = {one.path: one for one in changes(done)[0]}
    changed = {path: pair for path, pair in zip(paths, versions, strict=True) if pair[0] != pair[1]}
    assert found.keys() == changed.keys()
    counts = {path: (int(added), int(removed)) for added, removed, path in numstat(root)} if changed else {}
    for path, (old, new) in changed.items():
        change = found[path]
        assert (change.added, change.removed) == counts[path]
        lines, whole = PatchReader(split_lines(BytesIO(done).read)).lines_of(path.encode(), 10_000)
        assert whole
        assert applied(old, lines) == new.replace("\r", "").removesuffix("\n").split("\n")
        plus = {name for line in lines if line.sign == "+" for name in PLAIN.findall(line.text)}
        minus = {name for line in lines if line.sign == "-" for name in PLAIN.findall(line.text)}
        assert (change.introduced, change.dropped) == (plus - minus, minus - plus)
        assert change.touched >= plus & minus


def git_bytes(root: Path, *arguments: str) -> bytes:
    return subprocess.run(["git", "-C", root, *arguments], check=True, capture_output=True).stdout


def applied(old: str, lines: Iterable[ChangedLine]) -> list[str]:
    """The new version, made from the old one by the changed lines alone."""
    listed = list(lines)
    gone = {line.number for line in listed if line.sign == "-"}
    before = old.replace("\r", "").removesuffix("\n").split("\n") if old else []
    kept = [text for number, text in enumerate(before, 1) if number not in gone]
    for line in listed:
        if line.sign == "+":
            kept.insert(line.number - 1, line.text)
    return kept or [""]


def test_labels_show_odd_bytes() -> None:
    assert path_label(b"a\xff\xc3\xa4") == "a\\xffä"
