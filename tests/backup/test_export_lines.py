"""JSON Lines by what they are for: everything goes out as plain text, and all of it comes back."""

from __future__ import annotations

import io
import json
import os
import stat
from contextlib import ExitStack
from hashlib import sha256
from pathlib import Path

import pytest

from cortex_py import Cortex
from cortex_py.core.errors import InvalidInput, StorageError
from cortex_py.core.store.documents.document import KINDS

from helpers import FakeClock
from homes import OtherBackend, fill, opened, state

SECRET = "ghp_" + "a1B2c3D4e5" * 3 + "f6G7h8"


def everything(cortex: Cortex) -> list[str]:
    """Something of every kind there is."""
    ids = fill(cortex)
    graph = cortex.graph
    for name in ("Redpanda", "Event Broker"):
        graph.create(name, "Technology")
    graph.relate("Redpanda", "PostgreSQL", "Uses", properties={"since": 2024})
    graph.merge(["Kafka", "Event Broker"])
    for _ in range(2):
        cortex.memories.capture("The gateway retries failed requests", namespace="patterns")
    cortex.memories.consolidate("patterns", strategy="dedupe")
    cortex.prompts.run("first-review", {"file": "a.py", "what": "faults"})
    kinds = {json.loads(line)["kind"] for line in state(cortex)}
    assert kinds == set(KINDS), "a kind is missing from what is tested"
    return ids


def spaces(cortex: Cortex) -> dict[str, list[bytes]]:
    return {space: state(cortex, space=space) for space in cortex.memories.place.spaces()}


def test_everything_comes_back_in_another_home(tmp_path: Path, project: Path, clock: FakeClock) -> None:
    with opened(tmp_path / "one", project, clock) as cortex, opened(tmp_path / "two", project, clock) as other:
        everything(cortex)
        done = cortex.backups.export_to(tmp_path / "all.jsonl")
        before = spaces(cortex)
        assert sum(done.documents.values()) == sum(map(len, before.values()))
        taken = other.backups.import_from([tmp_path / "all.jsonl"])
        assert spaces(other) == before
        assert dict(taken.added) == dict(done.documents)
        assert (taken.conflicts, taken.left_out, taken.notes, taken.redacted) == ([], [], [], 0)
        hits = [hit.memory.content for hit in other.memories.recall("Kafka events").results]
        assert hits[0] == "first: we decided on Kafka for events"
        assert not other.check()


def test_vectors_are_made_by_the_model_of_the_home(tmp_path: Path, project: Path, clock: FakeClock) -> None:
    with ExitStack() as stack:
        cortex = stack.enter_context(opened(tmp_path / "one", project, clock))
        other = stack.enter_context(Cortex.open(tmp_path / "two", project=project, backend=OtherBackend(), clock=clock))
        fill(cortex)
        cortex.backups.export_to(tmp_path / "all.jsonl")
        other.backups.import_from([tmp_path / "all.jsonl"])
        assert state(other) == state(cortex)
        with other.store.database.read() as session:
            lengths = {len(row[0]) for row in session.rows("SELECT vector FROM chunk")}
        assert lengths == {48 * 4}


def test_the_file_is_plain_private_and_tells_its_end(home: Path, project: Path, tmp_path: Path) -> None:
    with opened(home, project) as cortex:
        fill(cortex)
        path = tmp_path / "all.jsonl"
        done = cortex.backups.export_to(str(path))
        lines = path.read_bytes().splitlines(keepends=True)
        assert done.size_bytes == sum(map(len, lines))
        headers = [json.loads(line) for line in lines if b'"cortex_export":' in line]
        assert [header["domain"] for header in headers] == ["project", "user", "org"]
        assert headers[0]["project"] == {"id": cortex.project.id, "name": "project", "remote": None}
        end = json.loads(lines[-1])["cortex_export_end"]
        assert end == {"documents": len(lines) - len(headers) - 1, "sha256": sha256(b"".join(lines[:-1])).hexdigest()}
        if os.name == "posix":
            assert stat.S_IMODE(path.stat().st_mode) == 0o600
        stream = io.BytesIO()
        assert cortex.backups.export_to(stream).path is None
        assert stream.getvalue() == path.read_bytes()


