"""The graph has exactly what the existing memories name and state, written in the same transaction."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cortex_py import Cortex, NewMemory
from cortex_py.core.errors import EntityNotFound
from cortex_py.core.records import Memory
from cortex_py.core.store.migrations import MIGRATIONS
from cortex_py.parts.graph.writer import MIN_CONFIDENCE

from forking import python_command
from helpers import FakeClock, git
from old_schemas import turn_back_spaces
from stub_backend import StubBackend

CAPTURER = Path(__file__).with_name("capturer.py")
TABLES = ("entity", "entity_alias", "mention", "relationship", "entity_history")
TEXT = "Maria Lopez from Acme uses PostgreSQL and Redis."
Open = Callable[..., Cortex]


@pytest.fixture
def open_at(home: Path, clock: FakeClock) -> Iterator[Open]:
    opened: list[Cortex] = []

    def at(folder: Path, **more: object) -> Cortex:
        opened.append(Cortex.open(home, project=folder, clock=clock, backend=StubBackend(), **more))
        return opened[-1]

    yield at
    for cortex in opened:
        cortex.close()


@pytest.fixture
def desk(open_at: Open, project: Path) -> Cortex:
    return open_at(project)


def rows(cortex: Cortex, sql: str) -> list[tuple[object, ...]]:
    with cortex._store.database.read() as session:
        return list(session.rows(sql))


def sizes(cortex: Cortex) -> dict[str, int]:
    return {table: int(str(rows(cortex, f"SELECT count(*) FROM {table}")[0][0])) for table in TABLES}


def heard(cortex: Cortex, name: str) -> set[str]:
    """The memories that name an entity, which must be the same by every way of asking."""
    view = cortex.graph.get(name)
    entity = view.entity
    memories = {one.memory_id for one in view.mentions}
    listed = {one.id: one for one in cortex.graph.entities(limit=1_000)[0]}
    assert listed[entity.id] == entity
    assert entity.mention_count == len(view.mentions)
    shown = cortex.contexts.graph()
    assert {edge.target for edge in shown.edges if edge.source == entity.id} == memories
    assert (entity.id in {node.id for node in shown.nodes}) == bool(memories)
    filtered = {hit.memory.id for hit in cortex.memories.recall(filter=f"entity:{entity.id}", limit=100).results}
    assert filtered == memories
    assert (entity.id in {one.id for one in cortex.graph.orphans()}) == (not memories and not view.relationships)
    near = cortex.graph.neighbors(entity.id)[1]
    ends = {end for one in view.relationships for end in (one.source_id, one.target_id)}
    assert {one.entity.id for one in near} == ends - {entity.id}
    return memories


# -- capture -------------------------------------------------------------------------------------


def test_every_mention_is_the_very_stretch_of_text(desk: Cortex) -> None:
    text = "Ünïcode first 😀: " + TEXT + "\n\nLater Redis was replaced, says Maria Lopez."
    memory = desk.memories.capture(text)
    spelled: dict[str, list[str]] = {}
    for entity in desk.graph.entities()[0]:
        for one in desk.graph.get(entity.id).mentions:
            assert one.memory_id == memory.id
            assert one.confidence >= MIN_CONFIDENCE
            spelled.setdefault(entity.name, []).append(text[one.start : one.end])
    assert all(set(places) == {name} for name, places in spelled.items())
    assert spelled["Redis"] == ["Redis", "Redis"]
    assert spelled["Maria Lopez"] == ["Maria Lopez", "Maria Lopez"]
    assert {"Acme", "PostgreSQL"} <= set(spelled)
    works = {(one.source_id, one.type, one.target_id) for one in desk.graph.relationships()[0]}
    assert ("entity_maria_lopez", "WorksAt", "entity_acme") in works


def test_spans_are_those_of_what_was_stored(desk: Cortex) -> None:
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    memory = desk.memories.capture(f"The token {secret} opens it. The deploy runs on Kubernetes.")
    assert memory.redactions
    (one,) = desk.graph.get("Kubernetes").mentions
    assert memory.content[one.start : one.end] == "Kubernetes"


def test_other_spellings_become_aliases(desk: Cortex) -> None:
    desk.memories.capture("We moved from MongoDB to PostgreSQL.")
    desk.memories.capture("We moved from MongoDB to Postgres.")
    found = desk.graph.get("entity_postgresql").entity
    assert (found.name, found.aliases, found.mention_count) == ("PostgreSQL", ("Postgres",), 2)
    assert desk.graph.get("postgres").entity == found


def test_a_new_name_in_one_batch_is_one_entity(desk: Cortex) -> None:
    notes = [NewMemory(content=TEXT) for _ in range(3)]
    notes.append(NewMemory(content=TEXT, domain="user"))
    desk.memories.capture_many(notes)
    assert rows(desk, "SELECT space, count(*) FROM entity WHERE name = 'Redis' GROUP BY space ORDER BY count(*)") == [
        (space, 1) for space, _ in rows(desk, "SELECT DISTINCT space, 1 FROM entity ORDER BY space")
    ]
    assert desk.graph.get("Redis").entity.mention_count == 3


@pytest.mark.reads_when_asked
def test_a_reading_that_fails_leaves_nothing_by_half_and_is_repeated(
    desk: Cortex, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.memories.capture("The deploy runs on Kubernetes.")
    assert desk.memories.finish_reading()
    before = sizes(desk)
    desk.memories.capture(TEXT)

    def fail(*_: object) -> None:
        raise RuntimeError("the disk is full")

    for method in ("restate", "add_entities", "mark_read"):
        with monkeypatch.context() as patch:
            patch.setattr(desk._store.graph, method, fail)
            with pytest.raises(RuntimeError):
                desk.memories.finish_reading()
        assert sizes(desk) == before
    assert desk.graph.get("Redis").entity.mention_count == 1


@pytest.mark.reads_when_asked
def test_a_note_that_cannot_be_read_does_not_stop_the_others(desk: Cortex, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = desk.memories._capture.annotator
    assert writer is not None
    read = writer.read
    for text in ("The deploy runs on Kubernetes.", TEXT):
        desk.memories.capture(text)

    def fail_once(memory: Memory, stored: tuple[str, int] | None = None) -> object:
        if "Kubernetes" in memory.content:
            raise ZeroDivisionError
        return read(memory, stored)

    monkeypatch.setattr(writer, "read", fail_once)
    assert desk.graph.get("Redis").entity.mention_count == 1
    with pytest.raises(EntityNotFound):
        desk.graph.get("Kubernetes")


def test_a_repeated_call_is_read_once(desk: Cortex) -> None:
    for _ in range(2):
        desk.memories.capture(TEXT, idempotency_key="once")
    assert desk.graph.get("Redis").entity.mention_count == 1


# -- change and removal --------------------------------------------------------------------------


def test_a_new_version_says_only_the_new(desk: Cortex) -> None:
    memory = desk.memories.capture(TEXT)
    desk.memories.update(memory.id, content="Maria Lopez from Acme uses Kubernetes.")
    assert heard(desk, "Kubernetes") == heard(desk, "Maria Lopez") == {memory.id}
    assert heard(desk, "Redis") == set()
    assert {one.target_id for one in desk.graph.relationships(type="Uses")[0]} == {"entity_kubernetes"}
    desk.memories.update(memory.id, tags=["x"])
    assert heard(desk, "Kubernetes") == {memory.id}


def test_a_deleted_memory_is_silent_at_once_and_speaks_again(desk: Cortex) -> None:
    one, two = (desk.memories.capture(f"{TEXT} Take {n}.") for n in "ab")
    whole = desk.graph.stats()
    desk.memories.delete(one.id)
    assert heard(desk, "Redis") == {two.id}
    desk.memories.delete(two.id)
    for name in ("Redis", "Acme", "Maria Lopez", "PostgreSQL"):
        assert heard(desk, name) == set()
    assert desk.graph.relationships() == ([], 0)
    silent = desk.graph.stats()
    assert (silent.mentions, silent.memories, silent.relationships, silent.busiest) == (0, 0, 0, ())
    desk.memories.restore(two.id)
    assert heard(desk, "Redis") == {two.id}
    desk.memories.restore(one.id)
    assert heard(desk, "Acme") == {one.id, two.id}
    assert desk.graph.stats() == whole


def test_a_purged_memory_leaves_no_row(desk: Cortex) -> None:
    memory = desk.memories.capture(TEXT)
    desk.graph.merge(["Redis", "PostgreSQL"])
    desk.memories.update(memory.id, content=TEXT + " Kubernetes too.")
    desk.memories.delete(memory.id, hard=True)
    assert sizes(desk) == dict.fromkeys(TABLES, 0)


def test_a_purge_takes_only_what_nothing_else_holds(desk: Cortex) -> None:
    gone, kept = desk.memories.capture(TEXT), desk.memories.capture("Redis uses Lua.")
    desk.graph.create("Acme", "Organization")
    desk.graph.create("PostgreSQL", "Technology", properties={"port": 5432})
    desk.memories.delete(gone.id)
    desk.memories.gc(purge=True)
    assert {one.name for one in desk.graph.entities()[0]} == {"Acme", "PostgreSQL", "Redis", "Lua"}
    assert heard(desk, "Redis") == {kept.id}
    with pytest.raises(EntityNotFound):
        desk.graph.get("Maria Lopez")


def test_what_was_purged_from_a_merge_does_not_come_back(desk: Cortex) -> None:
    gone = desk.memories.capture("Robert Smith works at Acme.")
    kept = desk.memories.capture("Bob Smith works at Acme.")
    done = desk.graph.merge(["Bob Smith", "Robert Smith"])
    desk.memories.delete(gone.id, hard=True)
    assert desk.graph.undo_merge(str(done.merge_id))
    assert heard(desk, "entity_bob_smith") == {kept.id}
    assert heard(desk, "entity_robert_smith") == set()


def test_an_expired_memory_is_silent(desk: Cortex, clock: FakeClock) -> None:
    memory = desk.memories.capture(TEXT, ttl="1h")
    assert heard(desk, "Redis") == {memory.id}
    clock.advance(hours=2)
    assert heard(desk, "Redis") == set()
    assert desk.graph.stats().mentions == 0


# -- git branches, files -------------------------------------------------------------------------


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    folder = tmp_path / "repo"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    (folder / "a.txt").write_text("a\n")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "first")
    return folder


def test_what_is_confined_to_a_git_branch_is_heard_there_alone(open_at: Open, tree: Path) -> None:
    cortex = open_at(tree, branch_memories="isolate")
    git(tree, "checkout", "-q", "-b", "feature")
    memory = cortex.memories.capture(TEXT)
    assert memory.confinement == "isolate"
    assert heard(cortex, "Redis") == {memory.id}
    facts = cortex.graph.relationships()
    assert facts[1] > 0
    git(tree, "checkout", "-q", "main")
    assert heard(cortex, "Redis") == set()
    assert cortex.graph.relationships() == ([], 0)
    assert cortex.graph.stats().mentions == 0
    # Whoever tidies up on one branch does not take from another.
    assert cortex.graph.orphans(delete=True) == []
    git(tree, "checkout", "-q", "feature")
    assert heard(cortex, "Redis") == {memory.id}
    assert cortex.graph.relationships() == facts


def test_scanned_files_are_not_read(open_at: Open, tree: Path) -> None:
    (tree / "notes.md").write_text(f"# Notes\n\n{TEXT}\n")
    cortex = open_at(tree)
    assert cortex.contexts.initialize(mode="full").contexts_created > 0
    cortex.upkeep()
    cortex.memories.reindex()
    assert sizes(cortex) == dict.fromkeys(TABLES, 0)


# -- catching up ---------------------------------------------------------------------------------


def _as_of_schema_2(cortex: Cortex) -> None:
    """Take everything away that came with the third step and later."""
    with cortex._store.database.write() as session:
        later = re.findall(r"CREATE TABLE (\w+)", " ".join(statement for step in MIGRATIONS[3:] for statement in step))
        for table in (*TABLES, *later):
            # One that took the place of another goes by the name of that.
            if cortex._store.database.has_table(session, table):
                session.run(f"DROP TABLE {table}")
        for index in (
            "memory_ungraphed",
            "scanned_at",
            "memory_superseded",
            "memory_grounding",
            "memory_unlooked",
            "memory_pending",
            "memory_user",
            "memory_agent",
        ):
            session.run(f"DROP INDEX {index}")
        for column in ("graphed", "personal"):
            session.run(f"ALTER TABLE memory DROP COLUMN {column}")
        turn_back_spaces(session)
        session.run("DELETE FROM schema_step WHERE version >= 3")


@pytest.mark.slow
@pytest.mark.sqlite_only  # it turns the schema back
@pytest.mark.parametrize("way", ["upkeep", "annotate", "reindex"])
def test_what_was_stored_before_there_was_a_graph_is_caught_up_with(open_at: Open, project: Path, way: str) -> None:
    old = open_at(project)
    notes = [NewMemory(content=f"{TEXT} Take {n}.") for n in range(130)]
    old.memories.capture_many([*notes, NewMemory(content="The deploy runs on Kubernetes.", domain="user")])
    deleted = old.memories.capture("Terraform and Ansible set up the hosts.")
    old.memories.delete(deleted.id)
    _as_of_schema_2(old)
    old.close()
    cortex = open_at(project)
    assert cortex.graph.entities() == ([], 0)
    assert {"upkeep": cortex.upkeep, "annotate": cortex.memories.annotate, "reindex": cortex.memories.reindex}[way]()
    assert cortex.graph.get("Redis").entity.mention_count == 130
    assert cortex.graph.get("Kubernetes").entity.space == "user:local"
    cortex.memories.restore(deleted.id)
    cortex.upkeep()
    assert heard(cortex, "Terraform") == {deleted.id}
    before = sizes(cortex)
    assert cortex.memories.annotate() == 0
    cortex.memories.reindex()
    assert sizes(cortex) == before


@pytest.mark.slow
def test_catching_up_stops_when_it_is_told_to(desk: Cortex) -> None:
    desk.memories._capture.annotator, writer = None, desk.memories._capture.annotator
    desk.memories.capture_many(NewMemory(content=f"{TEXT} Take {n}.") for n in range(300))
    desk.memories._capture.annotator = writer
    asked: list[int] = []
    some = desk.memories.annotate(lambda: len(asked) > 0 or asked.append(1) is not None)
    assert 0 < some < 300
    assert desk.graph.stats().memories == some
    assert desk.memories.annotate() == 300 - some
    assert desk.graph.stats().memories == 300


@pytest.mark.parametrize("way", ["annotate", "reindex"])
def test_each_memory_is_read_with_the_names_of_its_own_project(open_at: Open, tmp_path: Path, way: str) -> None:
    folders = {}
    for name in ("weaver", "baker"):
        folders[name] = tmp_path / name
        folders[name].mkdir()
    weaver, baker = (open_at(folder) for folder in folders.values())
    memory = weaver.memories.capture("We use Redis for caching.")
    own = weaver.memories.capture("We use Redis for everything.", domain="user")
    assert heard(weaver, "weaver") == {memory.id}
    with weaver._store.database.write() as session:
        session.run("UPDATE memory SET graphed = 0")
    getattr(baker.memories, way)()
    assert heard(weaver, "weaver") == {memory.id}
    for cortex in (weaver, baker):
        with pytest.raises(EntityNotFound):
            cortex.graph.get("baker")
    with pytest.raises(EntityNotFound):
        baker.graph.get("weaver")
    assert {one.memory_id for one in baker.graph.get("Redis").mentions} == {own.id}


# -- several at once -----------------------------------------------------------------------------


def _start(home: Path, project: Path, name: str, batches: int, size: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*python_command(), str(CAPTURER), str(home), str(project), name, str(batches), str(size)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def _go(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.stdin.write("go\n")
    process.stdin.flush()


@pytest.mark.slow
def test_a_killed_capture_leaves_every_note_read(home: Path, project: Path, open_at: Open) -> None:
    process = _start(home, project, "w", 1_000, 300)
    _go(process)
    assert process.stdout is not None
    assert process.stdout.readline() == "done 0\n"
    process.kill()
    process.communicate()
    cortex = open_at(project)
    assert cortex.check() == []
    cortex.upkeep()
    unread = (
        "SELECT count(*) FROM memory m WHERE graphed = 0 OR NOT EXISTS (SELECT 1 FROM mention n WHERE n.num = m.num)"
    )
    assert rows(cortex, unread) == [(0,)]
    assert rows(
        cortex, "SELECT count(*) FROM mention n WHERE NOT EXISTS (SELECT 1 FROM memory m WHERE m.num = n.num)"
    ) == [(0,)]
    notes = cortex.memories.status().total_count
    assert notes >= 300
    assert cortex.graph.get("Redis").entity.mention_count == notes


def test_processes_that_meet_the_same_new_name_make_one_entity(home: Path, project: Path, open_at: Open) -> None:
    open_at(project).close()
    processes = [_start(home, project, name, 4, 3) for name in "abc"]
    for process in processes:
        _go(process)
    for process in processes:
        process.communicate(timeout=60)
        assert process.returncode == 0
    cortex = open_at(project)
    names = [one.name for one in cortex.graph.entities(limit=100)[0]]
    assert sorted(name for name in names if name in ("Acme", "Maria Lopez", "Redis")) == [
        "Acme",
        "Maria Lopez",
        "Redis",
    ]
    assert cortex.graph.get("Redis").entity.mention_count == 36
    assert cortex.check() == []
