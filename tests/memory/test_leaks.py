"""Every filter key in every mode: only what the filter allows is ever returned, and all of it can be."""

from pathlib import Path

import pytest

from cortex_py import Cortex, NewMemory

from helpers import FakeClock

pytestmark = pytest.mark.usefixtures("retrieval")

MODES = ("hybrid", "vector", "text", "list")
TEXT = "the token rotation schedule of the gateway"

# Two records that differ in one field each: the filter, the values inside, the values outside.
CASES = {
    "ns": ("ns:decisions", {"namespace": "decisions"}, {"namespace": "patterns"}),
    "namespace": ("namespace:tech-debt", {"namespace": "tech-debt"}, {"namespace": "patterns"}),
    "tag": ("tag:api", {"tags": ("API", "x")}, {"tags": ("x",)}),
    "tags": ("tags:api,web", {"tags": ("web",)}, {"tags": ("x",)}),
    "tag and": ("tag:a tag:b", {"tags": ("a", "b")}, {"tags": ("a",)}),
    "tag glob": ("tag:team-*", {"tags": ("team-red",)}, {"tags": ("red-team",)}),
    "since": ("since:1d", {}, {"created_at": "old"}),
    "after": ("after:2026-01-02", {}, {"created_at": "old"}),
    "before": ("before:2026-01-01", {"created_at": "old"}, {}),
    "source": ("source:notes.md", {"source": "notes.md"}, {"source": "other.md"}),
    "src": ("src:docs/*.md", {"source": "docs/a.md"}, {"source": "docs/deep/a.md"}),
    "branch": ("branch:feature/login", {"git_branch": "feature/login"}, {"git_branch": "main"}),
    "branch glob": ("branch:feature/*", {"git_branch": "feature/login"}, {"git_branch": "feature/a/b"}),
    "path": ("path:src/**/*.py", {"path": "src/a/b.py"}, {"path": "lib/a/b.py"}),
    "file": ("file:src/*.py", {"path": "src/b.py"}, {"path": "src/a/b.py"}),
    "status": ("status:archived", {"status": "archived"}, {"status": "active"}),
    "entity": ("entity:Kubernetes", {"content": TEXT + " on Kubernetes"}, {"content": TEXT}),
    "category": ("category:bug_fix", {"category": "bug_fix"}, {"category": "feature"}),
    "role": ("role:assistant", {"role": "assistant"}, {"role": "user"}),
    "user": ("user:ann", {"user_id": "ann"}, {"user_id": "bob"}),
    "agent": ("agent:coder", {"agent_id": "coder"}, {"agent_id": "tester"}),
    "personal": ("personal:email", {"content": TEXT + " of anna@parts-shop.de"}, {"content": TEXT}),
    "quoted": ('tag:"two words"', {"tags": ("two words",)}, {"tags": ("two", "words")}),
}
NEGATED = {
    key: (f"-{text}", inside, outside)
    for key, (text, inside, outside) in CASES.items()
    if key not in ("tag and", "after", "status")
}


def _memory(clock: FakeClock, fields: dict) -> NewMemory:
    values = dict(fields)
    if values.get("created_at") == "old":
        values["created_at"] = clock.now().replace(year=2020)
    return NewMemory(**{"content": TEXT, **values})


@pytest.mark.parametrize("key", CASES)
def test_a_filter_holds_in_every_mode(cortex: Cortex, clock: FakeClock, key: str) -> None:
    text, inside, outside = CASES[key]
    wanted, unwanted = cortex.memories.capture_many([_memory(clock, inside), _memory(clock, outside)])
    for mode in MODES:
        assert _found(cortex, text, mode) == {wanted.id}, mode
        if key in NEGATED:
            assert _found(cortex, NEGATED[key][0], mode) == {unwanted.id}, mode


