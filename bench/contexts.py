"""Projects and lines of work: scanning a large repository, calls while the vectors of such a scan are computed, packing
idle records, switching branches, appending.

    python bench/contexts.py                  everything, with 5,000 files
    python bench/contexts.py 1200 scan        so many files, and only the parts named

The repository is made of the sources of installed packages, in an order that only their paths decide. What bare
embedding of the same parts takes is measured in the same run, before and after the scan.
"""

from __future__ import annotations

import hashlib
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cortex_py import Cortex
from cortex_py.core.config import load_settings
from cortex_py.core.embedding.backends.backend import Backend
from cortex_py.core.embedding.backends.registry import open_backend
from cortex_py.core.records import NewMemory
from cortex_py.worktree.code.syntax import analyse

import datasets
import report
from synthetic import english, queries

FILES = 5_000
LARGEST = 7_000
PARTS = ("scan", "beside", "packing", "switching", "appending")
SAMPLE = 1_536
BATCH = 192
NOTES, RECALLS, CAPTURES = 300, 30, 10  # in the store beside the files; in each round of calls
MOST_ROUNDS, MOST_BESIDE = 30, 600  # of calls, and of files that are scanned beside them
PAUSE_SECONDS = 0.02
SWITCHES = 20
APPENDS = 500


def _model() -> Backend:
    return open_backend(settings=load_settings(os.environ.get("CORTEX_BENCH_HOME")))


def _git(folder: Path, *arguments: str) -> None:
    who = ["-c", "user.name=bench", "-c", "user.email=bench@example.org", "-c", "init.defaultBranch=main"]
    subprocess.run(["git", *who, *arguments], cwd=folder, check=True, capture_output=True)


def build_repository(root: Path, count: int) -> int:
    """Sources of installed packages under their own paths, with a README; returns their size in bytes."""
    packages = Path(sysconfig.get_paths()["purelib"])
    found = [
        path
        for path in packages.rglob("*.py")
        if 100 < path.stat().st_size < LARGEST and not {"_vendor", "vendor", "__pycache__"} & set(path.parts)
    ]
    found.sort(key=lambda path: hashlib.sha256(str(path.relative_to(packages)).encode()).digest())
    size = 0
    for path in found[:count]:
        # Not below the folders that a scan passes over.
        target = root / "src" / path.relative_to(packages)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)
        size += path.stat().st_size
    (root / "README.md").write_text("# Many packages\n\nA repository made of the sources of other people's packages.\n")
    (root / "pyproject.toml").write_text('[project]\nname = "many"\nversion = "1"\n')
    _git(root, "init")
    _git(root, "add", "-A")
    _git(root, "commit", "-m", "all of it")
    if len(found) < count:
        print(f"only {len(found)} files are installed here")
    return size


# -- scanning ------------------------------------------------------------------------------------


def scan_in_process(home: str, root: str, mode: str) -> None:
    """Run by a fresh interpreter: one scan, its time until the answer and until all vectors, and its memory."""
    started = time.perf_counter()
    with Cortex.open(home, project=root, backend=_model()) as cortex:
        scanned = cortex.contexts.initialize(root, mode)  # type: ignore[arg-type]  # one of the three
        answered = time.perf_counter() - started
        cortex.memories.fill_vectors()
    seconds = time.perf_counter() - started
    used = resource.getrusage(resource.RUSAGE_SELF)
    told = {
        "answered_s": answered,
        "seconds": seconds,
        "cpu_s": used.ru_utime + used.ru_stime,
        "peak_mb": used.ru_maxrss / 1024,
        "files": scanned.files_scanned,
        "created": scanned.contexts_created,
    }
    print(json.dumps({**told, "left_out": dict(scanned.left_out)}))


def _scan(home: Path, root: Path, mode: str) -> dict[str, float]:
    call = f"import contexts; contexts.scan_in_process({str(home)!r}, {str(root)!r}, {mode!r})"
    done = subprocess.run(
        [sys.executable, "-c", call], cwd=Path(__file__).parent, check=True, capture_output=True, text=True
    )
    told: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return told


