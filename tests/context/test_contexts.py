"""Lines of work through the service: typed errors, budgets that hold, one memory behind both ways to it."""

import re
import subprocess
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cases import each
from cortex_py import Branch, Cortex, NewMemory
from cortex_py.core.embedding.backends.backend import Backend
from cortex_py.core.errors import BranchNotFound, CortexError, InvalidInput, MemoryNotFound, ProjectNotFound
from cortex_py.parts.context.branches.file import check_git_branch
from inside import store_of

from helpers import FakeClock, git
from stub_backend import StubBackend

NAMES = st.text(
    st.sampled_from("ab/.-@{}~^:?*[\\ _#é🧠H\x7f\t\n'\"$;|&()!%+,=<>") | st.characters(exclude_categories=["Cs"])
)


@pytest.fixture
def line(desk: Cortex) -> Branch:
    return desk.contexts.create_branch("The importer")


@pytest.fixture
def other(opened: Callable[..., Cortex], tmp_path: Path) -> Cortex:
    """A Cortex in another project of the same home."""
    (tmp_path / "other project").mkdir()
    return opened(tmp_path / "other project")


# -- errors --------------------------------------------------------------------------------------


def test_what_is_unknown_is_named(desk: Cortex, line: Branch) -> None:
    contexts = desk.contexts
    in_a_project = (
        lambda: contexts.create_branch("x", project_id="nobody"),
        lambda: contexts.append(line.id, "x", "user", project_id="nobody"),
        lambda: contexts.search("x", project_id="nobody"),
        lambda: contexts.summary(line.id, project_id="nobody"),
        lambda: contexts.graph(project_id="nobody"),
        lambda: contexts.branches("nobody"),
    )
    for call in in_a_project:
        with pytest.raises(ProjectNotFound, match="nobody") as caught:
            call()
        assert caught.value.field == "project_id"
    branch = (contexts.summary, contexts.resume, contexts.content, contexts.sync, contexts.graph, contexts.get_branch)
    on_a_branch = (
        *(partial(call, "nobody") for call in branch),
        lambda: contexts.append("nobody", "x", "user"),
        lambda: contexts.link("nobody", "main"),
        lambda: contexts.load(line.id, "nobody"),
        lambda: contexts.create_branch("x", parent_id="nobody"),
    )
    for call in on_a_branch:
        with pytest.raises(BranchNotFound, match="nobody"):
            call()
    with pytest.raises(BranchNotFound):
        contexts.get_branch(line.id[:-1])
    assert [one.id for one in contexts.branches()] == [line.id]


def test_a_folder_that_nothing_is_kept_for_is_no_project(desk: Cortex, tmp_path: Path) -> None:
    (tmp_path / "fresh").mkdir()
    with pytest.raises(ProjectNotFound):
        desk.contexts.project_at(tmp_path / "fresh")
    assert desk.contexts.project_at(desk.project.root or "") == desk.project


def test_a_context_is_loaded_from_its_own_branch_alone(desk: Cortex, line: Branch) -> None:
    memory = desk.contexts.append(line.id, "in the line", "user").memory
    free = desk.memories.capture("in no line")
    second = desk.contexts.create_branch("Second")
    assert desk.contexts.load(memory.id, line.id) == memory
    assert desk.contexts.load(memory.id) == memory
    assert desk.contexts.load(free.id) == free
    for memory_id, branch_id in ((memory.id, second.id), (free.id, line.id)):
        with pytest.raises(MemoryNotFound) as caught:
            desk.contexts.load(memory_id, branch_id)
        assert caught.value.field == "context_id"
    with pytest.raises(MemoryNotFound):
        desk.contexts.load("0" * 40)


def test_a_context_of_another_project_is_not_found_here(desk: Cortex, other: Cortex) -> None:
    foreign = other.memories.capture("of the other project")
    mine = other.memories.capture("mine everywhere", domain="user")
    with pytest.raises(MemoryNotFound):
        desk.contexts.load(foreign.id)
    assert desk.contexts.load(foreign.id, project_id=other.project.id).content == "of the other project"
    assert desk.contexts.load(mine.id).content == "mine everywhere"


