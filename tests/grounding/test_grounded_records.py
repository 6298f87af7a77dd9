"""The verification that is stored with a checked turn, and the filter for it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from sample_project import commit, make_repository, make_sample, open_at

from cases import each
from cortex_py import Cortex
from cortex_py.core.errors import FilterSyntaxError
from cortex_py.core.records import NewMemory
from cortex_py.session import ProjectSessions

from old_schemas import use_schema
from stub_backend import StubBackend

TRUE = "`login` is defined in app/auth.py."
FALSE = "I added `refresh_token` to app/auth.py."


@pytest.fixture
def desk(home: Path, project: Path) -> Iterator[Cortex]:
    make_sample(project)
    with open_at(home, project) as cortex:
        cortex.grounding.refresh()
        yield cortex


@pytest.fixture
def branch(desk: Cortex) -> str:
    return desk.contexts.create_branch("work").id


def fill_scores(cortex: Cortex) -> None:
    """Records in each range and on its edges, and one that nothing checked."""
    scores = {"good": 0.9, "edge": 0.7, "doubtful": 0.5, "low edge": 0.3, "bad": 0.1, "unchecked": None}
    cortex.memories.capture_many(
        [NewMemory(content=f"The {word} deploy note.", grounding=score) for word, score in scores.items()]
    )


def listed(cortex: Cortex, filter: str) -> set[str]:
    page = cortex.memories.recall(filter=filter, limit=20)
    return {hit.memory.content.split(" deploy")[0].removeprefix("The ") for hit in page.results}


def recalled(cortex: Cortex, filter: str) -> set[str]:
    page = cortex.memories.recall("deploy note", filter=filter, limit=20)
    return {hit.memory.content.split(" deploy")[0].removeprefix("The ") for hit in page.results}


# What a turn leaves


def test_an_assistants_turn_keeps_its_score_and_what_was_found(desk: Cortex, branch: str) -> None:
    good = desk.contexts.append(branch, TRUE, "assistant")
    bad = desk.contexts.append(branch, FALSE, "assistant")
    assert good.verification is not None
    assert bad.verification is not None
    assert good.memory.grounding == good.verification.score >= 0.7
    assert bad.memory.grounding == bad.verification.score < 0.3
    assert desk.memories.get(bad.memory.id).grounding == bad.verification.score
    kept = json.loads(desk.memories.verification(bad.memory.id) or "")
    assert (kept["grounding_score"], kept["status"]) == (bad.verification.score, "REJECT")
    (claim,) = kept["claims"]
    assert (claim["claim"], claim["verdict"]) == (FALSE, "contradicted")
    assert claim["evidence"].startswith("No symbol `refresh_token`")
    assert kept["contradictions"]


def test_a_users_turn_is_not_checked(desk: Cortex, branch: str) -> None:
    said = desk.contexts.append(branch, FALSE, "user")
    assert (said.verification, said.memory.grounding) == (None, None)
    assert desk.memories.verification(said.memory.id) is None


def test_a_turn_without_claims_has_no_score(desk: Cortex, branch: str) -> None:
    said = desk.contexts.append(branch, "Shall I go on?", "assistant")
    assert said.memory.grounding is None
    assert desk.memories.verification(said.memory.id) is None


def test_a_turn_is_kept_where_it_could_not_be_checked(
    desk: Cortex, branch: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cortex_py.parts.verify.service._LONGEST", 10)
    said = desk.contexts.append(branch, FALSE, "assistant")
    assert said.verification is None
    assert "characters" in said.unchecked
    assert desk.memories.get(said.memory.id).content == FALSE


# Other wordings, other ends


def test_another_wording_was_checked_by_nobody(desk: Cortex, branch: str) -> None:
    said = desk.contexts.append(branch, FALSE, "assistant").memory
    desk.memories.update(said.id, tags=["kept"])
    assert desk.memories.get(said.id).grounding == said.grounding
    assert desk.memories.verification(said.id) is not None
    desk.memories.update(said.id, content="Nothing was added.")
    assert desk.memories.get(said.id).grounding is None
    assert desk.memories.verification(said.id) is None


def test_what_is_purged_leaves_no_result(desk: Cortex, branch: str) -> None:
    said = desk.contexts.append(branch, FALSE, "assistant").memory
    desk.memories.delete(said.id)
    desk.memories.restore(said.id)
    assert desk.memories.verification(said.id) is not None
    desk.memories.delete(said.id, hard=True)
    with desk._store.database.read() as session:
        assert session.rows("SELECT * FROM verification") == []


def test_results_are_kept_without_secrets(desk: Cortex, branch: str) -> None:
    token = "ghp_" + "1a2B3c4D5e" * 3 + "6F7g8h"
    said = desk.contexts.append(branch, f"I added `refresh_token` to app/auth.py with {token}.", "assistant")
    assert said.verification is not None
    assert token not in repr(desk.memories.get(said.memory.id))
    assert token not in (desk.memories.verification(said.memory.id) or "")
    assert token not in said.verification.message
    assert said.verification.findings


# Filters


@pytest.fixture
def scored(home: Path, project: Path) -> Iterator[Cortex]:
    with open_at(home, project) as cortex:
        fill_scores(cortex)
        yield cortex


@each(
    ("filter", "expected"),
    [
        ("grounded:<0.3", {"bad"}),
        ("grounded:<=0.3", {"bad", "low edge"}),
        ("grounded:>=0.7", {"good", "edge"}),
        ("grounded:>0.7", {"good"}),
        ("grounded:0.5", {"doubtful"}),
        ("grounded:=0.5", {"doubtful"}),
        ("grounded:accept", {"good", "edge"}),
        ("grounded:warn", {"doubtful", "low edge"}),
        ("grounded:REJECT", {"bad"}),
        ("grounded:none", {"unchecked"}),
        ("-grounded:none", {"good", "edge", "doubtful", "low edge", "bad"}),
        ("grounded:reject,none", {"bad", "unchecked"}),
        ("-grounded:reject", {"good", "edge", "doubtful", "low edge", "unchecked"}),
        ("-grounded:<0.7", {"good", "edge", "unchecked"}),
        ("grounded:>=0.3 -grounded:>=0.7", {"doubtful", "low edge"}),
    ],
)
def test_records_are_found_by_how_grounded_they_are(
    scored: Cortex, retrieval: str, filter: str, expected: set[str]
) -> None:
    assert listed(scored, filter) == expected
    assert recalled(scored, filter) == expected


@each("value", ["2", "-1", "good", "<", "<<0.3", "0.3.1", "NaN", "1e-3", "<1.1"])
def test_what_is_no_score_is_refused(home: Path, project: Path, value: str) -> None:
    with open_at(home, project) as cortex, pytest.raises(FilterSyntaxError, match="position"):
        cortex.memories.recall(filter=f"grounded:{value}")


def test_the_status_counts_how_grounded_records_are(home: Path, project: Path) -> None:
    with open_at(home, project) as cortex:
        assert cortex.memories.status().grounding_counts == {}
        fill_scores(cortex)
        assert cortex.memories.status().grounding_counts == {"accept": 2, "warn": 2, "reject": 1}


# Older homes


def test_a_home_from_before_checks_opens_and_gains_them(
    home: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_repository(project)
    commit(project, {"a.py": "def one():\n    return 1\n"}, "first")
    with monkeypatch.context() as old:
        use_schema(old, 5)
        old.setattr(ProjectSessions, "settle_files", lambda _sessions: None)
        with Cortex.open(home, project=project, backend=StubBackend()) as cortex:
            note = cortex.memories.capture("The deploy runs at night.")
            with cortex._store.database.read() as session:
                assert not cortex._store.database.has_table(session, "verification")
    with open_at(home, project) as cortex:
        assert cortex.memories.get(note.id).content == note.content
        assert cortex.memories.verification(note.id) is None
        branch = cortex.contexts.create_branch("work")
        said = cortex.contexts.append(branch.id, "`one` is defined in a.py.", "assistant").memory
        assert cortex.memories.verification(said.id) is not None
        assert cortex.check() == []
