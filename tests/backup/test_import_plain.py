"""Memories of other programs: lines, arrays and notes become memories, once."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from cortex_py import Cortex
from cortex_py.core.errors import ContentBlocked, InvalidInput, UnknownNamespace
from cortex_py.core.records import Memory

from helpers import FakeClock
from homes import opened, state

SECRET = "ghp_" + "a1B2c3D4e5" * 3 + "f6G7h8"


@pytest.fixture
def cortex(home: Path, project: Path, clock: FakeClock) -> Iterator[Cortex]:
    with opened(home, project, clock) as opened_home:
        yield opened_home


def listed(cortex: Cortex) -> dict[str, Memory]:
    return {hit.memory.content: hit.memory for hit in cortex.memories.recall(limit=100).results}


def test_lines_with_a_content_become_memories(cortex: Cortex, tmp_path: Path) -> None:
    path = tmp_path / "other.jsonl"
    items = [
        {
            "id": "17",
            "content": "We chose Postgres\n",
            "tags": ["db", "DB", " x "],
            "namespace": "Decisions",
            "created_at": "2025-03-04T05:06:07+02:00",
            "source": "src/app.py:12",
            "summary": "Postgres it is",
            "category": "architecture",
        },
        {"content": "seconds", "created_at": 1_700_000_000, "score": 0.5},
        {"content": "milliseconds", "created_at": 1_700_000_000_000, "score": 1, "path": "src/b.py"},
        {"content": "microseconds", "created_at": 1_700_000_000_000_000},
        {"content": "a day", "created_at": "2025-03-04", "tags": None},
        {"content": "bare"},
    ]
    path.write_text("\n".join(json.dumps(item) for item in items), "utf-8")
    taken = cortex.backups.import_from([path])
    assert taken.added == {"memory": 6}
    assert taken.notes == ["Fields that were ignored: 'score' (2 times)."]
    found = listed(cortex)
    first = found["We chose Postgres\n"]
    assert (first.namespace, first.tags, first.category) == ("decisions", ("db", "x"), "architecture")
    assert (first.source, first.path, first.summary) == ("src/app.py:12", "src/app.py", "Postgres it is")
    assert first.created_at == datetime(2025, 3, 4, 3, 6, 7, tzinfo=UTC)
    moment = datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC)
    assert {found[f"{unit}seconds"].created_at for unit in ("", "milli", "micro")} == {moment}
    assert found["a day"].created_at == datetime(2025, 3, 4, tzinfo=UTC)
    assert found["milliseconds"].path == "src/b.py"
    assert found["bare"].project_id == cortex.project.id
    assert cortex.graph.get("Postgres").mentions

    before = state(cortex)
    again = cortex.backups.import_from([path])
    assert (again.added, again.unchanged) == ({}, 6)
    assert state(cortex) == before


def test_an_array_is_taken_entry_by_entry(cortex: Cortex, tmp_path: Path) -> None:
    path = tmp_path / "other.json"
    path.write_text('\ufeff\n [{"content": "one"},\n {"content": "two"}, {"content": "one"}]', "utf-8")
    assert cortex.backups.import_from([path], dry_run=True).added == {"memory": 2}
    assert listed(cortex) == {}
    assert cortex.backups.import_from([path], domain="user").added == {"memory": 2}
    assert {memory.domain for memory in listed(cortex).values()} == {"user"}
    path.write_text('[{"content": "one"}, {"text": "two"}]', "utf-8")
    assert cortex.backups.import_from([path]).left_out == [f"{path}, entry 2: content is missing"]
    path.write_text('[{"content": "one"},\n{"content"}, {"content": "two"}]', "utf-8")
    taken = cortex.backups.import_from([path])
    assert (taken.added, len(taken.left_out)) == ({"memory": 1}, 1)
    assert "other.json, entry 2: it is not valid JSON" in taken.left_out[0]


@pytest.mark.parametrize(
    ("item", "told"),
    [
        ({"text": "x"}, "content is missing"),
        ({"content": None}, "content is missing"),
        ({"content": 5}, "content is not text"),
        ({"content": "  "}, "content is empty"),
        ({"content": "a\ud800"}, "Unicode"),
        ({"content": "x", "tags": "a, b"}, "tags is not a list"),
        ({"content": "x", "tags": [1]}, "tag 1"),
        ({"content": "x", "created_at": "yesterday"}, "created_at is not a moment"),
        ({"content": "x", "created_at": 10**400}, "created_at is not a moment"),
        ({"content": "x", "created_at": True}, "created_at is not a moment"),
        ({"content": "x", "created_at": -(10**10)}, None),
        ({"content": "x", "summary": ["a"]}, "summary is not text"),
        ({"content": "x", "source": "y" * 3_000}, "source"),
        ({"content": "x", "category": "nothing"}, "category"),
        (["content"], "not a JSON object"),
    ],
)
def test_a_line_that_is_no_memory_is_named(cortex: Cortex, tmp_path: Path, item: object, told: str | None) -> None:
    path = tmp_path / "other.jsonl"
    path.write_text(f'{{"content": "fine"}}\n{json.dumps(item)}\n', "utf-8")
    if told is None:
        assert cortex.backups.import_from([path]).added == {"memory": 2}
        return
    taken = cortex.backups.import_from([path])
    assert taken.left_out[0].startswith(f"{path}, line 2: ")
    assert told in taken.left_out[0]
    assert list(listed(cortex)) == ["fine"]


def test_notes_become_memories_with_the_tags_of_their_front_matter(cortex: Cortex, tmp_path: Path) -> None:
    folder = tmp_path / "vault"
    (folder / "Daily").mkdir(parents=True)
    (folder / "plain.md").write_bytes(b"\xef\xbb\xbfNo front matter,\r\nkept as it is. ")
    (folder / "Daily" / "My note.md").write_text(
        "---\nid: 20240101\ntags: [alpha, beta]\naliases: [x]\ndate: 2025-03-04\nnamespace: learnings\n---\n"
        "Learned it.\n"
    )
    (folder / "commas.MD").write_text("---\ntags: one, two three\nsource: a book\n---\nWith commas\n")
    (folder / "rule.md").write_text("---\nA rule above\n---\nand below\n")
    (folder / "open.md").write_text("---\nnever closed\n")
    (folder / "bare.md").write_text("---\n---\nEmpty front matter\n")
    (folder / "empty.md").write_text("\n")
    (folder / "picture.png").write_bytes(b"\x89PNG")
    taken = cortex.backups.import_from([folder])
    assert taken.added == {"memory": 6}
    assert [one.split("/")[-1] for one in taken.left_out] == ["empty.md: it is empty"]
    assert taken.notes == ["Fields that were ignored: 'aliases' (1 time)."]
    found = listed(cortex)
    note = found["Learned it.\n"]
    assert (note.tags, note.namespace, note.source) == (("alpha", "beta"), "learnings", "My note.md")
    assert note.created_at == datetime(2025, 3, 4, tzinfo=UTC)
    assert found["With commas\n"].tags == ("one", "two", "three")
    assert found["With commas\n"].source == "a book"
    assert set(found) == {
        "No front matter,\r\nkept as it is. ",
        "Learned it.\n",
        "With commas\n",
        "---\nA rule above\n---\nand below\n",
        "---\nnever closed\n",
        "Empty front matter\n",
    }
    before = state(cortex)
    assert cortex.backups.import_from([folder]).added == {}
    assert state(cortex) == before


def test_a_memory_in_markdown_is_checked_like_any_other(cortex: Cortex, tmp_path: Path) -> None:
    note = tmp_path / "note.md"
    for field, told in (
        ("created: yesterday", "line 3: created must be a moment"),
        ("version: many", "line 3: version must be a whole number"),
        ("tags: [1]", "line 3: tags must be a list"),
        ("summary: [a]", "line 3: summary must be text"),
        ("status: lost", "status"),
        ("domain: everyone", "domain"),
    ):
        note.write_text(f"---\nid: {'0f' * 20}\n{field}\n---\nfine\n")
        with pytest.raises(InvalidInput, match=r"note\.md") as caught:
            cortex.backups.import_from([note])
        assert told in str(caught.value)
    note.write_text(f"---\nid: {'0f' * 20}\nnamespace: nowhere\n---\nfine\n")
    with pytest.raises(UnknownNamespace):
        cortex.backups.import_from([note])
    assert listed(cortex) == {}
    note.write_text(f"---\nid: {'0f' * 20}\nmood: good\n---\nfine\n")
    assert cortex.backups.import_from([note]).notes == ["Fields that were ignored: 'mood' (1 time)."]
    assert listed(cortex)["fine\n"].id == "0f" * 20


def test_a_message_about_a_file_shows_no_secret_of_it(cortex: Cortex, tmp_path: Path) -> None:
    token = "xoxb-181909378657-975432319487-4vUCsMehGAkWvj7FAc9QeWJK"
    path = tmp_path / "old.json"
    path.write_text(json.dumps([{"content": "fine", token: 1}]))
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / f"{token}.md").symlink_to(path)
    taken = cortex.backups.import_from([path, folder])
    assert (len(taken.notes), len(taken.left_out)) == (1, 1)
    assert token[:20] not in f"{taken.notes} {taken.left_out}"


def test_secrets_of_plain_memories_follow_the_policy(home: Path, project: Path, tmp_path: Path) -> None:
    lines, note = tmp_path / "other.jsonl", tmp_path / "note.md"
    lines.write_text(json.dumps({"content": "fine"}) + "\n" + json.dumps({"content": f"token {SECRET}"}))
    note.write_text(f"---\nid: {'0f' * 20}\n---\nanother {SECRET}\n")
    with opened(home, project) as cortex:
        assert cortex.backups.import_from([lines, note], dry_run=True).redacted == 2
        taken = cortex.backups.import_from([lines, note])
        assert (taken.added, taken.redacted) == ({"memory": 3}, 2)
        assert SECRET.encode() not in b"".join(state(cortex))
        assert cortex.backups.import_from([lines, note]).added == {}
    with opened(tmp_path / "strict", project, secrets="block") as cortex:
        with pytest.raises(ContentBlocked, match=r"note\.md") as caught:
            cortex.backups.import_from([lines, note])
        assert SECRET not in str(caught.value)
        assert state(cortex) == []
        taken = cortex.backups.import_from([lines])
        assert (taken.added, len(taken.left_out)) == ({"memory": 1}, 1)
        assert taken.left_out[0].startswith(f"{lines}, line 2: The content holds what looks like a secret")
        assert SECRET not in taken.left_out[0]
