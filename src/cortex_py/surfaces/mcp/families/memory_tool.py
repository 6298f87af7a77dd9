"""The function of the memory tool. Its arguments are those of the tool of Claude's API, its answers the same texts."""

from __future__ import annotations

from typing import Literal

from .answer import FamilyTools

__all__ = ["MemoryFileTools"]

Command = Literal["view", "create", "str_replace", "insert", "delete", "rename"]


class MemoryFileTools(FamilyTools):
    def memory(
        self,
        command: Command,
        path: str | None = None,
        view_range: list[int] | None = None,
        file_text: str | None = None,
        old_str: str | None = None,
        new_str: str | None = None,
        insert_line: int | None = None,
        insert_text: str | None = None,
        old_path: str | None = None,
        new_path: str | None = None,
    ) -> str:
        given = {
            "command": command,
            "path": path,
            "view_range": view_range,
            "file_text": file_text,
            "old_str": old_str,
            "new_str": new_str,
            "insert_line": insert_line,
            "insert_text": insert_text,
            "old_path": old_path,
            "new_path": new_path,
        }
        return self._cortex.memory_tool.call({name: value for name, value in given.items() if value is not None})
