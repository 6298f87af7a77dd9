"""A branch file says exactly what the store has, and can be read back whatever an editor did to it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases import each
from cortex_py.core.errors import InvalidInput
from cortex_py.core.records import Branch
from cortex_py.parts.context.branches.file import BranchFile, FileEntry, ParsedFile, append, parse, render
from cortex_py.parts.context.branches.projection import plan

NOW = datetime(2026, 1, 2, 12, 34, 56, 789, tzinfo=UTC)

HOSTILE = (
    *("\n", "\r", "\r\n", "\u2028", "\x85", "\x0b", "\x1c", "\ufeff", " ", "\t", "\\", ":", "-->", "😀", "é", "\x7f"),
    *("---", "\n---\n", "...\n", "```\n", "# ", "## 2026-01-02 12:34:56 UTC · user\n", '{"id": "0"}'),
    *("<!-- cortex", "<!-- cortex:", "<!-- cortex\\:", "<!-- cortex\\\\:", "<!-- cortex:cr -->", "<!-- cortex:end -->"),
    *(
        "\n<!-- cortex:end -->\n", '\n<!-- cortex:entry {"id": "0"} -->\n', "\n<!-- cortex:eof -->\n",
        "<!-- cortex:note -->",
    ),
)  # fmt: skip

letters = st.characters(exclude_categories=["Cs"], exclude_characters="\0")
texts = st.lists(st.sampled_from(HOSTILE) | st.text(letters, max_size=4), max_size=12).map("".join)
moments = st.datetimes(datetime(1900, 1, 1), datetime(2200, 1, 1), timezones=st.just(UTC))
numbers = st.integers(0, 2**63 - 1)
branches = st.builds(
    Branch,
    id=texts,
    project_id=texts,
    topic=texts,
    parent_id=st.none() | texts,
    git_branch=st.none() | texts,
    status=st.sampled_from(["active", "no", "null", "1"]),
    created_at=moments,
    updated_at=moments,
)
entries = st.builds(
    FileEntry,
    id=st.uuids().map(lambda uuid: uuid.hex),
    version=numbers,
    created_at=moments,
    role=st.none() | texts,
    namespace=texts,
    category=st.none() | texts,
    content=texts,
)
several = st.lists(entries, max_size=4, unique_by=lambda entry: entry.id).map(tuple)
files = st.builds(BranchFile, branch=branches, revision=numbers, entries=several)

RESAVES: dict[str, Callable[[str], str]] = {
    "as it was": lambda text: text,
    "CRLF": lambda text: text.replace("\n", "\r\n"),
    "CR": lambda text: text.replace("\n", "\r"),
    "BOM": lambda text: "\ufeff" + text,
    "no end of line": lambda text: text.rstrip("\n"),
    "more ends of lines": lambda text: text + "\n\n",
    "all of it": lambda text: "\ufeff" + text.rstrip("\n").replace("\n", "\r\n"),
}


def branch(topic: str = "Sign-in") -> Branch:
    return Branch("sign_in_20260102_123456", "0123456789ab", topic, None, "main", "active", NOW, NOW)


def entry(number: int, content: str = "text", version: int = 1) -> FileEntry:
    return FileEntry(f"{number:040x}", version, NOW, "user", "decisions", None, content)


def rendered(*contents: str) -> str:
    found = tuple(entry(number, content) for number, content in enumerate(contents))
    return render(BranchFile(branch(), 7, found))


def check_whole(parsed: ParsedFile, file: BranchFile) -> None:
    assert parsed.branch == file.branch
    assert parsed.revision == file.revision
    assert parsed.count == len(file.entries)
    assert [entry.id for entry in parsed.entries] == [entry.id for entry in file.entries]
    assert [found.content for found in parsed.entries] == [entry.content for entry in file.entries]
    assert [found.version for found in parsed.entries] == [entry.version for entry in file.entries]
    assert not any(found.edited for found in parsed.entries)
    assert all(parsed.was_projected(entry.id, entry.version) for entry in file.entries)
    assert parsed.loose == ()
    assert not plan(parsed, file.entries)


# Round trips


@given(files, st.sampled_from(sorted(RESAVES)))
def test_any_content_is_read_back_exactly_however_the_file_was_saved(file: BranchFile, how: str) -> None:
    check_whole(parse(RESAVES[how](render(file)), file.branch), file)


@given(files, files, several)
def test_appending_gives_the_text_of_a_whole_rendering(
    old: BranchFile, new: BranchFile, more: tuple[FileEntry, ...]
) -> None:
    text = append(render(old), new.branch, new.revision, more)
    assert text == render(BranchFile(new.branch, new.revision, old.entries + more))


@each(
    "content",
    [
        *("", "\n", "\n\n\n", "no end", "end\n", "\r", "\r\n", "\r\n\r\n", "a\r\nb", "a\r\nb\n", "a\rb", " \t "),
        *("---", "---\na: 1\n---\n", "# Title", "```\nfence", "<!-- cortex:end -->", "<!-- cortex\\:end -->"),
        *("\u2028\u2029\x85", "👩\u200d👩\u200d👧", "\ufefftext"),
    ],
)
@each("how", sorted(RESAVES))
def test_awkward_content_is_read_back_exactly(content: str, how: str) -> None:
    file = BranchFile(branch(), 3, (entry(1, content), entry(2, content), entry(3)))
    check_whole(parse(RESAVES[how](render(file))), file)


@each("topic", ["a: b", "# x", "'\"", "a\nb\r\n---\n", "---", "no", "1e3", "{", "日本 \u2028", "\x07", "@%!&*"])
def test_awkward_topics_are_read_back_exactly(topic: str) -> None:
    file = BranchFile(branch(topic), 3, (entry(1),))
    check_whole(parse(RESAVES["all of it"](render(file))), file)


def test_a_megabyte_is_read_back_exactly() -> None:
    file = BranchFile(branch(), 3, tuple(entry(number, "é\r<!-- cortex:end -->\n" * 25_000) for number in range(2)))
    assert len(file.entries[0].content.encode()) > 500_000
    check_whole(parse(render(file)), file)


def test_a_moment_of_another_zone_is_shown_in_utc() -> None:
    there = NOW.astimezone(timezone(timedelta(hours=5)))
    file = BranchFile(branch(), 3, (replace(entry(1), created_at=there),))
    text = render(replace(file, branch=replace(file.branch, created_at=there)))
    assert "\n## 2026-01-02 12:34:56 UTC · user · decisions\n" in text
    assert parse(text).branch.created_at == NOW


def test_content_with_crlf_throughout_stays_readable_and_crlf_when_edited() -> None:
    text = rendered("one\r\ntwo\r\n")
    assert "one\ntwo\n" in text
    (found,) = parse(text.replace("two", "three")).entries
    assert found.content == "one\r\nthree\r\n"


def test_the_form_of_the_file_is_pinned() -> None:
    text = rendered("We sign in with passkeys.")
    lines = text.splitlines()
    assert lines[:14] == [
        "---", "format: 1", 'branch_id: "sign_in_20260102_123456"', 'project_id: "0123456789ab"', 'topic: "Sign-in"',
        "parent_branch: null", 'git_branch: "main"', 'status: "active"', 'created_at: "2026-01-02T12:34:56.000789Z"',
        'updated_at: "2026-01-02T12:34:56.000789Z"', "revision: 7", "entries: 1", "---", "",
    ]  # fmt: skip
    assert lines[14] == "# Sign-in"
    assert lines[16].startswith("<!-- cortex:note ")
    assert lines[18] == "## 2026-01-02 12:34:56 UTC · user · decisions"
    assert lines[20] == f'<!-- cortex:entry {{"id": "{0:040x}", "version": 1, "digest": "941c2085b0fd6599"}} -->'
    assert lines[21:24] == ["We sign in with passkeys.", "<!-- cortex:end -->", ""]
    assert lines[24].startswith("<!-- cortex:eof ") and len(lines) == 25


def test_yaml_is_imported_only_to_read() -> None:
    code = "import sys\nfrom cortex_py.parts.context.branches import projection, store\nprint(sorted(sys.modules))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "'yaml'" not in run.stdout and "'filelock'" not in run.stdout


# What a person changed


def test_only_the_entry_that_was_edited_is_reported() -> None:
    parsed = parse(rendered("first", "second", "third").replace("second", "2nd"))
    assert [(found.content, found.edited) for found in parsed.entries] == [
        ("first", False), ("2nd", True), ("third", False),
    ]  # fmt: skip
    # A marker typed by its escape is text; one that is indented is a marker.
    parsed = parse(rendered("first").replace("first", "<!-- cortex\\:end -->"))
    assert parsed.entries[0].content == "<!-- cortex:end -->"
    text = rendered("first").replace("<!-- cortex:end -->", "  <!-- cortex:end -->  ")
    check_whole(parse(text), BranchFile(branch(), 7, (entry(0, "first"),)))


def test_text_outside_entries_is_found_wherever_it_stands() -> None:
    text = rendered("first", "second")
    text = text.replace("\n## ", "\n    between\n\nand\n\n## ", 2) + "\n\n# End\n\n- one\n- two\n\n"
    assert parse(text).loose == ("    between\n\nand", "    between\n\nand", "# End\n\n- one\n- two")
    text = rendered("first").replace("# Sign-in\n", "# Sign-in\nTop\n")
    assert parse(text.replace("<!-- cortex:eof", "Last\n<!-- cortex:eof")).loose == ("Top", "Last")


def test_a_heading_left_over_from_a_deleted_entry_is_no_text() -> None:
    text = rendered("first", "second")
    start = text.index("<!-- cortex:entry")
    text = text[:start] + text[text.index("<!-- cortex:end -->") + len("<!-- cortex:end -->") :]
    parsed = parse(text)
    assert [entry.id for entry in parsed.entries] == [f"{1:040x}"]
    assert parsed.loose == ()


def test_an_entry_without_any_line_left_is_empty() -> None:
    (found,) = parse(rendered("first").replace("first\n", "")).entries
    assert found.content == "" and found.edited


def test_times_may_lose_their_quotes_and_fields_may_be_added() -> None:
    text = rendered("first").replace('"2026-01-02T12:34:56.000789Z"', "2026-01-02T12:34:56.000789Z")
    assert parse(text.replace("\nrevision", "\nmine: yes\nrevision")).branch == branch()


# Broken files


def refused(text: str, expected: Branch | None = None) -> str:
    with pytest.raises(InvalidInput) as caught:
        parse(text, expected)
    assert caught.value.field == "branch_file" and caught.value.remedy
    return caught.value.message


@pytest.fixture(params=["compiled", "plain"])
def loader(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both loaders of YAML; the compiled one is not to be had everywhere."""
    if request.param == "plain":
        monkeypatch.delattr("yaml.CSafeLoader")


