"""A scan remembers what a project's files say, does only what changed since, and never touches what people said."""

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from cortex_py import Cortex, Memory, NewMemory
from cortex_py.core.embedding.backends.backend import Backend
from cortex_py.core.errors import InvalidInput
from cortex_py.parts.context.scan import check_mode
from inside import store_of

from forking import python_command
from helpers import FakeClock, git
from stub_backend import StubBackend

SCANNER = Path(__file__).with_name("scanner.py")
PARSER = '''\
"""Reads settings."""

import json
from pathlib import Path

LIMIT = 10


def read_settings(path: Path) -> dict:
    """Read the settings file and refuse a broken one."""
    text = path.read_text()
    settings = json.loads(text)
    if not isinstance(settings, dict):
        raise ValueError("settings must be an object")
    return settings


def write_settings(path: Path, settings: dict) -> None:
    """Write the settings file atomically."""
    temporary = path.with_suffix(".tmp")
    temporary.write_text(json.dumps(settings, indent=2))
    temporary.replace(path)
'''
# Long enough for each function to be a part of its own.
LONG_PARSER = PARSER + "".join(
    f'''

def step_{name}(value: int) -> int:
    """Step {name} of the pipeline: {words}."""
'''
    + "".join(f"    value_{name}_{i} = value * {i} + len('{words} {i}')\n" for i in range(14))
    + f"    return value_{name}_13\n"
    for name, words in (("alpha", "washing the copper"), ("beta", "drying the wool"), ("gamma", "cutting the slate"))
)
README = "# Weaver\n\nA loom controller for small mills.\n\n## Setup\n\nRun `make setup` and plug in the loom.\n"


