"""Scans the files of a project into memory: chooses files, reads the changed ones, and removes those that are gone.

A second scan reads only what changed. What was done before an interruption is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Literal, get_args

from ...core.errors import InvalidInput
from ...core.memory.capture.files import FileCapture, FilePart, FileText
from ...core.records import Project
from ...core.security.policy import ScreenedText, holds_secret
from ...core.store.store import Store
from ...core.store.tables.scans import FileImport, FileSymbol, ScannedFile
from ...worktree.code.syntax import analyse
from ...worktree.files.choice import FileChoice, choose, decode_text
from ...worktree.files.files import FileRef, project_files, read_file

__all__ = ["SCAN_MODES", "ScanEstimate", "ScanMode", "ScanResult", "Scanner", "check_mode"]

ScanMode = Literal["full", "light", "none"]
SCAN_MODES: tuple[ScanMode, ...] = get_args(ScanMode)

# A light scan answers while a person waits. It reads this much of each file, and of all together, in characters.
_LIGHT_FILE = 4_800
_LIGHT_TOTAL = 32_000
# From so many bytes on, a scan that reads most of its files for the first time computes their vectors afterwards.
DEFERRED_BYTES = 400_000

Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class ScanResult:
    """The result of a scan. `files_scanned` counts every file that is in memory now, changed or not."""

    project: Project
    mode: ScanMode
    files_scanned: int
    files_changed: int
    files_removed: int
    contexts_created: int
    contexts_updated: int
    left_out: Mapping[str, int]
    pending_vectors: int = 0  # contexts that are found by words, and by meaning once their vectors are computed
    pending_outlines: int = 0  # those of them that are the first of their file, which come first
    apart: str = ""  # why the folder is not in the project that it names


@dataclass(frozen=True, slots=True)
class ScanEstimate:
    """What a scan would read: the files that are new or changed, and their size in bytes."""

    files: int
    size_bytes: int


def check_mode(mode: str) -> ScanMode:
    for known in SCAN_MODES:
        if mode.strip().lower() == known:
            return known
    raise InvalidInput(f"Unknown mode {mode[:40]!r}.", remedy=f"Choose one of {', '.join(SCAN_MODES)}.", field="mode")


class Scanner:
    def __init__(self, store: Store, project: Project, root: Path, home: Path, capture: FileCapture) -> None:
        self._store = store
        self._project = project
        self._root = root
        self._home = home
        self._capture = capture

    def run(self, mode: ScanMode, progress: Progress | None = None) -> ScanResult:
        """Update the stored parts of the project's files; the mode `none` leaves them as they are."""
        if mode == "none":
            return ScanResult(self._project, mode, 0, 0, 0, 0, 0, {})
        listed, known, choice, taken = self._choose(mode)
        changed = [file for file in taken if not _is_known(file, known, mode)]
        gone = _gone(known, listed, choice, mode)
        renames = _renames([file for file in changed if file.label not in known], [known[path] for path in gone])
        total = len(changed)
        done = 0

        def written(_: FileText) -> None:
            nonlocal done
            done += 1
            if progress:
                progress(done, total)

        if progress and total:
            progress(0, total)
        size = sum(file.size for file in changed)
        deferred = size > DEFERRED_BYTES and 2 * size > sum(file.size for file in taken)
        counts = self._capture.write(self._texts(changed, renames, mode), written, defer_vectors=deferred)
        gone = [path for path in gone if path not in renames.values()]
        self._capture.remove(gone)
        return ScanResult(
            self._project,
            mode,
            len(taken),
            done,
            len(gone),
            counts.created,
            counts.updated,
            {str(reason): count for reason, count in choice.counts().items()},
            *self._capture.pending_vectors(),
        )

    def estimate(self, mode: ScanMode) -> ScanEstimate:
        """What a scan would read now."""
        if mode == "none":
            return ScanEstimate(0, 0)
        _, known, _, taken = self._choose(mode)
        changed = [file for file in taken if not _is_known(file, known, mode)]
        return ScanEstimate(len(changed), sum(file.size for file in changed))

    def _choose(
        self, mode: Literal["full", "light"]
    ) -> tuple[list[FileRef], dict[str, ScannedFile], FileChoice, Sequence[FileRef]]:
        """The files of the project, those that are stored, and those that a scan takes."""
        # A path with a secret would be stored under another name and never be found again.
        listed = [file for file in project_files(self._root, home=self._home) if not holds_secret(file.label)]
        known = self._known()
        blobs = frozenset(one.blob for one in known.values() if one.whole or mode == "light")
        choice = choose(listed, mode, self._read, known=blobs)
        return listed, known, choice, choice.files if mode == "full" else self._within_budget(choice.files, known)

    def _known(self) -> dict[str, ScannedFile]:
        with self._store.database.read() as session:
            return self._store.scans.files(session, self._project.id)

    def _read(self, file: FileRef) -> bytes | None:
        return read_file(self._root, file)

    def _within_budget(self, files: Sequence[FileRef], known: Mapping[str, ScannedFile]) -> list[FileRef]:
        """The most important files that fit, and those that a full scan has stored as a whole."""
        left = _LIGHT_TOTAL
        taken = []
        for file in files:
            cost = min(file.size, _LIGHT_FILE)
            if cost <= left:
                left -= cost
                taken.append(file)
            elif _is_known(file, known, "light"):
                taken.append(file)
        return taken

    def _texts(self, files: Sequence[FileRef], renames: Mapping[str, str], mode: ScanMode) -> Iterator[FileText]:
        for file in files:
            data = self._read(file)
            text = None if data is None or file.blob is None else decode_text(data)
            # A file may vanish or become binary between listing and reading.
            if text is not None and file.blob is not None:
                yield _file_text(file.label, file.blob, self._capture.screen(text), renames.get(file.label), mode)


