"""The branch file shows what the store has, and what a person writes into it is never lost."""

import logging
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from cortex_py import Branch, Cortex
from cortex_py.core.errors import InvalidInput, StorageError
from cortex_py.parts.context.branches.file import parse
from cortex_py.parts.context.branches.projection import Projection

from forking import python_command
from helpers import FakeClock, git
from stub_backend import StubBackend

APPENDER = Path(__file__).with_name("appender.py")


@pytest.fixture
def desk(opened: Callable[..., Cortex], tree: Path) -> Cortex:
    return opened(tree)


@pytest.fixture
def line(desk: Cortex) -> Branch:
    return desk.contexts.create_branch("The importer")


def _append(desk: Cortex, line: Branch, clock: FakeClock, *texts: str) -> list[str]:
    ids = []
    for text in texts:
        ids.append(desk.contexts.append(line.id, text, "user").memory.id)
        clock.advance(seconds=1)
    return ids


def _file(desk: Cortex, line: Branch) -> Path:
    return desk.contexts.check_branch(line.id).path


def _shown(desk: Cortex, line: Branch) -> list[str]:
    """What the file shows, which must be what the store has, in the same order and at the same versions."""
    branch = desk.contexts.get_branch(line.id)
    parsed = parse(_file(desk, line).read_text("utf-8"), branch)
    stored = desk.contexts.content(line.id)
    assert [(one.id, one.version, one.content) for one in parsed.entries] == [
        (one.id, one.version, one.content) for one in stored
    ]
    assert not parsed.loose
    assert not any(one.edited for one in parsed.entries)
    assert desk.contexts.check_branch(line.id).verified
    return [one.content for one in stored]


def _edit(desk: Cortex, line: Branch, old: str, new: str) -> None:
    text = _file(desk, line).read_text("utf-8")
    assert text.count(old) == 1
    _file(desk, line).write_text(text.replace(old, new), "utf-8")


def _add(desk: Cortex, line: Branch, text: str) -> None:
    with _file(desk, line).open("a", encoding="utf-8") as file:
        file.write(f"\n{text}\n")


# -- the store is shown --------------------------------------------------------------------------


def test_the_file_shows_every_change(desk: Cortex, line: Branch, clock: FakeClock) -> None:
    assert _shown(desk, line) == []
    one, two, three = _append(desk, line, clock, "first turn", "second turn\r\nwith CRLF", "third 🧠 turn")
    assert _shown(desk, line) == ["first turn", "second turn\r\nwith CRLF", "third 🧠 turn"]
    desk.memories.update(two, content="second turn, better")
    assert _shown(desk, line) == ["first turn", "second turn, better", "third 🧠 turn"]
    desk.memories.delete(one)
    assert _shown(desk, line) == ["second turn, better", "third 🧠 turn"]
    desk.memories.restore(one)
    assert _shown(desk, line) == ["first turn", "second turn, better", "third 🧠 turn"]
    desk.memories.delete(three, hard=True)
    assert _shown(desk, line) == ["first turn", "second turn, better"]
    desk.memories.update(one, tags=["tagged"])
    assert _shown(desk, line) == ["first turn", "second turn, better"]
    desk.memories.update(one, status="archived")
    assert _shown(desk, line) == ["second turn, better"]
    desk.memories.capture("a note beside", branch_id=line.id)
    assert _shown(desk, line) == ["second turn, better", "a note beside"]


def test_turns_stand_in_the_order_of_their_time(desk: Cortex, line: Branch, clock: FakeClock) -> None:
    ids = [desk.contexts.append(line.id, f"turn {n}", "user").memory.id for n in range(4)]
    assert _shown(desk, line) == ["turn 0", "turn 1", "turn 2", "turn 3"]
    desk.memories.delete(ids[0])
    desk.memories.restore(ids[0])
    assert _shown(desk, line) == ["turn 0", "turn 1", "turn 2", "turn 3"]
    desk.memories.capture("long ago", branch_id=line.id, created_at=clock.now().replace(year=2020))
    assert _shown(desk, line) == ["long ago", "turn 0", "turn 1", "turn 2", "turn 3"]


