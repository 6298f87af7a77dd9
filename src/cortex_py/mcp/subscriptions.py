"""Watched resources, and the watched list of prompts: whoever subscribed is told when what is shown has changed.

Whichever process wrote, the store's revision grows; then every watched address is read again and compared
with what it last showed. Nothing is polled while nobody watches. The handshake protocol has a request per
address, and takes whoever has listed the prompts as interested in them; the stateless one has a stream per
client. All end here.
"""

from __future__ import annotations

import hashlib
import logging
import weakref
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import anyio
import anyio.to_thread
import mcp_types
from fastmcp import FastMCP
from mcp.server.connection import Connection
from mcp.server.context import ServerRequestContext
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, PromptsListChanged, ResourceUpdated
from mcp.shared.exceptions import MCPError

from ..errors import CortexError
from .snapshot import HANDSHAKE_VERSIONS

__all__ = ["Subscriptions"]

_log = logging.getLogger(__name__)

_INTERVAL = 0.25
# The list of prompts changes seldom, and every client that has seen it watches it as long as it is there.
_PROMPTS_INTERVAL = 1.0
_MOST = 1_000
# Stands among the watched addresses for the list of prompts; no address looks like it.
_PROMPTS = "\0prompts"


class Subscriptions:
    """`read` shows an address, or raises; `revision` is a number that grows with every change to memories.

    `prompts` differs after every change to the saved prompts.
    """

    def __init__(self, read: Callable[[str], str], revision: Callable[[], int], prompts: Callable[[], object]) -> None:
        self._read = read
        self._revision = revision
        self._prompts = prompts
        self._bus = InMemorySubscriptionBus()
        self._listen = ListenHandler(self._bus)
        self._streams: Counter[str] = Counter()
        self._connections: weakref.WeakKeyDictionary[Connection, set[str]] = weakref.WeakKeyDictionary()
        self._shown: dict[str, str] = {}
        self._checked: object = None
        self._wanted: anyio.Event | None = None

    def register(self, server: FastMCP[Any]) -> None:
        """Serve the requests of both protocols. FastMCP has no public place for them; a test guards this one."""
        inner = server._mcp_server
        inner.add_request_handler("resources/subscribe", mcp_types.SubscribeRequestParams, self._subscribe)
        inner.add_request_handler("resources/unsubscribe", mcp_types.UnsubscribeRequestParams, self._unsubscribe)
        inner.add_request_handler("subscriptions/listen", mcp_types.SubscriptionsListenRequestParams, self._on_listen)
        listed = server._on_list_prompts

        async def list_prompts(
            context: ServerRequestContext[Any, Any], params: mcp_types.PaginatedRequestParams | None
        ) -> mcp_types.ListPromptsResult:
            if context.protocol_version in HANDSHAKE_VERSIONS:
                self._begin(await self._first_look([_PROMPTS]))
                self._connections.setdefault(_connection(context), set()).add(_PROMPTS)
            return await listed(context, params)

        inner.add_request_handler("prompts/list", mcp_types.PaginatedRequestParams, list_prompts)

    async def run(self) -> None:
        """Look for changes until cancelled."""
        while True:
            if not self._watched():
                self._shown.clear()
                self._wanted = anyio.Event()
                await self._wanted.wait()
            try:
                await self._look()
            except CortexError as error:
                # A store that is busy now answers later; nobody who watches is forgotten over it.
                _log.warning("watched resources could not be looked at: %s", error)
            await anyio.sleep(_PROMPTS_INTERVAL if self._watched() <= {_PROMPTS} else _INTERVAL)

    def close(self) -> None:
        """End the open streams in order, so that clients know it was meant."""
        self._listen.close()

    def _watched(self) -> set[str]:
        return {*self._streams, *(uri for uris in self._connections.values() for uri in uris)}

    async def _look(self) -> None:
        revision = await anyio.to_thread.run_sync(self._seen)
        if revision == self._checked:
            return
        for uri in self._watched():
            shown = await anyio.to_thread.run_sync(self._fingerprint, uri)
            if self._shown.get(uri, shown) != shown:
                await self._tell(uri)
            self._shown[uri] = shown
        for uri in self._shown.keys() - self._watched():
            del self._shown[uri]
        self._checked = revision

    def _seen(self) -> tuple[int, object]:
        return self._revision(), self._prompts() if _PROMPTS in self._watched() else None

    async def _tell(self, uri: str) -> None:
        await self._bus.publish(PromptsListChanged() if uri == _PROMPTS else ResourceUpdated(uri))
        for connection, uris in list(self._connections.items()):
            if uri in uris and uri == _PROMPTS:
                await connection.send_prompt_list_changed()
            elif uri in uris:
                await connection.send_resource_updated(uri)

    def _fingerprint(self, uri: str) -> str:
        try:
            if uri == _PROMPTS:
                return repr(self._prompts())
            return hashlib.sha256(self._read(uri).encode("utf-8", "surrogatepass")).hexdigest()
        except CortexError as error:
            return type(error).__name__

    async def _first_look(self, uris: Iterable[str]) -> dict[str, str]:
        """What the addresses that nobody watches yet show now, so that the next change is noticed."""
        watched = self._watched()
        fresh = [uri for uri in uris if uri not in watched]
        # The list of prompts is no address, and to be seen however many of those are watched.
        if len({*watched, *fresh} - {_PROMPTS}) > _MOST:
            raise MCPError(code=mcp_types.INVALID_PARAMS, message=f"More than {_MOST} addresses are watched.")
        return {uri: await anyio.to_thread.run_sync(self._fingerprint, uri) for uri in fresh}

    def _begin(self, first: dict[str, str]) -> None:
        """Watch from the first look on. To be followed by the entry of who watches, without waiting in between."""
        watched = self._watched()
        self._shown.update((uri, shown) for uri, shown in first.items() if uri not in watched)
        # A change between the first look and the waking is found by looking again.
        self._checked = None
        if self._wanted:
            self._wanted.set()

    async def _subscribe(
        self, context: ServerRequestContext[Any, Any], params: mcp_types.SubscribeRequestParams
    ) -> mcp_types.EmptyResult:
        uri = str(params.uri)
        self._begin(await self._first_look([uri]))
        self._connections.setdefault(_connection(context), set()).add(uri)
        return mcp_types.EmptyResult()

    async def _unsubscribe(
        self, context: ServerRequestContext[Any, Any], params: mcp_types.UnsubscribeRequestParams
    ) -> mcp_types.EmptyResult:
        self._connections.get(_connection(context), set()).discard(str(params.uri))
        return mcp_types.EmptyResult()

    async def _on_listen(
        self, context: ServerRequestContext[Any, Any], params: mcp_types.SubscriptionsListenRequestParams
    ) -> mcp_types.SubscriptionsListenResult:
        uris = {str(uri) for uri in params.notifications.resource_subscriptions or ()} - {_PROMPTS}
        if params.notifications.prompts_list_changed:
            uris.add(_PROMPTS)
        self._begin(await self._first_look(uris))
        with self._counted(uris):
            return await self._listen(context, params)

    @contextmanager
    def _counted(self, uris: set[str]) -> Iterator[None]:
        self._streams.update(uris)
        try:
            yield
        finally:
            self._streams.subtract(uris)
            self._streams = +self._streams


def _connection(context: ServerRequestContext[Any, Any]) -> Connection:
    # A session lives as long as one request; only the connection lasts.
    return context.session._connection