def test_every_way_to_cut_a_file_off_is_refused() -> None:
    text = rendered("first\n", "second")
    for end in range(len(text) - 1):
        assert "line " in refused(text[:end])
    refused(rendered("first").replace('entry {"id"', "entry " + "[" * 100_000 + '{"id"'))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("---\nformat", "format", "line 1: the front matter is missing"),
        ('"Sign-in"\n', '"Sign-in\n', "line 7: the front matter is not valid YAML"),
        ('"Sign-in"', "2026", "line 5: topic must be text"),
        ('"Sign-in"', "null", "line 5: topic must be text"),
        ('"Sign-in"', "[a, b]", "line 5: the front matter must be plain fields"),
        ('"Sign-in"', "{a: b}", "line 5: the front matter must be plain fields"),
        ('"Sign-in"', "&a x", "line 5: the front matter must not have anchors"),
        ('"Sign-in"', "*a", "line 5: the front matter must not have anchors"),
        ('"Sign-in"', "!!int ''", "line 5: the front matter must not have anchors"),
        ('"Sign-in"', "!!python/name:os.system x", "line 5: the front matter must not have anchors"),
        ('"Sign-in"', "=", "line 5: the front matter is not valid YAML"),
        ('"Sign-in"', "\0", "the front matter is not valid YAML"),
        ('topic: "Sign-in"\n', "", "line 1: topic must be text"),
        ("topic:", "status:", "line 8: the field 'status' occurs twice"),
        ("topic:", "<<:", "the front matter is not valid YAML"),
        ("revision: 7", "revision: 7.5", "line 11: revision must be a whole number"),
        ("revision: 7", "revision: yes", "line 11: revision must be a whole number"),
        ("revision: 7", "revision: -7", "line 11: revision must be a whole number"),
        ("revision: 7", "revision: " + "9" * 30, "line 11: revision must be a whole number"),
        ("revision: 7", "revision: " + "9" * 9000, "line 1: the front matter holds an impossible value"),
        ("format: 1", "format: 2", "line 2: its format is not 1"),
        ("entries: 2", "entries: 3", "line 12: the front matter counts 3 entries, the last marker 2"),
        ('created_at: "2026', 'created_at: "x2026', "line 9: created_at must be a time"),
        ('created_at: "2026-01-02T12:34:56.000789Z"', "created_at: 2026-13-02", "impossible value"),
        ('created_at: "2026-01-02T12:34:56.000789Z"', "created_at: 2026-01-02", "line 9: created_at must be text"),
        ('"2026-01-02T12:34:56.000789Z"', '"0001-01-01T00:00:00+05:00"', "line 9: created_at must be a time"),
        ("first\n<!-- cortex:end -->", "first", "line 21: the entry that begins here has no end marker"),
        ("first", "<!-- cortex:end -->", "line 23: this end marker has no entry before it"),
        (f"{1:040x}", f"{0:040x}", f"line 27: the entry '{0:040x}' occurs twice"),
        ('"version": 1', '"version": true', "line 21: id, version or digest of the entry is of the wrong kind"),
        ('"version": 1', '"version": -1', "line 21: the entry has an impossible version"),
        ('"version": 1', '"version": ', "line 21: the entry marker does not name"),
        ('entry {"id"', 'entry ["id"', "line 21: the entry marker does not name"),
        ('entry {"id"', 'entry {"ID"', "line 21: the entry marker does not name"),
        ("} -->\nfirst", "}\nfirst", "line 21: the entry marker does not end with -->"),
        ("<!-- cortex:eof", "<!-- cortex:oef", "the file is cut off"),
        ("<!-- cortex:eof ", "<!-- cortex:eof x", "line 31: the last marker is damaged"),
        ("\n<!-- cortex:eof", "\n<!-- cortex:eof -->\n<!-- cortex:eof", "line 32: the last marker occurs twice"),
    ],
)  # fmt: skip
@pytest.mark.usefixtures("loader")
def test_a_broken_file_is_refused_with_its_line(old: str, new: str, message: str) -> None:
    text = rendered("first", "second")
    assert old in text
    assert message in refused(text.replace(old, new, 1))


