"""The texts that a repository shares: read when they change, and never from outside of it."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from cortex_py.parts.prompts import folder as module
from cortex_py.parts.prompts.checks import Draft
from cortex_py.parts.prompts.files import FILE_MOST
from cortex_py.parts.prompts.folder import FILES_MOST, FolderTexts, PromptFolder
from timing import MINUTE

SECRET = "the private file"


@pytest.fixture
def place(project: Path) -> Path:
    folder = project / ".cortex" / "prompts"
    folder.mkdir(parents=True)
    return folder


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "private.md").write_text(SECRET)
    return folder


@pytest.fixture
def folder(project: Path, place: Path) -> PromptFolder:
    return PromptFolder(project, "prompt")


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The files that were parsed, by name."""
    names: list[str] = []
    real = module.load

    def load(data: bytes, **more: Any) -> list[Draft]:
        names.append(more["filename"].rpartition("/")[2])
        # Long enough for another thread to come in between.
        time.sleep(0.001)
        return real(data, **more)

    monkeypatch.setattr(module, "load", load)
    return names


def names(shared: FolderTexts) -> list[str]:
    return [item.draft.name for item in shared.items]


class TestReading:
    def test_files_by_path_with_what_is_known_of_them(self, place: Path, folder: PromptFolder) -> None:
        (place / "b.md").write_bytes(b"B\r\n")
        (place / "a").mkdir()
        (place / "a" / "z.yml").write_text("- {name: one, content: x}\n- {name: two, content: y}\n")
        (place / "c.JSON").write_text('{"content": "C"}')
        os.utime(place / "b.md", ns=(0, 1_767_357_296_000_789_000))
        shared = folder.read()
        assert [(item.path, item.draft.name) for item in shared.items] == [
            (".cortex/prompts/a/z.yml", "one"),
            (".cortex/prompts/a/z.yml", "two"),
            (".cortex/prompts/b.md", "b"),
            (".cortex/prompts/c.JSON", "c"),
        ]
        assert shared.problems == ()
        assert shared.items[2].draft == Draft(name="b", content="B\r\n", kind="prompt")
        assert shared.items[2].changed_at == datetime(2026, 1, 2, 12, 34, 56, 789, tzinfo=UTC)

    def test_each_kind_has_its_folder(self, project: Path, place: Path) -> None:
        (place / "p.md").write_text("P")
        (project / ".cortex" / "templates").mkdir()
        (project / ".cortex" / "templates" / "t.md").write_text("T")
        assert names(PromptFolder(project, "prompt").read()) == ["p"]
        [item] = PromptFolder(project, "template").read().items
        assert (item.draft.name, item.draft.kind, item.path) == ("t", "template", ".cortex/templates/t.md")

    def test_other_files_are_no_concern(self, place: Path, folder: PromptFolder) -> None:
        for name in ("README.md", "ReadMe.MD", "notes.txt", ".hidden.md", "x.md~", "noext"):
            (place / name).write_text("x")
        (place / ".git").mkdir()
        (place / ".git" / "x.md").write_text("x")
        (place / ".#lock.md").symlink_to("nobody@nowhere:1")
        os.mkfifo(place / "pipe.txt")
        assert folder.read() == FolderTexts()

    def test_no_folder_has_no_texts(self, tmp_path: Path) -> None:
        (tmp_path / "empty").mkdir()
        (tmp_path / "file").write_text("")
        for root in (None, tmp_path / "nowhere", tmp_path / "empty", tmp_path / "file"):
            assert PromptFolder(root, "prompt").read() == FolderTexts()
            assert PromptFolder(root, "template").fingerprint() == PromptFolder(root, "prompt").fingerprint()

    def test_sub_folders_have_an_end(self, place: Path, folder: PromptFolder) -> None:
        deep = place / "1" / "2" / "3"
        (deep / "4").mkdir(parents=True)
        (deep / "in.md").write_text("x")
        (deep / "4" / "out.md").write_text("x")
        shared = folder.read()
        assert names(shared) == ["in"]
        assert shared.problems == (".cortex/prompts/1/2/3/4: folders more than 3 deep are not read.",)

    def test_the_root_itself_may_be_a_link(self, place: Path, project: Path, tmp_path: Path) -> None:
        (place / "a.md").write_text("x")
        (tmp_path / "link").symlink_to(project)
        assert names(PromptFolder(tmp_path / "link", "prompt").read()) == ["a"]

    def test_odd_times_do_not_keep_a_file_back(self, place: Path, folder: PromptFolder) -> None:
        for name, seconds in (("a", -(10**9)), ("b", 2**34 - 1)):
            (place / f"{name}.md").write_text("x")
            os.utime(place / f"{name}.md", (0, seconds))
        assert names(folder.read()) == ["a", "b"]
        far = module._Stamp(10**30, 0, 0, 0, 0)
        assert far.changed_at.year == 9999