class CountingBackend(StubBackend):
    """Remembers what it was asked to embed."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def embed(self, texts: Sequence[str], *, normalize: bool = True) -> NDArray[np.float32]:
        self.texts += texts
        return super().embed(texts, normalize=normalize)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    folder = tmp_path / "repo"
    (folder / "src" / "weaver").mkdir(parents=True)
    git(folder, "init", "-q", "-b", "main")
    (folder / "README.md").write_text(README)
    (folder / "pyproject.toml").write_text('[project]\nname = "weaver"\nversion = "1"\n')
    (folder / "src" / "weaver" / "settings.py").write_text(LONG_PARSER)
    (folder / "src" / "weaver" / "util.py").write_text("def helper():\n    return 'a small helper'\n")
    (folder / ".gitignore").write_text("ignored/\n")
    (folder / "logo.png").write_bytes(b"\x89PNG\r\n\x1a\n\0\0")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "first")
    return folder


@pytest.fixture
def backend() -> CountingBackend:
    return CountingBackend()


@pytest.fixture
def weaver(home: Path, tree: Path, clock: FakeClock, backend: CountingBackend) -> Iterator[Cortex]:
    with Cortex.open(home, project=tree, clock=clock, backend=backend) as opened:
        yield opened


def _parts(cortex: Cortex, path: str | None = None) -> list[Memory]:
    found = cortex.memories.recall(filter="kind:file" + (f" path:{path}" if path else ""), limit=1000).results
    return sorted((hit.memory for hit in found), key=lambda one: (one.path or "", one.first_line or 0))


def _ids(cortex: Cortex, path: str | None = None) -> dict[str, str]:
    return {one.content: one.id for one in _parts(cortex, path)}


# -- what is taken -------------------------------------------------------------------------------


def test_none_remembers_the_project_alone(weaver: Cortex, backend: CountingBackend) -> None:
    scanned = weaver.contexts.initialize(mode="none")
    assert (scanned.mode, scanned.files_scanned, scanned.contexts_created) == ("none", 0, 0)
    assert scanned.project == weaver.project
    assert (_parts(weaver), backend.texts) == ([], [])
    assert check_mode(" Full ") == "full"
    with pytest.raises(InvalidInput) as caught:
        weaver.contexts.initialize(mode="deep")
    assert caught.value.field == "mode"


def test_a_light_scan_takes_what_a_newcomer_reads(weaver: Cortex) -> None:
    scanned = weaver.contexts.initialize(mode="light")
    parts = _parts(weaver)
    assert {one.path for one in parts} >= {"README.md", "pyproject.toml"}
    assert "src/weaver/util.py" not in {one.path for one in parts}
    assert scanned.left_out["not light"] >= 2
    assert scanned.contexts_created == len(parts)


def test_a_full_scan_takes_every_text_and_counts_truly(weaver: Cortex) -> None:
    scanned = weaver.contexts.initialize(mode="full")
    parts = _parts(weaver)
    paths = {one.path for one in parts}
    assert paths == {".gitignore", "README.md", "pyproject.toml", "src/weaver/settings.py", "src/weaver/util.py"}
    assert (scanned.files_scanned, scanned.files_changed, scanned.files_removed) == (5, 5, 0)
    assert (scanned.contexts_created, scanned.contexts_updated) == (len(parts), 0)
    assert scanned.left_out == {"binary": 1}
    for one in parts:
        lines = (Path(weaver.project.root or "") / (one.path or "")).read_text().splitlines()
        assert one.kind == "file"
        assert one.source == f"{one.path}:{one.first_line}-{one.last_line}"
        shown = "\n".join(lines[(one.first_line or 1) - 1 : one.last_line])
        assert one.content.strip() in shown


def test_light_then_full_then_light_loses_nothing(weaver: Cortex, tree: Path, backend: CountingBackend) -> None:
    (tree / "README.md").write_text(README + "".join(f"\n## Part {n}\n\n{'word ' * 150}{n}\n" for n in range(20)))
    weaver.contexts.initialize(mode="light")
    head = _ids(weaver, "README.md")
    assert 0 < sum(map(len, head)) <= 6_000
    weaver.contexts.initialize(mode="full")
    whole = _ids(weaver)
    assert head.items() <= whole.items()
    assert "word word 19" in "".join(whole)
    backend.texts.clear()
    again = weaver.contexts.initialize(mode="light")
    assert (again.files_changed, again.files_removed, again.contexts_created) == (0, 0, 0)
    assert _ids(weaver) == whole
    assert backend.texts == []


# -- the second scan -----------------------------------------------------------------------------


def test_a_second_scan_reads_nothing(weaver: Cortex, backend: CountingBackend, monkeypatch: pytest.MonkeyPatch) -> None:
    first = weaver.contexts.initialize(mode="full")
    before = _parts(weaver)
    backend.texts.clear()
    read: list[str] = []
    monkeypatch.setattr("cortex_py.parts.context.scan.analyse", lambda path, text: read.append(path))
    second = weaver.contexts.initialize(mode="full")
    assert second.files_scanned == first.files_scanned
    assert (second.files_changed, second.contexts_created, second.contexts_updated) == (0, 0, 0)
    assert (read, backend.texts) == ([], [])
    assert _parts(weaver) == before


def test_a_changed_file_keeps_the_records_of_what_did_not_change(
    weaver: Cortex, tree: Path, backend: CountingBackend, clock: FakeClock
) -> None:
    weaver.contexts.initialize(mode="full")
    file = tree / "src" / "weaver" / "settings.py"
    before = {one.symbol: one for one in _parts(weaver, "src/weaver/settings.py")}
    assert {"step_alpha", "step_beta", "step_gamma"} <= before.keys()
    file.write_text(LONG_PARSER.replace("drying the wool", "spinning the wool", 1))
    backend.texts.clear()
    clock.advance(hours=1)
    scanned = weaver.contexts.initialize(mode="full")
    assert (scanned.files_changed, scanned.contexts_created, scanned.contexts_updated) == (1, 0, 1)
    assert len(backend.texts) < 3
    after = {one.symbol: one for one in _parts(weaver, "src/weaver/settings.py")}
    changed = after.pop("step_beta")
    old = before.pop("step_beta")
    assert after == before
    assert (changed.id, changed.version, changed.created_at) == (old.id, 2, old.created_at)
    assert "spinning the wool" in changed.content
    versions = weaver.memories.history(changed.id)
    assert [one.content for one in versions] == [old.content, changed.content]
    assert [one.operation for one in versions] == ["capture", "update"]


def test_lines_that_move_move_with_their_record(weaver: Cortex, tree: Path, backend: CountingBackend) -> None:
    weaver.contexts.initialize(mode="full")
    before = {one.symbol: one for one in _parts(weaver, "src/weaver/settings.py")}
    (tree / "src" / "weaver" / "settings.py").write_text(LONG_PARSER.replace("LIMIT = 10", "LIMIT = 10\nMORE = 11"))
    backend.texts.clear()
    weaver.contexts.initialize(mode="full")
    moved = {one.symbol: one for one in _parts(weaver, "src/weaver/settings.py")}["step_gamma"]
    old = before["step_gamma"]
    assert (moved.id, moved.version) == (old.id, 1)
    assert moved.first_line == (old.first_line or 0) + 1
    assert moved.source == f"{moved.path}:{moved.first_line}-{moved.last_line}"
    assert not any("cutting the slate" in text for text in backend.texts)


def test_a_deleted_file_disappears(weaver: Cortex, tree: Path) -> None:
    weaver.memories.capture("a note")
    weaver.contexts.initialize(mode="full")
    count = len(_parts(weaver))
    assert weaver.memories.reindex(project_id=weaver.project.id).indexed == count + 1
    assert weaver.memories.recall("helper", filter="kind:file", mode="text").total == 1
    (tree / "src" / "weaver" / "util.py").unlink()
    scanned = weaver.contexts.initialize(mode="full")
    assert (scanned.files_removed, scanned.files_scanned) == (1, 4)
    for mode in ("hybrid", "vector", "text"):
        found = weaver.memories.recall("small helper", filter="kind:file", mode=mode, limit=100).results
        assert "src/weaver/util.py" not in {hit.memory.path for hit in found}
    assert _parts(weaver, "src/weaver/util.py") == []
    with store_of(weaver).database.read() as session:
        assert store_of(weaver).scans.symbols(session, weaver.project.id, name="helper") == []
    # A light scan also forgets what is gone, but not what is not light.
    (tree / "README.md").unlink()
    assert weaver.contexts.initialize(mode="light").files_removed == 1
    assert _parts(weaver, "README.md") == []
    assert _parts(weaver, "src/weaver/settings.py") != []


def test_a_renamed_file_keeps_its_records_and_is_found_by_its_new_path(
    weaver: Cortex, tree: Path, clock: FakeClock
) -> None:
    weaver.contexts.initialize(mode="full")
    path = "src/weaver/settings.py"
    (tree / path).write_text(LONG_PARSER.replace("drying the wool", "spinning the wool", 1))
    weaver.contexts.initialize(mode="full")
    before = _ids(weaver, path)
    git(tree, "mv", path, "src/weaver/configuration.py")
    scanned = weaver.contexts.initialize(mode="full")
    assert (scanned.files_changed, scanned.files_removed) == (1, 0)
    assert (scanned.contexts_created, scanned.contexts_updated) == (0, 0)
    assert _ids(weaver, "src/weaver/configuration.py") == before
    assert _parts(weaver, path) == []
    beta = next(one for one in _parts(weaver, "src/weaver/configuration.py") if one.symbol == "step_beta")
    assert len(weaver.memories.history(beta.id)) == 2
    assert (beta.source or "").startswith("src/weaver/configuration.py:")
    found = weaver.memories.recall("configuration", filter="kind:file", mode="text").results
    assert {hit.memory.path for hit in found} == {"src/weaver/configuration.py"}
    with store_of(weaver).database.read() as session:
        assert [path for path, _ in store_of(weaver).scans.symbols(session, weaver.project.id, name="step_beta")] == [
            "src/weaver/configuration.py"
        ]


def test_a_file_that_was_moved_and_edited_keeps_the_rest(weaver: Cortex, tree: Path) -> None:
    weaver.contexts.initialize(mode="full")
    path = "src/weaver/settings.py"
    before = {one.symbol: one.id for one in _parts(weaver, path)}
    (tree / "lib").mkdir()
    (tree / "lib" / "settings.py").write_text(LONG_PARSER.replace("drying the wool", "spinning the wool", 1))
    (tree / path).unlink()
    scanned = weaver.contexts.initialize(mode="full")
    assert (scanned.contexts_created, scanned.contexts_updated, scanned.files_removed) == (0, 1, 0)
    assert {one.symbol: one.id for one in _parts(weaver, "lib/settings.py")} == before


def test_a_changed_file_is_not_taken_for_a_deleted_one_of_the_same_name(weaver: Cortex, tree: Path) -> None:
    for folder in ("one", "two"):
        (tree / folder).mkdir()
        (tree / folder / "__init__.py").write_text(f"NAME = 'the package {folder}'\n")
    weaver.contexts.initialize(mode="full")
    gone = _parts(weaver, "two/__init__.py")[0].id
    (tree / "one" / "__init__.py").write_text("NAME = 'the package one, changed'\n")
    (tree / "two" / "__init__.py").unlink()
    scanned = weaver.contexts.initialize(mode="full")
    assert (scanned.files_changed, scanned.files_removed) == (1, 1)
    (part,) = _parts(weaver, "*/__init__.py")
    assert (part.path, part.content.strip()) == ("one/__init__.py", "NAME = 'the package one, changed'")
    assert part.id != gone


def test_files_that_take_over_the_content_of_others(weaver: Cortex, tree: Path) -> None:
    weaver.contexts.initialize(mode="full")
    util, readme = tree / "src" / "weaver" / "util.py", tree / "README.md"
    texts = util.read_text(), readme.read_text()
    util.write_text(texts[1])
    readme.write_text(texts[0])
    scanned = weaver.contexts.initialize(mode="full")
    assert (scanned.files_changed, scanned.files_removed) == (2, 0)
    assert "small helper" in _parts(weaver, "README.md")[0].content
    util.write_text(LONG_PARSER)
    (tree / "src" / "weaver" / "settings.py").unlink()
    scanned = weaver.contexts.initialize(mode="full")
    assert (scanned.files_changed, scanned.files_removed) == (1, 1)
    assert {one.path for one in _parts(weaver)} == {".gitignore", "README.md", "pyproject.toml", "src/weaver/util.py"}


def test_a_file_that_becomes_ignored_empty_or_generated_is_forgotten(weaver: Cortex, tree: Path) -> None:
    (tree / "draft.md").write_text("# Draft\n\nA secret plan for the looms.\n")
    weaver.contexts.initialize(mode="full")
    gone = ("draft.md", "src/weaver/util.py", "README.md")
    assert all(_parts(weaver, path) for path in gone)
    (tree / ".gitignore").write_text("draft.md\n")
    (tree / "src" / "weaver" / "util.py").write_text("# Code generated by tool. DO NOT EDIT.\nx = 1\n")
    (tree / "README.md").write_text("")
    weaver.contexts.initialize(mode="full")
    assert [_parts(weaver, path) for path in gone] == [[], [], []]


@pytest.mark.parametrize("policy", ["redact", "block"])
def test_secrets_in_files_are_never_kept_and_refuse_no_file(
    home: Path, tree: Path, clock: FakeClock, backend: CountingBackend, policy: str
) -> None:
    key = "AKIA" + "QYLPMN5HFIQR7XYA"
    with Cortex.open(home, project=tree, clock=clock, backend=backend, secrets=policy) as weaver:
        for region in ("north", "south"):
            (tree / "src" / "weaver" / "cloud.py").write_text(f'aws_access_key_id = "{key}"\nREGION = "{region}"\n')
            weaver.contexts.initialize(mode="full")
            (part,) = _parts(weaver, "src/weaver/cloud.py")
            assert part.redactions
            assert key not in part.content
            assert f'REGION = "{region}"' in part.content
        assert not any(key in text for text in backend.texts)


# -- interruptions -------------------------------------------------------------------------------


def _many(tree: Path, count: int) -> None:
    for n in range(count):
        (tree / "src" / "weaver" / f"many_{n:04}.py").write_text(f"def many_{n}():\n    return 'number {n}'\n")


@pytest.mark.slow
def test_a_scan_that_is_stopped_keeps_what_it_did(weaver: Cortex, tree: Path, backend: CountingBackend) -> None:
    _many(tree, 500)

    class Enough(Exception):
        pass

    def stop(done: int, total: int) -> None:
        assert total == 505
        if done == 200:
            raise Enough

    with pytest.raises(Enough):
        weaver.contexts.initialize(mode="full", progress=stop)
    kept = _ids(weaver)
    assert 200 <= len({one.path for one in _parts(weaver)}) < 505
    backend.texts.clear()
    told: list[tuple[int, int]] = []
    rest = weaver.contexts.initialize(mode="full", progress=lambda *pair: told.append(pair))
    assert rest.files_scanned == 505
    assert rest.files_changed == 505 - len(_scanned_paths(kept, weaver))
    assert told == [(n, rest.files_changed) for n in range(rest.files_changed + 1)]
    assert kept.items() <= _ids(weaver).items()
    assert len(backend.texts) == rest.contexts_created


def _scanned_paths(kept: dict[str, str], cortex: Cortex) -> set[str]:
    return {one.path or "" for one in _parts(cortex) if one.id in kept.values()}


@pytest.mark.slow
def test_a_scan_that_was_killed_is_resumed(home: Path, tree: Path) -> None:
    _many(tree, 900)
    command = [*python_command(), str(SCANNER), str(home), str(tree), "full"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    told = [process.stdout.readline() for _ in range(3)]
    process.kill()
    process.wait(60)
    # It has gone when nobody can write there any more.
    with process.stdout:
        process.stdout.read()
    assert told[0] == "0 905\n"
    with Cortex.open(home, project=tree, backend=StubBackend()) as opened:
        assert opened.check() == []
        done = {one.path for one in _parts(opened)}
        before = _ids(opened)
        rest = opened.contexts.initialize(mode="full")
        assert rest.files_changed == 905 - len(done)
        parts = _parts(opened)
        assert len({one.path for one in parts}) == 905
        assert len({(one.path, one.first_line) for one in parts}) == len(parts)
        assert before.items() <= _ids(opened).items()


def test_another_process_sees_what_one_has_scanned(home: Path, tree: Path, weaver: Cortex) -> None:
    assert weaver.memories.recall("small helper", filter="kind:file").total == 0
    command = [*python_command(), str(SCANNER), str(home), str(tree), "full"]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60)
    assert done.stdout.splitlines()[-1].split()[0] == "5"
    # By words: the vectors of the stub mean nothing, and code is ranked mostly by vectors.
    found = weaver.memories.recall("small helper", filter="kind:file", mode="text").results
    assert found[0].memory.path == "src/weaver/util.py"
    assert weaver.contexts.initialize(mode="full").files_changed == 0


def test_two_scans_at_once_remember_each_part_once(
    home: Path, tree: Path, weaver: Cortex, clock: FakeClock, backend: CountingBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, waiting = backend.embed, []

    def meddling(texts: Sequence[str], *, normalize: bool = True) -> NDArray[np.float32]:
        if waiting:
            waiting.pop()
            with Cortex.open(home, project=tree, clock=clock, backend=StubBackend()) as second:
                second.contexts.initialize(mode="full")
        return real(texts, normalize=normalize)

    def scan() -> list[Memory]:
        waiting.append(True)
        weaver.contexts.initialize(mode="full")
        assert not waiting
        parts = _parts(weaver)
        assert len({(one.path, one.first_line) for one in parts}) == len(parts)
        return parts

    monkeypatch.setattr(backend, "embed", meddling)
    scan()
    settings = tree / "src" / "weaver" / "settings.py"
    settings.write_text(LONG_PARSER.replace("drying the wool", "spinning the wool", 1))
    (tree / "src" / "weaver" / "util.py").unlink()
    changed = [one for one in scan() if one.symbol == "step_beta"]
    assert [(one.version, "spinning" in one.content) for one in changed] == [(2, True)]
    git(tree, "mv", "src/weaver/settings.py", "src/weaver/moved.py")
    assert {one.path for one in scan()} == {".gitignore", "README.md", "pyproject.toml", "src/weaver/moved.py"}
    assert weaver.contexts.initialize(mode="full").files_changed == 0


# -- notes and files -----------------------------------------------------------------------------

NOTES = (
    "The loom controller restarts when the wool is wet.", "We decided to read the settings file once at start.",
    "Payments are retried three times with a growing pause.", "def helper(): return 'a small helper'",
)  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["hybrid", "vector", "text"])
def test_files_change_nothing_about_notes(
    home: Path, tree: Path, clock: FakeClock, model: Backend, retrieval: str, mode: str
) -> None:
    with Cortex.open(home, project=tree, clock=clock, backend=model) as opened:
        # Most of the store is notes, so that nothing narrows the text index down to them.
        others = [f"{word} of the mill, number {n}" for n, word in enumerate(("Repair", "Order", "Visit") * 10)]
        opened.memories.capture_many(NewMemory(content=note) for note in (*NOTES, *others))
        queries = ("settings file", "why does the loom restart", "small helper", "step of the pipeline")

        def answers() -> list[tuple[str, float, float]]:
            pages = [opened.memories.recall(query, filter="kind:note", mode=mode) for query in queries]
            return [(hit.memory.content, hit.score, hit.raw_score) for page in pages for hit in page.results]

        before = answers()
        everything = [
            (hit.memory.id, hit.score) for hit in opened.memories.recall(queries[0], mode=mode, limit=100).results
        ]
        opened.contexts.initialize(mode="full")
        assert answers() == before
        mixed = opened.memories.recall(queries[0], mode=mode, limit=100).results
        assert [(hit.memory.id, hit.score) for hit in mixed if hit.memory.kind == "note"] == everything
        assert any(hit.memory.kind == "file" for hit in mixed)
        assert [hit.score for hit in mixed] == sorted((hit.score for hit in mixed), reverse=True)


def test_a_note_outranks_a_part_of_a_file_with_the_same_words(
    home: Path, tree: Path, clock: FakeClock, model: Backend
) -> None:
    text = "The tariff of the mill is computed per started hour and never rounded down."
    (tree / "TARIFF.md").write_text(text + "\n")
    with Cortex.open(home, project=tree, clock=clock, backend=model) as opened:
        opened.contexts.initialize(mode="full")
        note = opened.memories.capture(text)
        for mode in ("hybrid", "vector", "text"):
            found = opened.memories.recall("how is the tariff of the mill computed", mode=mode).results
            assert found[0].memory.id == note.id
            assert any(hit.memory.path == "TARIFF.md" for hit in found)


@pytest.mark.parametrize("mode", ["hybrid", "vector", "text"])
def test_the_kind_can_be_chosen_in_every_mode(weaver: Cortex, mode: str) -> None:
    weaver.memories.capture("the loom and the settings")
    weaver.contexts.initialize(mode="full")

    def kinds(filter: str) -> set[str]:
        return {hit.memory.kind for hit in weaver.memories.recall("loom settings", filter=filter, mode=mode).results}

    assert kinds("kind:note") == {"note"}
    assert kinds("kind:file") == {"file"}
    assert kinds("") == kinds("kind:note,file") == {"note", "file"}
    assert kinds("-kind:file") == {"note"}
    assert kinds("-kind:note") == {"file"}
    assert kinds("kind:note -kind:note") == set()
    assert kinds("kind:file path:README.md") == {"file"}


def test_pages_of_notes_and_files_join_to_the_whole(weaver: Cortex) -> None:
    for n in range(6):
        weaver.memories.capture(f"the loom and its settings, note {n}")
    weaver.contexts.initialize(mode="full")
    whole = weaver.memories.recall("loom settings", limit=100)
    assert {hit.memory.kind for hit in whole.results} == {"note", "file"}
    assert whole.total == len(whole.results)
    pages = [weaver.memories.recall("loom settings", limit=4, offset=low) for low in range(0, whole.total + 4, 4)]
    assert {page.total for page in pages} == {whole.total}
    assert [hit for page in pages for hit in page.results] == list(whole.results)


def test_listing_counting_and_completing_show_notes_unless_asked(weaver: Cortex) -> None:
    note = weaver.memories.capture("the only note", tags=["only"])
    weaver.contexts.initialize(mode="full")
    parts = _parts(weaver)
    assert [hit.memory.id for hit in weaver.memories.recall().results] == [note.id]
    assert weaver.memories.recall().total == 1
    assert weaver.memories.recall(filter="kind:file").total == len(parts)
    assert weaver.memories.recall(filter="kind:note,file").total == len(parts) + 1
    status = weaver.memories.status()
    assert (status.total_count, status.namespace_counts) == (1, {"context": 1})
    assert weaver.memories.ids() == (note.id,)
    assert weaver.memories.tags() == (("only", 1),)
    assert [node.id for node in weaver.contexts.graph().nodes] == [note.id]
    assert weaver.memories.get(parts[0].id) == parts[0]


def test_the_domain_of_a_person_holds_no_files(weaver: Cortex) -> None:
    weaver.memories.capture("my own settings", domain="user")
    weaver.contexts.initialize(mode="full")
    for query in ("settings", None):
        assert weaver.memories.recall(query, filter="kind:file", domain="user").total == 0
        assert weaver.memories.recall(query, filter="kind:file", domain="project").total > 0
        found = weaver.memories.recall(query, domain="user").results
        assert [hit.memory.content for hit in found] == ["my own settings"]


def test_symbols_and_imports_are_kept(weaver: Cortex) -> None:
    weaver.contexts.initialize(mode="full")
    scans, project = store_of(weaver).scans, weaver.project.id
    with store_of(weaver).database.read() as session:
        ((path, symbol),) = scans.symbols(session, project, name="read_settings")
        assert (path, symbol.kind, symbol.line) == ("src/weaver/settings.py", "function", 9)
        names = [one.name for _, one in scans.symbols(session, project, path="src/weaver/settings.py")]
        assert names[-5:] == ["read_settings", "write_settings", "step_alpha", "step_beta", "step_gamma"]
        assert [(path, one.names) for path, one in scans.imports(session, project, module="pathlib")] == [
            ("src/weaver/settings.py", ("Path",))
        ]
        assert [one.module for _, one in scans.imports(session, project)] == ["json", "pathlib"]


def test_idle_parts_are_packed_and_still_recognised(weaver: Cortex, tree: Path, clock: FakeClock) -> None:
    weaver.contexts.initialize(mode="full")
    before = {one.symbol: one.id for one in _parts(weaver, "src/weaver/settings.py")}
    clock.advance(hours=1)
    assert weaver.upkeep().records > 3
    (tree / "src" / "weaver" / "settings.py").write_text(LONG_PARSER.replace("drying the wool", "spinning", 1))
    scanned = weaver.contexts.initialize(mode="full")
    assert (scanned.contexts_created, scanned.contexts_updated) == (0, 1)
    after = _parts(weaver, "src/weaver/settings.py")
    assert {one.symbol: one.id for one in after} == before
    assert {one.symbol for one in after if not one.compressed} >= {"step_beta"}
    git(tree, "mv", "src/weaver/settings.py", "src/weaver/moved.py")
    weaver.contexts.initialize(mode="full")
    assert {one.symbol: one.content for one in _parts(weaver, "src/weaver/moved.py")} == {
        one.symbol: one.content for one in after
    }


# -- places --------------------------------------------------------------------------------------


def _scan(home: Path, folder: Path) -> tuple[int, str]:
    with Cortex.open(home, project=folder, backend=StubBackend()) as opened:
        return opened.contexts.initialize(mode="full").files_scanned, opened.project.id


def test_a_sub_folder_scans_the_whole_repository_and_a_worktree_itself(home: Path, tree: Path, tmp_path: Path) -> None:
    git(tree, "worktree", "add", "-q", "-b", "side", str(tmp_path / "side"))
    (tmp_path / "side" / "only.md").write_text("# Only here\n")
    count, project = _scan(home, tmp_path / "side")
    assert count == 6
    assert _scan(home, tree) == _scan(home, tree / "src" / "weaver") == (5, project)


def test_a_plain_folder_and_a_fresh_repository_are_scanned_without_what_they_ignore(home: Path, project: Path) -> None:
    for name in ("notes.md", "skipped.md"):
        (project / name).write_text("# Notes\n")
    (project / ".gitignore").write_text("skipped.md\n")
    with Cortex.open(home, project=project, backend=StubBackend()) as opened:
        opened.contexts.initialize(mode="full")
        assert {one.path for one in _parts(opened)} == {"notes.md", ".gitignore"}
    git(project, "init", "-q")
    assert _scan(home, project)[0] == 2


@pytest.mark.parametrize("mode", ["full", "light"])
def test_a_bare_repository_and_an_empty_folder_have_nothing_to_scan(
    home: Path, project: Path, tmp_path: Path, mode: str
) -> None:
    git(tmp_path, "init", "-q", "--bare", "bare.git")
    for folder in (project, tmp_path / "bare.git"):
        with Cortex.open(home, project=folder, backend=StubBackend()) as opened:
            scanned = opened.contexts.initialize(mode=mode)
            assert (scanned.files_scanned, scanned.contexts_created, scanned.files_removed) == (0, 0, 0)


@pytest.mark.skipif(sys.platform != "linux", reason="file names are bytes only there")
def test_names_that_are_no_text_are_scanned_and_forgotten(weaver: Cortex, tree: Path) -> None:
    name = os.fsencode(tree / "src") + b"/caf\xe9.py"
    Path(os.fsdecode(name)).write_text("def odd_name():\n    return 'coffee'\n")
    assert weaver.contexts.initialize(mode="full").files_scanned == 6
    part = next(one for one in _parts(weaver) if one.symbol == "odd_name" or "coffee" in one.content)
    assert part.path == "src/caf\\xe9.py"
    assert weaver.contexts.initialize(mode="full").files_changed == 0
    Path(os.fsdecode(name)).unlink()
    assert weaver.contexts.initialize(mode="full").files_removed == 1


def test_another_project_is_scanned_by_its_path(weaver: Cortex, project: Path) -> None:
    (project / "other.md").write_text("# Other\n\nThe other project's words.\n")
    scanned = weaver.contexts.initialize(project, "full")
    assert scanned.project.id != weaver.project.id
    assert scanned.files_scanned == 1
    assert _parts(weaver) == []
    for kinds in ("file", "note,file"):
        found = weaver.memories.recall(filter=f"kind:{kinds} project:{scanned.project.id}").results
        assert [hit.memory.path for hit in found] == ["other.md"]


def test_notes_and_files_are_listed_together_in_the_order_of_time(weaver: Cortex, clock: FakeClock) -> None:
    weaver.memories.capture("before")
    clock.advance(minutes=1)
    weaver.contexts.initialize(mode="full")
    clock.advance(minutes=1)
    weaver.memories.capture("after")
    whole = weaver.memories.recall(filter="kind:note,file", limit=100)
    listed = [hit.memory for hit in whole.results]
    assert (listed[0].content, listed[-1].content, whole.total) == ("after", "before", len(listed))
    assert {one.kind for one in listed[1:-1]} == {"file"}
    pages = [weaver.memories.recall(filter="kind:note,file", limit=3, offset=low) for low in range(0, whole.total, 3)]
    assert [hit.memory for page in pages for hit in page.results] == listed
