"""Files cut into parts: along syntax, headings or blank lines, every character in exactly one part."""

from __future__ import annotations

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cases import each
from code_samples import BASH, CPP, CSHARP, GO, JAVA, JAVASCRIPT, LUA, PHP, PYTHON, RUBY, RUST, TYPESCRIPT, C
from cortex_py.worktree.code import naming
from cortex_py.worktree.code import outline as parsing
from cortex_py.worktree.code.naming import language_of
from cortex_py.worktree.code.outline import load_grammar
from cortex_py.worktree.code.syntax import LARGEST, TINY, SourcePart, analyse, rows_of
from timing import quick

SOURCES = {
    "a.py": PYTHON, "a.ts": TYPESCRIPT, "a.tsx": TYPESCRIPT, "a.js": JAVASCRIPT, "a.go": GO, "a.rs": RUST,
    "a.java": JAVA, "a.c": C, "a.cpp": CPP, "a.cs": CSHARP, "a.rb": RUBY, "a.php": PHP, "a.sh": BASH, "a.lua": LUA,
}  # fmt: skip
PATHS = [*SOURCES, "a.md", "a.txt", "a.yaml", "a.json", "a", "a.kt"]


def body(name: str, lines: int = 12) -> str:
    """Statements long enough to stand alone."""
    return "".join(f"        {name}_{n} = compute({n})\n" for n in range(lines))


def shown(path: str, text: str) -> list[str]:
    """The parts as `first-last kind symbol`, after checking that they are the text."""
    parts = checked(path, text)
    return [f"{part.first_line}-{part.last_line} {part.kind} {part.symbol or '-'}" for part in parts]


def checked(path: str, text: str) -> list[SourcePart]:
    parts = analyse(path, text).parts
    assert "".join(part.text for part in parts) == text
    at = 0
    for part in parts:
        assert part.text
        assert len(part.text) <= LARGEST + TINY
        assert part.first_line == text.count("\n", 0, at) + 1
        at += len(part.text)
        assert part.last_line == text.count("\n", 0, at - 1) + 1
    return parts


# Code


def test_functions_methods_and_class_heads_are_parts() -> None:
    text = (
        '"""A module that does a number of things and says so at some length, as modules should do."""\n'
        "\nimport os\nimport sys\n\nLIMIT = 10\n\n\n"
        "@decorator\nclass Shop:\n"
        '    """Sells things, and tells in its documentation what the things are and whom it sells them to."""\n\n'
        "    name = 'shop of things'\n    owner = 'nobody in particular'\n\n"
        f"    def first(self):\n{body('first')}\n"
        f"    # Why there is a second.\n    @property\n    def second(self):\n{body('second')}\n\n"
        f"def helper():\n{body('helper')}"
    )
    assert shown("a.py", text) == [
        "1-8 module -",
        "9-15 class Shop",
        "16-29 method Shop.first",
        "30-46 method Shop.second",
        "47-59 function helper",
    ]


def test_a_small_class_is_one_part_and_tiny_neighbours_are_joined() -> None:
    text = (
        "class Pair:\n    def left(self):\n        return 1\n\n    def right(self):\n        return 2\n\n\n"
        f"def large():\n{body('large')}\n\n"
        "def one():\n    return 1\n\n\ndef two():\n    return 2\n\n\n"
        f"def other():\n{body('other')}"
    )
    assert shown("a.py", text) == ["1-8 class Pair", "9-23 function large", "24-31 module -", "32-44 function other"]


def test_an_opening_that_says_little_goes_with_what_it_opens() -> None:
    function = "    pub fn {0}() {{\n" + "".join(f"        call_number_{n}();\n" for n in range(12)) + "    }}\n"
    text = "use a::b;\n\nimpl Shop {\n" + function.format("open") + "\n" + function.format("close") + "}\n"
    assert shown("a.rs", text) == ["1-18 method Shop.open", "19-33 method Shop.close"]


