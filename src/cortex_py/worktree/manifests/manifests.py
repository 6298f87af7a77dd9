"""Which packages and versions a file names: manifests and lock files of the usual package managers.

Given a path and a text; a file that is unknown, broken or too large tells nothing.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterable
from itertools import islice

from . import lock_readers as locks
from . import manifest_readers as others
from . import python_manifests as python
from .dependency import Dependency, Stated
from .key_lines import numbered
from .versions import admits, agrees, same_version

__all__ = [
    "Dependency",
    "Stated",
    "admits",
    "agrees",
    "dependencies",
    "is_dependency_file",
    "own_version",
    "same_package",
    "same_version",
    "short_name",
]

_CHARACTERS_MOST = 4_000_000
_DEPENDENCIES_MOST = 20_000

_Reader = Callable[[str, str], Iterable[Dependency]]
_VersionReader = Callable[[str, str], Stated | None]

_READERS: list[tuple[str, _Reader]] = [
    (r"pyproject\.toml", python.pyproject),
    (r"(.*/)?requirements[^/]*\.(txt|in)|(.*/)?requirements/[^/]+\.(txt|in)", python.requirements),
    (r"setup\.cfg", python.setup_cfg),
    (r"setup\.py", python.setup_py),
    (r"pipfile", python.pipfile),
    (r"environment\.ya?ml", python.conda),
    (r"pkg-info|(.*/)?[^/]+\.dist-info/metadata", python.metadata),
    (r"package\.json", others.node),
    (r"cargo\.toml", others.cargo),
    (r"go\.mod", others.go_mod),
    (r"composer\.json", others.composer),
    (r"gemfile", others.gemfile),
    (r"pom\.xml", others.pom),
    (r"build\.gradle(\.kts)?", others.gradle),
    (r"[^/]+\.(cs|fs|vb)proj|directory\.packages\.props", others.csproj),
    (r"pipfile\.lock", locks.pip_lock),
    (r"(poetry|uv|pdm|cargo)\.lock", locks.toml_lock),
    (r"package-lock\.json|npm-shrinkwrap\.json", locks.node_lock),
    (r"yarn\.lock", locks.yarn_lock),
    (r"pnpm-lock\.yaml", locks.pnpm_lock),
    (r"go\.sum", locks.go_sum),
    (r"composer\.lock", locks.composer_lock),
    (r"gemfile\.lock", locks.gem_lock),
]
_IN_PYTHON = re.compile(
    r"(?:__version__|VERSION|version)\s*(?::\s*[\w.\[\]]+\s*)?=\s*"
    r"(?:['\"]v?(\d[\w.!+-]*)['\"]|\((\s*\d+(?:\s*,\s*['\"]?\w+['\"]?)*)\s*,?\s*\))\s*(?:#.*)?"
)
_BARE = re.compile(r"v?(\d[\w.!+-]*)")
# Before this a line of code could be anything, and a version stands near the top of its file.
_LINES_MOST = 5_000


def _in_python(path: str, text: str) -> Stated | None:
    if posixpath.basename(path).lower() == "setup.py" and (found := python.setup_py_version(path, text)):
        return found
    for number, line in islice(numbered(text), _LINES_MOST):
        if len(line) < 300 and (match := _IN_PYTHON.fullmatch(line.rstrip())):
            version = match[1] or ".".join(part.strip(" '\"") for part in match[2].split(","))
            return Stated(None, version, number)
    return None


def _version_file(_path: str, text: str) -> Stated | None:
    for number, line in numbered(text):
        if line.strip():
            match = _BARE.fullmatch(line.strip())
            return Stated(None, match[1], number) if match else None
    return None


_VERSION_READERS: list[tuple[str, _VersionReader]] = [
    (r"pyproject\.toml", python.pyproject_version),
    (r"setup\.cfg", python.setup_cfg_version),
    (r"[^/]+\.py", _in_python),
    (r"pkg-info|(.*/)?[^/]+\.dist-info/metadata", python.metadata_version),
    (r"package\.json|composer\.json", others.json_version),
    (r"cargo\.toml", others.cargo_version),
    (r"pom\.xml", others.pom_version),
    (r"build\.gradle(\.kts)?", others.gradle_version),
    (r"[^/]+\.(cs|fs|vb)proj", others.csproj_version),
    (r"\.?version(\.txt)?", _version_file),
]
_BY_NAME = [(re.compile(rf"(?:.*/)?(?:{pattern})"), reader) for pattern, reader in _READERS]
_VERSION_BY_NAME = [(re.compile(rf"(?:.*/)?(?:{pattern})"), reader) for pattern, reader in _VERSION_READERS]


def is_dependency_file(path: str) -> bool:
    return _reader(path) is not None


def _reader(path: str) -> _Reader | None:
    lower = path.lower()
    return next((reader for pattern, reader in _BY_NAME if pattern.fullmatch(lower)), None)


def dependencies(path: str, text: str) -> list[Dependency]:
    """The packages that a file names, each with the line it stands on; none of an unknown or broken file."""
    reader = _reader(path)
    if reader is None or len(text) > _CHARACTERS_MOST:
        return []
    try:
        return list(reader(path, text.removeprefix("\ufeff")))[:_DEPENDENCIES_MOST]
    except (ValueError, SyntaxError, RecursionError):
        return []


def own_version(path: str, text: str) -> Stated | None:
    """The version that a project gives itself in a file."""
    lower = path.lower()
    reader = next((reader for pattern, reader in _VERSION_BY_NAME if pattern.fullmatch(lower)), None)
    if reader is None or len(text) > _CHARACTERS_MOST:
        return None
    try:
        return reader(path, text.removeprefix("\ufeff"))
    except (ValueError, SyntaxError, RecursionError):
        return None


# "/v2" and ".v2" tell the version of a Go module, not its name.
_GO_VERSION = re.compile(r"[/.]v\d+$")
_GO_MODULE = re.compile(r"[\w-]+(\.[\w-]+)+/.+")
_JAVA = re.compile(r"[\w.-]+:([\w.-]+)")
_SEPARATORS = re.compile(r"[-_.]+")


def short_name(name: str) -> str:
    """What people call a package: of a Go module the last part, of a Java artifact the one after its owner."""
    if match := _JAVA.fullmatch(name):
        return match[1]
    return _GO_VERSION.sub("", name).rpartition("/")[2] if _GO_MODULE.fullmatch(name) else name


def same_package(a: str, b: str) -> bool:
    """Whether two names mean one package; a scope counts, and a whole path only against a whole path."""
    left, right = a.strip(), b.strip()
    if (short_name(left) == left) != (short_name(right) == right):
        left, right = short_name(left), short_name(right)
    return _alike(left) == _alike(right)


def _alike(name: str) -> str:
    whole = _GO_VERSION.sub("", name) if _GO_MODULE.fullmatch(name) else name
    return _SEPARATORS.sub("-", whole).lower()
