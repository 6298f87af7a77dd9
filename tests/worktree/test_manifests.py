"""Manifests and lock files as they are found, each read to its lines; broken ones tell nothing and harm nobody."""

from __future__ import annotations

import json
from functools import partial

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cases import each
from code_samples import read_samples
from cortex_py.worktree.manifests.manifests import (
    Dependency,
    OwnVersion,
    admits,
    agrees,
    is_dependency_file,
    read_dependencies,
    read_own_version,
    same_package,
    same_version,
    short_name,
)
from timing import quick

FILES = {path: (one["text"], one["packages"]) for path, one in read_samples("manifests").items()}

VERSIONS: list[tuple[str, str, OwnVersion | None]] = [
    ("pyproject.toml", '[project]\nname = "w"\nversion = "1.2.3"\n', OwnVersion("w", "1.2.3", 3)),
    ("pyproject.toml", '[project]\nname = "w"\ndynamic = ["version"]\n', None),
    ("pyproject.toml", '[tool.poetry]\nversion = "0.3"\n', OwnVersion(None, "0.3", 2)),
    ("setup.cfg", "[metadata]\nname = w\nversion = 2.0\n", OwnVersion("w", "2.0", 3)),
    ("setup.cfg", "[metadata]\nversion = attr: w.__version__\n", None),
    ("setup.py", "import s\ns.setup(\n  name='w',\n  version='0.9',\n)\n", OwnVersion("w", "0.9", 4)),
    ("package.json", '{\n"name": "w",\n"version": "4.5.6"}', OwnVersion("w", "4.5.6", 3)),
    ("composer.json", '{"name": "a/b",\n"version": "1.0"}', OwnVersion("a/b", "1.0", 2)),
    ("Cargo.toml", FILES["Cargo.toml"][0], OwnVersion("w", "0.2.0", 3)),
    ("Cargo.toml", '[workspace.package]\nversion = "0.7.0"\n', OwnVersion(None, "0.7.0", 2)),
    ("PKG-INFO", FILES["w.egg-info/PKG-INFO"][0], OwnVersion("weaver", "0.4.1", 3)),
    ("pom.xml", FILES["pom.xml"][0], OwnVersion("w", "1.4.0", 4)),
    ("a/b/__init__.py", '"""Doc."""\n\n__version__ = "0.1.0"  # now\n', OwnVersion(None, "0.1.0", 3)),
    ("version.py", "VERSION = (1, 2, 3)\n", OwnVersion(None, "1.2.3", 1)),
    ("x.py", "def f():\n    version = '1.0'\n", None),
    ("VERSION", "\nv2.4.0\n", OwnVersion(None, "2.4.0", 2)),
    ("VERSION", "the version\n", None),
    ("src/App.csproj", FILES["src/App.csproj"][0], OwnVersion(None, "1.2.3", 2)),
    ("build.gradle", FILES["build.gradle"][0], OwnVersion(None, "1.0", 1)),
    ("build.gradle.kts", FILES["app/build.gradle.kts"][0], OwnVersion(None, "2.1.0", 4)),
    ("notes.md", "version 1.0", None),
]


@each("path", FILES)
def test_a_file_names_its_packages_with_their_lines(path: str) -> None:
    text, rows = FILES[path]
    assert read_dependencies(path, text) == [Dependency(*row) for row in rows]
    assert read_dependencies(f"deep/{path}", text) == [Dependency(*row) for row in rows]


@each("path", FILES)
def test_lines_that_end_as_on_windows_are_counted_alike(path: str) -> None:
    text, rows = FILES[path]
    found = read_dependencies(path, "\ufeff" + text.replace("\\\n", "\\ \n").replace("\n", "\r\n"))
    assert [(one.name, one.line) for one in found] == [(row[0], row[3]) for row in rows]


@each("path", FILES)
def test_dependency_files_are_known_by_name(path: str) -> None:
    assert is_dependency_file(path)
    assert is_dependency_file(f"a/b/{path}")
    assert not is_dependency_file(f"{path}.bak")


def test_an_unknown_file_tells_nothing() -> None:
    assert read_dependencies("notes.md", FILES["requirements.txt"][0]) == []
    assert not is_dependency_file("src/requirements.py")


@each(("path", "text", "stated"), VERSIONS)
def test_a_project_states_its_version(path: str, text: str, stated: OwnVersion | None) -> None:
    assert read_own_version(path, text) == stated


