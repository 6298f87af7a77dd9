"""Import of what is wrong: file and line are named, and nothing at all has changed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cases import each
from cortex_py import Cortex
from cortex_py.core.errors import ContentBlocked, ContentTooLarge, CortexError, InvalidInput

from helpers import FakeClock
from homes import fill, opened, state

SECRET = "ghp_" + "a1B2c3D4e5" * 3 + "f6G7h8"
END = '{"cortex_export_end":{}}'
Change = Callable[[dict[str, Any]], object]


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The lines of an export of one project, made once."""
    folder = tmp_path_factory.mktemp("source")
    (folder / "project").mkdir()
    with opened(folder / "home", folder / "project") as cortex:
        fill(cortex)
        cortex.graph.create("Redpanda", "Technology")
        cortex.graph.create("Event Broker", "Technology")
        cortex.graph.relate("Redpanda", "PostgreSQL", "Uses")
        cortex.graph.merge(["Kafka", "Event Broker"])
        cortex.backups.export_to(folder / "all.jsonl", domains=["project"])
    return (folder / "all.jsonl").read_text("utf-8").splitlines()


@pytest.fixture
def cortex(home: Path, project: Path, clock: FakeClock) -> Any:
    with opened(home, project, clock) as opened_home:
        yield opened_home


def refused(cortex: Cortex, path: Path, kind: type[CortexError] = InvalidInput) -> str:
    before = state(cortex)
    with pytest.raises(kind) as caught:
        cortex.backups.import_from([path])
    assert state(cortex) == before
    assert path.name in str(caught.value)
    return str(caught.value)


def edited(lines: list[str], kind: str, change: Change, *, number: int = 0) -> tuple[str, int]:
    """The export with one document of a kind changed, and the line it stands in."""
    places = [n for n, line in enumerate(lines) if json.loads(line).get("kind") == kind]
    document = json.loads(lines[places[number]])
    change(document)
    text = json.dumps(document)
    return "\n".join([*lines[: places[number]], text, *lines[places[number] + 1 :]]), places[number] + 1


