"""API tokens of a home: who they speak for, until when, and that the file does not give them away."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from cortex_py import Cortex
from cortex_py.core.errors import AccessDenied, InvalidInput, NotFound
from cortex_py.core.security.callers import acting_as
from cortex_py.core.store import migrations
from cortex_py.session import ProjectSessions

from helpers import FakeClock
from homes import opened
from members import member
from old_schemas import use_schema


@pytest.fixture
def cortex(home: Path, project: Path, clock: FakeClock) -> Iterator[Cortex]:
    with opened(home, project, clock) as made:
        yield made


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
    with opened(home, project, clock) as second:
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
        private = cortex.memories.capture("Ledger colours I like", domain="user", user_id="bob", agent_id="other")
        cortex.prompts.save("standup", "What did {{name}} do?", domain="user")
    assert (private.user_id, private.agent_id) == ("ann", "editor")
    assert (shared.user_id, shared.agent_id) == ("ann", "editor")
    assert private.domain == "user"
    for caller, expected in ((ann, {shared.id, private.id}), (bob, {shared.id}), (None, {shared.id})):
        with acting_as(caller):
            assert {hit.memory.id for hit in cortex.memories.recall("ledger").results} == expected
            assert (private.id in cortex.memories.ids(private.id[:8])) == (caller is ann)

    with acting_as(bob):
        for refused in (
            lambda: cortex.memories.get(private.id),
            lambda: cortex.memories.history(private.id),
            lambda: cortex.memories.delete(private.id),
            lambda: cortex.memories.update(private.id, content="Mine now"),
            lambda: cortex.prompts.get("standup"),
        ):
            with pytest.raises(NotFound):
                refused()
    with acting_as(ann):
        assert cortex.memories.get(private.id).content == "Ledger colours I like"
        assert cortex.prompts.get("standup").content.startswith("What")


@pytest.mark.sqlite_only
def test_a_home_from_before_tokens_gains_them(home: Path, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = next(n for n, step in enumerate(migrations.MIGRATIONS) if "CREATE TABLE api_token" in step[0])
    with monkeypatch.context() as old:
        use_schema(old, before)
        old.setattr(ProjectSessions, "settle_files", lambda _sessions: None)
        with opened(home, project) as cortex:
            note = cortex.memories.capture("The ledger rounding is half to even")
    with opened(home, project) as cortex:
        assert cortex.memories.get(note.id).content == note.content
        assert cortex.access.verify(cortex.access.create("ann").token).user == "ann"
        assert cortex.audit.record(None, "tool:x", "ok") == 1