def test_a_large_function_is_cut_between_statements() -> None:
    loops = "".join(
        f"    # Round {n}.\n    for value in values_{n}:\n        if value:\n            use_the_value(value, {n})\n"
        for n in range(40)
    )
    parts = checked("a.py", f"def work(values):\n{loops}    return values\n")
    assert len(parts) == 4
    assert {(part.symbol, part.kind) for part in parts} == {("work", "function")}
    assert all(part.text.startswith("    # Round ") for part in parts[1:])
    assert all(len(part.text) > LARGEST // 2 for part in parts[:-1])


def test_a_large_closure_is_cut_at_the_functions_in_it() -> None:
    inner = "".join(
        f"  function step{n}() {{\n" + "".join(f"    doSomething({m});\n" for m in range(20)) + "  }\n\n"
        for n in range(4)
    )
    assert shown("a.js", f"export function create() {{\n{inner}}}\n") == [
        "1-24 function create.step0",
        "25-47 function create.step1",
        "48-70 function create.step2",
        "71-94 function create.step3",
    ]


def test_comments_above_belong_to_the_definition_below() -> None:
    text = (
        f"// About nothing below.\n\n// First doc.\n// Second line.\nfunc A() {{\n{body('a')}}}\n"
        f"\n// Doc of B.\nfunc B() {{ // behind\n{body('b')}}}\n// After.\n"
    )
    parts = checked("a.go", text)
    assert [(part.symbol, part.first_line) for part in parts] == [("A", 1), ("B", 20)]
    assert parts[1].text.startswith("// Doc of B.\n")
    assert parts[1].text.endswith("// After.\n")


def test_a_constant_of_many_lines_is_a_part_under_its_name() -> None:
    rows = "".join(f'    "key number {n}": "value number {n}",\n' for n in range(10))
    text = f"import os\n\nTABLE = {{\n{rows}}}\n\n\ndef f():\n{body('f')}"
    assert shown("a.py", text) == ["1-16 variable TABLE", "17-29 function f"]


def test_lines_are_counted_by_line_feeds_alone() -> None:
    text = f"def a():\r\n{body('a')}\r\n\x0c\r\ndef b():\r\n    return '\u2028'\r\n{body('b')}".replace("    a", "\ta")
    assert shown("a.py", text) == ["1-15 function a", "16-29 function b"]


def test_a_byte_order_mark_and_a_missing_last_line_feed_stay() -> None:
    text = f"\ufeffimport os\n\n\ndef a():\n{body('a')}        return 'ä'"
    assert shown("a.py", text) == ["1-17 function a"]


def test_broken_code_is_still_cut() -> None:
    text = f"def a(:\n{body('a', 40)}}}}}\nclass ((\n{body('b', 40)}"
    assert "".join(part.text for part in checked("a.py", text)) == text


# Headings, blocks, plain text


def test_markdown_is_cut_by_headings() -> None:
    filler = "Words that fill the section well enough to let it stand on its own, so that nothing is joined here. " * 3
    text = (
        f"---\ntitle: x\n# no heading\n---\n{filler}\n\n# Top\n\n{filler}\n\n"
        f"## Install\n\n{filler}\n\n### On Linux ##\n\n{filler}\n\n"
        f"```sh\n# a comment\n{filler}\n```\n\nSetext\n======\n\n{filler}\n\nSmall\n-----\n\n{filler}\n"
    )
    assert shown("README.md", text) == [
        "1-6 block -",
        "7-10 section Top",
        "11-14 section Top > Install",
        "15-23 section Top > Install > On Linux",
        "24-28 section Setext",
        "29-32 section Setext > Small",
    ]


@each(
    ("line", "symbol"),
    [
        ("# Title", "Title"), ("   ## Title ##  ", "Title"), ("# C#", "C#"), ("#", "…"), ("# #", "…"), ("#Title", None),
        ("####### Title", None), ("    # Title", None), ("# a" + " " * 100_000 + "b", "a b"),
    ],
)  # fmt: skip
def test_what_is_a_heading(line: str, symbol: str | None) -> None:
    assert checked("a.md", f"{line}\n\ntext\n")[0].symbol == symbol


def test_small_sections_are_joined_and_large_ones_cut_between_paragraphs() -> None:
    small = "# Title\n\n## One\n\nShort.\n\n## Two\n\nShort.\n"
    assert shown("a.md", small) == ["1-9 section Title"]
    paragraph = "A paragraph of a good many words that goes on and on, but not for ever. " * 6
    large = "# Title\n\n" + "\n\n".join([paragraph] * 6) + "\n"
    parts = checked("a.md", large)
    assert [part.symbol for part in parts] == ["Title", "Title", "Title"]
    assert all(part.text.startswith("A paragraph") for part in parts[1:])


@each("path", ["a.yaml", "a.toml", "a.txt", "a.kt", "Makefile"])
def test_other_text_is_cut_at_blank_lines(path: str) -> None:
    blocks = [f"key{n}:\n" + "".join(f"  entry_{m}: value of entry {m}\n" for m in range(18)) for n in range(6)]
    parts = checked(path, "\n".join(blocks))
    assert len(parts) == 3
    assert all(part.text.startswith("key") for part in parts)
    assert {(part.symbol, part.kind) for part in parts} == {(None, "block")}


def test_data_without_blank_lines_is_cut_at_the_outermost_rows() -> None:
    entries = "".join(f'  "name{n}": {{\n' + '    "inner": true,\n' * 20 + "  },\n" for n in range(12))
    parts = checked("a.json", f"{{\n{entries}}}\n")
    assert all(part.text.startswith('  "name') for part in parts[1:])


def test_a_long_line_is_cut_inside() -> None:
    parts = checked("a.txt", "word " * 2_000)
    assert [len(part.text) for part in parts] == [1_195] * 8 + [440]
    assert {(part.first_line, part.last_line) for part in parts} == {(1, 1)}
    assert [len(part.text) for part in checked("a.txt", "x" * 2_500)] == [1_200, 1_300]


@each(("text", "count"), [("", 0), ("\n", 1), (" \n\n\t", 1), ("x", 1), ("\n" * 5_000, 5)])
@each("path", PATHS)
def test_little_or_nothing(path: str, text: str, count: int) -> None:
    assert len(checked(path, text)) == count


# Without the parser


def test_without_a_grammar_code_is_cut_by_its_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tree_sitter", None)
    load_grammar.cache_clear()
    functions = "\n\n".join(f"def f{n}():\n{body(f'v{n}', 30)}" for n in range(5))
    found = analyse("a.py", functions)
    load_grammar.cache_clear()
    assert found.symbols == found.imports == []
    assert "".join(part.text for part in found.parts) == functions
    assert [part.text.partition("(")[0] for part in found.parts] == ["def f0", "def f1", "def f2", "def f3", "def f4"]
    assert {(part.symbol, part.kind) for part in found.parts} == {(None, "module")}


def test_a_grammar_that_is_not_installed_makes_plain_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tree_sitter_go", None)
    load_grammar.cache_clear()
    found = analyse("a.go", GO)
    load_grammar.cache_clear()
    assert found.symbols == []
    assert "".join(part.text for part in found.parts) == GO


def test_every_grammar_is_installed() -> None:
    rows = json.loads(Path(naming.__file__).with_name("languages.json").read_text("utf-8"))
    languages = [language_of(f"a{row['suffixes'].split()[0]}") for row in rows.values()]
    assert [one for one in languages if one is None or load_grammar(one) is None] == []


def test_grammars_are_loaded_when_a_file_needs_them() -> None:
    program = """
import sys
from cortex_py.worktree.code.syntax import analyse
analyse("README.md", "# Title")
print([name for name in sys.modules if name.startswith("tree_sitter")])
analyse("a.go", "package a")
print(sorted(name for name in sys.modules if name.startswith("tree_sitter") and "." not in name))
"""
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert done.stdout == "[]\n['tree_sitter', 'tree_sitter_go']\n"


def test_a_large_file_is_not_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parsing, "LARGEST", 100)
    assert analyse("a.py", PYTHON).symbols == []
    assert analyse("a.py", "é = 1\n").symbols != []
    assert analyse("a.py", "# " + "é" * 60 + "\nx = 1\n").symbols == []