def test_collecting_garbage_reaches_the_file(desk: Cortex, line: Branch, tree: Path, clock: FakeClock) -> None:
    _append(desk, line, clock, "stays")
    desk.memories.capture("expires", branch_id=line.id, ttl="1h")
    git(tree, "checkout", "-q", "-b", "gone")
    desk.memories.capture("of a git branch", branch_id=line.id)
    git(tree, "checkout", "-q", "main")
    git(tree, "branch", "-q", "-D", "gone")
    clock.advance(hours=2)
    desk.memories.gc()
    assert _shown(desk, line) == ["stays"]


def test_linking_is_shown_in_the_front_matter(desk: Cortex, line: Branch, clock: FakeClock) -> None:
    _append(desk, line, clock, "a turn")
    desk.contexts.link(line.id, "feature/login")
    assert "feature/login" in _file(desk, line).read_text("utf-8").split("---")[1]
    assert _shown(desk, line) == ["a turn"]


def test_packing_leaves_the_file_alone(desk: Cortex, line: Branch, clock: FakeClock) -> None:
    _append(desk, line, clock, "a turn that is long enough to be packed " * 20)
    before = _file(desk, line).read_bytes()
    clock.advance(hours=1)
    assert desk.upkeep().records == 1
    desk.contexts.sync(line.id)
    assert _file(desk, line).read_bytes() == before


def test_a_branch_is_checked_in_three_ways(desk: Cortex, line: Branch, clock: FakeClock) -> None:
    _append(desk, line, clock, "a turn")
    assert desk.contexts.check_branch(line.id).verified
    path = _file(desk, line)
    text = path.read_text("utf-8")
    path.write_text(text.replace("topic: ", "topic: not ", 1), "utf-8")
    check = desk.contexts.check_branch(line.id)
    assert (check.file_exists, check.front_matter_valid, check.indexed, check.verified) == (True, False, True, False)
    path.unlink()
    check = desk.contexts.check_branch(line.id)
    assert (check.file_exists, check.front_matter_valid, check.indexed) == (False, False, True)
    unknown = desk.contexts.check_branch("nobody_20260102_123456")
    assert (unknown.file_exists, unknown.indexed, unknown.verified) == (False, False, False)


# -- a person's edits ----------------------------------------------------------------------------


def test_edits_are_taken_in_by_sync(desk: Cortex, line: Branch, clock: FakeClock) -> None:
    one, two, _ = _append(desk, line, clock, "first turn", "second turn", "third turn")
    _edit(desk, line, "first turn", "first turn, by a person")
    _edit(desk, line, "second turn", "")
    _add(desk, line, "A thought of my own.")
    done = desk.contexts.sync(line.id)
    assert (done.updated, done.removed, done.added, done.conflicts) == (1, 1, 1, 0)
    assert _shown(desk, line) == ["first turn, by a person", "third turn", "A thought of my own."]
    assert desk.memories.get(one).version == 2
    assert desk.memories.history(one)[0].content == "first turn"
    assert desk.memories.restore(two).content == "second turn"
    assert not desk.contexts.sync(line.id)
    assert desk.memories.recall("thought", mode="text").results[0].memory.branch_id == line.id


def test_edits_are_taken_in_by_the_next_call(desk: Cortex, line: Branch, clock: FakeClock) -> None:
    _append(desk, line, clock, "first turn")
    _edit(desk, line, "first turn", "first turn, by a person")
    _append(desk, line, clock, "second turn")
    assert _shown(desk, line) == ["first turn, by a person", "second turn"]
    _edit(desk, line, "second turn", "second turn, by a person")
    desk.contexts.initialize(mode="none")
    assert _shown(desk, line) == ["first turn, by a person", "second turn, by a person"]