def _file_text(path: str, blob: str, text: ScreenedText, formerly: str | None, mode: ScanMode) -> FileText:
    found = analyse(path, text)
    parts = [
        FilePart(ScreenedText(part.text), part.symbol, part.first_line, part.last_line)
        for part in found.parts
        if part.text.strip()
    ]
    taken = parts if mode == "full" else _head(parts)
    return FileText(
        path=path,
        blob=blob,
        whole=len(taken) == len(parts),
        parts=tuple(taken),
        symbols=tuple(FileSymbol(s.name, s.qualified, s.kind, s.line, s.end_line) for s in found.symbols),
        imports=tuple(FileImport(i.module, i.names, i.line) for i in found.imports),
        formerly=formerly,
    )


def _head(parts: Sequence[FilePart]) -> list[FilePart]:
    taken: list[FilePart] = []
    left = _LIGHT_FILE
    for part in parts:
        left -= len(part.text)
        if left < 0 and taken:
            break
        taken.append(part)
    return taken


def _is_known(file: FileRef, known: Mapping[str, ScannedFile], mode: ScanMode) -> bool:
    before = known.get(file.label)
    return before is not None and before.blob == file.blob and (before.whole or mode == "light")


def _gone(known: Mapping[str, ScannedFile], listed: Sequence[FileRef], choice: FileChoice, mode: ScanMode) -> list[str]:
    """Known files that no longer exist; in a full scan also those that are no longer chosen."""
    present = {file.label for file in (choice.files if mode == "full" else listed)}
    return [path for path in known if path not in present]


def _renames(new: Sequence[FileRef], gone: Sequence[ScannedFile]) -> dict[str, str]:
    """The old path by new path of each moved file: one with equal content, or the only one of its name."""
    left = {one.path: one for one in gone}
    fresh = {file.label: file for file in new}
    found: dict[str, str] = {}
    by_blob: dict[str | None, list[str]] = {}
    for path, one in left.items():
        by_blob.setdefault(one.blob, []).append(path)
    for label, file in fresh.items():
        if same := by_blob.get(file.blob):
            found[label] = same.pop(0)
    old_names = _by_name(path for path in left if path not in found.values())
    new_names = _by_name(label for label in fresh if label not in found)
    for name, labels in new_names.items():
        paths = old_names.get(name, [])
        if len(labels) == len(paths) == 1:
            found[labels[0]] = paths[0]
    return found


def _by_name(paths: Iterable[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for path in paths:
        found.setdefault(PurePosixPath(path).name, []).append(path)
    return found
