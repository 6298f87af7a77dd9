"""Capture: stored, searchable, told honestly; or refused with nothing changed."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest

from cortex_py import Cortex, NewMemory
from cortex_py.core.errors import (
    BranchNotFound,
    ContentBlocked,
    ContentTooLarge,
    InvalidInput,
    ModelMismatch,
    UnknownNamespace,
)
from cortex_py.core.security import policy
from cortex_py.core.security.secrets.secrets import find_secrets

from helpers import FakeClock

FAKE_TOKEN = "ghp_" + "a1B2c3D4e5" * 3 + "f6G7h8"


def test_the_documents_example(cortex: Cortex) -> None:
    memory = cortex.memories.capture(
        "Use PostgreSQL for primary storage because of JSONB support",
        namespace="decisions",
        tags=["database", "architecture"],
        source="ARCHITECTURE.md",
    )
    again = cortex.memories.get(memory.id)
    assert again == memory
    assert (again.namespace, again.tags, again.source) == ("decisions", ("database", "architecture"), "ARCHITECTURE.md")
    assert (again.domain, again.status, again.version) == ("project", "active", 1)
    assert again.created_at == datetime(2026, 1, 2, 12, 34, 56, tzinfo=UTC)


@pytest.mark.parametrize(
    "content",
    ["emoji 🦀 and CRLF\r\n\ttabs", "日本語のメモ", "a" * 5000, "nul \x00 inside", "  spaces kept  ", "'; DROP --"],
)
def test_content_comes_back_exactly(cortex: Cortex, content: str) -> None:
    assert cortex.memories.get(cortex.memories.capture(content).id).content == content


@pytest.mark.parametrize("content", ["", "   \n\t", "lone \ud800 surrogate"])
def test_what_cannot_be_kept_is_refused(cortex: Cortex, content: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        cortex.memories.capture(content)
    assert refused.value.field == "content"
    assert cortex.memories.recall().total == 0


def test_content_over_the_limit_is_refused(home: Path, project: Path, model) -> None:
    with Cortex.open(home, project=project, backend=model, max_content_bytes=100) as cortex:
        with pytest.raises(ContentTooLarge):
            cortex.memories.capture("é" * 51)
        assert cortex.memories.capture("é" * 50).content == "é" * 50


def test_an_unknown_namespace_is_refused_and_the_valid_ones_are_named(cortex: Cortex) -> None:
    with pytest.raises(UnknownNamespace, match="decisions"):
        cortex.memories.capture("x", namespace="thoughts")
    assert cortex.memories.capture("x", namespace="tech_debt").namespace == "tech-debt"


def test_tags_are_trimmed_and_kept_once(cortex: Cortex) -> None:
    assert cortex.memories.capture("x", tags=[" API ", "api", "", "two  words"]).tags == ("API", "two words")
    with pytest.raises(InvalidInput):
        cortex.memories.capture("x", tags="api")
    with pytest.raises(InvalidInput):
        cortex.memories.capture("x", tags=["a" * 129])


def test_a_source_that_is_a_file_becomes_the_path(cortex: Cortex) -> None:
    assert cortex.memories.capture("x", source="src/auth.py:45").path == "src/auth.py"
    assert cortex.memories.capture("x", source="https://example.org/a.md").path is None
    assert cortex.memories.capture("x", source="a talk with Ann").path is None


def test_a_repeated_text_is_stored_and_the_caller_is_told(cortex: Cortex) -> None:
    first = cortex.memories.capture("Use  PostgreSQL")
    second = cortex.memories.capture("use postgresql")
    assert first.duplicate_of is None
    assert second.duplicate_of == first.id
    assert cortex.memories.recall().total == 2
    assert cortex.memories.capture("Use PostgreSQL", domain="user").duplicate_of is None


def test_repeating_with_the_same_key_returns_the_first_record(cortex: Cortex) -> None:
    first = cortex.memories.capture("one", idempotency_key="k1")
    assert cortex.memories.capture("one", idempotency_key="k1").id == first.id
    both = cortex.memories.capture_many([NewMemory(content="two", idempotency_key="k2")] * 2)
    assert both[0].id == both[1].id
    assert cortex.memories.recall().total == 2


def test_a_secret_is_redacted_everywhere_and_the_caller_is_told(cortex: Cortex, home: Path) -> None:
    memory = cortex.memories.capture(f"The deploy token is {FAKE_TOKEN}", source=f"https://x:{FAKE_TOKEN}@host/a")
    assert memory.redactions
    assert FAKE_TOKEN not in memory.content + (memory.source or "")
    assert "deploy token" in memory.content
    cortex.close()
    for file in home.rglob("*"):
        assert not file.is_file() or FAKE_TOKEN.encode() not in file.read_bytes()


def test_a_text_is_searched_for_secrets_once(cortex: Cortex, monkeypatch: pytest.MonkeyPatch) -> None:
    long = "The cache of the build server holds every wheel of a release until its branch is merged. " * 6
    seen: list[str] = []
    monkeypatch.setattr(policy, "find_secrets", lambda text: seen.append(text) or find_secrets(text))
    cortex.memories.capture_many([NewMemory(content=f"{n} {long}", tags=("cache",)) for n in range(3)])
    assert sorted(text for text in seen if long in text) == [f"{n} {long}" for n in range(3)]


def test_under_the_policy_block_a_secret_is_refused_without_being_named(home: Path, project: Path, model) -> None:
    with Cortex.open(home, project=project, backend=model, secrets="block") as cortex:
        with pytest.raises(ContentBlocked) as refused:
            cortex.memories.capture(f"token {FAKE_TOKEN}")
        assert FAKE_TOKEN not in str(refused.value) + repr(refused.value)
        assert refused.value.kinds
        assert cortex.memories.recall().total == 0


@pytest.mark.slow
def test_many_are_stored_in_order_with_progress(cortex: Cortex) -> None:
    told: list[tuple[int, int]] = []
    items = [NewMemory(content=f"note number {i}") for i in range(300)]
    stored = cortex.memories.capture_many(items, progress=lambda done, total: told.append((done, total)))
    assert [memory.content for memory in stored] == [item.content for item in items]
    assert [memory.id for memory in stored] == sorted(memory.id for memory in stored)
    assert told[-1] == (300, 300)
    assert told == sorted(told)


@pytest.mark.parametrize("batch", [2, 256])
def test_one_bad_item_among_many_changes_nothing(cortex: Cortex, monkeypatch: pytest.MonkeyPatch, batch: int) -> None:
    monkeypatch.setattr("cortex_py.core.memory.capture.capture.BATCH", batch)
    items = [NewMemory(content=f"note {i}") for i in range(5)]
    with pytest.raises(UnknownNamespace):
        cortex.memories.capture_many([*items, replace(items[0], namespace="nonsense")])
    with pytest.raises(BranchNotFound):
        cortex.memories.capture_many([*items, replace(items[0], branch_id="no_such_branch")])
    assert cortex.memories.recall().total == 0


def test_a_given_time_is_kept_in_utc(cortex: Cortex) -> None:
    plain = datetime(2023, 5, 8, 13, 56)
    shifted = datetime(2023, 5, 8, 15, 56, tzinfo=timezone(timedelta(hours=2)))
    for moment in (plain, shifted):
        memory = cortex.memories.capture("then", created_at=moment)
        assert memory.created_at == datetime(2023, 5, 8, 13, 56, tzinfo=UTC)
        assert cortex.memories.get(memory.id) == memory


def test_a_time_to_live_ends(cortex: Cortex, clock: FakeClock) -> None:
    memory = cortex.memories.capture("the demo is on Friday", ttl="2d")
    assert memory.expires_at == clock.now() + timedelta(days=2)
    clock.advance(days=1, hours=23)
    assert cortex.memories.recall("demo friday").total == 1
    clock.advance(hours=1)
    assert cortex.memories.recall("demo friday").total == 0
    assert cortex.memories.recall().total == 0


@pytest.mark.parametrize("wrong", ["soon", "2026-02-01", "0d", "-3d", ""])
def test_a_bad_time_to_live_is_refused(cortex: Cortex, wrong: str) -> None:
    with pytest.raises(InvalidInput):
        cortex.memories.capture("x", ttl=wrong)


def test_domains_decide_who_sees_what(home: Path, tmp_path: Path, model) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    with Cortex.open(home, project=tmp_path / "one", backend=model) as one:
        one.memories.capture("belongs to project one")
        one.memories.capture("belongs to the person", domain="user")
        one.memories.capture("belongs to everybody", domain="org")
    with Cortex.open(home, project=tmp_path / "two", backend=model) as two:
        seen = {hit.memory.content for hit in two.memories.recall().results}
        assert seen == {"belongs to the person", "belongs to everybody"}
        assert {h.memory.domain for h in two.memories.recall("belongs to project one").results} == {"user", "org"}
    with Cortex.open(home, project=tmp_path / "two", backend=model, user_id="ann") as ann:
        assert {hit.memory.content for hit in ann.memories.recall().results} == {"belongs to everybody"}


def test_global_is_another_word_for_the_user_domain(cortex: Cortex) -> None:
    assert cortex.memories.capture("x", domain="global").domain == "user"  # type: ignore[arg-type]
    with pytest.raises(InvalidInput):
        cortex.memories.capture("x", domain="world")  # type: ignore[arg-type]


def test_vectors_of_two_models_are_never_mixed(cortex: Cortex, home: Path, project: Path, model) -> None:
    cortex.memories.capture("made by the first model")
    with Cortex.open(home, project=project, backend=_Renamed(model)) as other:
        with pytest.raises(ModelMismatch, match="reindex"):
            other.memories.capture("made by the second")
        with pytest.raises(ModelMismatch):
            other.memories.recall("first model")
        assert other.memories.recall("first model", mode="text").total == 1
        assert other.memories.reindex().indexed == 1
        assert other.memories.recall("first model").total == 1
    with pytest.raises(ModelMismatch):
        cortex.memories.recall("first model")


@pytest.mark.slow
def test_an_interrupted_change_of_model_is_repeated(cortex: Cortex, home: Path, project: Path, model) -> None:
    cortex.memories.capture_many([NewMemory(content=f"note {i}") for i in range(200)])
    with Cortex.open(home, project=project, backend=_Renamed(model)) as other:
        with pytest.raises(KeyboardInterrupt):
            other.memories.reindex(progress=_interrupt)
        for opened in (cortex, other):
            with pytest.raises(ModelMismatch, match="not finished"):
                opened.memories.recall("note")
        assert other.memories.reindex().indexed == 200
        assert other.memories.recall("note 7", mode="vector").results[0].memory.content == "note 7"


def test_reindexing_with_the_same_model_closes_nothing(cortex: Cortex) -> None:
    cortex.memories.capture("note")
    with pytest.raises(KeyboardInterrupt):
        cortex.memories.reindex(progress=_interrupt)
    assert cortex.memories.recall("note").total == 1


def _interrupt(done: int, total: int) -> None:
    raise KeyboardInterrupt


class _Renamed:
    """The same model under another fingerprint."""

    fingerprint = "another-model"

    def __init__(self, model) -> None:
        self._model = model

    def __getattr__(self, name: str):
        return getattr(self._model, name)
