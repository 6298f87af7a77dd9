"""`cortex.doctor()`: what is well, what is not, what would be sent where; never a key, and nothing is sent."""

from __future__ import annotations

from pathlib import Path

from cortex_py import Cortex
from cortex_py.core.embedding.backends.backend import Backend
from cortex_py.core.errors import EmbeddingError
from cortex_py.diagnosis import Diagnosis, _servers
from llm.chat_server import ChatServer, refusal

from helpers import FakeClock
from stub_backend import StubBackend

KEY = "sk-test-0123456789abcdef"


def checks(report: Diagnosis) -> dict[str, bool]:
    return {one.name: one.well for one in report.checks}


def told(report: Diagnosis, name: str) -> str:
    return next(one.told for one in report.checks if one.name == name)


def test_a_store_without_a_language_model_is_well_and_sends_nothing(cortex: Cortex, home: Path, model: Backend) -> None:
    report = cortex.doctor()
    names = ("store", "encryption", "embedding model", "language model", "snapshots", "personal data")
    assert checks(report) == dict.fromkeys(names, True)
    assert told(report, "personal data") == "mark, not synced: none found"
    assert report.outbound == ()
    assert str(home) in told(report, "store")
    assert told(report, "embedding model") == model.fingerprint
    assert "none configured" in told(report, "language model")


def test_a_language_model_is_named_with_its_host_and_not_asked(home: Path, project: Path, clock: FakeClock) -> None:
    with (
        ChatServer() as server,
        Cortex.open(
            home,
            project=project,
            clock=clock,
            backend=StubBackend(),
            llm_provider="openai",
            llm_model="qwen3",
            llm_url=server.url,
            llm_api_key=KEY,
            llm_daily_tokens=123_456,
        ) as cortex,
    ):
        report = cortex.doctor()
        host = server.root.removeprefix("http://")
        assert told(report, "language model") == f"openai qwen3 at {host}, 0 of 123456 tokens today"
        assert [(one.purpose, one.host) for one in report.outbound] == [("language model", host)]
        assert not server.asked
        assert KEY not in repr(report)
        # Five failures in a row let it rest, and that is told.
        server.usual = refusal(401, f"the key {KEY} is wrong")
        notes = [cortex.memories.capture(f"note number {n}") for n in range(6)]
        for note in notes:
            cortex.memories.enrich(note.id)
        report = cortex.doctor()
        assert checks(report)["language model"] is False
        assert KEY not in repr(report)


def test_settings_that_cannot_work_are_told(home: Path, project: Path, clock: FakeClock) -> None:
    with Cortex.open(
        home, project=project, clock=clock, backend=StubBackend(), llm_provider="openai", llm_api_key=KEY
    ) as cortex:
        report = cortex.doctor()
        assert checks(report)["language model"] is False
        assert "llm_model" in told(report, "language model")
        assert report.outbound == ()
        assert KEY not in repr(report)


def test_an_embedding_server_is_named_and_not_asked(home: Path, project: Path, clock: FakeClock) -> None:
    with Cortex.open(
        home,
        project=project,
        clock=clock,
        embedding_backend="openai",
        embedding_url="http://127.0.0.1:9/v1",
        embedding_model="e5",
        embedding_dimensions=32,
        embedding_api_key=KEY,
    ) as cortex:
        report = cortex.doctor()
        assert checks(report)["embedding model"] is True
        assert "nothing was sent" in told(report, "embedding model")
        assert [(one.purpose, one.host) for one in report.outbound] == [("embedding", "127.0.0.1:9")]
        assert KEY not in repr(report)


def test_a_collector_of_traces_is_named(home: Path, project: Path, clock: FakeClock) -> None:
    address = "http://me:secret@collector.example:4318"
    with Cortex.open(home, project=project, clock=clock, backend=StubBackend(), otel_endpoint=address) as cortex:
        report = cortex.doctor()
        assert [(one.purpose, one.host) for one in report.outbound] == [("traces", "collector.example:4318")]
        assert "secret" not in repr(report)


class Broken(StubBackend):
    def embed(self, texts, *, normalize: bool = True):
        raise EmbeddingError("The model file is damaged.")


def test_a_model_that_does_not_work_is_told(home: Path, project: Path, clock: FakeClock) -> None:
    with Cortex.open(home, project=project, clock=clock, backend=Broken()) as cortex:
        report = cortex.doctor()
        assert [name for name, well in checks(report).items() if not well] == ["embedding model"]
        assert told(report, "embedding model") == "The model file is damaged."


def test_a_damaged_store_is_told_and_does_not_stop_the_report(home: Path, project: Path, clock: FakeClock) -> None:
    with Cortex.open(home, project=project, clock=clock, backend=StubBackend()) as cortex:
        cortex.memories.capture("kept")
        with cortex._store.database.read() as session:
            (root,) = session.rows("SELECT rootpage FROM sqlite_schema WHERE name = 'memory_digest'")[0]
            (size,) = session.rows("PRAGMA page_size")[0]
    # An index that opening does not look at.
    content = bytearray(cortex.settings.database.read_bytes())
    content[(root - 1) * size : root * size] = b"\xff" * size
    cortex.settings.database.write_bytes(bytes(content))
    with Cortex.open(home, project=project, clock=clock, backend=StubBackend()) as again:
        report = again.doctor()
        assert [name for name, well in checks(report).items() if not well] == ["store"]
        assert told(report, "store")


def test_a_damaged_snapshot_and_the_target_of_sync_are_told(home: Path, project: Path, clock: FakeClock) -> None:
    address = "https://me@dav.example.org/cortex"
    with Cortex.open(home, project=project, clock=clock, backend=StubBackend(), cloud_url=address) as cortex:
        cortex.memories.capture("something")
        made = cortex.backups.create()
        assert checks(cortex.doctor())["snapshots"]
        made.path.write_bytes(made.path.read_bytes()[:-1])
        report = cortex.doctor()
        assert not checks(report)["snapshots"]
        assert made.id in told(report, "snapshots")
        assert [(one.purpose, one.host) for one in report.outbound] == [("sync", "dav.example.org")]


def test_every_server_of_a_database_is_named_without_its_password() -> None:
    assert _servers("postgresql://me:secret@a:1,b:2/db?target_session_attrs=read-write") == "a:1,b:2"
    assert _servers("postgresql:///db?host=a,b&user=me&password=secret") == "a,b"
    assert _servers("postgresql:///db") == "localhost"
