"""What takes time: a scan tells how far it is and heeds a cancellation; a live server packs what lies idle."""

import re
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import numpy as np
import pytest
from numpy.typing import NDArray

from cortex_py import Cortex
from cortex_py.core.config import ToolBound
from cortex_py.core.errors import StoreBusy
from cortex_py.core.memory.compression import CompressionResult
from cortex_py.surfaces.mcp.server import MemoryServer, Upkeep, build_server
from timing import MINUTE

from clients import Caller, connected
from helpers import FakeClock
from stub_backend import StubBackend
from witness import Witness

SECONDS = MINUTE
# Two batches of what is written at once, and a part of a third.
FILES = 450
BATCH = 192


class HeldBackend(StubBackend):
    """Waits before its first embedding until it is let go."""

    def __init__(self) -> None:
        self.held, self.released = threading.Event(), threading.Event()

    def embed(self, texts: Sequence[str], *, normalize: bool = True) -> NDArray[np.float32]:
        self.held.set()
        assert self.released.wait(SECONDS)
        return super().embed(texts, normalize=normalize)


@pytest.fixture
def backend() -> HeldBackend:
    return HeldBackend()


@pytest.fixture
def cortex(home: Path, project: Path, clock: FakeClock, backend: HeldBackend) -> Iterator[Cortex]:
    with Cortex.open(home, project=project, clock=clock, backend=backend) as opened:
        yield opened


@pytest.fixture
def large(project: Path) -> Path:
    for number in range(FILES):
        (project / f"note{number}.md").write_text(f"Shelf{number} holds the spare parts\n", "utf-8")
    return project


class Scan:
    """A scan under way, whose progress is heard."""

    def __init__(self, caller: Caller, project: Path) -> None:
        self.told: list[tuple[float, float | None, str | None]] = []
        self.begun = threading.Event()
        arguments = {"project_path": str(project), "mode": "full"}
        call = partial(caller.client.call_tool_mcp, "initialize_context", arguments, progress_handler=self._hear)
        self.future: Future[Any] = caller.portal.start_task_soon(call)

    async def _hear(self, progress: float, total: float | None, message: str | None) -> None:
        self.told.append((progress, total, message))
        self.begun.set()

    def result(self) -> dict[str, Any]:
        answer: dict[str, Any] = self.future.result(SECONDS).structured_content
        return answer


def test_a_scan_tells_how_far_it_is_and_how_long_it_will_take(
    cortex: Cortex, backend: HeldBackend, large: Path, mode: str
) -> None:
    backend.released.set()
    with connected(build_server(cortex), mode) as caller:
        scan = Scan(caller, large)
        assert scan.result()["files_scanned"] == FILES
    assert [(done, total) for done, total, _ in scan.told] == [(done, FILES) for done in range(FILES + 1)]
    messages = [message or "" for _, _, message in scan.told]
    assert (messages[0], messages[-1]) == (f"0 of {FILES}", f"{FILES} of {FILES}")
    assert all(re.fullmatch(rf"\d+ of {FILES}, about \d+ (s|min) left", one) for one in messages[1:-1])


def test_a_cancelled_scan_leaves_a_whole_store_and_a_repeat_completes_it(
    cortex: Cortex, backend: HeldBackend, large: Path, mode: str
) -> None:
    server, witness = build_server(cortex), Witness()
    server.middleware.append(witness)
    with connected(server, mode) as caller:
        scan = Scan(caller, large)
        assert scan.begun.wait(SECONDS)
        assert backend.held.wait(SECONDS)
        scan.future.cancel()
        assert witness.noticed.wait(SECONDS)
        backend.released.set()
        # The same client goes on, whatever the server still has to finish.
        assert caller.call("subcog_namespaces")["namespaces"]
    # The batch under way was finished, and no other begun.
    assert _scanned(cortex) == BATCH
    assert cortex.check() == []
    with connected(server, mode) as caller:
        again = Scan(caller, large)
        told = again.result()
        id = told["project_id"]
        assert (told["files_scanned"], told["contexts_created"]) == (FILES, FILES - BATCH)
        for number in (0, FILES - 1):
            best = caller.call("search_context", project_id=id, query=f"Shelf{number}", min_score=0.0)["results"][0]
            assert best["metadata"]["source"].startswith(f"note{number}.md")
    assert again.told[-1][:2] == (FILES - BATCH, FILES - BATCH)
    assert _scanned(cortex) == FILES
    assert cortex.check() == []


