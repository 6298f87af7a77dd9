"""API tokens of a home: who they speak for, until when, and that the file does not give them away."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from cortex_py import Cortex
from cortex_py.context.session import ProjectSessions
from cortex_py.errors import AccessDenied, InvalidInput, NotFound
from cortex_py.security.callers import acting_as
from cortex_py.store import migrations

from helpers import FakeClock
from members import member
from old_schemas import use_schema
from stub_backend import StubBackend


@pytest.fixture
def cortex(home: Path, project: Path, clock: FakeClock) -> Iterator[Cortex]:
    with Cortex.open(home, project=project, clock=clock, backend=StubBackend()) as opened:
        yield opened


def test_a_token_speaks_for_its_subject(cortex: Cortex) -> None:
    made = cortex.access.create("ann", agent="bot", scopes=["read", "tool:subcog_capture"])
    caller = cortex.access.verify(made.token)
    assert (caller.user, caller.agent, caller.via) == ("ann", "bot", f"token:{made.record.id}")
    assert caller.scopes == {"read", "tool:subcog_capture"}
    assert cortex.access.list() == (made.record,)
    assert made.token not in repr(made)


@pytest.mark.sqlite_only
def test_the_file_does_not_give_tokens_away(cortex: Cortex, home: Path) -> None:
    tokens = [cortex.access.create(f"user{number}").token for number in range(5)]
    cortex.access.verify(tokens[0])
    with pytest.raises(AccessDenied):
        cortex.access.verify("ctx_" + "A" * 43)
    content = b"".join(path.read_bytes() for path in sorted(home.iterdir()) if path.is_file())
    assert b"user4" in content
    for token in tokens:
        assert token.encode() not in content
        assert token.removeprefix("ctx_").encode() not in content


def test_a_token_ends_with_its_days(cortex: Cortex, clock: FakeClock) -> None:
    made = cortex.access.create("ann", days=2)
    clock.advance(hours=47, minutes=59)
    assert cortex.access.verify(made.token).user == "ann"
    clock.advance(minutes=1)
    with pytest.raises(AccessDenied, match="expired"):
        cortex.access.verify(made.token)


def test_a_revoked_token_is_refused_by_the_next_call_of_any_process(
    cortex: Cortex, home: Path, project: Path, clock: FakeClock
) -> None:
    made, other = cortex.access.create("ann"), cortex.access.create("ann")
    assert cortex.access.verify(made.token).user == "ann"
    with Cortex.open(home, project=project, clock=clock, backend=StubBackend()) as second:
        revoked = second.access.revoke(made.record.id)
    with pytest.raises(AccessDenied, match="revoked"):
        cortex.access.verify(made.token)
    assert cortex.access.verify(other.token).user == "ann"
    clock.advance(hours=1)
    assert cortex.access.revoke(made.record.id) == revoked
    with pytest.raises(NotFound):
        cortex.access.revoke("nothing")


def test_the_last_use_is_written_later_and_rarely(cortex: Cortex, clock: FakeClock) -> None:
    made = cortex.access.create("ann")
    used = clock.moment
    cortex.access.verify(made.token)
    assert cortex.access.list()[0].last_used_at is None
    cortex.upkeep()
    assert cortex.access.list()[0].last_used_at == used
    clock.advance(minutes=1)
    cortex.access.verify(made.token)
    cortex.upkeep()
    assert cortex.access.list()[0].last_used_at == used
    clock.advance(minutes=5)
    cortex.access.verify(made.token)
    cortex.upkeep()
    assert cortex.access.list()[0].last_used_at == used + timedelta(minutes=6)


@pytest.mark.parametrize("given", [{"user": ""}, {"scopes": []}, {"scopes": ["all"]}, {"days": 0}, {"agent": "a\nb"}])
def test_what_makes_no_token(cortex: Cortex, given: dict[str, object]) -> None:
    with pytest.raises(InvalidInput):
        cortex.access.create(**{"user": "ann", **given})  # type: ignore[arg-type]
    assert cortex.access.list() == ()


def test_what_is_written_belongs_to_the_caller_and_is_theirs_alone_where_it_is_private(cortex: Cortex) -> None:
    ann, bob = member(cortex, "ann", agent="editor"), member(cortex, "bob", "read")
    with acting_as(ann):
        shared = cortex.memories.capture("The ledger rounds half to even")
        private = cortex.memories.capture("Ledger colours I like", domain="user")
    assert (shared.user_id, shared.agent_id) == ("ann", "editor")
    assert (private.user_id, private.domain) == ("ann", "user")
    for caller, expected in ((ann, {shared.id, private.id}), (bob, {shared.id}), (None, {shared.id})):
        with acting_as(caller):
            assert {hit.memory.id for hit in cortex.memories.recall("ledger").results} == expected
            assert (private.id in cortex.memories.ids(private.id[:8])) == (caller is ann)


@pytest.mark.parametrize("asked", ["get", "history", "delete", "update"])
def test_private_memories_of_others_cannot_be_reached_by_their_id(cortex: Cortex, asked: str) -> None:
    with acting_as(member(cortex, "ann")):
        private = cortex.memories.capture("Ledger colours I like", domain="user")
    with acting_as(member(cortex, "bob")), pytest.raises(NotFound):
        if asked == "update":
            cortex.memories.update(private.id, content="Mine now")
        else:
            getattr(cortex.memories, asked)(private.id)
    with acting_as(member(cortex, "ann")):
        assert cortex.memories.get(private.id).content == "Ledger colours I like"


@pytest.mark.sqlite_only
def test_a_home_from_before_tokens_gains_them(home: Path, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = next(n for n, step in enumerate(migrations.MIGRATIONS) if "CREATE TABLE api_token" in step[0])
    with monkeypatch.context() as old:
        use_schema(old, before)
        old.setattr(ProjectSessions, "settle_files", lambda _sessions: None)
        with Cortex.open(home, project=project, backend=StubBackend()) as cortex:
            note = cortex.memories.capture("The ledger rounding is half to even")
    with Cortex.open(home, project=project, backend=StubBackend()) as cortex:
        assert cortex.memories.get(note.id).content == note.content
        assert cortex.access.verify(cortex.access.create("ann").token).user == "ann"
        assert cortex.audit.record(None, "tool:x", "ok") == 1


def test_saved_prompts_of_the_own_shelf_are_not_shown_to_others(cortex: Cortex) -> None:
    with acting_as(member(cortex, "ann")):
        cortex.prompts.save("standup", "What did {{name}} do?", domain="user")
        assert cortex.prompts.get("standup").content.startswith("What")
    with acting_as(member(cortex, "bob")), pytest.raises(NotFound):
        cortex.prompts.get("standup")
