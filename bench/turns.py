"""Processor and wall time of a recall and of a capture, of two source trees in turns within one run.

    python bench/turns.py OLD [NEW] [--size 20000]

OLD and NEW are checkouts, for example a `git worktree` of an earlier commit; NEW is this one unless it is given. OLD
fills one store, and each tree works on a copy of it with the real model. The figure is the ratio of the medians, all
threads of the process counted; what a capture leaves for later is done outside the measured stretch.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from synthetic import english, queries

HERE = Path(__file__).resolve().parent.parent
ROUNDS = 12
CALLS = {"recall": 60, "capture": 20}


def worker(home: Path, project: Path) -> None:
    """Answer lines such as `recall` with the processor time of a call in milliseconds."""
    from cortex_py import Cortex

    with Cortex.open(home, project=project) as cortex:
        # Half of the questions are of the words of the store, half of words that the model knows.
        asked = [text for pair in zip(queries(1_000), english(1_000, seed=5, words=9), strict=True) for text in pair]
        said = english(1_000, seed=17)
        print("ready", flush=True)
        for line in sys.stdin:
            call = line.strip()
            texts = asked if call == "recall" else said
            chosen = [texts.pop() for _ in range(CALLS[call])]
            started, begun = time.process_time(), time.perf_counter()
            for text in chosen:
                if call == "recall":
                    cortex.memories.recall(text)
                else:
                    cortex.memories.capture(text, namespace="learnings")
            spent = [
                (now - before) / len(chosen) * 1000
                for before, now in ((started, time.process_time()), (begun, time.perf_counter()))
            ]
            quiet = time.process_time()
            while True:  # until what a capture left for later is done
                time.sleep(0.3)
                if (now := time.process_time()) - quiet < 0.02:
                    break
                quiet = now
            print(*spent, flush=True)


def started(tree: Path, home: Path, project: Path) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": f"{tree / 'src'}{os.pathsep}{tree / 'bench'}", "CORTEX_HOME": str(home)}
    # Each with the benchmarks of its own tree, not with those beside this file.
    words = [sys.executable, "-P", __file__, "--worker", str(home), str(project)]
    process = subprocess.Popen(words, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path, nargs="?", default=HERE)
    parser.add_argument("--size", type=int, default=20_000)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        homes = [Path(folder) / "old", Path(folder) / "new"]
        # Both work in the project that the notes belong to.
        project = Path(folder) / "project"
        project.mkdir()
        fill = (
            "import latency, pathlib, sys; path = pathlib.Path; latency.fill(path(sys.argv[1]), %d, path(sys.argv[2]))"
        )
        environment = {**os.environ, "PYTHONPATH": str(chosen.old / "src")}
        subprocess.run(
            [sys.executable, "-c", fill % chosen.size, homes[0], project],
            cwd=chosen.old / "bench",
            env=environment,
            check=True,
        )
        shutil.copytree(homes[0], homes[1])
        trees = [chosen.old.resolve(), chosen.new.resolve()]
        processes = [started(tree, home, project) for tree, home in zip(trees, homes, strict=True)]
        found: dict[str, tuple[list[list[float]], list[list[float]]]] = {call: ([], []) for call in CALLS}
        for turn in range(ROUNDS):
            for call, times in found.items():
                for which in (0, 1) if turn % 2 else (1, 0):
                    process = processes[which]
                    assert process.stdin is not None and process.stdout is not None
                    process.stdin.write(f"{call}\n")
                    process.stdin.flush()
                    spent = [float(word) for word in process.stdout.readline().split()]
                    if turn:  # the first round warms up
                        times[which].append(spent)
        for process in processes:
            process.communicate()
        for call, times in found.items():
            for kind, name in enumerate(("processor", "wall")):
                old, new = (statistics.median(one[kind] for one in every) for every in times)
                print(f"{call}, {name}: old {old:.2f} ms, new {new:.2f} ms, ratio {new / old:.2f}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--worker"]:
        worker(Path(sys.argv[2]), Path(sys.argv[3]))
    else:
        main()
