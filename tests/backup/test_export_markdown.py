"""Markdown by what it is for: memories as files that people read and edit, and exactly the same memories back."""

from __future__ import annotations

import json
import os
import re
import stat
from pathlib import Path, PureWindowsPath
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cases import each
from cortex_py import Cortex, NewMemory
from cortex_py.core.errors import CortexError, InvalidInput
from cortex_py.core.store.documents.document import Document
from cortex_py.parts.backup.transfer.markdown import memory_data, memory_markdown, memory_name, plain_name, read_note

from helpers import FakeClock
from homes import fill, opened, state

TEXT = st.text(st.characters(exclude_categories=["Cs"]))
MOMENT = st.integers(0, 253_402_300_799_999_999)
NOW = FakeClock().now()


def memories(cortex: Cortex) -> dict[str, dict[str, Any]]:
    """All memories by id, without what Markdown does not carry."""
    found = {}
    for space in cortex.memories.place.spaces():
        for line in state(cortex, ["memory"], space):
            one = json.loads(line)
            found[one["key"]] = {**one["data"], "versions": []}
    return found


@st.composite
def documents(draw: st.DrawFn) -> Document:
    optional = st.none() | TEXT
    return Document(
        "memory",
        draw(st.text("0123456789abcdef", min_size=40, max_size=40)),
        {
            **{
                name: draw(optional)
                for name in (
                    *(
                        "branch_id",
                        "category",
                        "role",
                        "summary",
                        "source",
                        "path",
                        "git_branch",
                        "user_id",
                        "agent_id",
                    ),
                    *("superseded_by", "duplicate_of", "confinement", "prior_status", "idempotency_key", "symbol"),
                )
            },
            **{name: draw(st.none() | MOMENT) for name in ("expires_at", "tombstoned_at")},
            **{name: draw(st.none() | st.integers(0, 10**6)) for name in ("first_line", "last_line")},
            "domain": draw(st.sampled_from(["project", "user", "org"])),
            "namespace": draw(TEXT),
            "content": draw(TEXT),
            "tags": draw(st.lists(TEXT, max_size=3)),
            "redactions": draw(st.lists(TEXT, max_size=2)),
            "status": draw(TEXT),
            "created_at": draw(MOMENT),
            "updated_at": draw(MOMENT),
            "version": draw(st.integers(1, 10**6)),
            "project_id": None,
            "kind": "note",
            "versions": [],
        },
    )


@given(documents())
def test_any_memory_reads_back_from_its_file(document: Document) -> None:
    note = read_note("x.md", memory_markdown(document).encode().decode("utf-8"))
    data, ignored = memory_data(note, NOW)
    assert note.memory_id == document.key
    assert (data, ignored) == (document.data, ())


@each(
    "content",
    [
        "---\n",
        "---\nid: x\n---\n",
        "\n\n",
        "a \n b\t\n",
        "a\r\nb\r\n",
        "no end",
        "\ufeffbom",
        "a\x00b",
        "\r",
        "```\n---\n```",
    ],
)
def test_contents_that_look_like_front_matter_or_ends_stay_as_they_are(content: str) -> None:
    data = dict.fromkeys(memory_data(read_note("x", f"---\nid: {'a' * 40}\n---\nx"), NOW)[0])
    whole = {**data, "content": content, "tags": [], "redactions": [], "created_at": 0, "updated_at": 0}
    found = read_note("x.md", memory_markdown(Document("memory", "a" * 40, whole)))
    assert (found.memory_id, found.content) == ("a" * 40, content)


@given(TEXT)
@example("../../etc/passwd")
@example("CON")
@example("a" * 500)
def test_names_of_files_are_safe_wherever_they_lie(words: str) -> None:
    data = {"namespace": words, "summary": None, "content": words, "created_at": 0}
    folder, name = memory_name(Document("memory", "0f" * 20, data)).split("/")
    assert re.fullmatch(r"[a-z][a-z0-9-]{1,40}", folder)
    assert re.fullmatch(r"\d{4}-\d\d-\d\d-[a-z0-9-]{1,60}\.md", name)
    for part in (folder, name):
        assert not PureWindowsPath(part).is_reserved()
    assert not PureWindowsPath(plain_name("con")).is_reserved()


