"""How fast transcripts of Claude Code become searchable, and how much memory that takes.

The transcripts are generated with the shapes and the proportions of real ones: most of the bytes are results of tools,
about a fifteenth is what people and models said. `--profile` shows where the time goes.

    python bench/imports.py --megabytes 1000
    python bench/imports.py --megabytes 50 --profile
"""

from __future__ import annotations

import argparse
import cProfile
import json
import pstats
import random
import resource
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

from cortex_py import Cortex

TEXT = """the service reads its settings from environment and retries a failed request twice before it gives up we
should keep migrations small because large ones lock tables in production cache index query latency build deploy branch
merge rebase review test coverage flaky timeout pool connection session token user order invoice payment refund customer
catalogue search ranking vector memory import export snapshot restore schema column nullable default"""
WORDS = TEXT.split()
FILES = 20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=100)
    parser.add_argument("--profile", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        (folder / "project").mkdir()
        size = write_transcripts(folder / "projects", options.megabytes * 1_000_000, folder / "project")
        with Cortex.open(folder / "home", project=folder / "project", snapshot_every="off") as cortex:
            profiler = cProfile.Profile() if options.profile else None
            wall, cpu = time.perf_counter(), time.process_time()
            if profiler:
                profiler.enable()
            taken = cortex.backups.import_from([folder / "projects"])
            if profiler:
                profiler.disable()
            wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
            said = (
                sum(len(one.content) for one in cortex.memories.listed("kind:turn", 1_000))
                * taken.added["turn"]
                / 1_000
            )
            found = cortex.memories.recall("migrations lock tables", filter="kind:turn", mode="text", limit=5).results
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1e6 if sys.platform == "darwin" else 1e3)
        report = {
            "megabytes": round(size / 1e6, 1),
            "turns": taken.added["turn"],
            "megabytes_said": round(said / 1e6, 2),
            "found_by_words": len(found),
            "seconds": round(wall, 2),
            "cpu_seconds": round(cpu, 2),
            "mb_per_second": round(size / 1e6 / wall, 1),
            "mb_per_cpu_second": round(size / 1e6 / cpu, 1),
            "peak_memory_mb": round(peak, 1),
        }
        print(json.dumps(report, indent=2))
        if profiler:
            pstats.Stats(profiler).sort_stats("tottime").print_stats(35)


def write_transcripts(folder: Path, size: int, cwd: Path) -> int:
    """Write transcripts of about that many bytes; how many were written."""
    chance = random.Random(28)
    written = 0
    for number in range(FILES):
        session = str(uuid.UUID(int=chance.getrandbits(128)))
        path = folder / "-project" / f"{session}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("w", encoding="utf-8") as file:
            while written < size * (number + 1) // FILES:
                for line in exchange(chance, session, str(cwd)):
                    written += file.write(json.dumps(line, separators=(",", ":")) + "\n")
    return written


def exchange(chance: random.Random, session: str, cwd: str) -> Iterator[dict[str, object]]:
    """A prompt, an answer, and the tools that were used in between."""
    yield entry(chance, session, cwd, "user", prose(chance, chance.choice([8, 20, 60])))
    for _ in range(chance.randint(1, 5)):
        call = f"toolu_{chance.getrandbits(64):x}"
        if chance.random() < 0.4:
            thought = {"type": "thinking", "thinking": prose(chance, 80), "signature": f"{chance.getrandbits(512):x}"}
            yield entry(chance, session, cwd, "assistant", [thought])
        used = {
            "type": "tool_use",
            "id": call,
            "name": "Bash",
            "input": {"command": f"grep -rn {prose(chance, 2)} src"},
        }
        yield entry(chance, session, cwd, "assistant", [used])
        output = code(chance, chance.choice([5, 20, 80]))
        result = {"type": "tool_result", "tool_use_id": call, "content": output, "is_error": False}
        yield {
            **entry(chance, session, cwd, "user", [result]),
            "toolUseResult": {"stdout": output, "stderr": "", "interrupted": False},
        }
    yield entry(
        chance, session, cwd, "assistant", [{"type": "text", "text": prose(chance, chance.choice([30, 80, 250]))}]
    )


def entry(chance: random.Random, session: str, cwd: str, kind: str, content: object) -> dict[str, object]:
    second = chance.randrange(86_400)
    return {
        "parentUuid": None,
        "isSidechain": False,
        "userType": "external",
        "cwd": cwd,
        "sessionId": session,
        "version": "2.1.0",
        "gitBranch": "main",
        "type": kind,
        "message": {"role": kind, "content": content},
        "uuid": str(uuid.UUID(int=chance.getrandbits(128))),
        "timestamp": f"2026-03-04T{second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}.000Z",
    }


def prose(chance: random.Random, words: int) -> str:
    said = chance.choices(WORDS, k=words)
    for at in range(9, words, 12):
        said[at] += "."
    return " ".join(said)


def code(chance: random.Random, lines: int) -> str:
    return "\n".join(
        f"src/{chance.choice(WORDS)}.py:{chance.randrange(900)}:    {chance.choice(WORDS)} = "
        f"{chance.choice(WORDS)}({chance.choice(WORDS)}, {chance.randrange(10_000)})"
        for _ in range(lines)
    )


if __name__ == "__main__":
    main()