class TestProblems:
    def test_an_invalid_file_keeps_no_other_back(self, place: Path, folder: PromptFolder) -> None:
        (place / "bad.md").write_text("---\nnam: x\n---\n")
        (place / "binary.json").write_bytes(b"\xff")
        (place / "good.md").write_text("x")
        (place / "huge.md").write_bytes(b"x" * (FILE_MOST + 1))
        (place / "kind.md").write_text("---\nkind: template\n---\n")
        shared = folder.read()
        assert names(shared) == ["good"]
        assert [line.split(":")[0] for line in shared.problems] == [
            ".cortex/prompts/bad.md, line 2",
            ".cortex/prompts/binary.json, line 1",
            ".cortex/prompts/huge.md",
            ".cortex/prompts/kind.md, line 2",
        ]
        assert "larger than 1,000,000 bytes" in shared.problems[2]

    def test_the_first_of_a_name_wins(self, place: Path, folder: PromptFolder) -> None:
        (place / "a.md").write_text("---\nname: same\n---\nfirst")
        (place / "b.yaml").write_text("name: same\ncontent: second")
        (place / "c.json").write_text('[{"name": "c", "content": "1"}, {"name": "c", "content": "2"}]')
        shared = folder.read()
        assert [(item.draft.name, item.draft.content) for item in shared.items] == [("same", "first"), ("c", "1")]
        assert shared.problems == (
            ".cortex/prompts/b.yaml: the name 'same' is already taken by .cortex/prompts/a.md.",
            ".cortex/prompts/c.json: the name 'c' is already taken by .cortex/prompts/c.json.",
        )

    def test_many_files(self, place: Path, folder: PromptFolder) -> None:
        for number in range(FILES_MOST + 2):
            (place / f"p{number:04}.md").write_text("x")
        shared = folder.read()
        assert names(shared) == [f"p{number:04}" for number in range(FILES_MOST)]
        assert shared.problems == (".cortex/prompts: it holds 1,002 files, and only the first 1,000 are read.",)

    def test_many_bytes(self, place: Path, folder: PromptFolder, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(module, "BYTES_MOST", 10)
        for name, size in (("a", 6), ("b", 5), ("c", 4)):
            (place / f"{name}.md").write_text("x" * size)
        shared = folder.read()
        assert names(shared) == ["a", "c"]
        [problem] = shared.problems
        assert problem.startswith(".cortex/prompts/b.md: the files before it")

    def test_a_file_in_the_place_of_the_folder(self, project: Path) -> None:
        (project / ".cortex").mkdir()
        (project / ".cortex" / "prompts").write_text("x")
        assert PromptFolder(project, "prompt").read().problems == (".cortex/prompts: it is not a folder.",)

    def test_names_of_any_bytes(self, place: Path, folder: PromptFolder) -> None:
        (place / os.fsdecode(b"caf\xe9.md")).write_text("---\nname: cafe\n---\n")
        (place / "new\nline\x1b.md").write_text("---\nfoo: 1\n---\n")
        shared = folder.read()
        assert [item.path for item in shared.items] == [".cortex/prompts/caf\\xe9.md"]
        [problem] = shared.problems
        assert problem.startswith(".cortex/prompts/new\\nline\\x1b.md, line 2: ")

    def test_unreadable_files_are_told_until_they_can_be_read(
        self, place: Path, folder: PromptFolder, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (place / "a.md").write_text("x")
        (place / "b.md").write_text("x")
        real = os.open

        def refuse(path: Any, *more: Any, **names: Any) -> int:
            if str(path).endswith("a.md"):
                raise PermissionError(13, "Permission denied", str(path))
            return real(path, *more, **names)

        monkeypatch.setattr(os, "open", refuse)
        shared = folder.read()
        assert names(shared) == ["b"]
        assert shared.problems == (".cortex/prompts/a.md: Permission denied.",)
        monkeypatch.setattr(os, "open", real)
        assert names(folder.read()) == ["a", "b"]

    @pytest.mark.skipif(os.geteuid() == 0, reason="nothing is unreadable to root")
    def test_permissions(self, place: Path, folder: PromptFolder) -> None:
        (place / "a.md").write_text("x")
        (place / "sub").mkdir()
        (place / "a.md").chmod(0)
        (place / "sub").chmod(0)
        try:
            before = folder.fingerprint()
            assert len(folder.read().problems) == 2
        finally:
            (place / "a.md").chmod(0o600)
            (place / "sub").chmod(0o700)
        assert folder.fingerprint() != before
        assert names(folder.read()) == ["a"]

    def test_a_folder_that_cannot_be_listed(
        self, place: Path, folder: PromptFolder, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (place / "a.md").write_text("x")
        (place / "sub").mkdir()
        real = os.scandir

        def refuse(path: Any) -> Any:
            if str(path).endswith("sub"):
                raise PermissionError(13, "Permission denied")
            return real(path)

        monkeypatch.setattr(os, "scandir", refuse)
        shared = folder.read()
        assert (names(shared), shared.problems) == (["a"], (".cortex/prompts/sub: Permission denied.",))


class TestNothingFromOutside:
    def test_a_link_to_a_file(self, place: Path, outside: Path, folder: PromptFolder) -> None:
        (place / "link.md").symlink_to(outside / "private.md")
        (place / "inner.md").write_text("x")
        (place / "near.md").symlink_to("inner.md")
        shared = folder.read()
        assert names(shared) == ["inner"]
        assert shared.problems == (
            ".cortex/prompts/link.md: it is a symbolic link, and those are not followed.",
            ".cortex/prompts/near.md: it is a symbolic link, and those are not followed.",
        )

    def test_a_link_to_a_folder(self, place: Path, outside: Path, folder: PromptFolder) -> None:
        (place / "sub").symlink_to(outside, target_is_directory=True)
        assert folder.read() == FolderTexts(
            (), (".cortex/prompts/sub: it is a symbolic link, and those are not followed.",)
        )

    @pytest.mark.parametrize("linked", [".cortex", ".cortex/prompts"])
    def test_a_link_in_the_place_of_the_folder(self, project: Path, outside: Path, linked: str) -> None:
        (outside / "prompts").mkdir()
        (outside / "prompts" / "private.md").write_text(SECRET)
        (project / linked).parent.mkdir(exist_ok=True)
        (project / linked).symlink_to(outside, target_is_directory=True)
        shared = PromptFolder(project, "prompt").read()
        assert shared == FolderTexts((), (f"{linked}: it is a symbolic link, and those are not followed.",))

    @pytest.mark.parametrize("swap", ["file", "folder"])
    def test_a_link_swapped_in_after_the_look(
        self, place: Path, outside: Path, folder: PromptFolder, monkeypatch: pytest.MonkeyPatch, swap: str
    ) -> None:
        (place / "sub").mkdir()
        (place / "sub" / "private.md").write_text("harmless")
        real = os.open

        def swapped(path: Any, *more: Any, **names: Any) -> int:
            if swap == "file":
                (place / "sub" / "private.md").unlink()
                (place / "sub" / "private.md").symlink_to(outside / "private.md")
            else:
                (place / "sub").rename(place.parent / "moved")
                (place / "sub").symlink_to(outside, target_is_directory=True)
            monkeypatch.setattr(os, "open", real)
            return real(path, *more, **names)

        monkeypatch.setattr(os, "open", swapped)
        shared = folder.read()
        assert shared.items == ()
        [problem] = shared.problems
        assert problem.startswith(".cortex/prompts/sub/private.md: ")
        assert SECRET not in problem

    @pytest.mark.parametrize("kind", ["fifo", "socket", "folder"])
    def test_what_is_no_regular_file_does_not_block(
        self, place: Path, folder: PromptFolder, kind: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(place)
        if kind == "fifo":
            os.mkfifo("odd.md")
        elif kind == "folder":
            Path("odd.md").mkdir()
        else:
            # By its short name: the path of a socket may not be long.
            with socket.socket(socket.AF_UNIX) as unused:
                unused.bind("odd.md")
        (place / "b.md").write_text("x")
        shared = within_seconds(folder.read)
        assert names(shared) == ["b"]
        odd = () if kind == "folder" else (".cortex/prompts/odd.md: it is not a regular file.",)
        assert shared.problems == odd

    def test_a_pipe_swapped_in_after_the_look_does_not_block(
        self, place: Path, folder: PromptFolder, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (place / "a.md").write_text("x")
        real = os.open

        def swapped(path: Any, *more: Any, **names: Any) -> int:
            (place / "a.md").unlink()
            os.mkfifo(place / "a.md")
            return real(path, *more, **names)

        monkeypatch.setattr(os, "open", swapped)
        shared = within_seconds(folder.read)
        assert shared == FolderTexts((), (".cortex/prompts/a.md: it is not a regular file.",))


def within_seconds(call: Callable[[], FolderTexts]) -> FolderTexts:
    found: list[FolderTexts] = []
    worker = threading.Thread(target=lambda: found.append(call()), daemon=True)
    worker.start()
    worker.join(MINUTE)
    assert found, "it hangs"
    return found[0]


class TestCaching:
    def test_nothing_is_parsed_twice(self, place: Path, folder: PromptFolder, parsed: list[str]) -> None:
        (place / "a.md").write_text("x")
        (place / "bad.json").write_text("{")
        first = folder.read()
        assert folder.read() is first
        assert parsed == ["a.md", "bad.json"]

    def test_only_what_changed_is_parsed_again(self, place: Path, folder: PromptFolder, parsed: list[str]) -> None:
        for name in "abc":
            (place / f"{name}.md").write_text("x")
        (place / "bad.json").write_text("{")
        folder.read()
        parsed.clear()
        (place / "b.md").write_text("longer")
        (place / "c.md").unlink()
        (place / "d.md").write_text("new")
        shared = folder.read()
        assert sorted(parsed) == ["b.md", "d.md"]
        assert [(item.draft.name, item.draft.content) for item in shared.items] == [
            ("a", "x"),
            ("b", "longer"),
            ("d", "new"),
        ]
        assert len(shared.problems) == 1

    def test_a_change_that_keeps_size_and_time_is_seen(self, place: Path, folder: PromptFolder) -> None:
        file, other = place / "a.md", place / "b.tmp"
        file.write_text("old")
        os.utime(file, (1, 1))
        assert folder.read().items[0].draft.content == "old"
        other.write_text("new")
        os.utime(other, (1, 1))
        other.replace(file)
        assert folder.read().items[0].draft.content == "new"
        file.write_text("odd")
        os.utime(file, (1, 1))
        assert folder.read().items[0].draft.content == "odd"

    @pytest.mark.parametrize("change", ["edit", "add", "remove", "rename", "link", "folder"])
    def test_the_fingerprint_tells_every_change(self, place: Path, folder: PromptFolder, change: str) -> None:
        (place / "a.md").write_text("x")
        before = folder.fingerprint()
        assert hash(before) == hash(folder.fingerprint())
        assert before == folder.fingerprint()
        match change:
            case "edit":
                (place / "a.md").write_text("longer")
            case "add":
                (place / "b.md").write_text("x")
            case "remove":
                (place / "a.md").unlink()
            case "rename":
                (place / "a.md").rename(place / "b.md")
            case "link":
                (place / "l.md").symlink_to("a.md")
            case "folder":
                place.rename(place.with_name("gone"))
        assert folder.fingerprint() != before

    def test_the_fingerprint_opens_no_file(
        self, place: Path, folder: PromptFolder, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (place / "a.md").write_text("x")

        def refuse(*_: Any, **__: Any) -> int:
            raise AssertionError("a file was opened")

        monkeypatch.setattr(os, "open", refuse)
        monkeypatch.setattr("builtins.open", refuse)
        folder.fingerprint()
        with pytest.raises(AssertionError):
            folder.read()

    def test_threads_share_one_reading(self, place: Path, folder: PromptFolder, parsed: list[str]) -> None:
        for number in range(50):
            (place / f"p{number:02}.md").write_text("x")
        barrier = threading.Barrier(8)
        found: list[FolderTexts] = []

        def work() -> None:
            barrier.wait()
            found.append(folder.read())

        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(parsed) == 50
        assert len(found) == 8
        assert all(shared is found[0] for shared in found)