def test_bad_input_is_refused_and_nothing_changes(desk: Cortex, line: Branch) -> None:
    long = "x" * 201
    calls = {
        "role": lambda: desk.contexts.append(line.id, "x", "system"),
        "content": lambda: desk.contexts.append(line.id, "  ", "user"),
        "query": lambda: desk.contexts.search("  "),
        "filter_category": lambda: desk.contexts.search("x", category="nonsense"),
        "limit": lambda: desk.contexts.search("x", top_k=0),
        "min_score": lambda: desk.contexts.search("x", min_score=1.5),
        "max_tokens": lambda: desk.contexts.search("x", max_tokens=0),
        "branch_topic": lambda: desk.contexts.create_branch("  "),
        "git_branch_name": lambda: desk.contexts.link(line.id, "no..way"),
    }
    for field, call in calls.items():
        with pytest.raises(InvalidInput) as caught:
            call()
        assert caught.value.field == field
    for more in (
        lambda: desk.contexts.search("x", top_k=1001),
        lambda: desk.contexts.search("x", min_score=-0.1),
        lambda: desk.contexts.search("x", min_score=float("nan")),
        lambda: desk.contexts.summary(line.id, max_tokens=-1),
        lambda: desk.contexts.resume(line.id, max_tokens=0),
        lambda: desk.contexts.create_branch(long),
        lambda: desk.contexts.create_branch("\ud800"),
        lambda: desk.contexts.create_branch("x", git_branch=" "),
        lambda: desk.contexts.create_branch("x", git_branch="HEAD"),
        lambda: desk.memories.capture("x", category="nonsense"),
    ):
        with pytest.raises(InvalidInput):
            more()
    assert [one.id for one in desk.contexts.branches()] == [line.id]
    assert desk.memories.recall().total == 0


@given(name=NAMES.filter(lambda name: 0 < len(name.encode()) < 200 and "\0" not in name and name != "@"))
@example("HEAD")
@example("-x")
@example("a.lock")
@example("a.lock/b")
@example("a@{b")
@example("a//b")
@example("a/.b")
@example("a.")
@example("a/")
@example("/a")
@example("a\x7f")
@example("feature/login")
@example("@a")
@example("a\u00a0b")
@example("a\x85b")
@example("refs/heads/a")
def test_a_name_is_refused_exactly_where_git_refuses_it(name: str) -> None:
    taken = subprocess.run(["git", "check-ref-format", "--branch", name], cwd="/", capture_output=True, check=False)
    try:
        assert check_git_branch(name) == name
    except InvalidInput:
        assert taken.returncode != 0
    else:
        assert taken.returncode == 0


@each("name", ["x" * 300, "@", "a\0b", ""])
def test_some_names_are_refused_whatever_git_says(name: str) -> None:
    # Too long for a file; `@` stands for HEAD, though some versions of git make a branch of that name.
    with pytest.raises(InvalidInput):
        check_git_branch(name)


# -- lines of work -------------------------------------------------------------------------------


def test_topics_begun_in_one_second_get_ids_of_their_own(desk: Cortex) -> None:
    ids = [desk.contexts.create_branch("Größe & 中文!").id for _ in range(3)]
    assert ids == [f"grosse_zhongwen_20260102_123456{end}" for end in ("", "_2", "_3")]
    assert [one.id for one in desk.contexts.branches()] == sorted(ids)
    child = desk.contexts.create_branch("Details", parent_id=ids[0])
    assert child.parent_id == ids[0]
    assert desk.contexts.get_branch(child.id) == child


def test_a_task_id_tells_when_and_which(desk: Cortex, line: Branch, clock: FakeClock) -> None:
    done = desk.contexts.append(line.id, "a turn", "assistant")
    assert re.fullmatch(r"task_20260102_123456_[0-9a-f]{6}", done.task_id)
    assert done.memory.id.endswith(done.task_id[-6:])
    more = {desk.contexts.append(line.id, "a turn", "assistant").task_id for _ in range(20)}
    assert len(more) == 20
    assert (done.memory.role, done.memory.branch_id, done.memory.grounding) == ("assistant", line.id, None)
    assert done.memory.category


