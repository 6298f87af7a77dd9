"""The names that a project brings along, read from its manifests, its history, its remote and its scan.

Read when first needed, and again when the project was scanned since.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
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
# Lock files name what these need in turn, which nobody speaks of.
_MANIFESTS = (
    "pyproject.toml",
    "requirements*.txt",
    "package.json",
    "Cargo.toml",
    "composer.json",
    "go.mod",
    "Gemfile",
)


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
    from ..worktree.manifests import dependencies, short_name

    found: set[str] = set()
    for name in _MANIFESTS:
        for path in sorted(folder.glob(name)):
            try:
                if not path.is_file() or path.stat().st_size > _MANIFEST_BYTES:
                    continue
                text = path.read_text("utf-8", "replace")
            except OSError:
                # Not readable: others may still tell.
                continue
            found.update(short_name(one.name) for one in dependencies(path.name, text) if one.group != "language")
    return found
