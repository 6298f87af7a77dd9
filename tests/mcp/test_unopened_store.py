"""A store that cannot be opened: a client connects, and every tool says so in the documented form of its family."""

from collections.abc import Callable
from pathlib import Path

import pytest
from test_cortex_document import DOCUMENT, FAILURE

from cortex_py import Cortex
from cortex_py.surfaces.mcp.registry import TOOLS

from clients import MODES, served
from stub_backend import StubBackend

pytestmark = pytest.mark.sqlite_only


def _damaged(home: Path, _project: Path) -> str:
    (home / "cortex.db").write_bytes(b"this was a database once " * 400)
    return "StoreCorrupt"


def _missing(home: Path, _project: Path) -> str:
    (home / "memory" / "abc").mkdir(parents=True)
    (home / "memory" / "abc" / "work.md").write_text("# Work\n")
    return "StoreMissing"


def _too_new(home: Path, project: Path) -> str:
    with Cortex.open(home, project=project, backend=StubBackend()) as cortex, cortex._store.database.write() as session:
        session.run("INSERT INTO schema_step (version, applied_at) VALUES (999, 0)")
    return "StoreTooNew"


def _folder(home: Path, _project: Path) -> str:
    (home / "cortex.db").mkdir()
    return "Stor"


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("spoil", [_damaged, _missing, _too_new, _folder])
def test_every_tool_answers_in_its_documented_form(
    home: Path, project: Path, mode: str, spoil: Callable[[Path, Path], str]
) -> None:
    home.mkdir()
    kind = spoil(home, project)
    with served("stdio", mode, home, project) as caller:
        assert len(caller.portal.call(caller.client.list_tools)) == len(TOOLS)
        for tool, documented in DOCUMENT.items():
            told = caller.failed(tool, **documented.call)
            assert told.keys() == FAILURE.keys()
            assert (told["success"], told["error_code"]) == (False, "STORAGE_ERROR")
            assert told["details"].startswith(kind)
            assert told["error"]
        for tool in ("create_snapshot", "list_snapshots", "sync_to_cloud"):
            assert caller.failed(tool, project_id="abc123def456")["error_code"] == "STORAGE_ERROR"
        assert caller.failed("embedding.generate", text="x")["code"] == "INTERNAL_ERROR"
        error = caller.refused("subcog_recall", query="x")
        assert (error.code, error.data["error"].startswith(kind)) == (-32603, True)
