"""The index of a folder: it notices every change, reads only what changed, and says what it has not read."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest
from sample_project import commit, fill, make_repository, make_sample, only, open_at

from cortex_py.core.clock import Limit, apply_limit
from cortex_py.core.jobs import watch
from cortex_py.parts.verify.index import project_index
from cortex_py.parts.verify.index.lookup import Lookup
from cortex_py.parts.verify.index.project_index import IndexState, ProjectIndex, index_name
from cortex_py.parts.verify.sources import EVERYTHING
from cortex_py.worktree.git.repository import Repository

from forking import python_command
from helpers import git
from homes import opened

ONE = "def one():\n    return 1\n"
TWO = "def two():\n    return 2\n"


def open_index(root: Path, at: Path) -> ProjectIndex:
    return ProjectIndex(at, root, Repository.discover(root))


def look(index: ProjectIndex) -> Lookup:
    return Lookup(index, index.refresh(), EVERYTHING)


def knows(index: ProjectIndex, name: str) -> list[str]:
    return [one.path for one in look(index).definitions(name)]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    made = make_repository(tmp_path / "repository")
    commit(made, {"a.py": ONE, "deep/b.py": TWO, ".gitignore": "*.log\nbuilt/\n"}, "first", 1)
    return made


@pytest.fixture
def index(root: Path, tmp_path: Path) -> ProjectIndex:
    return open_index(root, tmp_path / "index.db")


# Every kind of change


def test_files_and_names_are_there_after_one_look(index: ProjectIndex) -> None:
    seen = look(index)
    assert list(seen.paths) == [".gitignore", "a.py", "deep/b.py"]
    assert [(one.path, one.line) for one in seen.definitions("two")] == [("deep/b.py", 1)]
    assert seen.state.complete
    assert seen.state.whole_history


def _same_size(root: Path) -> None:
    facts = (root / "a.py").stat()
    fill(root, {"a.py": ONE.replace("one", "new")})
    os.utime(root / "a.py", ns=(facts.st_atime_ns, facts.st_mtime_ns))


CHANGES: dict[str, Callable[[Path], object]] = {
    "edit": lambda root: fill(root, {"a.py": "def new():\n    return 11111\n"}),
    "edit of the same size and time": _same_size,
    "new file": lambda root: fill(root, {"c.py": "def new():\n    pass\n"}),
    "staged": lambda root: (fill(root, {"c.py": "def new():\n    pass\n"}), git(root, "add", "c.py")),
    "committed": lambda root: commit(root, {"c.py": "def new():\n    pass\n"}, "second", 2),
    "no longer ignored": lambda root: fill(root, {"built/c.py": "def new():\n    pass\n", ".gitignore": ""}),
}


@pytest.mark.parametrize("name", CHANGES)
def test_what_is_new_is_noticed(index: ProjectIndex, root: Path, name: str) -> None:
    assert knows(index, "new") == []
    CHANGES[name](root)
    assert len(knows(index, "new")) == 1


GONE: dict[str, Callable[[Path], object]] = {
    "deleted": lambda root: (root / "a.py").unlink(),
    "edited away": lambda root: fill(root, {"a.py": TWO}),
    "removed from git": lambda root: git(root, "rm", "-q", "a.py"),
    "ignored now": lambda root: (git(root, "rm", "-q", "--cached", "a.py"), fill(root, {".gitignore": "a.py\n"})),
    "a folder now": lambda root: ((root / "a.py").unlink(), fill(root, {"a.py/x.py": TWO})),
}


@pytest.mark.parametrize("name", GONE)
def test_what_is_gone_is_noticed(index: ProjectIndex, root: Path, name: str) -> None:
    assert knows(index, "one") == ["a.py"]
    GONE[name](root)
    assert knows(index, "one") == []


def test_a_renamed_file_is_known_under_its_new_name(index: ProjectIndex, root: Path) -> None:
    look(index)
    git(root, "mv", "a.py", "moved.py")
    assert knows(index, "one") == ["moved.py"]


def test_what_is_checked_out_counts_and_nothing_else(index: ProjectIndex, root: Path) -> None:
    git(root, "checkout", "-q", "-b", "side")
    side = commit(root, {"side.py": "def aside():\n    pass\n"}, "Work aside", 2)
    seen = look(index)
    assert seen.definitions("aside")
    assert seen.changes("introduced", "aside")
    assert seen.commit(side[:7]) is not None
    git(root, "checkout", "-q", "main")
    back = look(index)
    assert not back.definitions("aside")
    assert not back.changes("introduced", "aside")
    assert back.commit(side[:7]) is None
    git(root, "merge", "-q", "--no-edit", "side")
    assert look(index).commit(side[:7]) is not None


def test_what_was_reset_or_stashed_is_gone_and_comes_back(index: ProjectIndex, root: Path) -> None:
    second = commit(root, {"c.py": "def new():\n    pass\n"}, "second", 2)
    assert look(index).commit(second) is not None
    git(root, "reset", "-q", "--hard", "HEAD~1")
    assert knows(index, "new") == []
    assert look(index).commit(second) is None
    fill(root, {"a.py": ONE + "\n\n" + TWO.replace("two", "new")})
    assert [seen.revision for seen in look(index).changes("introduced", "new")] == [None]
    git(root, "stash", "-q")
    assert knows(index, "new") == []
    git(root, "stash", "pop", "-q")
    assert knows(index, "new") == ["a.py"]


def test_a_tag_is_seen_as_soon_as_it_is_there(index: ProjectIndex, root: Path) -> None:
    assert look(index).tagged("1.0") is None
    git(root, "tag", "v1.0")
    tagged = look(index).tagged("1.0")
    assert tagged is not None
    assert tagged.subject == "first"


def test_what_is_ignored_lies_there_and_is_not_read(index: ProjectIndex, root: Path) -> None:
    fill(root, {"built/x.py": "def made():\n    pass\n"})
    seen = look(index)
    assert "built/x.py" not in seen.paths
    assert seen.on_disk("built/x.py")
    assert not seen.definitions("made")
    assert not seen.on_disk("../repository/a.py")
    assert not seen.on_disk("/etc/hostname")


# No more than is needed


def test_nothing_is_read_where_nothing_changed(
    index: ProjectIndex, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    look(index)
    read: list[str] = []
    plain = project_index.file_facts
    monkeypatch.setattr(project_index, "file_facts", lambda path, data: read.append(path) or plain(path, data))
    look(index)
    assert read == []
    fill(root, {"a.py": "def new():\n    pass\n"})
    look(index)
    look(index)
    assert read == ["a.py"]


def test_another_process_reads_nothing_that_is_known(root: Path, tmp_path: Path) -> None:
    open_index(root, tmp_path / "index.db").refresh()
    again = open_index(root, tmp_path / "index.db")
    again._facts = lambda ref: pytest.fail(f"{ref.path} is read again")  # type: ignore[method-assign]
    assert knows(again, "one") == ["a.py"]


def test_two_working_trees_have_an_index_each(root: Path) -> None:
    assert index_name(root) != index_name(root.parent)
    assert index_name(root) == index_name(Path(str(root)))


# In a limited time


class Countdown:
    """Says stop after having been asked so many times."""

    def __init__(self, most: int) -> None:
        self.left = most

    def __call__(self) -> bool:
        self.left -= 1
        return self.left < 0


def test_what_is_named_is_read_first_and_the_rest_is_told_as_unread(index: ProjectIndex, root: Path) -> None:
    fill(root, {f"x{number}.py": f"def f{number}():\n    pass\n" for number in range(20)})
    state = index.refresh(["src/x17.py"], Countdown(1))
    assert (state.complete, state.files) == (False, 23)
    assert list(Lookup(index, state, EVERYTHING).paths) == ["x17.py"]
    more = index.refresh([], Countdown(5))
    assert not more.complete
    assert len(Lookup(index, more, EVERYTHING).paths) == 6
    assert index.refresh().complete
    assert len(look(index).paths) == 23


def test_files_that_hold_a_named_word_are_read_before_others(index: ProjectIndex, root: Path) -> None:
    fill(root, {f"x{number}.py": f"def f{number}():\n    pass\n" for number in range(30)})
    git(root, "add", "-A")
    state = index.refresh(["src/x28.py"], Countdown(2), words={"f17"})
    assert not state.complete
    assert sorted(Lookup(index, state, EVERYTHING).paths) == ["x17.py", "x28.py"]


def test_progress_tells_of_the_files_and_then_of_the_commits(index: ProjectIndex) -> None:
    seen: list[tuple[int, int]] = []
    with watch("files", lambda done, total: seen.append((done, total))):
        index.refresh()
    files, commits = index.refresh().files, len(index.refresh().commits)
    assert seen == [
        *((done, files) for done in range(1, files + 1)),
        *((one, commits) for one in range(1, commits + 1)),
    ]


def test_what_was_known_of_a_changed_file_is_forgotten_when_there_is_no_time_to_read_it(
    index: ProjectIndex, root: Path
) -> None:
    assert knows(index, "one") == ["a.py"]
    fill(root, {"a.py": TWO})
    state = index.refresh([], Countdown(0))
    assert not state.complete
    assert Lookup(index, state, EVERYTHING).definitions("one") == []
    assert sorted(knows(index, "two")) == ["a.py", "deep/b.py"]


class AlmostOver(Limit):
    """A call of which no time is left for reading, but enough to answer."""

    left = 0.0  # type: ignore[assignment]


def test_a_call_whose_time_ends_answers_with_what_was_read(home: Path, project: Path) -> None:
    make_sample(project)
    with open_at(home, project) as cortex:
        with apply_limit(AlmostOver(60)):
            told = cortex.grounding.verify("`login` is defined in app/auth.py.")
        assert "not fully indexed yet" in told.message
        assert cortex.grounding.verify("`login` is defined in app/auth.py.").status == "ACCEPT"


def test_without_time_nothing_is_contradicted_and_later_everything_is_told(home: Path, project: Path) -> None:
    make_sample(project)
    text = (
        "`login` is defined in app/auth.py.\n\n`refresh_token` is defined in app/auth.py.\n\n"
        "I added `revoke_token` to app/auth.py.\n\nI removed `old_login`.\n\nThere is a file app/session.py.\n\n"
        "The project depends on `sqlalchemy`.\n\n`MAX_ATTEMPTS` is set to 5."
    )
    with open_at(home, project) as cortex:
        hurried = cortex.grounding.verify(text, seconds=0)
        assert "not fully indexed yet" in hurried.message
        assert {one.verdict for one in hurried.findings} <= {"not found", "not checkable"}
        assert hurried.status == "WARN"
        later = cortex.grounding.verify(text)
        assert "not fully indexed yet" not in later.message
        verdicts = [one.verdict for one in later.findings]
        assert cortex.grounding.verify(text, seconds=0) == later
    assert verdicts == [
        "supported", "contradicted", "contradicted", "supported", "contradicted", "contradicted", "supported",
    ]  # fmt: skip


@pytest.mark.parametrize("most", range(1, 12, 2))
def test_however_little_was_read_nothing_true_is_contradicted(home: Path, project: Path, most: int) -> None:
    make_sample(project)
    true = (
        "`login` is defined in app/auth.py.\n\n`rotate_token` is defined in app/auth.py.\n\n"
        "I added `rotate_token` to app/auth.py.\n\n`formatExpiry` is defined in web/src/client.ts.\n\n"
        "`close_session` is defined in app/auth.py.\n\n`connect` is defined in app/store.py."
    )
    with open_at(home, project) as cortex:
        stop = Countdown(most)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("cortex_py.parts.verify.service._deadline", lambda seconds: stop)
            found = cortex.grounding.verify(true, seconds=1)
    assert [one for one in found.findings if one.verdict == "contradicted"] == []


def test_a_turn_is_kept_though_there_was_no_time_to_check_it(
    home: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_sample(project)
    monkeypatch.setattr("cortex_py.parts.context.service.CHECK_SECONDS", 0.0)
    with open_at(home, project) as cortex:
        branch = cortex.contexts.create_branch("work")
        kept = cortex.contexts.append(branch.id, "I added `refresh_token` to app/auth.py.", "assistant")
        assert cortex.memories.get(kept.memory.id).content == "I added `refresh_token` to app/auth.py."
        assert kept.verification is not None
        assert "not fully indexed yet" in kept.verification.message
        assert only(kept.verification).verdict != "contradicted"


# Damage, many users


def _broken(path: Path) -> None:
    path.write_bytes(b"this is no index\n" * 400)


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:5000])


def _emptied(path: Path) -> None:
    path.write_bytes(b"")


def _without_tables(path: Path) -> None:
    connection = apsw.Connection(str(path))
    connection.execute("DROP TABLE symbol; DROP TABLE file")
    connection.close()


def _of_another_layout(path: Path) -> None:
    connection = apsw.Connection(str(path))
    connection.execute("DROP TABLE symbol; CREATE TABLE other (x); PRAGMA user_version = 99")
    connection.close()


def _overwritten_inside(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[8192:] = bytes(0xFF for _ in data[8192:])
    path.write_bytes(data)


@pytest.mark.slow
@pytest.mark.parametrize(
    "damage", [_broken, _cut, _emptied, _without_tables, _of_another_layout, _overwritten_inside, Path.unlink]
)
def test_a_damaged_index_is_made_again(home: Path, project: Path, damage: Callable[[Path], None]) -> None:
    make_sample(project)
    text = "I added `rotate_token` to app/auth.py. `refresh_token` is defined in app/auth.py."
    with open_at(home, project) as cortex:
        before = cortex.grounding.verify(text)
        path = home / "evidence" / cortex.project.id / index_name(project.resolve())
    assert path.exists()
    damage(path)
    with open_at(home, project) as cortex:
        assert cortex.grounding.verify(text) == before
    with open_at(home, project) as cortex:
        assert cortex.grounding.verify(text) == before


def test_damage_that_shows_only_when_something_is_looked_up_is_mended(home: Path, project: Path) -> None:
    make_sample(project)
    with open_at(home, project) as cortex:
        before = cortex.grounding.verify("`login` is defined in app/auth.py.")
        index = cortex.grounding._index
        assert index is not None
        with index.file.write() as connection:
            connection.execute("DROP TABLE symbol")
        assert cortex.grounding.verify("`login` is defined in app/auth.py.") == before


@pytest.mark.parametrize("way", ["a file in its place", "no right to write", "busy"])
def test_where_no_index_can_be_kept_it_lives_in_memory(
    home: Path, project: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    make_sample(project)
    with open_at(home, project) as cortex:
        if way == "a file in its place":
            (home / "evidence").write_text("")
        elif way == "no right to write":
            monkeypatch.setattr(Path, "touch", lambda *_, **__: (_ for _ in ()).throw(PermissionError("no")))
        else:
            monkeypatch.setattr("cortex_py.parts.verify.index.sqlite_index._BUSY_MS", 1)
            path = home / "evidence" / cortex.project.id / index_name(project.resolve())
            path.parent.mkdir(parents=True)
            other = apsw.Connection(str(path))
            other.execute("BEGIN EXCLUSIVE")
        for _ in range(2):
            assert only(cortex.grounding.verify("`login` is defined in app/auth.py.")).verdict == "supported"


def test_an_index_that_can_only_be_read_is_left_alone(root: Path, tmp_path: Path) -> None:
    path = tmp_path / "index.db"
    index = open_index(root, path)
    index.refresh()
    with pytest.MonkeyPatch.context() as patch:
        failed = apsw.ReadOnlyError("attempt to write a readonly database")

        def refuse(*_: object) -> None:
            raise failed

        patch.setattr(project_index, "put_file", lambda *_: refuse() if index.file._file.path is not None else None)
        fill(root, {"a.py": "def new():\n    pass\n"})
        index.refresh()
    assert path.exists()
    assert index.file._file.path is None


def test_threads_that_ask_at_once_get_one_answer(home: Path, project: Path) -> None:
    make_sample(project)
    text = "I added `rotate_token` to app/auth.py. `refresh_token` is defined in app/auth.py."
    answers: list[object] = []
    with open_at(home, project) as cortex:
        threads = [
            threading.Thread(target=lambda: answers.append(cortex.grounding.verify(text)), daemon=True)
            for _ in range(6)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert answers == [cortex.grounding.verify(text)] * 6


def test_who_has_no_time_does_not_wait_for_who_reads(index: ProjectIndex, root: Path) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def wait() -> bool:
        begun.set()
        return not go_on.wait(60)

    done: list[IndexState] = []
    reader = threading.Thread(target=lambda: done.append(index.refresh([], wait)), daemon=True)
    reader.start()
    assert begun.wait(60)
    state = index.refresh([], lambda: True, 0.01)
    # Not only the lock of who reads, but the file too has to be free.
    assert Lookup(index, state, EVERYTHING).paths == {}
    assert not state.complete
    go_on.set()
    reader.join(60)
    assert done[0].complete


_PROCESS = """
import sys
from pathlib import Path
from cortex_py.parts.verify.index.lookup import Lookup
from cortex_py.parts.verify.index.project_index import ProjectIndex
from cortex_py.parts.verify.sources import EVERYTHING
from cortex_py.worktree.git.repository import Repository
root = Path(sys.argv[1])
index = ProjectIndex(Path(sys.argv[2]), root, Repository.discover(root))
sys.stdin.readline()
seen = Lookup(index, index.refresh(), EVERYTHING)
print(len(seen.paths), [one.path for one in seen.definitions("rotate_token")], seen.state.complete)
"""


def test_processes_that_read_at_once_end_with_the_same(tmp_path: Path) -> None:
    root = tmp_path / "repository"
    make_sample(root)
    words = [*python_command(), "-c", _PROCESS, str(root), str(tmp_path / "index.db")]
    pipe = subprocess.PIPE
    both = [subprocess.Popen(words, stdin=pipe, stdout=pipe, text=True) for _ in range(2)]
    for process in both:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    answers = [process.communicate(timeout=60)[0] for process in both]
    assert answers == ["10 ['app/auth.py'] True\n"] * 2


@pytest.mark.skipif(not hasattr(os, "fork"), reason="only where processes fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("in_memory", [False, True])
def test_a_forked_process_has_its_own_connection(root: Path, tmp_path: Path, in_memory: bool) -> None:
    if in_memory:
        (tmp_path / "blocked").write_text("")
    index = open_index(root, tmp_path / "blocked" / "index.db" if in_memory else tmp_path / "index.db")
    assert knows(index, "one") == ["a.py"]
    receiver, sender = multiprocessing.Pipe(duplex=False)
    context = multiprocessing.get_context("fork")
    process = context.Process(target=lambda: sender.send(knows(index, "one")))
    process.start()
    process.join(60)
    assert process.exitcode == 0
    assert receiver.recv() == ["a.py"]
    fill(root, {"a.py": TWO})
    assert knows(index, "one") == []


_ANSWER = """
import sys
sys.path[:0] = sys.argv[3:]
from pathlib import Path
from sample_project import open_at
text = ("I added `rotate_token` to app/auth.py and removed `old_login`. The store keeps rows. Tokens are rotated. "
        "`refresh_token` is defined in app/auth.py. `nothing_here` is called by `login`. The server listens.")
