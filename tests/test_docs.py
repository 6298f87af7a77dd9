"""The documents cannot go stale: commands, settings, exit codes, tools, links and examples are checked."""

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from cases import each
from cortex_py.core.config import setting_names
from cortex_py.core.errors import WIRE_FORMS
from cortex_py.core.memory.recall.filters import FILTER_KEYS
from cortex_py.core.memory.service import Memories
from cortex_py.parts.backup.service import Backups
from cortex_py.parts.context.service import Contexts
from cortex_py.parts.graph.service import Graph
from cortex_py.parts.hooks.service import Hooks
from cortex_py.parts.hooks.staging import Review
from cortex_py.parts.prompts.service import Prompts
from cortex_py.parts.prompts.templates import Templates
from cortex_py.parts.suggest.sessions import Suggestions
from cortex_py.parts.verify.service import Grounding
from cortex_py.surfaces.cli import cli
from cortex_py.surfaces.mcp.registry import TOOLS
from cortex_py.team.access.audit import Audit
from cortex_py.team.access.service import Access
from cortex_py.team.access.tenants import Tenants
from llm.chat_server import ChatServer, message
from reference_pages import REFERENCE_FILE, render

ROOT = Path(__file__).parents[1]
PAGES = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/**/*.md")]
CLIENTS = ("claude-code", "claude-desktop", "cursor", "vscode", "codex", "other")
CONFIGURATIONS = [
    pytest.param(language, text, id=f"{page.stem}-{number}")
    for page in PAGES
    if page.stem in CLIENTS
    for number, (language, text) in enumerate(
        re.findall(r"```(json|toml)\n(.*?)```", page.read_text("utf-8"), re.DOTALL), 1
    )
]


def _page(name: str) -> str:
    (page,) = [one for one in PAGES if one.stem == name]
    return page.read_text("utf-8")


def test_every_command_and_option_is_documented() -> None:
    text = _page("cli")
    for name in cli.list_commands(None):  # type: ignore[arg-type]
        command = cli.get_command(None, name)  # type: ignore[arg-type]
        assert f"`cortex {name}" in text
        for part in [command, *getattr(command, "commands", {}).values()]:
            for option in part.params:
                long = [word for word in option.opts if word.startswith("--")]
                if long and long[0] not in ("--home", "--project", "--json", "--host", "--port"):
                    assert any(word in text for word in option.opts), (name, option.opts)


@each("page", PAGES, ids=lambda page: page.name)
def test_commands_in_sentences_exist_with_their_options(page: Path) -> None:
    shared = {"--home", "--project", "--json", "--quiet", "--verbose", "--no-color", "--help", "--version"}
    for code in re.findall(r"`cortex ([a-z][^`]*)`", page.read_text("utf-8")):
        name, *words = code.split()
        command = cli.get_command(None, name)  # type: ignore[arg-type]
        assert command, code
        while words and words[0] in getattr(command, "commands", {}):
            command = command.commands[words.pop(0)]  # type: ignore[attr-defined]
        options = shared.union(*([*option.opts, *option.secondary_opts] for option in command.params))
        assert {word for word in words if re.fullmatch(r"--?[a-z][a-z-]*", word)} <= options, code


def test_every_setting_is_documented_with_its_variable() -> None:
    text = _page("settings")
    assert "`CORTEX_HOME`" in text
    for name in setting_names():
        assert f"`CORTEX_{name.upper()}`" in text
        assert f"`{name}`" in text


def test_every_exit_code_is_documented() -> None:
    text = _page("cli")
    for _, form in WIRE_FORMS:
        assert f"| {form.exit_code} |" in text


def test_every_filter_key_is_documented() -> None:
    text = _page("filters")
    for key in FILTER_KEYS:
        assert f"`{key}`" in text


def test_every_method_is_documented() -> None:
    text = _page("library")
    for service in (
        Memories,
        Contexts,
        Suggestions,
        Graph,
        Grounding,
        Prompts,
        Templates,
        Backups,
        Access,
        Audit,
        Tenants,
        Hooks,
        Review,
    ):
        for name in dir(service):
            if not name.startswith("_"):
                assert re.search(rf"\b{name}\b", text), name
                assert getattr(service, name).__doc__, name


