"""Other memories for agents beside Cortex: the same work on the same data, each through its own interface.

    python bench/peers.py                                        # everything: hours
    python bench/peers.py --sizes 1000 --conversations 2 --only chromadb,cortex
    python bench/peers.py --page                                 # write docs/explain/comparison.md and its plot

Each peer is installed by name into an environment of its own (`peer_adapters.py` has the versions). Every finished part
is kept in `bench/peers.json`, and a later run continues there; `--again` begins from nothing. A peer that needs longer
than `--limit` seconds to be filled to a size, or would by the rate of the size before, has no figure there, and the
reason in its place. Calls are timed once the machine has nothing else to do, or `--patience` seconds later.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

import peer_page
from datasets import Collection, locomo, longmemeval
from peer_adapters import BY_NAME, PLACE, SPECS, WORKER, Peer, PeerError, RefusedText, install, model_folder, peer

SIZES = (1_000, 20_000, 100_000)
STARTS = 5
STORES = 30
QUERIES = 200
QUERY_SECONDS = 120.0
WRITERS, WRITES = 4, 200
LIMIT_SECONDS = 1_800.0
PATIENCE_SECONDS = 600.0
# The machine is quiet while so many cores at most are busy for so many seconds.
QUIET_CORES, QUIET_SECONDS = 0.1, 3.0
PARTS = ("start", "writers", "LoCoMo", "LongMemEval", "sizes")
STORES_FOLDER = PLACE / "stores"
FILE = Path(__file__).with_name("peers.json")
ABOUT = "What was measured so far; docs/explain/comparison.md is written from it, and a later run continues here."
Row = dict[str, Any]


# The data


def notes(folder: Path | None) -> Iterator[tuple[str, str]]:
    """Texts of about 40 words, made of sentences of LongMemEval's chats, without end and none twice."""
    sentences = sorted(
        {
            sentence
            for record in longmemeval(folder, form="turns").records
            for sentence in re.split(r"(?<=[.!?])\s+", record.content.partition(": ")[2].replace("\n", " "))
            if 6 <= len(sentence.split()) <= 30
        }
    )
    lot = random.Random(7)
    seen: set[str] = set()
    while True:
        text = ""
        while len(text.split()) < 35:
            text = f"{text} {lot.choice(sentences)}".strip()
        if text not in seen:
            seen.add(text)
            yield f"n{len(seen)}", text


def questions(folder: Path | None) -> list[str]:
    """Questions to time recalls with, none twice."""
    asked = dict.fromkeys(question.text for one in locomo(folder) for question in one.questions)
    found = list(asked)
    random.Random(11).shuffle(found)
    return found


# Measuring


def start_up(name: str) -> Row:
    """From the spawn to the first answer: the list of tools, or the opened store of a library."""
    taken, tools = [], []
    for number in range(STARTS + 1):
        one = peer(name, _fresh(name, "start") if number == 0 else STORES_FOLDER / name / "start")
        began = time.perf_counter()
        with _running(one):
            taken.append(time.perf_counter() - began)
            tools = one.tools()
    # The first start compiles the modules.
    return {"start_ms": _ms(taken[1:], 50), "tools": len(tools), "tool_tokens": _tokens(tools)}


def growing(name: str, sizes: Sequence[int], chosen: argparse.Namespace) -> Iterator[tuple[int, Row]]:
    """Fill to each size, then store and recall one by one."""
    limit: float = chosen.limit
    source, asked = notes(chosen.data), questions(chosen.data)
    one = peer(name, _fresh(name, "sizes"))
    stored = 0
    failed = ""
    each = 0.0  # seconds for a record, at the size before
    with _running(one):
        for size in sizes:
            began, before = time.monotonic(), stored
            if (expected := each * (size - stored)) > limit:
                about = f"about {expected:,.0f} s at the rate of the first {stored:,} records"
                yield size, {"reason": f"> {limit:,.0f} s: {about}"}
                continue
            try:
                while stored < size and not failed:
                    if time.monotonic() - began > limit:
                        raise PeerError(f"> {limit:,.0f} s: {stored:,} records were stored when the limit was reached")
                    chunk = list(islice(source, min(one.chunk, size - stored)))
                    one.fill(chunk)
                    stored += len(chunk)
            except PeerError as error:
                failed = str(error)
            if failed:
                yield size, {"reason": failed}
                continue
            filled = time.monotonic() - began
            each = filled / max(1, stored - before)
            _settle(one)
            refused = {"refused": one.refused, "records": stored} if one.refused else {}
            quiet = _wait_for_quiet(chosen.patience)
            yield size, {"fill_s": filled, **refused, **quiet, **_calls(one, source, asked)}
            stored += STORES


