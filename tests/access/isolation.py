"""A shared server with tenants, records that name their space, and a naive model of who may read what.

Every record holds words of its space. `probe` may stand in a request and proves nothing in an answer. `hidden` never
does: wherever it appears, it came from a record. Ids are known from the tables themselves. An answer leaks if it holds
a hidden word or an id of a space that its caller may not read, unless the caller asked by that very id.

The server is opened for a project of its own, the lobby. What it knows of that lies in its memory and not in rows.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from types import FunctionType
from typing import Any

import httpx2
import pytest
from starlette.testclient import TestClient

from cortex_py import Cortex
from cortex_py.core.records import files_space, org_space, turns_space, user_space
from cortex_py.core.security import permission
from cortex_py.core.security.callers import Caller, acting_as
from cortex_py.core.security.rights import LEVELS, SCOPES, Rights
from cortex_py.opening import bounds_now
from cortex_py.surfaces.http.callers import PROJECT_HEADER
from cortex_py.surfaces.http.server import build_app
from inside import database_of, store_of

from stub_backend import StubBackend

__all__ = ["MODES", "ORGS", "PEOPLE", "Asked", "Leak", "Model", "Words", "World", "layers", "post", "steady"]

# Which layers keep callers apart: what statements ask for, what the engine shows, both, or for once none.
MODES = ("both", "engine", "statements")
ORGS = ("own", "rivals")
PEOPLE = ("ann", "bob", "cyd")
_SENT_ALONG = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
# Tables with ids that are shown to callers, and the space of each row.
_IDS = (
    "SELECT id, space FROM memory",
    "SELECT id, project_id FROM branch",
    "SELECT id, space FROM entity",
    "SELECT id, space FROM relationship",
    "SELECT id, project_id FROM suggestion_session",
    "SELECT id, space FROM consolidation",
    "SELECT name, space FROM saved",
    "SELECT id, id FROM project",
)
_SHORTEST_ID = 8
_VARYING = (
    (re.compile(r"\d{4}-\d\d-\d\d[T ][\d:.]+(?:Z|\+00:00)?"), "MOMENT"),
    (re.compile(r"(_ms|latency|seconds|time|uses|hits|misses|requests|total_embed)([a-z_]*\\*\":\s*)[\d.]+"), r"\1\2N"),
    # Relationships are stated anew when what they are read from is indexed again.
    (re.compile(r"relationship_[0-9a-f]{40}"), "RELATIONSHIP"),
)


class Leak(AssertionError):
    pass


@dataclass(frozen=True)
class Words:
    probe: str
    hidden: str
    # In the name of a project's folder, and so in paths, by which it can be asked for.
    place: str

    @classmethod
    def of(cls, label: str) -> Words:
        return cls(*(f"{kind}{_letters(label + kind)}" for kind in ("qp", "qh", "ql")))

    @property
    def text(self) -> str:
        return f"The {self.probe} launch of {self.hidden} uses PostgreSQL and Redis"


def _letters(text: str) -> str:
    return "".join(chr(97 + byte % 26) for byte in sha256(text.encode()).digest()[:9])


@dataclass
class Model:
    """Who may read what, as somebody would say it who only knows the rules."""

    members: set[tuple[str, str]] = field(default_factory=set)
    groups: dict[tuple[str, str], set[str]] = field(default_factory=dict)
    orgs: dict[str, str] = field(default_factory=dict)
    restricted: set[str] = field(default_factory=set)
    grants: set[tuple[str, str, str]] = field(default_factory=set)

    def readable(self, org: str, user: str) -> set[str]:
        if (org, user) not in self.members:
            return set()
        spaces = {user_space(user), org_space(org)}
        for project, owner in self.orgs.items():
            if owner == org and (project not in self.restricted or self._granted(org, user, project)):
                spaces |= {project, files_space(project), turns_space(project)}
        return spaces

    def _granted(self, org: str, user: str, project: str) -> bool:
        if (project, "user", user) in self.grants:
            return True
        return any(
            (project, "group", name) in self.grants and user in people
            for (where, name), people in self.groups.items()
            if where == org
        )


@dataclass(frozen=True)
class Asked:
    """One request: who asks, in which organisation and project, and what."""

    user: str
    org: str
    project: str | None
    method: str
    params: dict[str, Any]

    @property
    def text(self) -> str:
        return json.dumps([self.params, self.project], ensure_ascii=False)


class World:
    """The server with its tenants, asked over HTTP with tokens, as any client does."""

    def __init__(self, base: Path, url: str, folders: int = 3) -> None:
        self._stack = ExitStack()
        self.base = base
        self.model = Model()
        self.words: dict[str, Words] = {}
        self.projects: list[str] = []
        self.folders: dict[str, Path] = {}
        self._tokens: dict[tuple[str, str], str] = {}
        self._offered: tuple[dict[str, dict[str, Any]], list[str]] | None = None
        self.home = base / "home"
        settings: dict[str, Any] = {
            "database_url": url,
            "backend": StubBackend(),
            "auth": "tokens",
            "project_roots": [base],
            "audit": "off",
            "org": ORGS[0],
            "subject_rate_limit": 1_000_000,
            "rate_limit": 1_000_000,
        }
        lobby = base / "lobby"
        lobby.mkdir()
        self.cortex = self._stack.enter_context(Cortex.open(self.home, project=lobby, **settings))
        self.lobby = self.cortex.project.id
        self.model.orgs[self.lobby] = ORGS[0]
        for org in ORGS[1:]:
            self.cortex.tenants.create(org)
        for number in range(folders):
            self.begin_project(number, ORGS[number % len(ORGS)])
        for space in (*map(user_space, PEOPLE), *map(org_space, ORGS), user_space("local")):
            self.words[space] = Words.of(space)
        self._client = self._stack.enter_context(TestClient(build_app(self.cortex), base_url="http://127.0.0.1"))

    def close(self) -> None:
        self._stack.close()

    # -- what is there ----------------------------------------------------------------------------

    def _folder(self, number: int) -> Path:
        words = Words.of(f"project {number}")
        folder = self.base / f"{words.place}-{number}"
        folder.mkdir()
        (folder / "README.md").write_text(f"# About\n\n{words.text}.\n")
        (folder / "module.py").write_text(f'def {words.hidden}() -> None:\n    """{words.text}."""\n')
        return folder

    def begin_project(self, number: int, org: str) -> None:
        folder = self._folder(number)
        project = self.cortex.contexts.initialize(str(folder)).project.id
        if org != ORGS[0]:
            self.cortex.tenants.assign(project, org)
        self.projects.append(project)
        self.folders[project] = folder
        self.words[project] = self.words[files_space(project)] = Words.of(f"project {number}")
        self.model.orgs[project] = org

    def plant(self, space: str) -> None:
        """One of everything that a space can hold, written by somebody who may."""
        words, count = self.words[space], len(self.ids())
        org = self.model.orgs.get(space, space.removeprefix("org:") if space.startswith("org:") else ORGS[0])
        user = space.removeprefix("user:") if space.startswith("user:") else "root"
        project = space if space in self.projects else self.projects[0]
        kinds = (files_space, turns_space)
        every = frozenset({space, project, user_space(user), *(of(one) for of in kinds for one in (space, project))})
        domain = "user" if space.startswith("user:") else "org" if space.startswith("org:") else "project"
        writer = Caller(user, org=org, rights=Rights(every, every, every), project=project)
        with acting_as(writer):
            memories = self.cortex.memories
            note = memories.capture(f"{words.text} {count}", tags=[f"{words.hidden}-tag"], domain=domain)
            memories.update(note.id, content=f"{words.text}, changed {count}")
            memories.delete(memories.capture(f"{words.text}, deleted {count}", domain=domain).id)
            for name in (words.probe, words.hidden):
                self.cortex.prompts.save(f"{name}-prompt", f"Say {words.hidden} {{{{what}}}}", domain=domain)
                self.cortex.templates.save(f"{name}-template", f"{words.hidden} {{{{memories}}}}", domain=domain)
            if domain == "project":
                for name in (words.probe, words.hidden):
                    line = self.cortex.contexts.create_branch(f"{name} work {count}")
                    self.cortex.contexts.append(line.id, f"{words.text} {count}", "user")
                entity = self.cortex.graph.create(f"{words.hidden}engine", "Technology")
                other = self.cortex.graph.create(f"{words.probe}store", "Technology")
                self.cortex.graph.relate(entity.id, other.id, "Uses")
                self.cortex.suggestions.suggest(f"the {words.hidden} launch with PostgreSQL {count}")

    def ids(self) -> dict[str, set[str]]:
        """Every id with the spaces that have it."""
        found: dict[str, set[str]] = {}
        with acting_as(None), database_of(self.cortex).read() as session:
            for statement in _IDS:
                for one, space in session.rows(f"{statement} ORDER BY 1"):
                    found.setdefault(one, set()).add(space)
        return found

    def places(self) -> dict[str, list[Path]]:
        """The folders of the home that hold files of each project."""
        kinds = ("memory", "backups", "evidence")
        return {
            project: [one for kind in kinds for one in self.home.rglob(f"{kind}/{project}") if any(one.iterdir())]
            for project in self.projects
        }

    # -- tenants ----------------------------------------------------------------------------------

    def join(self, org: str, user: str, level: str) -> None:
        self.cortex.tenants.join(user, level, org=org)
        self.model.members.add((org, user))
        if (org, user) not in self._tokens:
            made = self.cortex.access.create(user, agent=f"{user}-agent", scopes=SCOPES, org=org)
            self._tokens[(org, user)] = made.token

    def leave(self, org: str, user: str) -> None:
        self.cortex.tenants.leave(user, org=org)
        self.model.members.discard((org, user))
        for (where, _), people in self.model.groups.items():
            if where == org:
                people.discard(user)
        self.model.grants = {
            one for one in self.model.grants if one[1:] != ("user", user) or self.model.orgs[one[0]] != org
        }

    def group(self, org: str, name: str, user: str) -> None:
        self.cortex.tenants.create_group(name, org=org)
        self.cortex.tenants.add_to_group(name, user, org=org)
        self.model.groups.setdefault((org, name), set()).add(user)

    def ungroup(self, org: str, name: str, user: str) -> None:
        self.cortex.tenants.remove_from_group(name, user, org=org)
        self.model.groups[(org, name)].discard(user)

    def grant(self, project: str, kind: str, grantee: str, level: str) -> None:
        self.cortex.tenants.grant(project, level, **{kind: grantee})
        self.model.grants.add((project, kind, grantee))

    def revoke(self, project: str, kind: str, grantee: str) -> None:
        self.cortex.tenants.revoke(project, **{kind: grantee})
        self.model.grants.discard((project, kind, grantee))

    def restrict(self, project: str, restricted: bool) -> None:
        self.cortex.tenants.restrict(project, restricted)
        (self.model.restricted.add if restricted else self.model.restricted.discard)(project)

    def assign(self, project: str, org: str) -> None:
        self.cortex.tenants.assign(project, org)
        if self.model.orgs[project] != org:
            self.model.grants = {one for one in self.model.grants if one[0] != project}
        self.model.orgs[project] = org

    # -- asking -----------------------------------------------------------------------------------

    def ask(self, asked: Asked) -> str:
        """The whole answer: a result, an error, or a refusal of the server."""
        named = str(asked.params.get("name") or asked.params.get("uri") or "")
        token = self._tokens[(asked.org, asked.user)]
        return post(self._client, token, asked.method, named, asked.params, asked.project).text

    def offered(self) -> tuple[dict[str, dict[str, Any]], list[str]]:
        """The tools with what they take, and the addresses with blanks."""
        if self._offered is None:
            tools = self._result(Asked("ann", "own", None, "tools/list", {}))["tools"]
            templates = self._result(Asked("ann", "own", None, "resources/templates/list", {}))["resourceTemplates"]
            self._offered = (
                {one["name"]: one["inputSchema"] for one in tools},
                [one["uriTemplate"] for one in templates],
            )
        return self._offered

    def _result(self, asked: Asked) -> dict[str, Any]:
        lines = [line.removeprefix("data: ") for line in self.ask(asked).splitlines()]
        told = next(json.loads(line) for line in reversed(lines) if line.startswith("{"))
        found: dict[str, Any] = told["result"]
        return found

    def check(self, asked: Asked, answer: str, ids: dict[str, set[str]], *, lobby: bool) -> None:
        """Raise `Leak` where an answer holds what its caller may not know. `ids` are those from before the call.

        `lobby` says that everybody may know which project the server was opened for.
        """
        seen = self.model.readable(asked.org, asked.user)
        request, told = asked.text, answer.replace("\\\\", "\\")
        shown = {words for space, words in self.words.items() if space in seen}
        for space, words in self.words.items():
            if space in seen or words in shown:
                continue
            for word in (words.hidden, words.place):
                if word in told and (word == words.hidden or word not in request):
                    raise Leak(f"{asked.user} of {asked.org} is told {word} of {space}: {asked}\n{told[:3000]}")
        for one, spaces in {**ids, **self.ids()}.items():
            secret = len(one) >= _SHORTEST_ID and not spaces & seen and not (lobby and one == self.lobby)
            if secret and one in told and one not in request and not _begun(one, request):
                raise Leak(f"{asked.user} of {asked.org} is told the id {one} of {spaces}: {asked}\n{told[:3000]}")


def post(
    client: TestClient, token: str, method: str, name: str, params: dict[str, Any], project: str | None = None
) -> httpx2.Response:
    """What the server answers to one request over HTTP."""
    headers = {
        "Authorization": f"Bearer {token}",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": "2026-07-28",
        "Mcp-Method": method,
        "Mcp-Name": name,
        **({PROJECT_HEADER: project} if project is not None else {}),
    }
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": _SENT_ALONG}}
    return client.post("/mcp", json=body, headers=headers)


def steady(answer: str) -> str:
    """An answer without what differs from call to call."""
    for pattern, instead in _VARYING:
        answer = pattern.sub(instead, answer)
    return answer


def _begun(one: str, request: str) -> bool:
    """Whether an id was asked for by its beginning."""
    return any(one.startswith(part) for part in re.findall(r"[0-9a-z_-]{6,}", request))


@contextmanager
def layers(mode: str, world: World) -> Iterator[None]:
    """Take a layer away. Without the statements' part everything is permitted, and all spaces are asked for."""
    store = store_of(world.cortex)
    with ExitStack() as stack, pytest.MonkeyPatch.context() as patch:
        if mode in ("statements", "none"):
            stack.callback(store.database.bind, bounds_now)
            store.database.bind(lambda: None)
        if mode in ("engine", "none"):

            def everything(asked: Iterable[str], level: str = "read") -> tuple[str, ...]:
                assert level in LEVELS
                return tuple(dict.fromkeys((*asked, *world.words)))

            instead: dict[object, Callable[..., object]] = {
                getattr(permission, name): (lambda *_: True)
                for name in ("may_read", "may_write", "may_administer", "may_create_project")
            }
            for name in ("require_write", "require_admin"):
                instead[getattr(permission, name)] = lambda *_: None
            instead[permission.permitted_spaces] = everything
            patch.setattr(store, "_readable", lambda _space: True)
            for module in [one for name, one in sys.modules.items() if name.startswith("cortex_py.")]:
                for name, value in list(vars(module).items()):
                    if isinstance(value, FunctionType) and value in instead:
                        patch.setattr(module, name, instead[value])
        yield
