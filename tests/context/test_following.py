"""The memory stands where the working tree stands: what is confined, let go and taken away as git moves on."""

from collections.abc import Callable
from pathlib import Path

import pytest

from cortex_py import Cortex
from cortex_py.core.embedding.backends.backend import Backend
from cortex_py.core.errors import BranchNotFound
from cortex_py.core.records import MODES
from inside import store_of

from helpers import FakeClock, git
from stub_backend import StubBackend

Open = Callable[..., Cortex]
NOTE = "The importer reads the ledger twice a day."


@pytest.fixture
def open_tree(opened: Open, tree: Path) -> Open:
    return lambda policy, folder=tree: opened(folder, branch_memories=policy)


def _commit(folder: Path, name: str) -> None:
    (folder / f"{name}.txt").write_text(f"{name}\n")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", name)


def _contents(cortex: Cortex) -> set[str]:
    """What is seen, which must be the same in every way of looking."""
    listed = {hit.memory.content for hit in cortex.memories.recall(limit=100).results}
    ids = {hit.memory.id for hit in cortex.memories.recall(limit=100).results}
    for mode in MODES:
        for filter in ("", "ns:context"):
            found = cortex.memories.recall("importer", filter=filter, mode=mode, limit=100).results
            assert {hit.memory.content for hit in found} == listed
    searched = cortex.contexts.search("importer", top_k=100, min_score=0.0).results
    assert {one.hit.memory.content for one in searched} == listed
    assert set(cortex.memories.ids()) == ids
    assert cortex.memories.status().total_count == len(listed)
    assert {tag for tag, _ in cortex.memories.tags()} == {content.split()[-1] for content in listed}
    assert {node.id for node in cortex.contexts.graph().nodes if node.kind == "context"} == ids
    return listed


def _capture(cortex: Cortex, where: str) -> None:
    cortex.memories.capture(f"the importer as seen from {where}", tags=[where])


def _feature(cortex: Cortex, tree: Path, name: str = "feature") -> str:
    """A branch with a commit and a note of its own, and main checked out again."""
    git(tree, "checkout", "-q", "-b", name)
    _commit(tree, name.replace("/", "-"))
    cortex.memories.capture(f"the importer as seen from {name}", tags=[name])
    git(tree, "checkout", "-q", "main")
    return f"the importer as seen from {name}"


# -- what is seen where --------------------------------------------------------------------------


def test_shared_memories_are_seen_everywhere(open_tree: Open, tree: Path) -> None:
    cortex = open_tree("share")
    _capture(cortex, "main")
    feature = _feature(cortex, tree)
    assert _contents(cortex) == {"the importer as seen from main", feature}
    assert all(hit.memory.confinement is None for hit in cortex.memories.recall().results)


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["isolate", "stage"])
@pytest.mark.usefixtures("retrieval")
def test_confined_memories_are_seen_on_their_branch_alone(open_tree: Open, tree: Path, policy: str) -> None:
    cortex = open_tree(policy)
    _capture(cortex, "main")
    main = {"the importer as seen from main"}
    one, two = _feature(cortex, tree, "one"), _feature(cortex, tree, "two")
    assert _contents(cortex) == main
    git(tree, "checkout", "-q", "one")
    assert _contents(cortex) == main | {one}
    git(tree, "checkout", "-q", "two")
    assert _contents(cortex) == main | {two}
    # Another process, opened later, sees the same.
    assert _contents(open_tree(policy)) == main | {two}
    git(tree, "checkout", "-q", "--detach")
    assert _contents(cortex) == main


@pytest.mark.parametrize("policy", ["isolate", "stage"])
def test_what_is_no_branchs_own_is_never_confined(open_tree: Open, tree: Path, policy: str) -> None:
    cortex = open_tree(policy)
    assert cortex.memories.capture("on main").confinement is None
    git(tree, "checkout", "-q", "-b", "feature")
    assert cortex.memories.capture("on the feature").confinement == policy
    assert cortex.memories.capture("my own", domain="user").confinement is None
    assert cortex.memories.capture("everybody's", domain="org").confinement is None
    git(tree, "checkout", "-q", "--detach")
    detached = cortex.memories.capture("nowhere in particular")
    assert (detached.confinement, detached.git_branch) == (None, None)
    seen = {hit.memory.content for hit in cortex.memories.recall().results}
    assert seen == {"on main", "my own", "everybody's", "nowhere in particular"}


