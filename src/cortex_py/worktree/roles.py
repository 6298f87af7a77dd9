"""What a file is in its project, told by its name: a guide, a manifest, an entry point, configuration.

Manifests also say which files a program begins with; that is read from their text. Nothing here touches
the disk.
"""

from __future__ import annotations

import json
import posixpath
import re
import tomllib
from collections.abc import Collection, Iterator
from enum import IntEnum

__all__ = ["Role", "declared_entries", "is_manifest", "role_of"]


class Role(IntEnum):
    """In order of importance to a newcomer."""

    GUIDE = 0
    MANIFEST = 1
    ENTRY = 2
    DOCUMENTATION = 3
    CONFIGURATION = 4


_GUIDE = re.compile(
    r"readme([._-].*)?|(agents|claude|gemini|copilot-instructions|contributing|architecture|design|development|hacking)"
    r"\.(md|mdx|rst|txt|adoc)|\.cursorrules|llms\.txt"
)
_MANIFEST = re.compile(
    r"pyproject\.toml|setup\.(cfg|py)|requirements([._-].*)?\.(txt|in)|pipfile|environment\.ya?ml|package\.json|deno\.jsonc?"
    r"|pnpm-workspace\.yaml|lerna\.json|nx\.json|turbo\.json|cargo\.toml|go\.(mod|work)|pom\.xml|(build|settings)\.gradle(\.kts)?"
    r"|build\.sbt|gemfile|.*\.gemspec|composer\.json|cmakelists\.txt|(gnu)?makefile|justfile|taskfile\.ya?ml|meson\.build"
    r"|build\.bazel|module\.bazel|workspace(\.bazel)?|(docker|container)file([._-].*)?|.*\.dockerfile"
    r"|(docker-)?compose([._-].*)?\.ya?ml|mix\.exs|rebar\.config|pubspec\.yaml|package\.swift|podfile|.*\.(cs|fs|vb)proj|.*\.sln"
    r"|directory\.(build|packages)\.props|stack\.yaml|.*\.cabal|dune-project|build\.zig(\.zon)?|project\.toml|description|flake\.nix"
)
_ENTRY = re.compile(
    r"main\.(py|js|mjs|cjs|ts|tsx|jsx|mts|go|rs|c|cc|cpp|cxx|java|kt|kts|swift|scala|rb|php|dart|zig|lua|sh|ex|hs|cs)"
    r"|__main__\.py|manage\.py|[aw]sgi\.py|program\.cs|application\.(java|kt)|.*application\.java|config\.ru"
)
# These names are common inside a project; only beside its manifest do they begin it.
_ENTRY_AT_TOP = re.compile(
    r"(index|app|server|cli|lib|mod|start)\.(py|js|mjs|cjs|ts|tsx|jsx|mts|go|rs|c|cc|cpp|java|kt|swift|rb|php|vue|svelte|html|lua|sh)"
)
_SOURCE_FOLDERS = ("", "src", "app", "lib", "source")
_COMMAND = re.compile(r"(.*/)?(cmd|bin)/[^/]+/main\.[a-z]+")
_DOCUMENTATION = re.compile(
    r"(.*/)?(docs?|documentation)/(index|readme|overview|introduction|getting[-_]?started|architecture|design)"
    r"\.(md|mdx|rst|adoc|txt)"
)
_CONFIGURATION = re.compile(
    r"\.editorconfig|\.gitattributes|\.pre-commit-config\.yaml|tox\.ini|noxfile\.py|pytest\.ini|mypy\.ini|\.?ruff\.toml|\.flake8"
    r"|\.pylintrc|\.coveragerc|[jt]sconfig([._-].*)?\.json|\.eslintrc(\..*)?|\.prettierrc(\..*)?|biome\.jsonc?|\.babelrc(\..*)?"
    r"|\.swcrc|\.stylelintrc(\..*)?|\.(nvmrc|node-version|python-version|ruby-version|tool-versions)|rust-toolchain(\.toml)?"
    r"|(eslint|prettier|babel|vite|vitest|webpack|rollup|next|nuxt|svelte|astro|jest|playwright|cypress|tailwind|postcss|tsup"
    r"|metro|angular|karma|commitlint)\.(config\.)?[cm]?(js|ts|json)"
    r"|\.?rustfmt\.toml|\.?clippy\.toml|\.golangci\.ya?ml|\.rubocop\.yml|phpunit\.xml(\.dist)?|phpstan\.neon(\.dist)?"
    r"|\.clang-(format|tidy)|procfile|jenkinsfile|\.gitlab-ci\.yml|\.travis\.yml|appveyor\.yml|azure-pipelines\.ya?ml"
    r"|bitbucket-pipelines\.yml|\.drone\.yml|cloudbuild\.yaml|netlify\.toml|vercel\.json|fly\.toml|render\.yaml|mkdocs\.ya?ml"
    r"|\.readthedocs\.ya?ml|dependabot\.yml|renovate\.json5?|\.env\.(example|sample|template)|alembic\.ini|codecov\.ya?ml"
)
_CONFIGURATION_PATH = re.compile(
    r"(.*/)?(\.github/workflows/[^/]+\.ya?ml|\.github/actions/[^/]+/action\.ya?ml|\.circleci/config\.yml"
    r"|(config|conf|configs|configuration)/[^/]+\.(ya?ml|toml|json|ini|cfg))"
)
# What lies here is made to be tested, shown or copied, and would pass for the project itself.
_ASIDE = re.compile(
    r"(^|/)(tests?|__tests__|specs?|e2e|fixtures?|testdata|test-data|mocks?|__mocks__|examples?|samples?|demos?|benchmarks?"
    r"|bench|templates?|scaffolds?|playground|sandbox|i18n|locales?)/"
)


