"""The spool of raw turns: what is written, what is left out, and how it is read."""

import json
import os
import stat
from functools import partial
from html import escape
from pathlib import Path
from typing import Any

import pytest

from cortex_py.core.config import load_settings
from cortex_py.core.errors import StoreLocked
from cortex_py.core.security.home_key import HomeKey
from cortex_py.parts.hooks.frame import frame
from cortex_py.parts.hooks.keeper import TurnKeeper
from cortex_py.parts.hooks.sessions import GivenMemories
from cortex_py.parts.hooks.turns import (
    append_turn,
    forget_turns,
    has_plain_turns,
    read_turns,
    recode_turns,
    turns_folder,
)

from helpers import FakeClock, git

GIVEN = frame(["- We use PostgreSQL (decisions, 2026-01-01, id 15a7)"])
_escaped = partial(escape, quote=False)
SECRET = "ghp_" + "a1B2c3D4e5" * 3 + "f6G7h8"


def _event(id: str = "1", **more: Any) -> dict[str, Any]:
    return {"id": id, "client": "codex", "kind": "prompt", "session": "s", "text": "Use ruff here", **more}


def _keep(home: Path, *events: dict[str, Any], **settings: Any) -> None:
    home.mkdir(exist_ok=True)
    clock = FakeClock()
    keeper = TurnKeeper(load_settings(home, **settings), clock)
    for event in events:
        keeper.take(event)


def test_a_turn_comes_back_with_its_source(home: Path, project: Path) -> None:
    git(project, "init", "-q", "-b", "topic/one")
    _keep(home, _event(turn="7", cwd=str(project)))
    ((position, turn),) = read_turns(home)
    assert (turn.client, turn.session, turn.turn, turn.role, turn.text) == ("codex", "s", "7", "user", "Use ruff here")
    assert (turn.cwd, turn.git_branch, turn.at) == (str(project), "topic/one", "2026-01-02T12:34:56Z")
    assert list(read_turns(home, position)) == []


def test_only_the_owner_can_read_the_spool(home: Path) -> None:
    _keep(home, _event())
    (file,) = turns_folder(home).iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(turns_folder(home).stat().st_mode) == 0o700


@pytest.mark.parametrize("policy", ["redact", "block"])
def test_a_secret_is_never_written(home: Path, policy: str) -> None:
    _keep(
        home,
        _event(text=f"The token is {SECRET}"),
        _event("2", kind="tool", text=SECRET, command=SECRET),
        secrets=policy,
    )
    assert all(SECRET.encode() not in file.read_bytes() for file in turns_folder(home).iterdir())

    assert [turn.text.startswith("The token is [REDACTED:") for _, turn in read_turns(home)] == [True, False]


@pytest.mark.parametrize("field", ["id", "session", "turn", "source", "tool"])
def test_a_name_that_a_client_gives_is_short_plain_and_without_secrets(home: Path, field: str) -> None:
    _keep(home, _event(**{"text": "one", field: f"a {SECRET} name"}))
    _keep(home, _event(**{"id": "2", "text": "two", field: "a \x1b[2J\n\u202ename" + "e" * 5_000}))
    assert all(SECRET.encode() not in file.read_bytes() for file in turns_folder(home).iterdir())
    first, second = (getattr(turn, field) for _, turn in read_turns(home))
    assert first.startswith("a [REDACTED:")
    assert second.startswith("a [2Jnamee")
    assert len(second) == 200


def test_what_cortex_gave_is_not_kept(home: Path) -> None:
    events = [_event(text=GIVEN), _event("2", text=f"{GIVEN}\nNow use MySQL instead"), _event("3", text=GIVEN[:-5])]
    _keep(home, *events)
    assert [turn.text.strip() for _, turn in read_turns(home)] == ["Now use MySQL instead"]