def test_without_a_repository_nothing_is_confined(home: Path, project: Path) -> None:
    with Cortex.open(home, project=project, backend=StubBackend(), branch_memories="stage") as cortex:
        assert cortex.memories.capture(NOTE).confinement is None
        assert cortex.memories.recall().total == 1
        assert cortex.contexts.active() is None
        with pytest.raises(BranchNotFound):
            cortex.contexts.summary()


def test_the_only_branch_of_a_repository_without_commits_is_its_default(home: Path, project: Path) -> None:
    git(project, "init", "-q", "-b", "trunk")
    with Cortex.open(home, project=project, backend=StubBackend(), branch_memories="stage") as cortex:
        memory = cortex.memories.capture(NOTE)
        assert (memory.git_branch, memory.confinement) == ("trunk", None)
        assert cortex.memories.recall().total == 1


def test_two_worktrees_see_their_own_at_the_same_time(open_tree: Open, tree: Path, tmp_path: Path) -> None:
    for name in ("left", "right"):
        git(tree, "worktree", "add", "-q", "-b", name, str(tmp_path / name))
    here, left, right = (open_tree("isolate", folder) for folder in (tree, tmp_path / "left", tmp_path / "right"))
    assert here.project.id == left.project.id == right.project.id
    for cortex, name in ((here, "main"), (left, "left"), (right, "right")):
        _capture(cortex, name)
    assert _contents(here) == {"the importer as seen from main"}
    assert _contents(left) == {"the importer as seen from main", "the importer as seen from left"}
    assert _contents(right) == {"the importer as seen from main", "the importer as seen from right"}


# -- what becomes of staged memories -------------------------------------------------------------


def _merge_commit(tree: Path) -> None:
    _commit(tree, "meanwhile")
    git(tree, "merge", "-q", "--no-ff", "-m", "merged", "feature")


def _fast_forward(tree: Path) -> None:
    git(tree, "merge", "-q", "--ff-only", "feature")


def _squash(tree: Path) -> None:
    _commit(tree, "meanwhile")
    git(tree, "merge", "-q", "--squash", "feature")
    git(tree, "commit", "-q", "-m", "squashed")
    git(tree, "branch", "-q", "-D", "feature")


def _merge_and_delete(tree: Path) -> None:
    _merge_commit(tree)
    git(tree, "branch", "-q", "-d", "feature")


@pytest.mark.slow
@pytest.mark.parametrize("again", [False, True], ids=["same process", "new process"])
@pytest.mark.parametrize("merge", [_merge_commit, _fast_forward, _squash, _merge_and_delete])
def test_a_merge_lets_staged_memories_go(
    open_tree: Open, tree: Path, merge: Callable[[Path], None], again: bool
) -> None:
    cortex = open_tree("stage")
    feature = _feature(cortex, tree)
    assert _contents(cortex) == set()
    merge(tree)
    cortex = open_tree("stage") if again else cortex
    assert _contents(cortex) == {feature}
    memory = cortex.memories.recall().results[0].memory
    assert (memory.confinement, memory.git_branch, memory.version) == (None, "main", 1)
    # It counts as written on main now, whatever becomes of its branch.
    if "feature" in git(tree, "branch"):
        git(tree, "branch", "-q", "-D", "feature")
    assert cortex.memories.gc().memories_affected == 0
    assert _contents(cortex) == {feature}


def test_a_branch_deleted_without_a_merge_takes_its_staged_memories_along(open_tree: Open, tree: Path) -> None:
    cortex = open_tree("stage")
    feature = _feature(cortex, tree)
    kept = _feature(cortex, tree, "kept")
    git(tree, "branch", "-q", "-D", "feature")
    assert _contents(cortex) == set()
    gone = cortex.memories.recall(filter="status:tombstoned").results
    assert [hit.memory.content for hit in gone] == [feature]
    with store_of(cortex).database.read() as session:
        rows = session.rows("SELECT content, status FROM memory ORDER BY num")
    assert rows == [(feature, "tombstoned"), (kept, "active")]
    cortex.memories.restore(gone[0].memory.id)
    assert _contents(cortex) == {feature}
    git(tree, "branch", "-q", "another")
    assert _contents(cortex) == {feature}


