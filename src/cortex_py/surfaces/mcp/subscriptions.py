"""Notifications of changed resources, and of a changed list of prompts.

The store's revision grows whichever process writes. Then every watched address is read again and compared with what it
last showed. Nothing is polled while nobody watches. In the handshake protocol a client subscribes to each address, and
one that has listed the prompts counts as interested in them; in the stateless protocol it has one stream.

Where callers are known, each is notified of what has changed for them.
"""

from __future__ import annotations

import hashlib
import logging
import weakref
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import anyio
import anyio.to_thread
import mcp_types
from mcp.server.connection import Connection
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, PromptsListChanged, ResourceUpdated
from mcp.shared.exceptions import MCPError

from ...core.errors import CortexError
from ...core.security.callers import Caller, acting_as, current_caller
from ...core.security.rights import NO_RIGHTS
from .prompts import SavedPrompts
from .resources import MemoryResources
from .sdk_adapter import connection_of
from .stdio.front import HANDSHAKE_VERSIONS

if TYPE_CHECKING:
    from ...app import Cortex

__all__ = ["Subscriptions"]

_log = logging.getLogger(__name__)

# Where the engine reports changes, they are waited for; looking this often catches a report that was lost.
_AT_LEAST = 5.0
_BREATH = 0.02
# The list of prompts among the watched addresses; no address looks like it.
_PROMPTS = "\0prompts"


class _Watch(NamedTuple):
    """An address and who watches it: a caller without their rights, which may change meanwhile."""

    caller: Caller | None
    uri: str


@dataclass(slots=True)
class _Audience:
    """The streams of one caller."""

    bus: InMemorySubscriptionBus
    listen: ListenHandler
    streams: Counter[str] = field(default_factory=Counter)
    open: int = 0


