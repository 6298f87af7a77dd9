"""Manifests and lock files as they are found, each read to its lines; broken ones tell nothing and harm nobody."""

from __future__ import annotations

import json
from functools import partial

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cases import each
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

Row = tuple[str, str, str | None, int, str]

FILES: dict[str, tuple[str, list[Row]]] = {
    "pyproject.toml": (
        """[build-system]
requires = ["hatchling>=1.24"]

[project]
name = "weaver"
requires-python = ">=3.11"
dependencies = [
    # HTTP
    "httpx>=0.27,<1",
    "uvicorn[standard] == 0.30.1 ; python_version > '3.8'",
    "loom @ https://example.org/loom.whl",
]
[project.optional-dependencies]
redis = ["redis"]
[dependency-groups]
dev = ["pytest~=8.0", {include-group = "lint"}]
[tool.poetry.dependencies]
python = "^3.11"
celery = { version = "^5.3", extras = ["redis"] }
flask = "3.0.1"
[tool.poetry.group.docs.dependencies]
sphinx = "*"
[tool.poetry.dependencies.boto3]
version = "==1.34.2"
""",
        [
            ("python", ">=3.11", None, 6, "language"),
            ("hatchling", ">=1.24", None, 2, "build"),
            ("httpx", ">=0.27,<1", None, 9, "runtime"),
            ("uvicorn", "== 0.30.1", "0.30.1", 10, "runtime"),
            ("loom", "@ https://example.org/loom.whl", None, 11, "runtime"),
            ("redis", "", None, 14, "optional:redis"),
            ("pytest", "~=8.0", None, 16, "dev"),
            ("python", "^3.11", None, 18, "language"),
            ("celery", "^5.3", None, 19, "runtime"),
            ("flask", "3.0.1", "3.0.1", 20, "runtime"),
            ("boto3", "==1.34.2", "1.34.2", 23, "runtime"),
            ("sphinx", "", None, 22, "dev"),
        ],
    ),
    "requirements.txt": (
        "# pinned\n-r base.txt\nflask==3.0.2 \\\n    --hash=sha256:aa \\\n    --hash=sha256:bb\n"
        "Django[bcrypt]>=4.2,<5 ; python_version >= '3.8'  # web\n\n-e git+https://x/y#egg=z\n"
        "celery --hash=sha256:cc\nnot a requirement\n",
        [
            ("flask", "==3.0.2", "3.0.2", 3, "runtime"),
            ("Django", ">=4.2,<5", None, 6, "runtime"),
            ("celery", "", None, 9, "runtime"),
        ],
    ),
    "requirements/dev.in": ("mypy\n", [("mypy", "", None, 1, "dev")]),
    "requirements-dev.txt": ("mypy==1.10\n", [("mypy", "==1.10", "1.10", 1, "dev")]),
    "setup.cfg": (
        "[metadata]\nname = weaver\n\n[options]\npython_requires = >=3.9\ninstall_requires =\n    requests>=2.31\n"
        "    # a note\n    attrs==23.1.0  ; python_version < '4'\n\n[options.extras_require]\ntest = pytest\n",
        [
            ("python", ">=3.9", None, 5, "language"),
            ("requests", ">=2.31", None, 7, "runtime"),
            ("attrs", "==23.1.0", "23.1.0", 9, "runtime"),
            ("pytest", "", None, 12, "optional:test"),
        ],
    ),
    "setup.py": (
        "from setuptools import setup\nREQUIRED = [\n    'click>=8',\n    'rich==13.7.0',\n]\nsetup(\n"
        "    name='weaver',\n"
        "    install_requires=REQUIRED,\n    extras_require={'s3': ['boto3'], **more},\n"
        "    tests_require=read('t'),\n)\n",
        [
            ("click", ">=8", None, 3, "runtime"),
            ("rich", "==13.7.0", "13.7.0", 4, "runtime"),
            ("boto3", "", None, 9, "optional:s3"),
        ],
    ),
    "Pipfile": (
        '[packages]\nrequests = "*"\ndjango = {version = "==4.2.1", extras = ["x"]}\n[dev-packages]\nblack = ">=23"\n'
        '[requires]\npython_version = "3.11"\n',
        [
            ("requests", "", None, 2, "runtime"),
            ("django", "==4.2.1", "4.2.1", 3, "runtime"),
            ("black", ">=23", None, 5, "dev"),
            ("python", "3.11", None, 7, "language"),
        ],
    ),
    "Pipfile.lock": (
        '{\n "default": {\n  "certifi": {\n   "hashes": [],\n   "version": "==2024.2.2"\n  }\n },\n'
        ' "develop": {\n  "x": {"ref": "a"}\n }\n}\n',
        [("certifi", "==2024.2.2", "2024.2.2", 3, "lock"), ("x", "", None, 9, "lock")],
    ),
    "poetry.lock": (
        '# made by Poetry\n\n[[package]]\nname = "anyio"\nversion = "4.3.0"\n\n[package.dependencies]\nidna = ">=2.8"\n'
        'name = "2"\n\n[[package]]\nname = "idna"\nversion = "3.6"\n\n[metadata]\nlock-version = "2.0"\n',
        [("anyio", "", "4.3.0", 4, "lock"), ("idna", "", "3.6", 12, "lock")],
    ),
    "uv.lock": (
        'version = 1\n\n[[package]]\nname = "idna"\nversion = "3.7"\n'
        'source = { registry = "https://packages.example/simple" }\n\n'
        '[[package]]\nname = "weaver"\nversion = "0.1.0"\nsource = { editable = "." }\n',
        [("idna", "", "3.7", 4, "lock")],
    ),
    "pdm.lock": ('[[package]]\nname = "idna"\nversion = "3.7"\n', [("idna", "", "3.7", 2, "lock")]),
    "environment.yml": (
        "name: weaver\ndependencies:\n  - python=3.11\n  - conda-forge::numpy>=1.26\n  - scipy=1.12.0=py311\n  - pip\n"
        "  - pip:\n      - httpx==0.27.0\n",
        [
            ("python", "=3.11", "3.11", 3, "language"),
            ("numpy", ">=1.26", None, 4, "runtime"),
            ("scipy", "=1.12.0=py311", "1.12.0", 5, "runtime"),
            ("pip", "", None, 6, "runtime"),
            ("httpx", "==0.27.0", "0.27.0", 8, "runtime"),
        ],
    ),
    "package.json": (
        '{\n  "name": "w",\n  "engines": {"node": ">=18"},\n  "dependencies": {\n    "react": "^18.2.0",\n'
        '    "@vue/core": "3.4.1"\n  },\n  "devDependencies": {"vitest": "*"},\n'
        '  "peerDependencies": {"vue": "3.x"}\n}\n',
        [
            ("react", "^18.2.0", None, 5, "runtime"),
            ("@vue/core", "3.4.1", "3.4.1", 6, "runtime"),
            ("vitest", "", None, 8, "dev"),
            ("vue", "3.x", None, 9, "peer"),
            ("node", ">=18", None, 3, "language"),
        ],
    ),
    "package-lock.json": (
        '{\n  "lockfileVersion": 3,\n  "packages": {\n    "": {"version": "1.0.0"},\n'
        '    "node_modules/@babel/core": {\n      "version": "7.24.0"\n    },\n'
        '    "node_modules/a/node_modules/b": {"version": "2.0.0"},\n    "packages/own": {"version": "0.1.0"},\n'
        '    "node_modules/own": {"link": true}\n  }\n}\n',
        [("@babel/core", "", "7.24.0", 5, "lock"), ("b", "", "2.0.0", 8, "lock")],
    ),
    "old/package-lock.json": (
        '{\n  "lockfileVersion": 1,\n  "dependencies": {\n    "a": {\n      "version": "1.2.3",\n'
        '      "dependencies": {\n        "b": {"version": "0.1.0"}\n      }\n    }\n  }\n}\n',
        [("a", "", "1.2.3", 4, "lock"), ("b", "", "0.1.0", 7, "lock")],
    ),
    "yarn.lock": (
        '# yarn lockfile v1\n\n"@babel/code-frame@^7.0.0", "@babel/code-frame@^7.8.3":\n  version "7.12.11"\n'
        '  dependencies:\n    version "1"\n\nleft-pad@1.3.0:\n  version "1.3.0"\n',
        [("@babel/code-frame", "^7.0.0, ^7.8.3", "7.12.11", 3, "lock"), ("left-pad", "1.3.0", "1.3.0", 8, "lock")],
    ),
    "berry/yarn.lock": (
        '__metadata:\n  version: 8\n\n"lodash@npm:^4.17.0, lodash@npm:^4.17.21":\n  version: 4.17.21\n'
        '  resolution: "lodash@npm:4.17.21"\n\n"w@workspace:.":\n  version: 0.0.0-use.local\n',
        [("lodash", "^4.17.0, ^4.17.21", "4.17.21", 4, "lock")],
    ),
    "pnpm-lock.yaml": (
        "lockfileVersion: '9.0'\n\nimporters:\n  .:\n    dependencies:\n      react:\n        specifier: ^18\n\n"
        "packages:\n\n"
        "  '@babel/core@7.24.0':\n    resolution: {integrity: x}\n\n  react@18.2.0:\n    engines: {node: '>=0.10'}\n\n"
        "  /old@1.0.0(react@18.2.0):\n    dev: true\n\n  /older/0.9.1_react@18:\n    dev: true\n\nsnapshots:\n\n"
        "  react@18.2.0: {}\n",
        [
            ("@babel/core", "", "7.24.0", 11, "lock"),
            ("react", "", "18.2.0", 14, "lock"),
            ("old", "", "1.0.0", 17, "lock"),
            ("older", "", "0.9.1", 20, "lock"),
        ],
    ),
    "Cargo.toml": (
        '[package]\nname = "w"\nversion = "0.2.0"\nrust-version = "1.74"\n\n[dependencies]\nserde = "1.0"\n'
        'tokio = { version = "=1.37.0", features = ["full"] }\njson = { package = "serde_json", version = "1" }\n\n'
        '[dev-dependencies]\nproptest = "1"\n\n[target.\'cfg(unix)\'.dependencies]\nnix = "0.28"\n\n'
        '[dependencies.regex]\nversion = "1.10"\n',
        [
            ("rust", "1.74", None, 4, "language"),
            ("serde", "1.0", None, 7, "runtime"),
            ("tokio", "=1.37.0", "1.37.0", 8, "runtime"),
            ("serde_json", "1", None, 9, "runtime"),
            ("regex", "1.10", None, 17, "runtime"),
            ("proptest", "1", None, 12, "dev"),
            ("nix", "0.28", None, 15, "runtime"),
        ],
    ),
    "Cargo.lock": (
        'version = 3\n\n[[package]]\nname = "serde"\nversion = "1.0.197"\n'
        'source = "registry+https://github.com/rust-lang/crates.io-index"\n\n[[package]]\nname = "w"\n'
        'version = "0.2.0"\n',
        [("serde", "", "1.0.197", 4, "lock")],
    ),
    "go.mod": (
        "module example.org/w\n\ngo 1.22\n\nrequire github.com/gin-gonic/gin v1.9.1\n\nrequire (\n"
        "\tgithub.com/jackc/pgx/v5 v5.5.0 // indirect\n\tgopkg.in/yaml.v3 v3.0.1\n)\n\nexclude (\n\tx.org/y v1.0.0\n"
        ")\n",
        [
            ("go", "1.22", None, 3, "language"),
            ("github.com/gin-gonic/gin", "v1.9.1", "v1.9.1", 5, "runtime"),
            ("github.com/jackc/pgx/v5", "v5.5.0", "v5.5.0", 8, "indirect"),
            ("gopkg.in/yaml.v3", "v3.0.1", "v3.0.1", 9, "runtime"),
        ],
    ),
    "go.sum": (
        "github.com/a/b v1.0.0/go.mod h1:aa=\ngithub.com/a/b v1.0.0 h1:bb=\n",
        [("github.com/a/b", "", "v1.0.0", 2, "lock")],
    ),
    "composer.json": (
        '{\n  "name": "acme/w",\n  "require": {\n    "php": ">=8.1",\n    "laravel/framework": "^11.0"\n  },\n'
        '  "require-dev": {"phpunit/phpunit": "11.0.1"}\n}\n',
        [
            ("php", ">=8.1", None, 4, "language"),
            ("laravel/framework", "^11.0", None, 5, "runtime"),
            ("phpunit/phpunit", "11.0.1", "11.0.1", 7, "dev"),
        ],
    ),
    "composer.lock": (
        '{\n  "packages": [\n    {\n      "name": "monolog/monolog",\n      "version": "3.5.0"\n    }\n  ],\n'
        '  "packages-dev": [{"name": "phpunit/phpunit", "version": "v11.0.1"}]\n}\n',
        [("monolog/monolog", "", "3.5.0", 4, "lock"), ("phpunit/phpunit", "", "v11.0.1", 8, "lock")],
    ),
    "Gemfile": (
        "source 'https://rubygems.org'\nruby '3.2.2'\ngem 'rails', '~> 7.1', '>= 7.1.2'\ngem \"pg\", \"1.5.4\"\n"
        "group :development, :test do\n  gem 'rspec-rails'\nend\ngem 'puma', require: false\n"
        "gem 'x', group: :production\n",
        [
            ("ruby", "3.2.2", "3.2.2", 2, "language"),
            ("rails", "~> 7.1, >= 7.1.2", None, 3, "runtime"),
            ("pg", "1.5.4", "1.5.4", 4, "runtime"),
            ("rspec-rails", "", None, 6, "dev"),
            ("puma", "", None, 8, "runtime"),
            ("x", "", None, 9, "optional:production"),
        ],
    ),
    "Gemfile.lock": (
        "PATH\n  remote: .\n  specs:\n    own (0.1.0)\n\nGEM\n  remote: https://rubygems.org/\n  specs:\n"
        "    actionpack (7.1.2)\n"
        "      rack (>= 2.2.4)\n    nokogiri (1.15.4-x86_64-linux)\n\nDEPENDENCIES\n  rails (~> 7.1)\n",
        [("actionpack", "", "7.1.2", 9, "lock"), ("nokogiri", "", "1.15.4", 11, "lock")],
    ),
    "pom.xml": (
        '<?xml version="1.0"?>\n<project xmlns="http://maven.apache.org/POM/4.0.0">\n  <artifactId>w</artifactId>\n'
        "  <version>1.4.0</version>\n  <properties><spring.version>6.1.3</spring.version></properties>\n"
        "  <dependencies>\n"
        "    <dependency>\n      <groupId>org.springframework</groupId>\n      <artifactId>spring-core</artifactId>\n"
        "      <version>${spring.version}</version>\n    </dependency>\n    <dependency>\n"
        "      <groupId>junit</groupId>\n"
        "      <artifactId>junit</artifactId>\n      <version>[4.0,5.0)</version>\n      <scope>test</scope>\n"
        "    </dependency>\n  </dependencies>\n</project>\n",
        [
            ("org.springframework:spring-core", "6.1.3", "6.1.3", 9, "runtime"),
            ("junit:junit", "[4.0,5.0)", None, 14, "dev"),
        ],
    ),
    "app/build.gradle.kts": (
        'plugins {\n    id("org.springframework.boot") version "3.2.2"\n}\nversion = "2.1.0"\ndependencies {\n'
        '    implementation("com.google.guava:guava:33.0.0-jre")\n    // implementation("a:b:1")\n'
        '    testImplementation("junit:junit:4.+")\n}\n',
        [
            ("org.springframework.boot", "3.2.2", "3.2.2", 2, "build"),
            ("com.google.guava:guava", "33.0.0-jre", "33.0.0-jre", 6, "runtime"),
            ("junit:junit", "4.+", None, 8, "dev"),
        ],
    ),
    "build.gradle": (
        "version '1.0'\ndependencies {\n  api 'a.b:c:1.2'\n  implementation group: 'x.y', name: 'z', version: '3.4.5'\n"
        "  runtimeOnly 'org.pg:driver'\n}\n",
        [
            ("a.b:c", "1.2", "1.2", 3, "runtime"),
            ("x.y:z", "3.4.5", "3.4.5", 4, "runtime"),
            ("org.pg:driver", "", None, 5, "runtime"),
        ],
    ),
    "src/App.csproj": (
        '<Project Sdk="Microsoft.NET.Sdk">\n  <PropertyGroup><Version>1.2.3</Version></PropertyGroup>\n  <ItemGroup>\n'
        '    <PackageReference Include="Newtonsoft.Json" Version="13.0.3" />\n'
        '    <PackageReference Include="Serilog">\n'
        "      <Version>[3.0,4.0)</Version>\n    </PackageReference>\n  </ItemGroup>\n</Project>\n",
        [("Newtonsoft.Json", "13.0.3", "13.0.3", 4, "runtime"), ("Serilog", "[3.0,4.0)", None, 5, "runtime")],
    ),
    "w.egg-info/PKG-INFO": (
        "Metadata-Version: 2.1\nName: weaver\nVersion: 0.4.1\nRequires-Python: >=3.9\nRequires-Dist: httpx (>=0.27)\n"
        'Requires-Dist: pytest>=8; extra == "dev"\n\nRequires-Dist: described\n',
        [
            ("python", ">=3.9", None, 4, "language"),
            ("httpx", ">=0.27", None, 5, "runtime"),
            ("pytest", ">=8", None, 6, "optional:dev"),
        ],
    ),
    "weaver-0.4.1.dist-info/METADATA": ("Name: w\nRequires-Dist: idna\n", [("idna", "", None, 2, "runtime")]),
}

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