@each("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text("utf-8")):
        assert (page.parent / target).exists(), target


def test_the_site_builds_and_every_link_and_anchor_resolves(tmp_path: Path) -> None:
    """Every page is in its navigation, and nothing on it is loaded from another host."""
    command = [
        sys.executable,
        "-m",
        "mkdocs",
        "build",
        "-q",
        "--strict",
        "-f",
        str(ROOT / "mkdocs.yml"),
        "-d",
        tmp_path,
    ]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    )
    assert done.returncode == 0, done.stderr
    loaded = re.findall(r'(?:src|link [^>]*href)="(https?://[^"]+)"', (tmp_path / "index.html").read_text("utf-8"))
    assert loaded == []


def test_the_named_tests_exist() -> None:
    for path in re.findall(r"`(tests/[^`]+)`", _page("guarantees")):
        assert (ROOT / path).exists(), path


@pytest.mark.parametrize(
    "page",
    [one for one in PAGES if one.stem != "CONTRIBUTING" and "```python\n" in one.read_text("utf-8")],
    ids=lambda one: one.stem,
)
def test_python_examples_run(page: Path, home: Path, project: Path, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    monkeypatch.chdir(project)
    monkeypatch.setenv("HOME", str(home.parent))
    with ChatServer() as model:
        # A page that asks a model gets an answer without a call of a tool.
        model.script = [message({"type": "text", "text": "Noted."}, stop="end_turn")]
        monkeypatch.setenv("ANTHROPIC_BASE_URL", model.root)
        monkeypatch.setenv("ANTHROPIC_API_KEY", "none")
        for block in re.findall(r"```python\n(.*?)```", page.read_text("utf-8"), re.DOTALL):
            exec(compile(block, page.name, "exec"), {})
    capsys.readouterr()


def test_the_readme_opens_with_the_two_commands() -> None:
    first = re.search(r"```sh\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), re.DOTALL)
    assert first
    assert [line.split("#")[0].strip() for line in first[1].splitlines()] == ["make serve", "make test"]


def test_the_architecture_names_packages_and_modules_that_exist() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text("utf-8")
    for path in re.findall(r"`((?:[a-z_]+/)+(?:[a-z_]+\.py)?)`", text):
        assert (ROOT / "src" / "cortex_py" / path).exists() or (ROOT / path).exists(), path
    packages = [path.parent.name for path in (ROOT / "src" / "cortex_py").glob("*/__init__.py")]
    assert [name for name in packages if f"{name}/" not in text] == []


def test_every_tool_is_in_the_reference() -> None:
    text = _page("tools")
    for spec in TOOLS:
        assert f"\n## {spec.name}\n" in text


def test_the_reference_is_what_the_server_serves() -> None:
    assert (ROOT / REFERENCE_FILE).read_text("utf-8") == render(), "run: make reference"


def test_the_reference_explains_every_parameter_and_field() -> None:
    for line in re.findall(r"^\| `.*\|$", _page("tools"), re.MULTILINE):
        assert not line.endswith("|  |"), line


@each("client", CLIENTS)
def test_every_client_has_a_page_and_the_readme_leads_there(client: str) -> None:
    path = f"docs/start/{client}.md"
    assert (ROOT / path).exists()
    assert f"({path})" in (ROOT / "README.md").read_text("utf-8")


@each(("language", "text"), CONFIGURATIONS)
def test_configurations_can_be_read_and_name_real_options(language: str, text: str) -> None:
    content = json.loads(text) if language == "json" else tomllib.loads(text)
    servers = next(value for value in content.values() if isinstance(value, dict))
    entry = servers["cortex"]
    if entry.get("command", "").endswith("cortex"):
        command = cli.get_command(None, entry["args"][0])  # type: ignore[arg-type]
        assert command
        options = {word for option in command.params for word in option.opts}
        assert {word for word in entry["args"][1:] if word.startswith("-")} <= options
