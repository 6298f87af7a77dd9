"""Selects the files of a project that are worth remembering, with the reason for each that is skipped.

`light` takes what a newcomer reads first; `full` takes every hand-written text. Names and sizes decide first, then the
content, which the caller reads. This module does not touch the disk.
"""

from __future__ import annotations

import codecs
import json
import posixpath
import re
from collections import Counter
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import cache
from pathlib import Path
from typing import Literal, get_args

from ..formats import read_plain_toml
from .files import HUGE, VENDORED, FileRef

__all__ = [
    "FileChoice", "Mode", "Role", "choose", "declared_entries", "decode_text", "role_of", "skip_by_content",
    "skip_by_name",
]  # fmt: skip

# The role of a file in its project, by its name: a guide, a manifest, an entry point, configuration.
#
# Manifests also name the files a program begins with, which `declared_entries` reads from their text. This module does
# not touch the disk.

_NAMES: dict[str, list[str]] = json.loads(Path(__file__).with_name("file_names.json").read_text("utf-8"))


@cache
def _pattern(kind: str) -> re.Pattern[str]:
    return re.compile("|".join(_NAMES[kind]))


def _is(kind: str, name: str) -> bool:
    """Whether a name, in lower case, is of a kind in `file_names.json`."""
    return _pattern(kind).fullmatch(name) is not None


class Role(IntEnum):
    """In order of importance to a newcomer."""

    GUIDE = 0
    MANIFEST = 1
    ENTRY = 2
    DOCUMENTATION = 3
    CONFIGURATION = 4


_SOURCE_FOLDERS = ("", "src", "app", "lib", "source")
_COMMAND = re.compile(r"(.*/)?(cmd|bin)/[^/]+/main\.[a-z]+")
# Tests, examples and templates look like projects but are not the project itself.
_ASIDE = re.compile(
    r"(^|/)(tests?|__tests__|specs?|e2e|fixtures?|testdata|test-data|mocks?|__mocks__|examples?|samples?|demos?|benchmarks?"
    r"|bench|templates?|scaffolds?|playground|sandbox|i18n|locales?)/"
)


def is_manifest(path: str) -> bool:
    return _is("manifest", posixpath.basename(path).lower())


def role_of(path: str, manifest_folders: Collection[str] = ("",)) -> Role | None:
    """The role of a path, given the folders with a manifest; None for an ordinary file."""
    lower = path.lower()
    name = posixpath.basename(lower)
    if _ASIDE.search(lower):
        return None
    if _is("guide", name):
        return Role.DOCUMENTATION if _is("documentation", lower) else Role.GUIDE
    if _is("manifest", name):
        return Role.MANIFEST
    if _is("entry", name) or _COMMAND.fullmatch(lower):
        return Role.ENTRY
    # Common names: an entry point only beside the project's manifest.
    if _is("entry_at_top", name) and _is_top(posixpath.dirname(path), manifest_folders):
        return Role.ENTRY
    if _is("documentation", lower):
        return Role.DOCUMENTATION
    if _is("configuration", name) or _is("configuration_path", lower):
        return Role.CONFIGURATION
    return None


def _is_top(folder: str, manifest_folders: Collection[str]) -> bool:
    parent, name = posixpath.split(folder)
    return folder in manifest_folders or (name in _SOURCE_FOLDERS and parent in manifest_folders)


def declared_entries(path: str, text: str) -> Iterator[str]:
    """The entry points that a manifest names; they need not exist."""
    folder, name = posixpath.split(path)
    readers = {"pyproject.toml": _python_entries, "package.json": _node_entries, "Cargo.toml": _rust_entries}
    reader = readers.get(name)
    if reader is None:
        return
    try:
        manifest = json.loads(text) if name.endswith(".json") else read_plain_toml(text)
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
    # What a library offers stands at the top of the package that bears its name.
    for named in (_at(manifest, "project", "name"), _at(manifest, "tool", "poetry", "name")):
        for name in _strings(named):
            package = name.strip().replace("-", "_").lower()
            for base in ("", "src/"):
                yield f"{base}{package}/__init__.py"
                yield f"{base}{package}/api.py"


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
    """A text itself, or the texts directly in a table."""
    for one in value.values() if isinstance(value, dict) else (value,):
        if isinstance(one, str) and one:
            yield one


# Decodes bytes as text, or decides that they are not text.
#
# UTF-8, and UTF-16 with a byte-order mark, are decoded exactly. Anything else must look like Western text in one byte
# per character, because a wrong guess would be stored and searched as nonsense.

