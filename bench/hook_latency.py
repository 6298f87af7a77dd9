"""How long hooks take with many memories, process included: warm, in parallel, cold, and while turns are read.

    python bench/hooks.py --latency                     100,000 memories
    python bench/hooks.py --latency --size 10000        fewer
    CORTEX_BENCH_HOOKS=FOLDER …                         keep the store there, and use it again

The memories are synthetic (see `synthetic.py`). Each hook is a process, as a client runs it, with the deadline of the
settings. A bare interpreter is timed before each hook in the same loop: on a busy machine the ratio says more than the
milliseconds. `late` is the share of hooks that gave the empty answer because of the deadline.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import cycle, islice
from pathlib import Path

import numpy as np

from cortex_py import Cortex
from cortex_py.parts.hooks.turns import RawTurn, append_turn

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "training"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "training" / "gate"))

from train_gate import read_turns

from latency import _backend, fill

import report
from synthetic import queries

WARM, PARALLEL, AT_ONCE, COLD, TURNS, WHILE_READING = 60, 80, 8, 20, 1_000, 40
_WAIT = 120.0


def _hook(home: Path, project: Path, text: str, session: str, **variables: str) -> tuple[float, bool]:
    """Milliseconds of one prompt hook, and whether it brought anything."""
    sent = json.dumps({"session_id": session, "cwd": str(project), "prompt": text}).encode()
    words = [sys.executable, "-P", "-m", "cortex_py", "hook", "claude-code", "UserPromptSubmit", "--home", str(home)]
    begun = time.perf_counter()
    done = subprocess.run(words, input=sent, capture_output=True, env={**os.environ, **variables}, check=True)
    return 1e3 * (time.perf_counter() - begun), len(done.stdout) > 5


def _bare() -> float:
    begun = time.perf_counter()
    subprocess.run([sys.executable, "-c", "pass"], check=True)
    return 1e3 * (time.perf_counter() - begun)


def _late(home: Path) -> int:
    """Lines of the log about hooks that were too late."""
    log = home / "hooks" / "log"
    return sum(" late " in line for line in log.read_text().splitlines()) if log.exists() else 0


def _row(name: str, home: Path, late: int, taken: Sequence[float], bare: Sequence[float]) -> list[object]:
    p50, p95 = np.percentile(taken, [50, 95])
    return [name, len(taken), p50, p95, p50 / float(np.percentile(bare, 50)), (_late(home) - late) / len(taken)]


def _processes(home: Path) -> list[int]:
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if b"cortex_py.parts.hooks.helper" in words and os.fsencode(home) in words:
            found.append(int(folder.name))
    return found


def _wait_until(condition: Callable[[], object], what: str) -> None:
    until = time.monotonic() + _WAIT
    while not condition():
        if time.monotonic() > until:
            raise SystemExit(f"{what} never came")
        time.sleep(0.1)


def _one_by_one(name: str, home: Path, project: Path, texts: Sequence[str], **variables: str) -> list[object]:
    late, bare, taken = _late(home), [], []
    for number, text in enumerate(texts):
        bare.append(_bare())
        taken.append(_hook(home, project, text, f"{name}-{number}", **variables)[0])
    return _row(name, home, late, taken, bare)


def _warm(home: Path, project: Path, texts: Sequence[str]) -> list[list[object]]:
    """Hooks while the helper is warm: one by one, many at once, and while it reads turns."""
    _hook(home, project, texts[0], "first")
    _wait_until((home / "hooks" / "address").exists, "the helper")
    # Hooks with time enough come back once all is loaded.
    for number in range(3):
        _hook(home, project, texts[number], "loading", CORTEX_HOOK_DEADLINE_MS="60000")
    rows = [_one_by_one("warm", home, project, texts[:WARM])]
    late, bare = _late(home), [_bare() for _ in range(10)]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        asked = list(islice(cycle(texts), PARALLEL))
        parallel = list(pool.map(lambda one: _hook(home, project, one[1], f"p{one[0]}")[0], enumerate(asked)))
    rows.append(_row(f"warm, {AT_ONCE} at once", home, late, parallel, bare))
    _append_turns(home, project)
    rows.append(_one_by_one("warm, reading turns", home, project, texts[:WHILE_READING]))
    return rows


def _append_turns(home: Path, project: Path) -> None:
    kept = [one.turn for one in read_turns("develop")]
    for number, turn in enumerate(islice(cycle(kept), TURNS)):
        # A session of its own in each round, so that texts repeat, as in life, but sessions do not.
        session = f"{turn.session}-{number // len(kept)}"
        made: RawTurn = replace(
            turn, id=f"bench{number:08}", session=session, cwd=str(project), at="2026-01-01T00:00:00Z"
        )
        append_turn(home, made)


def _read_turns(home: Path, project: Path) -> list[object]:
    """Turns in a second, read in this process, with the store of many memories."""
    for leftover in ("reading.json", "turns"):
        path = home / "hooks" / leftover
        if path.is_dir():
            for file in path.iterdir():
                file.unlink()
        else:
            path.unlink(missing_ok=True)
    _append_turns(home, project)
    with Cortex.open(home, project=project, backend=_backend()) as cortex:
        cortex.hooks.warm_up(project)
        begun = time.perf_counter()
        found = cortex.hooks.read_turns()
        seconds = time.perf_counter() - begun
    return [found.turns, len(found.staged), found.turns / seconds]


def measure(size: int) -> dict[str, object]:
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(os.environ.get("CORTEX_BENCH_HOOKS") or temporary)
        home = folder / f"home-{size}"
        if not (home / "cortex.db").exists():
            home.mkdir(parents=True, exist_ok=True)
            print(f"{fill(home, size):,.0f} memories stored in a second", file=sys.stderr)
        # The synthetic store is its own project.
        texts = queries(WARM + 2)
        rows = _cold(home, texts)
        rows += _warm(home, home, texts)
        for process in _processes(home):
            os.kill(process, 15)
        _wait_until(lambda: not _processes(home), "the end of the helper")
        reading = _read_turns(home, home)
    report.table(("hooks", "count", "p50 ms", "p95 ms", "of a bare start", "late"), rows)
    report.table(("turns", "staged", "turns/s"), [reading])
    return {"memories": size, "hooks": rows, "reading": reading}


def _cold(home: Path, texts: Sequence[str]) -> list[list[object]]:
    """Each hook finds no warm process; the helper it starts only keeps the turn."""
    late, bare, taken = _late(home), [], []
    for number, text in enumerate(texts[:COLD]):
        _wait_until(lambda: not _processes(home), "the end of a helper")
        bare.append(_bare())
        taken.append(_hook(home, home, text, f"cold-{number}", CORTEX_HOOK_IDLE_SECONDS="0")[0])
    _wait_until(lambda: not _processes(home), "the end of a helper")
    return [_row("cold", home, late, taken, bare)]