with open_at(Path(sys.argv[1]), Path(sys.argv[2])) as cortex:
    print(cortex.grounding.verify(text))
"""


@pytest.mark.slow
def test_the_answer_does_not_depend_on_process_home_or_way(project: Path, tmp_path: Path) -> None:
    make_sample(project)
    paths = [str(Path(__file__).parent), str(Path(__file__).parents[1])]

    def ask(home: Path, seed: str) -> str:
        words = [sys.executable, "-c", _ANSWER, str(home), str(project), *paths]
        done = subprocess.run(
            words, check=True, capture_output=True, text=True, env={**os.environ, "PYTHONHASHSEED": seed}
        )
        return done.stdout

    # One home has followed the project step by step, and has seen another branch; the other comes to it now.
    followed = tmp_path / "followed"
    git(project, "checkout", "-q", "v1.0.0")
    with open_at(followed, project) as cortex:
        cortex.grounding.refresh()
    git(project, "checkout", "-q", "-b", "side")
    commit(project, {"app/tokens.py": "def rotate_token():\n    pass\n"}, "Rotate the tokens of the store", 9)
    with open_at(followed, project) as cortex:
        cortex.grounding.refresh()
    git(project, "checkout", "-q", "main")
    first = ask(followed, "1")
    assert "Verification(" in first
    assert ask(tmp_path / "fresh", "2") == first


# A home inside the project


@pytest.mark.parametrize("exists", [False, True])
def test_what_cortex_keeps_is_no_evidence(root: Path, exists: bool) -> None:
    """An assistant could confirm a claim by repeating it: its words are in the file of the line of work."""
    home = root / "state"
    if exists:
        home.mkdir()  # as an earlier version made it, in the sight of git
    with opened(home, root) as cortex:
        branch = cortex.contexts.create_branch("Payments")
        text = "The billing service retries a failed payment five times."
        cortex.contexts.append(branch.id, text, "assistant")
        assert list(home.rglob("memory/*/*.md"))
        found = cortex.grounding.verify(text)
        assert found.status != "ACCEPT"
        assert not [one.path for finding in found.findings for one in finding.evidence if one.path]
        cortex.contexts.initialize(root, mode="full")
        scanned = {hit.memory.path for hit in cortex.memories.recall(filter="kind:file").results}
        assert scanned == {"a.py", "deep/b.py", ".gitignore"}
    assert bool(git(root, "status", "--porcelain")) == exists
