"""A server for many projects keeps open what a few of them need, and lets go of the rest with what belongs to it."""

from __future__ import annotations

import gc
from pathlib import Path

import pytest

from cortex_py import Cortex
from cortex_py import session as sessions
from cortex_py.core.security.callers import as_system
from cortex_py.parts.suggest.usage_log import ReferenceLog
from cortex_py.parts.verify.service import Grounding
from cortex_py.session import ProjectSession
from inside import sessions_of, store_of

from stub_backend import StubBackend

MOST = 3


def _alive(kind: type) -> int:
    gc.collect()
    return sum(isinstance(one, kind) for one in gc.get_objects())


def _open_files(under: Path) -> int:
    found = 0
    for one in Path("/proc/self/fd").iterdir():
        try:
            found += one.readlink().is_relative_to(under)
        except OSError:
            continue
    return found


def _projects(cortex: Cortex, base: Path, count: int) -> list[str]:
    made = []
    for number in range(count):
        folder = base / f"many-{number}"
        folder.mkdir()
        (folder / "engine.py").write_text(f"def rounds_{number}() -> None: ...\n")
        made.append(cortex.contexts.initialize(folder, "none").project.id)
    return made


def _used(cortex: Cortex, project_id: str, number: int) -> None:
    """All that keeps something for a project."""
    contexts = cortex.contexts
    found = contexts.verify(f"`rounds_{number}` is a function in `engine.py`.", project_id=project_id)
    assert found.findings[0].verdict == "supported"
    session = sessions_of(cortex).of(project_id)
    note = session.memories.capture(f"Note {number} rounds down")
    assert contexts.search(f"Note {number}", project_id=project_id, min_score=0.0).results
    contexts.load(note.id, project_id=project_id)
    cortex.backups.snapshots(project_id=project_id)


@pytest.mark.slow
def test_many_projects_do_not_stay_open(
    home: Path, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions, "MOST_OPEN", MOST)
    before, checks, logs = _alive(ProjectSession), _alive(Grounding), _alive(ReferenceLog)
    with Cortex.open(home, project=project, backend=StubBackend()) as cortex:
        made = _projects(cortex, tmp_path, 10)
        for number, project_id in enumerate(made):
            _used(cortex, project_id, number)
        assert _alive(ProjectSession) - before <= MOST + 1
        assert _alive(Grounding) - checks <= MOST + 1
        if Path("/proc/self/fd").is_dir():
            assert _open_files(home / "evidence") <= 3 * (MOST + 1)
        assert _alive(ReferenceLog) - logs <= MOST + 1
        kept = {space for space in store_of(cortex).search._in_process if space.split("/")[0] in made}
        assert len(kept) <= 3 * MOST
        # Whatever was let go is there when it is asked for again, with what was noted about it.
        with as_system():
            _used(cortex, made[0], 0)
        with store_of(cortex).database.read() as session:
            loads = session.rows("SELECT count(*) FROM reference WHERE project_id = ?", (made[1],))
        assert loads[0][0] > 0
    assert _alive(ProjectSession) - before <= 1
    assert not _open_files(home) if Path("/proc/self/fd").is_dir() else True
