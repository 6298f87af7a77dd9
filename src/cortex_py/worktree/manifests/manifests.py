"""The packages and versions that manifests and lock files of the usual package managers name.

A file that is unknown, broken or too large names none: the readers raise ValueError for what they cannot read.
"""

from __future__ import annotations

import ast
import posixpath
import re
from collections import deque
from collections.abc import Iterator
from itertools import islice

from ..formats import Datum, XmlNode, ini_entries, number_lines, read_json, read_toml, read_xml, read_yaml
from .versions import (
    Dependency,
    OwnVersion,
    Reader,
    VersionReader,
    admits,
    agrees,
    pinned_version,
    read_requirement,
    same_version,
)

__all__ = [
    "Dependency", "OwnVersion", "admits", "agrees", "is_dependency_file", "read_dependencies", "read_own_version",
    "same_package", "same_version", "short_name",
]  # fmt: skip

_CHARACTERS_MOST = 4_000_000
_DEPENDENCIES_MOST = 20_000


# -- Python ----------------------------------------------------------------------------------------

_DEVELOPMENT = re.compile(r"(^|[._/-])(dev|develop|development|tests?|testing|lint|docs?|typing|ci)([._/-]|$)")
_OPTION = re.compile(r"\s--?[A-Za-z].*")
_NOTE = re.compile(r"(^|\s)#.*")
_CONDA = re.compile(r"(?:[\w./-]+::)?([A-Za-z0-9_][\w.-]*)\s*(.*)")
_CONDA_PIN = re.compile(r"=\s*(\d[\w.]*?)(?:=[^=]*)?")
_HEADER = re.compile(r"([A-Za-z-]+):[ \t]*(.*)")
_SCRIPT_MOST = 500_000
_SETUP_LISTS = {"install_requires": "runtime", "setup_requires": "build", "tests_require": "dev"}


def _stated(content: Datum, *tables: tuple[str, ...]) -> OwnVersion | None:
    """The version in the first of these tables that has one, with the name beside it."""
    for keys in tables:
        table = content.at(*keys)
        version = table.at("version")
        if version.text:
            return OwnVersion(table.at("name").text, version.text, version.line)
    return None


def _group(name: str) -> str:
    return "dev" if _DEVELOPMENT.search(name.lower()) else f"optional:{name}"


def _requirement_parts(parts: Datum, group: str) -> Iterator[Dependency]:
    for part in parts.items:
        if part.text is not None and (found := read_requirement(part.text)):
            yield found.dependency(part.line, group)


# -- pyproject.toml and Pipfile --------------------------------------------------------------------


def pyproject(_path: str, text: str) -> Iterator[Dependency]:
    content = read_toml(text)
    project, poetry = content.at("project"), content.at("tool", "poetry")
    python = project.at("requires-python")
    if python.text is not None:
        yield Dependency("python", python.text, pinned_version(python.text), python.line, "language")
    yield from _requirement_parts(content.at("build-system", "requires"), "build")
    yield from _requirement_parts(project.at("dependencies"), "runtime")
    for name, parts in project.at("optional-dependencies").table.items():
        yield from _requirement_parts(parts, f"optional:{name}")
    for name, parts in content.at("dependency-groups").table.items():
        yield from _requirement_parts(parts, _group(name).removeprefix("optional:"))
    yield from _tables(poetry.at("dependencies"), "runtime")
    yield from _tables(poetry.at("dev-dependencies"), "dev")
    for name, group in poetry.at("group").table.items():
        yield from _tables(group.at("dependencies"), _group(name).removeprefix("optional:"))


def pipfile(_path: str, text: str) -> Iterator[Dependency]:
    content = read_toml(text)
    yield from _tables(content.at("packages"), "runtime")
    yield from _tables(content.at("dev-packages"), "dev")
    python = content.at("requires", "python_version")
    if python.text is not None:
        yield Dependency("python", python.text, None, python.line, "language")


def _tables(table: Datum, group: str) -> Iterator[Dependency]:
    """Names with a constraint, or with a table that may contain one."""
    for name, part in table.table.items():
        # With several constraints for several platforms, the first is used.
        one = part.items[0] if part.items else part
        constraint = one.text if one.text is not None else one.at("version").text or ""
        constraint = "" if constraint == "*" else constraint
        is_exact = re.fullmatch(r"\d+\.\d+[\w.]*", constraint)
        version = constraint if is_exact else pinned_version(constraint)
        yield Dependency(name, constraint, version, part.line, "language" if name == "python" else group)


# -- requirements.txt, METADATA --------------------------------------------------------------------


