"""Every tool of a server called with one text in each parameter that takes text, and the CPU time of each call."""

from __future__ import annotations

import json
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from mcp.shared.exceptions import MCPError

from cortex_py import Cortex
from cortex_py.core.errors import CortexError
from cortex_py.surfaces.mcp.server import build_server

from clients import MODES, Caller, connected
from helpers import git
from stub_backend import StubBackend

__all__ = ["Meter", "opened", "use_every_parameter", "use_every_tool"]

_LONGEST_TOPIC = 200
_LONGEST_EMBEDDED = 10_000
# A scan reads them by different parsers.
_FILES = ("notes.md", "code.py", "data.json")


class Meter:
    """Calls the tools of one server; `seconds` holds the CPU time of each call, of its threads and programs too."""

    def __init__(self, caller: Caller, cortex: Cortex, project: Path) -> None:
        self.caller = caller
        self.cortex = cortex
        self.project = project
        self.seconds: dict[str, float] = {}
        self.refused: set[str] = set()

    @contextmanager
    def timed(self, label: str) -> Iterator[None]:
        """The work inside may refuse the text."""
        before = _spent()
        try:
            yield
        except (CortexError, MCPError):
            self.refused.add(label)
        finally:
            self.seconds[label] = max(_spent() - before, self.seconds.get(label, 0.0))

    def call(self, label: str, tool: str, /, **arguments: Any) -> dict[str, Any]:
        answer: dict[str, Any] = {}
        with self.timed(label):
            result = self.caller.portal.call(self.caller.client.call_tool_mcp, tool, arguments)
            answer.update(result.structured_content or {})
            if result.is_error:
                self.refused.add(label)
        return answer


def _spent() -> float:
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(one.ru_utime + one.ru_stime for one in used)


@contextmanager
def opened(folder: Path) -> Iterator[Meter]:
    """A server over a new store with the default settings, in a small repository."""
    project = folder / "project"
    project.mkdir(parents=True)
    git(project, "init", "-q", "-b", "main")
    (project / "README.md").write_text("# Shop\n\nSells `parts.csv` to Zoë.\n", "utf-8")
    git(project, "add", ".")
    git(project, "commit", "-q", "-m", "begin")
    with (
        Cortex.open(folder / "home", project=project, backend=StubBackend()) as cortex,
        connected(build_server(cortex), MODES[1]) as caller,
    ):
        yield Meter(caller, cortex, project)


def use_every_tool(meter: Meter, text: str) -> None:
    """Call each tool with the text as its main argument."""
    _use_memories(meter, text)
    _use_graph(meter, text)
    _use_saved_texts(meter, text)
    _use_contexts(meter, text)
    _use_imports(meter, text)
    _use_embeddings(meter, text)


def _use_memories(meter: Meter, text: str) -> None:
    call = meter.call
    first = call("capture", "subcog_capture", content=text, namespace="decisions").get("id", "")
    second = call("capture again", "subcog_capture", content=f"We use Redis. {text}", namespace="decisions").get("id")
    for mode in ("hybrid", "text", "vector"):
        call(f"recall {mode}", "subcog_recall", query=text, mode=mode)
    call("recall all", "subcog_recall", query="Redis", detail="everything")
    call("get", "subcog_get", memory_id=first)
    call("enrich", "subcog_enrich", memory_id=first, add_context=True)
    call("update", "subcog_update", memory_id=second, content=f"We use Valkey. {text}")
    call("history", "subcog_history", memory_id=second)
    for strategy in ("dedupe", "merge", "summarize"):
        call(f"consolidate {strategy}", "subcog_consolidate", namespace="decisions", strategy=strategy, dry_run=True)
    call("consolidate query", "subcog_consolidate", namespace="decisions", query=text)
    call("reindex", "subcog_reindex")


def _use_graph(meter: Meter, text: str) -> None:
    call = meter.call
    call("extract", "subcog_entities", action="extract", content=text)
    call("extract and store", "subcog_entities", action="extract", content=text, store=True)
    for name in ("Zebra", "Valkey"):
        call("create entity", "subcog_entities", action="create", name=name, entity_type="Technology")
    call("infer", "subcog_relationships", action="infer", entity_ids=["Zebra", "Valkey"], store=True)
    for form in ("mermaid", "dot", "json"):
        call(f"visualize {form}", "subcog_graph", operation="visualize", format=form)


def _use_saved_texts(meter: Meter, text: str) -> None:
    call = meter.call
    call("prompt save", "subcog_prompts", action="save", name="hostile", content=text)
    call("prompt run", "subcog_prompts", action="run", name="hostile", variables={"a": "b"})
    call("prompt save plain", "subcog_prompts", action="save", name="plain", content="Say {{a}} {{b}}")
    call("prompt run value", "subcog_prompts", action="run", name="plain", variables={"a": text, "b": text})
    call("template save", "subcog_templates", action="save", name="hostile", content=text)
    call("template render", "subcog_templates", action="render", name="hostile", variables={"a": ["b"]})
    content = "{{memories}}{{#each a}}{{this}}{{/each}}"
    call("template save plain", "subcog_templates", action="save", name="plain", content=content)
    for form in ("markdown", "json", "xml"):
        given = {"query": text, "format": form, "variables": {"a": [text]}}
        call(f"template render {form}", "subcog_templates", action="render", name="plain", **given)
    call("legacy save", "prompt_save", name="old", content=text)
    call("legacy run", "prompt_run", name="old")


