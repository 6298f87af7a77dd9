"""Turns checked as they are saved: within a bound of time, by what is read already, and never in the way of saving."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from cortex_py import Cortex
from cortex_py.core.errors import CortexError
from cortex_py.parts.context import service
from cortex_py.parts.verify.index import project_index

from helpers import git
from stub_backend import StubBackend

MISSING = "Added `rotate_all_tokens` to auth.py."
THERE = "Added `issue_refresh_token` to auth.py."


@pytest.fixture
def shop(project: Path) -> Path:
    git(project, "init", "-q", "-b", "main")
    (project / "auth.py").write_text("def issue_refresh_token() -> None: ...\n", "utf-8")
    (project / "prices.py").write_text("def gross() -> None: ...\n", "utf-8")
    git(project, "add", ".")
    git(project, "commit", "-q", "-m", "begin")
    return project


@pytest.fixture
def cortex(home: Path, shop: Path) -> Iterator[Cortex]:
    with Cortex.open(home, project=shop, backend=StubBackend()) as opened:
        yield opened


@pytest.fixture
def line(cortex: Cortex) -> str:
    return cortex.contexts.create_branch("Signing in").id


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The files that were read for the index."""
    paths: list[str] = []
    real = project_index.read_file

    def note(root: Path, ref: project_index.FileRef) -> bytes | None:
        paths.append(ref.label)
        return real(root, ref)

    monkeypatch.setattr(project_index, "read_file", note)
    return paths


def test_without_time_to_read_nothing_is_proved(cortex: Cortex, line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "CHECK_SECONDS", 0.0)
    for text in (MISSING, THERE):
        found = cortex.contexts.append(line, text, "assistant").verification
        assert found is not None
        assert [one.verdict for one in found.findings] == ["not checkable"]
        assert (found.status, found.contradictions) == ("WARN", ())
        assert "not fully indexed" in found.message


def test_a_turn_with_a_claim_that_nothing_reads_is_a_warning(cortex: Cortex, line: str) -> None:
    text = f"`gross` is defined in prices.py. {THERE} Added support for several currencies."
    found = cortex.contexts.append(line, text, "assistant").verification
    assert found is not None
    assert (found.status, found.verified, len(found.findings)) == ("WARN", 2, 3)
    assert cortex.grounding.verify(text).status == "WARN"


def test_the_file_that_is_named_is_read_first(
    cortex: Cortex, line: str, read: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cortex_py.parts.verify.service._deadline", lambda _: lambda: len(read) >= 1)
    found = cortex.contexts.append(line, "`gross` is defined in prices.py.", "assistant").verification
    assert found is not None
    assert read == ["prices.py"]
    assert [one.verdict for one in found.findings] == ["supported"]


def test_only_what_changed_is_read_again(cortex: Cortex, line: str, shop: Path, read: list[str]) -> None:
    for text in (THERE, MISSING):
        cortex.contexts.append(line, text, "assistant")
        assert sorted(read) == ["auth.py", "prices.py"]
    (shop / "auth.py").write_text("def rotate_all_tokens() -> None: ...\n", "utf-8")
    read.clear()
    found = cortex.contexts.append(line, MISSING, "assistant").verification
    assert found is not None
    assert (read, found.status) == (["auth.py"], "ACCEPT")


def test_what_one_process_read_the_next_need_not(home: Path, shop: Path, read: list[str]) -> None:
    for _ in range(2):
        with Cortex.open(home, project=shop, backend=StubBackend()) as opened:
            assert opened.contexts.verify(THERE).status == "ACCEPT"
    assert sorted(read) == ["auth.py", "prices.py"]


def test_a_check_that_cannot_be_made_keeps_no_turn_away(
    home: Path, shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Cortex.open(home, project=shop, backend=StubBackend()) as cortex:
        line = cortex.contexts.create_branch("Signing in").id

        def fail(*_: object, **__: object) -> None:
            raise CortexError("git broke off.")

        monkeypatch.setattr(cortex.grounding, "verify", fail)
        done = cortex.contexts.append(line, THERE, "assistant")
        assert (done.verification, done.memory.grounding) == (None, None)
        assert done.unchecked == "git broke off."
        assert [one.content for one in cortex.contexts.content(line)] == [THERE]
        assert cortex.memories.verification(done.memory.id) is None


def test_a_user_is_not_checked(cortex: Cortex, line: str, read: list[str]) -> None:
    done = cortex.contexts.append(line, MISSING, "user")
    assert (done.verification, done.unchecked, done.memory.grounding) == (None, "", None)
    assert read == []