@each("path", FILES)
def test_half_a_file_or_another_one_harms_nobody(path: str) -> None:
    text = FILES[path][0]
    for part in (text[: len(text) // 2], text[len(text) // 3 :], "", *(other for other, _ in FILES.values())):
        for one in read_dependencies(path, part):
            assert one.name
            assert 1 <= one.line <= part.count("\n") + 1
        read_own_version(path, part)


SHAPES = [
    "null", "[]", '"x"', "5", '{"dependencies": [1, {}]}', '{"dependencies": {"a": {"version": 5}}}', '{"packages": 3}',
    '{"require": "a/b"}', "project = 5", "[project]\ndependencies = 5", "[project]\ndependencies = [5, [['x']]]",
    "dependencies = [{a = 1}]", "dependencies:\n  - {a: b}\n  - [x]\n  - *y\n", "a: &a [*a]", "setup(**x)",
    "setup(install_requires=['a' 5])",
    "<project><dependencies><dependency/></dependencies></project>", "\x00", "\ud800",
    '<!DOCTYPE p [<!ENTITY a "b">]><project><version>&a;</version></project>',
]  # fmt: skip


@each("path", [*FILES, "VERSION", "x.py"])
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    text=st.one_of(st.sampled_from(SHAPES), st.text(max_size=200)),
    line=st.text("[]{}\"'=:,.\\ \n#<>&*-a1", max_size=60),
)
def test_no_text_is_too_strange(path: str, text: str, line: str) -> None:
    for one in (text, line, text + line):
        assert all(isinstance(found, Dependency) for found in read_dependencies(path, one))
        assert read_own_version(path, one) is None or read_own_version(path, one).version  # type: ignore[union-attr]


@pytest.mark.slow
@each("path", [*FILES, "x.py"])
def test_no_text_takes_long(path: str) -> None:
    for unit in ("[", "{a=", '{"a":', "- ", " ", "\n", "a ", "<a>", "a.", "(", "gem '", '"', "=", "a=1\n", "-", "a@"):
        text = unit * (30_000 // len(unit))
        quick(partial(read_dependencies, path, text), 5)
        quick(partial(read_own_version, path, text), 5)


def test_a_file_beyond_all_measure_is_not_read() -> None:
    assert read_dependencies("requirements.txt", "flask\n") != []
    assert read_dependencies("requirements.txt", "flask\n" + "#" * 4_000_001) == []


def test_a_form_feed_ends_no_line() -> None:
    assert [one.line for one in read_dependencies("requirements.txt", "# a\x0c b\u2028 c\nflask\n")] == [2]


def test_entities_are_refused() -> None:
    plain = FILES["pom.xml"][0]
    declared = plain.replace("<project", "<!DOCTYPE project [<!ENTITY a 'b'>]>\n<project", 1)
    assert read_dependencies("pom.xml", plain)
    assert read_dependencies("pom.xml", declared) == []


def test_json_with_comments_is_read_too() -> None:
    text = '{ // mine\n  "dependencies": {\n    /* one\n two */ "react": "1.0.0",\n  },\n}'
    assert read_dependencies("package.json", text) == [Dependency("react", "1.0.0", "1.0.0", 4, "runtime")]


def test_many_dependencies_are_cut_off() -> None:
    text = json.dumps({"dependencies": {f"p{n}": "1" for n in range(20_100)}})
    assert len(read_dependencies("package.json", text)) == 20_000


# -- names -----------------------------------------------------------------------------------------


@each(
    ("a", "b", "same"),
    [
        ("ruamel.yaml", "Ruamel_YAML", True), ("scikit-learn", "scikit_learn", True), ("flask", "flask-login", False),
        ("@vue/core", "core", False), ("@vue/core", "@babel/core", False), ("@Vue/core", "@vue/core", True),
        ("gin", "github.com/gin-gonic/gin", True), ("pgx", "github.com/jackc/pgx/v5", True),
        ("yaml", "gopkg.in/yaml.v3", True), ("github.com/a/yaml", "github.com/b/yaml", False),
        ("github.com/a/pgx", "github.com/a/pgx/v5", True), ("guava", "com.google.guava:guava", True),
        ("laravel/framework", "framework", False),
    ],
)  # fmt: skip
def test_names_of_one_package(a: str, b: str, same: bool) -> None:
    assert same_package(a, b) is same
    assert same_package(b, a) is same


def test_short_names() -> None:
    assert short_name("github.com/jackc/pgx/v5") == "pgx"
    assert short_name("ruamel.yaml") == "ruamel.yaml"
    assert short_name("@vue/core") == "@vue/core"


# -- versions --------------------------------------------------------------------------------------


@each(
    ("constraint", "version", "answer"),
    [
        ("", "1.0", True), ("*", "1.0", True), ("latest", "1.0", None), ("workspace:*", "1.0", None),
        ("git+https://x", "1.0", None), (">=1.0", "no version", None),
        (">=2.0,<3", "2.5", True), (">=2.0,<3", "3.0", False), (">=2.0, <3", "1.9.9", False), ("(>=1.0)", "1.0", True),
        (">=1.2 <2.0", "1.10.0", True), (">= 1.2 < 2.0", "2.0.0", False), ("==1.4", "1.4.0", True),
        ("==1.4", "1.4.1", False),
        ("==1.4.*", "1.4.7", True), ("==1.4.*", "1.5", False), ("!=1.5", "1.5.0", False), ("!=1.5,>=1", "1.6", True),
        ("!=1.5.*", "1.5.2", False), ("~=1.4.2", "1.4.9", True), ("~=1.4.2", "1.5.0", False), ("~=1.4", "1.9", True),
        ("~=1.4", "2.0", False), ("~=1.4.2", "1.4.1", False),
        ("^1.2.3", "1.9.0", True), ("^1.2.3", "2.0.0", False), ("^1.2.3", "1.2.2", False), ("^0.2.3", "0.2.9", True),
        ("^0.2.3", "0.3.0", False), ("^0.0.3", "0.0.4", False), ("^0", "0.9.9", True), ("^1.2.3", "2.0.0-rc.1", False),
        ("~1.2.3", "1.2.9", True), ("~1.2.3", "1.3.0", False), ("~1.2", "1.2.7", True), ("~1.2", "1.5.0", None),
        ("~1.2", "2.0", False), ("~1", "1.9", True), ("~> 7.1", "7.9", True), ("~> 7.1.2", "7.2.0", False),
        ("~> 7.1, >= 7.1.2", "7.1.1", False), ("1.x", "1.7", True), ("1.x", "2.0", False), ("3.11.*", "3.11.4", True),
        ("1.2.3", "1.2.3", True), ("1.2.3", "1.2.2", False), ("1.2.3", "1.4.0", None), ("1", "1.9.0", True),
        ("v1.9.1", "v1.9.1", True), ("=1.2.3", "1.2.4", False), ("=3.11", "3.11.4", True),
        ("^16 || ^18", "18.2.0", True), ("^16 || ^18", "17.0.0", False), ("^16 | ^18", "16.1.0", True),
        ("1.2 - 2.3", "2.3.9", True), ("1.2 - 2.3", "2.4.0", False), ("1.2 - 2.3", "1.1", False),
        ("[1.0,2.0)", "1.5", True), ("[1.0,2.0)", "2.0", False), ("(1.0,]", "1.0", False), ("[1.5]", "1.5.0", True),
        (">=1.0", "2.0rc1", None), (">=2.0rc1", "2.0rc2", True), ("<2.0", "2.0rc1", False), (">=2.0", "2.0rc1", False),
        (">1.0", "1.0.post1", False), ("==1.0", "1.0+local", True), (">=1!1.0", "2.0", False),
        (">=1.0", "1.0.dev1", False), (">=1.0", "1.10", True), (">1.9", "1.10", True),
        ("npm:react@^18", "18.1.0", True),
        ("==2.0rc1", "2.0rc1", True), ("<=1.0", "1.0.0", True), ("=>1", "1", True),
    ],
)  # fmt: skip
def test_a_constraint_admits_a_version(constraint: str, version: str, answer: bool | None) -> None:
    assert admits(constraint, version) is answer


@each(
    ("a", "b", "same"),
    [
        ("2.0", "2.0.0", True), ("v2", "2", True), ("2.0", "2.0.1", False), ("1.0rc1", "1.0-rc.1", True),
        ("1.0a1", "1.0alpha1", True), ("1.0", "1.0.post1", False), ("33.0.0-jre", "33.0.0", True), ("abc", "abc", True),
        ("abc", "1.0", False), ("v0.0.0-20210101-ab", "v0.0.0-20210102-ab", False), ("1.0+a", "1.0+b", False),
    ],
)  # fmt: skip
def test_one_version_in_two_spellings(a: str, b: str, same: bool) -> None:
    assert same_version(a, b) is same
    assert same_version(b, a) is same


@each(
    ("stated", "found", "answer"),
    [
        ("3.11", "3.11.4", True), ("3", "3.11.4", True), ("3.11.4", "3.11", False), ("3.1", "3.11", False),
        ("v18", "18.2.0", True),
        ("2.0.0", "2.0", True), ("2.0", "2.0rc1", False), ("2.0rc1", "2.0rc1", True), ("3.x", "3.9", True),
        ("3.x", "4.0", False),
        ("abc", "1.0", False),
    ],
)  # fmt: skip
def test_a_shorter_statement_agrees(stated: str, found: str, answer: bool) -> None:
    assert agrees(stated, found) is answer


_WRITTEN = st.text("0123456789.*xv^~<>=!,|()[] -+abrcpostdev", max_size=30)


@given(a=st.one_of(_WRITTEN, st.text(max_size=20)), b=st.one_of(_WRITTEN, st.text(max_size=20)))
def test_no_version_is_too_strange(a: str, b: str) -> None:
    assert admits(a, b) in (True, False, None)
    assert same_version(a, b) == same_version(b, a)
    assert same_version(a, a)
    assert same_package(a, b) == same_package(b, a)
    assert isinstance(agrees(a, b), bool)


_NUMBERS = st.lists(st.integers(0, 30), min_size=1, max_size=4).map(lambda parts: ".".join(map(str, parts)))


@given(a=_NUMBERS, b=_NUMBERS)
def test_orders_exclude_each_other(a: str, b: str) -> None:
    below, above = admits(f"<{a}", b), admits(f">{a}", b)
    assert [below, above, same_version(a, b)].count(True) == 1
    assert admits(f">={a}", b) is not below
    assert admits(f"=={a}", b) is same_version(a, b)