def test_initialize_touches_only_files_that_need_it(
    desk: Cortex, line: Branch, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A project may have thousands of lines of work, and each session of a client begins with this call."""
    lines = [line, *(desk.contexts.create_branch(f"Line {number}") for number in range(4))]
    for one in lines:
        _append(desk, one, clock, f"turn of {one.topic}")
    unchanged, edited, missing, behind, noteless = lines
    _edit(desk, edited, "turn of", "edited turn of")
    _file(desk, missing).unlink()
    with monkeypatch.context() as failing:
        failing.setattr(Projection, "try_refresh", lambda *_, **__: None)  # as if killed after the commit
        _append(desk, behind, clock, "another turn")
    _file(desk, noteless).with_name(f".{noteless.id}.note").unlink()
    refreshed: list[str] = []
    plain = Projection.try_refresh

    def noted(self: Projection, branch_id: str, *, whole: bool = False) -> None:
        refreshed.append(branch_id)
        plain(self, branch_id, whole=whole)

    with monkeypatch.context() as noting:
        noting.setattr(Projection, "try_refresh", noted)
        desk.contexts.initialize(mode="none")
    assert {*refreshed} == {edited.id, missing.id, behind.id, noteless.id}
    assert _shown(desk, unchanged) == ["turn of The importer"]
    assert _shown(desk, edited) == ["edited turn of Line 0"]
    assert _shown(desk, missing) == ["turn of Line 1"]
    assert _shown(desk, behind) == ["turn of Line 2", "another turn"]
    assert _shown(desk, noteless) == ["turn of Line 3"]


def test_an_edit_by_another_process_is_taken_in_here(
    desk: Cortex, line: Branch, clock: FakeClock, home: Path, tree: Path
) -> None:
    _append(desk, line, clock, "first turn")
    _edit(desk, line, "first turn", "first turn, by a person")
    with Cortex.open(home, project=tree, clock=clock, backend=StubBackend()) as second:
        second.contexts.append(line.id, "second turn", "assistant")
    assert _shown(desk, line) == ["first turn, by a person", "second turn"]
    _append(desk, line, clock, "third turn")
    assert _shown(desk, line) == ["first turn, by a person", "second turn", "third turn"]


def test_where_both_changed_both_are_kept(desk: Cortex, line: Branch, clock: FakeClock) -> None:
    (one,) = _append(desk, line, clock, "first turn")
    text = _file(desk, line).read_text("utf-8")
    desk.memories.update(one, content="first turn, by a program")
    # The person saves an editor that was opened before.
    _file(desk, line).write_text(text.replace("first turn", "first turn, by a person"), "utf-8")
    done = desk.contexts.sync(line.id)
    assert (done.updated, done.conflicts) == (0, 1)
    assert _shown(desk, line) == ["first turn, by a program", "first turn, by a person"]
    kept = desk.contexts.content(line.id)[1]
    assert kept.tags == ("conflict",)
    assert not desk.contexts.sync(line.id)


def test_a_secret_that_a_person_writes_is_redacted(desk: Cortex, line: Branch, clock: FakeClock) -> None:
    key = "AKIA" + "QYLPMN5HFIQR7XYA"
    _append(desk, line, clock, "first turn")
    _add(desk, line, f"aws_access_key_id = {key}")
    desk.contexts.sync(line.id)
    assert key not in _file(desk, line).read_text("utf-8")
    assert len(_shown(desk, line)) == 2


def test_a_topic_that_a_person_changes_is_taken_in(desk: Cortex, line: Branch, clock: FakeClock) -> None:
    _append(desk, line, clock, "first turn")
    path = _file(desk, line)
    head, _, rest = path.read_text("utf-8").partition("\n---\n")
    assert head.count("The importer") == 1
    path.write_text(f"{head.replace('The importer', 'The exporter')}\n---\n{rest}", "utf-8")
    desk.contexts.sync(line.id)
    assert desk.contexts.get_branch(line.id).topic == "The exporter"
    assert _shown(desk, line) == ["first turn"]
    assert "The importer" not in path.read_text("utf-8")
    assert desk.contexts.summary(line.id).branch.topic == "The exporter"


def test_a_broken_file_is_left_untouched_until_it_is_mended(
    desk: Cortex, line: Branch, clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    _append(desk, line, clock, "first turn")
    path = _file(desk, line)
    whole = path.read_text("utf-8").replace("first turn", "first turn, by a person")
    broken = whole[: whole.rfind("<!-- cortex:eof")]
    path.write_text(broken, "utf-8")
    with caplog.at_level(logging.WARNING):
        _append(desk, line, clock, "second turn", "third turn")
    assert line.id in caplog.text
    assert path.read_text("utf-8") == broken
    assert [one.content for one in desk.contexts.content(line.id)] == ["first turn", "second turn", "third turn"]
    with pytest.raises(InvalidInput):
        desk.contexts.sync(line.id)
    assert path.read_text("utf-8") == broken
    assert not desk.contexts.check_branch(line.id).verified
    path.write_text(whole, "utf-8")
    assert desk.contexts.sync(line.id).updated == 1
    assert _shown(desk, line) == ["first turn, by a person", "second turn", "third turn"]


def test_a_deleted_file_is_made_anew_and_takes_nothing_along(desk: Cortex, line: Branch, clock: FakeClock) -> None:
    _append(desk, line, clock, "first turn", "second turn")
    calls = (
        lambda: _append(desk, line, clock, "third turn"),
        lambda: desk.contexts.initialize(mode="none"),
        lambda: desk.contexts.sync(line.id),
    )
    for call in calls:
        _file(desk, line).unlink()
        call()
        assert _shown(desk, line) == ["first turn", "second turn", "third turn"]


def test_a_lost_note_beside_the_file_costs_nothing(desk: Cortex, line: Branch, clock: FakeClock) -> None:
    _append(desk, line, clock, "first turn")
    note = _file(desk, line).with_name(f".{line.id}.note")
    for content in ("", "[1, 2", "null", '["a", "b", "c", "d", "e"]'):
        note.write_text(content)
        _append(desk, line, clock, f"after {content!r}")
    assert len(_shown(desk, line)) == 5


# -- several processes, and places that cannot be written -----------------------------------------


def _check_two_processes(desk: Cortex, line: Branch, home: Path, tree: Path, each: int) -> None:
    command = [*python_command(), str(APPENDER), str(home), str(tree), line.id]
    processes = [subprocess.Popen([*command, name, str(each)]) for name in ("a", "b")]
    for process in processes:
        assert process.wait(600) == 0
    shown = _shown(desk, line)
    assert len(shown) == 2 * each
    for name in ("a", "b"):
        own = [text for text in shown if text.startswith("turn ") and f"of {name}\n" in text]
        assert own == [f"turn {n} of {name}\n\nwith a second line" for n in range(each)]


def test_two_processes_append_to_one_branch(desk: Cortex, line: Branch, home: Path, tree: Path) -> None:
    _check_two_processes(desk, line, home, tree, 40)


@pytest.mark.soak
def test_two_processes_append_five_hundred_turns_each(desk: Cortex, line: Branch, home: Path, tree: Path) -> None:
    _check_two_processes(desk, line, home, tree, 500)


def test_where_no_file_can_be_written_turns_are_stored_and_branches_refused(
    desk: Cortex, line: Branch, clock: FakeClock, home: Path
) -> None:
    _append(desk, line, clock, "first turn")
    # A file in place of the folder stops everybody, also one who may write anywhere.
    (home / "memory").rename(home / "elsewhere")
    (home / "memory").write_text("in the way")
    _append(desk, line, clock, "second turn")
    assert [one.content for one in desk.contexts.content(line.id)] == ["first turn", "second turn"]
    with pytest.raises(StorageError):
        desk.contexts.create_branch("Another")
    (home / "memory").unlink()
    (home / "elsewhere").rename(home / "memory")
    desk.contexts.sync(line.id)
    assert _shown(desk, line) == ["first turn", "second turn"]