def _found(cortex: Cortex, filter: str, mode: str) -> set[str]:
    if mode == "list":
        page = cortex.memories.recall(filter=filter)
        assert page.total == len(page.results)
    else:
        page = cortex.memories.recall("token rotation", filter=filter, mode=mode)
    return {hit.memory.id for hit in page.results}


@pytest.mark.parametrize("key", ["project", "proj", "repo"])
def test_projects_are_apart_unless_named(home: Path, tmp_path: Path, model, key: str) -> None:
    for name in ("alpha", "beta"):
        (tmp_path / name).mkdir()
        with Cortex.open(home, project=tmp_path / name, backend=model) as cortex:
            cortex.memories.capture(TEXT, tags=[name])
    with Cortex.open(home, project=tmp_path / "alpha", backend=model) as cortex:
        for mode in MODES:
            tags = {
                filter: {hit.memory.tags for hit in _page(cortex, filter, mode).results}
                for filter in ("", f"{key}:beta", f"-{key}:alpha", f"{key}:unknown", f"{key}:*a")
            }
            assert tags == {
                "": {("alpha",)},
                f"{key}:beta": {("beta",)},
                f"-{key}:alpha": set(),
                f"{key}:unknown": set(),
                f"{key}:*a": {("alpha",), ("beta",)},
            }, mode


def _page(cortex: Cortex, filter: str, mode: str):
    if mode == "list":
        return cortex.memories.recall(filter=filter)
    return cortex.memories.recall("token rotation", filter=filter, mode=mode)


@pytest.mark.parametrize("mode", ["hybrid", "vector", "text"])
@pytest.mark.parametrize(
    "argument", [{"user_id": "ann"}, {"agent_id": "coder"}, {"category": "data"}, {"namespace": "apis"}]
)
def test_arguments_filter_like_the_language(cortex: Cortex, argument: dict, mode) -> None:
    wanted, _ = cortex.memories.capture_many([NewMemory(content=TEXT, **argument), NewMemory(content=TEXT)])
    page = cortex.memories.recall("token rotation", mode=mode, **argument)
    assert [hit.memory.id for hit in page.results] == [wanted.id]


@pytest.mark.parametrize("mode", ["hybrid", "vector", "text", "list"])
def test_by_default_only_active_and_pending_are_seen(cortex: Cortex, mode: str) -> None:
    statuses = ("active", "pending", "archived", "superseded", "consolidated")
    stored = cortex.memories.capture_many(
        [NewMemory(content=f"{TEXT} {number}", status=status) for number, status in enumerate(statuses)]
    )
    dead = cortex.memories.capture(TEXT)
    cortex.memories.delete(dead.id)
    assert _found(cortex, "", mode) == {stored[0].id, stored[1].id}
    for status, memory in zip(statuses, stored, strict=True):
        assert _found(cortex, f"status:{status}", mode) == {memory.id}


@pytest.mark.parametrize("mode", ["vector", "list"])
def test_tombstones_are_seen_only_when_asked_for(cortex: Cortex, mode: str) -> None:
    memory = cortex.memories.capture(TEXT)
    cortex.memories.delete(memory.id)
    assert _found(cortex, "", mode) == set()
    assert _found(cortex, "status:tombstoned", mode) == {memory.id}


def test_a_closed_neighbour_lends_nothing(cortex: Cortex) -> None:
    """A record is not lifted by the words of one that the filter hides."""
    line = cortex.contexts.create_branch("mixed")
    hidden, shown = cortex.memories.capture_many(
        [
            NewMemory(content="quixotic zebras", branch_id=line.id, namespace="security"),
            NewMemory(content="plain words", branch_id=line.id, namespace="patterns"),
        ]
    )
    alone = cortex.memories.capture("plain words", namespace="patterns")
    page = cortex.memories.recall("quixotic zebras", filter="ns:patterns")
    scores = {hit.memory.id: hit.score for hit in page.results}
    assert hidden.id not in scores
    assert scores[shown.id] == pytest.approx(scores[alone.id])
