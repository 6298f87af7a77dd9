"""The names that a project brings along, read from its manifests, its history, its remote and its scan.

Read when first needed, and again when the project was scanned since.
"""

from __future__ import annotations

import json
import re
import threading
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

from ..records import Project
from ..store.store import Store
from ..worktree.git import Repository, run_git, text_of
from .knowledge import NOTHING, Knowledge

__all__ = ["ProjectNames", "packages_in"]

_MANIFEST_BYTES = 1_000_000
_COMMITS = 2_000
# More names would cost seconds to learn, and files deep in a large tree are rarely spoken of.
_PATHS = 3_000
_SYMBOLS = 3_000
_SHORTEST_SYMBOL = 5
_REQUIREMENT = re.compile(r"^\s*([A-Za-z0-9][A-Za-z0-9._-]*)")
_GO_MODULE = re.compile(r"^[ \t]*(?:require[ \t]+)?([\w.-]+\.[a-z]{2,}/[\w./-]+)[ \t]+v\d", re.MULTILINE)
# "/v2" and ".v2" tell the version of a module, not its name.
_GO_VERSION = re.compile(r"[/.]v\d+$")
_GEM = re.compile(r"^[ \t]*gem[ \t]+['\"]([\w.-]+)['\"]", re.MULTILINE)


class ProjectNames:
    """Knowledge of one project, kept while nothing changes it."""

    def __init__(self, store: Store, project: Project, folder: Path | None, repository: Repository | None) -> None:
        self._store = store
        self._project = project
        self._folder = repository.root if repository and not repository.is_bare else folder
        self._repository = repository
        self._lock = threading.Lock()
        self._known: tuple[int, Knowledge] | None = None

    def get(self) -> Knowledge:
        with self._store.database.read() as session:
            scanned = self._store.scans.latest(session, self._project.id)
        with self._lock:
            if self._known is None or self._known[0] != scanned:
                self._known = (scanned, self._read(scanned))
            return self._known[1]

    def _read(self, scanned: int) -> Knowledge:
        paths: frozenset[str] = frozenset()
        symbols: frozenset[str] = frozenset()
        if scanned:
            with self._store.database.read() as session:
                paths = frozenset(list(self._store.scans.files(session, self._project.id))[:_PATHS])
                rows = self._store.scans.symbols(session, self._project.id)
            symbols = frozenset(one.name for _, one in rows[:_SYMBOLS] if len(one.name) >= _SHORTEST_SYMBOL)
        if self._folder is None:
            return NOTHING if not paths else Knowledge(paths=paths, symbols=symbols)
        return Knowledge(
            packages=frozenset(packages_in(self._folder)),
            authors=frozenset(self._authors()),
            organizations=frozenset(self._organisations()),
            paths=paths,
            symbols=symbols,
            project=self._project.name,
        )

    def _authors(self) -> Iterator[str]:
        if self._repository is None:
            return
        answer = run_git(self._repository.root, "log", f"--max-count={_COMMITS}", "--format=%aN")
        if answer is not None and answer.returncode == 0:
            # One word is more often a nickname or a machine than a person's name.
            yield from {line.strip() for line in text_of(answer.stdout).splitlines() if " " in line.strip()}

    def _organisations(self) -> Iterator[str]:
        parts = (self._project.remote or "").split("/")
        # host/organisation/repository; a path on this machine has no host.
        if len(parts) >= 3 and "." in parts[0]:
            yield parts[1]


def packages_in(folder: Path) -> set[str]:
    """The packages that the manifests in a folder name."""
    found: set[str] = set()
    for name, reader in _READERS.items():
        for path in sorted(folder.glob(name)):
            try:
                if path.is_file() and path.stat().st_size <= _MANIFEST_BYTES:
                    found.update(one for one in reader(path.read_text("utf-8", "replace")) if isinstance(one, str))
            except (OSError, ValueError, RecursionError, TypeError, AttributeError):
                # Not readable, half written, or of another shape than manifests have: others may still tell.
                continue
    return found


def _pyproject(text: str) -> Iterator[str]:
    content = tomllib.loads(text)
    project = content.get("project", {})
    optional = (line for group in project.get("optional-dependencies", {}).values() for line in group)
    lines = [*project.get("dependencies", []), *optional]
    yield from (match[1] for line in lines if isinstance(line, str) and (match := _REQUIREMENT.match(line)))
    poetry = content.get("tool", {}).get("poetry", {}).get("dependencies", {})
    yield from (name for name in poetry if name != "python")


def _requirements(text: str) -> Iterator[str]:
    lines = (line for line in text.splitlines() if not line.lstrip().startswith(("#", "-")))
    yield from (match[1] for line in lines if (match := _REQUIREMENT.match(line)))


def _node(text: str) -> Iterator[str]:
    content = json.loads(text)
    for group in ("dependencies", "devDependencies", "peerDependencies", "optionalDependencies"):
        named = content.get(group, {}) if isinstance(content, dict) else {}
        yield from named if isinstance(named, dict) else ()


def _cargo(text: str) -> Iterator[str]:
    content = tomllib.loads(text)
    for group in ("dependencies", "dev-dependencies", "build-dependencies"):
        yield from content.get(group, {})


def _composer(text: str) -> Iterator[str]:
    content = json.loads(text)
    for group in ("require", "require-dev"):
        named = content.get(group, {}) if isinstance(content, dict) else {}
        yield from (name for name in named if "/" in name)


def _go(text: str) -> Iterator[str]:
    yield from (_GO_VERSION.sub("", module).rpartition("/")[2] for module in _GO_MODULE.findall(text))


def _ruby(text: str) -> Iterator[str]:
    yield from _GEM.findall(text)


_READERS: dict[str, Callable[[str], Iterator[str]]] = {
    "pyproject.toml": _pyproject,
    "requirements*.txt": _requirements,
    "package.json": _node,
    "Cargo.toml": _cargo,
    "composer.json": _composer,
    "go.mod": _go,
    "Gemfile": _ruby,
}
