"""The scanned files of a project: their content hashes, definitions and imports."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ..database import Changes, Computed, Session, Values, batched, column, marks, replacing
from ..search.filters import files_space

__all__ = ["FileImport", "FileSymbol", "ScanTable", "ScannedFile"]


class FileSymbol(NamedTuple):
    """A definition in a file; lines count from 1."""

    name: str
    qualified: str
    kind: str
    line: int
    end_line: int


class FileImport(NamedTuple):
    """A module that a file imports, with the names taken from it."""

    module: str
    names: tuple[str, ...]
    line: int


@dataclass(frozen=True, slots=True)
class ScannedFile:
    """A file as it was read: `blob` is the hash of its content; `whole` is False if only its head was read."""

    path: str
    blob: str
    parts: int
    whole: bool


class ScanTable:
    def paths(self, session: Session, project_id: str, prefix: str, limit: int) -> list[str]:
        """Paths of scanned files with a prefix, in order."""
        return column(
            session,
            "SELECT path FROM scanned_file WHERE project_id = ? AND substr(path, 1, ?) = ? ORDER BY path LIMIT ?",
            (project_id, len(prefix), prefix, limit),
        )

    def files(self, session: Session, project_id: str) -> dict[str, ScannedFile]:
        rows = session.rows(
            "SELECT path, blob, parts, whole FROM scanned_file WHERE project_id = ? ORDER BY path", (project_id,)
        )
        return {row[0]: ScannedFile(row[0], row[1], row[2], bool(row[3])) for row in rows}

    def file(self, session: Session, project_id: str, path: str) -> ScannedFile | None:
        rows = session.rows(
            "SELECT path, blob, parts, whole FROM scanned_file WHERE project_id = ? AND path = ?", (project_id, path)
        )
        return ScannedFile(rows[0][0], rows[0][1], rows[0][2], bool(rows[0][3])) if rows else None

    def latest(self, session: Session, project_id: str) -> int:
        """When a file of the project was last scanned; 0 if none was."""
        rows = session.rows("SELECT max(scanned_at) FROM scanned_file WHERE project_id = ?", (project_id,))
        return rows[0][0] or 0

    def save(
        self,
        session: Session,
        project_id: str,
        file: ScannedFile,
        symbols: Sequence[FileSymbol],
        imports: Sequence[FileImport],
        at: int,
    ) -> None:
        self._drop_outline(session, project_id, [file.path])
        state: Values = {"blob": file.blob, "parts": file.parts, "whole": int(file.whole), "scanned_at": at}
        row: Values = {"project_id": project_id, "path": file.path, **state}
        session.insert("scanned_file", row, replacing("scanned_file", *state))
        session.insert_many(
            "symbol",
            ("project_id", "path", "n", *FileSymbol._fields),
            [(project_id, file.path, n, *symbol) for n, symbol in enumerate(symbols)],
        )
        session.insert_many(
            "import",
            ("project_id", "path", "n", *FileImport._fields),
            [
                (project_id, file.path, n, one.module, json.dumps(one.names, ensure_ascii=False), one.line)
                for n, one in enumerate(imports)
            ],
        )

    def remove(self, session: Session, project_id: str, paths: Sequence[str]) -> None:
        self._drop_outline(session, project_id, paths)
        for batch in batched(paths):
            session.run(
                f"DELETE FROM scanned_file WHERE project_id = ? AND path IN ({marks(len(batch))})", (project_id, *batch)
            )

    def rename(self, session: Session, project_id: str, old: str, new: str, seq: int) -> None:
        """Move a file to another path; its records stay the same."""
        for table in ("scanned_file", "symbol", "import"):
            session.update(table, {"path": new}, "project_id = ? AND path = ?", (project_id, old))
        source = Computed("? || substr(source, ?)", (new, len(old) + 1))
        changes: Changes = {"path": new, "source": source, "seq": seq}
        session.update("memory", changes, "space = ? AND path = ?", (files_space(project_id), old))

    def symbols(
        self, session: Session, project_id: str, *, name: str | None = None, path: str | None = None
    ) -> list[tuple[str, FileSymbol]]:
        """Definitions as (path, symbol), in order: all, those of a name, those of a file."""
        where, params = _narrowed(project_id, name=name, path=path)
        rows = session.rows(
            f"SELECT path, name, qualified, kind, line, end_line FROM symbol WHERE {where} ORDER BY path, n", params
        )
        return [(row[0], FileSymbol(*row[1:])) for row in rows]

    def imports(
        self, session: Session, project_id: str, *, module: str | None = None, path: str | None = None
    ) -> list[tuple[str, FileImport]]:
        """Imports as (path, import), in order: all, those of a module, those of a file."""
        where, params = _narrowed(project_id, module=module, path=path)
        rows = session.rows(f"SELECT path, module, names, line FROM import WHERE {where} ORDER BY path, n", params)
        return [(row[0], FileImport(row[1], tuple(json.loads(row[2])), row[3])) for row in rows]

    def _drop_outline(self, session: Session, project_id: str, paths: Sequence[str]) -> None:
        for batch in batched(paths):
            for table in ("symbol", "import"):
                session.run(
                    f"DELETE FROM {table} WHERE project_id = ? AND path IN ({marks(len(batch))})", (project_id, *batch)
                )


def _narrowed(project_id: str, **columns: str | None) -> tuple[str, list[str]]:
    given = {name: value for name, value in columns.items() if value is not None}
    return " AND ".join(["project_id = ?", *(f"{name} = ?" for name in given)]), [project_id, *given.values()]