def test_a_parser_that_runs_out_of_time_is_fit_for_the_next_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parsing, "MICROSECONDS", 1)
    monkeypatch.setattr(parsing, "parsers", parsing.Parsers())
    assert analyse("a.py", PYTHON * 100).symbols == []
    assert [one.name for one in analyse("a.py", "x = 1\n").symbols] == ["x"]


def test_a_parser_without_a_time_limit_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    def newer(found: object) -> None: ...

    monkeypatch.setattr("tree_sitter.Parser", newer)
    monkeypatch.setattr(parsing, "parsers", parsing.Parsers())
    assert analyse("a.py", PYTHON).symbols == []


def test_threads_do_not_share_a_parser() -> None:
    alone = {path: analyse(path, text) for path, text in SOURCES.items()}
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(analyse, list(SOURCES) * 10, list(SOURCES.values()) * 10))
    assert together == [alone[path] for path in SOURCES] * 10


# Robust


HOSTILE = {
    "deep braces": "{\n" * 60_000, "deep brackets": "[" * 120_000, "deep classes": "class A {\n" * 10_000,
    "deep blocks": "\n".join(" " * n + "if x:" for n in range(400)), "one row": "a*(b)" * 40_000,
    "quotes": "\"'" * 60_000, "generics": "a<\n" * 60_000, "calls": "a.b(c)\n" * 20_000,
    "nothing closed": "f(x => \n" * 20_000, "nul": "\0" * 10_000 + "x = 1\n", "surrogates": "x = '\ud800'\n" * 500,
}  # fmt: skip