@pytest.mark.parametrize(
    "text", ["", "\n", "---", "---\n---\n", "# Notes\n", "---\n- a\n---\n", "---\ntext\n---\n", "---\n--- a\n---\n"]
)
@pytest.mark.usefixtures("loader")
def test_what_is_no_branch_file_at_all_is_refused(text: str) -> None:
    assert "the front matter" in refused(text)


@pytest.mark.parametrize(
    "front",
    [
        "a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]\n", "a: " + "[" * 30_000, "[" * 60_000, "{a: " * 15_000,
        "- " * 30_000, "? " * 30_000, "a: " + "x" * 1_000_000, "\n" * 1_000_000,
        "".join(f"k{number}: v\n" for number in range(5000)), "a: \ud800\n",
    ],
)  # fmt: skip
@pytest.mark.usefixtures("loader")
def test_hostile_yaml_is_refused_soon(front: str) -> None:
    refused(f"---\n{front}\n---\n" + rendered("first"))


def test_the_file_of_another_branch_is_refused() -> None:
    assert "line 3: it belongs to another branch" in refused(rendered("first"), replace(branch(), id="other"))
    assert "another branch" in refused(rendered("first"), replace(branch(), project_id="other"))


@given(st.data())
def test_a_file_changed_at_random_is_understood_or_refused(data: st.DataObject) -> None:
    stored = [entry(number, content) for number, content in enumerate(["first", "a\r\nb", "<!-- cortex:end -->\n"])]
    text = render(BranchFile(branch(), 7, tuple(stored)))
    for _ in range(data.draw(st.integers(1, 3))):
        start = data.draw(st.integers(0, len(text)))
        end = start + data.draw(st.integers(0, 60))
        text = text[:start] + data.draw(texts | st.sampled_from([text[start:end] * 2, '"', "{", "\0"])) + text[end:]
    try:
        parsed = parse(text)
    except InvalidInput as error:
        assert error.field == "branch_file"
    else:
        plan(parsed, stored)


@each(
    "change",
    [
        lambda text: "", lambda text: text + "more", lambda text: text + "more -->\n", lambda text: "\ufeff" + text,
        lambda text: text.replace("\n", "\r\n"), lambda text: text.replace("<!-- cortex:note", "<!-- cortex:nota"),
        lambda text: text.replace("<!-- cortex:eof", "<!-- cortex:oef"),
    ],
)  # fmt: skip
def test_nothing_is_appended_to_what_an_editor_changed(change: Callable[[str], str]) -> None:
    with pytest.raises(InvalidInput) as caught:
        append(change(rendered("first")), branch(), 8, [entry(1)])
    assert caught.value.field == "branch_file"


def test_markers_are_valid_json_for_other_programs() -> None:
    line = next(line for line in rendered("first").splitlines() if "cortex:entry" in line)
    assert json.loads(line.removeprefix("<!-- cortex:entry ").removesuffix(" -->"))["version"] == 1