@given(
    st.lists(st.sampled_from(["---\n", "id: ", "a", "- ", "[", "{", '"', "\n", "\x00", "&", "*"]) | TEXT).map("".join)
)
@example("---\n")
@example("---\na: [\n---\n")
@example("---\n- 1\n---\nx")
def test_any_file_is_read_or_refused(text: str) -> None:
    try:
        note = read_note("x.md", text)
    except InvalidInput as error:
        assert "x.md" in str(error)
    else:
        assert text.endswith(note.content)


def test_a_folder_gives_the_same_memories_back(tmp_path: Path, project: Path, clock: FakeClock) -> None:
    with opened(tmp_path / "one", project, clock) as cortex, opened(tmp_path / "two", project, clock) as other:
        fill(cortex)
        cortex.memories.capture("---\ntrailing \r\nno end", summary="A: summary\nin lines", tags=["yes", "1.0"])
        done = cortex.backups.export_to(tmp_path / "notes", format="markdown")
        assert done.documents["memory"] == len(memories(cortex))
        assert done.files == sum(one.is_file() for one in (tmp_path / "notes").rglob("*"))
        taken = other.backups.import_from([tmp_path / "notes"])
        assert memories(other) == memories(cortex)
        assert taken.added == {"branch": 1, "memory": len(memories(cortex)), "saved": 2}
        assert all("graph.md" in one for one in taken.left_out)
        assert other.prompts.get("first-review").content == cortex.prompts.get("first-review").content
        assert other.templates.get("first-list").variables == cortex.templates.get("first-list").variables
        assert state(other, ["branch"]) == state(cortex, ["branch"])
        assert other.graph.get("PostgreSQL").mentions, "what came was read for the graph"
        before = state(other)
        again = other.backups.import_from([tmp_path / "notes"], replace=True)
        assert (again.added, again.replaced, again.conflicts) == ({}, {}, [])
        assert state(other) == before
        assert other.memories.recall("Kafka events").results[0].memory.content.endswith("Kafka for events")


def test_the_folder_is_private_complete_and_readable(home: Path, project: Path, tmp_path: Path) -> None:
    with opened(home, project) as cortex:
        ids = fill(cortex)
        cortex.graph.create("Redpanda", "Technology")
        cortex.graph.relate("Redpanda", "PostgreSQL", "Uses")
        folder = tmp_path / "notes"
        cortex.backups.export_to(folder, format="markdown")
        text = next((folder / "memories" / "decisions").iterdir()).read_text("utf-8")
        # YAML needs quotes only around an id that could be a number.
        plain = text.replace(f'"{ids[1]}"', ids[1])
        assert plain.startswith(f"---\nid: {ids[1]}\nnamespace: decisions\n")
        assert text.endswith("---\nfirst: we decided on Kafka for events")
        assert "| Work first |" in (folder / "branches.md").read_text("utf-8")
        assert "- Redpanda *Uses* PostgreSQL (1.00)" in (folder / "graph.md").read_text("utf-8")
        assert (folder / "prompts" / "first-review.md").read_bytes() == cortex.prompts.export("first-review")
        assert len(list((folder / "user" / "memories").rglob("*.md"))) == 1
        if os.name == "posix":
            modes = {stat.S_IMODE(one.stat().st_mode) for one in folder.rglob("*") if one.is_file()}
            assert modes == {0o600}
        with pytest.raises(InvalidInput, match="not an empty folder"):
            cortex.backups.export_to(folder, format="markdown")
        (tmp_path / "empty").mkdir()
        assert cortex.backups.export_to(tmp_path / "empty", format="markdown").files
        with pytest.raises(CortexError):
            cortex.backups.export_to(tmp_path / "not" / "there", format="markdown")
        assert list(tmp_path.glob(".*.part")) == []