def test_content_gives_all_turns_or_the_newest(desk: Cortex, line: Branch, clock: FakeClock) -> None:
    for n in range(5):
        desk.contexts.append(line.id, f"turn {n}", "user")
        clock.advance(seconds=1)
    assert [one.content for one in desk.contexts.content(line.id)] == [f"turn {n}" for n in range(5)]
    assert [one.content for one in desk.contexts.content(line.id, newest=2)] == ["turn 3", "turn 4"]


def test_a_summary_is_the_same_whether_it_is_read_once_or_as_it_grows(
    desk: Cortex, line: Branch, home: Path, project: Path, clock: FakeClock
) -> None:
    ids = []
    for n in range(40):
        text = f"We decided to use the library lib{n} for the part number {n}. Next we must test part {n}."
        ids.append(desk.contexts.append(line.id, text, "user").memory.id)
        clock.advance(minutes=1)
        grown = desk.contexts.summary(line.id)
        assert grown.entries == n + 1
    with store_of(desk).database.write() as session:
        assert store_of(desk).branches.summary(session, desk.project.id, line.id)[1] > 0
        session.run("UPDATE branch SET summary = NULL, summary_seq = 0")
    fresh = desk.contexts.summary(line.id)
    assert fresh == grown
    # A turn that is taken away or changed leaves no trace.
    desk.memories.delete(ids[3])
    desk.memories.update(ids[39], content="We decided to use the library libfinal in the end.")
    changed = desk.contexts.summary(line.id)
    assert changed.entries == 39
    assert "libfinal" in changed.summary.text
    assert "lib3 " not in changed.summary.text
    with Cortex.open(home, project=project, clock=clock, backend=StubBackend()) as second:
        assert second.contexts.summary(line.id) == changed


def test_a_stored_summary_of_another_version_is_made_anew(desk: Cortex, line: Branch) -> None:
    desk.contexts.append(line.id, "We decided to use the library libnew.", "user")
    with store_of(desk).database.write() as session:
        store_of(desk).branches.put_summary(session, desk.project.id, line.id, '{"version": -1}', 10**6)
    found = desk.contexts.summary(line.id)
    assert found.entries == 1
    assert "libnew" in found.summary.text


# -- budgets -------------------------------------------------------------------------------------


def test_nothing_exceeds_its_budget(cortex: Cortex, clock: FakeClock) -> None:
    line = cortex.contexts.create_branch("Budgets")
    for n in range(30):
        text = f"Turn {n}: we decided to keep importer number {n} because of the {'very ' * n}slow ledger."
        cortex.contexts.append(line.id, text, ("user", "assistant")[n % 2])
        clock.advance(minutes=1)
    count = cortex.backend.count_tokens
    for budget in (1, 20, 60, 150, 400, 1500):
        summary = cortex.contexts.summary(line.id, max_tokens=budget)
        assert count(summary.summary.text) <= max(budget, 2)
        resumed = cortex.contexts.resume(line.id, max_tokens=budget)
        assert count(resumed.content) + count(resumed.summary.summary.text) <= max(budget, 4)
        found = cortex.contexts.search("which importer do we keep", top_k=30, min_score=0.0, max_tokens=budget)
        assert sum(count(one.text) for one in found.results) <= budget
        assert found.total == 30
    # With the largest.
    assert len(found.results) >= 5
    assert resumed.content.endswith("slow ledger.")
    assert "earlier entries not shown" in resumed.content


def test_without_a_budget_a_long_result_is_shown_by_its_passage(desk: Cortex) -> None:
    desk.memories.capture("the importer " * 400)
    desk.memories.capture("the importer is short")
    texts = [one.text for one in desk.contexts.search("importer", min_score=0.0).results]
    assert "the importer is short" in texts
    assert max(map(len, texts)) < 1000


def test_the_search_names_the_topics_of_what_it_found(desk: Cortex, line: Branch) -> None:
    desk.contexts.append(line.id, "the importer reads", "user")
    found = desk.contexts.search("importer", min_score=0.0)
    assert found.topics[found.results[0].hit.memory.branch_id or ""] == "The importer"
    assert found.milliseconds >= 0


# -- projects ------------------------------------------------------------------------------------