@each(
    ("kind", "change"),
    [
        pytest.param(kind, change, id=f"{kind}-{name}")
        for kind, name, change in (
            ("memory", "content a number", lambda d: d["data"].update(content=1)),
            ("memory", "no content", lambda d: d["data"].update(content=" ")),
            ("memory", "a field missing", lambda d: d["data"].pop("tags")),
            ("memory", "a field too many", lambda d: d["data"].update(more=1)),
            ("memory", "another domain", lambda d: d["data"].update(domain="user")),
            ("memory", "a status", lambda d: d["data"].update(status="lost")),
            ("memory", "a category", lambda d: d["data"].update(category="odd")),
            ("memory", "of files", lambda d: d["data"].update(kind="file")),
            ("memory", "version 0", lambda d: d["data"].update(version=0)),
            ("memory", "confined", lambda d: d["data"].update(confinement="cell")),
            ("memory", "the year 20000", lambda d: d["data"].update(created_at=10**18)),
            ("memory", "beyond 64 bits", lambda d: d["data"].update(created_at=2**70)),
            ("memory", "half a character", lambda d: d["data"].update(content="a\ud800b")),
            ("memory", "tags of numbers", lambda d: d["data"].update(tags=[1])),
            ("memory", "a long tag", lambda d: d["data"].update(tags=["x" * 200])),
            ("memory", "a version twice", lambda d: d["data"].update(versions=d["data"]["versions"] * 2)),
            ("memory", "an id in capitals", lambda d: d.update(key="A" * 40)),
            ("memory", "a long source", lambda d: d["data"].update(source="x" * 3_000)),
            ("branch", "a way out", lambda d: d.update(key="../../outside")),
            ("branch", "no topic", lambda d: d["data"].update(topic="")),
            ("branch", "a moment", lambda d: d["data"].update(created_at=-(10**18))),
            ("entity", "type", lambda d: d["data"].update(type="Thing")),
            ("entity", "an alias twice", lambda d: d["data"].update(aliases=[{"alias": "a", "key": "a"}] * 2)),
            ("mention", "twice", lambda d: d["data"].update(mentions=d["data"]["mentions"] * 2)),
            ("mention", "no list", lambda d: d["data"].update(mentions=3)),
            ("relationship", "type", lambda d: d["data"].update(type="Eats")),
            ("relationship", "confidence", lambda d: d["data"].update(confidence=7)),
            ("verification", "no JSON", lambda d: d["data"].update(result="{")),
            ("merge", "log", lambda d: d["data"].update(log=5)),
            ("merge", "rows", lambda d: d["data"]["log"][0].update(kind="mention", data={})),
            ("saved", "a name", lambda d: d.update(key="prompt/../../x")),
            ("saved", "a kind", lambda d: d.update(key="song/x")),
            ("saved", "no present version", lambda d: d["data"].update(version=9)),
            ("saved", "blanks", lambda d: d["data"]["versions"][0].update(content="{{file")),
            ("saved", "variables", lambda d: d["data"]["versions"][0].update(variables=[1])),
            ("saved", "another domain", lambda d: d["data"].update(domain="org")),
            ("reference", "a number", lambda d: d.update(key="first")),
            ("trust", "an unknown kind", lambda d: d.update(kind="trusted")),
            ("trust", "a key that is none", lambda d: d.update(key=5)),
            ("trust", "a key too long", lambda d: d.update(key=f"x/{'y' * 500}")),
            ("trust", "more than a document", lambda d: d.update(more=True)),
        )
    ],
)  # fmt: skip
def test_a_bad_document_in_the_middle_changes_nothing(
    cortex: Cortex, lines: list[str], tmp_path: Path, kind: str, change: Change
) -> None:
    text, number = edited(lines, kind, change, number=-1 if kind in ("mention",) else 0)
    path = tmp_path / "all.jsonl"
    path.write_text(text, "utf-8")
    assert f"all.jsonl, line {number}: " in refused(cortex, path)


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ('{"kind": "memory", "key"', "not valid JSON"),
        ("garbled \x07 words", "not valid JSON"),
        ('{"a": NaN}', "NaN"),
        ("[1, 2]", "not a document"),
        ('"text"', "not a document"),
        ("[" * 100_000, "nested too deeply"),
        ('{"a": ' + "9" * 5_000 + "}", "digits"),
        ('{"kind": "memory", "key": "a\x00b", "data": {}}', "not valid JSON"),
        ('{"cortex_export": 2, "domain": "project"}', "another version"),
        ('{"cortex_export": 1, "domain": "everyone"}', "domain"),
    ],
)
def test_a_line_that_is_no_document_is_named(
    cortex: Cortex, lines: list[str], tmp_path: Path, line: str, told: str
) -> None:
    path = tmp_path / "all.jsonl"
    path.write_text("\n".join([*lines[:3], line, *lines[3:]]), "utf-8")
    message = refused(cortex, path)
    assert "all.jsonl, line 4: " in message
    assert told in message


