"""One warm call of a tool, from the wire to SQL and back, or one cold prompt hook, over a small throwaway home.

    python tools/one_call.py trace capture          every module of ours that the call enters, in order
    python tools/one_call.py count capture recall   how many modules and functions, and the deepest stack, as JSON
    python tools/one_call.py profile                a recall and a capture as flame graphs, in .make/profile/
    python tools/one_call.py walk capture recall    the modules by folder, as ARCHITECTURE.md has them (`make walks`)

`make trace CALL=recall` and `make profile` run it.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import tempfile
import textwrap
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib import import_module
from pathlib import Path
from types import CodeType, FrameType
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
    "snapshot": ("create_snapshot", {"project_id": "PROJECT"}),
}


_TIMES = 4
PAGE = Path(__file__).resolve().parent.parent / "ARCHITECTURE.md"
_WALKS, _END = "<!-- Written by `make walks`. -->", "<!-- The end of what is written. -->"


class Trace:
    """What runs while it is on: every function of ours with its module, and how deep their calls are nested."""

    def __init__(self) -> None:
        self.renew()

    def renew(self) -> None:
        self.on = False
        self.functions: dict[CodeType, str] = {}
        self.deepest = 0

    def __call__(self, frame: FrameType, event: str, _argument: object) -> None:
        if not self.on or event != "call" or not (module := _module_of(frame)):
            return
        if threading.current_thread().name == "cortex-reading":
            return  # after the answer
        if frame.f_code not in self.functions:
            self.functions[frame.f_code] = module
            self.deepest = max(self.deepest, _depth(frame))

    @property
    def modules(self) -> list[str]:
        """In the order in which they are entered."""
        return list(dict.fromkeys(self.functions.values()))

    def counts(self) -> dict[str, int]:
        return {"modules": len(self.modules), "functions": len(self.functions), "deepest stack": self.deepest}


def _module_of(frame: FrameType) -> str:
    name = frame.f_globals.get("__name__", "")
    return str(name.removeprefix("cortex_py.")) if name.startswith("cortex_py.") else ""


def _depth(frame: FrameType | None) -> int:
    """How many functions of ours wait for each other."""
    depth = 0
    while frame is not None:
        depth += bool(_module_of(frame))
        frame = frame.f_back
    return depth


@asynccontextmanager
async def connected(home: Path) -> AsyncIterator[tuple[Any, dict[str, str]]]:
    """A client of a server over the notes, and what the placeholders in the arguments of calls stand for."""
    from cortex_py import Cortex
    from cortex_py.surfaces.mcp.server import build_server
    from mcp import Client

    with Cortex.open(home / "home", project=home) as cortex:
        stored = [cortex.memories.capture(note, namespace="decisions").id for note in NOTES]
        async with Client(build_server(cortex)) as client:
            yield client, {"PROJECT": cortex.project.id, "MEMORY": stored[0]}


async def trace(call: str, home: Path, watched: Trace) -> None:
    tool, told = CALLS[call]
    async with connected(home) as (client, ids):
        arguments = {key: ids.get(value, value) for key, value in told.items()}
        await client.call_tool(tool, arguments)  # loads what is loaded once
        every: list[dict[CodeType, str]] = []
        deepest = []
        for number in range(_TIMES):
            watched.renew()
            watched.on = True
            await client.call_tool(
                tool, {key: f"{value} {number}" if key == "content" else value for key, value in arguments.items()}
            )
            watched.on = False
            every.append(watched.functions)
            deepest.append(watched.deepest)
        # What each call enters: threads that come first in one of them enter a function more.
        watched.functions = {
            code: module for code, module in every[0].items() if all(code in other for other in every[1:])
        }
        watched.deepest = min(deepest)


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


def hook(home: Path, watched: Trace) -> None:
    """A prompt in Claude Code while no process of the home is warm."""
    from cortex_py import Cortex
    from cortex_py.parts.hooks import front

    with Cortex.open(home / "home", project=home) as cortex:
        for note in NOTES:
            cortex.memories.capture(note, namespace="decisions")
    event = {"session_id": "s", "cwd": str(home), "prompt": "which primary storage has JSONB support, PostgreSQL?"}
    read, write = os.pipe()
    os.write(write, json.dumps(event).encode())
    os.close(write)
    os.dup2(read, 0)
    # What a client would receive is not shown.
    shown = os.dup(1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    # Watching takes longer than a hook may, and no helper is to stay behind.
    os.environ |= {"CORTEX_HOOK_DEADLINE_MS": "20000", "CORTEX_HOOK_IDLE_SECONDS": "0"}
    sys.setprofile(watched)
    watched.on = True
    front.run_hook(["claude-code", "UserPromptSubmit", "--home", str(home / "home")])
    watched.on = False
    sys.setprofile(None)
    os.dup2(shown, 1)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["trace", "count", "profile", "walk"])
    parser.add_argument(
        "calls", nargs="*", default=["capture"], metavar="call", help=", ".join([*sorted(CALLS), "hook"])
    )
    chosen = parser.parse_args()
    if chosen.what == "profile":
        with tempfile.TemporaryDirectory() as home:
            asyncio.run(profile(Path(home), Path(".make/profile")))
        return 0
    # One for all calls: the threads of pools keep what they began with.
    watched = Trace()
    threading.setprofile(watched)
    counts, walks = {}, []
    for call in chosen.calls:
        watched.renew()
        with tempfile.TemporaryDirectory() as home:
            run(call, Path(home), watched)
        counts[call] = watched.counts()
        if chosen.what == "trace":
            _print(call, watched)
        if chosen.what == "walk":
            walks.append(_walk(call, watched.modules))
    if chosen.what == "count":
        print(json.dumps(counts))
    if walks:
        page = PAGE.read_text("utf-8")
        start, rest = page.split(_WALKS)
        PAGE.write_text(f"{start}{_WALKS}\n{''.join(walks)}{rest[rest.index(_END) :]}", "utf-8")
    return 0


def run(call: str, home: Path, watched: Trace) -> None:
    """A call while it is watched, in a home of its own."""
    if call == "hook":
        hook(home, watched)
        return
    # Importing is not watched: it would take most of the time.
    import_module("mcp").Client  # noqa: B018
    import_module("cortex_py.surfaces.mcp.server")
    sys.setprofile(watched)
    asyncio.run(trace(call, home, watched))
    sys.setprofile(None)


def _walk(call: str, modules: list[str]) -> str:
    """The modules of a call in the order in which they are entered, one line for each folder."""
    folders: dict[str, list[str]] = {}
    for module in modules:
        first, *rest = module.split(".")
        deep = first in ("core", "parts", "surfaces", "team") and len(rest) > 1
        folder = f"{first}/{rest[0]}" if deep else first if rest else "(top)"
        folders.setdefault(folder, []).append("/".join(rest[1:] if deep else rest or [first]))
    lines = [f"{folder:<15}{', '.join(names)}" for folder, names in folders.items()]
    wrapped = "\n".join(textwrap.fill(line, 118, subsequent_indent=15 * " ", break_on_hyphens=False) for line in lines)
    return f"\n**{CALLS[call][0]}** enters {len(modules)} modules:\n\n```text\n{wrapped}\n```\n"


def _print(call: str, watched: Trace) -> None:
    for number, module in enumerate(watched.modules, 1):
        print(f"{number:3d}  {module}")
    print(f"{call}: {', '.join(f'{count} {what}' for what, count in watched.counts().items())}")


if __name__ == "__main__":
    sys.exit(main())
