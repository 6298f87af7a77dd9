"""The backend of the memory tool of Claude's API: files below `/memories`, each of which is a memory.

The commands and their answers are those that the tool documents: view, create, str_replace, insert, delete, rename. A
file is a memory with the tag `memory-tool` and its path as the source, so that recall finds it, an edit is a version
and a deleted file can be restored. Nothing is written to a disk, and a path is only a name: `..` leads nowhere.

    tool = MemoryTool(cortex.memories)
    answer = tool.call({"command": "view", "path": "/memories"})
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from ...errors import Conflict, InvalidInput, NotFound
from ...memory.service import Memories
from ...records import Domain, Memory, NewMemory

__all__ = ["MEMORY_TOOL_TAG", "MemoryTool"]

MEMORY_TOOL_TAG = "memory-tool"
_ROOT = "/memories"
_PART = re.compile(r"[^/\0-\x1f\x7f\\]{1,200}\Z")
_PATH_MOST = 1_000
_FILES_MOST = 10_000
_PAGE = 1_000
_SHOWN_LINES = 999_999
# An empty file is a memory too, and a memory has a text.
_EMPTY = "(empty file)"


class MemoryTool:
    """Answers the calls of the memory tool from the memories of a project, or of its person or organisation."""

    def __init__(self, memories: Memories, *, domain: Domain = "project") -> None:
        self._memories = memories
        self._domain: Domain = domain

    def call(self, given: Mapping[str, object]) -> str:
        """Carry out one call of the tool, as the model sent it. InvalidInput or NotFound is the answer to a bad one."""
        acts = {
            "view": lambda: self.view(_text(given, "path"), _range(given.get("view_range"))),
            "create": lambda: self.create(_text(given, "path"), _text(given, "file_text", blank=True)),
            "str_replace": lambda: self.str_replace(
                _text(given, "path"), _text(given, "old_str"), _text(given, "new_str", blank=True)
            ),
            "insert": lambda: self.insert(
                _text(given, "path"), _whole(given.get("insert_line")), _text(given, "insert_text", blank=True)
            ),
            "delete": lambda: self.delete(_text(given, "path")),
            "rename": lambda: self.rename(_text(given, "old_path"), _text(given, "new_path")),
        }
        command = given.get("command")
        if not isinstance(command, str) or command not in acts:
            raise InvalidInput(
                f"There is no command {str(command)[:40]!r}.", remedy=f"Use {', '.join(acts)}.", field="command"
            )
        return acts[command]()

    def view(self, path: str, view_range: tuple[int, int] | None = None) -> str:
        """The names in a folder, two levels deep, or the numbered lines of a file."""
        path = _checked(path)
        files = self._files()
        if path not in files:
            if view_range is not None:
                raise _missing(path)
            return _listing(path, files)
        lines = _content(files[path]).split("\n")
        first, last = view_range or (1, len(lines))
        last = len(lines) if last == -1 else last
        if not 1 <= first <= last or len(lines) > _SHOWN_LINES:
            raise InvalidInput(
                f"The file has {len(lines)} lines.", remedy="Give a range inside it.", field="view_range"
            )
        shown = [f"{number:6d}\t{line}" for number, line in enumerate(lines, start=1) if first <= number <= last]
        return "\n".join([f"Here's the content of {path} with line numbers:", *shown])

    def create(self, path: str, file_text: str) -> str:
        """A new file, or a new text for one that is there."""
        path = _checked(path, is_file=True)
        files = self._files()
        if path in files:
            self._put(files[path], file_text)
            return f"File {path} has been overwritten."
        self._check_place(path, files)
        self._add(path, file_text, files)
        return f"File created successfully at: {path}"

    def str_replace(self, path: str, old_str: str, new_str: str) -> str:
        """Replace a text that occurs once in a file."""
        memory = self._file(path)
        content = _content(memory)
        count = content.count(old_str)
        if count != 1:
            lines = [str(n) for n, line in enumerate(content.split("\n"), start=1) if old_str in line]
            what = (
                "did not appear verbatim" if not count else f"occurs {count} times, in lines {', '.join(lines[:20])},"
            )
            raise InvalidInput(f"No replacement was performed: old_str {what} in {path}.", field="old_str")
        self._put(memory, content.replace(old_str, new_str))
        return "The memory file has been edited."

    def insert(self, path: str, insert_line: int, insert_text: str) -> str:
        """Insert a text behind a line; 0 is the beginning."""
        memory = self._file(path)
        lines = _content(memory).split("\n")
        if not 0 <= insert_line <= len(lines):
            raise InvalidInput(
                f"Invalid insert_line {insert_line}: the file has {len(lines)} lines.",
                remedy=f"Give 0 to {len(lines)}.",
                field="insert_line",
            )
        lines[insert_line:insert_line] = insert_text.removesuffix("\n").split("\n")
        self._put(memory, "\n".join(lines))
        return f"The file {path} has been edited."

    def delete(self, path: str) -> str:
        """Delete a file, or a folder with all in it. `cortex restore` undoes it."""
        path = _checked(path, is_file=True)
        chosen = self._below(path)
        for memory in chosen.values():
            self._memories.delete(memory.id)
        return f"Successfully deleted {path}"

    def rename(self, old_path: str, new_path: str) -> str:
        """Rename a file or a folder; what is at the new path is never overwritten."""
        old, new = _checked(old_path, is_file=True), _checked(new_path, is_file=True)
        chosen = self._below(old)
        files = self._files()
        if new in files or any(name.startswith(f"{new}/") for name in files):
            raise Conflict(f"The destination {new} already exists.", remedy="Delete it first.", field="new_path")
        if new.startswith(f"{old}/"):
            raise InvalidInput("A folder cannot be moved into itself.", field="new_path")
        self._check_place(new, {name: one for name, one in files.items() if name not in chosen})
        for name, memory in chosen.items():
            self._memories.update(memory.id, source=f"{new}{name.removeprefix(old)}")
        return f"Successfully renamed {old} to {new}"

    # -- memories as files -----------------------------------------------------------------------

    def _files(self) -> dict[str, Memory]:
        """The memory of each path; of two with one path, the newer."""
        found: dict[str, Memory] = {}
        for offset in range(0, _FILES_MOST, _PAGE):
            page = self._memories.recall(
                filter=f"tag:{MEMORY_TOOL_TAG}", domain=self._domain, limit=_PAGE, offset=offset
            )
            for hit in page.results:
                if hit.memory.source and hit.memory.source.startswith(f"{_ROOT}/"):
                    found.setdefault(hit.memory.source, hit.memory)
            if len(page.results) < _PAGE:
                break
        return dict(sorted(found.items()))

    def _file(self, path: str) -> Memory:
        path = _checked(path, is_file=True)
        files = self._files()
        if path not in files:
            raise _missing(path)
        return files[path]

    def _below(self, path: str) -> dict[str, Memory]:
        """A file, or the files of a folder."""
        files = self._files()
        chosen = {name: one for name, one in files.items() if name == path or name.startswith(f"{path}/")}
        if not chosen:
            raise _missing(path)
        return chosen

    def _check_place(self, path: str, files: Mapping[str, Memory]) -> None:
        """Refuse a file where a folder is, and a folder where a file is."""
        above = {path[:at] for at, letter in enumerate(path) if letter == "/"}
        if above & files.keys() or any(name.startswith(f"{path}/") for name in files):
            raise Conflict(f"{path} would be a file and a folder at once.", remedy="Choose another path.", field="path")

    def _add(self, path: str, text: str, files: Mapping[str, Memory]) -> None:
        if len(files) >= _FILES_MOST:
            raise InvalidInput(f"There are {_FILES_MOST:,} files.", remedy="Delete some first.", field="path")
        self._memories.capture_many(
            [
                NewMemory(
                    content=text if text.strip() else _EMPTY, domain=self._domain, tags=(MEMORY_TOOL_TAG,), source=path
                )
            ]
        )

    def _put(self, memory: Memory, text: str) -> None:
        """The next version of a file; if somebody else changed it meanwhile, the call fails and is repeated."""
        text = text if text.strip() else _EMPTY
        if text != memory.content:
            self._memories.update(memory.id, content=text, expected_version=memory.version)


def _content(memory: Memory) -> str:
    return "" if memory.content == _EMPTY else memory.content


def _checked(path: str, *, is_file: bool = False) -> str:
    """A path below /memories without anything that could lead elsewhere."""
    clean = path.rstrip("/") or path
    parts = clean.removeprefix(_ROOT).split("/")[1:]
    is_below = clean == _ROOT or clean.startswith(f"{_ROOT}/")
    if not is_below or len(clean) > _PATH_MOST or not all(_PART.match(one) and one not in (".", "..") for one in parts):
        raise InvalidInput(
            f"{path[:200]!r} is no path below {_ROOT}.", remedy=f"Give a path such as {_ROOT}/notes.md.", field="path"
        )
    if is_file and clean == _ROOT:
        raise InvalidInput(f"{_ROOT} itself cannot be changed.", remedy="Name a file in it.", field="path")
    return clean


def _listing(path: str, files: Mapping[str, Memory]) -> str:
    below = [name for name in files if name.startswith(f"{path}/")]
    if not below and path != _ROOT:
        raise _missing(path)
    sizes: dict[str, int] = {path: 0}
    for name in below:
        size = len(_content(files[name]).encode())
        parts = name.removeprefix(f"{path}/").split("/")
        sizes[path] += size
        for depth in range(1, min(len(parts), 2) + 1):
            shown = f"{path}/{'/'.join(parts[:depth])}"
            sizes[shown] = sizes.get(shown, 0) + size
    rows = [f"{_size(size)}\t{name}" for name, size in sorted(sizes.items())]
    title = f"Here're the files and directories up to 2 levels deep in {path}, excluding hidden items and node_modules:"
    return "\n".join([title, *rows])


def _size(count: int) -> str:
    return f"{count}B" if count < 1_024 else f"{count / 1_024:.1f}K" if count < 1_024**2 else f"{count / 1_024**2:.1f}M"


def _missing(path: str) -> NotFound:
    return NotFound(f"The path {path} does not exist. Please provide a valid path.", field="path")


def _text(given: Mapping[str, object], name: str, *, blank: bool = False) -> str:
    value = given.get(name, "" if blank and name == "new_str" else None)
    if not isinstance(value, str) or not (value or blank):
        raise InvalidInput(f"{name} is missing.", remedy=f"Give {name} as text.", field=name)
    return value


def _whole(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise InvalidInput("insert_line is not a whole number.", field="insert_line")
    return value


def _range(value: object) -> tuple[int, int] | None:
    if value is None:
        return None
    given = list(value) if isinstance(value, Sequence) else []
    numbers = [one for one in given if isinstance(one, int) and not isinstance(one, bool)]
    if len(numbers) != 2:
        raise InvalidInput("view_range is not two line numbers.", field="view_range")
    return numbers[0], numbers[1]
