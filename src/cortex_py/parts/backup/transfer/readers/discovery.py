"""What this machine has to import: sessions of agents for each project, their memory, and the project's own documents.

Only names and sizes are read, and of a session its beginning and end, for its folder and dates.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from .files import SourceFile, source_files
from .parsing import first_objects, moment, text_of
from .registry import readers, recognise

__all__ = ["Discovery", "discover"]

# Where agents keep their sessions, below the folder of the user; the variable that names another folder.
_HOMES = (
    ("CLAUDE_CONFIG_DIR", ".claude", ("projects", "history.jsonl", "CLAUDE.md")),
    ("CODEX_HOME", ".codex", ("sessions", "archived_sessions", "AGENTS.md")),
    ("GEMINI_CLI_HOME", ".gemini", ("tmp", "GEMINI.md")),
    ("MEM0_DIR", ".mem0", ("history.db",)),
    (
        "MEMPALACE_PALACE_PATH",
        ".mempalace/palace",
        ("chroma.sqlite3", "sqlite_exact.sqlite3", "knowledge_graph.sqlite3"),
    ),
    ("MCP_MEMORY_BASE_DIR", ".local/share/mcp-memory", ("sqlite_vec.db",)),
)
_IN_PROJECT = (
    "CLAUDE.md", "CLAUDE.local.md", "AGENTS.md", "GEMINI.md", ".cursorrules", ".windsurfrules", ".claude/rules",
    ".cursor/rules", ".github/copilot-instructions.md", ".github/instructions", "docs/adr", "docs/adrs",
    "docs/decisions", "doc/adr", "adr", "CHANGELOG.md",
)  # fmt: skip

_LINES = 10_000
_TAIL_BYTES = 256 * 1024


@dataclass(slots=True)
class Discovery:
    """Files of one kind and project folder that could be imported."""

    kind: str
    folder: str
    paths: list[Path] = field(default_factory=list)
    size_bytes: int = 0
    first: datetime | None = None
    last: datetime | None = None

    def add(self, path: Path, file: SourceFile) -> None:
        if path not in self.paths:
            self.paths.append(path)
        self.size_bytes += file.size
        days = _moments(file) or [datetime.fromtimestamp(file.modified / 1e9, UTC)]
        self.first = min(days if self.first is None else [*days, self.first])
        self.last = max(days if self.last is None else [*days, self.last])


def discover(home: Path, project: Path | None, environment: Mapping[str, str] = os.environ) -> list[Discovery]:
    """What could be imported, the newest first."""
    found: dict[tuple[str, str], Discovery] = {}
    known = readers()
    for path in _places(home, project, environment):
        for file in source_files(path, lambda _name, _reason: None):
            reader = recognise(file, known)
            if reader is None or reader.kind in ("json", "markdown", "text", "csv"):
                continue
            folder = _folder_of(file) or ("" if project is None or home in path.parents else str(project))
            one = found.setdefault((reader.kind, folder), Discovery(reader.kind, folder))
            one.add(Path(file.name.partition("!")[0]), file)
    return sorted(found.values(), key=lambda one: (one.last is not None, one.last), reverse=True)


def _places(home: Path, project: Path | None, environment: Mapping[str, str]) -> Iterator[Path]:
    for variable, folder, names in _HOMES:
        base = Path(environment[variable]) if environment.get(variable) else home / folder
        yield from (base / name for name in names if (base / name).exists())
    if project is not None:
        yield from (project / name for name in _IN_PROJECT if (project / name).exists())


def _moments(file: SourceFile) -> list[datetime]:
    """When the first and last turns of a session were said, from its beginning and end; none of another file."""
    end = b""
    if file.size > len(file.head) and not file.is_member:
        with suppress(OSError), file.open() as stream:
            stream.seek(-min(_TAIL_BYTES, file.size), os.SEEK_END)
            end = stream.read(_TAIL_BYTES)
    said = [*first_objects(file.head, _LINES), *first_objects(end, _LINES)]
    return [at for one in said if (at := moment(one.get("timestamp", one.get("ts"))))]


def _folder_of(file: SourceFile) -> str | None:
    """The project folder of a session, from its first lines."""
    for one in first_objects(file.head, _LINES):
        payload = one.get("payload")
        inner = payload if isinstance(payload, dict) else one
        if folder := text_of(inner.get("cwd")):
            return folder
    return None
