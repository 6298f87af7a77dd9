"""The test reports of a project: those that a caller names, or that lie where test runners leave them."""

from __future__ import annotations

from pathlib import Path

from ..worktree.choice import name_reason
from ..worktree.decoding import decode
from ..worktree.files import FileRef, read_file
from ..worktree.reports import Report, is_report_name, read_report
from .lookup import Lookup

__all__ = ["find_reports"]

_MOST = 20
_BYTES = 4_000_000
# Reports are made, not kept: git ignores them more often than not, so the usual places are looked at as well.
_USUAL = (
    "junit.xml", "report.xml", "test-results.xml", "test-report.xml", "reports/junit.xml", "test-results/junit.xml",
    "build/test-results/junit.xml", ".report.json", "test-output.txt", "target/surefire-reports",
    "build/test-results/test",
)  # fmt: skip


def find_reports(root: Path, lookup: Lookup) -> list[tuple[str, Report]]:
    """The reports with their paths, the newest first."""
    if not lookup.sources.reports:
        return []
    named_any = bool(lookup.sources.patterns)
    named = [pattern for pattern in lookup.sources.patterns or () if not any(sign in pattern for sign in "*?[")]
    # Who names no file but asks for reports means all of them.
    listed = [path for path in (lookup.paths if named_any else lookup.every_path) if is_report_name(path)]
    usual = [] if named_any else [path for place in _USUAL for path in _reports_at(root, place)]
    candidates = list(dict.fromkeys([*(n for n in named if (root / n).is_file()), *listed, *usual]))[:_MOST]
    found = []
    for path in candidates:
        if name_reason(path) == "private" or not _is_inside(root, path):
            continue
        data = read_file(root, FileRef(path, 0, None), max_bytes=_BYTES)
        text = decode(data) if data is not None else None
        if text and (report := read_report(path, text)) is not None:
            found.append((-_modified(root / path), path, report))
    return [(path, report) for _, path, report in sorted(found, key=lambda one: one[:2])]


def _reports_at(root: Path, place: str) -> list[str]:
    at = root / place
    if at.is_dir() and not at.is_symlink():
        return [f"{place}/{one.name}" for one in sorted(at.glob("*.xml"))[:_MOST]]
    return [place] if at.is_file() else []


def _is_inside(root: Path, path: str) -> bool:
    try:
        return (root / path).resolve().is_relative_to(root.resolve())
    except (OSError, ValueError):
        return False


def _modified(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0
