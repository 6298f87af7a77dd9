"""The server on a pair of streams: messages in from any thread, lines out through a callback."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

import anyio
import mcp_types
from mcp.server.lowlevel import Server
from mcp.shared.message import ServerMessageMetadata, SessionMessage
from pydantic import ValidationError

from .frames import INVALID_REQUEST, error_line

__all__ = ["MessageServer"]

_log = logging.getLogger(__name__)

Answered = Callable[[bytes, str | int | None], None]


class MessageServer:
    """One server for one client.

    `answered` is given each line with the id of the request it answers, if it answers one, and an empty line
    with the id of a request that ended without an answer.
    """

    def __init__(self, server: Server[Any], answered: Answered) -> None:
        self._server = server
        self._answered = answered
        self._loop = asyncio.get_running_loop()
        self._inbound: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue()

    def feed(self, message: dict[str, Any]) -> None:
        """Take one message, from any thread."""
        self._put(message)

    def end(self) -> None:
        """The client has gone: what is under way is cancelled, and `run` returns."""
        self._put(None)

    def _put(self, message: dict[str, Any] | None) -> None:
        try:
            self._loop.call_soon_threadsafe(self._inbound.put_nowait, message)
        except RuntimeError:
            # The loop has just ended; `Front.fail` answers the client.
            _log.debug("a message came after the end of the server")

    async def run(self) -> None:
        """Serve until `end`."""
        to_server, read = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        write, from_server = anyio.create_memory_object_stream[SessionMessage](0)

        async def receive() -> None:
            async with to_server:
                while (message := await self._inbound.get()) is not None:
                    try:
                        parsed = mcp_types.jsonrpc_message_adapter.validate_python(message, by_name=False)
                    except ValidationError:
                        # The id of a response is one of ours; an answer with it would be taken for another one.
                        id = message.get("id") if "method" in message else None
                        self._answered(error_line(id, INVALID_REQUEST, "The message is not a valid request."), id)
                        continue
                    await to_server.send(SessionMessage(parsed, self._unanswered_callback(parsed)))

        async def send() -> None:
            async with from_server:
                async for outgoing in from_server:
                    message = outgoing.message
                    text = message.model_dump_json(by_alias=True, exclude_unset=True)
                    answers = isinstance(message, mcp_types.JSONRPCResponse | mcp_types.JSONRPCError)
                    id = getattr(message, "id", None) if answers else None
                    self._answered(text.encode("utf-8") + b"\n", id)

        async with anyio.create_task_group() as group:
            group.start_soon(receive)
            group.start_soon(send)
            await self._server.run(read, write, self._server.create_initialization_options())
            group.cancel_scope.cancel()

    def _unanswered_callback(self, message: mcp_types.JSONRPCMessage) -> ServerMessageMetadata | None:
        """A request that the client cancels is never answered; the front must still know that it has ended."""
        if not isinstance(message, mcp_types.JSONRPCRequest):
            return None

        async def unanswered() -> None:
            self._answered(b"", message.id)

        return ServerMessageMetadata(on_request_unanswered=unanswered)
