"""The dependencies that manifests name, and the versions they state, for all languages but Python.

Readers raise ValueError for what they cannot read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from .dependency import Dependency, Stated, exact
from .key_lines import numbered
from .markup import Element, read_xml
from .parts import Part, read_json
from .toml_parts import read_toml

__all__ = [
    "cargo",
    "cargo_version",
    "composer",
    "csproj",
    "csproj_version",
    "gemfile",
    "go_mod",
    "gradle",
    "gradle_version",
    "json_version",
    "node",
    "pom",
    "pom_version",
]

_WHOLE = re.compile(r"=?\s*v?(\d+\.\d+\.\d+[\w.+-]*)")
_NODE_GROUPS = {
    "dependencies": "runtime",
    "devDependencies": "dev",
    "peerDependencies": "peer",
    "optionalDependencies": "optional",
}
_CARGO_GROUPS = {"dependencies": "runtime", "dev-dependencies": "dev", "build-dependencies": "build"}
_GO_LINE = re.compile(r"\s*([\w.-]+(?:/[\w.~-]+)*)\s+(v\d\S*)\s*(//.*)?")
_GO_LANGUAGE = re.compile(r"go\s+(\d[\w.]*)\s*(?://.*)?")
_GEM = re.compile(r"\s*gem[\s(]\s*['\"]([\w.-]+)['\"](.*)")
_RUBY = re.compile(r"\s*ruby[\s(]\s*['\"]([^'\"]+)['\"].*")
_GEM_CONSTRAINT = re.compile(r"\s*,\s*['\"]([^'\"]*)['\"]")
_GEM_GROUP = re.compile(r"\bgroups?(?::|\s*=>)\s*\[?\s*:(\w+)")
_GEM_BLOCK = re.compile(r"(\s*)group\s*\(?\s*:(\w+).*\bdo\s*(?:#.*)?")
_GRADLE = re.compile(
    r"\s*(\w+)\s*[( ]\s*(?:(?:enforcedP|p)latform\s*\(\s*)?['\"]([\w.-]+:[\w.-]+)(?::([^'\"@:]+))?[^'\"]*['\"].*"
)
_GRADLE_NAMED = re.compile(
    r"\s*(\w+)\s*\(?\s*group\s*[:=]\s*['\"]([\w.-]+)['\"]\s*,\s*name\s*[:=]\s*['\"]([\w.-]+)['\"]"
    r"(?:\s*,\s*version\s*[:=]\s*['\"]([^'\"]+)['\"])?.*"
)
_GRADLE_PLUGIN = re.compile(r"\s*id\s*\(?\s*['\"]([\w.-]+)['\"]\s*\)?\s*version\s*\(?\s*['\"]([^'\"]+)['\"].*")
_GRADLE_VERSION = re.compile(r"version\s*(?:=\s*)?['\"]([^'\"$]+)['\"].*")
_PROPERTY = re.compile(r"\$\{([\w.-]+)\}")
_LINE_MOST = 2_000


def _pinned(constraint: str) -> str | None:
    match = _WHOLE.fullmatch(constraint)
    return match[1] if match else None


# -- JSON and TOML ---------------------------------------------------------------------------------


def node(_path: str, text: str) -> Iterator[Dependency]:
    content = read_json(text)
    for table, group in _NODE_GROUPS.items():
        yield from _constraints(content.at(table), group)
    for name, part in content.at("engines").table.items():
        if part.text is not None:
            yield Dependency(name, part.text, _pinned(part.text), part.line, "language")


def composer(_path: str, text: str) -> Iterator[Dependency]:
    content = read_json(text)
    for table, group in (("require", "runtime"), ("require-dev", "dev")):
        for one in _constraints(content.at(table), group):
            # A package has a vendor; "php" and "ext-json" belong to the interpreter.
            is_package = "/" in one.name
            yield one if is_package else Dependency(one.name, one.constraint, one.version, one.line, "language")


def _constraints(table: Part, group: str) -> Iterator[Dependency]:
    for name, part in table.table.items():
        constraint = "" if part.text in (None, "*") else part.text or ""
        yield Dependency(name, constraint, _pinned(constraint), part.line, group)


def json_version(_path: str, text: str) -> Stated | None:
    content = read_json(text)
    return _stated(content.at("name"), content.at("version"))


def cargo(_path: str, text: str) -> Iterator[Dependency]:
    content = read_toml(text)
    language = content.at("package", "rust-version")
    if language.text is not None:
        yield Dependency("rust", language.text, None, language.line, "language")
    places = [content, content.at("workspace"), *content.at("target").table.values()]
    for place in places:
        for table, group in _CARGO_GROUPS.items():
            for name, part in place.at(table).table.items():
                constraint = part.text if part.text is not None else part.at("version").text or ""
                real = part.at("package").text or name
                yield Dependency(real, "" if constraint == "*" else constraint, exact(constraint), part.line, group)


def cargo_version(_path: str, text: str) -> Stated | None:
    content = read_toml(text)
    package = content.at("package")
    return _stated(package.at("name"), package.at("version")) or _stated(
        package.at("name"), content.at("workspace", "package", "version")
    )


def _stated(name: Part, version: Part) -> Stated | None:
    return Stated(name.text, version.text, version.line) if version.text else None


# -- Lines -----------------------------------------------------------------------------------------


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """Lines that may hold a dependency; one of thousands of characters was not written by hand."""
    return ((number, line) for number, line in numbered(text) if 0 < len(line) <= _LINE_MOST)


def go_mod(_path: str, text: str) -> Iterator[Dependency]:
    block = ""
    for number, line in _lines(text):
        bare = line.partition("//")[0].strip()
        if match := re.fullmatch(r"(\w+)\s*\(", bare):
            block = match[1]
        elif bare == ")":
            block = ""
        elif not block and (language := _GO_LANGUAGE.fullmatch(line.strip())):
            yield Dependency("go", language[1], None, number, "language")
        elif found := _go_requirement(line, block):
            group = "indirect" if "indirect" in (found[3] or "") else "runtime"
            yield Dependency(found[1], found[2], found[2], number, group)


def _go_requirement(line: str, block: str) -> re.Match[str] | None:
    if block:
        return _GO_LINE.fullmatch(line) if block == "require" else None
    stripped = line.strip()
    return _GO_LINE.fullmatch(stripped.removeprefix("require")) if stripped.startswith("require") else None


def gemfile(_path: str, text: str) -> Iterator[Dependency]:
    group, indent = "", None
    for number, line in _lines(text):
        if block := _GEM_BLOCK.fullmatch(line):
            indent, group = block[1], block[2]
        elif indent is not None and line.rstrip() == f"{indent}end":
            indent, group = None, ""
        elif match := _GEM.fullmatch(line):
            constraints, rest = [], match[2]
            while one := _GEM_CONSTRAINT.match(rest):
                constraints.append(one[1])
                rest = rest[one.end() :]
            own = _GEM_GROUP.search(rest)
            constraint = ", ".join(constraints)
            yield Dependency(
                match[1], constraint, _gem_version(constraint), number, _gem_group(own[1] if own else group)
            )
        elif ruby := _RUBY.fullmatch(line):
            yield Dependency("ruby", ruby[1], _gem_version(ruby[1]), number, "language")


def _gem_version(constraint: str) -> str | None:
    match = re.fullmatch(r"=?\s*(\d[\w.]*)", constraint)
    return match[1] if match else None


def _gem_group(name: str) -> str:
    return "dev" if name in ("development", "test") else f"optional:{name}" if name else "runtime"


# -- Gradle ----------------------------------------------------------------------------------------


def gradle(_path: str, text: str) -> Iterator[Dependency]:
    for number, line in _lines(text):
        if line.lstrip().startswith("//"):
            continue
        if match := _GRADLE_PLUGIN.fullmatch(line):
            yield Dependency(match[1], match[2], match[2], number, "build")
        elif (match := _GRADLE_NAMED.fullmatch(line)) and (group := _gradle_group(match[1])):
            yield _java(f"{match[2]}:{match[3]}", match[4] or "", number, group)
        elif (match := _GRADLE.fullmatch(line)) and (group := _gradle_group(match[1])):
            yield _java(match[2], match[3] or "", number, group)


def _gradle_group(word: str) -> str | None:
    lower = word.lower()
    if lower.startswith(("test", "androidtest", "debug")):
        return "dev"
    if lower in ("classpath", "kapt", "ksp", "annotationprocessor"):
        return "build"
    is_runtime = lower.endswith(("implementation", "api", "compile", "compileonly", "runtime", "runtimeonly"))
    return "runtime" if is_runtime else None


def gradle_version(_path: str, text: str) -> Stated | None:
    for number, line in _lines(text):
        if match := _GRADLE_VERSION.fullmatch(line):
            return Stated(None, match[1], number)
    return None


def _java(name: str, constraint: str, line: int, group: str) -> Dependency:
    is_version = re.fullmatch(r"\d[\w.-]*", constraint) and not constraint.endswith((".x", "."))
    return Dependency(name, constraint, constraint if is_version else None, line, group)


# -- XML -------------------------------------------------------------------------------------------


def pom(_path: str, text: str) -> Iterator[Dependency]:
    root = read_xml(text)
    properties = _properties(root)
    for holder, group in (("dependencies", ""), ("dependencyManagement", "managed"), ("build", "build")):
        place = root.child(holder)
        for one in place.all() if place else ():
            artifact = one.child("artifactId")
            if one.tag not in ("dependency", "plugin") or artifact is None:
                continue
            owner = _filled(one.text_of("groupId"), properties) or "org.apache.maven.plugins"
            constraint = _filled(one.text_of("version"), properties)
            scope = one.text_of("scope")
            own = "dev" if scope == "test" else "runtime" if scope in ("", "compile", "runtime") else scope
            yield _java(f"{owner}:{artifact.text.strip()}", constraint, artifact.line, group or own)


def _properties(root: Element) -> dict[str, str]:
    place = root.child("properties")
    found = {one.tag: one.text.strip() for one in place.children} if place else {}
    parent = root.child("parent")
    for name in ("version", "groupId"):
        found[f"project.{name}"] = root.text_of(name) or (parent.text_of(name) if parent else "")
    return found


def _filled(text: str, properties: dict[str, str]) -> str:
    return _PROPERTY.sub(lambda match: properties.get(match[1]) or match[0], text)


def pom_version(_path: str, text: str) -> Stated | None:
    root = read_xml(text)
    for place in (root, root.child("parent")):
        version = place.child("version") if place else None
        if root.tag == "project" and version is not None and version.text.strip():
            return Stated(root.text_of("artifactId") or None, version.text.strip(), version.line)
    return None


def csproj(_path: str, text: str) -> Iterator[Dependency]:
    for one in read_xml(text).all():
        name = one.attributes.get("Include", "")
        if one.tag in ("PackageReference", "PackageVersion") and name:
            constraint = one.attributes.get("Version") or one.text_of("Version")
            yield Dependency(name, constraint, _nuget_version(constraint), one.line, "runtime")


def _nuget_version(constraint: str) -> str | None:
    # The lowest version that fits is taken, so a plain one is what is installed.
    match = re.fullmatch(r"\[?(\d[\w.+-]*)\]?", constraint)
    return match[1] if match else None


def csproj_version(_path: str, text: str) -> Stated | None:
    elements = list(read_xml(text).all())
    name = next((one.text.strip() for one in elements if one.tag in ("PackageId", "AssemblyName")), "")
    for one in elements:
        if one.tag in ("Version", "VersionPrefix") and re.match(r"\s*\d", one.text):
            return Stated(name or None, one.text.strip(), one.line)
    return None
