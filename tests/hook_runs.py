"""Hooks as processes, and what tests look at afterwards."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cortex_py.parts.hooks.dialects import Hook

__all__ = ["DATABASE", "answer_schema", "context_of", "peak_memory", "processes_of", "run_hook", "wait_for"]

DATABASE = "We use PostgreSQL with JSONB for the event store, because joins matter more than write speed"
SECONDS = 60.0


def wait_for(condition: Callable[[], object]) -> None:
    """Wait until something holds; fail if it never does."""
    pause = threading.Event()
    for _ in range(int(SECONDS / 0.05)):
        if condition():
            return
        pause.wait(0.05)
    raise AssertionError("it never came")


def processes_of(home: Path) -> list[int]:
    """The processes whose command names a home."""
    found = []
    for folder in Path("/proc").iterdir():
        try:
            words = (folder / "cmdline").read_bytes().split(b"\0") if folder.name.isdigit() else []
            if os.fsencode(home) in words and (folder / "stat").read_text().rpartition(")")[2].split()[0] != "Z":
                found.append(int(folder.name))
        except OSError:
            continue
    return found


def peak_memory(process: int) -> int:
    """The most bytes of memory that a process has held at a time."""
    status = (Path("/proc") / str(process) / "status").read_text()
    return 1_024 * int(next(line for line in status.splitlines() if line.startswith("VmHWM")).split()[1])


def run_hook(
    home: Path, client: str, event: str, sent: object, *, deadline_ms: int = 30_000, **variables: str
) -> subprocess.CompletedProcess[bytes]:
    """A hook as a client runs it; the deadline is long, because the machine that runs the tests may be busy."""
    data = sent if isinstance(sent, bytes) else json.dumps(sent).encode()
    return subprocess.run(
        [sys.executable, "-m", "cortex_py", "hook", client, event, "--home", str(home)],
        input=data,
        capture_output=True,
        timeout=SECONDS,
        env={**os.environ, "CORTEX_HOOK_DEADLINE_MS": str(deadline_ms), "CORTEX_HOOK_IDLE_SECONDS": "1", **variables},
        check=False,
    )


def context_of(answer: bytes) -> str:
    """The context in an answer, whichever client it is for."""
    body: dict[str, Any] = json.loads(answer)
    inner = body.get("hookSpecificOutput", {})
    return str(inner.get("additionalContext") or body.get("additional_context") or body.get("additionalContext") or "")


def answer_schema(client: str, hook: Hook) -> Any:
    """What a client accepts as the answer to an event."""
    schemas = json.loads(Path(__file__).with_name("hooks").joinpath("answer_schemas.json").read_text("utf-8"))
    found = schemas[client]
    found = found if "type" in found else found.get(hook.name, found["*"])
    return json.loads(json.dumps(found).replace("$EVENT", hook.name))
