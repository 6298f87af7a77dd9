"""The page in a real Chromium over a large store: `python bench/page.py [memories]`, 100,000 unless said otherwise.

First paint with an empty cache; the time from the server's answer to a search until the results are painted; and, while
the timeline is scrolled from end to end and a graph of 2,000 names finds its layout, the longest task of the main
thread in the browser's own trace, and the longest wait for a frame. Texts are synthetic (see `synthetic.py`).
"""

from __future__ import annotations

import gzip
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from cortex_py import Cortex
from cortex_py.core.config import load_settings
from cortex_py.core.embedding.backends.registry import open_backend
from cortex_py.surfaces import web

import report
from browser import Tab, browser_program, running_browser
from synthetic import BulkBackend, documents, queries

MEMORIES = 100_000
DAYS = 730
NAMES = 2_000
RELATIONS = 4_000
ROUNDS = 5
SEARCHES = 10
AT_ONCE = 2_000
LINK = re.compile(r"http://\S+/session\?code=\S+")

_SCROLL = """new Promise((done) => {
  const axis = document.querySelector(".axis"), gaps = [];
  let [last, left] = [performance.now(), 240];
  const step = () => {
    const now = performance.now();
    gaps.push(now - last);
    last = now;
    axis.scrollTop = left % 40 ? axis.scrollTop + 900 : (axis.scrollHeight * (left * 7919 % 240)) / 240;
    left -= 1;
    if (left) requestAnimationFrame(step); else done(Math.max(...gaps.slice(2)));
  };
  requestAnimationFrame(step);
})"""
_SETTLE = """new Promise((done) => {
  const canvas = document.querySelector("canvas"), gaps = [];
  let last = performance.now();
  const step = () => {
    const now = performance.now();
    gaps.push(now - last);
    last = now;
    if (canvas.dataset.calm === "true" && gaps.length > 30) done(Math.max(...gaps.slice(2)));
    else requestAnimationFrame(step);
  };
  const all = document.querySelector(".all");
  if (all) {
    canvas.dataset.calm = "false";
    all.click();
  }
  requestAnimationFrame(step);
})"""
# From the end of the server's answer until the frame after the results were put in.
_SEARCH = """new Promise((done) => {
  const results = document.querySelector(".results"), box = document.querySelector("#q");
  performance.clearResourceTimings();
  new MutationObserver((_, watcher) => {
    const answer = performance.getEntriesByType("resource").filter((one) => one.name.includes("/api/v1/search")).at(-1);
    if (!answer) return;
    watcher.disconnect();
    requestAnimationFrame(() => setTimeout(() => done([performance.now() - answer.responseEnd, answer.duration])));
  }).observe(results, { childList: true });
  box.value = QUERY;
  box.dispatchEvent(new Event("input"));
})"""


def _fill(home: Path, project: Path, count: int) -> None:
    backend = BulkBackend(open_backend(settings=load_settings(home)))
    backend.bulk = True
    now = datetime.now(UTC)
    with Cortex.open(home, project=project, backend=backend) as cortex:
        # First: a new name has the memories read again that may mention it.
        kinds = ("Person", "Organization", "Technology", "Concept", "File")
        names = [cortex.graph.create(f"Name {n}", kinds[n % 5]).id for n in range(NAMES)]
        for n in range(RELATIONS):
            one, other = names[n % NAMES], names[(n * n * 31 + 7) % NAMES]
            if one != other:
                cortex.graph.relate(one, other, "RelatesTo")
        print(f"{NAMES:,} names", file=sys.stderr, flush=True)
        batch = []
        for number, item in enumerate(documents(count)):
            batch.append(replace(item, created_at=now - timedelta(days=DAYS) * number / count))
            if len(batch) == AT_ONCE:
                cortex.memories.capture_many(batch)
                batch.clear()
                print(f"\rfilled {number + 1:,}", end="", file=sys.stderr, flush=True)
        cortex.memories.capture_many(batch)
        print(file=sys.stderr)


