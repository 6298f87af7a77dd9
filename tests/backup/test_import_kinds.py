"""What other programs keep comes in by its content: the expected records, once, with their source, time and place."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from import_kinds import KINDS, SAMPLES, Kind, claude_line, lines, made, text

from cortex_py import Cortex
from cortex_py.core.errors import InvalidInput
from cortex_py.core.records import Memory

from helpers import FakeClock, git
from homes import opened

EACH_KIND = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)


@pytest.fixture
def cortex(home: Path, project: Path, clock: FakeClock) -> Iterator[Cortex]:
    with opened(home, project, clock) as opened_home:
        yield opened_home


def records(cortex: Cortex, kind: str = "note") -> list[Memory]:
    hits = cortex.memories.recall(filter=f"kind:{kind}", limit=1_000).results
    return [hit.memory for hit in hits]


def contents(cortex: Cortex, kind: Kind) -> list[str]:
    return sorted(one.content for one in records(cortex, "turn" if kind.is_turn else "note"))


@EACH_KIND
def test_each_kind_is_recognised_and_gives_its_records_once(cortex: Cortex, tmp_path: Path, kind: Kind) -> None:
    source = kind.make(tmp_path / "source")
    tried = cortex.backups.import_from([source], dry_run=True)
    assert contents(cortex, kind) == []
    taken = cortex.backups.import_from([source])
    name = "turn" if kind.is_turn else "memory"
    assert (taken.left_out, taken.added[name]) == ([], len(kind.contents))
    assert tried.added[name] == len(kind.contents)
    assert contents(cortex, kind) == sorted(kind.contents)
    # Once as an unchanged source, and once read again.
    for changed in (False, True):
        if changed:
            touch(source)
        again = cortex.backups.import_from([source])
        assert (again.added, again.replaced, again.gone, again.left_out) == ({}, {}, [], [])
        assert again.unchanged == len(kind.contents)
        assert contents(cortex, kind) == sorted(kind.contents)


def touch(source: Path) -> None:
    for path in source.rglob("*") if source.is_dir() else (source,):
        os.utime(path, ns=(10**18, 10**18))


def test_a_turn_keeps_who_said_it_when_and_where(cortex: Cortex, tmp_path: Path) -> None:
    source = made("claude-code", tmp_path)
    cortex.backups.import_from([source])
    said = {one.role: one for one in records(cortex, "turn")}
    turn = said["user"]
    assert (turn.agent_id, turn.git_branch, turn.tags) == ("claude-code", "main", ("session:s-1",))
    assert turn.created_at == datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)
    assert (turn.source, turn.first_line) == (str(source / "-gone-shop" / "s-1.jsonl"), 2)
    assert said["assistant"].content == "I switched the scripts to pnpm."


def test_a_conversation_belongs_to_the_project_of_its_folder(
    cortex: Cortex, home: Path, tmp_path: Path, clock: FakeClock
) -> None:
    shop = tmp_path / "shop"
    shop.mkdir()
    path = lines(tmp_path / "s.jsonl", claude_line("user", "u1", "Ship it on Friday", cwd=str(shop)))
    taken = cortex.backups.import_from([path])
    assert [(one.kind, one.project, one.added) for one in taken.sources] == [("claude-code", "shop", 1)]
    assert records(cortex, "turn") == []
    with opened(home, shop, clock) as other:
        assert [one.content for one in records(other, "turn")] == ["Ship it on Friday"]
    assert cortex.backups.import_from([path], folder=tmp_path / "elsewhere").added == {}


def test_a_session_of_an_unknown_folder_is_listed_and_left_out(cortex: Cortex, tmp_path: Path) -> None:
    lost = tmp_path / "lost"
    path = lines(
        tmp_path / "s.jsonl",
        claude_line("user", "u1", "Ship it on Friday", cwd=str(lost)),
        claude_line("assistant", "u2", "It is shipped", cwd=str(lost)),
        claude_line("user", "u3", "Order milk", sessionId="s-2", cwd=str(Path.home())),
    )
    taken = cortex.backups.import_from([path])
    assert (taken.added, records(cortex, "turn")) == ({}, [])
    said = "this folder belongs to no project here"
    assert sorted(taken.left_out) == sorted(
        [f"{lost}: {said} (sessions: 1, turns: 2)", f"{Path.home()}: {said} (sessions: 1, turns: 1)"]
    )
    # Whoever names the folder means it.
    assert cortex.backups.import_from([path], folder=lost).added == {"turn": 2}
    lost.mkdir()
    again = cortex.backups.import_from([path])
    assert [(one.project, one.added) for one in again.sources] == [("lost", 2)]


def test_a_resumed_session_begins_with_many_summaries(cortex: Cortex, tmp_path: Path) -> None:
    summaries = [{"type": "summary", "summary": f"Part {n}", "leafUuid": f"l{n}"} for n in range(40)]
    path = lines(tmp_path / "s.jsonl", *summaries, claude_line("user", "u1", "We moved to pnpm"))
    taken = cortex.backups.import_from([path])
    assert (taken.added, taken.left_out, taken.notes) == ({"turn": 1}, [], [])


def test_objects_on_one_line_are_all_taken(cortex: Cortex, tmp_path: Path) -> None:
    result = [{"type": "tool_result", "tool_use_id": "t1", "content": "a"}]
    values = [claude_line("user", "u1", "First"), claude_line("user", "u2", result), claude_line("user", "u3", "Last")]
    path = text(tmp_path / "s.jsonl", "".join(json.dumps(one, separators=(",", ":")) for one in values) + "\n")
    taken = cortex.backups.import_from([path])
    assert (taken.added, taken.left_out) == ({"turn": 2}, [])
    text(path, path.read_text().replace("}{", '}{"a"', 1))
    taken = cortex.backups.import_from([path])
    assert (taken.added, len(taken.left_out)) == ({}, 1)


def test_only_what_was_said_in_the_conversation_becomes_a_turn(cortex: Cortex, tmp_path: Path) -> None:
    notice = "<task-notification>\n<task-id>b35</task-id>\n<result>All done</result>\n</task-notification>"
    teammate = '<teammate-message teammate_id="a">Always use two pairs of eyes</teammate-message>'
    resume = "Operation stopped by hook: Another session is active.\n\nTo resume it, run: claude -r ab8c5aa0"
    path = lines(
        tmp_path / "s.jsonl",
        claude_line("user", "u1", notice),
        claude_line("user", "u2", teammate),
        claude_line("user", "u3", resume),
        claude_line("user", "u4", "<command-message>review</command-message>\n<command-name>/review</command-name>"),
        claude_line("user", "u5", "Look at every file and report", isSidechain=True),
        claude_line("assistant", "u6", "API Error: 529", isApiErrorMessage=True),
        claude_line("user", "u7", "[Request interrupted by user]"),
        claude_line("user", "u8", f"Use tabs.\n{notice}"),
    )
    cortex.backups.import_from([path])
    assert [one.content for one in records(cortex, "turn")] == ["Use tabs."]


def test_messages_of_codex_are_read_as_items_and_as_events_once(cortex: Cortex, tmp_path: Path) -> None:
    def event(**payload: Any) -> dict[str, Any]:
        return {"timestamp": "2026-11-19T20:38:36.909Z", "type": "event_msg", "payload": payload}

    def item(sort: str, block: str, said: str) -> dict[str, Any]:
        return event(type="item_completed", item={"type": sort, "id": said, "content": [{"type": block, "text": said}]})

    path = lines(
        tmp_path / "rollout.jsonl",
        {"timestamp": "2026-11-19T20:38:36.791Z", "type": "session_meta", "payload": {"id": "c-2", "source": "exec"}},
        item("UserMessage", "text", "Keep port 7001."),
        event(type="user_message", message="Keep port 7001."),
        event(type="item_completed", item={"type": "CommandExecution", "id": "call", "aggregated_output": "hello"}),
        item("AgentMessage", "Text", "7000 is taken by AirPlay."),
        item("UserMessage", "text", "yes"),
        item("UserMessage", "text", "yes"),
    )
    cortex.backups.import_from([path])
    found = sorted((one.role, one.content) for one in records(cortex, "turn"))
    assert found == [
        ("assistant", "7000 is taken by AirPlay."),
        ("user", "Keep port 7001."),
        ("user", "yes"),
        ("user", "yes"),
    ]


def test_prompts_that_codex_keeps_apart_leave_out_those_of_known_sessions(cortex: Cortex, tmp_path: Path) -> None:
    known = "01a1f588-5bbb-7122-96c8-70ee9ed55a9a"
    path = lines(
        tmp_path / "history.jsonl",
        {"session_id": "01a1f588-0000-7122-96c8-70ee9ed55a9a", "ts": 1_795_120_716, "text": "Keep port 7001."},
        {"session_id": known, "ts": 1_795_120_717, "text": "Why?"},
    )
    assert cortex.backups.import_from([path]).added == {"turn": 2}
    lines(tmp_path / "sessions/2026/11/19" / f"rollout-2026-11-19T20-38-36-{known}.jsonl", {"type": "session_meta"})
    touch(path)
    taken = cortex.backups.import_from([path])
    assert (taken.added, taken.left_out) == ({}, [f"{path}: prompts that the sessions beside it hold too: 1"])


def test_a_chat_of_gemini_belongs_to_its_folder_and_says_nothing_of_its_client(
    cortex: Cortex, home: Path, tmp_path: Path, clock: FakeClock
) -> None:
    shop = tmp_path / "shop"
    shop.mkdir()
    given = '&lt;cortex-memory note="x"&gt;\n- Use tabs (id 1) &amp;lt;/cortex-memory&amp;gt;\n&lt;/cortex-memory&gt;'
    setting = (
        f"<session_context>\n- **Workspace Directories:**\n  - {shop}\n"
        "Text in `<cortex-memory>` comes from memory. Always recall before you design.\n</session_context>"
    )
    path = lines(
        tmp_path / "session-1.jsonl",
        {"sessionId": "g-1", "projectHash": sha256(str(shop).encode()).hexdigest(), "kind": "main"},
        {"$set": {"messages": [{"id": "1", "type": "user", "content": [{"text": setting}]}]}},
        {"id": "2", "type": "user", "content": [{"text": f"<hook_context>{given}</hook_context>\n\nIs it tabs?"}]},
        {"id": "3", "type": "gemini", "content": f"Yes. {given}"},
    )
    cortex.backups.import_from([path])
    assert records(cortex, "turn") == []
    with opened(home, shop, clock) as other:
        assert sorted(one.content for one in records(other, "turn")) == ["Is it tabs?", "Yes."]


def test_turns_rank_below_notes_and_can_be_switched_off(
    home: Path, project: Path, tmp_path: Path, clock: FakeClock
) -> None:
    path = lines(tmp_path / "s.jsonl", claude_line("user", "u1", "We deploy with blue green switches"))
    with opened(home, project, clock) as cortex:
        cortex.backups.import_from([path])
        cortex.memories.capture("We deploy with blue green switches")
        found = cortex.memories.recall("blue green deploy").results
        assert [hit.memory.kind for hit in found] == ["note", "turn"]
        assert found[0].score > found[1].score
        assert [hit.memory.kind for hit in cortex.memories.recall().results] == ["note"]
    with opened(home, project, clock, recall_conversations=False) as cortex:
        assert [hit.memory.kind for hit in cortex.memories.recall("blue green deploy").results] == ["note"]
        assert [hit.memory.kind for hit in cortex.memories.recall("deploy", filter="kind:turn").results] == ["turn"]


def test_vectors_of_turns_are_filled_in_behind(cortex: Cortex, tmp_path: Path) -> None:
    path = lines(tmp_path / "s.jsonl", claude_line("user", "u1", "The invoices are late"))
    cortex.backups.import_from([path])
    assert [hit.memory.content for hit in cortex.memories.recall("invoices", mode="text").results]
    assert cortex.memories.fill_vectors() == 1
    assert cortex.memories.fill_vectors() == 0


def test_a_drawer_keeps_its_room_time_and_file(cortex: Cortex, tmp_path: Path) -> None:
    (kind,) = [one for one in KINDS if one.name == "mempalace-exact"]
    cortex.backups.import_from([kind.make(tmp_path)])
    drawer, runbook = sorted(records(cortex), key=lambda one: len(one.content))
    assert (drawer.tags, drawer.path) == (("shop", "decisions"), "notes.md")
    assert drawer.created_at == datetime(2026, 11, 17, 12, 53, 47, 715616, tzinfo=UTC)
    place = f"{tmp_path / '0-palace.sqlite3'}#drawer_shop_runbooks_a92b0d82e1d784530c801080"
    assert (runbook.tags, runbook.path) == (("shop", "runbooks"), place)
    # A drawer that was thrown away leaves nothing.
    assert cortex.memories.recall("thrown away", mode="text").results == ()


def test_a_store_whose_program_runs_is_read_with_its_log(cortex: Cortex, tmp_path: Path) -> None:
    path = tmp_path / "palace.sqlite3"
    with closing(sqlite3.connect(path)) as running:
        running.execute("PRAGMA journal_mode = WAL")
        running.executescript((SAMPLES / "mempalace-exact.sql").read_text("utf-8"))
        assert path.stat().st_size < 10_000
        assert cortex.backups.import_from([path]).added == {"memory": 2}
        running.execute("UPDATE documents SET document = 'We deploy on Fridays' WHERE document LIKE 'We deploy%'")
        running.commit()
        assert path.stat().st_size < 10_000
        assert cortex.backups.import_from([path]).replaced == {"memory": 1}


def test_the_report_of_an_import_is_kept(cortex: Cortex, tmp_path: Path, clock: FakeClock) -> None:
    assert cortex.backups.last_import() is None
    path = lines(tmp_path / "s.jsonl", claude_line("user", "u1", "One"))
    path.write_text(path.read_text() + "{damaged\n")
    taken = cortex.backups.import_from([path])
    assert cortex.backups.last_import() == (clock.now(), taken)
    assert taken.left_out[0].startswith(f"{path}, line 2: it is not valid JSON")
    cortex.backups.import_from([made("instructions", tmp_path)], dry_run=True)
    assert cortex.backups.last_import() == (clock.now(), taken)


def test_an_unchanged_source_counts_for_its_own_project(cortex: Cortex, tmp_path: Path) -> None:
    (tmp_path / "shop").mkdir()
    path = lines(
        tmp_path / "s.jsonl", *(claude_line("user", f"u{n}", f"{n}", cwd=str(tmp_path / "shop")) for n in "12")
    )
    few = cortex.backups.import_from([path], limit=1)
    assert [(one.project, one.added, one.known) for one in few.sources] == [("shop", 1, 0)]
    cortex.backups.import_from([path])
    again = cortex.backups.import_from([path])
    assert [(one.project, one.added, one.known) for one in again.sources] == [("shop", 0, 2)]


def test_a_grown_transcript_adds_what_is_new(cortex: Cortex, tmp_path: Path) -> None:
    first, second = claude_line("user", "u1", "One"), claude_line("user", "u2", "Two")
    path = lines(tmp_path / "s.jsonl", first)
    cortex.backups.import_from([path])
    lines(path, first, second)
    taken = cortex.backups.import_from([path])
    assert (taken.added, taken.unchanged) == ({"turn": 1}, 1)
    # The same session copied elsewhere, as clients do when one is resumed.
    copy = lines(tmp_path / "copy.jsonl", {**first, "sessionId": "s-2"}, {**second, "sessionId": "s-2"})
    assert cortex.backups.import_from([copy]).added == {}


def test_a_changed_statement_is_the_next_version_and_a_removed_one_is_reported(cortex: Cortex, tmp_path: Path) -> None:
    path = made("instructions", tmp_path)
    cortex.backups.import_from([path])
    before = {one.content: one for one in records(cortex)}
    changed = path.read_text().replace("Use pnpm, never npm.", "Use pnpm or bun, never npm.")
    changed = changed.replace("\n## Style\n\nFunctions are verbs.\n", "\n## Tests\n\nEach bug gets a test.\n")
    text(path, changed)
    taken = cortex.backups.import_from([path])
    assert (taken.replaced, taken.added) == ({"memory": 1}, {"memory": 1})
    assert taken.gone == [f"{path}: Style: Functions are verbs."]
    now = {one.content: one for one in records(cortex)}
    memory = now["Build: Use pnpm or bun, never npm."]
    assert memory.id == before["Build: Use pnpm, never npm."].id
    versions = [one.content for one in cortex.memories.history(memory.id)]
    assert versions == ["Build: Use pnpm, never npm.", "Build: Use pnpm or bun, never npm."]
    assert "Style: Functions are verbs." in now
    assert (memory.namespace, memory.tags) == ("patterns", ("instructions",))
    assert memory.source == f"{path}#Shop > Build"


def test_what_was_edited_or_deleted_here_stays_so(cortex: Cortex, tmp_path: Path) -> None:
    path, notes = made("instructions", tmp_path), text(tmp_path / "note.md", "The old words.\n")
    cortex.backups.import_from([path, notes])
    found = {one.content: one.id for one in records(cortex)}
    cortex.memories.update(found["Build: Use pnpm, never npm."], content="Use pnpm for everything")
    cortex.memories.update(found["The old words.\n"], content="My own words.")
    cortex.memories.delete(found["Style: Functions are verbs."])
    touch(path)
    touch(notes)
    again = cortex.backups.import_from([path, notes])
    assert (again.added, again.replaced) == ({}, {})
    texts = {one.content for one in records(cortex)}
    assert {"Use pnpm for everything", "My own words."} <= texts
    assert "Style: Functions are verbs." not in texts
    text(notes, "The new words of the source.\n")
    assert cortex.backups.import_from([notes]).replaced == {"memory": 1}


def test_a_source_that_is_gone_is_reported(cortex: Cortex, tmp_path: Path) -> None:
    folder = tmp_path / "notes"
    path = text(folder / "a.md", "A note.")
    text(folder / "b.md", "Another note.")
    cortex.backups.import_from([folder])
    path.unlink()
    taken = cortex.backups.import_from([folder])
    assert taken.gone == [str(path)]
    assert {one.content for one in records(cortex)} == {"A note.", "Another note."}


def test_the_graph_of_the_memory_server_comes_in(cortex: Cortex, tmp_path: Path) -> None:
    path = made("server-memory", tmp_path)
    for _ in range(2):
        cortex.backups.import_from([path])
        touch(path)
        person = cortex.graph.get("Ada Park")
        assert person.entity.type == "Person"
        service = cortex.graph.get("BillingService").entity
        assert (service.type, dict(service.properties)) == ("Technology", {"type": "service"})
        facts = [one for one in cortex.graph.relationships(limit=100)[0] if one.method == "given"]
        stated = {(one.type, one.properties.get("type")) for one in facts}
        assert (len(facts), stated) == (2, {("RelatesTo", "maintains"), ("Uses", None)})


def test_links_and_relations_of_a_vault_go_into_the_graph(cortex: Cortex, tmp_path: Path) -> None:
    cortex.backups.import_from([made("vault", tmp_path)])
    facts = [one for one in cortex.graph.relationships(entity="Search API")[0] if one.method == "given"]
    assert [(one.type, one.properties) for one in facts] == [("RelatesTo", {"type": "depends_on"})]
    observation = next(one for one in records(cortex) if one.content.endswith("(agreed in May)"))
    assert observation.tags == ("decision", "design")


def test_a_chosen_kind_takes_no_picture_of_a_folder_for_a_note(cortex: Cortex, tmp_path: Path) -> None:
    folder = tmp_path / "docs"
    text(folder / "a.md", "We deploy on Fridays.")
    text(folder / "b.txt", "The staging host is slow.")
    picture = text(folder / "c.svg", "<svg><text>Deploy</text></svg>")
    taken = cortex.backups.import_from([folder], kind="markdown")
    assert taken.left_out == [f"{picture}: it is of no kind that can be imported"]
    assert sorted(one.content for one in records(cortex)) == ["The staging host is slow.", "We deploy on Fridays."]
    # A file that is named is what the caller says.
    assert cortex.backups.import_from([picture], kind="markdown").added == {"memory": 1}


def test_tasks_and_code_of_a_note_are_no_observations_and_links(cortex: Cortex, tmp_path: Path) -> None:
    note = (
        "See [[Fly]].\n\n````md\n```toml\n[[services]]\n```\n[[ports]]\n````\n\n"
        "- [\u26a1] Write the tests\n- [-] Ship it\n- [decision] One region is enough\n"
    )
    taken = cortex.backups.import_from([text(tmp_path / "plan.md", note)])
    assert taken.added == {"memory": 2, "relationship": 1}
    assert "plan: One region is enough" in [one.content for one in records(cortex)]


def test_records_can_be_chosen(cortex: Cortex, tmp_path: Path) -> None:
    old = claude_line("user", "u1", "Long ago", timestamp="2024-01-01T00:00:00Z")
    new = [claude_line("user", f"n{n}", f"Lately {n}", timestamp="2026-01-01T00:00:00Z") for n in range(5)]
    path = lines(tmp_path / "s.jsonl", old, *new)
    since = datetime(2025, 1, 1, tzinfo=UTC)
    assert cortex.backups.import_from([path], since=since, dry_run=True).added == {"turn": 5}
    assert cortex.backups.import_from([path], since=since).added == {"turn": 5}
    # What was left out then is not taken for known now.
    assert cortex.backups.import_from([path]).added == {"turn": 1}


def test_no_more_records_are_taken_than_the_limit(cortex: Cortex, tmp_path: Path) -> None:
    path = lines(tmp_path / "facts.jsonl", *({"content": f"Fact {n}"} for n in range(600)))
    taken = cortex.backups.import_from([path], limit=100)
    assert taken.added == {"memory": 100}
    assert cortex.backups.import_from([path], limit=100).added == {"memory": 100}


def test_fields_of_other_names_are_mapped(cortex: Cortex, tmp_path: Path) -> None:
    path = lines(tmp_path / "a.jsonl", {"text": "Mapped", "labels": ["x"], "when": "2025-01-02"})
    fields = {"content": "text", "tags": "labels", "created_at": "when"}
    assert cortex.backups.import_from([path], fields=fields).added == {"memory": 1}
    table = text(tmp_path / "b.csv", "note;when\nFrom a table;2025-01-02\n")
    assert cortex.backups.import_from([table], fields={"content": "note", "created_at": "when"}).added == {"memory": 1}
    found = {one.content: one for one in records(cortex)}
    assert found["Mapped"].tags == ("x",)
    assert found["From a table"].created_at == datetime(2025, 1, 2, tzinfo=UTC)


def test_a_kind_can_be_named(cortex: Cortex, tmp_path: Path) -> None:
    path = text(tmp_path / "rules", "- Always rebase.\n- Never force-push.\n")
    assert cortex.backups.import_from([path]).left_out[0].endswith("--from names one")
    assert cortex.backups.import_from([path], kind="instructions").added == {"memory": 2}
    with pytest.raises(InvalidInput, match="no kind 'nothing'"):
        cortex.backups.import_from([path], kind="nothing")


def test_damage_is_named_and_the_rest_is_taken(cortex: Cortex, tmp_path: Path) -> None:
    good = json.dumps(claude_line("user", "u1", "First"), separators=(",", ":"))
    last = json.dumps(claude_line("user", "u2", "Last"), separators=(",", ":"))
    nameless = json.dumps({**claude_line("user", "u3", "x"), "uuid": None}, separators=(",", ":"))
    cut = json.dumps(claude_line("user", "u4", [{"type": "tool_result", "content": "x"}]), separators=(",", ":"))[:-9]
    path = tmp_path / "s.jsonl"
    path.write_bytes("\n".join([good, cut, "[1]", nameless]).encode() + b"\n\xff{}\n" + last.encode())
    taken = cortex.backups.import_from([path])
    assert taken.added == {"turn": 2}
    assert [one.removeprefix(f"{path}, ").split(" (")[0] for one in taken.left_out] == [
        "line 2: it is not valid JSON",
        "line 4: it has no message or no uuid",
        "line 5: it is not UTF-8",
    ]
    table = made("csv", tmp_path)
    table.write_text(table.read_text() + "a,b,c,d\nLast row,,\n")
    taken = cortex.backups.import_from([table])
    assert taken.left_out == [f"{table}, line 4: it has another number of columns than the first row"]
    assert taken.added == {"memory": 3}


def test_an_export_for_the_memory_server_comes_back(cortex: Cortex, tmp_path: Path, clock: FakeClock) -> None:
    cortex.memories.capture("Ada Park maintains the queue")
    cortex.memories.capture("everything is quiet here")
    gone = cortex.memories.capture("to be deleted")
    cortex.memories.delete(gone.id)
    cortex.graph.create("Ada Park", "Person")
    cortex.graph.create("RabbitMQ", "Technology", properties={"type": "broker"})
    cortex.graph.relate("Ada Park", "RabbitMQ", "RelatesTo", properties={"type": "looks after"})
    cortex.memories.annotate()
    path = tmp_path / "memory.jsonl"
    done = cortex.backups.export_to(path, format="server-memory", domains=("project",))
    assert done.documents["memory"] == 2
    (tmp_path / "other").mkdir()
    with opened(tmp_path / "second", tmp_path / "other", clock) as other:
        other.backups.import_from([path])
        assert {one.content for one in records(other)} == {"Ada Park maintains the queue", "everything is quiet here"}
        facts = [one for one in other.graph.relationships(entity="RabbitMQ")[0] if one.method == "given"]
        assert [(one.type, one.properties) for one in facts] == [("RelatesTo", {"type": "looks after"})]
        assert other.graph.get("Ada Park").entity.type == "Person"
        assert other.backups.import_from([path]).added == {}


@pytest.mark.parametrize("form", ["jsonl", "markdown", "mem0", "vault"])
def test_each_neutral_form_gives_the_same_memories_to_an_empty_home(
    cortex: Cortex, tmp_path: Path, clock: FakeClock, form: str
) -> None:
    at = datetime(2025, 3, 4, 5, 6, 7, 8, tzinfo=UTC)
    cortex.memories.capture("We decided on Kafka", namespace="decisions", tags=["events", "team a"], created_at=at)
    cortex.memories.capture("naïve 数据库 with ‘quotes’,\nlines and [[links]]", summary="Odd: text", category=None)
    cortex.memories.delete(cortex.memories.capture("to be deleted").id)
    path = tmp_path / "out"
    if form == "vault":
        cortex.bridges.add("vault", path)
        cortex.bridges.sync()
    else:
        cortex.backups.export_to(path, format=form, domains=("project",))

    def facts(home: Cortex) -> set[tuple[object, ...]]:
        return {
            (one.content.rstrip("\n"), one.namespace, one.tags, one.summary, one.created_at) for one in records(home)
        }

    (tmp_path / "other").mkdir()
    with opened(tmp_path / "second", tmp_path / "other", clock) as other:
        done = other.backups.import_from([path])
        assert facts(other) == facts(cortex)
        assert done.conflicts == []
        again = other.backups.import_from([path])
        assert (again.added, again.replaced, again.conflicts) == ({}, {}, [])


def test_decisions_in_the_history_of_a_repository_come_in_once(cortex: Cortex, project: Path, tmp_path: Path) -> None:
    repository = tmp_path / "shop"
    repository.mkdir()
    git(repository, "init", "-q", "-b", "main")
    for message in (
        "Fix a typo",
        "Switch to pnpm\n\nnpm installs took minutes.\n\nSigned-off-by: A <a@example.org>",
        "feat!: sessions expire after an hour",
        "Add a flag",
    ):
        git(repository, "commit", "-q", "--allow-empty", "-m", message)
    taken = cortex.backups.import_from([repository], kind="git")
    assert taken.added == {"memory": 2}
    found = {one.content: one for one in records(cortex)}
    assert set(found) == {"Switch to pnpm\n\nnpm installs took minutes.", "feat!: sessions expire after an hour"}
    one = found["feat!: sessions expire after an hour"]
    assert (one.namespace, one.tags) == ("decisions", ("git",))
    assert one.source == f"{repository}@{git(repository, 'rev-parse', 'HEAD~1')[:12]}"
    git(repository, "commit", "-q", "--allow-empty", "-m", "Drop support for Python 3.8")
    assert cortex.backups.import_from([repository], kind="git").added == {"memory": 1}
    assert "is in no git repository" in cortex.backups.import_from([tmp_path], kind="git").left_out[0]
