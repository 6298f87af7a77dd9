"""The plugins in the repository are what their source says, and have the form that each client reads."""

from __future__ import annotations

import base64
import importlib.util
import json
import shlex
import tomllib
from pathlib import Path
from types import ModuleType
from urllib.parse import parse_qs, urlsplit

import jsonschema
import pytest

from cases import each
from cortex_py.parts.hooks.dialects import CLIENTS
from cortex_py.version import __version__

ROOT = Path(__file__).parents[1]
PLUGINS = ROOT / "plugins"
SCHEMAS = json.loads((Path(__file__).parent / "hooks" / "plugin_schemas.json").read_text("utf-8"))


@pytest.fixture(scope="module")
def plugins() -> ModuleType:
    spec = importlib.util.spec_from_file_location("plugins", ROOT / "tools" / "plugins.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_what_is_committed_is_what_the_source_says(plugins: ModuleType) -> None:
    files = plugins.render()
    assert {name: (ROOT / name).read_text("utf-8") for name in files} == files, "run: make plugins"
    there = {str(path.relative_to(ROOT)) for path in PLUGINS.rglob("*") if path.is_file()}
    assert there == {name for name in files if name.startswith("plugins/")}


@each("name", SCHEMAS)
def test_each_file_has_the_form_its_client_reads(name: str) -> None:
    content = json.loads((ROOT / name).read_text("utf-8"))
    jsonschema.validate(content, SCHEMAS[name])
    if "version" in content and content["version"] != 1:
        assert content["version"] == __version__


@pytest.mark.parametrize(
    ("folder", "client"), [("claude-code", "claude-code"), ("codex", "codex"), ("gemini", "gemini")]
)
def test_every_hook_of_a_plugin_is_one_that_the_command_answers(folder: str, client: str) -> None:
    hooks = json.loads((PLUGINS / folder / "hooks" / "hooks.json").read_text("utf-8"))["hooks"]
    assert set(hooks) == {hook.name for hook in CLIENTS[client]}
    for event, (item,) in hooks.items():
        (one,) = item["hooks"]
        assert shlex.split(one["command"]) == ["cortex", "hook", client, event]
        # Gemini counts milliseconds, the others seconds.
        assert one["timeout"] == (5_000 if client == "gemini" else 5)


def test_links_and_commands_hold_the_server() -> None:
    link = urlsplit((PLUGINS / "cursor" / "install-link.txt").read_text("utf-8").strip())
    config = json.loads(base64.b64decode(parse_qs(link.query)["config"][0]))
    assert (link.scheme, config) == ("cursor", {"command": "cortex", "args": ["serve"]})
    *_, entry = shlex.split((PLUGINS / "vscode" / "install-command.txt").read_text("utf-8"))
    assert json.loads(entry)["name"] == "cortex"
    for path in (PLUGINS / "gemini" / "commands" / "cortex").iterdir():
        assert set(tomllib.loads(path.read_text("utf-8"))) == {"description", "prompt"}