def test_an_export_that_fails_leaves_the_file_before_it(
    home: Path, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Full(io.BytesIO):
        def write(self, _data: object) -> int:
            raise OSError(28, "No space left on device")

    path = tmp_path / "all.jsonl"
    path.write_text("the one before")
    with opened(home, project) as cortex:
        fill(cortex)
        with pytest.raises(StorageError):
            cortex.backups.export_to(Full())
        monkeypatch.setattr("cortex_py.parts.backup.transfer.export.iso", lambda _moment: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            cortex.backups.export_to(path)
    assert path.read_text() == "the one before"
    assert list(tmp_path.glob(".*.part")) == []


def test_one_domain_alone_goes_out_and_comes_in(tmp_path: Path, project: Path, clock: FakeClock) -> None:
    with opened(tmp_path / "one", project, clock) as cortex, opened(tmp_path / "two", project, clock) as other:
        fill(cortex)
        person = cortex.memories.place.space("user")
        cortex.backups.export_to(tmp_path / "user.jsonl", domains=["user"])
        other.backups.import_from([tmp_path / "user.jsonl"])
        assert (state(other), state(other, space=person)) == ([], state(cortex, space=person))
        cortex.backups.export_to(tmp_path / "all.jsonl")
        other.backups.import_from([tmp_path / "all.jsonl"], domain="project")
        assert state(other) == state(cortex)
        with pytest.raises(InvalidInput, match="everyone"):
            cortex.backups.export_to(tmp_path / "x", domains=["everyone"])  # type: ignore[list-item]
        with pytest.raises(InvalidInput, match="xml"):
            cortex.backups.export_to(tmp_path / "x", format="xml")


def test_a_second_import_and_a_dry_run_change_nothing(tmp_path: Path, project: Path, clock: FakeClock) -> None:
    with opened(tmp_path / "one", project, clock) as cortex, opened(tmp_path / "two", project, clock) as other:
        everything(cortex)
        cortex.backups.export_to(tmp_path / "all.jsonl")
        tried = other.backups.import_from([tmp_path / "all.jsonl"], dry_run=True)
        assert tried.dry_run
        assert spaces(other) == {space: [] for space in spaces(other)}
        taken = other.backups.import_from([tmp_path / "all.jsonl"])
        assert (tried.added, tried.replaced, tried.unchanged) == (taken.added, taken.replaced, taken.unchanged)
        before, revision = spaces(other), other.memories.revision()
        again = other.backups.import_from([tmp_path / "all.jsonl"], replace=True)
        assert (again.added, again.replaced, again.conflicts) == ({}, {}, [])
        assert again.unchanged == sum(taken.added.values())
        assert spaces(other) == before
        assert other.memories.revision() - revision <= 2, "only the counter of the transaction moves"


def test_what_differs_is_kept_and_told_unless_it_may_be_replaced(home: Path, project: Path, tmp_path: Path) -> None:
    with opened(home, project) as cortex:
        ids = fill(cortex)
        exported = state(cortex)
        path = tmp_path / "all.jsonl"
        cortex.backups.export_to(path)
        cortex.memories.update(ids[1], content="we decided on Pulsar instead")
        cortex.prompts.save("first-review", "Another {{file}}.", domain="project")
        cortex.memories.recall("PostgreSQL")
        cortex.memories.write_uses()
        changed = state(cortex)
        taken = cortex.backups.import_from([path])
        assert state(cortex) == changed
        told = {(one.kind, one.key) for one in taken.conflicts}
        assert {("memory", ids[1]), ("saved", "prompt/first-review")} <= told
        assert "use" not in {one.kind for one in taken.conflicts}
        assert taken.kept >= 1
        assert f"{path}, line " in taken.conflicts[0].place

        replaced = cortex.backups.import_from([path], replace=True)
        assert replaced.conflicts == []
        assert replaced.replaced["memory"] == 1
        kept = [line for line in state(cortex) if b'"kind":"memory"' in line or b'"kind":"saved"' in line]
        assert kept == [line for line in exported if b'"kind":"memory"' in line or b'"kind":"saved"' in line]
        assert cortex.memories.recall("Kafka for events").results[0].memory.id == ids[1]


def test_another_project_takes_the_documents_as_its_own(tmp_path: Path, project: Path, clock: FakeClock) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    with opened(tmp_path / "one", project, clock) as cortex, opened(tmp_path / "two", elsewhere, clock) as other:
        ids = everything(cortex)
        cortex.backups.export_to(tmp_path / "all.jsonl")
        taken = other.backups.import_from([tmp_path / "all.jsonl"])
        assert [one.split(":")[0].split()[0] for one in taken.left_out] == ["merge"]
        assert other.memories.get(ids[0]).project_id == other.project.id
        moved = [line.replace(cortex.project.id.encode(), other.project.id.encode()) for line in state(cortex)]
        assert state(other) == [line for line in moved if b'"kind":"merge"' not in line]
        assert other.contexts.branches()[0].topic == "Work first"


def test_an_id_of_another_project_of_the_home_is_a_conflict(
    home: Path, project: Path, tmp_path: Path, clock: FakeClock
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    with opened(home, project, clock) as cortex, opened(home, elsewhere, clock) as other:
        fill(cortex)
        before = state(cortex)
        cortex.backups.export_to(tmp_path / "all.jsonl", domains=["project"])
        taken = other.backups.import_from([tmp_path / "all.jsonl"], replace=True)
        memories = {json.loads(line)["key"] for line in before if b'"kind":"memory"' in line}
        assert {one.key for one in taken.conflicts} == memories
        assert "another project" in taken.conflicts[0].reason
        assert [line for line in state(other) if b'"kind":"memory"' in line] == []
        assert state(cortex) == before


def test_what_a_person_edits_need_be_neither_canonical_nor_in_order(
    tmp_path: Path, project: Path, clock: FakeClock
) -> None:
    with opened(tmp_path / "one", project, clock) as cortex, opened(tmp_path / "two", project, clock) as other:
        everything(cortex)
        path = tmp_path / "all.jsonl"
        cortex.backups.export_to(path, domains=["project"])
        header, *documents, end = path.read_text("utf-8").splitlines()
        loose = [json.dumps(json.loads(line), indent=None, sort_keys=False) for line in reversed(documents)]
        edited = "\r\n".join([header, "", *loose, loose[0], end])
        path.write_bytes(b"\xef\xbb\xbf" + edited.encode())
        other.backups.import_from([path])
        assert state(other) == state(cortex)


def test_a_reworded_memory_is_read_anew_for_the_graph(home: Path, project: Path, tmp_path: Path) -> None:
    with opened(home, project) as cortex:
        kept = cortex.memories.capture("The cache uses Redis for sessions")
        cortex.memories.keep_verification(kept, "{}")
        path = tmp_path / "all.jsonl"
        cortex.backups.export_to(path, domains=["project"])
        path.write_text(path.read_text("utf-8").replace("The cache uses Redis for sessions", "We use Kafka"), "utf-8")
        taken = cortex.backups.import_from([path], replace=True)
        assert taken.replaced == {"memory": 1}
        assert cortex.memories.get(kept.id).content == "We use Kafka"
        assert cortex.graph.get("Kafka").mentions[0].memory_id == kept.id
        mentions = b"".join(state(cortex, ["mention"]))
        assert b'"read":1' in mentions
        assert b"entity_redis" not in mentions
        assert cortex.memories.verification(kept.id) is None, "another wording was checked by nobody"
        before = state(cortex)
        again = cortex.backups.import_from([path], replace=True)
        assert (again.added, again.replaced, again.conflicts) == ({}, {}, [])
        assert state(cortex) == before


@pytest.mark.parametrize(
    ("before", "edited"),
    [
        ("The cache uses Redis for sessions", "Redis"),
        (f"{SECRET} opens Redis, which the cache needs for its sessions", None),
    ],
)
def test_mentions_stand_where_the_text_has_them(
    tmp_path: Path, project: Path, clock: FakeClock, before: str, edited: str | None
) -> None:
    """An edit of the file moves them, and so does a secret that is taken out."""
    with opened(tmp_path / "one", project, clock, secrets="allow") as cortex:
        kept = cortex.memories.capture(before)
        path = tmp_path / "all.jsonl"
        cortex.backups.export_to(path, domains=["project"])
    if edited:
        path.write_text(path.read_text("utf-8").replace(before, edited), "utf-8")
    with opened(tmp_path / "two", project, clock) as other:
        other.backups.import_from([path])
        content = other.memories.get(kept.id).content
        assert content != before
        places = other.graph.get("Redis").mentions
        assert [content[one.start : one.end] for one in places] == ["Redis"]


def test_a_missing_line_is_told_and_what_hung_on_it_is_mended(tmp_path: Path, project: Path, clock: FakeClock) -> None:
    with opened(tmp_path / "one", project, clock) as cortex, opened(tmp_path / "two", project, clock) as other:
        ids = fill(cortex)
        path = tmp_path / "all.jsonl"
        cortex.backups.export_to(path)
        gone = (f'"key":"{ids[1]}"', '"key":"entity_postgresql"')
        lines = path.read_text("utf-8").splitlines(keepends=True)
        kept = [
            line
            for line in lines
            if not ('"kind":"memory"' in line or '"kind":"entity"' in line) or not any(word in line for word in gone)
        ]
        path.write_text("".join(kept), "utf-8")
        taken = other.backups.import_from([path])
        assert any(ids[1] in one and "not here" in one for one in taken.left_out)
        assert any("documents and holds" in one for one in taken.notes)
        left = b"".join(state(other, ["mention", "relationship"]))
        assert b"entity_redis" in left
        assert b"entity_postgresql" not in left
