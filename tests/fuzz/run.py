"""`make fuzz`: every target for a while, from its corpus on. What fails is made smaller and put into the corpus.

FUZZ_SECONDS is the time for each target, FUZZ the names of those to run, FUZZ_SEED repeats a run.
"""

from __future__ import annotations

import hashlib
import os
import random
import sys
import time
from pathlib import Path

from fuzz.checking import Failure, check
from fuzz.mutation import mutated, smaller
from fuzz.targets import CORPUS, TARGETS, Target

# Examples that ended in a way not seen before are mutated further.
_MOST_KEPT = 2_000


def fuzz(name: str, target: Target, seconds: float, seed: int, corpus: Path = CORPUS) -> tuple[int, dict[str, Path]]:
    """How many examples were run, and where those that failed are now, by the kind of failure."""
    source = random.Random(f"{seed} {name}")
    folder = corpus / name
    kept = [path.read_bytes() for path in sorted(folder.glob("*"))] or [b""]
    ways: set[str] = set()
    failures: dict[str, Path] = {}
    until, count = time.monotonic() + seconds, 0
    while time.monotonic() < until:
        data = mutated(source.choice(kept), kept, target.words, source)
        count += 1
        try:
            way = check(target, data)
        except Failure as failure:
            if failure.kind not in failures:
                failures[failure.kind] = _write(folder, target, data, failure)
            continue
        if way not in ways and len(ways) < _MOST_KEPT:
            ways.add(way)
            kept.append(data)
    return count, failures


def _write(folder: Path, target: Target, data: bytes, failure: Failure) -> Path:
    def fails(shorter: bytes) -> bool:
        try:
            check(target, shorter)
        except Failure as other:
            return other.kind == failure.kind
        return False

    # What is slow because it is long does not get shorter, and every try takes its time.
    found = data if failure.kind == "slow" else smaller(data, fails)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{failure.kind}-{hashlib.sha256(found).hexdigest()[:8]}"
    path.write_bytes(found)
    return path


def main() -> int:
    seconds = float(os.environ.get("FUZZ_SECONDS") or 60)
    seed = int(os.environ.get("FUZZ_SEED") or time.time())
    chosen = os.environ.get("FUZZ", "").split() or list(TARGETS)
    if unknown := [name for name in chosen if name not in TARGETS]:
        print(f"There is no target {unknown[0]!r}; there are {', '.join(TARGETS)}.")
        return 2
    failed = False
    for name in chosen:
        count, failures = fuzz(name, TARGETS[name], seconds, seed)
        print(f"{name}: {count} examples, {len(failures)} kinds of failure", flush=True)
        for kind, path in failures.items():
            print(f"  {kind}: {path}", flush=True)
        failed = failed or bool(failures)
    print(f"FUZZ_SEED={seed}")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
