"""What source files define and import, language by language, each from a small real source."""

from __future__ import annotations

from cases import each
from code_samples import read_samples, source
from cortex_py.worktree.code.imports import Import
from cortex_py.worktree.code.naming import language_of
from cortex_py.worktree.code.outline import Symbol
from cortex_py.worktree.code.syntax import analyse

SAMPLES = read_samples("symbols")


def outline(path: str, text: str) -> list[str]:
    return [f"{one.line}-{one.end_line} {one.kind} {one.qualified}" for one in analyse(path, text).symbols]


@each("path", SAMPLES)
def test_definitions(path: str) -> None:
    text, wanted = source(SAMPLES[path]["source"]), SAMPLES[path]["definitions"].rstrip().split("\n")
    assert outline(path, text) == wanted
    assert outline(path, text.replace("\n", "\r\n")) == wanted


@each("path", [path for path, one in SAMPLES.items() if "imports" in one])
def test_imports(path: str) -> None:
    found = analyse(path, source(SAMPLES[path]["source"])).imports
    assert [[one.line, one.module, list(one.names)] for one in found] == SAMPLES[path]["imports"]


def test_a_symbol_and_an_import_in_full() -> None:
    text = "import os\n\n\nclass A:\n    def f(self):\n        pass\n"
    assert analyse("a.py", text).symbols == [Symbol("A", "A", "class", 4, 6), Symbol("f", "A.f", "method", 5, 6)]
    assert analyse("a.py", text).imports == [Import("os", (), 1)]
    for path in ("README.md", "notes.txt"):
        found = analyse(path, text)
        assert (found.symbols, found.imports) == ([], [])


def test_what_can_be_read_between_errors_is_found() -> None:
    assert outline("a.py", "def f(:\n    pass\n\ndef g():\n    return 1\n") == ["1-2 function f", "4-5 function g"]
    broken = "function a() {\n  let x = ;\n}\n}\n\nfunction b() {\n  return 1;\n}\n"
    assert outline("a.js", broken) == ["1-3 function a", "6-8 function b"]


@each(
    ("path", "first_line", "name"),
    [
        ("a.py", "", "python"), ("A.PY", "", "python"), ("stub.pyi", "", "python"), ("a.mjs", "", "javascript"),
        ("a.jsx", "", "javascript"), ("a.tsx", "", "tsx"), ("a.d.ts", "", "typescript"), ("a.h", "", "cpp"),
        ("Rakefile", "", "ruby"), ("bin/tool", "#!/usr/bin/env python3.12\n", "python"),
        ("bin/tool", "#!/bin/sh -e\n", "bash"), ("bin/tool", "#!/usr/bin/env -S node --x\n", "javascript"),
        ("bin/tool", "#!/bin/shade\n", None), ("notes.txt", "#!/bin/sh\n", None), ("README.md", "", None),
        ("bin/tool", "", None), ("", "", None),
    ],
)  # fmt: skip
def test_a_language_is_known_by_name_or_first_line(path: str, first_line: str, name: str | None) -> None:
    found = language_of(path, first_line)
    assert (found.name if found else None) == name