@pytest.mark.parametrize(
    "prompt",
    [
        f"<hook_context>{_escaped(GIVEN)}</hook_context>\n\nWhich port?",
        f"{_escaped(GIVEN)}\nWhich port?",
        f"{_escaped(_escaped(GIVEN))}\nWhich port?",
        "<task-notification>\n<task-id>b35</task-id>\nWe decided on Kafka\n</task-notification>\nWhich port?",
        "<system-reminder>Use tabs</system-reminder>Which port?",
    ],
)
def test_what_a_client_adds_to_a_prompt_is_not_kept(home: Path, prompt: str) -> None:
    _keep(home, _event(text=prompt))
    assert [turn.text for _, turn in read_turns(home)] == ["Which port?"]


def test_an_answer_names_the_memories_its_session_was_given(home: Path) -> None:
    GivenMemories(home).add("codex:s", ("a", "b"))
    _keep(home, _event(kind="answer", text="As decided, PostgreSQL."))
    ((_, turn),) = read_turns(home)
    assert turn.role == "assistant"
    assert turn.given == ("a", "b")


def test_an_answer_that_the_client_does_not_send_is_read_from_the_transcript(home: Path, tmp_path: Path) -> None:
    transcript = tmp_path / "t.jsonl"
    lines = [
        {"type": "assistant", "message": {"content": [{"type": "text", "text": "Old."}]}},
        {"type": "user", "message": {"content": "Go on"}},
        {
            "type": "assistant",
            "message": {"content": [{"type": "thinking", "text": "…"}, {"type": "text", "text": "New."}]},
        },
        {"type": "progress"},
    ]
    transcript.write_text("\n".join(map(json.dumps, lines)), "utf-8")
    _keep(home, _event(kind="answer", text="", transcript=str(transcript)))
    assert [turn.text for _, turn in read_turns(home)] == ["New."]


def test_an_event_that_was_handed_over_twice_counts_once(home: Path) -> None:
    _keep(home, _event("1"), _event("1"), _event("2"))
    assert [turn.id for _, turn in read_turns(home)] == ["1", "2"]


def test_nothing_is_kept_if_the_settings_say_so(home: Path) -> None:
    _keep(home, _event(), hook_capture=False)
    assert list(read_turns(home)) == []


def test_a_line_that_is_damaged_or_unfinished_is_passed_over(home: Path) -> None:
    _keep(home, _event("1"), _event("2"))
    (file,) = turns_folder(home).iterdir()
    first, second = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(first + b"{broken\n[1]\n" + second + b'{"id": "3"')
    found = list(read_turns(home))
    assert [turn.id for _, turn in found] == ["1", "2"]
    with file.open("ab") as more:
        more.write(b', "client": "codex", "role": "user", "at": "2026-01-02T00:00:00Z"}\n')
    assert [turn.id for _, turn in read_turns(home, found[-1][0])] == ["3"]


def test_days_that_were_read_are_removed(home: Path) -> None:
    clock = FakeClock()
    home.mkdir()
    keeper = TurnKeeper(load_settings(home), clock)
    keeper.take(_event("1"))
    clock.advance(days=1)
    keeper.take(_event("2"))
    positions = [position for position, _ in read_turns(home)]
    assert forget_turns(home, positions[0]) == 0
    assert forget_turns(home, positions[1]) == 1
    assert [turn.id for _, turn in read_turns(home, positions[0])] == ["2"]


def test_in_an_encrypted_home_the_lines_are_sealed(home: Path) -> None:
    key = HomeKey.of(os.urandom(32))
    _keep(home, _event(text="Something to keep private"))
    assert has_plain_turns(home)
    recode_turns(home, None, key)
    assert not has_plain_turns(home)
    assert all(b"private" not in file.read_bytes() for file in turns_folder(home).iterdir())
    assert [turn.text for _, turn in read_turns(home, key=key)] == ["Something to keep private"]
    with pytest.raises(StoreLocked):
        list(read_turns(home))
    recode_turns(home, key, None)
    ((_, turn),) = read_turns(home)
    append_turn(home, turn, key)
    assert [one.id for _, one in read_turns(home, key=key)] == ["1"]
