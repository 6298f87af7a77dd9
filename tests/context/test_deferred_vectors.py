"""A large scan is found by words at once; its vectors follow, and what is missing is said and never forgotten."""

import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from cortex_py import Cortex
from cortex_py.core.jobs import is_in_background
from cortex_py.core.memory import lifecycle
from cortex_py.parts.context import scan
from inside import store_of

from helpers import git
from hook_runs import wait_for
from stub_backend import StubBackend

SCANNER = Path(__file__).with_name("scanner.py")
FILES = 260


class GatedBackend(StubBackend):
    """Embeds queries at once, and many texts only once the gate is open."""

    def __init__(self) -> None:
        self.gate = threading.Event()

    def embed(self, texts: Sequence[str], *, normalize: bool = True) -> NDArray[np.float32]:
        if len(texts) > 1:
            assert self.gate.wait(60)
        return super().embed(texts, normalize=normalize)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    folder = tmp_path / "repo"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    for n in range(FILES):
        (folder / f"mill_{n}.py").write_text(f'def mill_{n}():\n    """Grind number {n} of the grain."""\n')
    return folder


def _vectors(cortex: Cortex) -> list[tuple[str, bytes | None]]:
    with store_of(cortex).database.read() as session:
        rows = session.rows("SELECT m.path, c.vector FROM chunk c JOIN memory m ON m.num = c.num ORDER BY m.path, c.n")
    return [(row[0], row[1]) for row in rows]


