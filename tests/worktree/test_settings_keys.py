"""Settings of every format, with the line to look at; what cannot be read rightly is not read at all."""

from __future__ import annotations

from functools import partial

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cases import each
from code_samples import read_samples
from cortex_py.worktree.formats import FileSetting, read_settings
from timing import quick

FILES = {path: (one["text"], one["settings"]) for path, one in read_samples("settings").items()}


@each("path", FILES)
def test_a_file_holds_its_settings(path: str) -> None:
    text, rows = FILES[path]
    assert read_settings(path, text) == [FileSetting(*row) for row in rows]
    assert read_settings(f"deep/{path.upper()}", text) == [FileSetting(*row) for row in rows]


@each("path", FILES)
def test_lines_that_end_as_on_windows_are_counted_alike(path: str) -> None:
    text, rows = FILES[path]
    found = read_settings(path, "\ufeff" + text.replace("\n", "\r\n"))
    assert [(one.key, one.line) for one in found] == [(key, line) for key, _, line in rows]


@each("path", [".env", "app/.env.local", "notes.md", "Makefile", "a.py"])
def test_secrets_and_other_files_are_left_alone(path: str) -> None:
    assert read_settings(path, "A=1\n") == []


@each(
    ("path", "text"),
    [
        ("a.toml", "a = 1\na = 2\n"), ("a.toml", "a = \n"), ("a.json", '{"a": 1'), ("a.json", '{"a": 1} {"b": 2}'),
        ("a.json", '{"a" 1}'), ("a.json", '{"a": }'), ("a.json", '{"a": 1 "b": 2}'), ("a.json", '{"a": 01x}'),
        ("a.json", "[1}"), ("a.yaml", "a: 1\n b: 2\n"), ("a.yaml", "a: {{ .Values.x }}\n"),
        ("a.yaml", "? [a, b]\n: 1\n"), ("a.ini", "[a]\nno pair here\n"), (".env.example", "A=1\nwhat is this\n"),
    ],
)  # fmt: skip
def test_what_is_broken_is_silent(path: str, text: str) -> None:
    assert read_settings(path, text) == []


def test_settings_and_text_are_bounded() -> None:
    many = "".join(f"k{n} = {n}\n" for n in range(5_200))
    assert [len(read_settings(path, many)) for path in ("a.toml", "a.properties", "a.ini")] == [5_000] * 3
    assert read_settings("a.ini", "a=1\n")
    assert read_settings("a.ini", "a=1\n#" + "x" * 1_000_000) == []


def test_an_alias_does_not_multiply() -> None:
    text = "a: &a [x, x]\n" + "".join(f"b{n}: &b{n} [*{'a' if n == 0 else f'b{n - 1}'}, z]\n" for n in range(40))
    assert len(read_settings("a.yaml", text)) == 42


def test_a_value_that_is_an_alias_keeps_the_numbers_of_its_list() -> None:
    assert read_settings("a.yaml", "- &x 1\n- *x\n- 2\n") == [FileSetting("0", "1", 1), FileSetting("2", "2", 3)]


@each("path", FILES)
def test_no_text_takes_long(path: str) -> None:
    for unit in (
        "[",
        "{a: ",
        '{"a":',
        "a=[",
        "- ",
        " ",
        "\n",
        "a ",
        "a.",
        '"',
        "'",
        "\\",
        "/*",
        "a=1\n b\n",
        "&a ",
        "? ",
    ):
        text = unit * (60_000 // len(unit))
        quick(partial(read_settings, path, text), 5)


@each("path", FILES)
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(text=st.text(max_size=120), marks=st.text("[]{}\"'=:,.\\ \n#&*-|>?!a1/", max_size=60))
def test_no_text_is_too_strange(path: str, text: str, marks: str) -> None:
    for one in (text, marks, FILES[path][0] + marks):
        for found in read_settings(path, one):
            assert found.key is not None
            assert found.line >= 1


@given(
    st.dictionaries(
        st.text("abc", min_size=1, max_size=3),
        st.lists(st.sampled_from(["x", "#", "]", '"', "a.b"]), max_size=3),
        max_size=4,
    )
)
def test_every_item_is_found_where_it_was_written(lists: dict[str, list[str]]) -> None:
    """One item to a line, so that its line is known."""
    lines: list[str] = []
    wanted = []
    for key, values in lists.items():
        lines.append(f"{key} = [")
        for number, value in enumerate(values):
            lines.append(f"  '{value}',  # [ '")
            wanted.append(FileSetting(f"{key}.{number}", value, len(lines)))
        lines.append("]")
    assert read_settings("a.toml", "\n".join(lines)) == wanted
