"""A process that captures notes which all name the same new things, batch by batch, and prints each batch."""

import sys
from pathlib import Path

# Run as a script, it finds the parts that tests share only here.
sys.path.insert(0, str(Path(__file__).parents[1]))

from cortex_py import Cortex, NewMemory

from stub_backend import StubBackend

if __name__ == "__main__":
    home, project, name, batches, size = sys.argv[1:6]
    with Cortex.open(home, project=project, backend=StubBackend()) as cortex:
        print("ready", flush=True)
        sys.stdin.readline()
        for batch in range(int(batches)):
            cortex.memories.capture_many(
                NewMemory(content=f"Maria Lopez from Acme uses Redis, says {name} in batch {batch}, note {n}.")
                for n in range(int(size))
            )
            print("done", batch, flush=True)