LOOKS: dict[str, Callable[[Cortex, str], int]] = {
    "recall": lambda cortex, _: cortex.memories.recall().total,
    "search": lambda cortex, _: len(cortex.contexts.search("importer", min_score=0.0).results),
    "status": lambda cortex, _: cortex.memories.status().total_count,
    "ids": lambda cortex, _: len(cortex.memories.ids()),
    "tags": lambda cortex, _: len(cortex.memories.tags()),
    "graph": lambda cortex, _: len(cortex.contexts.graph().nodes) - 1,
    "content": lambda cortex, line: len(cortex.contexts.content(line)),
    "summary": lambda cortex, line: cortex.contexts.summary(line).entries,
}


@pytest.mark.slow
@pytest.mark.parametrize("look", LOOKS)
def test_whichever_call_comes_first_sees_what_git_did(open_tree: Open, tree: Path, look: str) -> None:
    cortex = open_tree("stage")
    line = cortex.contexts.create_branch("Importer", git_branch="merged").id
    merged = _feature(cortex, tree, "merged")
    git(tree, "checkout", "-q", "-b", "dropped")
    _commit(tree, "dropped")
    cortex.memories.capture("the importer as seen from nowhere", branch_id=line, tags=["dropped"])
    git(tree, "checkout", "-q", "main")
    assert _contents(cortex) == set()
    _commit(tree, "meanwhile")
    git(tree, "merge", "-q", "--no-ff", "-m", "merged", "merged")
    git(tree, "branch", "-q", "-D", "dropped")
    assert LOOKS[look](cortex, line) == 1
    assert _contents(cortex) == {merged}


def test_an_open_branch_keeps_its_staged_memories_whatever_else_happens(open_tree: Open, tree: Path) -> None:
    cortex = open_tree("stage")
    feature = _feature(cortex, tree)
    for name in ("a", "b"):
        _commit(tree, name)
        git(tree, "branch", "-q", f"other-{name}")
        assert _contents(cortex) == set()
    git(tree, "checkout", "-q", "feature")
    assert _contents(cortex) == {feature}
    git(tree, "rebase", "-q", "main")
    assert _contents(cortex) == {feature}


def test_isolated_memories_stay_where_they_are_after_a_merge(open_tree: Open, tree: Path) -> None:
    cortex = open_tree("isolate")
    feature = _feature(cortex, tree)
    _merge_commit(tree)
    assert _contents(cortex) == set()
    git(tree, "checkout", "-q", "feature")
    assert _contents(cortex) == {feature}


def test_what_a_branch_takes_along_leaves_its_file_and_its_summary(open_tree: Open, tree: Path) -> None:
    cortex = open_tree("stage")
    line = cortex.contexts.create_branch("Importer", git_branch="feature")
    git(tree, "checkout", "-q", "-b", "feature")
    _commit(tree, "feature")
    cortex.contexts.append(line.id, "We chose the nightly importer.", "user")
    git(tree, "checkout", "-q", "main")
    git(tree, "branch", "-q", "-D", "feature")
    assert cortex.memories.recall().total == 0
    assert "nightly importer" not in cortex.contexts.check_branch(line.id).path.read_text()
    assert cortex.contexts.summary(line.id).entries == 0


# -- renames -------------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", ["share", "isolate", "stage"])
def test_a_renamed_branch_keeps_its_memories_and_its_line_of_work(open_tree: Open, tree: Path, policy: str) -> None:
    cortex = open_tree(policy)
    line = cortex.contexts.create_branch("Importer", git_branch="feature")
    git(tree, "checkout", "-q", "-b", "feature")
    _commit(tree, "feature")
    memory = cortex.contexts.append(line.id, NOTE, "user").memory
    git(tree, "branch", "-q", "-m", "feature", "better")
    active = cortex.contexts.active()
    assert active is not None
    assert (active.id, active.git_branch) == (line.id, "better")
    assert cortex.memories.recall().results[0].memory.git_branch == "better"
    assert cortex.memories.get(memory.id).git_branch == "better"
    check = cortex.contexts.check_branch(line.id)
    assert check.verified
    assert "better" in check.path.read_text()
    assert cortex.memories.gc().memories_affected == 0
    git(tree, "checkout", "-q", "main")
    assert cortex.memories.recall().total == (1 if policy == "share" else 0)


