"""The packages and versions that manifests and lock files of the usual package managers name.

A file that is unknown, broken or too large names none.
"""

from __future__ import annotations

import posixpath
import re
from itertools import islice

from ..formats import number_lines
from . import other_languages as others
from . import python
from .versions import Dependency, OwnVersion, Reader, VersionReader, admits, agrees, same_version

__all__ = [
    "Dependency", "OwnVersion", "admits", "agrees", "is_dependency_file", "read_dependencies", "read_own_version",
    "same_package", "same_version", "short_name",
]  # fmt: skip

_CHARACTERS_MOST = 4_000_000
_DEPENDENCIES_MOST = 20_000
_IN_PYTHON = re.compile(
    r"(?:__version__|VERSION|version)\s*(?::\s*[\w.\[\]]+\s*)?=\s*"
    r"(?:['\"]v?(\d[\w.!+-]*)['\"]|\((\s*\d+(?:\s*,\s*['\"]?\w+['\"]?)*)\s*,?\s*\))\s*(?:#.*)?"
)
_BARE = re.compile(r"v?(\d[\w.!+-]*)")
# A version is stated near the top of its file.
_LINES_MOST = 5_000


def _in_python(path: str, text: str) -> OwnVersion | None:
    if posixpath.basename(path).lower() == "setup.py" and (found := python.setup_py_version(path, text)):
        return found
    for number, line in islice(number_lines(text), _LINES_MOST):
        if len(line) < 300 and (match := _IN_PYTHON.fullmatch(line.rstrip())):
            version = match[1] or ".".join(part.strip(" '\"") for part in match[2].split(","))
            return OwnVersion(None, version, number)
    return None


def _version_file(_path: str, text: str) -> OwnVersion | None:
    for number, line in number_lines(text):
        if line.strip():
            match = _BARE.fullmatch(line.strip())
            return OwnVersion(None, match[1], number) if match else None
    return None


_VERSION_READERS: list[tuple[str, VersionReader]] = [
    *python.VERSION_READERS, (r"[^/]+\.py", _in_python), *others.VERSION_READERS,
    (r"\.?version(\.txt)?", _version_file),
]  # fmt: skip
_READERS: list[tuple[str, Reader]] = [*python.READERS, *others.READERS]
_BY_NAME = [(re.compile(rf"(?:.*/)?(?:{pattern})"), reader) for pattern, reader in _READERS]
_VERSION_BY_NAME = [(re.compile(rf"(?:.*/)?(?:{pattern})"), reader) for pattern, reader in _VERSION_READERS]


def is_dependency_file(path: str) -> bool:
    return _reader(path) is not None


def _reader(path: str) -> Reader | None:
    lower = path.lower()
    return next((reader for pattern, reader in _BY_NAME if pattern.fullmatch(lower)), None)


def read_dependencies(path: str, text: str) -> list[Dependency]:
    """The packages that a file names, each with its line; none if the file is unknown or broken."""
    reader = _reader(path)
    if reader is None or len(text) > _CHARACTERS_MOST:
        return []
    try:
        return list(reader(path, text.removeprefix("\ufeff")))[:_DEPENDENCIES_MOST]
    except (ValueError, SyntaxError, RecursionError):
        return []


def read_own_version(path: str, text: str) -> OwnVersion | None:
    """The project's own version, if the file states one."""
    lower = path.lower()
    reader = next((reader for pattern, reader in _VERSION_BY_NAME if pattern.fullmatch(lower)), None)
    if reader is None or len(text) > _CHARACTERS_MOST:
        return None
    try:
        return reader(path, text.removeprefix("\ufeff"))
    except (ValueError, SyntaxError, RecursionError):
        return None


# "/v2" and ".v2" are the version of a Go module, not part of its name.
_GO_VERSION = re.compile(r"[/.]v\d+$")
_GO_MODULE = re.compile(r"[\w-]+(\.[\w-]+)+/.+")
_JAVA = re.compile(r"[\w.-]+:([\w.-]+)")
_SEPARATORS = re.compile(r"[-_.]+")


def short_name(name: str) -> str:
    """The usual name of a package: the last part of a Go module, the artifact of a Java coordinate."""
    if match := _JAVA.fullmatch(name):
        return match[1]
    return _GO_VERSION.sub("", name).rpartition("/")[2] if _GO_MODULE.fullmatch(name) else name


def same_package(a: str, b: str) -> bool:
    """Whether two names mean the same package; scopes count, full paths only against full paths."""
    left, right = a.strip(), b.strip()
    if (short_name(left) == left) != (short_name(right) == right):
        left, right = short_name(left), short_name(right)
    return _alike(left) == _alike(right)


def _alike(name: str) -> str:
    whole = _GO_VERSION.sub("", name) if _GO_MODULE.fullmatch(name) else name
    return _SEPARATORS.sub("-", whole).lower()