def test_another_project_is_reached_by_its_id(desk: Cortex, other: Cortex) -> None:
    away = other.project.id
    line = desk.contexts.create_branch("From afar", project_id=away)
    memory = desk.contexts.append(line.id, "We decided to use libafar.", "user", project_id=away).memory
    assert memory.project_id == away
    assert other.contexts.get_branch(line.id) == line
    assert [one.content for one in other.contexts.content(line.id)] == ["We decided to use libafar."]
    assert other.contexts.check_branch(line.id).verified
    assert "libafar" in desk.contexts.summary(line.id, project_id=away).summary.text
    found = desk.contexts.search("libafar", min_score=0.0, project_id=away).results
    assert [one.hit.memory.id for one in found] == [memory.id]
    assert desk.contexts.search("libafar", min_score=0.0).results == ()
    assert {memory.id, line.id} <= {one.id for one in desk.contexts.graph(project_id=away).nodes}
    assert {one.id for one in desk.contexts.projects()} == {desk.project.id, away}


def test_a_project_whose_folder_is_gone_is_still_read(desk: Cortex, home: Path, tmp_path: Path) -> None:
    folder = tmp_path / "short lived"
    folder.mkdir()
    project = desk.contexts.initialize(folder, "none").project
    line = desk.contexts.create_branch("Kept", project_id=project.id)
    folder.rmdir()
    desk.contexts.append(line.id, "still here", "user", project_id=project.id)
    with Cortex.open(home, project=desk.project.root or "", backend=StubBackend()) as fresh:
        assert [one.content for one in fresh.contexts.content(line.id, project_id=project.id)] == ["still here"]
        fresh.contexts.append(line.id, "and goes on", "user", project_id=project.id)
        with pytest.raises(CortexError):
            fresh.contexts.initialize(folder, "full")


def test_the_repository_is_told_or_its_lack(desk: Cortex, home: Path, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput):
        desk.contexts.repository()
    git(tmp_path, "init", "-q", "repo")
    with Cortex.open(home, project=tmp_path / "repo", backend=StubBackend()) as opened:
        assert opened.contexts.repository().root == (tmp_path / "repo").resolve()


# -- the graph -----------------------------------------------------------------------------------


def test_the_graph_has_edges_of_each_kind(cortex: Cortex, clock: FakeClock) -> None:
    parent = cortex.contexts.create_branch("Billing")
    child = cortex.contexts.create_branch("Billing retries", parent_id=parent.id)
    texts = (
        "The invoice mailer in src/billing/mailer.py retries three times.",
        "Fixed the crash of src/billing/mailer.py when the address is empty.",
        "Customers receive their monthly bill by post on the first day.",
        "On the first day of each month the bill is posted to customers.",
        "Bananas ripen faster in a paper bag.",
    )
    ids = []
    for text in texts:
        ids.append(cortex.memories.capture(text, branch_id=child.id).id)
        clock.advance(minutes=1)
    ids.append(cortex.memories.capture(f"This supersedes {ids[2]} entirely, see the minutes.").id)
    graph = cortex.contexts.graph()
    edges = {(edge.source, edge.target): edge for edge in graph.edges if edge.kind not in ("belongs_to", "child_of")}
    assert {node.id for node in graph.nodes if node.kind != "entity"} == {*ids, parent.id, child.id}
    assert graph.total_nodes == len(graph.nodes) > 8
    assert {edge.kind for edge in graph.edges} == {
        *("references", "shares", "similar", "belongs_to", "child_of", "MentionedIn")
    }
    assert (edges[ids[5], ids[2]].kind, edges[ids[5], ids[2]].weight) == ("references", 1.0)
    kinds = {(edge.source, edge.target, edge.kind) for edge in graph.edges}
    assert (ids[0], ids[1], "shares") in kinds
    assert (ids[2], ids[3], "similar") in kinds
    assert {(edge.source, edge.target) for edge in graph.edges if edge.kind == "child_of"} == {(child.id, parent.id)}
    belongs = {edge.source for edge in graph.edges if edge.kind == "belongs_to"}
    assert belongs == set(ids[:5])
    assert graph.orphans == (ids[4],)
    assert all(0.0 < edge.weight <= 1.0 for edge in graph.edges)


