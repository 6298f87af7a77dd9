"""Nothing heavy is imported before it is needed."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from helpers import git

HEAVY = {"numpy", "onnxruntime", "mcp", "fastmcp", "rich", "pydantic", "apsw"}


def _modules_after(code: str) -> set[str]:
    script = f"import sys, json\n{code}\nprint(json.dumps(sorted(sys.modules)))"
    run = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, stdin=subprocess.DEVNULL
    )
    return set(json.loads(run.stdout.splitlines()[-1]))


def test_importing_the_package_imports_nothing_heavy() -> None:
    assert not _modules_after("import cortex_py") & (HEAVY | {"click", "asyncio", "unicodedata"})


def test_help_imports_nothing_heavy() -> None:
    code = (
        "from cortex_py.surfaces.cli import main\nsys.argv = ['cortex', '--help']\ntry: main()\nexcept SystemExit: pass"
    )
    assert not _modules_after(code) & HEAVY


def test_opening_and_listing_need_neither_arrays_nor_the_model(tmp_path: object) -> None:
    code = (
        "from cortex_py import Cortex\n"
        f"c = Cortex.open({str(tmp_path)!r}, project={str(tmp_path)!r})\n"
        "assert c.memories.recall().total == 0\nc.memories.status()"
    )
    assert not _modules_after(code) & {"numpy", "onnxruntime", "rich", "click"}


def test_a_hook_uses_the_standard_library_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CORTEX_HOOK_IDLE_SECONDS", "0")
    code = "from cortex_py.parts.hooks.front import run_hook\n"
    code += f"run_hook(['codex', 'SessionStart', '--home', {str(tmp_path)!r}])"
    before = _modules_after("pass")
    loaded = _modules_after(f"{code}\nprint()") - before
    assert {name for name in loaded if name.startswith("cortex_py")} == {
        "cortex_py",
        "cortex_py.core",
        "cortex_py.core.ownership",
        "cortex_py.core.paths",
        "cortex_py.version",
        "cortex_py.parts",
        "cortex_py.parts.hooks",
        "cortex_py.parts.hooks.dialects",
        "cortex_py.parts.hooks.front",
        "cortex_py.parts.hooks.prepared",
        "cortex_py.parts.hooks.sqlite_revision",
    }
    assert {name.split(".")[0] for name in loaded} - set(sys.stdlib_module_names) == {"cortex_py"}


# What a command does not need. A prefix stands for all modules below it.
_COMPARISON = ("core.memory.comparison", "core.memory.consolidation.merging", "core.memory.labels.keyphrases")
_GRAPH = ("parts.graph.reading", "parts.graph.service", "parts.graph.writer", "parts.graph.traversal")
_STORING = ("core.memory.capture.files", "core.security.personal", "core.memory.labels.classifier")
_PROJECT = ("parts.verify", "parts.context.scan")
_SECRETS = ("core.security.secrets.formats", "core.security.secrets.names")


@pytest.mark.parametrize(
    ("command", "unneeded"),
    [
        (
            ["status"],
            (
                *_COMPARISON[:2],
                *_STORING,
                "parts.graph.traversal",
                "core.embedding.service",
                "parts.verify",
                "parts.context.scan",
            ),
        ),
        (["recall"], (*_COMPARISON, *_STORING, *_GRAPH, *_SECRETS, *_PROJECT)),
        (
            ["recall", "grain", "--mode", "text"],
            (*_COMPARISON, *_GRAPH, *_SECRETS, *_PROJECT),
        ),
        (
            ["capture", "We grind grain"],
            (*_SECRETS, "parts.graph.reading.tagger", "parts.graph.traversal", *_PROJECT),
        ),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_a_command_imports_what_it_needs(tmp_path: Path, command: list[str], unneeded: tuple[str, ...]) -> None:
    # The name of its branch is screened for secrets.
    git(tmp_path, "init", "-q", "-b", "main")
    arguments = ["cortex", *command, "--home", str(tmp_path), "--project", str(tmp_path)]
    # However slow the machine is, a command has ended before its note is read for the graph.
    waiting = (
        "from cortex_py.core.jobs import Pace\nfrom cortex_py.opening import World\n"
        "Cortex.world = World(pace=Pace(patience=600, first_quiet=600))\n"
    )
    # The first one stores the project.
    code = (
        "from cortex_py import Cortex\nfrom cortex_py.surfaces.cli import main\n"
        f"{waiting if command[0] == 'capture' else ''}"
        f"if len(sys.argv) > 1: Cortex.open({str(tmp_path)!r}, project={str(tmp_path)!r}).close(); sys.exit()\n"
        f"sys.argv = {arguments!r}\ntry: main()\nexcept SystemExit: pass"
    )
    subprocess.run([sys.executable, "-c", f"import sys\n{code}", "store"], check=True)
    loaded = {name.removeprefix("cortex_py.") for name in _modules_after(code) if name.startswith("cortex_py.")}
    found = {name for name in loaded for prefix in unneeded if name == prefix or name.startswith(f"{prefix}.")}
    assert not found
    if command[0] != "capture":
        assert "onnxruntime" not in _modules_after(code)


@pytest.mark.parametrize(("words", "code"), [(["--version"], 0), (["status", "more"], 2), (["get", "0" * 40], 4)])
def test_a_command_ends_with_its_code_and_all_it_printed(tmp_path: Path, words: list[str], code: int) -> None:
    run = subprocess.run(
        [sys.executable, "-m", "cortex_py", *words, *(["--home", str(tmp_path)] if code else [])],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == code
    assert (run.stdout if code == 0 else run.stderr).endswith("\n")
