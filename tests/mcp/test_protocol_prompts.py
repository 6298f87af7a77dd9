"""Saved prompts as prompts of the protocol: listed, filled in, completed, and their changes told, whoever made them."""

import queue
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import mcp_types
import pytest
from anyio.from_thread import BlockingPortal
from mcp.client.subscriptions import PromptsListChanged, ResourceUpdated, Subscription, listen
from mcp.shared.exceptions import MCPError
from mcp_types import PromptReference

from cortex_py import Cortex
from cortex_py.surfaces.mcp.server import MemoryServer, build_server
from timing import MINUTE

from clients import Caller, connected, stdio_transport
from helpers import git
from servers import http_server
from stub_backend import StubBackend

SECONDS = MINUTE
BUILTIN = ["capture-decision", "document-api", "review-memories", "start-session"]
CHANGED = "prompts"
TOPICS = "subcog://topics"
SILENCE = [TOPICS, "after first-proof", TOPICS, "after second-proof"]


class Client:
    """A client with prompts as its commands. `told` hears of changes, once it watches."""

    def __init__(self, caller: Caller, told: "queue.Queue[str]", streams: ExitStack) -> None:
        self.caller = caller
        self._told = told
        self._streams = streams

    def listed(self) -> dict[str, mcp_types.Prompt]:
        return {one.name: one for one in self.caller.portal.call(self.caller.client.list_prompts)}

    def filled(self, name: str, **arguments: str) -> str:
        """The text of a prompt, which is one message of the user's."""
        (message,) = self.got(name, **arguments).messages
        assert message.role == "user"
        return str(message.content.text)

    def got(self, name: str, **arguments: str) -> mcp_types.GetPromptResult:
        return self.caller.portal.call(self.caller.client.get_prompt, name, arguments or None)

    def refused(self, name: str, **arguments: str) -> mcp_types.ErrorData:
        with pytest.raises(MCPError) as caught:
            self.got(name, **arguments)
        return caught.value.error

    def offered(self, name: str, argument: str, typed: str = "") -> list[str]:
        reference = PromptReference(name=name)
        given = {"name": argument, "value": typed}
        return list(self.caller.portal.call(self.caller.client.complete, reference, given).values)

    def watch(self, *uris: str) -> None:
        """Be told of changes to the prompts and to addresses. Whoever shook hands need only have listed the prompts."""
        session = self.caller.client.session
        if session.protocol_version == "2025-11-25":
            self.listed()
            for uri in uris:
                request = mcp_types.SubscribeRequest(params=mcp_types.SubscribeRequestParams(uri=uri))
                self.caller.portal.call(session.send_request, request, mcp_types.EmptyResult)
            return
        opened = listen(session, prompts_list_changed=True, resource_subscriptions=uris)
        subscription = self._streams.enter_context(self.caller.portal.wrap_async_context_manager(opened))
        self.caller.portal.start_task_soon(self._hear, subscription)

    def next(self) -> str:
        return self._told.get(timeout=SECONDS)

    async def _hear(self, subscription: Subscription) -> None:
        async for event in subscription:
            if isinstance(event, PromptsListChanged):
                self._told.put(CHANGED)
            elif isinstance(event, ResourceUpdated):
                self._told.put(str(event.uri))


@contextmanager
def client_of(server: Any, mode: str, portal: BlockingPortal | None = None) -> Iterator[Client]:
    told: queue.Queue[str] = queue.Queue()

    async def hear(message: object) -> None:
        # A stream has its own way to the ear.
        if mode != "legacy":
            return
        if isinstance(message, mcp_types.PromptListChangedNotification):
            told.put(CHANGED)
        elif isinstance(message, mcp_types.ResourceUpdatedNotification):
            told.put(str(message.params.uri))

    with connected(server, mode, portal, message_handler=hear) as caller, ExitStack() as streams:
        yield Client(caller, told, streams)


@pytest.fixture
def repository(project: Path) -> None:
    """Where a project is, is seen when Cortex is opened: this comes before."""
    git(project, "init", "-q", "-b", "main")


@pytest.fixture
def cortex(home: Path, project: Path) -> Iterator[Cortex]:
    with Cortex.open(home, project=project, backend=StubBackend()) as opened:
        yield opened


@pytest.fixture
def server(cortex: Cortex) -> MemoryServer:
    built = build_server(cortex)
    built.subscriptions.interval = built.subscriptions.prompts_interval = 0.01
    return built


@pytest.fixture
def client(server: MemoryServer, mode: str) -> Iterator[Client]:
    with client_of(server, mode) as opened:
        yield opened