@contextmanager
def _serving(home: Path, project: Path) -> Iterator[str]:
    """A one-time link to the page of a server in a process of its own."""
    command = [sys.executable, "-m", "cortex_py", "serve", "--http", "--port", "0", "--home", str(home)]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    process = subprocess.Popen(
        command, cwd=project, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    assert process.stdout
    try:
        link = next(found[0] for line in process.stdout if (found := LINK.search(line)))
        threading.Thread(target=process.stdout.read, daemon=True).start()
        yield link
    finally:
        process.terminate()
        process.wait()


@contextmanager
def _traced(tab: Tab, found: dict[str, float]) -> Iterator[None]:
    """Note the longest task of the page's main thread."""
    events: list[dict[str, Any]] = []
    done = threading.Event()
    noted = tab.note

    def note(method: str, params: dict[str, Any]) -> None:
        if method == "Tracing.dataCollected":
            events.extend(params["value"])
        elif method == "Tracing.tracingComplete":
            done.set()
        else:
            noted(method, params)

    tab.note = note  # type: ignore[method-assign]
    tab.call("Tracing.start", categories="disabled-by-default-devtools.timeline,devtools.timeline,toplevel,__metadata")
    yield
    tab.call("Tracing.end")
    done.wait(60)
    tab.note = noted  # type: ignore[method-assign]
    # The page's own process: the one that names a renderer's main thread and has most tasks.
    main = {(one["pid"], one["tid"]) for one in events if one.get("args", {}).get("name") == "CrRendererMain"}
    tasks = [one["dur"] / 1e3 for one in events if one.get("dur") and (one["pid"], one["tid"]) in main]
    found["longest_task_ms"] = max(tasks, default=0.0)
    found["tasks_over_50_ms"] = float(sum(one > 50 for one in tasks))


def _first_paints(tab: Tab, url: str) -> dict[str, float]:
    tab.call("Network.setCacheDisabled", cacheDisabled=True)
    found = {}
    for path in ("/", "/timeline", "/graph"):
        times = []
        for _ in range(ROUNDS):
            tab.go(url + path)
            times.append(tab.wait("performance.getEntriesByName('first-contentful-paint')[0]?.startTime"))
        found[path] = median(times)
    tab.call("Network.setCacheDisabled", cacheDisabled=False)
    return found


def _page_bytes() -> int:
    """What a browser loads at most, compressed."""
    files = [
        path for path in (Path(web.__file__).parent / "static").iterdir() if path.suffix in (".js", ".css", ".svg")
    ]
    return sum(len(gzip.compress(path.read_bytes(), 9, mtime=0)) for path in files)


def main() -> int:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else MEMORIES
    program = browser_program()
    if program is None:
        print("There is no Chromium on this machine.")
        return 1
    folder = Path(tempfile.mkdtemp(prefix="cortex-page-"))
    try:
        home, project = folder / "home", folder / "project"
        project.mkdir()
        begun = time.monotonic()
        _fill(home, project, count)
        print(f"filled in {time.monotonic() - begun:.0f} s", file=sys.stderr)
        with _serving(home, project) as link, running_browser(program) as browser:
            tab = browser.open()
            tab.go(link)
            url = link.partition("/session")[0]
            tab.wait("!!document.querySelector('#keys kbd')")
            asked = queries(SEARCHES + 1, words=3)
            waits = [tab.run(_SEARCH.replace("QUERY", repr(one))) for one in asked][1:]
            paints = _first_paints(tab, url)
            timeline: dict[str, float] = {}
            tab.go(url + "/timeline")
            tab.wait("document.querySelectorAll('.event .title').length > 5")
            with _traced(tab, timeline):
                timeline["longest_gap_ms"] = tab.run(_SCROLL)
            graph: dict[str, float] = {}
            tab.go(url + "/graph")
            tab.wait("document.querySelector('canvas')?.dataset.calm === 'true'")
            with _traced(tab, graph):
                graph["longest_gap_ms"] = tab.run(_SETTLE)
            graph["names"] = float(
                tab.run("Number(document.querySelector('.count').innerText.match(/[\\d,]+/)[0].replace(',', ''))")
            )
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    rows: list[list[object]] = [
        *[[f"first paint of {path}, ms", value, 300] for path, value in paints.items()],
        ["search: from the answer to the paint, ms (median)", median(one for one, _ in waits), 60],
        ["search: from the answer to the paint, ms (worst)", max(one for one, _ in waits), 60],
        ["search: the server's answer, ms (median)", median(one for _, one in waits), "-"],
        ["timeline: longest task, ms", timeline["longest_task_ms"], 50],
        ["timeline: longest wait for a frame, ms", timeline["longest_gap_ms"], 50],
        [f"graph of {graph['names']:.0f}: longest task, ms", graph["longest_task_ms"], 50],
        [f"graph of {graph['names']:.0f}: longest wait for a frame, ms", graph["longest_gap_ms"], 50],
        ["page weight, compressed bytes", _page_bytes(), 150_000],
    ]
    report.table(("figure", "measured", "aim"), rows)
    report.write(
        "page",
        {"memories": count, "first_paint_ms": paints, "search_ms": waits, "timeline": timeline, "graph": graph,
         "bytes": _page_bytes()},
    )  # fmt: skip
    return 0


if __name__ == "__main__":
    sys.exit(main())
