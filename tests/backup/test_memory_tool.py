"""The backend of the API's memory tool: its commands and answers, as on a file system, with memories behind them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cortex_py import Cortex
from cortex_py.core.errors import Conflict, ContentBlocked, ContentTooLarge, CortexError, InvalidInput, NotFound
from cortex_py.parts.backup.bridges.memory_tool import MemoryTool

from helpers import FakeClock
from homes import opened


@pytest.fixture
def cortex(home: Path, project: Path, clock: FakeClock) -> Iterator[Cortex]:
    with opened(home, project, clock) as opened_home:
        yield opened_home


@pytest.fixture
def tool(cortex: Cortex) -> MemoryTool:
    return MemoryTool(cortex.memories)


def test_a_file_is_written_read_edited_and_deleted(tool: MemoryTool, cortex: Cortex) -> None:
    path = "/memories/notes/build.md"
    made = {"command": "create", "path": path, "file_text": "Use pnpm.\nRun the tests.\n"}
    assert tool.call(made) == f"File created successfully at: {path}"
    assert tool.call({"command": "view", "path": path}) == (
        f"Here's the content of {path} with line numbers:\n     1\tUse pnpm.\n     2\tRun the tests.\n     3\t"
    )
    assert tool.call({"command": "str_replace", "path": path, "old_str": "pnpm", "new_str": "bun"}) == (
        "The memory file has been edited. Here is the snippet showing the change (with line numbers):\n"
        "     1\tUse bun.\n     2\tRun the tests.\n     3\t"
    )
    tool.call({"command": "insert", "path": path, "insert_line": 1, "insert_text": "Never npm.\n"})
    assert tool.call({"command": "view", "path": path, "view_range": [1, 2]}).splitlines()[1:] == [
        "     1\tUse bun.",
        "     2\tNever npm.",
    ]
    memory = cortex.memories.recall("bun").results[0].memory
    assert (memory.source, memory.tags) == (path, ("memory-tool",))
    assert [one.content.splitlines()[0] for one in cortex.memories.history(memory.id)] == [
        "Use pnpm.",
        "Use bun.",
        "Use bun.",
    ]
    tool.call({"command": "rename", "old_path": "/memories/notes", "new_path": "/memories/old"})
    assert tool.call({"command": "view", "path": "/memories"}).splitlines()[1:] == [
        "35B\t/memories",
        "35B\t/memories/old",
        "35B\t/memories/old/build.md",
    ]
    tool.call({"command": "delete", "path": "/memories/old"})
    assert tool.call({"command": "view", "path": "/memories"}).splitlines()[1:] == ["0B\t/memories"]
    assert cortex.memories.restore(memory.id).content.startswith("Use bun.")


@pytest.mark.parametrize(
    ("call", "error"),
    [
        ({"command": "view", "path": "/etc/passwd"}, InvalidInput),
        ({"command": "view", "path": "/memories/../etc"}, InvalidInput),
        ({"command": "view", "path": "/memories/a\\b"}, InvalidInput),
        ({"command": "view", "path": "/memories/%2e%2e/etc"}, InvalidInput),
        ({"command": "view", "path": "/memories/a%2fb"}, InvalidInput),
        ({"command": "create", "path": "/memories/a\0b", "file_text": "x"}, InvalidInput),
        ({"command": "create", "path": "/memories/%00", "file_text": "x"}, InvalidInput),
        ({"command": "create", "path": "/memories/" + "n" * 201, "file_text": "x"}, InvalidInput),
        (
            {"command": "create", "path": "/memories/ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8", "file_text": "x"},
            ContentBlocked,
        ),
        ({"command": "create", "path": "/memories/c.md", "file_text": "x" * 20_000_000}, ContentTooLarge),
        ({"command": "create", "path": "/memories/a.md", "file_text": "x"}, Conflict),
        ({"command": "create", "path": "/memories/c.md", "file_text": 5}, InvalidInput),
        ({"command": "create", "path": ["/memories/c.md"], "file_text": "x"}, InvalidInput),
        ({"command": "insert", "path": "/memories/a.md", "insert_line": "1", "insert_text": "x"}, InvalidInput),
        ({"command": "view", "path": "/memories/a.md", "view_range": [1]}, InvalidInput),
        ({"command": ["view"], "path": "/memories"}, InvalidInput),
        ({"command": "view", "path": "/memories/nothing"}, NotFound),
        ({"command": "view", "path": "/memories/a.md", "view_range": [3, 2]}, InvalidInput),
        ({"command": "create", "path": "/memories"}, InvalidInput),
        ({"command": "create", "path": "/memories", "file_text": "x"}, InvalidInput),
        ({"command": "create", "path": "/memories/a.md/b.md", "file_text": "x"}, Conflict),
        ({"command": "str_replace", "path": "/memories/a.md", "old_str": "l", "new_str": "x"}, InvalidInput),
        ({"command": "str_replace", "path": "/memories/a.md", "old_str": "no", "new_str": "x"}, InvalidInput),
        ({"command": "insert", "path": "/memories/a.md", "insert_line": 9, "insert_text": "x"}, InvalidInput),
        ({"command": "rename", "old_path": "/memories/a.md", "new_path": "/memories/b.md"}, Conflict),
        ({"command": "delete", "path": "/memories/none.md"}, NotFound),
        ({"command": "format"}, InvalidInput),
    ],
)
def test_a_bad_call_is_refused_and_changes_nothing(
    tool: MemoryTool, call: dict[str, object], error: type[CortexError]
) -> None:
    tool.create("/memories/a.md", "all lines\n")
    tool.create("/memories/b.md", "")
    before = tool.view("/memories"), tool.view("/memories/a.md")
    with pytest.raises(error):
        tool.call(call)
    assert (tool.view("/memories"), tool.view("/memories/a.md")) == before


PATHS = st.sampled_from([f"/memories/{name}" for name in ("a", "b", "a/c", "a/d", "e/f")])
TEXTS = st.text("xy\n ", min_size=1, max_size=8).filter(str.strip)
CALLS = st.one_of(
    st.tuples(st.just("create"), PATHS, TEXTS),
    st.tuples(st.just("str_replace"), PATHS, st.sampled_from("xy"), TEXTS),
    st.tuples(st.just("insert"), PATHS, st.integers(0, 4), TEXTS),
    st.tuples(st.just("delete"), PATHS),
    st.tuples(st.just("rename"), PATHS, PATHS),
)


def expected(files: dict[str, str], call: tuple[object, ...]) -> dict[str, str]:
    """The files after a call, by the rules of a file system; the same files where it fails."""
    command, path, *rest = [str(one) for one in call]
    below = {name for name in files if name == path or name.startswith(f"{path}/")}

    def is_free(name: str, among: set[str]) -> bool:
        return not any(one.startswith(f"{name}/") or name.startswith(f"{one}/") for one in among)

    if command == "create" and path not in files and is_free(path, set(files)):
        return {**files, path: rest[0]}
    if command == "str_replace" and path in files and files[path].count(rest[0]) == 1:
        return {**files, path: files[path].replace(rest[0], rest[1])}
    if command == "insert" and path in files:
        lines = files[path].removesuffix("\n").split("\n")
        if int(rest[0]) <= len(lines):
            lines.insert(int(rest[0]), rest[1].rstrip("\n"))
            return {**files, path: "\n".join(lines) + "\n"}
    if command == "delete":
        return {name: text for name, text in files.items() if name not in below}
    if command == "rename" and below and rest[0] not in files and not rest[0].startswith(f"{path}/"):
        kept = set(files) - below
        if not any(one.startswith(f"{rest[0]}/") for one in files) and is_free(rest[0], kept):
            return {(rest[0] + name.removeprefix(path) if name in below else name): files[name] for name in files}
    return files


@settings(max_examples=15)
@given(st.lists(CALLS, max_size=12))
def test_any_calls_leave_what_a_file_system_would_hold(calls: list[tuple[object, ...]]) -> None:
    names = {
        "create": ("path", "file_text"),
        "str_replace": ("path", "old_str", "new_str"),
        "insert": ("path", "insert_line", "insert_text"),
        "delete": ("path",),
        "rename": ("old_path", "new_path"),
    }
    with TemporaryDirectory() as folder:
        (Path(folder) / "project").mkdir()
        with opened(Path(folder) / "home", Path(folder) / "project") as cortex:
            tool = MemoryTool(cortex.memories)
            files: dict[str, str] = {}
            for call in calls:
                files = expected(files, call)
                with suppress(CortexError):
                    tool.call({"command": call[0], **dict(zip(names[str(call[0])], call[1:], strict=True))})
                found = cortex.memories.recall(filter="tag:memory-tool", limit=1_000).results
                shown = {hit.memory.source: hit.memory.content for hit in found}
                assert shown == files, call
