"""One opened Cortex in several threads: nothing lost, nothing mixed up."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

import pytest

from cortex_py import Cortex, NewMemory
from cortex_py.core.store.search.vectors import VectorMatrix

from stub_backend import StubBackend

THREADS, EACH = 8, 10


@pytest.mark.slow
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


def test_a_slow_search_delays_no_other_and_sees_its_own_moment(
    home: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cortex_py.core.store.search.process_space.SMALL", -1)
    entered, go_on = Event(), Event()
    nearest = VectorMatrix.nearest

    def slow_at_first(matrix: VectorMatrix, *given: object) -> object:
        if not entered.is_set():
            entered.set()
            assert go_on.wait(60)
        return nearest(matrix, *given)  # type: ignore[arg-type]

    with Cortex.open(home, project=project, backend=StubBackend()) as cortex, ThreadPoolExecutor(1) as pool:
        notes = [f"note number {n} about topic{n % 5}" for n in range(40)]
        ids = [one.id for one in cortex.memories.capture_many([NewMemory(content=note) for note in notes])]
        monkeypatch.setattr(VectorMatrix, "nearest", slow_at_first)
        slow = pool.submit(lambda: cortex.memories.recall("topic3", limit=50))
        assert entered.wait(60)
        # Meanwhile records come, change and go, and others find them so.
        new = cortex.memories.capture("a note about topic3 that came later").id
        cortex.memories.update(ids[3], content="no longer about that")
        cortex.memories.delete(ids[8], hard=True)
        found = {hit.memory.id for hit in cortex.memories.recall("topic3", limit=50).results}
        assert new in found
        assert ids[8] not in found
        go_on.set()
        seen = {hit.memory.id: hit.memory.content for hit in slow.result().results}
    assert new not in seen
    assert seen.get(ids[3], notes[3]) == notes[3]
    assert ids[13] in seen
