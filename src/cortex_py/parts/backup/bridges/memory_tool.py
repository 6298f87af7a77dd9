"""The backend of the memory tool of Claude's API: files below `/memories`, each of which is a memory.

The commands and their answers are those that the tool documents: view, create, str_replace, insert, delete, rename. A
file is a memory with the tag `memory-tool` and its path as the source, so that recall finds it, an edit is a version
and a deleted file can be restored. Nothing is written to a disk, and a path is only a name: `..` leads nowhere.

    tool = MemoryTool(cortex.memories)
    answer = tool.call({"command": "view", "path": "/memories"})
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from urllib.parse import unquote

from ....core.errors import Conflict, InvalidInput, NotFound
from ....core.memory.service import Memories
from ....core.records import Domain, Memory, NewMemory
from ....core.security.policy import Screen
from ....core.store.search.filters import has_glob

__all__ = ["MEMORY_TOOL_TAG", "MemoryTool"]

MEMORY_TOOL_TAG = "memory-tool"
_ROOT = "/memories"
_PART = re.compile(r"[^/\0-\x1f\x7f\\]{1,200}\Z")
_PATH_MOST = 1_000
_FILES_MOST = 10_000
_PAGE = 1_000
_SHOWN_LINES = 999_999
_AROUND = 2
_QUOTED = 200
_LINES_NAMED = 20
_NAMES = Screen("block")
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
        memory = self._at(path)
        if memory is None:
            if view_range is not None:
                raise _missing(path)
            return _listing(path, {one.source or "": _size_of(one) for one in self._below(path)})
        lines = _content(memory).split("\n")
        if len(lines) > _SHOWN_LINES:
            raise InvalidInput(f"File {path} exceeds maximum line limit of {_SHOWN_LINES:,} lines.", field="path")
        first, last = view_range or (1, len(lines))
        last = len(lines) if last == -1 else last
        if not 1 <= first <= last:
            raise InvalidInput(
                f"The file has {len(lines)} lines.", remedy="Give a range inside it.", field="view_range"
            )
        return "\n".join([f"Here's the content of {path} with line numbers:", *_numbered(lines, first, last)])

    def create(self, path: str, file_text: str) -> str:
        """A new file. One that is there is never overwritten."""
        path = _checked(path, is_file=True)
        if self._at(path) is not None:
            raise Conflict(f"File {path} already exists.", remedy="Change it with str_replace or insert.", field="path")
        self._check_place(path)
        self._memories.capture_many(
            [NewMemory(content=_stored(file_text), domain=self._domain, tags=(MEMORY_TOOL_TAG,), source=path)]
        )
        return f"File created successfully at: {path}"

    def str_replace(self, path: str, old_str: str, new_str: str) -> str:
        """Replace a text that occurs once in a file, and show the lines around it."""
        path = _checked(path, is_file=True)
        memory = self._file(path)
        content = _content(memory)
        at = content.find(old_str)
        shown = old_str if len(old_str) <= _QUOTED else f"{old_str[:_QUOTED]}…"
        if at < 0:
            raise InvalidInput(
                f"No replacement was performed, old_str `{shown}` did not appear verbatim in {path}.", field="old_str"
            )
        if content.find(old_str, at + 1) >= 0:
            lines = ", ".join(str(content.count("\n", 0, start) + 1) for start in _occurrences(content, old_str))
            raise InvalidInput(
                f"No replacement was performed. Multiple occurrences of old_str `{shown}` in lines: {lines}. "
                "Please ensure it is unique.",
                field="old_str",
            )
        # What is shown is what is stored: a secret in the new text is not repeated.
        changed = _content(self._put(memory, content.replace(old_str, new_str))).split("\n")
        line = content.count("\n", 0, at) + 1
        snippet = _numbered(changed, line - _AROUND, line + _AROUND)
        return "\n".join(
            ["The memory file has been edited. Here is the snippet showing the change (with line numbers):", *snippet]
        )

    def insert(self, path: str, insert_line: int, insert_text: str) -> str:
        """Insert a text behind a line; 0 is the beginning."""
        path = _checked(path, is_file=True)
        memory = self._file(path)
        lines = _content(memory).removesuffix("\n").split("\n") if _content(memory) else []
        if not 0 <= insert_line <= len(lines):
            raise InvalidInput(
                f"Invalid `insert_line` parameter: {insert_line}. It should be within the range [0, {len(lines)}].",
                field="insert_line",
            )
        lines.insert(insert_line, insert_text.rstrip("\n"))
        self._put(memory, "\n".join([*lines, ""]))
        return f"The file {path} has been edited."

    def delete(self, path: str) -> str:
        """Delete a file, or a folder with all in it. `cortex restore` undoes it."""
        path = _checked(path, is_file=True)
        for memory in self._chosen(path):
            self._memories.delete(memory.id)
        return f"Successfully deleted {path}"

    def rename(self, old_path: str, new_path: str) -> str:
        """Rename a file or a folder; what is at the new path is never overwritten."""
        old, new = _checked(old_path, "old_path", is_file=True), _checked(new_path, "new_path", is_file=True)
        chosen = self._chosen(old)
        if self._at(new) is not None or next(self._below(new), None) is not None:
            raise Conflict(f"The destination {new} already exists.", remedy="Delete it first.", field="new_path")
        if new.startswith(f"{old}/"):
            raise InvalidInput("A folder cannot be moved into itself.", field="new_path")
        moved = [f"{new}{(memory.source or '').removeprefix(old)}" for memory in chosen]
        if any(len(name) > _PATH_MOST for name in moved):
            raise InvalidInput(f"A path would have more than {_PATH_MOST:,} characters.", field="new_path")
        self._check_place(new, chosen)
        for memory, name in zip(chosen, moved, strict=True):
            self._memories.update(memory.id, source=name)
        return f"Successfully renamed {old} to {new}"

    # -- memories as files -----------------------------------------------------------------------

    def _at(self, path: str) -> Memory | None:
        """The file of a path; of two with one path, the newer."""
        return next(self._named(path), None)

    def _named(self, path: str) -> Iterator[Memory]:
        quoted = path.replace('"', '\\"')
        # A pattern would be compared with every source of the project.
        found = self._find() if has_glob(path) else self._find(f'source:"{quoted}"')
        return (one for one in found if one.source == path)

    def _below(self, path: str) -> Iterator[Memory]:
        """The files of a folder."""
        return (one for one in self._find() if (one.source or "").startswith(f"{path}/"))

    def _find(self, condition: str = "") -> Iterator[Memory]:
        """The files, the newest first."""
        for offset in range(0, _FILES_MOST, _PAGE):
            page = self._memories.recall(
                filter=f"tag:{MEMORY_TOOL_TAG} {condition}", domain=self._domain, limit=_PAGE, offset=offset
            )
            yield from (hit.memory for hit in page.results)
            if len(page.results) < _PAGE:
                break

    def _file(self, path: str) -> Memory:
        memory = self._at(path)
        if memory is not None:
            return memory
        if next(self._below(path), None) is not None:
            raise InvalidInput(f"The path {path} is not a file.", field="path")
        raise _missing(path)

    def _chosen(self, path: str) -> list[Memory]:
        """A file, or the files of a folder."""
        chosen = [*self._named(path), *self._below(path)]
        if not chosen:
            raise _missing(path)
        return chosen

    def _check_place(self, path: str, leaving: Sequence[Memory] = ()) -> None:
        """Refuse a file where a folder is, and a folder where a file is, except for files that leave their place."""
        above = {path[:at] for at, letter in enumerate(path) if letter == "/"}
        gone = {one.id for one in leaving}
        files = [(one.id, one.source or "") for one in self._find()]
        if any(id not in gone and (name in above or name.startswith(f"{path}/")) for id, name in files):
            raise Conflict(f"{path} would be a file and a folder at once.", remedy="Choose another path.", field="path")
        if len(files) >= _FILES_MOST and not leaving:
            raise InvalidInput(f"There are {_FILES_MOST:,} files.", remedy="Delete some first.", field="path")

    def _put(self, memory: Memory, text: str) -> Memory:
        """The next version of a file; if somebody else changed it meanwhile, the call fails and is repeated."""
        text = _stored(text)
        if text == memory.content:
            return memory
        return self._memories.update(memory.id, content=text, expected_version=memory.version)


def _content(memory: Memory) -> str:
    return "" if memory.content == _EMPTY else memory.content


def _stored(text: str) -> str:
    return text if text.strip() else _EMPTY


def _size_of(memory: Memory) -> int:
    return len(_content(memory).encode())


def _numbered(lines: Sequence[str], first: int, last: int) -> list[str]:
    return [f"{number:6d}\t{line}" for number, line in enumerate(lines, start=1) if first <= number <= last]


def _checked(path: str, field: str = "path", *, is_file: bool = False) -> str:
    """A path below /memories without anything that could lead elsewhere, also not after it is decoded."""
    clean = path.rstrip("/") or path
    is_below = clean == _ROOT or clean.startswith(f"{_ROOT}/")
    names = [form for one in clean.removeprefix(_ROOT).split("/")[1:] for form in (one, unquote(one))]
    if not is_below or len(clean) > _PATH_MOST or not all(_PART.match(one) and one not in (".", "..") for one in names):
        raise InvalidInput(
            f"{path[:200]!r} is no path below {_ROOT}.", remedy=f"Give a path such as {_ROOT}/notes.md.", field=field
        )
    if is_file and clean == _ROOT:
        raise InvalidInput(f"{_ROOT} itself cannot be changed.", remedy="Name a file in it.", field=field)
    # A name is stored and repeated as it is, so it holds no secret under any policy.
    return str(_NAMES.name(clean, field))


def _listing(path: str, files: Mapping[str, int]) -> str:
    """The folder and what is in it, each with its size. Hidden files count for the folders that are shown."""
    if not files and path != _ROOT:
        raise _missing(path)
    sizes: dict[str, int] = {path: 0}
    for name, size in files.items():
        parts = name.removeprefix(f"{path}/").split("/")
        sizes[path] += size
        for depth in range(1, min(len(parts), 2) + 1):
            if parts[depth - 1].startswith(".") or parts[depth - 1] == "node_modules":
                break
            shown = f"{path}/{'/'.join(parts[:depth])}"
            sizes[shown] = sizes.get(shown, 0) + size
    rows = [f"{_size(size)}\t{name}" for name, size in sorted(sizes.items())]
    title = f"Here're the files and directories up to 2 levels deep in {path}, excluding hidden items and node_modules:"
    return "\n".join([title, *rows])


def _size(count: int) -> str:
    return f"{count}B" if count < 1_024 else f"{count / 1_024:.1f}K" if count < 1_024**2 else f"{count / 1_024**2:.1f}M"


def _occurrences(content: str, text: str) -> Iterator[int]:
    """Where a text begins, as often as a message names it."""
    at = content.find(text)
    for _ in range(_LINES_NAMED):
        if at < 0:
            return
        yield at
        at = content.find(text, at + 1)


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
