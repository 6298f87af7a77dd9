"""The prompt and template tools as a client uses them: saving, finding, filling in, laying out memories, deleting."""

import json
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cortex_py import Cortex
from cortex_py.surfaces.mcp.server import build_server

from clients import Caller, connected
from helpers import FakeClock, git

TOOLS = {"prompt": "subcog_prompts", "template": "subcog_templates"}
USE = {"prompt": "run", "template": "render"}
REVIEW = "Review {{file}} for:\n- {{issue_type}} issues\n- Best practices"
BUILTIN = ["capture-decision", "document-api", "review-memories", "start-session"]
FOUND = "# {{title}}\n{{#each memories}}\n- **{{memory.namespace}}**: {{memory.content}}\n{{/each}}"


class Texts:
    """Both tools in a client's hands: the same calls with less to write. `kind` says which, where they are alike."""

    def __init__(self, caller: Caller, kind: str = "prompt") -> None:
        self.caller = caller
        self.kind = kind

    def ask(self, action: str, **given: Any) -> dict[str, Any]:
        return self.caller.call(TOOLS[self.kind], action=action, **given)

    def save(self, name: str, content: str = "Hello", **given: Any) -> dict[str, Any]:
        return self.one("save", name=name, content=content, **given)

    def one(self, action: str, **given: Any) -> dict[str, Any]:
        """The text that an action answers."""
        answer = self.ask(action, **given)
        assert answer["action"] == action
        text: dict[str, Any] = answer[self.kind]
        return text

    def lines(self, **given: Any) -> list[dict[str, Any]]:
        answer = self.ask("list", **given)
        found: list[dict[str, Any]] = answer[f"{self.kind}s"]
        return found

    def names(self, **given: Any) -> list[str]:
        return [one["name"] for one in self.lines(**given)]

    def use(self, name: str, **given: Any) -> dict[str, Any]:
        """Run a prompt, or render a template."""
        return self.ask(USE[self.kind], name=name, **given)

    def refused(self, action: str, **given: Any) -> tuple[int, Any]:
        error = self.caller.refused(TOOLS[self.kind], action=action, **given)
        return error.code, error.data


@pytest.fixture
def repository(project: Path) -> None:
    """Where a project is, is seen when Cortex is opened: this comes before."""
    git(project, "init", "-q", "-b", "main")


@pytest.fixture
def caller(stubbed: Cortex) -> Iterator[Caller]:
    """A client of one protocol: what is answered in both is held against the definitions and the document elsewhere."""
    with connected(build_server(stubbed), "auto") as connection:
        yield connection


@pytest.fixture(params=list(TOOLS))
def texts(caller: Caller, request: pytest.FixtureRequest) -> Texts:
    """Prompts, and templates where they behave alike."""
    return Texts(caller, request.param)


@pytest.fixture
def prompts(caller: Caller) -> Texts:
    return Texts(caller)


@pytest.fixture
def templates(caller: Caller) -> Texts:
    return Texts(caller, "template")


def _share(project: Path, kind: str, name: str, text: str) -> Path:
    """A file that the project's own repository holds."""
    folder = project / ".cortex" / f"{kind}s"
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / name
    file.write_text(text, "utf-8")
    return file


# -- saving and reading ------------------------------------------------------------------------------


def test_what_was_saved_is_told_and_read_again(texts: Texts) -> None:
    given = {"description": "Comprehensive code review", "tags": ["review", "quality"]}
    saved = texts.save("code-review", REVIEW, **given)
    assert saved == {
        "name": "code-review",
        "domain": "project",
        "version": 1,
        **given,
        "variables": [
            {"name": "file", "required": False},
            {"name": "issue_type", "required": False},
        ],
        "content": REVIEW,
        "uses": 0,
        "created_at": "2026-01-02T12:34:56Z",
        "updated_at": "2026-01-02T12:34:56Z",
    }
    assert texts.one("get", name="code-review") == saved
    (listed,) = texts.lines()
    assert listed == {name: value for name, value in saved.items() if name != "content"}