@pytest.mark.parametrize("turns", [0, 1])
def test_a_rename_is_followed_by_a_process_that_comes_later(open_tree: Open, tree: Path, turns: int) -> None:
    first = open_tree("stage")
    line = first.contexts.create_branch("Importer", git_branch="feature")
    git(tree, "checkout", "-q", "-b", "feature")
    _commit(tree, "feature")
    for _ in range(turns):
        first.contexts.append(line.id, NOTE, "user")
    git(tree, "branch", "-q", "-m", "feature", "better")
    second = open_tree("stage")
    assert second.memories.recall().total == turns
    found = second.contexts.get_branch("active")
    assert (found.id, found.git_branch) == (line.id, "better")
    assert second.contexts.check_branch(line.id).verified


# -- lines of work -------------------------------------------------------------------------------


def test_the_line_of_work_follows_twenty_checkouts(open_tree: Open, tree: Path) -> None:
    cortex = open_tree("share")
    lines = {}
    for name in ("main", "one", "two", "three"):
        if name != "main":
            git(tree, "branch", "-q", name)
        branch = cortex.contexts.create_branch(f"Work on {name}")
        assert cortex.contexts.link(branch.id, name).exists
        cortex.contexts.append(branch.id, f"We decided to use the library lib-{name} for parsing.", "user")
        lines[name] = branch.id
    git(tree, "branch", "-q", "unlinked")
    for turn in range(20):
        name = ("one", "unlinked", "two", "main", "three")[turn % 5]
        git(tree, "checkout", "-q", name)
        active = cortex.contexts.active()
        if name == "unlinked":
            assert active is None
            continue
        assert active is not None
        assert active.id == lines[name]
        found = cortex.contexts.summary()
        assert found.branch.id == lines[name]
        assert f"lib-{name}" in found.summary.text
        assert f"lib-{name}" in cortex.contexts.resume().content
        assert cortex.memories.capture(f"turn {turn}").branch_id == lines[name]


def test_linking_a_branch_again_releases_the_former_line_of_work(open_tree: Open, tree: Path) -> None:
    cortex = open_tree("share")
    first, second = (cortex.contexts.create_branch(topic) for topic in ("First", "Second"))
    cortex.contexts.link(first.id, "main")
    linked = cortex.contexts.link(second.id, "main")
    assert (linked.branch.id, linked.branch.git_branch, linked.released) == (second.id, "main", (first.id,))
    assert cortex.contexts.get_branch(first.id).git_branch is None
    assert cortex.contexts.check_branch(first.id).verified
    assert cortex.contexts.check_branch(second.id).verified
    assert not cortex.contexts.link(second.id, "not-there-yet").exists
    assert cortex.contexts.active() is None


def test_recall_prefers_the_present_line_of_work_and_then_those_it_grew_from(
    home: Path, tree: Path, clock: FakeClock, model: Backend
) -> None:
    with Cortex.open(home, project=tree, clock=clock, backend=model) as cortex:
        grandparent = cortex.contexts.create_branch("Oldest")
        parent = cortex.contexts.create_branch("Older", parent_id=grandparent.id)
        child = cortex.contexts.create_branch("Present", parent_id=parent.id, git_branch="feature")
        stranger = cortex.contexts.create_branch("Elsewhere")
        git(tree, "branch", "-q", "feature")
        # The newest would win otherwise.
        for line in (child, parent, grandparent, stranger):
            cortex.memories.capture(NOTE, branch_id=line.id)
            clock.advance(minutes=1)

        def order() -> list[str | None]:
            found = cortex.memories.recall("how often does the importer read the ledger").results
            return [hit.memory.branch_id for hit in found]

        assert order()[0] == stranger.id
        git(tree, "checkout", "-q", "feature")
        assert order() == [child.id, grandparent.id, parent.id, stranger.id]
        git(tree, "checkout", "-q", "main")
        assert order()[0] == stranger.id


def test_a_better_answer_elsewhere_still_comes_first(home: Path, tree: Path, clock: FakeClock, model: Backend) -> None:
    with Cortex.open(home, project=tree, clock=clock, backend=model) as cortex:
        near = cortex.contexts.create_branch("Present", git_branch="main")
        far = cortex.contexts.create_branch("Elsewhere")
        cortex.memories.capture("The importer was renamed on Monday.", branch_id=near.id)
        answer = cortex.memories.capture("The importer reads the ledger at noon and at midnight.", branch_id=far.id)
        assert cortex.memories.recall("when does the importer read the ledger").results[0].memory.id == answer.id