def _share(project: Path, name: str, text: str) -> Path:
    """A file of the project's repository, there at one stroke: half a file would be a change of its own."""
    folder = project / ".cortex" / "prompts"
    folder.mkdir(parents=True, exist_ok=True)
    (project / "draft").write_text(text, "utf-8")
    return (project / "draft").replace(folder / name)


# -- listed and filled in ----------------------------------------------------------------------------


def test_changes_of_the_list_are_advertised(client: Client) -> None:
    capabilities = client.caller.client.server_capabilities
    assert capabilities is not None
    assert capabilities.prompts is not None
    assert capabilities.prompts.list_changed is True


def test_what_comes_with_cortex_is_listed_with_its_arguments(client: Client) -> None:
    listed = client.listed()
    assert list(listed) == BUILTIN
    assert all(one.description and one.arguments for one in listed.values())
    arguments = listed["document-api"].arguments or []
    assert [(one.name, one.required) for one in arguments] == [("path", True), ("audience", False)]
    assert all(one.description for one in arguments)


def test_a_saved_prompt_is_listed_with_its_arguments(cortex: Cortex, client: Client) -> None:
    declared = {"tone": {"description": "How", "default": "kind"}, "sign": {"required": False}}
    content = "{{who}} {{tone}} {{sign}} \\{{text}} {{who}}"
    cortex.prompts.save("greet", content, description="Greets somebody", variables=declared)
    cortex.prompts.save("plain", "Hello")
    listed = client.listed()
    assert list(listed) == sorted([*BUILTIN, "greet", "plain"])
    assert listed["greet"].description == "Greets somebody"
    assert [(one.name, one.description, one.required) for one in listed["greet"].arguments or []] == [
        ("who", None, True),
        ("tone", "How", False),
        ("sign", None, False),
    ]
    assert (listed["plain"].description, listed["plain"].arguments) == (None, [])


def test_every_domain_and_the_projects_files_are_listed(cortex: Cortex, client: Client, project: Path) -> None:
    for domain in ("project", "user", "org"):
        cortex.prompts.save(f"of-{domain}", "Hello", domain=domain)
    cortex.templates.save("no-prompt", "Hello")
    _share(project, "shared.md", "---\nname: shared\ndescription: For \u202eall\n---\nHello {{who}}\n")
    _share(project, "broken.md", "---\nname: broken\n---\nHello {{who\n")
    listed = client.listed()
    assert set(listed) == {*BUILTIN, "of-project", "of-user", "of-org", "project:shared"}
    assert listed["project:shared"].description == "From .cortex/prompts/shared.md: For all"
    for name in ("project:shared", "shared"):
        origin, _, text = client.filled(name, who="Zoë").strip().partition("\n\n")
        assert text == "Hello Zoë"
        assert origin.startswith('Not written by the user: the file ".cortex/prompts/shared.md" of the project "')


def test_a_file_takes_the_place_of_no_other_prompt(cortex: Cortex, client: Client, project: Path) -> None:
    before = client.filled("start-session")
    cortex.prompts.save("code-review", "Mine", domain="user")
    for name in ("start-session", "code-review"):
        _share(project, f"{name}.md", "Theirs {{task}}")
    listed = client.listed()
    assert set(listed) == {*BUILTIN, "code-review", "project:code-review", "project:start-session"}
    assert (client.filled("start-session"), client.filled("code-review")) == (before, "Mine")
    theirs = client.filled("project:start-session", task="it")
    assert theirs.startswith("Not written by the user: ")
    assert theirs.endswith("Theirs it")
    assert client.offered("project:start-session", "task") == []


def test_a_prompt_is_filled_in_and_tells_what_it_is_for(cortex: Cortex, client: Client) -> None:
    cortex.prompts.save(
        "greet", "{{greeting}} {{who}}!", description="Greets", variables={"greeting": {"default": "Hello"}}
    )
    assert client.got("greet", who="Zoë ☃").description == "Greets"
    assert client.filled("greet", who="Zoë ☃") == "Hello Zoë ☃!"
    assert client.filled("greet", who="{{greeting}}", greeting="Bye") == "Bye {{greeting}}!"
    assert client.filled("greet", who="you", colour="red") == "Hello you!"
    assert cortex.prompts.get("greet").uses == 4


def test_all_arguments_that_are_missing_are_named(cortex: Cortex, client: Client) -> None:
    cortex.prompts.save("code-review", "Review {{file}} for {{issue_type}}{{more}}", variables={"more": ""})
    error = client.refused("code-review")
    assert (error.code, error.data["fields"]) == (-32602, ["file", "issue_type"])
    assert error.data["prompt"] == "code-review"
    assert "file, issue_type" in error.message
    assert client.refused("code-review", file="x").data["fields"] == ["issue_type"]
    assert cortex.prompts.get("code-review").uses == 0


