"""The versions that lock files have chosen. Most are written by a program and are read line by line.

A project's own packages stand in some lock files too; they are left out, since nobody chose their version.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from .dependency import Dependency
from .key_lines import numbered
from .parts import Part, read_json

__all__ = ["composer_lock", "gem_lock", "go_sum", "node_lock", "pip_lock", "pnpm_lock", "toml_lock", "yarn_lock"]

_GROUP = "lock"
_LINE_MOST = 5_000
_FIELD = re.compile(r"(name|version|source) = (?:\"([^\"]*)\"|(\{.*))\s*")
_OWN_SOURCE = re.compile(r"\{\s*(editable|virtual|directory)\b")
_GO_SUM = re.compile(r"([\w.-]+(?:/[\w.~-]+)*) (v[^\s/]+) h1:\S+\s*")
_GEM = re.compile(r" {4}([\w.-]+) \(([^)]+)\)\s*")
_YARN_VERSION = re.compile(r" {2}version:? \"?([^\"\s]+)\"?\s*")
_YARN_SPEC = re.compile(r"(@?[^@\s]+)@(.*)")
_PNPM_OLD = re.compile(r"/((?:@[^/]+/)?[^/@]+)[/@](\d[^_(]*).*")
_PNPM = re.compile(r"((?:@[^/]+/)?[^/@]+)@(\d[^(]*).*")


def _lines(text: str) -> Iterator[tuple[int, str]]:
    return ((number, line) for number, line in numbered(text) if len(line) <= _LINE_MOST)


def toml_lock(path: str, text: str) -> Iterator[Dependency]:
    """poetry.lock, uv.lock, pdm.lock and Cargo.lock: tables `[[package]]` with a name and a version."""
    needs_source = path.lower().endswith("cargo.lock")
    fields: dict[str, tuple[int, str]] = {}
    is_package = False
    for number, line in [*_lines(text), (0, "[end]")]:
        if line.startswith("["):
            if is_package and "name" in fields and "version" in fields:
                source = fields.get("source", (0, ""))[1]
                if not _OWN_SOURCE.match(source) and (source or not needs_source):
                    at, name = fields["name"]
                    yield Dependency(name, "", fields["version"][1], at, _GROUP)
            is_package, fields = line.strip() == "[[package]]", {}
        elif is_package and (match := _FIELD.fullmatch(line)):
            fields.setdefault(match[1], (number, match[2] if match[2] is not None else match[3]))


def pip_lock(_path: str, text: str) -> Iterator[Dependency]:
    content = read_json(text)
    for table in ("default", "develop"):
        for name, part in content.at(table).table.items():
            constraint = part.at("version").text or ""
            version = constraint.removeprefix("==") if constraint.startswith("==") else None
            yield Dependency(name, constraint, version, part.line, _GROUP)


def node_lock(_path: str, text: str) -> Iterator[Dependency]:
    """package-lock.json and npm-shrinkwrap.json, in all their versions."""
    content = read_json(text)
    packages = content.at("packages").table
    for path, part in packages.items():
        place, _, name = path.rpartition("node_modules/")
        version = part.at("version").text
        if name and (place or path.startswith("node_modules/")) and version:
            yield Dependency(name, "", version, part.line, _GROUP)
    if not packages:
        yield from _nested(content)


def _nested(content: Part) -> Iterator[Dependency]:
    waiting = [content]
    while waiting:
        for name, part in waiting.pop().at("dependencies").table.items():
            if version := part.at("version").text:
                yield Dependency(name, "", version, part.line, _GROUP)
            waiting.append(part)


def yarn_lock(_path: str, text: str) -> Iterator[Dependency]:
    name, constraint, at = "", "", 0
    for number, line in _lines(text):
        if line[:1] not in ("", " ", "#"):
            specs = [_YARN_SPEC.fullmatch(one.strip(' "')) for one in line.rstrip().removesuffix(":").split(",")]
            known = [one for one in specs if one]
            # "root@workspace:." is a package of the project itself.
            is_own = any(one[2].startswith("workspace:") for one in known)
            name = known[0][1] if known and not is_own else ""
            constraint = ", ".join(one[2].removeprefix("npm:") for one in known)
            at = number
        elif name and (match := _YARN_VERSION.fullmatch(line)):
            yield Dependency(name, constraint, match[1], at, _GROUP)
            name = ""


def pnpm_lock(_path: str, text: str) -> Iterator[Dependency]:
    is_inside = False
    for number, line in _lines(text):
        if line[:1].strip():
            is_inside = line.rstrip() == "packages:"
        elif is_inside and line.startswith("  ") and line[2:3].strip() and line.rstrip().endswith((":", "{}")):
            key = line.strip().removesuffix("{}").rstrip().removesuffix(":").strip("'\"")
            if match := (_PNPM_OLD if key.startswith("/") else _PNPM).fullmatch(key):
                yield Dependency(match[1], "", match[2], number, _GROUP)


def go_sum(_path: str, text: str) -> Iterator[Dependency]:
    for number, line in _lines(text):
        if match := _GO_SUM.fullmatch(line):
            yield Dependency(match[1], "", match[2], number, _GROUP)


def composer_lock(_path: str, text: str) -> Iterator[Dependency]:
    content = read_json(text)
    for table in ("packages", "packages-dev"):
        for part in content.at(table).items:
            name, version = part.at("name"), part.at("version").text
            if name.text and version:
                yield Dependency(name.text, "", version, name.line, _GROUP)


def gem_lock(_path: str, text: str) -> Iterator[Dependency]:
    section = ""
    for number, line in _lines(text):
        if line[:1].strip():
            section = line.strip()
        # "PATH" holds the gems of the project itself.
        elif section in ("GEM", "GIT") and (match := _GEM.fullmatch(line)):
            # A version may name its platform: "1.15.4-x86_64-linux".
            yield Dependency(match[1], "", match[2].partition("-")[0], number, _GROUP)
