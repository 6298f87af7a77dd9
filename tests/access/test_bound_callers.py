"""Whoever calls gets nothing of what they may not read: no word, no id, no count, by whichever tool or address.

Every tool of the registry has a case here; one without fails. A server is asked over HTTP by three members of an
organisation that hold every scope: Eve with all levels and no way into what is secret, Rea who may only read, and Wes
who may write.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from isolation import post, steady
from starlette.testclient import TestClient

from cases import each
from cortex_py import Cortex
from cortex_py.core.security.callers import Caller, acting_as
from cortex_py.core.security.rights import SCOPES
from cortex_py.surfaces.http.server import build_app
from cortex_py.surfaces.mcp.registry import TOOLS

from helpers import FakeClock
from stub_backend import StubBackend

# Read before the environment is cleared.
ENGINE = os.environ.get("CORTEX_TEST_ENGINE")
# In every text that is secret, and nowhere else.
WORD = "zyxquark"
SECRET = f"The {WORD} launch uses PostgreSQL and Redis"


@dataclass(frozen=True)
class Case:
    """How a tool is tried. Names in braces are filled in: of what is open, of what is secret, or of nothing.

    `probes` name something secret: the answer must be that for a name of nothing. `plain` name nothing secret: the
    answer must be the same before and after there are secrets. `writes` need the level write in the open project,
    `purges` the level admin.
    """

    probes: tuple[dict[str, Any], ...] = ()
    plain: tuple[dict[str, Any], ...] = ()
    writes: tuple[dict[str, Any], ...] = ()
    purges: tuple[dict[str, Any], ...] = ()


# By tool.
_CALLS = json.loads(Path(__file__).with_name("bound_callers.json").read_text("utf-8").replace("{word}", WORD))
CASES = {tool: Case(**{name: tuple(calls) for name, calls in given.items()}) for tool, given in _CALLS.items()}
RESOURCES = (
    f"subcog://search/{WORD}", "subcog://search/launch", "subcog://project/_", "subcog://_/context", "subcog://user/_",
    "subcog://org/_", "subcog://topics", "subcog://namespaces",
)  # fmt: skip
RESOURCE_PROBES = (
    "subcog://memory/{memory}", "subcog://memory/{prefix}", "subcog://project/context/{memory}",
    "subcog://user/_/{private}", "subcog://_/_/{foreign}",
)  # fmt: skip
COMPLETIONS = (("id", ""), ("id", "{prefix}"), ("query", ""), ("query", WORD[:3]))


@dataclass
class World:
    """A server, its callers, and the names of what is there."""

    cortex: Cortex
    client: TestClient
    tokens: dict[str, str]
    names: dict[str, str]
    before: dict[str, str] = field(default_factory=dict)
    after: dict[str, str] = field(default_factory=dict)

    def ask(self, who: str, method: str, name: str, params: dict[str, Any]) -> str:
        """What the protocol answers, as one text without what differs from call to call."""
        answer = post(self.client, self.tokens[who], method, name, params)
        lines = [line.removeprefix("data: ") for line in answer.text.splitlines() if line.startswith(("data: ", "{"))]
        told = next((json.loads(line) for line in reversed(lines) if '"id"' in line), {"status": answer.status_code})
        told.get("result", {}).pop("content", None) if "structuredContent" in told.get("result", {}) else None
        return steady(json.dumps(told, sort_keys=True))

    def call(self, who: str, tool: str, arguments: dict[str, Any]) -> str:
        return self.ask(who, "tools/call", tool, {"name": tool, "arguments": arguments})

    def read(self, who: str, uri: str) -> str:
        return self.ask(who, "resources/read", uri, {"uri": uri})

    def complete(self, who: str, name: str, value: str) -> str:
        place = {"type": "ref/resource", "uri": "subcog://memory/{id}"}
        return self.ask(who, "completion/complete", "", {"ref": place, "argument": {"name": name, "value": value}})

    def filled(self, value: Any, names: dict[str, str]) -> Any:
        if isinstance(value, str):
            return re.sub(r"\{(\w+)\}", lambda match: names[match[1]], value)
        if isinstance(value, dict):
            return {key: self.filled(one, names) for key, one in value.items()}
        return [self.filled(one, names) for one in value] if isinstance(value, list) else value

    def of_nothing(self) -> dict[str, str]:
        """The same names, changed so that nothing has them; what is open stays."""
        return {key: one if key.startswith("open") else _unlike(one) for key, one in self.names.items()}

    def plain(self, who: str) -> dict[str, str]:
        """What all calls that name nothing secret answer."""
        told = {
            f"{tool} {number}": self.call(who, tool, self.filled(arguments, self.names))
            for tool, case in CASES.items()
            for number, arguments in enumerate(case.plain)
        }
        told |= {uri: self.read(who, uri) for uri in RESOURCES}
        told |= {f"{name}={value}": self.complete(who, name, value) for name, value in COMPLETIONS if "{" not in value}
        told["prompts"] = self.ask(who, "prompts/list", "", {})
        told["resources"] = self.ask(who, "resources/list", "", {})
        return told

    def state(self) -> tuple[int, int, int]:
        with acting_as(None):
            graph = self.cortex.graph.stats()
            saved = self.cortex.prompts.state()[0] + self.cortex.templates.state()[0]
            return self.cortex.memories.revision(), graph.entities + graph.relationships, saved


def _unlike(name: str) -> str:
    """A name of the same form that nothing has."""
    swapped = str.maketrans("0123456789abcdef", "fedcba9876543210")
    if name.startswith("snapshot_"):
        return "snapshot_20200102_030405"
    head, mark, tail = name.rpartition("_")
    return head + mark + tail.translate(swapped) if re.search(r"[0-9a-f]{6}", tail) else f"{name}x"


def _fill(cortex: Cortex, word: str) -> dict[str, str]:
    """One of everything in a project; what there is, by kind."""
    note = cortex.memories.capture(f"The {word} launch uses PostgreSQL and Redis", tags=[f"{word}-tag"])
    gone = cortex.memories.capture(f"A {word} note that was deleted")
    cortex.memories.delete(gone.id)
    cortex.memories.capture(f"PostgreSQL replaced SQLite for the {word} launch")
    line = cortex.contexts.create_branch(f"{word} work")
    cortex.contexts.append(line.id, f"We begin the {word} launch", "user")
    cortex.contexts.initialize(mode="full")
    entity = cortex.graph.create(f"{word}engine", "Technology")
    other = cortex.graph.create("SQLite", "Technology")
    fact = cortex.graph.relate(entity.id, other.id, "Uses")
    cortex.prompts.save(f"{word}-prompt", f"Say {word}")
    cortex.templates.save(f"{word}-template", "{{memories}}")
    session = cortex.suggestions.suggest(f"the {word} launch with PostgreSQL").session_id
    return {
        "project": cortex.project.id,
        "name": cortex.project.name,
        "path": str(cortex.project.root),
        "memory": note.id,
        "prefix": note.id[:12],
        "deleted": gone.id,
        "branch": line.id,
        "entity": entity.id,
        "relationship": fact.id,
        "prompt": f"{word}-prompt",
        "template": f"{word}-template",
        "session": session,
        "snapshot": cortex.backups.create().id,
    }


def _folder(parent: Path, name: str, word: str) -> Path:
    folder = parent / name
    folder.mkdir()
    (folder / "README.md").write_text(f"# {name}\n\nThe {word} launch uses PostgreSQL.\n")
    (folder / "hidden.py").write_text(f"def {word}() -> None:\n    '''The {word} launch.'''\n")
    return folder


@pytest.fixture(scope="module")
def database(request: pytest.FixtureRequest) -> Iterator[str | None]:
    """An address of a database for the whole module, where tests run on PostgreSQL."""
    if ENGINE != "postgres":
        yield None
        return
    with request.getfixturevalue("postgres_server").database() as url:
        yield url


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory, database: str | None) -> Iterator[World]:
    base = tmp_path_factory.mktemp("bound")
    common: dict[str, Any] = {"home": base / "home", "backend": StubBackend(), "database_url": database}
    with ExitStack() as stack:
        cortex = stack.enter_context(
            Cortex.open(
                project=_folder(base, "open", "open"), **common, auth="tokens", audit="off", project_roots=[base]
            )
        )
        names = {f"open_{key}": one for key, one in _fill(cortex, "open").items()}
        tokens = {}
        for who, level in (("eve", "admin"), ("rea", "read"), ("wes", "write"), ("sam", "write")):
            cortex.tenants.join(who, level)
            tokens[who] = cortex.access.create(who, scopes=SCOPES).token
        client = stack.enter_context(TestClient(build_app(cortex), base_url="http://127.0.0.1"))
        made = World(cortex, client, tokens, names)
        made.plain("eve")
        made.before = made.plain("eve")
        # A project that is closed, what another has of their own, and all of another organisation.
        # Snapshots are named after their second: one of another time has a name that the open project does not have.
        with Cortex.open(project=_folder(base, f"{WORD}-vault", WORD), **common, clock=FakeClock()) as vault:
            vault.tenants.restrict(vault.project.id)
            names |= _fill(vault, WORD)
        Path(_unlike(names["path"])).mkdir()
        sam = cortex.tenants.admitted(Caller("sam"))
        with acting_as(sam):
            own = cortex.memories.capture(f"{SECRET}, privately", domain="user", tags=[f"{WORD}-own"])
            cortex.prompts.save(f"{WORD}-own", WORD, domain="user")
            names |= {"private": own.id, "private_session": cortex.suggestions.suggest(f"{SECRET}").session_id}
        cortex.tenants.create("rivals")
        with Cortex.open(project=_folder(base, f"{WORD}-rival", WORD), **common, org="rivals") as rival:
            rival.tenants.assign(rival.project.id, "rivals")
            _fill(rival, WORD)
            names["foreign"] = rival.memories.capture(f"{SECRET} for all rivals", domain="org").id
        # At once: other tests write, too.
        made.after = made.plain("eve")
        yield made


def test_every_tool_has_a_case() -> None:
    assert {spec.name for spec in TOOLS} == set(CASES)
    for spec in TOOLS:
        case = CASES[spec.name]
        assert case.probes or case.plain or case.writes, spec.name
        if not spec.read_only:
            assert case.writes or case.purges or spec.name == "prompt_run", spec.name
        if spec.family == "backup":
            assert case.purges, spec.name


@each("tool", CASES)
def test_what_is_secret_is_as_if_it_were_not_there(world: World, tool: str) -> None:
    nothing = world.of_nothing()
    for arguments in CASES[tool].probes:
        secret = world.call("eve", tool, world.filled(arguments, world.names))
        unknown = world.call("eve", tool, world.filled(arguments, nothing))
        assert "result" in secret or "error" in secret
        assert _without(secret, world.names) == _without(unknown, nothing), arguments


def _without(text: str, names: dict[str, str]) -> str:
    """An answer without the names that it was asked by."""
    for key, name in sorted(names.items(), key=lambda one: -len(one[1])):
        if not key.startswith("open"):
            text = text.replace(name, "NAME")
    return re.sub(r"[0-9a-f]{40}", "ID", text)


def test_what_can_be_seen_does_not_tell_of_what_cannot(world: World) -> None:
    assert world.after.keys() == world.before.keys()
    for asked, told in world.after.items():
        assert told == world.before[asked], asked
        for key, name in world.names.items():
            if not key.startswith("open") and key not in ("name", "path"):
                assert name not in told, (asked, key)


@each("address", RESOURCE_PROBES)
def test_no_address_shows_what_is_secret(world: World, address: str) -> None:
    nothing = world.of_nothing()
    secret = world.read("eve", world.filled(address, world.names))
    assert "error" in secret
    assert WORD not in secret
    assert _without(secret, world.names) == _without(world.read("eve", world.filled(address, nothing)), nothing)


@pytest.mark.slow
def test_completions_offer_nothing_that_is_secret(world: World) -> None:
    for name, value in COMPLETIONS:
        told = world.complete("eve", name, world.filled(value, world.names))
        assert WORD not in told
        assert world.names["memory"] not in told
        assert "result" in told


# Who may not make which calls: the level write is needed for the ones, the level admin for the others.
REFUSED = {"writes": ("rea",), "purges": ("rea", "wes")}


@each(("tool", "calls"), [(tool, calls) for tool, case in CASES.items() for calls in REFUSED if getattr(case, calls)])
def test_whoever_has_too_low_a_level_is_refused(world: World, tool: str, calls: str) -> None:
    before = world.state()
    for arguments in getattr(CASES[tool], calls):
        for who in REFUSED[calls]:
            told = world.call(who, tool, world.filled(arguments, world.names))
            assert "AccessDenied" in told or "ACCESS_DENIED" in told, told
    assert world.state() == before


def test_what_is_written_does_not_tell_who_wrote_the_same(world: World) -> None:
    told = world.call("eve", "subcog_capture", {"content": SECRET, "namespace": "context"})
    assert "duplicate_of" not in told
    assert "conflicts_with" not in told
    made = json.loads(told)["result"]["structuredContent"]["id"]
    world.call("eve", "subcog_delete", {"memory_id": made, "hard": True})


def test_a_folder_of_a_project_that_is_closed_cannot_be_taken(world: World) -> None:
    before = world.state()
    told = world.call("eve", "initialize_context", {"project_path": world.names["path"]})
    assert "ACCESS_DENIED" in told
    assert WORD not in told.replace(world.names["path"], "")
    assert world.state() == before


def test_whoever_is_let_in_finds_what_is_there(world: World) -> None:
    """That the others find nothing proves nothing unless somebody finds it by the same calls."""
    cortex = world.cortex
    cortex.tenants.join("ida", "read")
    cortex.tenants.grant(world.names["project"], "read", user="ida")
    world.tokens["ida"] = cortex.access.create("ida", scopes=SCOPES, project=world.names["project"]).token
    assert WORD in world.call("ida", "subcog_get", {"memory_id": world.names["memory"]})
    assert SECRET in world.call("ida", "subcog_recall", {"query": WORD, "detail": "everything"})
    assert SECRET in world.read("ida", f"subcog://memory/{world.names['memory']}")
    assert world.names["memory"] in world.complete("ida", "id", world.names["prefix"])
    assert f"{WORD}-prompt" in world.call("ida", "prompt_list", {})
    assert f"{WORD}engine" in world.call("ida", "subcog_entities", {"action": "list", "limit": 100})
    told = world.call(
        "ida",
        "load_context",
        {"branch_id": "", "project_id": world.names["project"], "context_id": world.names["memory"]},
    )
    assert SECRET in told
    assert "ACCESS_DENIED" in world.call(
        "ida", "create_branch", {"project_id": world.names["project"], "branch_topic": "x"}
    )
    cortex.tenants.revoke(world.names["project"], user="ida")
    assert "404" in world.call("ida", "subcog_get", {"memory_id": world.names["memory"]})


def test_whoever_works_in_no_project_is_told_so_and_sees_nothing(world: World) -> None:
    cortex = world.cortex
    cortex.tenants.create("guests")
    world.tokens["gus"] = cortex.access.create("gus", scopes=SCOPES, org="guests").token
    for tool, arguments in (
        ("subcog_recall", {}),
        ("subcog_status", {}),
        ("prompt_list", {}),
        ("subcog_graph", {"operation": "stats"}),
        ("subcog_capture", {"content": "x", "namespace": "context"}),
    ):
        assert "You work in no project here" in world.call("gus", tool, arguments)
    assert "You work in no project here" in world.read("gus", "subcog://topics")
    assert json.loads(world.ask("gus", "prompts/list", "", {}))["result"]["prompts"] == []
    assert json.loads(world.complete("gus", "id", ""))["result"]["completion"]["values"] == []
    for project in (world.names["open_project"], world.names["project"]):
        assert "PROJECT_NOT_FOUND" in world.call("gus", "get_automation_status", {"project_id": project})
