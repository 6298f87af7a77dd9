"""What source files define and import, language by language, each from a small real source."""

from __future__ import annotations

from textwrap import dedent

from cases import each
from code_samples import BASH, CPP, CSHARP, GO, JAVA, JAVASCRIPT, LUA, PHP, PYTHON, RUBY, RUST, TYPESCRIPT, C
from cortex_py.worktree.code.imports import Import
from cortex_py.worktree.code.naming import language_of
from cortex_py.worktree.code.outline import Symbol
from cortex_py.worktree.code.syntax import analyse


def outline(path: str, text: str) -> list[str]:
    return [f"{one.line}-{one.end_line} {one.kind} {one.qualified}" for one in analyse(path, text).symbols]


def taken(path: str, text: str) -> list[tuple[int, str, tuple[str, ...]]]:
    return [(one.line, one.module, one.names) for one in analyse(path, text).imports]


@each(
    ("path", "text", "expected"),
    [
        (
            "shop.py",
            PYTHON,
            """
            8-8 variable LIMIT
            9-11 variable table
            15-27 class Shop
            21-25 method Shop.total
            22-23 function Shop.total.inner
            27-27 method Shop.buy
            31-33 function conditional
            36-36 type Pair
            """,
        ),
        (
            "shop.ts",
            TYPESCRIPT,
            """
            8-8 variable lazy
            12-19 class Shop
            13-15 method Shop.handler
            17-17 method Shop.total
            18-18 method Shop.buy
            21-23 class Shape
            22-22 method Shape.area
            24-24 interface Item
            25-25 type Id
            26-26 enum Color
            27-27 namespace Outer
            27-27 function Outer.inside
            28-28 function ambient
            29-29 function arrow
            29-29 function other
            30-30 variable LIMIT
            31-31 variable api
            31-31 method api.get
            31-31 method api.post
            31-31 method api.odd-key
            32-36 function default
            33-35 function default.local
            """,
        ),
        (
            "shop.js",
            JAVASCRIPT,
            """
            2-2 variable express
            4-4 function start
            5-5 function stop
            6-6 method Shop.open
            7-7 function close
            8-8 function each
            9-9 class Store
            9-9 method Store.#secret
            10-10 class default
            10-10 method default.run
            """,
        ),
        (
            "shop.go",
            GO,
            """
            9-9 constant Limit
            12-12 variable first
            16-18 struct Shop
            20-20 interface Seller
            23-23 type Id
            24-24 type Kind
            28-30 method Shop.Sell
            32-32 function New
            """,
        ),
        (
            "shop.rs",
            RUST,
            """
            10-12 struct Shop
            15-15 method Shop.fmt
            19-19 method Shop.new
            22-22 trait Sell
            22-22 method Sell.sell
            22-22 method Sell.twice
            23-23 enum Color
            24-24 macro shout
            25-25 constant LIMIT
            26-26 variable COUNT
            27-27 type Id
            30-33 module tests
            32-32 function tests.works
            """,
        ),
        (
            "Shop.java",
            JAVA,
            """
            9-19 class Shop
            12-12 method Shop.Shop
            15-15 method Shop.total
            17-17 enum Shop.Color
            17-17 method Shop.Color.paint
            18-18 record Shop.Pair
            18-18 method Shop.Pair.Pair
            21-21 interface Seller
            21-21 method Seller.sell
            22-22 interface Service
            """,
        ),
        (
            "shop.c",
            C,
            """
            3-3 macro LIMIT
            4-4 macro SQUARE
            6-6 type item_t
            7-7 enum color
            8-8 struct node
            9-9 function total
            12-12 function trace
            15-18 function names
            """,
        ),
        (
            "shop.hpp",
            CPP,
            """
            3-26 namespace shop
            7-17 class Shop
            9-9 method Shop.Shop
            10-10 method Shop.~Shop
            11-11 method Shop.total
            12-12 method Shop.operator==
            13-13 struct Shop.Item
            20-20 method Shop.count
            22-22 type Id
            23-23 enum Color
            24-24 function reference
            """,
        ),
        (
            "Shop.cs",
            CSHARP,
            """
            5-19 namespace Example.Shop
            8-13 class Shop
            10-10 property Shop.Total
            11-11 method Shop.Shop
            12-12 method Shop.Sell
            15-15 record Pair
            16-16 interface ISeller
            16-16 method ISeller.Sell
            17-17 enum Color
            18-18 type Sold
            """,
        ),
        (
            "shop.rb",
            RUBY,
            """
            5-26 module Shop
            6-6 constant Shop.LIMIT
            9-23 class Shop.Store
            12-14 method Shop.Store.initialize
            16-16 method Shop.Store.open
            19-19 method Shop.Store.close
            22-22 method Shop.Store.secret
            25-25 method Shop.helper
            28-28 function top
            """,
        ),
        (
            "shop.php",
            PHP,
            """
            9-9 constant LIMIT
            12-20 class Shop
            16-19 method Shop.total
            22-22 interface Seller
            23-23 trait Sells
            24-24 enum Color
            25-25 function top
            """,
        ),
        ("shop.sh", BASH, "7-9 function sell\n11-11 function total"),
        ("tool", BASH, "7-9 function sell\n11-11 function total"),
        (
            "shop.lua",
            LUA,
            """
            6-6 method M.open
            7-7 method M.close
            8-8 function helper
            9-9 method M.total
            10-10 function count
            """,
        ),
    ],
    ids=lambda value: value if isinstance(value, str) and len(value) < 20 else "",
)
def test_definitions(path: str, text: str, expected: str) -> None:
    wanted = dedent(expected).strip().split("\n")
    assert outline(path, text) == wanted
    assert outline(path, text.replace("\n", "\r\n")) == wanted


