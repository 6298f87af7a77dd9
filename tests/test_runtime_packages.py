"""The default install is what it says: few packages, not large, and enough for everything that it documents."""

from __future__ import annotations

import importlib.metadata
import json
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

import lock
from clients import MODES, TRANSPORTS, connected, stdio_transport
from servers import http_server

ROOT = Path(__file__).parents[1]
LOCKED = frozenset(re.findall(r"^([\w.-]+)==", lock.part(["runtime"]), re.MULTILINE))
# The drivers of extras, which their users install.
EXTRAS = {"keyring", "mlx", "obstore", "opentelemetry.sdk", "psycopg", "sentence_transformers", "tokenizers", "torch"}

# Run by Python as it starts: what is not locked for it cannot be imported.
_MISSING = """
import importlib.abc, sys

class Missing(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {names!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Missing())
"""
_IMPORT_ALL = """
import importlib, pkgutil, cortex_py
for module in pkgutil.walk_packages(cortex_py.__path__, "cortex_py."):
    if not module.name.endswith("__main__"):
        try:
            importlib.import_module(module.name)
        except ModuleNotFoundError as error:
            print(error.name)
"""


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


@pytest.fixture
def bare(tmp_path: Path) -> str:
    """A folder for PYTHONPATH in which only the packages of the default install exist."""
    kept = {*LOCKED, "cortex-py", "pip", "setuptools"}
    known = importlib.metadata.packages_distributions()
    names = {name for name, ones in known.items() if not {_plain(one) for one in ones} & kept}
    assert {"pytest", "key_value", "authlib"} <= names
    folder = tmp_path / "bare"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(_MISSING.format(names=names), "utf-8")
    return str(folder)


def test_the_default_install_is_small() -> None:
    assert len(LOCKED) <= 69
    # What pip unpacks, without the bytecode that it writes beside it. The wheels of Linux are the largest.
    files = [file for name in LOCKED for file in _files(name) if file.suffix != ".pyc"]
    assert sum(file.size or 0 for file in files) <= 230_000_000


def test_each_package_was_looked_at_in_its_locked_version() -> None:
    """Run `make silence`, read what it prints, and correct docs/explain/dependencies.md where it is no longer so."""
    tool = runpy.run_path(str(ROOT / "tools" / "silence.py"))
    looked = json.loads((ROOT / "tools" / "silence.json").read_text("utf-8"))
    assert {name: one["version"] for name, one in looked.items()} == tool["locked"]()
    page = (ROOT / "docs/explain/dependencies.md").read_text("utf-8")
    assert [name for name, one in looked.items() if one["seen"] and f"`{name}`" not in page] == []


def _files(name: str) -> list[importlib.metadata.PackagePath]:
    try:
        return importlib.metadata.files(name) or []
    except importlib.metadata.PackageNotFoundError:
        return []  # of another version of Python


@pytest.mark.slow
def test_modules_need_only_the_default_install(bare: str) -> None:
    command = [sys.executable, "-c", _IMPORT_ALL]
    done = subprocess.run(command, capture_output=True, text=True, env={"PYTHONPATH": bare}, check=True, timeout=60)
    assert set(done.stdout.split()) <= EXTRAS


@pytest.mark.slow
@pytest.mark.parametrize("transport", TRANSPORTS)
def test_serving_needs_only_the_default_install(transport: str, tmp_path: Path, bare: str) -> None:
    home, project = tmp_path / "home", tmp_path / "project"
    project.mkdir()

    def exchange(server: object, mode: str) -> None:
        with connected(server, mode) as caller:  # type: ignore[arg-type]
            caller.call("subcog_capture", content="The session key lives in Redis.", namespace="decisions")
            assert caller.call("subcog_recall", query="session key")["total"]
            assert caller.portal.call(caller.client.list_tools)
            assert caller.portal.call(caller.client.list_resource_templates)
            caller.portal.call(caller.client.list_prompts)

    if transport == "http":
        with http_server(home, project, own_interpreter=True, PYTHONPATH=bare) as server:
            for mode in MODES:
                exchange(server.mcp, mode)
    else:
        # In one mode: what a process imports does not depend on it, as the server above shows.
        exchange(stdio_transport(home, project, own_interpreter=True, PYTHONPATH=bare), MODES[0])
