"""One call of a tool, from the wire to SQL and back, over a small warm store in a throwaway home.

    python tools/one_call.py trace capture     the modules the call passes, in order, and how many
    python tools/one_call.py profile           a recall and a capture as flame graphs, in .make/profile/

`make trace CALL=recall` and `make profile` run it.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib import import_module
from pathlib import Path
from types import FrameType
from typing import Any

NOTES = [
    "Use PostgreSQL for primary storage because of JSONB support",
    "Tokens rotate every hour; the refresh token lives for thirty days",
    "The scheduler retries a failed job three times, then marks it dead",
    "Run the integration tests against a real database, never a mock",
]
# `PROJECT` and `MEMORY` stand for ids of the throwaway home.
CALLS: dict[str, tuple[str, dict[str, Any]]] = {
    "capture": ("subcog_capture", {"content": "Cache sessions in Redis for one day", "namespace": "decisions"}),
    "recall": ("subcog_recall", {"query": "what do we use for primary storage"}),
    "verify": ("verify_response", {"project_id": "PROJECT", "response_text": "app.py stores sessions in Redis."}),
    "get": ("subcog_get", {"memory_id": "MEMORY"}),
}


class Trace:
    """What runs while it is on: every module in the order of its first call, and those on the way to a statement.

    A module is on the way when one of its functions is waiting for a statement of SQL that runs, or when it handles
    the request before a worker thread takes over. What only computes (a scanner, a tagger, a model) is not.
    """

    def __init__(self) -> None:
        self.renew()

    def renew(self) -> None:
        self.on = False
        self.entered: dict[str, None] = {}
        self.path: dict[str, None] = {}
        self.to_last_write = 0

    def __call__(self, frame: FrameType, event: str, _argument: object) -> None:
        if not self.on or event != "call" or not (module := _module_of(frame)):
            return
        if threading.current_thread().name == "cortex-reading":
            return  # after the answer
        if threading.current_thread() is threading.main_thread() and not self.entered.keys() & {"app"}:
            self.path.setdefault(module)
        self.entered.setdefault(module)
        if module in ("sqlite_file", "store.sqlite"):
            waiting: FrameType | None = frame
            modules = []
            while waiting is not None:
                if name := _module_of(waiting):
                    modules.append(name)
                waiting = waiting.f_back
            for name in reversed(modules):
                self.path.setdefault(name)
            if str(frame.f_locals.get("sql", "")).startswith(("INSERT", "UPDATE", "DELETE")):
                self.to_last_write = len(self.path)


def _module_of(frame: FrameType) -> str:
    name = frame.f_globals.get("__name__", "")
    if not name.startswith("cortex_py."):
        return ""
    return str(name.removeprefix("cortex_py."))


@asynccontextmanager
async def connected(home: Path) -> AsyncIterator[tuple[Any, dict[str, str]]]:
    """A client of a server over the notes, and what the placeholders in the arguments of calls stand for."""
    from fastmcp import Client

    from cortex_py import Cortex
    from cortex_py.mcp.server import build_server

    with Cortex.open(home / "home", project=home) as cortex:
        stored = [cortex.memories.capture(note, namespace="decisions").id for note in NOTES]
        async with Client(build_server(cortex)) as client:
            yield client, {"PROJECT": cortex.project.id, "MEMORY": stored[0]}


async def trace(call: str, home: Path, watched: Trace) -> None:
    tool, told = CALLS[call]
    async with connected(home) as (client, ids):
        arguments = {key: ids.get(value, value) for key, value in told.items()}
        await client.call_tool(tool, arguments)  # loads what is loaded once
        watched.on = True
        await client.call_tool(
            tool, {key: value + "!" if key == "content" else value for key, value in arguments.items()}
        )
        watched.on = False


async def profile(home: Path, folder: Path) -> None:
    from pyinstrument import Profiler

    folder.mkdir(parents=True, exist_ok=True)
    async with connected(home) as (client, _):
        for call in ("recall", "capture"):
            tool, arguments = CALLS[call]
            await client.call_tool(tool, arguments)
            with Profiler(interval=0.0001, async_mode="disabled") as profiler:
                await client.call_tool(tool, arguments)
            path = folder / f"{call}.html"
            path.write_text(profiler.output_html(), "utf-8")
            print(path)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["trace", "profile"])
    parser.add_argument("calls", nargs="*", default=["capture"], metavar="call", help=", ".join(sorted(CALLS)))
    chosen = parser.parse_args()
    # Importing is not watched: it would take most of the time.
    import_module("fastmcp").Client  # noqa: B018
    import_module("cortex_py.mcp.server")
    if chosen.what == "profile":
        with tempfile.TemporaryDirectory() as home:
            asyncio.run(profile(Path(home), Path(".make/profile")))
        return 0
    # One for all calls: the threads of pools keep what they began with.
    watched = Trace()
    threading.setprofile(watched)
    for call in chosen.calls:
        _print_path(call, watched)
    return 0


def _print_path(call: str, watched: Trace) -> None:
    watched.renew()
    with tempfile.TemporaryDirectory() as home:
        sys.setprofile(watched)
        asyncio.run(trace(call, Path(home), watched))
        sys.setprofile(None)
    for number, module in enumerate(watched.path, 1):
        print(f"{number:3d}  {module}")
    computing = [module for module in watched.entered if module not in watched.path]
    if watched.to_last_write:
        print(f"{call}: {watched.to_last_write} modules on the way from the wire to the last write")
    print(f"{call}: {len(watched.path)} modules on the way from the wire to any statement of SQL")
    print(f"{len(computing)} more compute something for it: {', '.join(computing)}")


if __name__ == "__main__":
    sys.exit(main())