def _bare_embedding(root: Path, backend: Backend) -> tuple[float, float]:
    """Seconds a part when nothing but the model works, by the clock and of the processors.

    On parts of files from all over the repository. Processor time is what a noisy machine tells most truly.
    """
    files = sorted((root / "src").rglob("*.py"))
    texts = []
    for path in files[:: max(1, 5 * len(files) // SAMPLE)]:
        name = str(path.relative_to(root))
        parts = analyse(name, path.read_text("utf-8", "replace")).parts
        # As a scan gives them to the model: with path and symbol before them.
        texts += [f"{name} {part.symbol or ''}\n{part.text}" for part in parts if part.text.strip()]
    started, used = time.perf_counter(), time.process_time()
    for low in range(0, len(texts), BATCH):
        backend.embed(texts[low : low + BATCH])
    return (time.perf_counter() - started) / len(texts), (time.process_time() - used) / len(texts)


def scan(folder: Path, count: int) -> dict[str, object]:
    root = folder / "repository"
    root.mkdir()
    size = build_repository(root, count)
    light = _scan(folder / "light", root, "light")
    backend = _model()
    backend.embed(["warm"])
    home = folder / "full"
    rates = [_bare_embedding(root, backend)]
    first = _scan(home, root, "full")
    rates.append(_bare_embedding(root, backend))
    again = _scan(home, root, "full")
    some = sorted((root / "src").rglob("*.py"))[:50]
    for path in some:
        path.write_text(path.read_text("utf-8", "replace") + "\n\ndef added_by_the_benchmark():\n    return 1\n")
    touched = _scan(home, root, "full")
    bare, bare_cpu = (statistics.mean(figures) for figures in zip(*rates, strict=True))
    share = bare * first["created"] / first["seconds"]
    cpu_share = bare_cpu * first["created"] / first["cpu_s"]
    report.table(
        ("scan", "answered", "with vectors", "files", "contexts created", "peak MB"),
        [
            (name, one["answered_s"], one["seconds"], int(one["files"]), int(one["created"]), one["peak_mb"])
            for name, one in (("light", light), ("full", first), ("full again", again), ("50 files changed", touched))
        ],
    )
    print(f"repository: {count} files, {size / 1e6:.1f} MB")
    print(f"share of the scan that is bare embedding: {share:.2f} by the clock, {cpu_share:.2f} of processor time")
    print(f"second full scan / first: {again['seconds'] / first['seconds']:.4f}")
    return {
        "files": count,
        "bytes": size,
        "light": light,
        "full": first,
        "again": again,
        "fifty_changed": touched,
        "bare_seconds_per_part": rates,
        "share_by_clock": share,
        "share_of_processor_time": cpu_share,
        "second_share": again["seconds"] / first["seconds"],
    }


# -- calls beside a scan ---------------------------------------------------------------------------


def beside(folder: Path, count: int) -> dict[str, object]:
    """Recalls and captures, one after the other, in a process that computes the vectors of a scan, and afterwards."""
    root = folder / "repository"
    root.mkdir()
    count = min(count, MOST_BESIDE)
    build_repository(root, count)
    rounds = MOST_ROUNDS + 4  # one before the scan and three after it
    texts = [query for seed in range(rounds) for query in queries(RECALLS, seed=seed)]
    notes = english(rounds * CAPTURES + NOTES, seed=3)
    during: list[tuple[float, float]] = []
    with Cortex.open(folder / "home", project=root) as cortex:
        cortex.memories.capture_many([NewMemory(content=notes.pop()) for _ in range(NOTES)])

        def round_of_calls() -> tuple[float, float]:
            recalls = [_paced_ms(lambda: cortex.memories.recall(texts.pop())) for _ in range(RECALLS)]
            captures = [_paced_ms(lambda: cortex.memories.capture(notes.pop())) for _ in range(CAPTURES)]
            return statistics.median(recalls), statistics.median(captures)

        round_of_calls()
        cortex.contexts.initialize(root, "full")
        while cortex.memories.status().pending_vectors and len(during) < MOST_ROUNDS:
            during.append(round_of_calls())
        cortex.memories.fill_vectors()
        # With the same files in the store.
        alone = [round_of_calls() for _ in range(3)]
    # The last round began beside the vectors and may have ended without.
    during = during[:-1]
    assert during, "The scan was over too soon: name more files."
    result: dict[str, object] = {"files": count, "rounds": len(during)}
    for n, name in enumerate(("recall", "capture")):
        before, busy = (statistics.median(pair[n] for pair in pairs) for pairs in (alone, during))
        result |= {f"{name}_alone_ms": before, f"{name}_beside_ms": busy, f"{name}_ratio": busy / before}
    report.table(list(result), [list(result.values())])
    return result


def _paced_ms(call: Callable[[], object]) -> float:
    time.sleep(PAUSE_SECONDS)
    started = time.perf_counter()
    call()
    return (time.perf_counter() - started) * 1e3


# -- packing -------------------------------------------------------------------------------------


class _Clock:
    def __init__(self) -> None:
        self.ahead = timedelta(0)

    def now(self) -> datetime:
        return datetime.now(UTC) + self.ahead


def _notes() -> Iterator[str]:
    for collection in datasets.locomo():
        yield from (record.content for record in collection.records)


def packing(folder: Path) -> dict[str, object]:
    """Real dialogue turns, and the sources of a package: what packing saves, and how quickly it is undone."""
    rows, result = [], {}
    sources = [path.read_text("utf-8", "replace") for path in sorted(Path(os.__file__).parent.glob("*.py"))[:150]]
    for name, texts in (("dialogue turns", list(_notes())[:5_000]), ("source files", sources)):
        clock = _Clock()
        home = folder / name.split()[0]
        with Cortex.open(home, project=folder, backend=_Silent(), clock=clock) as cortex:
            ids = [one.id for one in cortex.memories.capture_many(NewMemory(content=text) for text in texts)]
            clock.ahead = timedelta(minutes=31)
            started = time.perf_counter()
            packed = cortex.memories.compress()
            seconds = time.perf_counter() - started
            started = time.perf_counter()
            same = all(cortex.memories.get(one).content == text for one, text in zip(ids, texts, strict=True))
            reading = (time.perf_counter() - started) / len(ids)
        assert same
        ratio = packed.bytes_after / packed.bytes_before if packed.bytes_before else 1.0
        rows.append((name, len(texts), packed.records, ratio, packed.bytes_before / 1e6 / seconds, reading * 1e6))
        result[name] = {"records": len(texts), "packed": packed.records, "ratio": ratio, "identical": same}
    report.table(("texts", "records", "packed", "size after / before", "MB/s", "get, microseconds"), rows)
    return result


class _Silent:
    """A model that says nothing: packing does not look at vectors."""

    name, fingerprint, dimensions, max_tokens, loaded = "silent", "silent", 8, 256, True

    def embed(self, texts: list[str]) -> object:
        import numpy as np

        return np.ones((len(texts), 8), np.float32) / np.float32(8**0.5)

    def count_tokens(self, text: str) -> int:
        return len(text) // 4 + 1


# -- switching and appending ---------------------------------------------------------------------


def switching(folder: Path) -> dict[str, object]:
    """A summary after each of twenty checkouts, by the word `active`, beside the same summary asked for by its id."""
    root = folder / "switched"
    root.mkdir()
    _git(root, "init")
    _git(root, "commit", "--allow-empty", "-m", "first")
    followed, plain, right = [], [], 0
    with Cortex.open(folder / "switching", project=root, backend=_model()) as cortex:
        lines = []
        for n in range(SWITCHES):
            name = f"feature/{n}"
            _git(root, "branch", name)
            line = cortex.contexts.create_branch(f"Feature number {n}", git_branch=name)
            cortex.memories.capture(f"We decided that feature {n} uses plan {n * 7}.", branch_id=line.id)
            lines.append(line)
        for n, line in enumerate(lines):
            _git(root, "checkout", f"feature/{n}")
            started = time.perf_counter()
            found = cortex.contexts.summary()
            followed.append(time.perf_counter() - started)
            started = time.perf_counter()
            cortex.contexts.summary(line.id)
            plain.append(time.perf_counter() - started)
            right += found.branch.id == line.id and f"plan {n * 7}." in found.summary.text
    added = [1000 * (a - b) for a, b in zip(followed, plain, strict=True)]
    rows = [(SWITCHES, right, statistics.median(added), max(added), 1000 * statistics.median(plain))]
    report.table(("switches", "right", "added ms, median", "added ms, most", "summary by id, ms"), rows)
    return {
        "switches": SWITCHES,
        "right": right,
        "added_ms_median": statistics.median(added),
        "added_ms_most": max(added),
    }


def append_in_process(home: str, root: str, branch: str, name: str) -> None:
    with Cortex.open(home, project=root, backend=_model()) as cortex:
        for n in range(APPENDS):
            cortex.contexts.append(branch, f"{name} step {n}: checked the queue", "assistant")


def appending(folder: Path) -> dict[str, object]:
    """Two processes append to one line of work at the same time."""
    home, root = folder / "appending", folder / "appended"
    root.mkdir()
    with Cortex.open(home, project=root, backend=_model()) as cortex:
        branch = cortex.contexts.create_branch("Two at once")
        call = "import contexts; contexts.append_in_process({!r}, {!r}, {!r}, {!r})"
        started = time.perf_counter()
        writers = [
            subprocess.Popen(
                [sys.executable, "-c", call.format(str(home), str(root), branch.id, name)], cwd=Path(__file__).parent
            )
            for name in ("left", "right")
        ]
        codes = [writer.wait() for writer in writers]
        seconds = time.perf_counter() - started
        stored = [one.content for one in cortex.contexts.content(branch.id)]
        text = cortex.contexts.check_branch(branch.id).path.read_text("utf-8")
    shown = [line for line in text.splitlines() if " step " in line]
    own = [[line for line in stored if line.startswith(name)] for name in ("left", "right")]
    kept = all(lines == [f"{lines[0].split()[0]} step {n}: checked the queue" for n in range(APPENDS)] for lines in own)
    rows = [(2 * APPENDS, len(stored), len(shown), stored == shown and kept, 2 * APPENDS / seconds)]
    report.table(("appended", "in the store", "in the file", "in order", "a second"), rows)
    return {"stored": len(stored), "shown": len(shown), "in_order": stored == shown and kept, "codes": codes}


def main() -> None:
    count = next((int(word) for word in sys.argv[1:] if word.isdigit()), FILES)
    wanted = [word for word in sys.argv[1:] if word in PARTS] or PARTS
    result: dict[str, object] = {}
    for name in wanted:
        print(f"\n{name}")
        with tempfile.TemporaryDirectory() as folder:
            work = {"packing": packing, "switching": switching, "appending": appending}
            counted = {"scan": scan, "beside": beside}
            place = Path(folder).resolve()
            result[name] = counted[name](place, count) if name in counted else work[name](place)
    report.write("contexts", result)


if __name__ == "__main__":
    main()
