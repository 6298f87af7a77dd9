"""Run the benchmarks: `make bench`, or `make bench BENCH="latency retrieval"` for some of them.

Each prints its tables and the ratio to its figures of record (`figures.json`), and writes `bench/results/NAME.json`.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
ALL = (
    "secret_scan",
    "personal_data",
    "embedding",
    "retrieval",
    "latency",
    "tools",
    "server",
    "embedding_service",
    "ontology",
    "summaries",
    "contexts",
    "entities",
    "graph",
    "reading",
    "entity_signal",
    "prompts",
    "consolidation",
    "likeness",
    "grounding_text",
    "grounding_code",
    "grounding_scale",
    "suggestions",
    "hooks",
    "backups",
    "page",
    "postgres",
)
# Only when named: the first takes half an hour, the second installs other projects and takes hours.
NAMED = ("long_load", "peers")


def main() -> int:
    chosen = sys.argv[1:] or list(ALL)
    unknown = [name for name in chosen if name not in (*ALL, *NAMED)]
    if unknown:
        print(f"Unknown benchmark {unknown[0]!r}; there are {', '.join((*ALL, *NAMED))}.")
        return 2
    worst = 0
    for name in chosen:
        print(f"\n== {name} ==", flush=True)
        worst = max(worst, subprocess.run([sys.executable, str(HERE / f"{name}.py")], check=False).returncode)
    return worst


if __name__ == "__main__":
    sys.exit(main())
