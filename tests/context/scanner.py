"""A process that scans a project and tells of each file when it is safe."""

import sys
from pathlib import Path

# Run as a script, it finds the parts that tests share only here.
sys.path.insert(0, str(Path(__file__).parents[1]))

from cortex_py import Cortex

from stub_backend import StubBackend

if __name__ == "__main__":
    home, project, mode = sys.argv[1:4]
    with Cortex.open(home, project=project, backend=StubBackend()) as cortex:
        scanned = cortex.contexts.initialize(mode=mode, progress=lambda done, total: print(done, total, flush=True))
    print(scanned.files_scanned, scanned.contexts_created, flush=True)
