"""Imports of damaged, hostile and interrupted sources: nothing crashes, nothing half, the same end after a kill."""

from __future__ import annotations

import io
import json
import os
import random
import signal
import sqlite3
import subprocess
import warnings
import zipfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from import_kinds import KINDS, Kind, chatgpt_conversations, claude_line, lines, text

from cases import each
from cortex_py import Cortex
from cortex_py.core.errors import InvalidInput
from cortex_py.parts.backup.transfer.readers.parsing import JsonItem, json_entries

from forking import python_command
from helpers import FakeClock
from homes import opened

FUZZED = [kind for kind in KINDS if kind.name != "chatgpt"]


@pytest.fixture
def cortex(home: Path, project: Path, clock: FakeClock) -> Iterator[Cortex]:
    with opened(home, project, clock) as opened_home:
        yield opened_home


def stored(cortex: Cortex) -> list[tuple[str, str, str | None, int]]:
    found = [
        hit.memory
        for kind in ("note", "turn")
        for hit in cortex.memories.recall(filter=f"kind:{kind}", limit=1_000).results
    ]
    return sorted((one.kind, one.content, one.source, one.version) for one in found)


@pytest.mark.parametrize("kind", FUZZED, ids=lambda kind: kind.name)
def test_damaged_files_give_whole_records_or_none(cortex: Cortex, tmp_path: Path, kind: Kind) -> None:
    """Bytes are cut, changed and put in at random places; every record that comes in is one that is in the file."""
    chance = random.Random(kind.name)
    for n in range(12):
        source = kind.make(tmp_path / f"source{n}")
        for path in [one for one in (source.rglob("*") if source.is_dir() else [source]) if one.is_file()]:
            data = bytearray(path.read_bytes())
            for _ in range(chance.randint(1, 4)):
                at = chance.randrange(len(data) + 1)
                match chance.randrange(3):
                    case 0:
                        del data[at : at + chance.randint(1, 40)]
                    case 1:
                        data[at:at] = chance.choice([b"\xff", b'"', b"{", b"]", b"\n", b"\0", b"\\", b"\xed\xa0\x80"])
                    case _:
                        data[at : at + 1] = bytes([chance.randrange(256)])
            path.write_bytes(bytes(data))
        try:
            taken = cortex.backups.import_from([source])
        except InvalidInput as error:
            assert str(source) in error.message
            continue
        again = cortex.backups.import_from([source])
        assert (again.added, again.replaced) == ({}, {}), taken


VALUES = st.recursive(
    st.none() | st.integers() | st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)
)


@given(st.lists(VALUES, max_size=6), st.integers(1, 40), st.booleans())
def test_entries_of_an_array_are_cut_as_a_parser_would(values: list[object], size: int, spaced: bool) -> None:
    data = json.dumps(values, indent=1 if spaced else None, ensure_ascii=False).encode("utf-8", "surrogatepass")

    class Slow:
        """Gives a few bytes at a time."""

        def __init__(self) -> None:
            self.left = data

        def read(self, most: int) -> bytes:
            part, self.left = self.left[: min(size, most)], self.left[min(size, most) :]
            return part

    try:
        data.decode()
    except UnicodeDecodeError:
        return
    found = list(json_entries(Slow()))  # type: ignore[arg-type]
    assert [one.value for one in found if isinstance(one, JsonItem)] == values
    assert all(isinstance(one, JsonItem) for one in found)


def test_one_damaged_conversation_of_an_export_is_left_out(cortex: Cortex, tmp_path: Path) -> None:
    whole = json.dumps(chatgpt_conversations()[0])
    path = text(tmp_path / "conversations.json", f'[{{"mapping": 5}}, {{"mapping": {{"a" 1}}}}, {whole}]')
    taken = cortex.backups.import_from([path])
    assert taken.added == {"turn": 3}
    assert len(taken.left_out) == 2


EXPORTS = [kind for kind in KINDS if kind.name in ("chatgpt", "claude-ai")]


def conversations(kind: Kind, folder: Path, count: int) -> bytes:
    """The JSON of an export with so many conversations, which all say the same."""
    given = kind.make(folder)
    if given.suffix == ".zip":
        (one,) = json.loads(zipfile.ZipFile(given).read("conversations.json"))
    else:
        (one,) = json.loads((given / "conversations.json").read_bytes())
    named = {"chatgpt": "id", "claude-ai": "uuid"}[kind.name]
    return json.dumps([{**one, named: f"c-{n}", "filler": "x" * 100_000} for n in range(count)]).encode()


