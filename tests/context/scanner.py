"""A process that scans a project and tells of each file when it is safe; `endless` never gets a vector."""

import sys
import threading
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

# Run as a script, it finds the parts that tests share only here.
sys.path.insert(0, str(Path(__file__).parents[1]))

from cortex_py import Cortex
from cortex_py.parts.context import scan

from stub_backend import StubBackend


class EndlessBackend(StubBackend):
    def embed(self, texts: Sequence[str], *, normalize: bool = True) -> NDArray[np.float32]:
        threading.Event().wait()
        return super().embed(texts, normalize=normalize)


if __name__ == "__main__":
    home, project, mode = sys.argv[1:4]
    if "endless" in sys.argv:
        scan.DEFERRED_BYTES = 1000
        with Cortex.open(home, project=project, backend=EndlessBackend()) as cortex:
            print("pending", cortex.contexts.initialize(mode=mode).pending_vectors, flush=True)
    else:
        with Cortex.open(home, project=project, backend=StubBackend()) as cortex:
            scanned = cortex.contexts.initialize(mode=mode, progress=lambda done, total: print(done, total, flush=True))
        print(scanned.files_scanned, scanned.contexts_created, flush=True)