@pytest.mark.parametrize(
    "declared",
    [
        pytest.param([{"name": "tone", "default": "kind", "choices": ["kind", "curt"]}, {"name": "who"}], id="list"),
        pytest.param({"who": {}, "tone": {"default": "kind", "choices": ["kind", "curt"]}}, id="object"),
    ],
)
def test_variables_are_declared_as_a_list_or_by_name(prompts: Texts, declared: Any) -> None:
    saved = prompts.save("greet", "Greet {{who}} in a {{tone}} way", variables=declared)
    assert saved["variables"] == [
        {"name": "who", "required": True},
        {"name": "tone", "default": "kind", "required": False, "choices": ["kind", "curt"]},
    ]


def test_a_secret_is_not_kept(texts: Texts, home: Path) -> None:
    token = "ghp_" + "1a2B3c4D5e" * 3 + "6F7g8h"
    saved = texts.save("deploy", f"Deploy {{{{what}}}} with {token}")
    assert saved["redacted"] == ["github-token"]
    assert token not in json.dumps(saved)
    assert token not in texts.use("deploy", variables={"what": "it"})["content"]
    assert not any(token.encode() in file.read_bytes() for file in home.rglob("*") if file.is_file())


# -- lists and domains -------------------------------------------------------------------------------


def test_a_file_of_the_project_is_there_at_once_and_comes_last(texts: Texts, project: Path) -> None:
    file = _share(project, texts.kind, "greet.md", "---\nname: greet\ntags: [shared]\n---\nHello {{who}}\n")
    found = texts.one("get", name="greet")
    assert (found["path"], found["tags"]) == (f".cortex/{texts.kind}s/greet.md", ["shared"])
    assert (found["name"], "version" in found) == ("project:greet", False)
    used = texts.use("greet", variables={"who": "Zoë"})["content"]
    assert used.strip().endswith("Hello Zoë")
    assert used.startswith("Not written by the user: ") == (texts.kind == "prompt")
    assert "warnings" not in texts.ask("save", name="greet", content="Stored")
    assert texts.use("greet")["content"] == "Stored"
    assert [(one.get("path") is None, one.get("shadowed_by")) for one in texts.lines()] == [
        (True, None),
        (False, "project"),
    ]
    file.write_text("---\nname: greet\n---\nGood day\n", "utf-8")
    assert texts.use("project:greet")["content"].strip().endswith("Good day")
    file.unlink()
    assert texts.one("get", name="greet")["content"] == "Stored"


# -- filling in --------------------------------------------------------------------------------------


def test_a_run_fills_in_values_and_defaults(prompts: Texts) -> None:
    prompts.save("greet", "{{greeting}} {{who}}, {{who}}!", variables={"greeting": {"default": "Hello"}})
    answer = prompts.use("greet", variables={"who": "Zoë"})
    assert answer == {
        "action": "run",
        "name": "greet",
        "domain": "project",
        "version": 1,
        "content": "Hello Zoë, Zoë!",
    }
    assert prompts.use("greet", variables={"who": "", "greeting": "Bye"})["content"] == "Bye , !"


def test_all_values_that_are_missing_are_named_at_once(prompts: Texts) -> None:
    prompts.save("code-review", REVIEW, variables=["file", "issue_type"])
    code, data = prompts.refused("run", name="code-review")
    assert (code, data["fields"]) == (-32602, ["file", "issue_type"])
    code, data = prompts.refused("run", name="code-review", variables={"file": "x"})
    assert (code, data["fields"]) == (-32602, ["issue_type"])


@pytest.mark.parametrize("given", [{"file": "x"}, '{"file": "x"}'])
def test_a_variable_that_was_not_declared_stays_and_is_told(prompts: Texts, given: object) -> None:
    prompts.save("code-review", REVIEW)
    told = prompts.use("code-review", variables=given)
    assert told["content"] == REVIEW.replace("{{file}}", "x")
    assert told["warnings"] == ["No value was given for issue_type."]
    assert prompts.use("subcog:code-review", variables=given) == told


