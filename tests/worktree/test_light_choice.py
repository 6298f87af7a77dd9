"""The light choice: what a newcomer reads first, most important first."""

from __future__ import annotations

import json

from cases import each
from cortex_py.worktree.files.choice import Role, choose, declared_entries, role_of
from cortex_py.worktree.files.files import FileRef


def light(contents: dict[str, str] | list[str], limit: int = 200) -> list[str]:
    texts = contents if isinstance(contents, dict) else dict.fromkeys(contents, "")
    listed = [FileRef(path, len(texts[path]), None) for path in sorted(texts)]
    choice = choose(listed, "light", lambda file: texts[file.path].encode(), light_limit=limit)
    return [file.path for file in choice.files]


def test_the_order_is_guides_manifests_entry_points_documentation_configuration() -> None:
    paths = [
        ".editorconfig",
        ".github/workflows/ci.yml",
        "CONTRIBUTING.md",
        "Makefile",
        "README.md",
        "docs/deep/page.md",
        "docs/index.md",
        "pyproject.toml",
        "src/app/__main__.py",
        "src/app/models.py",
        "tests/test_models.py",
    ]
    assert light(paths) == [
        "CONTRIBUTING.md",
        "README.md",
        "Makefile",
        "pyproject.toml",
        ".editorconfig",
        "src/app/__main__.py",
        "docs/index.md",
        ".github/workflows/ci.yml",
    ]


@each(
    ("path", "role"),
    [
        ("README", Role.GUIDE), ("packages/a/readme.rst", Role.GUIDE), ("CLAUDE.md", Role.GUIDE),
        ("AGENTS.md", Role.GUIDE), (".github/copilot-instructions.md", Role.GUIDE),
        ("docs/README.md", Role.DOCUMENTATION), ("doc/getting-started.adoc", Role.DOCUMENTATION),
        ("pyproject.toml", Role.MANIFEST), ("requirements-dev.txt", Role.MANIFEST),
        ("packages/a/package.json", Role.MANIFEST), ("Cargo.toml", Role.MANIFEST), ("go.mod", Role.MANIFEST),
        ("pom.xml", Role.MANIFEST), ("app/build.gradle.kts", Role.MANIFEST), ("Gemfile", Role.MANIFEST),
        ("composer.json", Role.MANIFEST), ("CMakeLists.txt", Role.MANIFEST), ("Dockerfile", Role.MANIFEST),
        ("docker-compose.yml", Role.MANIFEST), ("src/App/App.csproj", Role.MANIFEST), ("main.py", Role.ENTRY),
        ("src/main.rs", Role.ENTRY), ("src/lib.rs", Role.ENTRY), ("cmd/tool/main.go", Role.ENTRY),
        ("manage.py", Role.ENTRY), ("src/index.ts", Role.ENTRY), ("server.js", Role.ENTRY), ("app.py", Role.ENTRY),
        ("com/x/ShopApplication.java", Role.ENTRY), ("src/components/button/index.ts", None),
        ("src/models/app.py", None), (".github/workflows/release.yaml", Role.CONFIGURATION),
        (".gitlab-ci.yml", Role.CONFIGURATION), ("tsconfig.build.json", Role.CONFIGURATION),
        ("eslint.config.mjs", Role.CONFIGURATION), (".eslintrc.json", Role.CONFIGURATION),
        ("config/database.yml", Role.CONFIGURATION), (".env.example", Role.CONFIGURATION),
        ("tests/fixtures/project/package.json", None), ("examples/shop/main.go", None), ("src/util.py", None),
        ("docs/guide/details.md", None),
    ],
)  # fmt: skip
def test_roles(path: str, role: Role | None) -> None:
    assert role_of(path) == role


def test_a_package_inside_has_its_own_entry_points() -> None:
    assert light(
        ["package.json", "packages/a/package.json", "packages/a/src/index.ts", "packages/a/src/x/index.ts"]
    ) == ["package.json", "packages/a/package.json", "packages/a/src/index.ts"]


def test_entry_points_that_manifests_declare() -> None:
    found = light(
        {
            "pyproject.toml": '[project.scripts]\nshop = "shop.cli.commands:main"\n',
            "src/shop/cli/commands.py": "",
            "src/shop/cli/other.py": "",
            "web/package.json": json.dumps(
                {"main": "./lib/start", "bin": {"x": "bin/x.js"}, "exports": {".": "./e.js"}}
            ),
            "web/lib/start.js": "",
            "web/bin/x.js": "",
            "web/e.js": "",
            "core/Cargo.toml": '[lib]\npath = "engine.rs"\n[[bin]]\nname = "t"\npath = "tool.rs"\n',
            "core/engine.rs": "",
            "core/tool.rs": "",
        }
    )
    assert found == [
        "pyproject.toml",
        "core/Cargo.toml",
        "web/package.json",
        "core/engine.rs",
        "core/tool.rs",
        "web/e.js",
        "web/bin/x.js",
        "web/lib/start.js",
        "src/shop/cli/commands.py",
    ]


@each(
    ("manifest", "begins"),
    [
        ('[project]\nname = "Shop-Client"\n', ["src/shop_client/__init__.py", "src/shop_client/api.py"]),
        ('[tool.poetry]\nname = "shop"\n', ["shop/__init__.py"]),
    ],
)
def test_a_python_package_begins_at_its_top(manifest: str, begins: list[str]) -> None:
    code = ("src/shop_client/__init__.py", "src/shop_client/api.py", "src/shop_client/models.py", "shop/__init__.py")
    assert light({"pyproject.toml": manifest, **dict.fromkeys(code, "")}) == ["pyproject.toml", *begins]


@each("text", ["", "{", "[]", '{"main": 3, "bin": ["x"]}', "[" * 100_000, '{"main": "../../etc/passwd"}', "\ufeff"])
def test_a_manifest_that_makes_no_sense_declares_nothing_that_exists(text: str) -> None:
    for name in ("package.json", "pyproject.toml", "Cargo.toml"):
        assert set(declared_entries(name, text)) <= {
            "../../etc/passwd",
            "../../etc/passwd.js",
            "../../etc/passwd/index.js",
        }
    assert light({"package.json": text}) == ["package.json"]


def test_large_configuration_is_not_light() -> None:
    assert light({"config/small.json": "{}\n", "config/large.json": "{}\n" * 10_000}) == ["config/small.json"]


def test_a_large_project_shows_some_of_each_role_within_the_limit() -> None:
    packages = [f"packages/p{n:03}" for n in range(300)]
    found = light(
        ["README.md", *(f"{one}/{name}" for one in packages for name in ("README.md", "package.json"))], limit=60
    )
    assert len(found) == 60
    assert found[0] == "README.md"
    assert sum(path.endswith("package.json") for path in found) == 20
    assert sum(path.endswith("README.md") for path in found) == 40


def test_the_rest_is_told_apart_from_what_the_limit_cut_off() -> None:
    listed = [FileRef(path, 1, None) for path in ("README.md", "a.py", "go.mod", "logo.png")]
    choice = choose(listed, "light", lambda file: b"x", light_limit=1)
    assert [file.path for file in choice.files] == ["README.md"]
    assert {one.path: one.reason for one in choice.left_out} == {
        "a.py": "not light",
        "go.mod": "over limit",
        "logo.png": "binary",
    }


def test_a_full_choice_begins_with_the_light_one() -> None:
    listed = [FileRef(path, 1, None) for path in ("a.py", "main.py", "pyproject.toml", "z/README.md")]
    choice = choose(listed, "full", lambda file: b"x")
    assert [file.path for file in choice.files] == ["pyproject.toml", "main.py", "z/README.md", "a.py"]