def _calls(one: Peer, source: Iterator[tuple[str, str]], asked: list[str]) -> Row:
    row: Row = {}
    try:
        taken: list[float] = []
        for item in islice(source, 3 * STORES):
            with suppress(RefusedText):
                taken.append(_timed(lambda item=item: one.store(*item)))
            if len(taken) == STORES:
                break
        row["store_p50_ms"] = _ms(taken, 50)
        for _ in range(5):
            one.search(asked.pop(), 10)
        began, taken = time.monotonic(), []
        while len(taken) < QUERIES and time.monotonic() - began < QUERY_SECONDS:
            question = asked.pop()
            taken.append(_timed(lambda question=question: one.search(question, 10)))
        row |= {"recall_p50_ms": _ms(taken, 50), "recall_p95_ms": _ms(taken, 95), "queries": len(taken)}
    except PeerError as error:
        row["reason"] = str(error)
    assert one.session
    return row | {"rss_mb": _tree(one.session.process.pid, _resident_mb)}


def writers(name: str, folder: Path | None) -> Row:
    """Processes that write into one store at the same time; what they were promised, and what is there afterwards."""
    place = _fresh(name, "writers")
    source = notes(folder)
    shares = [list(islice(source, WRITES)) for _ in range(WRITERS)]
    acknowledged = [0] * WRITERS
    errors: list[str] = []
    barrier = threading.Barrier(WRITERS)
    first = peer(name, place)
    with _running(first):
        pass  # the store is there before the writers come

    def write(number: int) -> None:
        one = peer(name, place)
        try:
            with _running(one, barrier):
                for key, text in shares[number]:
                    try:
                        one.store(key, text)
                        acknowledged[number] += 1
                    except PeerError as error:
                        errors.append(str(error))
        except PeerError as error:
            errors.append(str(error))

    threads = [threading.Thread(target=write, args=(number,)) for number in range(WRITERS)]
    began = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    row: Row = {
        "writes": WRITERS * WRITES,
        "acknowledged": sum(acknowledged),
        "seconds": time.monotonic() - began,
        "error": max(set(errors), key=errors.count) if errors else None,
    }
    last = peer(name, place)
    try:
        with _running(last):
            row["kept"] = len(set(last.kept()))
    except PeerError as error:
        row["error"] = str(error)
    return row


def quality(name: str, collections: Sequence[Collection], limit: float) -> Row:
    """Found, any and all of the wanted units among the first five and ten results of its own search."""
    rows: list[dict[str, float]] = []
    refused = records = 0
    began = time.monotonic()
    for number, collection in enumerate(collections):
        same: dict[str, str] = {}
        for record in collection.records:
            same.setdefault(record.content, record.key)
        stands_for = {record.unit: same[record.content] for record in collection.records}
        one = peer(name, _fresh(name, f"quality{number}"))
        with _running(one):
            for text, key in same.items():
                if time.monotonic() - began > limit:
                    return {"reason": f"> {limit:,.0f} s: stopped after {records:,} records"}
                try:
                    one.store(key, text)
                except PeerError:
                    refused += 1
                records += 1
            _settle(one)
            for question in filter(lambda asked: asked.answerable, collection.questions):
                if time.monotonic() - began > limit:
                    return {"reason": f"> {limit:,.0f} s: stopped after {len(rows):,} questions"}
                wanted = {stands_for[unit] for unit in question.relevant}
                rows.append(_found(one.search(question.text, 10), wanted))
        shutil.rmtree(one.folder, ignore_errors=True)
    means = {key: float(np.mean([row[key] for row in rows])) for key in rows[0]}
    return {"collections": len(collections), "records": records, "refused": refused, "questions": len(rows), **means}