def test_an_unknown_prompt_is_refused(client: Client) -> None:
    for name in ("absent", "", "Start-Session", "start-session ", "../start-session", "\x00", "☃"):
        error = client.refused(name, who="you")
        assert (error.code, error.data) == (-32602, {"prompt": name})
        assert error.message == f"Unknown prompt: {name}"
    error = client.refused("x" * 1_000_000)
    assert error.code == -32602
    assert len(error.model_dump_json()) < 1_000


def test_a_prompt_saved_after_connecting_is_there_at_once(cortex: Cortex, client: Client, project: Path) -> None:
    assert list(client.listed()) == BUILTIN
    with Cortex.open(cortex.settings.home, project=project, backend=StubBackend()) as other:
        other.prompts.save("theirs", "Hello")
        assert client.filled("theirs") == "Hello"
        assert "theirs" in client.listed()
        other.prompts.delete("theirs", domain="project")
        assert client.refused("theirs").code == -32602
    client.caller.call("subcog_prompts", action="save", name="ours", content="Good day")
    assert client.filled("ours") == "Good day"


# -- completed ---------------------------------------------------------------------------------------


def test_choices_and_defaults_are_offered(cortex: Cortex, client: Client) -> None:
    declared = {
        "tone": {"choices": ["kind", "curt", "Kingly"], "default": "curt"},
        "greeting": {"default": "Hello"},
        "times": {"default": 3},
    }
    cortex.prompts.save("greet", "{{tone}} {{greeting}} {{times}} {{who}}", variables=declared)
    for argument, typed, offered in (
        ("tone", "", ["kind", "curt", "Kingly"]),
        ("tone", "KI", ["kind", "Kingly"]),
        ("tone", "x", []),
        ("greeting", "", ["Hello"]),
        ("greeting", "he", ["Hello"]),
        ("greeting", "Bye", []),
        ("times", "", []),
        ("who", "", []),
        ("absent", "", []),
        ("", "", []),
    ):
        assert client.offered("greet", argument, typed) == offered, (argument, typed)
    assert client.offered("start-session", "task", "to go") == ["to go on where the last session ended"]


@pytest.mark.usefixtures("repository")
def test_what_is_known_is_offered_by_the_name_of_an_argument(cortex: Cortex, client: Client, project: Path) -> None:
    (project / "src").mkdir()
    for name in ("src/main.py", "src/maths.py", "README.md"):
        (project / name).write_text("# Hello\n", "utf-8")
    git(project, "add", ".")
    git(project, "commit", "-q", "-m", "begin")
    client.caller.call("initialize_context", project_path=str(project), mode="full")
    cortex.memories.capture("one", tags=["database", "deploy"])
    id = cortex.memories.capture("two", tags=["deploy"]).id
    names = ("file", "source_path", "branch", "namespace", "tag", "tags", "domain", "memory_id")
    cortex.prompts.save("know", " ".join(f"{{{{{name}}}}}" for name in names))
    for argument, typed, offered in (
        ("file", "", ["README.md", "src/main.py", "src/maths.py"]),
        ("file", "src/ma", ["src/main.py", "src/maths.py"]),
        ("source_path", "READ", ["README.md"]),
        ("file", "%", []),
        ("branch", "", ["main"]),
        ("branch", "x", []),
        ("namespace", "de", ["decisions"]),
        ("tag", "", ["deploy", "database"]),
        ("tags", "da", ["database"]),
        ("domain", "p", ["project"]),
        ("memory_id", id[:12], [id]),
    ):
        assert sorted(client.offered("know", argument, typed)) == sorted(offered), (argument, typed)


def test_nothing_is_offered_for_an_unknown_prompt(client: Client) -> None:
    for name in ("absent", "", "\x00", "x" * 100_000, "Start-Session"):
        assert client.offered(name, "task") == []


def test_no_more_than_a_hundred_values_are_offered(cortex: Cortex, client: Client) -> None:
    for first in range(0, 110, 10):
        cortex.memories.capture(f"Note {first}", tags=[f"tag-{number}" for number in range(first, first + 10)])
    cortex.prompts.save("know", "{{tag}}")
    assert len(client.offered("know", "tag", "tag-")) == 100


# -- changes are told --------------------------------------------------------------------------------


def _proof_of_silence(cortex: Cortex, client: Client) -> list[str]:
    """All that is told up to two changes of the topics, which the client watches too.

    Two: what one change leads to is told in any order, but before what the next one leads to.
    """
    told = []
    for tag in ("first-proof", "second-proof"):
        cortex.memories.capture("A proof", namespace="testing", tags=[tag])
        while not told or told[-1] != TOPICS:
            told.append(client.next())
        told.append(f"after {tag}")
    return told


