"""Memories as resources: addresses that a person attaches to a chat, or that a client reads and watches.

`MemoryResources` answers by address and knows nothing of the protocol; `serve_resources` lists and reads for clients.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote

import anyio.to_thread
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError
from mcp_types import (
    CompleteRequestParams,
    CompleteResult,
    Completion,
    CompletionArgument,
    ListResourcesResult,
    ListResourceTemplatesResult,
    PaginatedRequestParams,
    PromptReference,
    ReadResourceRequestParams,
    ReadResourceResult,
    Resource,
    ResourceTemplate,
    ResourceTemplateReference,
    TextResourceContents,
)

from ...core.clock import SCHEME, full_address, parse_ref
from ...core.errors import (
    AmbiguousId,
    CortexError,
    InvalidInput,
    MemoryNotFound,
    NotFound,
    ProjectNotFound,
    PromptNotFound,
)
from ...core.memory.spaces import NAMESPACES, canonical_domain, canonical_namespace
from ...core.records import DOMAINS, tells_subject
from .calls import META, retried
from .families.answer import Answer
from .families.memory import MemoryAnswer, NamespacesAnswer, RecallAnswer, TagCount, TopicsAnswer
from .help_pages import HELP, help_title
from .middleware.chain import INTERNAL_ERROR, INVALID_PARAMS, as_wire_error

if TYPE_CHECKING:
    from ...app import Cortex

__all__ = ["MemoryResources", "serve_completions", "serve_resources"]

ANY = "_"
JSON = "application/json"
MARKDOWN = "text/markdown"

_MOST_COMPLETIONS = 100

Context = ServerRequestContext[Any, Any]

_log = logging.getLogger(__name__)


class _Address(NamedTuple):
    """An address, or a template of some with a name in braces for each part, and what it shows."""

    name: str
    path: str
    show: Callable[..., str]
    mime_type: str
    title: str | None = None

    @property
    def description(self) -> str:
        return self.title or self.show.__doc__ or ""


class MemoryResources:
    """What each kind of address shows. The parts of an address come decoded; only `read` takes it as sent."""

    def __init__(self, cortex: Cortex) -> None:
        self._cortex = cortex

    def memory(self, id: str) -> str:
        """One memory in full."""
        return _json(MemoryAnswer.from_memory(self._cortex.memories.get(id)))

    def scoped_memory(self, domain: str, namespace: str, id: str) -> str:
        """One memory in full, by its scoped address."""
        found = self._cortex.memories.get(parse_ref(id).prefix)
        if (domain != ANY and canonical_domain(domain) != found.domain) or (
            namespace != ANY and canonical_namespace(namespace) != found.namespace
        ):
            raise MemoryNotFound(f"There is no memory {id[:60]!r} in {domain[:40]}/{namespace[:40]}.", field="id")
        return _json(MemoryAnswer.from_memory(found))

    def listing(self, domain: str, namespace: str) -> str:
        """The newest memories of a namespace; `_` stands for any domain or namespace."""
        page = self._cortex.memories.recall(
            domain=None if domain == ANY else canonical_domain(domain),
            namespace=None if namespace == ANY else namespace,
        )
        return _json(RecallAnswer.from_page(page, "medium", searched=False))

    def search(self, query: str) -> str:
        """What a search finds."""
        return _json(
            RecallAnswer.from_page(self._cortex.memories.recall(query), "medium", searched=bool(query.strip()))
        )

    def namespaces(self) -> str:
        """The namespaces, with words that suggest each."""
        return _json(NamespacesAnswer.from_namespaces(self._cortex.memories.namespaces()))

    def topics(self) -> str:
        """What the memories are about: tags with how many have each."""
        tags = [TagCount(tag=tag, count=count) for tag, count in self._cortex.memories.tags() if tells_subject(tag)]
        return _json(TopicsAnswer(topics=tags))

    def help(self, topic: str) -> str:
        """A short page on how to use the memory."""
        page = HELP.get(topic)
        if page is None:
            raise InvalidInput(f"There is no help on {topic[:40]!r}.", remedy=f"Read one of {', '.join(HELP)}.")
        return page

    @property
    def fixed(self) -> list[_Address]:
        topics = [
            _Address(f"help-{topic}", f"help/{topic}", partial(self.help, topic), MARKDOWN, help_title(topic))
            for topic in HELP
        ]
        return [
            _Address("namespaces", "namespaces", self.namespaces, JSON),
            _Address("topics", "topics", self.topics, JSON),
            *topics,
        ]

    @property
    def templates(self) -> list[_Address]:
        """The first that fits answers, so the special ones come before the general ones."""
        return [
            _Address("memory", "memory/{id}", self.memory, JSON),
            _Address("search", "search/{query}", self.search, JSON),
            _Address("help", "help/{topic}", self.help, MARKDOWN),
            _Address("scoped-memory", "{domain}/{namespace}/{id}", self.scoped_memory, JSON),
            _Address("listing", "{domain}/{namespace}", self.listing, JSON),
        ]

    def find(self, uri: str) -> tuple[str, Callable[[], str]] | None:
        """The type of what an address shows, and a function that reads it."""
        if not uri.startswith(SCHEME):
            return None
        path = uri.removeprefix(SCHEME)
        for address in self.fixed:
            if address.path == path:
                return address.mime_type, address.show
        parts = path.partition("#")[0].partition("?")[0].split("/")
        for address in self.templates:
            names = address.path.split("/")
            if len(names) == len(parts) and all(
                part and (name.startswith("{") or name == part) for name, part in zip(names, parts, strict=True)
            ):
                given = [unquote(part) for name, part in zip(names, parts, strict=True) if name.startswith("{")]
                return address.mime_type, partial(address.show, *given)
        return None

    def read(self, uri: str) -> str:
        """What an address shows; raises the library's errors."""
        found = self.find(full_address(uri))
        if found is None:
            raise InvalidInput(f"{uri[:80]!r} names nothing.", field="uri")
        return found[1]()