_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_UTF_32 = (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)
_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f]")
_HIGH = re.compile(rb"[\x80-\xff]+")
# Other scripts in one or two bytes, such as Cyrillic or Chinese, write whole words above ASCII.
_LONGEST_RUN = 2
_MOSTLY_SHORT = 0.7


def decode_text(data: bytes) -> str | None:
    """The text without its byte-order mark; None for data that is not text."""
    if data.startswith(_UTF_32):
        return None
    if data.startswith(_UTF_16):
        return _exact(data, "utf-16")
    if b"\0" in data:
        return None
    text = _exact(data, "utf-8-sig")
    return _western(data) if text is None else text


def _exact(data: bytes, encoding: str) -> str | None:
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError:
        return None
    return None if "\0" in text else text


def _western(data: bytes) -> str | None:
    """Text in one byte per character: mostly ASCII with some accented letters and quotation marks."""
    if _CONTROL.search(data):
        return None
    runs = [len(run) for run in _HIGH.findall(data)]
    if sum(run for run in runs if run <= _LONGEST_RUN) < _MOSTLY_SHORT * sum(runs):
        return None
    # Windows-1252 leaves five bytes undefined; Latin-1 decodes them.
    return _exact(data, "cp1252") or data.decode("latin-1")


# The choice

Mode = Literal["light", "full"]
SkipReason = Literal["vendored", "generated", "binary", "private", "huge", "unreadable", "not light", "over limit"]

_LIGHT_LIMIT = 200
_LIGHT_CONFIGURATION_BYTES = 20_000
_ROUND = 20

# Build output folders, but only beside the manifest of a tool that builds into them.
_OUTPUT = {
    "build": ("package.json", "pyproject.toml", "setup.py", "build.gradle", "build.gradle.kts", "cmakelists.txt"),
    "target": ("cargo.toml", "pom.xml", "build.sbt"),
    "out": ("package.json", "pom.xml", "build.gradle", "build.gradle.kts"),
    "bin": ("*.csproj", "*.fsproj"),
    "obj": ("*.csproj", "*.fsproj"),
}
_GENERATED_FOLDERS = frozenset(("__snapshots__", "__generated__", "generated-sources"))
_PROSE = (".md", ".mdx", ".markdown", ".rst", ".txt", ".adoc", ".org", ".tex", ".csv", ".tsv")

_LARGE_FILE_POINTER = b"version https://git-lfs.github.com/spec/"
_COMMENT_SIGNS = ("#", "//", "/*", "*", "--", ";", "<!--", "%", "(*", "{-", "'")
_HEAD_LINES = 15
_HEAD_CHARACTERS = 4_000
_MADE_BY_A_TOOL = re.compile(
    r"@generated\b|^code generated\b|^(auto-?|automatically |machine[ -])generated\b"
    r"|\bdo not (edit|modify)(\W*$|[.!]| (this|it|manually|by hand|directly))"
    r"|^generated (by|from|using|with|on|at|via|file|code)\b"
    r"|\bthis (file|code|header|module|script|source file) (is|was|has been) (an? )?"
    r"(auto-?|automatically |machine[ -])?generated\b",
    re.IGNORECASE,
)
_DENSE_LINE = 300
_LONG_LINE = 10_000


@dataclass(frozen=True, slots=True)
class SkippedFile:
    """A file that was not selected."""

    path: str
    reason: SkipReason


@dataclass(frozen=True, slots=True)
class FileChoice:
    """The selected files, most important first, and the skipped ones by path."""

    files: tuple[FileRef, ...]
    left_out: tuple[SkippedFile, ...]

    def counts(self) -> Mapping[SkipReason, int]:
        """The number of skipped files for each reason that occurred."""
        found = Counter(one.reason for one in self.left_out)
        return {reason: found[reason] for reason in get_args(SkipReason) if found[reason]}


def choose(
    files: Iterable[FileRef],
    mode: Mode,
    read: Callable[[FileRef], bytes | None],
    *,
    max_bytes: int = HUGE,
    light_limit: int = _LIGHT_LIMIT,
    known: Container[str] = frozenset(),
) -> FileChoice:
    """Select the files to remember.

    Content is read only if name and size do not decide, and not for blobs `known` from an earlier scan.
    """
    listed = list(files)
    reasons: dict[str, SkipReason] = {}
    manifests = _manifest_names(file.path for file in listed)
    candidates: list[FileRef] = []
    for file in listed:
        reason = skip_by_name(file.path, manifests)
        if reason is None and file.size > max_bytes:
            reason = "huge"
        if reason is None:
            candidates.append(file)
        else:
            reasons[file.path] = reason
    ordered = _by_importance(candidates, manifests, read)
    taken: list[FileRef] = []
    for file, role in ordered:
        if mode == "light" and (role is None or _is_bulky(file, role)):
            reasons[file.path] = "not light"
        elif mode == "light" and len(taken) >= light_limit:
            reasons[file.path] = "over limit"
        elif (found := None if file.blob in known else _read_reason(file, read)) is not None:
            reasons[file.path] = found
        else:
            taken.append(file)
    return FileChoice(tuple(taken), tuple(SkippedFile(path, reasons[path]) for path in sorted(reasons)))