def test_a_large_scan_is_found_by_words_first_and_has_the_same_vectors_later(
    tmp_path: Path, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Cortex.open(tmp_path / "direct", project=tree, backend=StubBackend()) as cortex:
        assert cortex.contexts.initialize(mode="full").pending_vectors == 0
        wanted = _vectors(cortex)
    monkeypatch.setattr(scan, "DEFERRED_BYTES", 1000)
    backend = GatedBackend()
    with Cortex.open(tmp_path / "deferred", project=tree, backend=backend) as cortex:
        scanned = cortex.contexts.initialize(mode="full")
        assert scanned.pending_vectors == scanned.contexts_created == cortex.memories.status().pending_vectors == FILES
        page = cortex.memories.recall("grain number 77", filter="kind:file")
        assert page.results[0].memory.path == "mill_77.py"
        assert any("words only" in warning for warning in page.warnings)
        backend.gate.set()
        cortex.memories.fill_vectors()
        assert cortex.memories.status().pending_vectors == 0
        assert _vectors(cortex) == wanted
        assert cortex.memories.recall("grain number 77", filter="kind:file").warnings == ()
        # Few new files beside many that are known get theirs at once.
        (tree / "extra.py").write_text("def extra():\n    return 'sacks of flour'\n" * 80)
        assert cortex.contexts.initialize(mode="full").pending_vectors == 0
        assert cortex.check() == []


def test_the_process_that_scanned_computes_the_vectors_in_the_background(
    home: Path, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scan, "DEFERRED_BYTES", 1000)
    with Cortex.open(home, project=tree, backend=StubBackend()) as cortex:
        assert cortex.contexts.initialize(mode="full").pending_vectors
        assert cortex.jobs.join(60)
        assert cortex.memories.status().pending_vectors == 0


def test_the_model_computes_them_in_the_background_and_never_what_a_caller_waits_for(
    home: Path, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scan, "DEFERRED_BYTES", 1000)
    seen: set[tuple[bool, bool]] = set()  # whether it was a part of a file, and whether in the background

    class Noting(StubBackend):
        def embed(self, texts: Sequence[str], *, normalize: bool = True) -> NDArray[np.float32]:
            seen.update(("mill" in text, is_in_background()) for text in texts)
            return super().embed(texts, normalize=normalize)

    with Cortex.open(home, project=tree, backend=Noting()) as cortex:
        cortex.contexts.initialize(mode="full")
        cortex.memories.fill_vectors()
        cortex.memories.capture("The grain comes by barge.")
        cortex.memories.recall("Where is the water wheel?")
    assert seen == {(True, True), (False, False)}


def test_a_record_that_changes_while_its_vector_is_computed_gets_the_right_one(
    home: Path, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scan, "DEFERRED_BYTES", 1000)
    backend = GatedBackend()
    with Cortex.open(home, project=tree, backend=backend) as cortex:
        cortex.contexts.initialize(mode="full")
        (tree / "mill_5.py").write_text("def mill_5():\n    return 'a mill of another kind'\n")
        filling = threading.Thread(target=cortex.memories.fill_vectors)
        filling.start()
        cortex.contexts.initialize(mode="full")
        backend.gate.set()
        filling.join(60)
        cortex.memories.fill_vectors()
        (found,) = [vector for path, vector in _vectors(cortex) if path == "mill_5.py"]
        text = "mill_5.py mill_5\ndef mill_5():\n    return 'a mill of another kind'\n"
        assert found == StubBackend().embed([text])[0].tobytes()


@pytest.mark.slow
def test_what_a_killed_process_left_is_computed_by_the_next(home: Path, tree: Path) -> None:
    command = [sys.executable, str(SCANNER), str(home), str(tree), "full", "endless"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    told = process.stdout.readline()
    process.kill()
    process.wait(60)
    process.stdout.close()
    assert told == f"pending {FILES}\n"
    with Cortex.open(home, project=tree, backend=StubBackend()) as cortex:
        assert cortex.memories.status().pending_vectors == FILES
        assert cortex.memories.recall("grain number 77", filter="kind:file").results[0].memory.path == "mill_77.py"
        cortex.upkeep()
        assert cortex.memories.status().pending_vectors == 0
        assert all(vector is not None for _, vector in _vectors(cortex))
        assert cortex.check() == []


class RecordingBackend(GatedBackend):
    """Remembers what it embedded, batch by batch, and stops after a number of batches until the gate is open."""

    def __init__(self, free: int) -> None:
        super().__init__()
        self.free = free
        self.batches: list[list[str]] = []

    def embed(self, texts: Sequence[str], *, normalize: bool = True) -> NDArray[np.float32]:
        if len(texts) > 1:
            self.batches.append(list(texts))
            assert len(self.batches) <= self.free or self.gate.wait(60)
        return StubBackend().embed(texts, normalize=normalize)


def test_the_first_part_of_each_file_comes_first_and_is_found_by_meaning_before_the_others(
    home: Path, tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for n in range(3):
        functions = "\n\n".join(f"def part_{n}_{k}():\n    return 'millstone {k}'\n" for k in range(200))
        (tree / f"large_{n}.py").write_text(f'"""Keeps the accounts of the brewery {n}."""\n\n{functions}')
    with Cortex.open(tmp_path / "direct", project=tree, backend=StubBackend()) as cortex:
        cortex.contexts.initialize(mode="full")
        wanted = _vectors(cortex)
    monkeypatch.setattr(scan, "DEFERRED_BYTES", 1000)
    monkeypatch.setattr(lifecycle, "_FILL_BATCH", 20)
    # All batches of first parts and one of others, which is stored while the next waits.
    backend = RecordingBackend(15)
    with Cortex.open(home, project=tree, backend=backend) as cortex:
        scanned = cortex.contexts.initialize(mode="full")
        assert scanned.pending_outlines == FILES + 3 < scanned.pending_vectors
        wait_for(lambda: 0 < cortex.memories.status().pending_vectors < scanned.pending_vectors - FILES - 3)
        status = cortex.memories.status()
        assert status.pending_outlines == 0
        page = cortex.memories.recall("accounts brewery", filter="kind:file")
        assert "brewery" in page.results[0].memory.content
        assert any(hit.signals.meaning > 0 for hit in page.results)
        assert page.words_only is None
        assert any("what they begin with" in warning for warning in page.warnings)
        # What has no vector yet is found by its words.
        found = cortex.memories.recall("part_2_199", filter="kind:file").results[0]
        assert "def part_2_199()" in found.memory.content
        assert found.signals.meaning == 0
        backend.gate.set()
        cortex.memories.fill_vectors()
        assert _vectors(cortex) == wanted
        assert cortex.memories.recall("part_2_199", filter="kind:file").warnings == ()
    firsts = [text for batch in backend.batches[:14] for text in batch]
    assert len(firsts) == FILES + 3
    assert all("mill_" in text or "brewery" in text for text in firsts)