def serve_resources(server: Server[Any], resources: MemoryResources) -> None:
    """Offer every address."""
    listed = ListResourcesResult(
        resources=[
            Resource(
                uri=f"{SCHEME}{one.path}",
                name=one.name,
                title=one.title,
                description=one.description,
                mime_type=one.mime_type,
                _meta=META,
            )
            for one in resources.fixed
        ]
    )
    templates = ListResourceTemplatesResult(
        resource_templates=[
            ResourceTemplate(
                uri_template=f"{SCHEME}{one.path}",
                name=one.name,
                description=one.description,
                mime_type=one.mime_type,
                _meta=META,
            )
            for one in resources.templates
        ]
    )

    async def list_resources(_: Context, __: PaginatedRequestParams) -> ListResourcesResult:
        return listed

    async def list_templates(_: Context, __: PaginatedRequestParams) -> ListResourceTemplatesResult:
        return templates

    async def read(_: Context, params: ReadResourceRequestParams) -> ReadResourceResult:
        uri = full_address(params.uri)
        found = resources.find(uri)
        if found is None:
            raise MCPError(code=INVALID_PARAMS, message=f"Resource not found: {params.uri!r}", data={"uri": params.uri})
        mime_type, show = found
        try:
            text = await retried(lambda: anyio.to_thread.run_sync(show))
        except CortexError as error:
            # The protocol has one code for a resource that does not exist.
            absent = isinstance(error, NotFound | InvalidInput | AmbiguousId)
            detail = as_wire_error(error, {}).error
            code = INVALID_PARAMS if absent else detail.code
            raise MCPError(code=code, message=detail.message, data={**detail.data, "uri": uri}) from error
        except Exception as error:
            _log.error("resources/read failed", exc_info=error)
            raise MCPError(code=INTERNAL_ERROR, message=f"Error reading resource {uri!r}") from error
        return ReadResourceResult(contents=[TextResourceContents(uri=params.uri, mime_type=mime_type, text=text)])

    server.add_request_handler("resources/list", PaginatedRequestParams, list_resources)
    server.add_request_handler("resources/templates/list", PaginatedRequestParams, list_templates)
    server.add_request_handler("resources/read", ReadResourceRequestParams, read)


def _json(answer: Answer) -> str:
    return json.dumps(answer.payload(), ensure_ascii=False)


# Completion of arguments: of prompts, and of resource addresses (domains, namespaces, ids, tags, help topics).


def serve_completions(server: Server[Any], cortex: Cortex) -> None:
    async def complete(_: Context, params: CompleteRequestParams) -> CompleteResult:
        values = await anyio.to_thread.run_sync(_complete, cortex, params.ref, params.argument)
        if len(values) <= _MOST_COMPLETIONS:
            return CompleteResult(completion=Completion(values=values))
        return CompleteResult(
            completion=Completion(values=values[:_MOST_COMPLETIONS], total=len(values), has_more=True)
        )

    server.add_request_handler("completion/complete", CompleteRequestParams, complete)


def _complete(
    cortex: Cortex, ref: PromptReference | ResourceTemplateReference, argument: CompletionArgument
) -> list[str]:
    try:
        if isinstance(ref, PromptReference):
            return cortex.prompts.complete(ref.name, argument.name, argument.value)
        if not full_address(str(ref.uri)).startswith(SCHEME):
            return []
        typed = argument.value.strip().lower()
        if argument.name == "id":
            return list(cortex.memories.ids(typed))
        if argument.name == "query":
            return [tag for tag, _ in cortex.memories.tags(typed)]
    except (ProjectNotFound, PromptNotFound):
        # A caller without a project has nothing to choose from.
        return []
    fixed = {"domain": DOMAINS, "namespace": tuple(namespace.name for namespace in NAMESPACES), "topic": tuple(HELP)}
    return [value for value in fixed.get(argument.name, ()) if value.startswith(typed)]
