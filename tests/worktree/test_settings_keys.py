"""Settings of every format, with the line to look at; what cannot be read rightly is not read at all."""

from __future__ import annotations

from functools import partial

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cases import each
from cortex_py.worktree.formats import FileSetting, read_settings
from timing import quick

Row = tuple[str, str, int]
FILES: dict[str, tuple[str, list[Row]]] = {
    "ruff.toml": (
        'line-length = 120\n[lint]\nselect = [\n  "E",  # style\n  "F",\n]\n"per.file" = {a = true}\nnote = """\n'
        'two\nlines"""\n'
        "[[rule]]\nname = 'x'\n[[rule]]\nname = \"y\\u0041\"\n[rule.sub]\nsince = 2024-05-01\n",
        [
            ("line-length", "120", 1), ("lint.select.0", "E", 4), ("lint.select.1", "F", 5),
            ("lint.per.file.a", "true", 7), ("lint.note", "two\nlines", 8), ("rule.0.name", "x", 12),
            ("rule.1.name", "yA", 14), ("rule.1.sub.since", "2024-05-01", 16),
        ],
    ),
    "tsconfig.json": (
        '{\n  // strict\n  "compilerOptions": {\n    "strict": true,\n    "target": "es2022", /* new\n */\n'
        '    "lib": ["dom", null],\n'
        '  },\n  "n": -1.50\n}\n',
        [
            ("compilerOptions.strict", "true", 4), ("compilerOptions.target", "es2022", 5),
            ("compilerOptions.lib.0", "dom", 7), ("compilerOptions.lib.1", "null", 7), ("n", "-1.50", 9),
        ],
    ),
    "a.jsonc": ('{"a": {"b": "c\\n"}}', [("a.b", "c\n", 1)]),
    "compose.yaml": (
        "# services\nservices:\n  db:\n    image: postgres:16  # pinned\n    ports:\n      - '5432:5432'\n"
        "    env: &e {A: yes, B: 1.0}\n"
        "  web:\n    env: *e\n    command: |\n      run\n      it\n---\nother: 010\n",
        [
            ("services.db.image", "postgres:16", 4), ("services.db.ports.0", "5432:5432", 6),
            ("services.db.env.A", "yes", 7), ("services.db.env.B", "1.0", 7), ("services.web.command", "run\nit\n", 10),
            ("other", "010", 14),
        ],
    ),
    "ci.yml": ("a:\n- b: 1\n- c\n", [("a.0.b", "1", 2), ("a.1", "c", 3)]),
    "tox.ini": (
        "; top\nroot = true\n[tox]\nenvlist = py311, py312  # both\n\n[testenv:lint]\ncommands =\n    ruff check\n"
        "    mypy ; types\n"
        "url: http://x/y#z\nempty =\n",
        [
            ("root", "true", 2), ("tox.envlist", "py311, py312", 4), ("testenv:lint.commands", "ruff check\nmypy", 7),
            ("testenv:lint.url", "http://x/y#z", 10), ("testenv:lint.empty", "", 11),
        ],
    ),
    "setup.cfg": ("[flake8]\nmax-line-length=100\n", [("flake8.max-line-length", "100", 2)]),
    ".env.example": (
        "# copy to .env\nexport PORT=8080 # http\nKEY=\nURL=\"postgres://x#y\"\nNAME='a b' # c\n",
        [("PORT", "8080", 2), ("KEY", "", 3), ("URL", "postgres://x#y", 4), ("NAME", "a b", 5)],
    ),
    ".env.sample": ("A=1\n", [("A", "1", 1)]),
    "application.properties": (
        "! note\nserver.port = 8080\nlist=a,\\\n   b,\\\n   c\nspring.name: w\\u0041\nflag\npath=c\\:\\\\x\n",
        [
            ("server.port", "8080", 2), ("list", "a,b,c", 3), ("spring.name", "wA", 6), ("flag", "", 7),
            ("path", "c:\\x", 8),
        ],
    ),
}  # fmt: skip


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