def _use_contexts(meter: Meter, text: str) -> None:
    call = meter.call
    for name in _FILES:
        (meter.project / name).write_bytes(text.encode("utf-8", "surrogatepass"))
        call(f"initialize with {name}", "initialize_context", project_path=str(meter.project), mode="full")
    id = meter.cortex.project.id
    made = call("branch", "create_branch", project_id=id, branch_topic=text[:_LONGEST_TOPIC].strip() or "Topic")
    branch = made.get("branch_id") or call("branch", "create_branch", project_id=id, branch_topic="Topic")["branch_id"]
    for role in ("user", "assistant"):
        call(f"update memory {role}", "update_memory", project_id=id, branch_id=branch, content=text, role=role)
    call("summary", "get_active_summary", project_id=id, branch_id=branch)
    call("search", "search_context", project_id=id, query=text)
    call("verify", "verify_response", project_id=id, response_text=text)
    call("verify names", "verify_response", project_id=id, response_text=f"I added `code.py` and {text}")
    told = call("suggest", "suggest_contexts", project_id=id, current_context=text)
    session = {"project_id": id, "session_id": told.get("session_id", "")}
    call("reject", "reject_suggestions", **session, reason=text)
    call("graph info", "get_context_graph_info", project_id=id)
    call("snapshot", "create_snapshot", project_id=id, description=text)


def _use_imports(meter: Meter, text: str) -> None:
    """Through the library: no tool imports."""
    folder = meter.project.parent / "imported"
    folder.mkdir()
    files = {"notes.md": text, "bare.jsonl": text, "one.jsonl": json.dumps({"content": text}) + "\n"}
    for name, content in files.items():
        file = folder / name
        file.write_bytes(content.encode("utf-8", "surrogatepass"))
        with meter.timed(f"import {name}"):
            meter.cortex.backups.import_from([file])


def _use_embeddings(meter: Meter, text: str) -> None:
    short = text[:_LONGEST_EMBEDDED]
    meter.call("embed", "embedding.generate", text=short)
    meter.call("embed batch", "embedding.batch", texts=[short] * 4)


# The action that reads a parameter, where a tool has several.
_ACTIONS: dict[str, dict[str, tuple[str, ...]]] = {
    "subcog_graph": {"neighbors": ("entity_id", "as_of"), "path": ("from_entity", "to_entity")},
    "subcog_entities": {
        "create": ("name", "properties"), "get": ("entity_id",), "extract": ("content",),
        "merge": ("entity_ids", "canonical_name"),
    },
    "subcog_relationships": {
        "create": ("from_entity", "to_entity", "properties", "valid_from", "valid_to"),
        "get": ("relationship_id",),
        "infer": ("entity_ids",),
        "list": ("as_of",),
    },
    "subcog_prompts": {"save": ("name", "content", "description", "domain", "tags"), "run": ("variables",)},
    "subcog_templates": {
        "save": ("name", "content", "description", "domain", "tags"),
        "render": ("query", "filter", "variables"),
    },
}  # fmt: skip


def use_every_parameter(meter: Meter, text: str) -> None:
    """Call each tool with the text in each parameter, with usual values in the others; most refuse the text."""
    for tool in meter.caller.portal.call(meter.caller.client.list_tools):
        parameters = tool.input_schema.get("properties", {})
        values = {name: _value(schema, text) for name, schema in parameters.items()}
        for name in (name for name, value in values.items() if value is not None):
            arguments = {
                other: _usual(meter, other, parameters[other]) for other in tool.input_schema.get("required", ())
            }
            if tool.name in _ACTIONS:
                (choice,) = arguments
                arguments[choice] = next(one for one, read in _ACTIONS[tool.name].items() if name in read)
                arguments |= {"name": "plain"} if "name" in parameters else {}
            meter.call(f"{tool.name} {name}", tool.name, **{**arguments, name: values[name]})


def _value(schema: dict[str, Any], text: str) -> object:
    if "enum" in schema:
        return None
    items = schema.get("items", {})
    made: dict[str, object] = {"string": text, "object": {"a": text, text: "a"}}
    return [text, f"{text}."] if items.get("type") == "string" and "enum" not in items else made.get(schema["type"])


def _usual(meter: Meter, name: str, schema: dict[str, Any]) -> object:
    known: dict[str, object] = {
        "project_id": meter.cortex.project.id,
        "project_path": str(meter.project),
        "namespace": "apis",
        "domain": "project",
    }
    usual: dict[str, object] = {"string": "plain", "array": ["plain"], "object": {}, "integer": 1, "number": 0.5}
    return known.get(name) or next(iter(schema.get("enum", [])), usual.get(schema["type"]))