def _found(keys: Sequence[str], wanted: set[str]) -> dict[str, float]:
    row = {}
    for k in (5, 10):
        count = len(wanted & set(keys[:k]))
        row |= {
            f"any@{k}": float(count > 0),
            f"found@{k}": count / len(wanted),
            f"all@{k}": float(count == len(wanted)),
        }
    return row


# Helpers


def _fresh(name: str, part: str) -> Path:
    place = STORES_FOLDER / name / part
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    return place


@contextmanager
def _running(one: Peer, barrier: threading.Barrier | None = None) -> Iterator[None]:
    try:
        try:
            one.start()
        finally:
            if barrier:
                barrier.wait(600)
        yield
    finally:
        one.close()


@contextmanager
def _embedder() -> Iterator[None]:
    """The loopback server whose vectors mem0 is given; it is Chroma's environment that runs the model."""
    install(BY_NAME["chromadb"])
    python = PLACE / "chromadb" / "bin" / "python"
    home = _fresh("embedder", "home")  # not among Chroma's own, which are removed after its turn
    environment = peer("chromadb", home).environment()
    process = subprocess.Popen(
        [str(python), WORKER, "embedder"], cwd=home, env=environment, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout
    try:
        os.environ["PEER_EMBEDDER"] = f"http://127.0.0.1:{int(process.stdout.readline())}/v1"
        yield
    finally:
        process.terminate()
        process.wait()
        process.stdout.close()


def _timed(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def _ms(taken: Sequence[float], percentile: int) -> float:
    return float(np.percentile(taken, percentile) * 1e3)


def _tokens(tools: list[dict[str, Any]]) -> int:
    """Tokens (o200k_base) of each tool's name, description and input schema as compact JSON."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        import bpe_openai

        encoding = bpe_openai.get_encoding("o200k_base")
    shown = [{key: tool.get(key) for key in ("name", "description", "inputSchema")} for tool in tools]
    texts = [json.dumps(one, ensure_ascii=False, separators=(",", ":")) for one in shown]
    return sum(len(encoding.encode_ordinary(text)) for text in texts)


def _settle(one: Peer, seconds: float = 120.0) -> None:
    """Wait until the peer has no more work of its own, such as vectors that it makes in the background."""
    assert one.session
    pid, deadline = one.session.process.pid, time.monotonic() + seconds
    ticks = os.sysconf("SC_CLK_TCK")
    before = _tree(pid, _processor_ticks)
    while time.monotonic() < deadline:
        time.sleep(2)
        after = _tree(pid, _processor_ticks)
        if after - before < 0.03 * 2 * ticks:
            return
        before = after


def _wait_for_quiet(patience: float) -> Row:
    """Wait until no core has work; how many had some then. Empty if that does not come in time."""
    deadline = time.monotonic() + patience
    while True:
        before = _busy_seconds()
        time.sleep(QUIET_SECONDS)
        cores = (_busy_seconds() - before) / QUIET_SECONDS
        if cores <= QUIET_CORES:
            return {"load": cores}
        if time.monotonic() > deadline:
            return {}


def _busy_seconds() -> float:
    """The time for which the cores of this machine worked, all of them together."""
    user, nice, system, _, _, *interrupts = map(int, Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9])
    return (user + nice + system + sum(interrupts)) / os.sysconf("SC_CLK_TCK")


def _tree(pid: int, value: Callable[[Path], float]) -> float:
    """The sum of a value over a process and its children."""
    total = 0.0
    waiting = [pid]
    while waiting:
        place = Path(f"/proc/{waiting.pop()}")
        try:
            total += value(place)
            for task in (place / "task").iterdir():
                waiting += [int(child) for child in (task / "children").read_text().split()]
        except (OSError, IndexError):
            continue  # it ended meanwhile
    return total


def _resident_mb(place: Path) -> float:
    return int((place / "status").read_text().split("VmRSS:")[1].split()[0]) / 1024


def _processor_ticks(place: Path) -> float:
    fields = (place / "stat").read_text().rpartition(")")[2].split()
    return float(fields[11]) + float(fields[12])


class Results:
    """What is measured so far, kept after every part."""

    def __init__(self, again: bool) -> None:
        self.file = FILE
        known = json.loads(self.file.read_text("utf-8")) if self.file.is_file() and not again else {}
        self.peers: dict[str, Row] = known.get("peers", {})

    def part(self, name: str, part: str, measure: Callable[[], Row]) -> None:
        if part in self.peers.setdefault(name, {}):
            return
        try:
            found = measure()
        except PeerError as error:
            found = {"reason": str(error)}
        self.keep(name, part, found)

    def keep(self, name: str, part: str, found: Row) -> None:
        stamp = {"at": f"{datetime.now(UTC):%Y-%m-%d}", "load": os.getloadavg()[0]}
        self.peers[name][part] = stamp | found
        print(f"{name}: {part}: {json.dumps(found)}", flush=True)
        FILE.write_text(json.dumps({"about": ABOUT, "peers": self.peers}, indent=1) + "\n", encoding="utf-8")


def measure(name: str, results: Results, chosen: argparse.Namespace) -> None:
    results.peers.setdefault(name, {}).pop("install", None)  # quick where it is there; what failed is tried again
    results.part(name, "install", lambda: install(BY_NAME[name]))
    if "reason" in results.peers[name]["install"]:
        return
    turns = locomo(chosen.data)[: chosen.conversations]
    if results.peers[name].get("LoCoMo", {}).get("collections", len(turns)) < len(turns):
        del results.peers[name]["LoCoMo"]  # fewer conversations than are asked for now
    work: dict[str, Callable[[], Row]] = {
        "start": lambda: start_up(name),
        "writers": lambda: writers(name, chosen.data),
        "LoCoMo": lambda: quality(name, turns, chosen.limit),
        "LongMemEval": lambda: quality(name, [longmemeval(chosen.data)], chosen.limit),
    }
    for part in chosen.parts.split(","):
        if part == "sizes":
            _measure_sizes(name, results, chosen)
        else:
            results.part(name, part, work[part])
    shutil.rmtree(STORES_FOLDER / name, ignore_errors=True)


def _measure_sizes(name: str, results: Results, chosen: argparse.Namespace) -> None:
    missing = sorted(size for size in chosen.sizes if f"size {size}" not in results.peers[name])
    try:
        for size, row in growing(name, missing, chosen) if missing else ():
            results.keep(name, f"size {size}", row)
    except PeerError as error:
        results.keep(name, f"size {missing[0]}", {"reason": str(error)})


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES), help="records in the store")
    parser.add_argument("--only", default=",".join(spec.name for spec in SPECS), help="names, separated by commas")
    parser.add_argument("--conversations", type=int, default=1_000, help="how many conversations of LoCoMo")
    parser.add_argument("--parts", default=",".join(PARTS), help="what to measure, separated by commas")
    parser.add_argument("--limit", type=float, default=LIMIT_SECONDS, help="seconds to fill to a size, or for a set")
    parser.add_argument("--patience", type=float, default=PATIENCE_SECONDS, help="seconds to wait for a quiet machine")
    parser.add_argument("--data", type=Path, help="folder of the public data (default ../shared/data)")
    parser.add_argument("--again", action="store_true", help="forget what was measured before")
    parser.add_argument("--page", action="store_true", help="only write docs/explain/comparison.md from the results")
    chosen = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the peers are ended too
    results = Results(chosen.again)
    if not chosen.page:
        names = chosen.only.split(",")
        if unknown := [*(set(names) - set(BY_NAME)), *(set(chosen.parts.split(",")) - set(PARTS))]:
            parser.error(f"unknown: {', '.join(unknown)}; there are {', '.join((*BY_NAME, *PARTS))}")
        model_folder()
        with _embedder() if "mem0" in names else nullcontext():
            for name in names:
                print(f"\n{name}", flush=True)
                measure(name, results, chosen)
    peer_page.show(results.peers)
    if chosen.page:
        peer_page.write(results.peers)
    return 0


if __name__ == "__main__":
    sys.exit(main())