def archived(data: bytes, method: int, *more: tuple[str, bytes]) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", method) as archive, warnings.catch_warnings():
        # Some of the names come twice.
        warnings.simplefilter("ignore", UserWarning)
        for name, content in (*more, ("conversations.json", data)):
            archive.writestr(name, content)
    return made.getvalue()


@each("kind", EXPORTS, ids=lambda kind: kind.name)
def test_damaged_archives_give_whole_records_or_none(cortex: Cortex, tmp_path: Path, kind: Kind) -> None:
    """Bytes are cut and changed in the data, the headers and the directory of an archive."""
    chance = random.Random(kind.name)
    data = conversations(kind, tmp_path / kind.name, 6)
    for n in range(40):
        made = bytearray(archived(data, chance.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2))))
        directory, size = made.rindex(b"PK\1\2"), len(made)
        for _ in range(chance.randint(1, 2)):
            at = min(len(made), chance.randrange(*chance.choice(((0, 80), (80, directory), (directory, size)))))
            match chance.randrange(4):
                case 0:
                    del made[at : at + chance.randint(1, 40)]
                case 1:
                    del made[at:]
                case _:
                    made[at : at + 1] = bytes([chance.randrange(256)])
        path = tmp_path / f"{kind.name}-{n}.zip"
        path.write_bytes(made)
        taken = cortex.backups.import_from([path])
        assert taken.left_out or sum(taken.added.values()) + taken.unchanged == 6 * len(kind.contents), n
        assert {content for _, content, _, _ in stored(cortex)} <= {one for every in EXPORTS for one in every.contents}


@each("kind", EXPORTS, ids=lambda kind: kind.name)
def test_a_wrong_checksum_lets_nothing_of_a_member_in(cortex: Cortex, tmp_path: Path, kind: Kind) -> None:
    data = conversations(kind, tmp_path / kind.name, 40)
    made = archived(data, zipfile.ZIP_STORED).replace(
        kind.contents[0].encode(), kind.contents[0].encode()[:-1] + b"!", 1
    )
    (path := tmp_path / f"{kind.name}.zip").write_bytes(made)
    before = stored(cortex)
    taken = cortex.backups.import_from([path])
    assert (taken.added, taken.left_out) == ({}, [f"{path}!conversations.json: the archive is damaged (BadZipFile)"])
    assert stored(cortex) == before


@each("kind", EXPORTS, ids=lambda kind: kind.name)
def test_odd_names_and_members_of_an_archive(cortex: Cortex, tmp_path: Path, kind: Kind) -> None:
    """Names that come twice or in no encoding, and an archive in an archive, keep nobody from the conversations."""
    data = conversations(kind, tmp_path / kind.name, 1)
    inner = archived(data, zipfile.ZIP_DEFLATED)
    more = (
        ("conversations.json", data),
        ("caf\u00e9/\u2603.json", b"{}"),
        ("raw-NAME.json", b"{}"),
        ("nested.zip", inner),
        ("../conversations.json", data),
        ("C:\\conversations.json", data),
        ("bomb.json", b"[" + b" " * 20_000_000 + b"]"),
    )
    made = archived(data, zipfile.ZIP_DEFLATED, *more).replace(b"raw-NAME", b"raw-\xff\xfe\x80\x81")
    (path := tmp_path / f"{kind.name}.zip").write_bytes(made)
    taken = cortex.backups.import_from([path])
    assert taken.added == {"turn": len(kind.contents)}
    told = "\n".join(taken.left_out)
    assert told.count("its name leads out of the archive") == 2
    assert "bomb.json: it unpacks to more than 100 times its size" in told
    assert "nested.zip: archives in an archive are not opened" in told
    again = cortex.backups.import_from([path])
    assert (again.added, again.replaced, again.gone) == ({}, {}, [])


def test_archives_that_lie_are_refused(cortex: Cortex, tmp_path: Path) -> None:
    path = tmp_path / "export.zip"
    link = zipfile.ZipInfo("conversations.json")
    link.external_attr = 0o120777 << 16
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("../../evil.md", "Outside.")
        archive.writestr("/abs.md", "Absolute.")
        archive.writestr(link, "/etc/passwd")
        archive.writestr("bomb.txt", b"a" * 20_000_000)
        archive.writestr("good.md", "Inside.")
    taken = cortex.backups.import_from([path])
    assert [one.partition("!")[2] for one in taken.left_out] == [
        "../../evil.md: its name leads out of the archive",
        "/abs.md: its name leads out of the archive",
        "bomb.txt: it unpacks to more than 100 times its size",
        "conversations.json: it is a symbolic link, and those are not followed",
    ]
    assert [one[1] for one in stored(cortex)] == ["Inside."]
    path.write_bytes(path.read_bytes()[:200])
    assert "no zip archive that can be read" in cortex.backups.import_from([path]).left_out[0]


