"""Consolidation: one memory in the place of several, nothing lost, everything undone on request."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cortex_py import Cortex, Memory, NewMemory
from cortex_py.core.errors import Conflict, InvalidInput, MemoryNotFound, UnknownNamespace
from cortex_py.core.memory.consolidation.consolidation import STRATEGIES, ConsolidationResult
from cortex_py.session import ProjectSessions

from forking import python_command
from helpers import FakeClock, git
from old_schemas import use_schema
from stub_backend import StubBackend

CONSOLIDATOR = Path(__file__).with_name("consolidator.py")
SAME = (
    "We use PostgreSQL 15 for the orders service.",
    "The orders service runs on PostgreSQL 15.",
)
APART = ("The invoices service runs on PostgreSQL 16.", "We do not use PostgreSQL 15 for the orders service.")
RELATED = (
    "Redis caches the sessions of the web shop for 30 minutes.",
    "The Redis session cache of the web shop has 2 replicas.",
    "Sessions of the web shop that Redis evicts are logged out.",
)


@pytest.fixture
def desk(home: Path, project: Path, clock: FakeClock) -> Iterator[Cortex]:
    with Cortex.open(home, project=project, clock=clock, backend=StubBackend()) as opened:
        yield opened


def groups(done: ConsolidationResult) -> set[frozenset[str]]:
    return {frozenset(group.memories) for group in done.groups}


def shown(done: ConsolidationResult) -> list[tuple[object, ...]]:
    return [(one.memories, one.similarity, one.content, one.method, one.namespace) for one in done.groups]


def found(cortex: Cortex, query: str, **more) -> set[str]:
    return {hit.memory.id for hit in cortex.memories.recall(query, **more).results}


def listed(cortex: Cortex, filter: str = "") -> set[str]:
    return {hit.memory.id for hit in cortex.memories.recall(filter=filter, limit=1_000).results}


def state(cortex: Cortex) -> dict[str, list[tuple[object, ...]]]:
    """All that a run could change."""
    tables = ("memory", "chunk", "tag", "mention", "relationship", "history", "consolidation", "consolidation_part")
    with cortex.store.database.read() as session:
        return {table: sorted(session.rows(f"SELECT * FROM {table}"), key=repr) for table in tables}


def twins(cortex: Cortex, count: int = 2, **more) -> list[Memory]:
    """The same words with more space between them."""
    return [cortex.memories.capture(f"never deploy{' ' * n} on fridays", **more) for n in range(count)]


# -- what goes together ----------------------------------------------------------------------------


def test_dedupe_joins_repeats_and_nothing_else(cortex: Cortex) -> None:
    same = [
        cortex.memories.capture(text)
        for text in ("Use tabs, not spaces.", "use tabs not  spaces", "Use tabs, not spaces.")
    ]
    for text in ("Use spaces, not tabs.", "Use tabs, not 4 spaces.", *SAME):
        cortex.memories.capture(text)
    done = cortex.memories.consolidate(strategy="dedupe")
    assert groups(done) == {frozenset(one.id for one in same)}
    assert done.groups[0].content == "Use tabs, not spaces."


def test_merge_joins_one_statement_in_other_words_and_not_another_one(cortex: Cortex) -> None:
    same = [cortex.memories.capture(text) for text in SAME]
    for text in APART:
        cortex.memories.capture(text)
    done = cortex.memories.consolidate(strategy="merge")
    assert groups(done) == {frozenset(one.id for one in same)}
    assert (done.groups[0].method, done.strategy, done.skipped, done.warnings) == ("local", "merge", 0, ())
    assert 0.75 < done.groups[0].similarity < 1


def test_summarize_makes_a_dated_list_of_three_notes_on_one_subject(cortex: Cortex, clock: FakeClock) -> None:
    notes = []
    for text in RELATED:
        notes.append(cortex.memories.capture(text))
        clock.advance(days=1)
    cortex.memories.capture("Bananas ripen faster beside apples.")
    done = cortex.memories.consolidate(strategy="summarize")
    assert groups(done) == {frozenset(one.id for one in notes)}
    lines = done.groups[0].content.splitlines()
    assert lines[0].startswith("Summary of 3 notes")
    assert lines[1:] == [f"- (2026-01-0{n + 2}) {text}" for n, text in enumerate(RELATED)]


def test_two_notes_are_not_summed_up(cortex: Cortex) -> None:
    for text in RELATED[:2]:
        cortex.memories.capture(text)
    assert cortex.memories.consolidate(strategy="summarize").groups == ()


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_preview_tells_exactly_what_the_run_does_and_changes_nothing(cortex: Cortex, strategy) -> None:
    for text in (*SAME, *RELATED, *APART, RELATED[0].upper(), SAME[0] + "!"):
        cortex.memories.capture(text, namespace="decisions")
    before = state(cortex)
    preview = cortex.memories.consolidate(strategy=strategy, dry_run=True)
    assert state(cortex) == before
    assert preview.dry_run
    assert preview.groups
    assert all(one.result_id is None for one in preview.groups)
    done = cortex.memories.consolidate(strategy=strategy)
    assert shown(done) == shown(preview)
    assert all(cortex.memories.get(str(one.result_id)).content == one.content for one in done.groups)
    assert not done.dry_run
    after = state(cortex)
    assert cortex.memories.consolidate(strategy=strategy).groups == ()
    assert state(cortex) == after


def test_texts_without_words_are_joined_only_where_they_are_the_same(desk: Cortex) -> None:
    for text in ("...", "!!!", "🧠", "🚀"):
        desk.memories.capture(text)
    assert desk.memories.consolidate(strategy="dedupe").groups == ()


def test_a_crowd_becomes_one(desk: Cortex) -> None:
    notes = twins(desk, 60)
    done = desk.memories.consolidate(strategy="dedupe")
    assert groups(done) == {frozenset(one.id for one in notes)}
    assert listed(desk) == {done.groups[0].result_id}


def test_an_unknown_strategy_method_or_namespace_is_refused(desk: Cortex) -> None:
    with pytest.raises(InvalidInput, match="strategy"):
        desk.memories.consolidate(strategy="fold")  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="method"):
        desk.memories.consolidate(method="magic")
    with pytest.raises(UnknownNamespace):
        desk.memories.consolidate("nonsense")


WORDS = ("cache", "token", "deploy", "friday", "index", "worker", "queue")
TEXT = st.lists(st.sampled_from(WORDS), min_size=1, max_size=5).map(" ".join)
VARIANT = st.sampled_from([str.upper, str.title, str, lambda text: text + ".", lambda text: f"- {text} !"])
NOTE = st.tuples(TEXT, VARIANT, st.sampled_from(["context", "decisions"]), st.sampled_from([None, "user"]))


@pytest.mark.slow
@pytest.mark.parametrize("strategy", STRATEGIES)
@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(NOTE, max_size=14))
def test_whatever_is_there_a_second_run_finds_nothing_and_undoing_brings_all_back(
    tmp_path_factory: pytest.TempPathFactory, strategy, notes: list[tuple[str, object, str, str | None]]
) -> None:
    folder = tmp_path_factory.mktemp("any")
    with Cortex.open(folder / "home", project=folder, backend=StubBackend()) as cortex:
        cortex.memories.capture_many(
            NewMemory(content=vary(text), namespace=namespace, role=role)  # type: ignore[operator]
            for text, vary, namespace, role in notes
        )
        before = listed(cortex)
        preview = cortex.memories.consolidate(strategy=strategy, dry_run=True)
        done = cortex.memories.consolidate(strategy=strategy)
        assert shown(done) == shown(preview)
        assert cortex.memories.consolidate(strategy=strategy).groups == ()
        members = [one for group in done.groups for one in group.memories]
        assert len(members) == len(set(members))
        assert listed(cortex) == (before - set(members)) | {str(group.result_id) for group in done.groups}
        for group in done.groups:
            parts = [cortex.memories.get(one) for one in group.memories]
            assert {(one.status, one.superseded_by, one.role, one.namespace) for one in parts} == {
                ("superseded", group.result_id, None, group.namespace)
            }
        for group in reversed(done.groups):
            cortex.memories.undo(str(group.result_id))
        assert listed(cortex) == before
        assert cortex.check() == []


# -- what is left alone ----------------------------------------------------------------------------


def test_namespaces_are_consolidated_each_for_itself(desk: Cortex) -> None:
    here, there = twins(desk, namespace="decisions"), twins(desk, namespace="apis")
    assert groups(desk.memories.consolidate(" Decisions", strategy="dedupe", dry_run=True)) == {
        frozenset(one.id for one in here)
    }
    done = desk.memories.consolidate(strategy="dedupe")
    assert groups(done) == {frozenset(one.id for one in notes) for notes in (here, there)}
    assert {one.namespace for one in done.groups} == {"decisions", "apis"}


def test_domains_are_never_mixed(desk: Cortex) -> None:
    mine, ours, all_of_us = (twins(desk, domain=domain) for domain in ("project", "user", "org"))
    done = desk.memories.consolidate(strategy="dedupe")
    assert groups(done) == {frozenset(one.id for one in notes) for notes in (mine, ours, all_of_us)}
    kept = {desk.memories.get(str(group.result_id)).domain for group in done.groups}
    assert kept == {"project", "user", "org"}


def test_one_of_each_domain_stays_as_it_is(desk: Cortex) -> None:
    for domain in ("project", "user", "org"):
        twins(desk, 1, domain=domain)
    assert desk.memories.consolidate(strategy="dedupe").groups == ()


def test_turns_expired_archived_and_deleted_memories_are_left_alone(desk: Cortex, clock: FakeClock) -> None:
    twins(desk, 2, role="user")
    desk.memories.capture("never deploy on fridays ", ttl="1h")
    desk.memories.update(desk.memories.capture("never deploy on FRIDAYS").id, status="archived")
    desk.memories.delete(desk.memories.capture("never deploy on   fridays").id)
    twins(desk, 1)
    clock.advance(hours=2)
    before = state(desk)
    for strategy in STRATEGIES:
        assert desk.memories.consolidate(strategy=strategy).groups == ()
    assert state(desk) == before


def test_other_projects_are_left_alone(home: Path, tmp_path: Path, clock: FakeClock, desk: Cortex) -> None:
    twins(desk, 1)
    (tmp_path / "other").mkdir()
    with Cortex.open(home, project=tmp_path / "other", clock=clock, backend=StubBackend()) as other:
        twins(other, 1)
        assert other.memories.consolidate(strategy="dedupe").groups == ()
        own = twins(other, 2)
    assert desk.memories.consolidate(strategy="dedupe").groups == ()
    assert desk.memories.get(own[0].id).status == "active"


def test_memories_confined_to_a_git_branch_stay_among_themselves(home: Path, project: Path, clock: FakeClock) -> None:
    git(project, "init", "-b", "main")
    git(project, "commit", "--allow-empty", "-m", "first")
    with Cortex.open(home, project=project, clock=clock, backend=StubBackend(), branch_memories="isolate") as cortex:
        twins(cortex, 1)
        git(project, "checkout", "-b", "work")
        clock.advance(seconds=10)
        confined = twins(cortex, 1)
        assert confined[0].confinement == "isolate"
        assert cortex.memories.consolidate(strategy="dedupe").groups == ()
        confined += twins(cortex, 1)
        (group,) = cortex.memories.consolidate(strategy="dedupe").groups
        assert set(group.memories) == {one.id for one in confined}
        result = cortex.memories.get(str(group.result_id))
        assert (result.confinement, result.git_branch) == ("isolate", "work")


def test_a_query_narrows_what_is_looked_at(cortex: Cortex) -> None:
    tagged = [cortex.memories.capture(text, tags=["auth", "x y"]) for text in SAME]
    for text in ("Never deploy on Fridays.", "never deploy on fridays"):
        cortex.memories.capture(text, tags=["ops"])
    for query in ("tag:auth", "PostgreSQL orders", 'tag:"x y"', "-tag:ops", "tag:auth orders database"):
        done = cortex.memories.consolidate(query=query, dry_run=True)
        assert groups(done) == {frozenset(one.id for one in tagged)}, query
    assert cortex.memories.consolidate(query="tag:nobody", dry_run=True).groups == ()
    assert cortex.memories.consolidate("apis", query="tag:auth", dry_run=True).groups == ()
    assert len(cortex.memories.consolidate(query="  ", dry_run=True).groups) == 2


# -- what becomes of it ----------------------------------------------------------------------------


def test_the_result_inherits_and_points_both_ways(cortex: Cortex, clock: FakeClock) -> None:
    first = cortex.memories.capture(SAME[0], namespace="decisions", tags=["DB", "orders"], source="a.py", ttl="30d")
    clock.advance(hours=1)
    second = cortex.memories.capture(SAME[1], namespace="decisions", tags=["db", "infra"], source="notes.md")
    clock.advance(hours=1)
    done = cortex.memories.consolidate(strategy="merge")
    result = cortex.memories.get(str(done.groups[0].result_id))
    assert (result.tags, result.source) == (("DB", "orders", "infra"), "a.py; notes.md")
    assert (result.created_at, result.updated_at, result.version) == (second.created_at, clock.now(), 1)
    assert (result.status, result.expires_at, result.namespace) == ("active", None, "decisions")
    assert cortex.memories.origins(result.id) == (first.id, second.id) == done.groups[0].memories
    for one in (first, second):
        now = cortex.memories.get(one.id)
        assert (now.status, now.superseded_by, now.content) == ("superseded", result.id, one.content)
    for one in (first, second, result):
        assert [link.id for link in cortex.memories.chain(one.id)] == [first.id, second.id, result.id]
    for mode in ("vector", "text", "hybrid"):
        assert found(cortex, "PostgreSQL orders service", mode=mode) == {result.id}
    assert listed(cortex, "tag:infra") == {result.id}
    assert listed(cortex, "status:superseded") == {first.id, second.id}
    assert cortex.memories.status().total_count == 1


def test_undo_restores_everything_and_deletes_the_result(cortex: Cortex, clock: FakeClock) -> None:
    texts = ("Maria Lopez from Acme uses Redis for the cart.", "maria lopez from Acme uses Redis for the cart!")
    first, second = (cortex.memories.capture(text, tags=["cart"]) for text in texts)
    for one in (first, second):
        cortex.memories.update(one.id, status="pending")
    seen = {mode: found(cortex, "who uses Redis", mode=mode) for mode in ("vector", "text", "hybrid")}
    entities = [(one.id, one.mention_count) for one in cortex.graph.entities()[0]]
    before = state(cortex)
    (group,) = cortex.memories.consolidate(strategy="dedupe").groups
    assert [(one.id, one.mention_count) for one in cortex.graph.entities()[0]] != entities
    clock.advance(hours=1)
    undone = cortex.memories.undo(str(group.result_id)[:20])
    assert (undone.result_id, set(undone.restored)) == (group.result_id, {first.id, second.id})
    assert [cortex.memories.get(one.id).status for one in (first, second)] == ["pending", "pending"]
    assert [cortex.memories.get(one.id).superseded_by for one in (first, second)] == [None, None]
    assert {mode: found(cortex, "who uses Redis", mode=mode) for mode in seen} == seen
    assert [(one.id, one.mention_count) for one in cortex.graph.entities()[0]] == entities
    after = state(cortex)
    for table in ("chunk", "tag"):
        assert set(before[table]) <= set(after[table])
    with pytest.raises(MemoryNotFound):
        cortex.memories.get(str(group.result_id))
    assert cortex.memories.consolidate(strategy="dedupe", dry_run=True).groups[0].memories == group.memories


def test_what_was_undone_or_never_made_cannot_be_undone(desk: Cortex) -> None:
    plain = desk.memories.capture("something else")
    twins(desk)
    (group,) = desk.memories.consolidate(strategy="dedupe").groups
    result = str(group.result_id)
    with pytest.raises(InvalidInput, match="not made by a consolidation"):
        desk.memories.undo(plain.id)
    with pytest.raises(InvalidInput):
        desk.memories.undo(group.memories[0])
    with pytest.raises(MemoryNotFound):
        desk.memories.undo("0" * 40)
    desk.memories.undo(result)
    with pytest.raises(MemoryNotFound):
        desk.memories.undo(result)
    desk.memories.restore(result)
    with pytest.raises(InvalidInput, match="not made by a consolidation"):
        desk.memories.undo(result)


def test_a_result_that_was_itself_replaced_is_undone_after_its_heir(desk: Cortex) -> None:
    twins(desk)
    (first,) = desk.memories.consolidate(strategy="dedupe").groups
    desk.memories.capture("Never deploy on Fridays")
    (second,) = desk.memories.consolidate(strategy="dedupe").groups
    assert first.result_id in second.memories
    before = state(desk)
    with pytest.raises(Conflict, match="itself replaced"):
        desk.memories.undo(str(first.result_id))
    assert state(desk) == before
    desk.memories.undo(str(second.result_id))
    assert set(desk.memories.undo(str(first.result_id)).restored) == set(first.memories)
    assert desk.memories.status().total_count == 3


def test_undo_leaves_nothing_hidden_behind_what_is_gone(desk: Cortex) -> None:
    kept, deleted, revived = twins(desk, 3)
    other = desk.memories.capture("an older word on the matter")
    (group,) = desk.memories.consolidate(strategy="dedupe").groups
    desk.memories.supersede(other.id, str(group.result_id))
    desk.memories.delete(deleted.id)
    desk.memories.update(revived.id, status="archived")
    assert set(desk.memories.origins(str(group.result_id))) == {other.id, kept.id, revived.id}
    assert set(desk.memories.undo(str(group.result_id)).restored) == {kept.id, other.id}
    assert desk.memories.get(revived.id).status == "archived"
    assert desk.memories.restore(deleted.id).status == "active"
    for one in (kept, deleted, revived, other):
        assert desk.memories.get(one.id).superseded_by is None


# -- runs that do not go to their end ----------------------------------------------------------------


class Stop(Exception):
    pass


def test_progress_is_told_to_the_end(desk: Cortex) -> None:
    twins(desk, 4)
    told: list[tuple[int, int]] = []
    desk.memories.consolidate(strategy="dedupe", progress=lambda *step: told.append(step))
    assert [done for done, _ in told] == sorted(done for done, _ in told)
    assert len({total for _, total in told}) == 1
    assert told[-1][0] == told[-1][1]
    told.clear()
    desk.memories.consolidate(strategy="dedupe", dry_run=True, progress=lambda *step: told.append(step))
    assert told[-1][0] == told[-1][1]


def _many_twins(cortex: Cortex, groups: int) -> None:
    for n in range(groups):
        for mark in ("w", "W"):
            cortex.memories.capture(f"{mark}{n}a w{n}b w{n}c w{n}d")


def test_whoever_is_told_may_stop_the_run_and_another_does_the_rest(desk: Cortex) -> None:
    _many_twins(desk, 20)
    stops = {1: 0, 2: 0, 3: 16}
    for call, written in stops.items():
        told: list[int] = []

        def stop(done: int, total: int, told=told, call=call) -> None:
            told.append(done)
            if len(told) == call:
                raise Stop

        with pytest.raises(Stop):
            desk.memories.consolidate(strategy="dedupe", progress=stop)
        assert len(listed(desk, "status:superseded")) == 2 * written
        assert desk.check() == []
    assert len(desk.memories.consolidate(strategy="dedupe").groups) == 4
    assert desk.memories.consolidate(strategy="dedupe").groups == ()
    assert desk.memories.status().total_count == 20


def test_a_memory_that_changes_after_planning_keeps_its_group_from_being_written(desk: Cortex) -> None:
    (first, _), others = twins(desk), [desk.memories.capture(text) for text in ("use tabs", "Use tabs")]
    changes = [
        lambda: desk.memories.update(first.id, content="quite another thing"),
        lambda: desk.memories.delete(first.id),
        lambda: desk.memories.delete(first.id, hard=True),
    ]
    for change in changes:
        calls = []

        def progress(done: int, total: int, calls=calls, change=change) -> None:
            calls.append(done)
            if len(calls) == 2:
                change()

        done = desk.memories.consolidate(strategy="dedupe", progress=progress)
        assert done.skipped == 1
        assert groups(done) == {frozenset(one.id for one in others)}
        desk.memories.undo(str(done.groups[0].result_id))
        if change is changes[0]:
            desk.memories.update(first.id, content=first.content)
        elif change is changes[1]:
            desk.memories.restore(first.id)


def _start(home: Path, project: Path) -> subprocess.Popen[str]:
    command = [*python_command(), str(CONSOLIDATOR), str(home), str(project)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def _whole(cortex: Cortex, groups: int) -> None:
    """Every pair is there once: as its two notes, or as a result that both point to."""
    assert cortex.check() == []
    with cortex.store.database.read() as session:
        open_ends = session.rows(
            "SELECT m.id FROM memory m WHERE (m.status = 'superseded') != (m.superseded_by IS NOT NULL) OR "
            "(m.superseded_by IS NOT NULL AND NOT EXISTS (SELECT 1 FROM memory r WHERE r.id = m.superseded_by))"
        )
        made = session.rows("SELECT count(*), count(DISTINCT result_id) FROM consolidation")
        parts = session.rows("SELECT count(*), count(DISTINCT memory_id) FROM consolidation_part")
        (superseded,) = session.rows("SELECT count(*) FROM memory WHERE status = 'superseded'")[0]
        (live,) = session.rows("SELECT count(*) FROM memory WHERE status = 'active'")[0]
    assert open_ends == []
    assert made[0][0] == made[0][1]
    assert parts[0][0] == parts[0][1] == superseded == 2 * made[0][0]
    assert live == 2 * groups - made[0][0]


@pytest.mark.slow
def test_two_processes_at_once_make_every_result_once(home: Path, project: Path) -> None:
    with Cortex.open(home, project=project, backend=StubBackend()) as cortex:
        _many_twins(cortex, 40)
        processes = [_start(home, project) for _ in range(2)]
        for process in processes:
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()
        results: list[str] = []
        for process in processes:
            output, _ = process.communicate()
            assert process.returncode == 0
            results += json.loads(output.splitlines()[-1])
        assert len(results) == len(set(results)) == 40
        assert listed(cortex) == set(results)
        _whole(cortex, 40)


@pytest.mark.slow
@pytest.mark.parametrize("after", [2, 4])
def test_a_run_that_is_killed_leaves_whole_groups_and_another_completes_it(
    home: Path, project: Path, after: int
) -> None:
    with Cortex.open(home, project=project, backend=StubBackend()) as cortex:
        _many_twins(cortex, 40)
    process = _start(home, project)
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write("go\n")
    process.stdin.flush()
    for _ in range(after):
        process.stdout.readline()
    process.kill()
    process.communicate()
    with Cortex.open(home, project=project, backend=StubBackend()) as cortex:
        _whole(cortex, 40)
        cortex.memories.consolidate(strategy="dedupe")
        _whole(cortex, 40)
        assert len(listed(cortex)) == 40


@pytest.mark.sqlite_only
def test_a_home_from_before_consolidation_opens_and_gains_it(
    home: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables = ("consolidation", "consolidation_part", "llm_use", "recalled")
    with monkeypatch.context() as old:
        use_schema(old, 4)
        old.setattr(ProjectSessions, "settle_files", lambda _sessions: None)
        with Cortex.open(home, project=project, backend=StubBackend()) as cortex:
            notes = twins(cortex)
            with cortex.store.database.read() as session:
                assert not any(cortex.store.database.has_table(session, table) for table in tables)
    with Cortex.open(home, project=project, backend=StubBackend()) as cortex:
        assert [cortex.memories.get(one.id).content for one in notes] == [one.content for one in notes]
        (group,) = cortex.memories.consolidate(strategy="dedupe").groups
        assert set(group.memories) == {one.id for one in notes}
        assert cortex.memories.status().llm_use == ()
        assert cortex.check() == []


def test_a_secret_that_was_let_in_before_does_not_get_into_the_result(home: Path, project: Path) -> None:
    token = "ghp_" + "1a2B3c4D5e" * 3 + "6F7g8h"
    with Cortex.open(home, project=project, backend=StubBackend(), secrets="allow") as open_minded:
        for text in (f"Deploy with {token} from the runner", f"deploy with {token} from the runner."):
            open_minded.memories.capture(text, namespace="config")
    with Cortex.open(home, project=project, backend=StubBackend()) as careful:
        planned = careful.memories.consolidate("config", strategy="dedupe", dry_run=True)
        (group,) = careful.memories.consolidate("config", strategy="dedupe").groups
        stored = careful.memories.get(str(group.result_id))
    assert token not in stored.content
    assert stored.redactions
    assert [stored.content, group.content] == [planned.groups[0].content] * 2
