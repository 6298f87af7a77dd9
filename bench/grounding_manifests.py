"""The dependencies and the version that a project's manifests declare, with the lines that say so."""

from __future__ import annotations

import ast
import configparser
import json
import re
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

_REQUIREMENT = re.compile(
    r"^([A-Za-z0-9][\w.-]*)\s*(?:\[[^\]]*\])?\s*\(?((?:[<>=!~]=?=?\s*[\w.*+!-]+\s*,?\s*)*)\)?\s*(?:;.*)?$"
)
_GROUPS = {"dependencies": "runtime", "devDependencies": "development", "peerDependencies": "peer"}


@dataclass(frozen=True)
class Dependency:
    name: str
    constraint: str
    """As declared, without spaces; empty where any version does."""
    path: str
    line: int
    group: str
    """`runtime`, `development`, `peer`, `optional`, `build` or `locked`."""


def dependencies(path: str, text: str) -> list[Dependency]:
    """What a file declares, if it is a manifest at the project's root."""
    name = PurePosixPath(path).name
    if "/" in path:
        return []
    try:
        if name == "package.json":
            found = list(_package_json(text))
        elif name == "pyproject.toml":
            found = list(_pyproject(tomllib.loads(text)))
        elif name == "setup.cfg":
            found = list(_setup_cfg(text))
        elif name == "setup.py":
            found = list(_setup_py(text))
        elif re.fullmatch(r"requirements[\w-]*\.txt", name):
            rows = (line.split(" --hash")[0].rstrip(" \\") for line in text.splitlines() if line[:1].isalpha())
            found = list(_requirements((row.split(" #")[0] for row in rows), "locked"))
        else:
            return []
    except (ValueError, configparser.Error, SyntaxError):
        return []
    return [Dependency(one, limit, path, _line(text, one, limit, group), group) for one, limit, group in found]


def version(path: str, text: str) -> tuple[str, int] | None:
    """The version that a manifest gives the project itself, and its line."""
    name, found = PurePosixPath(path).name, None
    try:
        if name == "package.json":
            found = json.loads(text).get("version")
        elif name == "pyproject.toml":
            found = tomllib.loads(text).get("project", {}).get("version")
        elif name == "setup.cfg":
            parser = configparser.ConfigParser(interpolation=None)
            parser.read_string(text)
            found = parser.get("metadata", "version", fallback=None)
    except (ValueError, configparser.Error):
        return None
    if not isinstance(found, str) or not re.fullmatch(r"\d+(\.\d+)+\w*", found):
        return None
    for number, line in enumerate(text.splitlines(), 1):
        if re.match(rf"\s*[\"']?version[\"']?\s*[:=]\s*[\"']?{re.escape(found)}\b", line):
            return found, number
    return None


def _package_json(text: str) -> Iterator[tuple[str, str, str]]:
    content: dict[str, Any] = json.loads(text)
    for key, group in _GROUPS.items():
        for name, limit in content.get(key, {}).items():
            if isinstance(limit, str) and re.match(r"[\^~<>=v]*\s*\d", limit):
                yield name, limit, group


def _pyproject(content: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    declared = content.get("project", {})
    yield from _requirements(declared.get("dependencies", []), "runtime")
    for rows in declared.get("optional-dependencies", {}).values():
        yield from _requirements(rows, "optional")
    yield from _requirements(content.get("build-system", {}).get("requires", []), "build")


def _setup_cfg(text: str) -> Iterator[tuple[str, str, str]]:
    parser = configparser.ConfigParser(interpolation=None)
    parser.read_string(text)
    rows = parser.get("options", "install_requires", fallback="").splitlines()
    yield from _requirements(rows, "runtime")
    if parser.has_section("options.extras_require"):
        for _, value in parser.items("options.extras_require"):
            yield from _requirements(value.splitlines(), "optional")


def _setup_py(text: str) -> Iterator[tuple[str, str, str]]:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.keyword) and node.arg == "install_requires" and isinstance(node.value, ast.List):
            rows = [one.value for one in node.value.elts if isinstance(one, ast.Constant)]
            yield from _requirements([row for row in rows if isinstance(row, str)], "runtime")


def _requirements(rows: Iterable[str], group: str) -> Iterator[tuple[str, str, str]]:
    for row in rows:
        match = _REQUIREMENT.match(row.strip())
        if match is not None:
            yield match[1], re.sub(r"\s+", "", match[2]).rstrip(","), group


def _line(text: str, name: str, limit: str, group: str) -> int:
    """The first line that names the dependency as its manifest does, below the heading of its group if it has one."""
    lines = text.splitlines()
    heading = next((key for key, value in _GROUPS.items() if value == group), "")
    start = next((n for n, line in enumerate(lines) if heading and f'"{heading}"' in line), 0)
    limits = re.escape(limit[:6]) if limit else ""
    for pattern in (rf"(?<![\w.-]){re.escape(name)}(?![\w.-]).*{limits}", rf"(?<![\w.-]){re.escape(name)}(?![\w.-])"):
        for number, line in enumerate(lines[start:], start + 1):
            if re.search(pattern, line) and not re.match(r"\s*(?:name|\"name\")\s*[=:]", line):
                return number
    return 1
