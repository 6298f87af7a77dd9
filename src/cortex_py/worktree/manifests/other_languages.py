"""Dependencies and versions in the manifests of all languages but Python.

Readers raise ValueError for a file they cannot read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..formats import Value, XmlNode, number_lines, read_json, read_toml, read_xml
from .versions import Dependency, OwnVersion, Reader, VersionReader, pinned_version

__all__ = ["READERS", "VERSION_READERS"]

# The versions in lock files. Most are generated and are read line by line.
#
# A project's own packages appear in some lock files; they are left out, because nobody chose their version.

_GROUP = "lock"
_LOCK_LINE_MOST = 5_000
_FIELD = re.compile(r"(name|version|source) = (?:\"([^\"]*)\"|(\{.*))\s*")
_OWN_SOURCE = re.compile(r"\{\s*(editable|virtual|directory)\b")
_GO_SUM = re.compile(r"([\w.-]+(?:/[\w.~-]+)*) (v[^\s/]+) h1:\S+\s*")
_LOCKED_GEM = re.compile(r" {4}([\w.-]+) \(([^)]+)\)\s*")
_YARN_VERSION = re.compile(r" {2}version:? \"?([^\"\s]+)\"?\s*")
_YARN_SPEC = re.compile(r"(@?[^@\s]+)@(.*)")
_PNPM_OLD = re.compile(r"/((?:@[^/]+/)?[^/@]+)[/@](\d[^_(]*).*")
_PNPM = re.compile(r"((?:@[^/]+/)?[^/@]+)@(\d[^(]*).*")


def _lock_lines(text: str) -> Iterator[tuple[int, str]]:
    return ((number, line) for number, line in number_lines(text) if len(line) <= _LOCK_LINE_MOST)


def toml_lock(path: str, text: str) -> Iterator[Dependency]:
    """poetry.lock, uv.lock, pdm.lock and Cargo.lock: tables `[[package]]` with a name and a version."""
    needs_source = path.lower().endswith("cargo.lock")
    fields: dict[str, tuple[int, str]] = {}
    is_package = False
    for number, line in [*_lock_lines(text), (0, "[end]")]:
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


def _nested(content: Value) -> Iterator[Dependency]:
    waiting = [content]
    while waiting:
        for name, part in waiting.pop().at("dependencies").table.items():
            if version := part.at("version").text:
                yield Dependency(name, "", version, part.line, _GROUP)
            waiting.append(part)


def yarn_lock(_path: str, text: str) -> Iterator[Dependency]:
    name, constraint, at = "", "", 0
    for number, line in _lock_lines(text):
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
    for number, line in _lock_lines(text):
        if line[:1].strip():
            is_inside = line.rstrip() == "packages:"
        elif is_inside and line.startswith("  ") and line[2:3].strip() and line.rstrip().endswith((":", "{}")):
            key = line.strip().removesuffix("{}").rstrip().removesuffix(":").strip("'\"")
            if match := (_PNPM_OLD if key.startswith("/") else _PNPM).fullmatch(key):
                yield Dependency(match[1], "", match[2], number, _GROUP)


def go_sum(_path: str, text: str) -> Iterator[Dependency]:
    for number, line in _lock_lines(text):
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
    for number, line in _lock_lines(text):
        if line[:1].strip():
            section = line.strip()
        # "PATH" holds the gems of the project itself.
        elif section in ("GEM", "GIT") and (match := _LOCKED_GEM.fullmatch(line)):
            # A version may name its platform: "1.15.4-x86_64-linux".
            yield Dependency(match[1], "", match[2].partition("-")[0], number, _GROUP)


# -- By file name, in lower case ---------------------------------------------------------------------

_LOCK_READERS: list[tuple[str, Reader]] = [
    (r"pipfile\.lock", pip_lock), (r"(poetry|uv|pdm|cargo)\.lock", toml_lock),
    (r"package-lock\.json|npm-shrinkwrap\.json", node_lock), (r"yarn\.lock", yarn_lock),
    (r"pnpm-lock\.yaml", pnpm_lock), (r"go\.sum", go_sum), (r"composer\.lock", composer_lock),
    (r"gemfile\.lock", gem_lock),
]  # fmt: skip

_WHOLE = re.compile(r"=?\s*v?(\d+\.\d+\.\d+[\w.+-]*)")
_NODE_GROUPS = {
    "dependencies": "runtime", "devDependencies": "dev", "peerDependencies": "peer", "optionalDependencies": "optional",
}  # fmt: skip
_CARGO_GROUPS = {"dependencies": "runtime", "dev-dependencies": "dev", "build-dependencies": "build"}
_GO_LINE = re.compile(r"\s*([\w.-]+(?:/[\w.~-]+)*)\s+(v\d\S*)\s*(//.*)?")
_GO_LANGUAGE = re.compile(r"go\s+(\d[\w.]*)\s*(?://.*)?")
_GEM = re.compile(r"\s*gem[\s(]\s*['\"]([\w.-]+)['\"](.*)")
_RUBY = re.compile(r"\s*ruby[\s(]\s*['\"]([^'\"]+)['\"].*")
_GEM_CONSTRAINT = re.compile(r"\s*,\s*['\"]([^'\"]*)['\"]")
_GEM_GROUP = re.compile(r"\bgroups?(?::|\s*=>)\s*\[?\s*:(\w+)")
_GEM_BLOCK = re.compile(r"(\s*)group\s*\(?\s*:(\w+).*\bdo\s*(?:#.*)?")
_GRADLE = re.compile(
    r"\s*+(\w++)(?:\s*+\(|\s++)\s*+(?:(?:enforcedP|p)latform\s*+\(\s*+)?"
    r"['\"]([\w.-]+:[\w.-]+)(?::([^'\"@:]++))?[^'\"]*+['\"].*"
)
_GRADLE_NAMED = re.compile(
    r"\s*+(\w++)\s*+\(?\s*+group\s*[:=]\s*['\"]([\w.-]+)['\"]\s*,\s*name\s*[:=]\s*['\"]([\w.-]+)['\"]"
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


def _constraints(table: Value, group: str) -> Iterator[Dependency]:
    for name, part in table.table.items():
        constraint = "" if part.text in (None, "*") else part.text or ""
        yield Dependency(name, constraint, _pinned(constraint), part.line, group)


def json_version(_path: str, text: str) -> OwnVersion | None:
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
                yield Dependency(
                    real, "" if constraint == "*" else constraint, pinned_version(constraint), part.line, group
                )


def cargo_version(_path: str, text: str) -> OwnVersion | None:
    content = read_toml(text)
    package = content.at("package")
    return _stated(package.at("name"), package.at("version")) or _stated(
        package.at("name"), content.at("workspace", "package", "version")
    )


def _stated(name: Value, version: Value) -> OwnVersion | None:
    return OwnVersion(name.text, version.text, version.line) if version.text else None


# -- Lines -----------------------------------------------------------------------------------------


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """Lines that may name a dependency; a line of thousands of characters was not written by hand."""
    return ((number, line) for number, line in number_lines(text) if 0 < len(line) <= _LINE_MOST)


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


def gradle_version(_path: str, text: str) -> OwnVersion | None:
    for number, line in _lines(text):
        if match := _GRADLE_VERSION.fullmatch(line):
            return OwnVersion(None, match[1], number)
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


def _properties(root: XmlNode) -> dict[str, str]:
    place = root.child("properties")
    found = {one.tag: one.text.strip() for one in place.children} if place else {}
    parent = root.child("parent")
    for name in ("version", "groupId"):
        found[f"project.{name}"] = root.text_of(name) or (parent.text_of(name) if parent else "")
    return found


def _filled(text: str, properties: dict[str, str]) -> str:
    return _PROPERTY.sub(lambda match: properties.get(match[1]) or match[0], text)


def pom_version(_path: str, text: str) -> OwnVersion | None:
    root = read_xml(text)
    for place in (root, root.child("parent")):
        version = place.child("version") if place else None
        if root.tag == "project" and version is not None and version.text.strip():
            return OwnVersion(root.text_of("artifactId") or None, version.text.strip(), version.line)
    return None


def csproj(_path: str, text: str) -> Iterator[Dependency]:
    for one in read_xml(text).all():
        name = one.attributes.get("Include", "")
        if one.tag in ("PackageReference", "PackageVersion") and name:
            constraint = one.attributes.get("Version") or one.text_of("Version")
            yield Dependency(name, constraint, _nuget_version(constraint), one.line, "runtime")


def _nuget_version(constraint: str) -> str | None:
    # NuGet installs the lowest version that fits, so a plain version is exact.
    match = re.fullmatch(r"\[?(\d[\w.+-]*)\]?", constraint)
    return match[1] if match else None


def csproj_version(_path: str, text: str) -> OwnVersion | None:
    elements = list(read_xml(text).all())
    name = next((one.text.strip() for one in elements if one.tag in ("PackageId", "AssemblyName")), "")
    for one in elements:
        if one.tag in ("Version", "VersionPrefix") and re.match(r"\s*\d", one.text):
            return OwnVersion(name or None, one.text.strip(), one.line)
    return None


# -- By file name, in lower case ---------------------------------------------------------------------

READERS: list[tuple[str, Reader]] = [
    (r"package\.json", node), (r"cargo\.toml", cargo), (r"go\.mod", go_mod), (r"composer\.json", composer),
    (r"gemfile", gemfile), (r"pom\.xml", pom), (r"build\.gradle(\.kts)?", gradle),
    (r"[^/]+\.(cs|fs|vb)proj|directory\.packages\.props", csproj), *_LOCK_READERS,
]  # fmt: skip
VERSION_READERS: list[tuple[str, VersionReader]] = [
    (r"package\.json|composer\.json", json_version), (r"cargo\.toml", cargo_version), (r"pom\.xml", pom_version),
    (r"build\.gradle(\.kts)?", gradle_version), (r"[^/]+\.(cs|fs|vb)proj", csproj_version),
]  # fmt: skip