class Subscriptions:
    """`sessions`: whether a client of the handshake protocol can get notifications after its request was answered."""

    # Seconds between two looks, where the engine reports no changes.
    interval = 0.25
    # The list of prompts changes seldom, and every client that has seen it watches it.
    prompts_interval = 1.0

    def __init__(
        self, cortex: Cortex, resources: MemoryResources, prompts: SavedPrompts, *, sessions: bool = True
    ) -> None:
        self._cortex = cortex
        self._resources = resources
        self._prompts = prompts
        self._sessions = sessions
        # What one caller may watch.
        self.most_addresses = 1_000
        self._waiting = anyio.CapacityLimiter(1)
        self._audiences: dict[Caller | None, _Audience] = {}
        self._connections: weakref.WeakKeyDictionary[Connection, set[_Watch]] = weakref.WeakKeyDictionary()
        self._shown: dict[_Watch, str] = {}
        self._checked: object = None
        self._wanted: anyio.Event | None = None

    def serve(self, server: Server[Any]) -> None:
        """Answer the requests of both protocols."""
        server.add_request_handler("resources/subscribe", mcp_types.SubscribeRequestParams, self._subscribe)
        server.add_request_handler("resources/unsubscribe", mcp_types.UnsubscribeRequestParams, self._unsubscribe)
        server.add_request_handler("subscriptions/listen", mcp_types.SubscriptionsListenRequestParams, self._on_listen)
        server.add_request_handler("prompts/list", mcp_types.PaginatedRequestParams, self._list_prompts)

    async def _list_prompts(
        self, context: ServerRequestContext[Any, Any], params: mcp_types.PaginatedRequestParams
    ) -> mcp_types.ListPromptsResult:
        if self._sessions and context.protocol_version in HANDSHAKE_VERSIONS:
            self._begin(await self._first_look([_PROMPTS]))
            self._connections.setdefault(connection_of(context), set()).add(_Watch(_watcher(), _PROMPTS))
        return await self._prompts.list(context, params)

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
                # A busy store answers later; all watches stay.
                _log.warning("watched resources could not be read: %s", error)
            await self._pause()

    async def _pause(self) -> None:
        """Wait until the engine reports a change, or until it is time to look again."""
        changed: bool | None = None
        try:
            # With a limiter of its own, and abandoned where the server ends: it only waits.
            changed = await anyio.to_thread.run_sync(
                self._cortex.wait_for_change, _AT_LEAST, limiter=self._waiting, abandon_on_cancel=True
            )
        except CortexError as error:
            _log.warning("the engine does not report changes: %s", error)
        if changed is None:
            seldom = all(watch.uri == _PROMPTS for watch in self._watched())
            await anyio.sleep(self.prompts_interval if seldom else self.interval)
        elif changed:
            # Several writes in quick succession are looked at once.
            await anyio.sleep(_BREATH)

    def close(self) -> None:
        """End the open streams in order, so that clients see it is intended."""
        for audience in self._audiences.values():
            audience.listen.close()

    def _watched(self) -> set[_Watch]:
        streams = (_Watch(caller, uri) for caller, one in self._audiences.items() for uri in one.streams)
        return {*streams, *(watch for watches in self._connections.values() for watch in watches)}

    async def _look(self) -> None:
        revision = await anyio.to_thread.run_sync(self._seen)
        if revision == self._checked:
            return
        for watch in self._watched():
            shown = await anyio.to_thread.run_sync(self._fingerprint, watch)
            if self._shown.get(watch, shown) != shown:
                await self._notify(watch)
            self._shown[watch] = shown
        for watch in self._shown.keys() - self._watched():
            del self._shown[watch]
        self._checked = revision

    def _seen(self) -> tuple[int, object]:
        # For everybody who watches the list: it may change for one and not for another.
        lists = sorted(
            (str(watch.caller), self._fingerprint(watch)) for watch in self._watched() if watch.uri == _PROMPTS
        )
        return self._cortex.memories.revision(), lists

    async def _notify(self, watch: _Watch) -> None:
        uri, audience = watch.uri, self._audiences.get(watch.caller)
        if audience is not None:
            await audience.bus.publish(PromptsListChanged() if uri == _PROMPTS else ResourceUpdated(uri))
        for connection, watches in list(self._connections.items()):
            if watch in watches and uri == _PROMPTS:
                await connection.send_prompt_list_changed()
            elif watch in watches:
                await connection.send_resource_updated(uri)

    def _fingerprint(self, watch: _Watch) -> str:
        try:
            with acting_as(self._readmitted(watch.caller)):
                if watch.uri == _PROMPTS:
                    return repr(self._cortex.prompts.state())
                return hashlib.sha256(self._resources.read(watch.uri).encode("utf-8", "surrogatepass")).hexdigest()
        except CortexError as error:
            return type(error).__name__

    def _readmitted(self, caller: Caller | None) -> Caller | None:
        if caller is None:
            return None
        verifier = self._cortex.verifier
        return self._cortex.tenants.admitted(caller) if verifier is None else verifier.readmitted(caller)

    async def _first_look(self, uris: Iterable[str]) -> dict[_Watch, str]:
        """What the addresses that the caller does not watch yet show now, so that the next change is noticed."""
        caller, watched = _watcher(), self._watched()
        fresh = [watch for uri in uris if (watch := _Watch(caller, uri)) not in watched]
        # The list of prompts is not an address, and can be watched beside any number of them.
        theirs = {watch for watch in (*watched, *fresh) if watch.caller == caller and watch.uri != _PROMPTS}
        if len(theirs) > self.most_addresses:
            raise MCPError(
                code=mcp_types.INVALID_PARAMS, message=f"More than {self.most_addresses} addresses are watched."
            )
        return {watch: await anyio.to_thread.run_sync(self._fingerprint, watch) for watch in fresh}

    def _begin(self, first: dict[_Watch, str]) -> None:
        """Watch from the first look on. The caller adds the watch right after, without waiting in between."""
        watched = self._watched()
        self._shown.update((watch, shown) for watch, shown in first.items() if watch not in watched)
        # A change between the first look and the waking is found by looking again.
        self._checked = None
        if self._wanted:
            self._wanted.set()

    async def _subscribe(
        self, context: ServerRequestContext[Any, Any], params: mcp_types.SubscribeRequestParams
    ) -> mcp_types.EmptyResult:
        uri = str(params.uri)
        if not self._sessions:
            raise MCPError(
                code=mcp_types.METHOD_NOT_FOUND,
                message="This server keeps no sessions in which it could report changes. "
                "Read again, or use the protocol 2026-07-28, which has a stream for that.",
            )
        self._begin(await self._first_look([uri]))
        self._connections.setdefault(connection_of(context), set()).add(_Watch(_watcher(), uri))
        return mcp_types.EmptyResult()

    async def _unsubscribe(
        self, context: ServerRequestContext[Any, Any], params: mcp_types.UnsubscribeRequestParams
    ) -> mcp_types.EmptyResult:
        # The session may have gone on with another token of its owner.
        watches = self._connections.get(connection_of(context), set())
        watches -= {watch for watch in watches if watch.uri == str(params.uri)}
        return mcp_types.EmptyResult()

    async def _on_listen(
        self, context: ServerRequestContext[Any, Any], params: mcp_types.SubscriptionsListenRequestParams
    ) -> mcp_types.SubscriptionsListenResult:
        uris = {str(uri) for uri in params.notifications.resource_subscriptions or ()} - {_PROMPTS}
        if params.notifications.prompts_list_changed:
            uris.add(_PROMPTS)
        self._begin(await self._first_look(uris))
        with self._counted(uris) as audience:
            return await audience.listen(context, params)

    @contextmanager
    def _counted(self, uris: set[str]) -> Iterator[_Audience]:
        caller = _watcher()
        if caller not in self._audiences:
            bus = InMemorySubscriptionBus()
            self._audiences[caller] = _Audience(bus, ListenHandler(bus))
        audience = self._audiences[caller]
        audience.streams.update(uris)
        audience.open += 1
        try:
            yield audience
        finally:
            audience.streams.subtract(uris)
            audience.streams = +audience.streams
            audience.open -= 1
            if not audience.open:
                del self._audiences[caller]


def _watcher() -> Caller | None:
    """Who watches, and with which token: it may be revoked meanwhile, and their rights may change."""
    caller = current_caller()
    return None if caller is None else replace(caller, agent=None, scopes=frozenset(), rights=NO_RIGHTS)