# -- laying out memories -----------------------------------------------------------------------------


@pytest.fixture
def memories(stubbed: Cortex, clock: FakeClock) -> list[str]:
    contents = ["Tokens live for an hour", "Use tabs", "Names are lower case\nand short"]
    for content, namespace in zip(contents, ("security", "patterns", "patterns"), strict=True):
        stubbed.memories.capture(content, namespace=namespace, tags=["auth"] if namespace == "security" else [])
        clock.advance(minutes=1)
    return contents


def test_a_rendering_shows_the_memories_asked_for(templates: Texts, memories: list[str]) -> None:
    templates.save("found", FOUND)
    asked = {"variables": {"title": "Rules"}}
    newest = templates.use("found", limit=1, **asked)
    assert (newest["memories"], memories[2] in newest["content"]) == (1, True)
    tagged = templates.use("found", filter="tag:auth", **asked)
    assert tagged["content"].split() == ["#", "Rules", "-", "**security**:", *memories[0].split()]
    first = templates.use("found", query="tabs", limit=1, **asked)
    assert first["content"].splitlines()[-1].endswith(memories[1])


def test_a_rendering_is_a_document_when_asked_for_one(templates: Texts, memories: list[str]) -> None:
    templates.save("found", FOUND)
    asked = {"name": "found", "variables": {"title": "<Rules> & ☃"}}
    text = templates.use(**asked)["content"]
    made = json.loads(templates.use(**asked, format="json")["content"])
    assert (made["template"], made["version"], made["content"]) == ("found", 1, text)
    assert made["data"]["title"] == "<Rules> & ☃"
    assert [one["content"] for one in made["data"]["memories"]] == memories[::-1]
    root = ElementTree.fromstring(templates.use(**asked, format="xml")["content"])
    assert root.findtext("content") == text
    assert [one.findtext("content") for one in root.iterfind("data/memories/memory")] == memories[::-1]


# -- the deprecated tools ----------------------------------------------------------------------------


def test_the_deprecated_tools_answer_the_same_and_say_what_to_call(caller: Caller) -> None:
    def both(action: str, **given: Any) -> dict[str, Any]:
        """The answer, after the old tool has answered the same for a text of its own."""
        new = caller.call("subcog_prompts", action=action, **given)
        old = caller.call(f"prompt_{action}", **given | ({"name": "same"} if "name" in given else {}))
        note = old.pop("deprecated")
        assert "subcog_prompts" in note
        assert f"action {action}" in note
        assert "deprecated" not in new
        told = json.dumps(old)
        assert json.loads(told.replace('"same"', '"greet"') if "name" in given else told) == new
        return new

    declared = [{"name": "who", "description": "Whom", "default": "you"}]
    for content in ("Hello {{who}}", "Good day {{who}}"):
        both("save", name="greet", content=content, description="Greets", tags=["a"], variables=declared, domain="user")
    assert both("get", name="greet", domain="user", version=1)["prompt"]["content"] == "Hello {{who}}"
    assert both("run", name="greet", variables={"who": "Zoë"}, domain="user")["content"] == "Good day Zoë"
    assert both("run", name="greet")["content"] == "Good day you"
    assert both("list", domain="user", tags=["a"], limit=1, offset=1)["total"] == 2
    both("delete", name="greet", domain="user")
    assert both("list")["prompts"] == []


@pytest.mark.parametrize(
    ("tool", "field"),
    [
        ("prompt_save", "name"),
        ("prompt_get", "name"),
        ("prompt_run", "name"),
        ("prompt_delete", "name"),
    ],
)
def test_a_deprecated_tool_names_what_is_missing(caller: Caller, tool: str, field: str) -> None:
    error = caller.refused(tool)
    assert (error.code, error.data["field"]) == (-32602, field)
    assert "domain" in error.data["fields"] or tool != "prompt_delete"


def test_a_deprecated_tool_takes_no_action(caller: Caller) -> None:
    error = caller.refused("prompt_list", action="list")
    assert (error.code, error.data["field"]) == (-32602, "action")