PARSED = ("a.py", "a.ts", "a.java", "a.cs", "a.cpp", "a.rb", "a.php", "a.sh")
# Every text meets two of the languages here, and all of them in the long runs.
MEETINGS = [
    pytest.param(name, path, marks=() if (place + number) % 4 == 0 else pytest.mark.soak)
    for number, name in enumerate(HOSTILE)
    for place, path in enumerate(PARSED)
]


@pytest.mark.parametrize(("name", "path"), MEETINGS)
def test_hostile_text_is_cut_in_bounded_time(name: str, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parsing, "MICROSECONDS", 200_000)
    monkeypatch.setattr(parsing, "parsers", parsing.Parsers())
    quick(lambda: checked(path, HOSTILE[name]), 10)


@given(st.sampled_from(PATHS), st.text())
def test_any_text_is_given_back(path: str, text: str) -> None:
    checked(path, text)


WORDS = """    x = 1;\t};};{;end;# c;// c;/*;''';```;## h;===;def f():;class A {;;\r"""
SHORT = [f"{word}\n" for word in WORDS.split(";")]
LINES = st.sampled_from((*SHORT, "y" * 700 + "\n", "  " * 20 + "z\n", "é" * 300 + ";" + "é" * 1_300))


@given(st.sampled_from(PATHS), st.lists(LINES, max_size=60).map("".join))
def test_any_lines_are_given_back(path: str, text: str) -> None:
    checked(path, text)


@settings(deadline=None)
@given(st.data())
def test_mutated_source_is_given_back(data: st.DataObject) -> None:
    path = data.draw(st.sampled_from(sorted(SOURCES)))
    text = SOURCES[path]
    for _ in range(data.draw(st.integers(1, 4))):
        at, until = sorted((data.draw(st.integers(0, len(text))), data.draw(st.integers(0, len(text)))))
        inserted = data.draw(st.one_of(st.text(max_size=5), st.just(text[at:until] * 2), st.just("\n" * 3)))
        text = text[:at] + inserted + text[until:]
    parts = checked(path, text)
    found = analyse(path, text)
    rows = max(1, len(rows_of(text)))
    assert found.parts == parts
    assert all(1 <= one.line <= one.end_line <= rows and one.name for one in found.symbols)
    assert all(1 <= one.line <= rows and one.module for one in found.imports)


@each("path", sorted(SOURCES))
def test_a_growing_file_keeps_its_guarantees(path: str) -> None:
    for repeats in (1, 3, 10):
        checked(path, SOURCES[path] * repeats)
