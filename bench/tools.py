"""What each tool of a stdio server takes as the store grows: the median of a few calls, in ms, at several sizes.

    python bench/tools.py                    1,000 and 100,000 records
    python bench/tools.py 1000 1000000       the sizes given
    python bench/tools.py --home FOLDER      a home whose project is the same folder; the calls add a few records to it

Stores are those of `latency.py`. A tool is left out if its cost does not depend on the records of a store: saved
prompts, embeddings, snapshots. `growth` is the time in the largest store over that in the smallest.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from statistics import median
from typing import Any

from latency import fill

import report
from synthetic import english, queries

SIZES = (1_000, 100_000)
ROUNDS = 7
_HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}


class Client:
    """A client of one stdio server, one call at a time."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdin and process.stdout
        self._to, self._from = process.stdin, process.stdout
        self._ids = count(1)

    def ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        number = next(self._ids)
        self._send({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
        while True:
            answer = json.loads(self._from.readline())
            if answer.get("id") == number:
                result: dict[str, Any] = answer["result"]
                return result

    def notify(self, method: str) -> None:
        self._send({"jsonrpc": "2.0", "method": method})

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        result = self.ask("tools/call", {"name": tool, "arguments": arguments})
        assert not result.get("isError"), result
        answer: dict[str, Any] = result["structuredContent"]
        return answer

    def _send(self, message: dict[str, Any]) -> None:
        self._to.write(json.dumps(message).encode() + b"\n")
        self._to.flush()


@contextmanager
def _connected(home: Path, project: Path) -> Iterator[Client]:
    environment = {**os.environ, "CORTEX_HOME": str(home)}
    command = [sys.executable, "-m", "cortex_py", "serve"]
    with subprocess.Popen(
        command, cwd=project, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as process:
        client = Client(process)
        client.ask("initialize", _HELLO)
        client.notify("notifications/initialized")
        yield client
        assert process.stdin
        process.stdin.close()


def _questions(client: Client, folder: Path) -> dict[str, Callable[[], object]]:
    seed = time.time_ns() % 1_000_000
    words, notes = iter(queries(1_000, seed=seed)), iter(english(1_000, seed=seed))
    project = client.call("initialize_context", project_path=str(folder))["project_id"]
    branch = client.call("create_branch", project_id=project, branch_topic=f"work {seed}")["branch_id"]
    mine = {"project_id": project, "branch_id": branch}
    kept = client.call("subcog_capture", content=next(notes), namespace="learnings", tags=["bench"])["id"]
    call = client.call

    def delete_and_restore() -> None:
        call("subcog_delete", memory_id=kept)
        call("subcog_restore", memory_id=kept)

    return {
        "subcog_recall": lambda: call("subcog_recall", query=next(words)),
        "subcog_recall, a list": lambda: call("subcog_recall"),
        "subcog_recall, a list from 5,000 on": lambda: call("subcog_recall", offset=5_000),
        "subcog_recall, a list of a namespace": lambda: call("subcog_recall", namespace="decisions"),
        "subcog_recall, a list since yesterday": lambda: call("subcog_recall", filter="since:1d"),
        "subcog_recall, a list of a tag": lambda: call("subcog_recall", filter="tag:bench"),
        "subcog_recall of a path": lambda: call("subcog_recall", query=next(words), filter="path:src/**"),
        "subcog_capture": lambda: call("subcog_capture", content=next(notes), namespace="learnings"),
        "subcog_get": lambda: call("subcog_get", memory_id=kept),
        "subcog_update": lambda: call("subcog_update", memory_id=kept, content=next(notes)),
        "subcog_delete and restore": delete_and_restore,
        "subcog_history": lambda: call("subcog_history", memory_id=kept),
        "subcog_status": lambda: call("subcog_status"),
        "subcog_gc, dry run": lambda: call("subcog_gc", dry_run=True),
        "subcog_enrich": lambda: call("subcog_enrich", memory_id=kept),
        "initialize_context": lambda: call("initialize_context", project_path=str(folder)),
        "create_branch": lambda: call("create_branch", project_id=project, branch_topic=next(words)),
        "update_memory": lambda: call("update_memory", **mine, content=next(notes), role="assistant"),
        "verify_response": lambda: call("verify_response", project_id=project, response_text=next(notes)),
        "get_active_summary": lambda: call("get_active_summary", **mine),
        "search_context": lambda: call("search_context", project_id=project, query=next(words)),
        "suggest_contexts": lambda: call("suggest_contexts", project_id=project, current_context=next(notes)),
        "get_context_graph_info": lambda: call("get_context_graph_info", project_id=project),
        "subcog_graph, stats": lambda: call("subcog_graph", operation="stats"),
        "subcog_entities, list": lambda: call("subcog_entities", action="list"),
        "subcog_relationships, list": lambda: call("subcog_relationships", action="list"),
    }


def measure(home: Path, project: Path) -> dict[str, float]:
    """The median time of each question, in ms; the first call of each, which loads what it needs, is not counted."""
    taken: dict[str, float] = {}
    with _connected(home, project) as client:
        for name, ask in _questions(client, project).items():
            ask()
            times = []
            for _ in range(ROUNDS):
                started = time.perf_counter()
                ask()
                times.append(time.perf_counter() - started)
            taken[name] = median(times) * 1e3
    return taken


def main() -> None:
    if sys.argv[1:2] == ["--home"]:
        home = Path(sys.argv[2]).resolve()
        report.table(("tool", "ms"), list(measure(home, home).items()))
        return
    sizes = [int(word) for word in sys.argv[1:]] or list(SIZES)
    found = {}
    for size in sizes:
        with tempfile.TemporaryDirectory() as folder:
            home, project = Path(folder).resolve() / "home", Path(folder).resolve() / "project"
            project.mkdir()
            fill(home, size, project)
            found[size] = measure(home, project)
    rows = [
        {"tool": tool, **{f"{size:,}": found[size][tool] for size in sizes}, "growth": found[sizes[-1]][tool] / least}
        for tool, least in found[sizes[0]].items()
    ]
    report.table(list(rows[0]), [list(row.values()) for row in rows])
    report.write("tools", {"sizes": sizes, "rows": rows})


if __name__ == "__main__":
    main()
