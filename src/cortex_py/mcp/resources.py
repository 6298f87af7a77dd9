"""Memories as resources: addresses that a person attaches to a chat, or that a client reads and watches.

`MemoryResources` answers by address and knows nothing of the protocol; `register_resources` adds the addresses to the
server.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from fastmcp import FastMCP
from fastmcp.exceptions import ResourceError
from fastmcp.resources import FunctionResource, ResourceTemplate
from mcp_types import CompletionArgument, CompletionContext, PromptReference, ResourceTemplateReference

from ..errors import InvalidInput, MemoryNotFound, ProjectNotFound, PromptNotFound
from ..ids import SCHEME, full_address, parse_ref
from ..memory.namespaces import NAMESPACES, canonical_namespace
from ..memory.place import canonical_domain
from ..records import DOMAINS, tells_subject
from .families.answer import Answer
from .families.memory.models import MemoryAnswer, NamespacesAnswer, RecallAnswer, TagCount, TopicsAnswer
from .help_pages import HELP, help_title
from .middleware.errors import expected_errors

if TYPE_CHECKING:
    from ..app import Cortex

__all__ = ["MemoryResources", "register_completions", "register_resources"]

ANY = "_"
JSON = "application/json"
MARKDOWN = "text/markdown"


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

    def read(self, uri: str) -> str:
        """What an address shows; raises the library's errors."""
        uri = full_address(uri)
        kind, _, rest = uri.removeprefix(SCHEME).partition("/")
        parts = [unquote(part) for part in rest.split("/")] if rest else []
        single: dict[str, Callable[[str], str]] = {"memory": self.memory, "search": self.search, "help": self.help}
        fixed: dict[str, Callable[[], str]] = {"namespaces": self.namespaces, "topics": self.topics}
        if not uri.startswith(SCHEME):
            raise InvalidInput(f"{uri[:80]!r} is not a {SCHEME} address.", field="uri")
        if kind in fixed and not parts:
            return fixed[kind]()
        if kind in single and len(parts) == 1:
            return single[kind](parts[0])
        if len(parts) == 1:
            return self.listing(kind, parts[0])
        if len(parts) == 2:
            return self.scoped_memory(kind, *parts)
        raise InvalidInput(f"{uri[:80]!r} names nothing.", field="uri")


# What the framework reads from the functions of templates, without the functions, which would keep a server alive.
_described: dict[str, ResourceTemplate] = {}


def register_resources(server: FastMCP[Any], resources: MemoryResources) -> None:
    """Offer every address. The first template that fits answers, so the special ones come before the general ones."""
    for name, read in (("namespaces", resources.namespaces), ("topics", resources.topics)):
        server.add_resource(
            FunctionResource.from_function(
                _guarded(read), uri=f"{SCHEME}{name}", name=name, description=read.__doc__, mime_type=JSON
            )
        )
    for topic in HELP:
        server.add_resource(
            FunctionResource.from_function(
                _guarded(lambda topic=topic: resources.help(topic)),
                uri=f"{SCHEME}help/{topic}",
                name=f"help-{topic}",
                title=help_title(topic),
                description=help_title(topic),
                mime_type=MARKDOWN,
            )
        )
    templates: tuple[tuple[str, str, Callable[..., str], str], ...] = (
        ("memory", "memory/{id}", resources.memory, JSON),
        ("search", "search/{query}", resources.search, JSON),
        ("help", "help/{topic}", resources.help, MARKDOWN),
        ("scoped-memory", "{domain}/{namespace}/{id}", resources.scoped_memory, JSON),
        ("listing", "{domain}/{namespace}", resources.listing, JSON),
    )
    for name, path, function, mime_type in templates:
        if name not in _described:
            described = ResourceTemplate.from_function(
                function, uri_template=SCHEME + path, name=name, description=function.__doc__, mime_type=mime_type
            )
            _described[name] = described.model_copy(update={"fn": None})
        # Parts of an address are texts, as the functions want them: nothing needs to be converted.
        server.add_template(_described[name].model_copy(update={"fn": _guarded(function)}))


def _guarded(function: Callable[..., str]) -> Callable[..., str]:
    @wraps(function)
    def read(*args: Any, **kwargs: Any) -> str:
        with expected_errors(ResourceError):
            return function(*args, **kwargs)

    return read


def _json(answer: Answer) -> str:
    return json.dumps(answer.payload(), ensure_ascii=False)


# Completion of arguments: of prompts, and of resource addresses (domains, namespaces, ids, tags, help topics).


def register_completions(server: FastMCP[Any], cortex: Cortex) -> None:
    @server.completion
    def complete(
        ref: PromptReference | ResourceTemplateReference,
        argument: CompletionArgument,
        context: CompletionContext | None,  # noqa: ARG001
    ) -> list[str] | None:
        try:
            return _complete(cortex, ref, argument)
        except ProjectNotFound:
            # A caller without a project has nothing to choose from.
            return None


def _complete(
    cortex: Cortex, ref: PromptReference | ResourceTemplateReference, argument: CompletionArgument
) -> list[str] | None:
    if isinstance(ref, PromptReference):
        return _for_prompt(cortex, ref.name, argument)
    if not full_address(str(ref.uri)).startswith(SCHEME):
        return None
    typed = argument.value.strip().lower()
    if argument.name == "id":
        return list(cortex.memories.ids(typed))
    if argument.name == "query":
        return [tag for tag, _ in cortex.memories.tags(typed)]
    fixed = {"domain": DOMAINS, "namespace": tuple(namespace.name for namespace in NAMESPACES), "topic": tuple(HELP)}
    return [value for value in fixed.get(argument.name, ()) if value.startswith(typed)]


def _for_prompt(cortex: Cortex, name: str, argument: CompletionArgument) -> list[str] | None:
    try:
        return cortex.prompts.complete(name, argument.name, argument.value)
    except PromptNotFound:
        return None