def test_links_and_pipes_in_a_folder_are_not_opened(cortex: Cortex, tmp_path: Path) -> None:
    folder = tmp_path / "notes"
    text(folder / "a.md", "A note.")
    outside = text(tmp_path / "outside.md", "Outside.")
    (folder / "b.md").symlink_to(outside)
    (folder / "c").symlink_to(tmp_path)
    os.mkfifo(folder / "d.md")
    taken = cortex.backups.import_from([folder])
    assert [one[1] for one in stored(cortex)] == ["A note."]
    assert [one.removeprefix(f"{folder}/").split(":")[0] for one in taken.left_out] == ["b.md", "c", "d.md"]


def test_a_secret_in_a_turn_is_removed_even_where_notes_with_one_are_refused(
    home: Path, project: Path, tmp_path: Path
) -> None:
    secret = "ghp_" + "a1B2c3D4e5" * 3 + "f6G7h8"
    path = lines(tmp_path / "s.jsonl", claude_line("user", "u1", f"my token is {secret} ok"))
    with opened(home, project, secrets="block") as cortex:
        taken = cortex.backups.import_from([path])
        assert (taken.added, taken.redacted) == ({"turn": 1}, 1)
        assert [one[1] for one in stored(cortex)] == ["my token is [REDACTED:github-token] ok"]


def test_a_hostile_database_runs_nothing_and_leaves_no_trace(cortex: Cortex, tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    with closing(sqlite3.connect(path)) as made:
        made.executescript(
            "CREATE VIEW history AS WITH RECURSIVE n(memory_id) AS (SELECT '1' UNION ALL SELECT memory_id || '1' "
            "FROM n) SELECT memory_id, 'x' AS new_memory, 'ADD' AS event, 0 AS created_at, 0 AS is_deleted, "
            "'' AS actor_id FROM n; "
            "CREATE TABLE history_ (memory_id, new_memory, event, created_at, is_deleted, actor_id);"
        )
    before = sorted(tmp_path.iterdir()), path.read_bytes()
    taken = cortex.backups.import_from([path], kind="mem0")
    assert taken.added == {}
    assert taken.left_out == [f"{path}: it has none of the tables that are read"]
    assert (sorted(tmp_path.iterdir()), path.read_bytes()) == before


KILLED = """
import os, sys
from contextlib import contextmanager
from pathlib import Path
sys.path[:0] = [{tests!r}, {here!r}]
from homes import opened
home, project, point, source = sys.argv[1:]
with opened(Path(home), Path(project)) as cortex:
    database, left = cortex.store.database, [int(point)]
    write = database.write
    @contextmanager
    def counted(*spaces, **how):
        left[0] -= 1
        with write(*spaces, **how) as session:
            yield session
            if left[0] == 0 and int(point) % 2:
                os.kill(os.getpid(), 9)
        if left[0] == 0:
            os.kill(os.getpid(), 9)
    database.write = counted
    cortex.backups.import_from([Path(source)])
"""


@pytest.mark.slow
@pytest.mark.sqlite_only
def test_a_killed_import_is_repeated_and_ends_in_the_same_state(
    home: Path, project: Path, tmp_path: Path, clock: FakeClock
) -> None:
    """Killed inside and behind its write transactions, one after the other, until one run comes through."""
    source = tmp_path / "source"
    for kind in KINDS:
        kind.make(source / kind.name)
    lines(source / "long.jsonl", *(claude_line("user", f"n{n}", f"Question {n} about the build") for n in range(1_200)))
    with opened(tmp_path / "clean", project, clock) as clean:
        clean.backups.import_from([source])
        expected = stored(clean)
    tests = Path(__file__).parents[1]
    script = KILLED.format(tests=str(tests), here=str(tests / "backup"))
    killed = 0
    for point in range(2, 60):
        command = [*python_command(), "-c", script, str(home), str(project), str(point), str(source)]
        done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=300)
        if done.returncode == 0:
            break
        assert done.returncode == -signal.SIGKILL, done.stderr[-2_000:]
        killed += 1
    assert killed >= 5
    with opened(home, project, clock) as cortex:
        assert stored(cortex) == expected
        assert cortex.backups.import_from([source]).added == {}
        assert cortex.check() == []
