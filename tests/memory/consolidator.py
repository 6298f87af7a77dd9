"""A process that consolidates what is there, and tells the ids of the results."""

import json
import sys
from pathlib import Path

# Run as a script, it finds the parts that tests share only here.
sys.path.insert(0, str(Path(__file__).parents[1]))

from cortex_py import Cortex

from stub_backend import StubBackend

if __name__ == "__main__":
    home, project = sys.argv[1:3]

    def progress(done: int, total: int) -> None:
        print("at", done, total, flush=True)

    with Cortex.open(home, project=project, backend=StubBackend()) as cortex:
        cortex.memories.recall("warm")
        print("ready", flush=True)
        sys.stdin.readline()
        done = cortex.memories.consolidate(strategy="dedupe", progress=progress)
    print(json.dumps([group.result_id for group in done.groups]), flush=True)