def test_a_file_cut_off_is_noticed_wherever_it_ends(cortex: Cortex, lines: list[str], tmp_path: Path) -> None:
    path = tmp_path / "all.jsonl"
    for count in (1, 2, len(lines) // 2, len(lines) - 1):
        path.write_text("\n".join(lines[:count]) + "\n", "utf-8")
        assert "cut off" in refused(cortex, path)
    path.write_text("\n".join(lines)[:-10], "utf-8")
    assert f"line {len(lines)}" in refused(cortex, path)
    path.write_text("\n".join([*lines, lines[1]]), "utf-8")
    assert "after the end" in refused(cortex, path)
    path.write_text("\n".join(lines[1:]), "utf-8")
    assert "header" in refused(cortex, path)
    path.write_text(" \n\n", "utf-8")
    assert cortex.backups.import_from([path]).left_out == [f"{path}: it holds nothing of the kind json"]
    # Who cuts on purpose says so.
    path.write_text("\n".join([*lines[:-1], END]), "utf-8")
    assert cortex.backups.import_from([path]).added


def test_what_is_no_text_is_refused_with_its_line(cortex: Cortex, lines: list[str], tmp_path: Path) -> None:
    path = tmp_path / "all.jsonl"
    path.write_bytes("\n".join(lines[:2]).encode() + b"\n\xff\xfe\n")
    assert "all.jsonl, line 3: it is not UTF-8" in refused(cortex, path)
    path.write_bytes("\n".join(lines).encode("utf-16"))
    assert "all.jsonl, line 1: it is not UTF-8" in cortex.backups.import_from([path]).left_out[0]
    note = tmp_path / "note.md"
    note.write_bytes(b"fine\nnot \xff fine")
    assert cortex.backups.import_from([note]).left_out == [f"{note}, line 2: it is not UTF-8"]
    with pytest.raises(InvalidInput, match=r"nowhere\.jsonl"):
        cortex.backups.import_from([tmp_path / "nowhere.jsonl"])


def test_a_line_without_end_does_not_fill_the_memory(
    cortex: Cortex, lines: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cortex_py.parts.backup.transfer.import_reader.LINE_BYTES", 4_000)
    path = tmp_path / "all.jsonl"
    path.write_text("\n".join([lines[0], '{"kind": "' + "x" * 5_000 + '"}', END]), "utf-8")
    assert "all.jsonl, line 2: the line is longer" in refused(cortex, path)


def test_an_id_that_occurs_twice_is_refused_unless_it_is_the_same(
    cortex: Cortex, lines: list[str], tmp_path: Path
) -> None:
    first = next(n for n, line in enumerate(lines) if '"kind":"memory"' in line)
    other = json.loads(lines[first])
    other["data"]["content"] = "something else"
    path = tmp_path / "all.jsonl"
    path.write_text("\n".join([*lines[:-1], json.dumps(other), lines[-1]]), "utf-8")
    message = refused(cortex, path)
    assert f"line {len(lines)}: " in message
    assert f"line {first + 1}, and differs" in message
    other["data"].update(domain="user", project_id=None)
    header = '{"cortex_export":1,"domain":"user","space":"user:local"}'
    path.write_text("\n".join([*lines[:-1], header, json.dumps(other), lines[-1]]), "utf-8")
    assert "is also in" in refused(cortex, path)
    path.write_text("\n".join(lines), "utf-8")
    cortex.backups.import_from([path, path])
    assert json.loads(lines[first])["key"] in {one.key for one in _documents(cortex)}


def _documents(cortex: Cortex) -> list[Any]:
    with cortex.store.database.read() as session:
        return list(cortex.store.documents.scan(session, cortex.project.id))


def test_one_bad_export_of_several_keeps_all_back(cortex: Cortex, lines: list[str], tmp_path: Path) -> None:
    good, bad, plain = tmp_path / "good.jsonl", tmp_path / "bad.jsonl", tmp_path / "plain.jsonl"
    good.write_text("\n".join(lines), "utf-8")
    bad.write_text("\n".join(lines[:-1]), "utf-8")
    plain.write_text('{"content": "fine"}\n', "utf-8")
    with pytest.raises(InvalidInput, match=r"bad\.jsonl: its last line is missing"):
        cortex.backups.import_from([good, plain, bad])
    assert state(cortex) == []


def test_a_bad_record_of_another_program_keeps_nothing_back(cortex: Cortex, lines: list[str], tmp_path: Path) -> None:
    plain, folder = tmp_path / "plain.jsonl", tmp_path / "notes"
    plain.write_text('{"content": "fine"}\n{"content": "odd", "namespace": "nowhere"}\n', "utf-8")
    folder.mkdir()
    (folder / "a.md").write_text("a note")
    (folder / "b.md").write_text("---\ntags: {a: 1}\n---\nanother")
    taken = cortex.backups.import_from([folder, plain])
    assert taken.added == {"memory": 2}
    assert [one.removeprefix(f"{tmp_path}/").partition(": ")[0] for one in taken.left_out] == [
        "notes/b.md, line 2",
        "plain.jsonl, line 2",
    ]


def test_a_fault_while_it_is_written_takes_all_of_it_back(
    cortex: Cortex, lines: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "all.jsonl"
    path.write_text("\n".join(lines), "utf-8")
    with monkeypatch.context() as patch:
        patch.setattr(type(cortex.store.documents), "mend", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            cortex.backups.import_from([path])
    assert state(cortex) == []
    assert cortex.backups.import_from([path]).added


def test_limits_hold_for_what_is_imported(home: Path, project: Path, lines: list[str], tmp_path: Path) -> None:
    with opened(home, project, max_content_bytes=1_000) as cortex:
        path = tmp_path / "all.jsonl"
        path.write_text(edited(lines, "memory", lambda d: d["data"].update(content="x" * 1_001))[0], "utf-8")
        assert "max_content_bytes" in refused(cortex, path, ContentTooLarge)
        long = {"version": 1, "recorded_at": 0, "operation": "capture", "namespace": "context", "tags": []}
        past = {**long, "source": None, "content": "x" * 1_001}
        path.write_text(edited(lines, "memory", lambda d: d["data"].update(versions=[past], version=2))[0], "utf-8")
        refused(cortex, path, ContentTooLarge)
        plain = tmp_path / "plain.jsonl"
        plain.write_text(json.dumps({"content": "x" * 1_001}), "utf-8")
        note = tmp_path / "note.md"
        note.write_text("x" * 1_001)
        taken = cortex.backups.import_from([plain, note])
        assert (taken.added, len(taken.left_out)) == ({}, 2)
        assert all("larger than 1,000 bytes" in one for one in taken.left_out)


def with_secrets(lines: list[str]) -> str:
    """An export with a secret wherever somebody could put one."""
    past = {"version": 1, "recorded_at": 0, "operation": "capture", "namespace": "context", "tags": [], "source": None}
    changes: dict[str, Change] = {
        "memory": lambda d: d["data"].update(
            content=f"token {SECRET} here", versions=[{**past, "content": f"once {SECRET}"}], version=2
        ),
        "branch": lambda d: d["data"].update(topic=f"rotate {SECRET}"),
        "entity": lambda d: d.update(key=f"entity_{SECRET}", data={**d["data"], "properties": {"token": SECRET}}),
        "relationship": lambda d: d["data"].update(evidence=f"it says {SECRET}"),
        "verification": lambda d: d["data"].update(result=json.dumps({"found": SECRET})),
        "saved": lambda d: [one.update(content=f"{one['content']} {SECRET}") for one in d["data"]["versions"]],
        "session": lambda d: d["data"].update(task=f"use {SECRET}"),
        "reference": lambda d: d["data"].update(task=f"use {SECRET}"),
    }
    for kind, change in changes.items():
        text, _ = edited(lines, kind, change)
        lines = text.split("\n")
    return "\n".join(lines)


def test_no_secret_comes_in_under_the_policy(home: Path, project: Path, lines: list[str], tmp_path: Path) -> None:
    path = tmp_path / "all.jsonl"
    path.write_text(with_secrets(lines), "utf-8")
    with opened(home, project, secrets="redact") as cortex:
        taken = cortex.backups.import_from([path])
        whole = b"\n".join(state(cortex))
        assert SECRET.encode() not in whole
        assert whole.count(b"[REDACTED:github-token]") >= 7
        assert taken.redacted == 6
        assert {one.split()[0] for one in taken.left_out if "secret" in one} == {"entity", "verification"}
        assert SECRET not in repr(taken)
        marked = [one.data["redactions"] for one in _documents(cortex) if one.kind == "memory"]
        assert ["github-token"] in marked
        again = cortex.backups.import_from([path])
        assert (again.added, again.conflicts) == ({}, [])
    for number, kind in enumerate(("memory", "branch", "entity", "verification")):
        one = next(line for line in with_secrets(lines).split("\n") if SECRET in line and f'"kind": "{kind}"' in line)
        path.write_text("\n".join([lines[0], one, END]), "utf-8")
        with opened(tmp_path / f"strict-{number}", project, secrets="block") as cortex:
            message = refused(cortex, path, ContentBlocked)
            assert "line 2" in message
            assert SECRET not in message
    path.write_text(with_secrets(lines), "utf-8")
    with opened(tmp_path / "open", project, secrets="allow") as cortex:
        assert cortex.backups.import_from([path]).redacted == 0
        assert b"\n".join(state(cortex)).count(SECRET.encode()) >= 8


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_damage_is_refused_or_harmless(
    cortex: Cortex, lines: list[str], tmp_path: Path, data: st.DataObject
) -> None:
    """Whatever becomes of the bytes: an error of ours or a result, and a dry run writes nothing."""
    whole = "\n".join(lines).encode()
    low = data.draw(st.integers(0, len(whole)))
    high = data.draw(st.integers(low, min(len(whole), low + 40)))
    path = tmp_path / "all.jsonl"
    path.write_bytes(whole[:low] + data.draw(st.binary(max_size=12)) + whole[high:])
    try:
        done = cortex.backups.import_from([path], dry_run=True)
    except CortexError as error:
        assert "all.jsonl" in str(error)
    else:
        assert done.dry_run
    assert state(cortex) == []