def requirements(path: str, text: str) -> Iterator[Dependency]:
    stem = posixpath.splitext(posixpath.join(posixpath.basename(posixpath.dirname(path)), posixpath.basename(path)))[0]
    group = "dev" if _DEVELOPMENT.search(stem.lower()) else "runtime"
    goes_on = False
    for number, line in number_lines(text):
        was_open, goes_on = goes_on, line.rstrip().endswith("\\")
        if was_open or line.lstrip().startswith(("#", "-")):
            continue
        plain = _OPTION.sub("", _NOTE.sub("", line)).rstrip(" \t\\")
        if found := read_requirement(plain):
            yield found.dependency(number, group)


def metadata(_path: str, text: str) -> Iterator[Dependency]:
    for number, key, value in _headers(text):
        if key == "requires-python":
            yield Dependency("python", value, pinned_version(value), number, "language")
        elif key == "requires-dist" and (found := read_requirement(value)):
            yield found.dependency(number, f"optional:{found.extra}" if found.extra else "runtime")


def metadata_version(_path: str, text: str) -> OwnVersion | None:
    fields = {key: (number, value) for number, key, value in _headers(text)}
    if "version" not in fields:
        return None
    number, version = fields["version"]
    return OwnVersion(fields["name"][1] if "name" in fields else None, version, number)


def _headers(text: str) -> Iterator[tuple[int, str, str]]:
    for number, line in number_lines(text):
        # What follows an empty line is the description.
        if not line.strip():
            return
        if match := _HEADER.fullmatch(line):
            yield number, match[1].lower(), match[2].strip()


# -- environment.yml -------------------------------------------------------------------------------


def conda(_path: str, text: str) -> Iterator[Dependency]:
    documents = read_yaml(text)
    for part in documents[0].at("dependencies").items if documents else ():
        if part.text is not None and (match := _CONDA.fullmatch(part.text)):
            pin = _CONDA_PIN.fullmatch(match[2])
            version = pin[1] if pin else pinned_version(match[2])
            group = "language" if match[1] == "python" else "runtime"
            yield Dependency(match[1], match[2], version, part.line, group)
        yield from _requirement_parts(part.at("pip"), "runtime")


# -- setup.cfg and setup.py ------------------------------------------------------------------------


def setup_cfg(_path: str, text: str) -> Iterator[Dependency]:
    for entry in ini_entries(text):
        group = _SETUP_LISTS.get(entry.key) if entry.section == "options" else None
        if entry.section == "options.extras_require":
            group = f"optional:{entry.key}"
        if (entry.section, entry.key) == ("options", "python_requires"):
            yield Dependency("python", entry.value, pinned_version(entry.value), entry.line, "language")
        for number, line in entry.values if group else ():
            if group and (found := read_requirement(line)):
                yield found.dependency(number, group)


def setup_cfg_version(_path: str, text: str) -> OwnVersion | None:
    fields = {entry.key: entry for entry in ini_entries(text) if entry.section == "metadata"}
    version = fields.get("version")
    # "attr:" and "file:" say where the version is, not what it is.
    if version is None or not re.match(r"v?\d", version.value):
        return None
    return OwnVersion(fields["name"].value if "name" in fields else None, version.value, version.line)


def setup_py(_path: str, text: str) -> Iterator[Dependency]:
    arguments = _setup_arguments(text)
    python = arguments.get("python_requires")
    if python is not None and (constraint := _text(python)) is not None:
        yield Dependency("python", constraint, pinned_version(constraint), python.lineno, "language")
    for name, group in _SETUP_LISTS.items():
        yield from _literals(arguments.get(name), group)
    extras = arguments.get("extras_require")
    if isinstance(extras, ast.Dict):
        for key, value in zip(extras.keys, extras.values, strict=True):
            if key is not None and (named := _text(key)) is not None:
                yield from _literals(value, f"optional:{named}")


def setup_py_version(_path: str, text: str) -> OwnVersion | None:
    arguments = _setup_arguments(text)
    version, name = arguments.get("version"), arguments.get("name")
    value = _text(version) if version is not None else None
    if version is None or not value:
        return None
    return OwnVersion(_text(name) if name is not None else None, value, version.lineno)


def _setup_arguments(text: str) -> dict[str, ast.expr]:
    if len(text) > _SCRIPT_MOST:
        raise ValueError("no script to set up a package")
    try:
        body = ast.parse(text).body
    except MemoryError as error:
        # The parser raises this for an expression that is nested too deeply.
        raise ValueError("nested too deeply") from error
    known: dict[str, ast.expr] = {}
    arguments: dict[str, ast.expr] = {}
    waiting: deque[ast.stmt] = deque(body)
    while waiting:
        one = waiting.popleft()
        if isinstance(one, ast.Assign) and isinstance(one.targets[0], ast.Name):
            known[one.targets[0].id] = one.value
        elif isinstance(one, ast.If):
            # `if __name__ == "__main__":` often holds the call.
            waiting.extendleft(reversed(one.body))
        elif isinstance(one, ast.Expr) and isinstance(one.value, ast.Call):
            callee = one.value.func
            if getattr(callee, "id", getattr(callee, "attr", "")) == "setup":
                arguments |= {word.arg: word.value for word in one.value.keywords if word.arg}
    return {name: known.get(one.id, one) if isinstance(one, ast.Name) else one for name, one in arguments.items()}


