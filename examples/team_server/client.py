"""A memory that a team shares: Ann notes something on the server, Ben asks about it and finds it.
Set ANN_TOKEN and BEN_TOKEN (see README.md) and, for a server elsewhere, CORTEX_URL; then run it without arguments."""

from __future__ import annotations

import asyncio
import os
from typing import Any

from httpx2 import AsyncClient
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client

URL = os.environ.get("CORTEX_URL", "http://127.0.0.1:8765") + "/mcp"


async def call(token: str, tool: str, **arguments: Any) -> dict[str, Any]:
    """Call one tool of the server as the person to whom a token belongs."""
    async with (
        AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=30) as http,
        Client(streamable_http_client(URL, http_client=http)) as client,
    ):
        return (await client.call_tool(tool, arguments)).structured_content or {}


async def main() -> None:
    ann, ben = os.environ["ANN_TOKEN"], os.environ["BEN_TOKEN"]

    note = "Deploy the shop on Tuesdays: the bank's test system is offline on all other days"
    await call(ann, "subcog_capture", content=note, namespace="decisions", tags=["deploy"])
    print(f"ann notes: {note}")

    question = "on which day can we release the shop?"
    found = await call(ben, "subcog_recall", query=question, user_id="ann")
    print(f"ben asks what ann knows: {question}")
    for hit in found["results"]:
        print(f"  {hit['score']:.2f} {hit['content']}")


asyncio.run(main())