def skip_by_name(path: str, manifest_names: Mapping[str, Collection[str]] | None = None) -> SkipReason | None:
    """Why a file is skipped by its path, given the manifest names in each folder; None if it is not."""
    lower = path.lower()
    *folders, name = lower.split("/")
    if not VENDORED.isdisjoint(folders) or _is_output(path, manifest_names or {}):
        return "vendored"
    if _is("private", name):
        return "private"
    if _is("binary", name):
        return "binary"
    if _is("lock", name) or _is("generated", name) or not _GENERATED_FOLDERS.isdisjoint(folders):
        return "generated"
    return None


def skip_by_content(path: str, data: bytes) -> SkipReason | None:
    """Why a file is skipped by its content; None if it is not."""
    if data.startswith(_LARGE_FILE_POINTER):
        return "binary"
    text = decode_text(data)
    if text is None:
        return "binary"
    # A manifest records what people chose, even if a tool wrote it.
    if not path.lower().endswith(_PROSE) and not is_manifest(path) and (_is_marked(text) or _is_dense(text)):
        return "generated"
    return None


def _read_reason(file: FileRef, read: Callable[[FileRef], bytes | None]) -> SkipReason | None:
    data = read(file)
    return "unreadable" if data is None else skip_by_content(file.path, data)


def _is_output(path: str, manifest_names: Mapping[str, Collection[str]]) -> bool:
    folders = path.split("/")[:-1]
    for depth, folder in enumerate(folders):
        builders = _OUTPUT.get(folder.lower(), ())
        beside = manifest_names.get("/".join(folders[:depth]), ()) if builders else ()
        if any(name in builders or f"*{posixpath.splitext(name)[1]}" in builders for name in beside):
            return True
    return False


def _is_marked(text: str) -> bool:
    """Whether a comment near the top says that a tool made the file."""
    for line in text[:_HEAD_CHARACTERS].split("\n")[:_HEAD_LINES]:
        if line.lstrip().startswith(_COMMENT_SIGNS) and _MADE_BY_A_TOOL.search(line.strip().lstrip("#/*-;<!%({' ")):
            return True
    return False


def _is_dense(text: str) -> bool:
    """Whether the lines are too long to have been typed: minified code, embedded data."""
    if len(text) <= _LONG_LINE // 4:
        return False
    lines = text.split("\n")
    longest = max(map(len, lines))
    return len(text) > _DENSE_LINE * len(lines) or (longest > _LONG_LINE and 2 * longest > len(text))


def _is_bulky(file: FileRef, role: Role) -> bool:
    return role is Role.CONFIGURATION and file.size > _LIGHT_CONFIGURATION_BYTES


def _manifest_names(paths: Iterable[str]) -> Mapping[str, Collection[str]]:
    """The names of the manifests in each folder that has any."""
    found: dict[str, list[str]] = {}
    for path in paths:
        if is_manifest(path):
            folder, name = posixpath.split(path)
            found.setdefault(folder, []).append(name.lower())
    return found


def _by_importance(
    files: Sequence[FileRef], manifest_folders: Iterable[str], read: Callable[[FileRef], bytes | None]
) -> Iterator[tuple[FileRef, Role | None]]:
    """Files with a role first: those at the top, then some of each role in turn; then all others.

    Taking turns keeps hundreds of READMEs from hiding the manifests of a large project.
    """
    tops = {"", *manifest_folders}
    roles = {file.path: role for file in files if (role := role_of(file.path, tops)) is not None}
    by_path = {file.path: file for file in files}
    for path in [path for path, role in roles.items() if role is Role.MANIFEST]:
        text = decode_text(read(by_path[path]) or b"") if by_path[path].size <= HUGE else None
        for entry in declared_entries(path, text or ""):
            if entry in by_path:
                roles.setdefault(entry, Role.ENTRY)
    places: Counter[Role] = Counter()
    order: dict[str, tuple[bool, int, Role]] = {}
    for path in sorted(roles, key=lambda path: (path.count("/"), path)):
        role = roles[path]
        order[path] = ("/" in path, places[role] // _ROUND if "/" in path else 0, role)
        places[role] += 1
    for path in sorted(order, key=order.__getitem__):
        yield by_path[path], roles[path]
    for file in files:
        if file.path not in roles:
            yield file, None