def test_every_change_of_a_prompt_is_told(cortex: Cortex, client: Client) -> None:
    client.watch(TOPICS)
    for change in (
        lambda: cortex.prompts.save("greet", "Hello"),
        lambda: cortex.prompts.save("greet", "Hello {{who}}"),
        lambda: cortex.prompts.save("greet", "Mine", domain="user"),
        lambda: cortex.prompts.delete("greet", domain="project"),
        lambda: client.caller.call("subcog_prompts", action="save", name="ours", content="Good day"),
        lambda: client.caller.call("prompt_delete", name="ours", domain="project"),
    ):
        change()
        assert client.next() == CHANGED
    assert _proof_of_silence(cortex, client) == SILENCE


def test_every_change_of_a_file_is_told(cortex: Cortex, client: Client, project: Path) -> None:
    client.watch(TOPICS)
    _share(project, "greet.md", "---\nname: greet\n---\nHello\n")
    assert client.next() == CHANGED
    assert "project:greet" in client.listed()
    file = _share(project, "greet.md", "---\nname: greet\n---\nHello {{who}}\n")
    assert client.next() == CHANGED
    assert client.listed()["project:greet"].arguments
    file.unlink()
    assert client.next() == CHANGED
    assert list(client.listed()) == BUILTIN
    assert _proof_of_silence(cortex, client) == SILENCE


def test_what_is_no_change_of_the_prompts_is_not_told(cortex: Cortex, client: Client, tmp_path: Path) -> None:
    cortex.prompts.save("greet", "Hello")
    cortex.templates.save("found", "{{memories}}")
    client.watch(TOPICS)
    client.filled("greet")
    client.filled("start-session")
    client.caller.call("subcog_prompts", action="run", name="greet")
    client.caller.refused("subcog_prompts", action="save", name="greet", content="{{")
    cortex.templates.save("found", "{{#each memories}}{{memory.content}}{{/each}}")
    cortex.templates.render("found")
    client.listed()
    (tmp_path / "elsewhere").mkdir()
    with Cortex.open(cortex.settings.home, project=tmp_path / "elsewhere", backend=StubBackend()) as other:
        other.prompts.save("theirs", "Hello")
    assert _proof_of_silence(cortex, client) == SILENCE


def test_what_another_one_saves_for_all_projects_is_told(cortex: Cortex, client: Client, tmp_path: Path) -> None:
    client.watch()
    (tmp_path / "elsewhere").mkdir()
    with Cortex.open(cortex.settings.home, project=tmp_path / "elsewhere", backend=StubBackend()) as other:
        other.prompts.save("everywhere", "Hello", domain="user")
    assert client.next() == CHANGED
    assert client.filled("everywhere") == "Hello"


def test_whoever_did_not_ask_is_not_told(cortex: Cortex, server: MemoryServer, mode: str) -> None:
    with client_of(server, mode) as one, client_of(server, mode, one.caller.portal) as other:
        one.watch(TOPICS)
        cortex.prompts.save("greet", "Hello")
        assert one.next() == CHANGED
        other.watch(TOPICS)
        cortex.prompts.save("greet", "Good day")
        assert (one.next(), other.next()) == (CHANGED, CHANGED)
        assert _proof_of_silence(cortex, other) == SILENCE


def test_prompts_are_listed_however_many_addresses_are_watched(
    cortex: Cortex, client: Client, server: MemoryServer
) -> None:
    server.subscriptions.most_addresses = 1
    client.watch(TOPICS)
    assert list(client.listed()) == BUILTIN
    cortex.prompts.save("greet", "Hello")
    assert client.next() == CHANGED


Change = Callable[[Cortex, Path], object]


def test_a_server_process_tells_what_another_process_changed(home: Path, project: Path, mode: str) -> None:
    # Each protocol over one transport: what differs between transports is tested without processes.
    transport = {"legacy": "stdio", "auto": "http"}[mode]
    changes: tuple[Change, ...] = (
        lambda here, _: here.prompts.save("greet", "Hello {{who}}"),
        lambda _, project: _share(project, "shared.md", "---\nname: shared\n---\nGood day\n"),
        lambda here, _: here.prompts.delete("greet", domain="project"),
    )
    with ExitStack() as stack:
        where: Any = stdio_transport(home, project)
        if transport == "http":
            where = stack.enter_context(http_server(home, project)).mcp
        client = stack.enter_context(client_of(where, mode))
        here = stack.enter_context(Cortex.open(home, project=project, backend=StubBackend()))
        assert list(client.listed()) == BUILTIN
        client.watch()
        seen = []
        for change in changes:
            change(here, project)
            assert client.next() == CHANGED
            seen.append(sorted(set(client.listed()) - set(BUILTIN)))
        assert seen == [["greet"], ["greet", "project:shared"], ["project:shared"]]
        assert client.filled("project:shared").strip().endswith("Good day")