def _text(node: ast.expr) -> str | None:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def _literals(node: ast.expr | None, group: str) -> Iterator[Dependency]:
    for item in node.elts if isinstance(node, (ast.List, ast.Tuple)) else ():
        value = _text(item)
        if value is not None and (found := read_requirement(value)):
            yield found.dependency(item.lineno, group)


# -- Lock files --------------------------------------------------------------------------------------

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


def _nested(content: Datum) -> Iterator[Dependency]:
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


# -- Other languages ---------------------------------------------------------------------------------

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


def _constraints(table: Datum, group: str) -> Iterator[Dependency]:
    for name, part in table.table.items():
        constraint = "" if part.text in (None, "*") else part.text or ""
        yield Dependency(name, constraint, _pinned(constraint), part.line, group)


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
    shared = content.at("workspace", "package", "version")
    if found := _stated(content, ("package",)):
        return found
    return OwnVersion(content.at("package", "name").text, shared.text, shared.line) if shared.text else None


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


# -- A version in a file of its own ------------------------------------------------------------------

_IN_PYTHON = re.compile(
    r"(?:__version__|VERSION|version)\s*(?::\s*[\w.\[\]]+\s*)?=\s*"
    r"(?:['\"]v?(\d[\w.!+-]*)['\"]|\((\s*\d+(?:\s*,\s*['\"]?\w+['\"]?)*)\s*,?\s*\))\s*(?:#.*)?"
)
_BARE = re.compile(r"v?(\d[\w.!+-]*)")
# A version is stated near the top of its file.
_LINES_MOST = 5_000


def _in_python(_path: str, text: str) -> OwnVersion | None:
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


# -- By file name, in lower case ---------------------------------------------------------------------

_READERS: dict[str, Reader] = {
    r"pyproject\.toml": pyproject,
    r"requirements[^/]*\.(txt|in)|requirements/[^/]+\.(txt|in)": requirements,
    r"setup\.cfg": setup_cfg,
    r"setup\.py": setup_py,
    r"pipfile": pipfile,
    r"environment\.ya?ml": conda,
    r"pkg-info|[^/]+\.dist-info/metadata": metadata,
    r"package\.json": node,
    r"cargo\.toml": cargo,
    r"go\.mod": go_mod,
    r"composer\.json": composer,
    r"gemfile": gemfile,
    r"pom\.xml": pom,
    r"build\.gradle(\.kts)?": gradle,
    r"[^/]+\.(cs|fs|vb)proj|directory\.packages\.props": csproj,
    r"pipfile\.lock": pip_lock,
    r"(poetry|uv|pdm|cargo)\.lock": toml_lock,
    r"package-lock\.json|npm-shrinkwrap\.json": node_lock,
    r"yarn\.lock": yarn_lock,
    r"pnpm-lock\.yaml": pnpm_lock,
    r"go\.sum": go_sum,
    r"composer\.lock": composer_lock,
    r"gemfile\.lock": gem_lock,
}
_VERSION_READERS: dict[str, VersionReader] = {
    r"pyproject\.toml": lambda _, text: _stated(read_toml(text), ("project",), ("tool", "poetry")),
    r"setup\.cfg": setup_cfg_version,
    r"setup\.py": lambda path, text: setup_py_version(path, text) or _in_python(path, text),
    r"pkg-info|[^/]+\.dist-info/metadata": metadata_version,
    r"[^/]+\.py": _in_python,
    r"package\.json|composer\.json": lambda _, text: _stated(read_json(text), ()),
    r"cargo\.toml": cargo_version,
    r"pom\.xml": pom_version,
    r"build\.gradle(\.kts)?": gradle_version,
    r"[^/]+\.(cs|fs|vb)proj": csproj_version,
    r"\.?version(\.txt)?": _version_file,
}
_BY_NAME = [(re.compile(rf"(?:.*/)?(?:{pattern})"), reader) for pattern, reader in _READERS.items()]
_VERSION_BY_NAME = [(re.compile(rf"(?:.*/)?(?:{pattern})"), reader) for pattern, reader in _VERSION_READERS.items()]


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


# -- Names of packages -------------------------------------------------------------------------------

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