def test_the_graph_of_a_branch_shows_that_branch_alone(desk: Cortex, line: Branch) -> None:
    memory = desk.contexts.append(line.id, "in the line", "user").memory
    desk.memories.capture("in no line")
    second = desk.contexts.create_branch("Second")
    graph = desk.contexts.graph(line.id)
    assert [node.id for node in graph.nodes] == [memory.id, line.id]
    assert [(edge.source, edge.target, edge.kind) for edge in graph.edges] == [(memory.id, line.id, "belongs_to")]
    assert graph.orphans == (memory.id,)
    empty = desk.contexts.graph(second.id)
    assert ([node.id for node in empty.nodes], empty.edges, empty.orphans) == ([second.id], (), ())


@pytest.mark.slow
def test_a_large_graph_shows_the_newest_and_counts_the_rest(desk: Cortex, line: Branch) -> None:
    desk.memories.capture_many(NewMemory(content=f"note number {n} xx{n}", branch_id=line.id) for n in range(620))
    graph = desk.contexts.graph()
    assert len([node for node in graph.nodes if node.kind == "context"]) == 500
    assert graph.total_nodes == 621
    assert graph.nodes[499].label == "note number 619 xx619"


# -- one memory ----------------------------------------------------------------------------------


def test_both_ways_lead_to_the_same_memory(home: Path, project: Path, clock: FakeClock, model: Backend) -> None:
    with Cortex.open(home, project=project, clock=clock, backend=model) as cortex:
        line = cortex.contexts.create_branch("Payments")
        captured = cortex.memories.capture("Refunds are paid back to the card within five days.", tags=["money"])
        appended = cortex.contexts.append(line.id, "Chargebacks are handled by the night shift.", "assistant").memory
        found = cortex.contexts.search("how long does a refund take").results[0].hit.memory
        assert found == captured
        assert cortex.contexts.load(captured.id) == captured
        recalled = cortex.memories.recall("who handles chargebacks").results[0].memory
        assert recalled == appended
        assert cortex.memories.recall(filter=f"branch:{line.id}").results[0].memory == appended
        assert cortex.memories.recall(filter="role:assistant").total == 1
        joined = cortex.memories.capture("Captured into the line.", branch_id=line.id)
        assert [one.id for one in cortex.contexts.content(line.id)] == [appended.id, joined.id]
        for query in ("refund", "chargebacks"):
            page = cortex.memories.recall(query).results
            searched = cortex.contexts.search(query, min_score=0.0).results
            assert [(one.hit.memory.id, one.hit.score) for one in searched] == [(h.memory.id, h.score) for h in page]


def test_a_category_narrows_a_search(desk: Cortex) -> None:
    desk.memories.capture("the importer and its tests", category="testing")
    desk.memories.capture("the importer and its walls", category="security")
    found = desk.contexts.search("importer", category="Testing", min_score=0.0).results
    assert [one.hit.memory.category for one in found] == ["testing"]


def test_head_is_the_git_branch_checked_out(home: Path, project: Path) -> None:
    git(project, "init", "-q", "-b", "feature/login")
    git(project, "commit", "-q", "--allow-empty", "-m", "first")
    with Cortex.open(home, project=project, backend=StubBackend()) as desk:
        line = desk.contexts.create_branch("Login", git_branch="HEAD")
        assert line.git_branch == "feature/login"
        active = desk.contexts.active()
        assert active is not None
        assert active.id == line.id
        other = desk.contexts.create_branch("Logout")
        linked = desk.contexts.link(other.id, "HEAD")
        assert (linked.branch.git_branch, linked.released, linked.exists) == ("feature/login", (line.id,), True)


def test_a_search_that_shows_nothing_says_how_near_the_best_is(cortex: Cortex) -> None:
    cortex.memories.capture("Images are resized to 800 pixels before upload.")
    score = cortex.memories.recall("make pictures smaller").results[0].score
    found = cortex.contexts.search("make pictures smaller", min_score=0.999)
    assert (found.results, found.total) == ((), 0)
    assert found.warnings == (f"none reaches min_score 0.999, the best has {score:.2f}",)
    assert cortex.contexts.search("make pictures smaller", min_score=0.0).warnings == ()