def test_memories_of_one_moment_and_one_beginning_have_files_of_their_own(
    home: Path, project: Path, tmp_path: Path
) -> None:
    with opened(home, project) as cortex:
        kept = cortex.memories.capture_many(
            NewMemory(content=f"{words} beginning") for words in ("The same", "The  same", "THE SAME")
        )
        cortex.backups.export_to(tmp_path / "notes", format="markdown", domains=["project"])
        files = list((tmp_path / "notes" / "memories" / "context").iterdir())
        assert len({one.name.lower() for one in files}) == len(kept) == 3


def test_an_edited_file_is_a_conflict_or_the_next_version(home: Path, project: Path, tmp_path: Path) -> None:
    with opened(home, project) as cortex:
        ids = fill(cortex)
        folder = tmp_path / "notes"
        cortex.backups.export_to(folder, format="markdown", domains=["project"])
        file = next((folder / "memories" / "decisions").iterdir())
        file.write_text(file.read_text("utf-8").replace("Kafka for events", "Redis for queues"), "utf-8")
        prompt = folder / "prompts" / "first-review.md"
        prompt.write_bytes(prompt.read_bytes() + b" Be kind.")
        before = state(cortex)
        taken = cortex.backups.import_from([folder])
        assert {(one.kind, one.key) for one in taken.conflicts} == {
            ("memory", ids[1]),
            ("saved", "prompt/first-review"),
        }
        assert state(cortex) == before
        done = cortex.backups.import_from([folder], replace=True)
        assert done.replaced == {"memory": 1, "saved": 1}
        found = cortex.memories.get(ids[1])
        assert (found.content, found.version) == ("first: we decided on Redis for queues", 2)
        assert cortex.memories.history(ids[1])[0].content.endswith("Kafka for events")
        assert [one.version for one in cortex.prompts.versions("first-review")] == [1, 2, 3]
        assert ids[1] in [one.memory_id for one in cortex.graph.get("Redis").mentions]
        again = cortex.backups.import_from([folder], replace=True)
        assert (again.replaced, again.conflicts) == ({}, [])


def test_another_project_takes_a_folder_as_its_own(tmp_path: Path, project: Path, clock: FakeClock) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    with opened(tmp_path / "one", project, clock) as cortex, opened(tmp_path / "two", elsewhere, clock) as other:
        ids = fill(cortex)
        cortex.backups.export_to(tmp_path / "notes", format="markdown")
        other.backups.import_from([tmp_path / "notes"])
        assert other.memories.get(ids[0]).project_id == other.project.id


def test_a_part_of_an_export_knows_whose_it_is(tmp_path: Path, project: Path, clock: FakeClock) -> None:
    with opened(tmp_path / "one", project, clock) as cortex, opened(tmp_path / "two", project, clock) as other:
        fill(cortex)
        cortex.prompts.save("mine", "Say {{what}}.", domain="user")
        cortex.backups.export_to(tmp_path / "notes", format="markdown")
        other.backups.import_from([tmp_path / "notes" / "user"])
        assert other.prompts.get("mine").domain == "user"
        assert state(other) == []
        assert {data["domain"] for data in memories(other).values()} == {"user"}


def test_links_that_lead_elsewhere_are_not_followed(home: Path, project: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.md").write_text("not to be read")
    (outside / "own.md").write_text(f"---\nid: {'0f' * 20}\n---\nneither is a memory of ours")
    folder = tmp_path / "notes"
    (folder / ".obsidian").mkdir(parents=True)
    (folder / ".obsidian" / "hidden.md").write_text("of another program")
    (folder / "good.md").write_text("a note")
    (folder / "file.md").symlink_to(outside / "secret.md")
    (folder / "folder").symlink_to(outside)
    (folder / "round").symlink_to(folder)
    (folder / "nothing.md").symlink_to(tmp_path / "nowhere")
    with opened(home, project) as cortex:
        taken = cortex.backups.import_from([folder])
        assert [data["content"] for data in memories(cortex).values()] == ["a note"]
        assert sum("symbolic link" in one for one in taken.left_out) == 4
        # Whoever names a link means what it leads to.
        cortex.backups.import_from([folder / "file.md"])
        assert {data["content"] for data in memories(cortex).values()} == {"a note", "not to be read"}