@each(
    ("path", "text", "expected"),
    [
        (
            "shop.py",
            PYTHON,
            [
                (1, "__future__", ("annotations",)), (3, "os", ()), (3, "sys", ()), (4, "a.b", ()),
                (5, "..pkg", ("one", "two")), (6, ".star", ("*",)),
            ],
        ),
        (
            "shop.ts",
            TYPESCRIPT,
            [
                (1, "react", ("default", "useState", "Ref")), (2, "node:path", ("*",)), (3, "./side-effect", ()),
                (4, "fs", ()), (5, "./helper", ("helper",)), (6, "./all", ("*",)), (7, "legacy", ("a", "b")),
                (8, "./lazy", ()),
            ],
        ),
        ("shop.js", JAVASCRIPT, [(2, "express", ()), (2, "path", ("join",)), (3, "./setup", ())]),
        ("shop.go", GO, [(4, "fmt", ()), (5, "example.org/log", ()), (6, "math", ("*",))]),
        (
            "shop.rs",
            RUST,
            [
                (1, "std::collections", ("HashMap",)), (1, "std::collections::hash_map", ("Entry", "*")),
                (2, "crate", ("shop",)), (3, "super", ("*",)), (4, "serde", ()), (5, "rand", ()), (6, "self::cart", ()),
            ],
        ),
        (
            "Shop.java",
            JAVA,
            [(3, "java.util", ("List",)), (4, "java.util.concurrent", ("*",)), (5, "java.lang.Math", ("max",))],
        ),
        ("shop.c", C, [(1, "stdio.h", ()), (2, "shop/item.h", ())]),
        ("shop.hpp", CPP, [(1, "vector", ())]),
        ("Shop.cs", CSHARP, [(1, "System.Text", ()), (2, "System.Math", ()), (3, "System.Text.Json", ())]),
        ("shop.rb", RUBY, [(1, "json", ()), (2, "./lib/cart", ())]),
        (
            "shop.php",
            PHP,
            [
                (4, "Vendor\\Package", ("Item",)), (5, "Vendor\\Other", ("First", "Second")),
                (6, "Vendor", ("helper",)), (7, "legacy.php", ()),
            ],
        ),
        ("shop.sh", BASH, [(2, "./lib.sh", ()), (3, "$HOME/.profile", ())]),
        ("shop.lua", LUA, [(1, "json", ()), (2, "shop.cart", ())]),
    ],
    ids=lambda value: value if isinstance(value, str) and len(value) < 20 else "",
)  # fmt: skip
def test_imports(path: str, text: str, expected: list[tuple[int, str, tuple[str, ...]]]) -> None:
    assert taken(path, text) == expected


def test_a_symbol_and_an_import_in_full() -> None:
    text = "import os\n\n\nclass A:\n    def f(self):\n        pass\n"
    assert analyse("a.py", text).symbols == [Symbol("A", "A", "class", 4, 6), Symbol("f", "A.f", "method", 5, 6)]
    assert analyse("a.py", text).imports == [Import("os", (), 1)]


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


def test_text_that_is_no_code_defines_nothing() -> None:
    assert analyse("README.md", "# def f(): pass\n").symbols == []
    assert analyse("notes.txt", "import os\n").imports == []