def _scanned(cortex: Cortex) -> int:
    with cortex._store.database.read() as session:
        return len(cortex._store.scans.files(session, cortex.project.id))


# -- upkeep ----------------------------------------------------------------------------------------


class Rounds:
    """Stands before a Cortex's upkeep: counts its rounds, and can make them fail."""

    def __init__(self, cortex: Cortex, monkeypatch: pytest.MonkeyPatch) -> None:
        self._upkeep: Callable[..., CompressionResult] = cortex.upkeep
        self._done = threading.Condition()
        self._count = 0
        self.packed = 0
        self.errors: list[Exception] = []
        monkeypatch.setattr(cortex, "upkeep", self._round)

    def _round(self, stop: Callable[[], bool]) -> CompressionResult:
        try:
            if self.errors:
                raise self.errors.pop()
            done = self._upkeep(stop)
            self.packed += done.records
            return done
        finally:
            with self._done:
                self._count += 1
                self._done.notify_all()

    def wait(self) -> None:
        """Until a round that begins from now on has ended."""
        with self._done:
            wanted = self._count + 2
            assert self._done.wait_for(lambda: self._count >= wanted, SECONDS)


@pytest.fixture
def live(cortex: Cortex, backend: HeldBackend, monkeypatch: pytest.MonkeyPatch) -> MemoryServer:
    """A server that looks after its store all the time."""
    backend.released.set()
    monkeypatch.setattr("cortex_py.surfaces.mcp.server.EVERY_SECONDS", 0.001)
    return build_server(cortex)


LONG = "The warehouse has three floors, and each of them stores pallets. " * 40


def test_a_live_server_packs_what_lies_idle_and_loads_it_as_it_was(
    cortex: Cortex, live: MemoryServer, clock: FakeClock, project: Path, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rounds = Rounds(cortex, monkeypatch)
    with connected(live, mode):
        rounds.wait()  # another client came and went
    with connected(live, mode) as caller:
        id = caller.call("initialize_context", project_path=str(project), mode="none")["project_id"]
        branch = caller.call("create_branch", project_id=id, branch_topic="Floors")["branch_id"]
        caller.call("update_memory", project_id=id, branch_id=branch, content=LONG, role="user")
        (found,) = caller.call("search_context", project_id=id, query="floors", min_score=0.0)["results"]
        place = {"project_id": id, "branch_id": branch, "context_id": found["context_id"]}
        clock.advance(minutes=29)
        rounds.wait()
        assert caller.call("load_context", **place)["metadata"]["compressed"] is False
        # It was used just now: the half hour begins again.
        clock.advance(minutes=29)
        rounds.wait()
        assert rounds.packed == 0
        clock.advance(minutes=2)
        rounds.wait()
        assert rounds.packed == 1
        loaded = caller.call("load_context", **place)
        assert (loaded["content"], loaded["metadata"]["compressed"]) == (LONG, True)
        assert loaded["metadata"]["size_bytes"] == len(LONG.encode())
        again = caller.call("search_context", project_id=id, query="floors", min_score=0.0)["results"]
        assert [one["context_id"] for one in again] == [found["context_id"]]


@pytest.mark.parametrize("error", [StoreBusy("Another process writes."), RuntimeError("boom")], ids=type)
def test_upkeep_that_fails_is_tried_again(
    cortex: Cortex, live: MemoryServer, mode: str, error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    rounds = Rounds(cortex, monkeypatch)
    rounds.errors.append(error)
    with connected(live, mode) as caller:
        rounds.wait()
        assert not rounds.errors
        assert caller.call("subcog_namespaces")["namespaces"]


def test_a_server_that_only_reads_packs_nothing(home: Path, project: Path, clock: FakeClock) -> None:
    with Cortex.open(home, project=project, clock=clock, backend=StubBackend(), read_only=True) as cortex:
        assert ToolBound(read_only=True) in cortex.settings.tool_bounds
        anyio.run(Upkeep(cortex, 0.001).run)
