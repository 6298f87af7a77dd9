"""One opened Cortex in several threads: nothing lost, nothing mixed up."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from cortex_py import Cortex

from stub_backend import StubBackend

THREADS, EACH = 8, 25


@pytest.mark.usefixtures("retrieval")
def test_threads_share_one_cortex(home: Path, project: Path) -> None:
    with Cortex.open(home, project=project, backend=StubBackend()) as cortex:

        def work(number: int) -> list[str]:
            ids = []
            for turn in range(EACH):
                word = f"t{number}x{turn}"
                ids.append(cortex.memories.capture(f"note {word}").id)
                assert cortex.memories.recall(word, mode="text").results[0].memory.id == ids[-1]
                assert cortex.memories.recall("note", limit=3).total >= 1
            return ids

        with ThreadPoolExecutor(THREADS) as pool:
            made = [identity for ids in pool.map(work, range(THREADS)) for identity in ids]
        assert len(set(made)) == THREADS * EACH
        assert cortex.memories.recall(limit=1).total == THREADS * EACH
        assert cortex.check() == []
