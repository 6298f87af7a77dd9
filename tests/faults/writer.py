"""A process that writes memories and acknowledges each only after it is stored."""

import json
import sys
from pathlib import Path

# Run as a script, it finds the parts that tests share only here.
sys.path.insert(0, str(Path(__file__).parents[1]))

from cortex_py import Cortex

from stub_backend import StubBackend

if __name__ == "__main__":
    home, project, number, count = sys.argv[1:5]
    aloud = len(sys.argv) > 5
    ids = []
    with Cortex.open(home, project=project, backend=StubBackend()) as cortex:
        for turn in range(int(count)):
            memory = cortex.memories.capture(f"note from writer w{number}x{turn}", tags=["soak"])
            ids.append(memory.id)
            if aloud:
                print(memory.id, flush=True)
            elif turn % 20 == 0:
                assert cortex.memories.recall(f"w{number}x{turn}", mode="text").results[0].memory.id == memory.id
    if not aloud:
        print(json.dumps(ids))
