"""Dependencies in the files of Python projects. Readers raise ValueError for a file they cannot read."""

from __future__ import annotations

import ast
import posixpath
import re
from collections import deque
from collections.abc import Iterator

from ..formats import Value, ini_entries, number_lines, read_toml, read_yaml
from .versions import Dependency, OwnVersion, Reader, VersionReader, pinned_version, read_requirement

__all__ = ["READERS", "VERSION_READERS"]

_DEVELOPMENT = re.compile(r"(^|[._/-])(dev|develop|development|tests?|testing|lint|docs?|typing|ci)([._/-]|$)")
_OPTION = re.compile(r"\s--?[A-Za-z].*")
_NOTE = re.compile(r"(^|\s)#.*")
_CONDA = re.compile(r"(?:[\w./-]+::)?([A-Za-z0-9_][\w.-]*)\s*(.*)")
_CONDA_PIN = re.compile(r"=\s*(\d[\w.]*?)(?:=[^=]*)?")
_HEADER = re.compile(r"([A-Za-z-]+):[ \t]*(.*)")
_SCRIPT_MOST = 500_000
_SETUP_LISTS = {"install_requires": "runtime", "setup_requires": "build", "tests_require": "dev"}


def _group(name: str) -> str:
    return "dev" if _DEVELOPMENT.search(name.lower()) else f"optional:{name}"


def _requirement_parts(parts: Value, group: str) -> Iterator[Dependency]:
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


def pyproject_version(_path: str, text: str) -> OwnVersion | None:
    content = read_toml(text)
    for table in (content.at("project"), content.at("tool", "poetry")):
        version = table.at("version")
        if version.text:
            return OwnVersion(table.at("name").text, version.text, version.line)
    return None


def pipfile(_path: str, text: str) -> Iterator[Dependency]:
    content = read_toml(text)
    yield from _tables(content.at("packages"), "runtime")
    yield from _tables(content.at("dev-packages"), "dev")
    python = content.at("requires", "python_version")
    if python.text is not None:
        yield Dependency("python", python.text, None, python.line, "language")


def _tables(table: Value, group: str) -> Iterator[Dependency]:
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


# -- By file name, in lower case ---------------------------------------------------------------------

READERS: list[tuple[str, Reader]] = [
    (r"pyproject\.toml", pyproject),
    (r"requirements[^/]*\.(txt|in)|requirements/[^/]+\.(txt|in)", requirements),
    (r"setup\.cfg", setup_cfg),
    (r"setup\.py", setup_py),
    (r"pipfile", pipfile),
    (r"environment\.ya?ml", conda),
    (r"pkg-info|[^/]+\.dist-info/metadata", metadata),
]
VERSION_READERS: list[tuple[str, VersionReader]] = [
    (r"pyproject\.toml", pyproject_version),
    (r"setup\.cfg", setup_cfg_version),
    (r"pkg-info|[^/]+\.dist-info/metadata", metadata_version),
]
