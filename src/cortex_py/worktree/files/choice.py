"""Which files of a project are worth remembering, and why the others are not.

`light` takes what a newcomer reads first; `full` takes every text that people wrote. Names and sizes
decide first, then the content, which the caller reads. Nothing here touches the disk.
"""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from .decoding import decode
from .files import HUGE, VENDORED, FileRef
from .roles import Role, declared_entries, is_manifest, role_of

__all__ = ["Choice", "LeftOut", "Mode", "Reason", "choose", "content_reason", "name_reason"]

Mode = Literal["light", "full"]
Reason = Literal["vendored", "generated", "binary", "private", "huge", "unreadable", "not light", "over limit"]

_LIGHT_LIMIT = 200
_LIGHT_CONFIGURATION_BYTES = 20_000
_ROUND = 20

# Folders of built things, but only beside the manifest of a tool that builds into them.
_OUTPUT = {
    "build": ("package.json", "pyproject.toml", "setup.py", "build.gradle", "build.gradle.kts", "cmakelists.txt"),
    "target": ("cargo.toml", "pom.xml", "build.sbt"),
    "out": ("package.json", "pom.xml", "build.gradle", "build.gradle.kts"),
    "bin": ("*.csproj", "*.fsproj"),
    "obj": ("*.csproj", "*.fsproj"),
}
_BINARY = re.compile(
    r".*\.(png|jpe?g|gif|bmp|ico|icns|webp|avif|tiff?|psd|svg|pdf|docx?|xlsx?|pptx?|od[tsp]|zip|gz|tgz|bz2|xz|zst|7z|rar|tar"
    r"|jar|war|ear|class|pyc|pyo|pyd|so|dylib|dll|exe|o|a|lib|obj|wasm|bin|dat|db|sqlite3?|parquet|npy|npz|pkl|pickle|h5|onnx"
    r"|pt|pth|safetensors|gguf|woff2?|ttf|otf|eot|mp[34]|m4a|wav|ogg|flac|mov|avi|mkv|webm|mo|whl|egg|nupkg|deb|rpm|dmg|iso)"
)
_LOCK = re.compile(
    r"(package-lock|npm-shrinkwrap|packages\.lock)\.json|(yarn|poetry|uv|pdm|cargo|gemfile|composer|pipfile|flake|mix|podfile|pubspec"
    r"|bun|deno)\.lock|bun\.lockb|pnpm-lock\.yaml|go\.(work\.)?sum|gradle\.lockfile|\.terraform\.lock\.hcl|package\.resolved|pixi\.lock"
)
_GENERATED = re.compile(
    r".*[.-]min\.(js|css|mjs)|.*\.bundle\.js|.*\.(map|snap)|.*\.pb\.(go|cc|h|swift)|.*_pb2(_grpc)?\.pyi?|.*_pb\.(js|ts|d\.ts)"
    r"|.*\.(g|freezed|gr|mocks)\.dart|.*\.(g|g\.i|designer|generated)\.(cs|vb)|.*[._-]generated\.[a-z]+|zz_generated.*|.*\.pbxproj"
    r"|.*_templ\.go|.*\.tsbuildinfo|mockgen_.*\.go"
)
_GENERATED_FOLDERS = frozenset(("__snapshots__", "__generated__", "generated-sources"))
_PRIVATE = re.compile(
    r"\.env(\.(?!(example|sample|template|dist)$).*)?|.*\.(pem|key|p12|pfx|jks|keystore|kdbx|ppk|asc|gpg)|id_(rsa|dsa|ecdsa|ed25519)"
    r"|\.netrc|\.pgpass|\.htpasswd|\.pypirc|\.npmrc|\.git-credentials|credentials(\.json)?|service[-_]account.*\.json|\.vault[-_]pass"
)
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
class LeftOut:
    """A file that is not taken."""

    path: str
    reason: Reason


@dataclass(frozen=True, slots=True)
class Choice:
    """The files to take, most important first, and the others in the order of their paths."""

    files: tuple[FileRef, ...]
    left_out: tuple[LeftOut, ...]

    def counts(self) -> Mapping[Reason, int]:
        """How many files were left out for each reason that occurred."""
        found = Counter(one.reason for one in self.left_out)
        return {reason: found[reason] for reason in get_args(Reason) if found[reason]}


def choose(
    files: Iterable[FileRef],
    mode: Mode,
    read: Callable[[FileRef], bytes | None],
    *,
    max_bytes: int = HUGE,
    light_limit: int = _LIGHT_LIMIT,
    known: Container[str] = frozenset(),
) -> Choice:
    """The files to remember, among those of a project.

    Content is read only where the name and size leave the question open, and not at all for the blobs
    `known` to be worth taking from an earlier scan.
    """
    listed = list(files)
    reasons: dict[str, Reason] = {}
    manifests = _manifest_names(file.path for file in listed)
    candidates: list[FileRef] = []
    for file in listed:
        reason = name_reason(file.path, manifests)
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
    return Choice(tuple(taken), tuple(LeftOut(path, reasons[path]) for path in sorted(reasons)))


def name_reason(path: str, manifest_names: Mapping[str, Collection[str]] | None = None) -> Reason | None:
    """Why a file is left out, as far as its path tells, given the names of the manifests in each folder."""
    lower = path.lower()
    *folders, name = lower.split("/")
    if not VENDORED.isdisjoint(folders) or _is_output(path, manifest_names or {}):
        return "vendored"
    if _PRIVATE.fullmatch(name):
        return "private"
    if _BINARY.fullmatch(name):
        return "binary"
    if _LOCK.fullmatch(name) or _GENERATED.fullmatch(name) or not _GENERATED_FOLDERS.isdisjoint(folders):
        return "generated"
    return None


def content_reason(path: str, data: bytes) -> Reason | None:
    """Why a file is left out, as far as its content tells."""
    if data.startswith(_LARGE_FILE_POINTER):
        return "binary"
    text = decode(data)
    if text is None:
        return "binary"
    # A manifest states what people chose, even where a tool wrote it out.
    if not path.lower().endswith(_PROSE) and not is_manifest(path) and (_is_marked(text) or _is_dense(text)):
        return "generated"
    return None


def _read_reason(file: FileRef, read: Callable[[FileRef], bytes | None]) -> Reason | None:
    data = read(file)
    return "unreadable" if data is None else content_reason(file.path, data)


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
    """Files that have a role first: those at the top, then some of each role in turn, then all others.

    The turns let the manifests of a large project be seen beside its hundreds of READMEs.
    """
    tops = {"", *manifest_folders}
    roles = {file.path: role for file in files if (role := role_of(file.path, tops)) is not None}
    by_path = {file.path: file for file in files}
    for path in [path for path, role in roles.items() if role is Role.MANIFEST]:
        text = decode(read(by_path[path]) or b"") if by_path[path].size <= HUGE else None
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