def is_manifest(path: str) -> bool:
    return _MANIFEST.fullmatch(posixpath.basename(path).lower()) is not None


def role_of(path: str, manifest_folders: Collection[str] = ("",)) -> Role | None:
    """The role of a path, given the folders that hold a manifest; None for the rest of the project."""
    lower = path.lower()
    name = posixpath.basename(lower)
    if _ASIDE.search(lower):
        return None
    if _GUIDE.fullmatch(name):
        in_docs = _DOCUMENTATION.fullmatch(lower) is not None
        return Role.DOCUMENTATION if in_docs else Role.GUIDE
    if _MANIFEST.fullmatch(name):
        return Role.MANIFEST
    if _ENTRY.fullmatch(name) or _COMMAND.fullmatch(lower):
        return Role.ENTRY
    if _ENTRY_AT_TOP.fullmatch(name) and _is_top(posixpath.dirname(path), manifest_folders):
        return Role.ENTRY
    if _DOCUMENTATION.fullmatch(lower):
        return Role.DOCUMENTATION
    if _CONFIGURATION.fullmatch(name) or _CONFIGURATION_PATH.fullmatch(lower):
        return Role.CONFIGURATION
    return None


def _is_top(folder: str, manifest_folders: Collection[str]) -> bool:
    parent, name = posixpath.split(folder)
    return folder in manifest_folders or (name in _SOURCE_FOLDERS and parent in manifest_folders)


def declared_entries(path: str, text: str) -> Iterator[str]:
    """Paths that a manifest names as the beginning of a program; they need not exist."""
    folder, name = posixpath.split(path)
    readers = {"pyproject.toml": _python_entries, "package.json": _node_entries, "Cargo.toml": _rust_entries}
    reader = readers.get(name)
    if reader is None:
        return
    try:
        manifest = json.loads(text) if name.endswith(".json") else tomllib.loads(text)
    except (ValueError, RecursionError):
        return
    for entry in reader(manifest):
        yield posixpath.normpath(posixpath.join(folder, entry))


def _python_entries(manifest: object) -> Iterator[str]:
    tables = [("project", "scripts"), ("project", "gui-scripts"), ("tool", "poetry", "scripts")]
    for table in tables:
        for target in _strings(_at(manifest, *table)):
            module = target.partition(":")[0].strip().replace(".", "/")
            for base in ("", "src/"):
                yield f"{base}{module}.py"
                yield f"{base}{module}/__init__.py"


def _node_entries(manifest: object) -> Iterator[str]:
    fields = [("main",), ("module",), ("browser",), ("bin",), ("exports",), ("exports", ".")]
    for field in fields:
        for target in _strings(_at(manifest, *field)):
            yield target
            yield f"{target}.js"
            yield f"{target}/index.js"


def _rust_entries(manifest: object) -> Iterator[str]:
    yield from _strings(_at(manifest, "lib", "path"))
    programs = _at(manifest, "bin")
    for program in programs if isinstance(programs, list) else []:
        yield from _strings(_at(program, "path"))


def _at(value: object, *keys: str) -> object:
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _strings(value: object) -> Iterator[str]:
    """A text itself, or the texts directly inside a table."""
    for one in value.values() if isinstance(value, dict) else (value,):
        if isinstance(one, str) and one:
            yield one
