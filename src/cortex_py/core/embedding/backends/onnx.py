"""The embedding backend that ships with Cortex: its own model, cortex-recall, on onnxruntime.

Constructing it is cheap. The vocabulary is read when tokens are first counted; the runtime is imported and the graph
loaded when something is first embedded. `shipped_model` reads its files.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections import deque
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from ...clock import check_deadline
from ...errors import EmbeddingError
from ...jobs import ForkLock, Pool, is_in_background, renew_in_forks, report
from ..shipped_model import (
    DIMENSIONS,
    MAX_TOKENS,
    RECALL,
    SHIPPED,
    ModelManifest,
    checked_graph,
    read_manifest,
    read_vocabulary,
)
from ..wordpiece import WordPiece
from .runtime import import_onnxruntime
from .token_batches import group_by_length

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ...config import Device
    from .runtime import InferenceSession

__all__ = ["OnnxBackend", "open_session", "runtime_errors", "threads_beside_others"]

# Larger runs are no faster; they only take more memory and make a waiting query wait longer.
_TOKENS_PER_RUN = 256
# Texts are tokenised by this many, so that a batch of any size holds few token lists at a time.
_TEXTS_AT_ONCE = 512
# How many callers of a server share the cores.
_CALLERS_AT_ONCE = 2
_MOST_THREADS = 4
_HELPERS = Pool(_MOST_THREADS, "cortex-model")


class OnnxBackend:
    """Embeds texts with a model in the folder `models`. Safe to share between threads.

    Each run of the model has one thread, and a batch is shared out as runs of a few texts: two runs
    side by side do twice the work of one, while a second thread for the same run mostly waits.
    """

    name = "onnx"
    dimensions = DIMENSIONS
    max_tokens = MAX_TOKENS

    def __init__(self, models: Path = SHIPPED, threads: int | None = None, *, model: str = RECALL) -> None:
        self.model_name = model
        self._models = models
        self._threads = threads or _default_threads()
        self._loading = ForkLock()
        self._session: InferenceSession | None = None
        self.renew()
        renew_in_forks(self)

    def renew(self) -> None:
        # One more than a batch uses, so that a query passes beside it. Runs in the background do not count: a caller
        # that waited for one would wait for a thread to which all others are preferred.
        self._running = threading.Semaphore(self._threads + 1)

    @property
    def fingerprint(self) -> str:
        return self._manifest.fingerprint

    @property
    def loaded(self) -> bool:
        return self._session is not None

    def count_tokens(self, text: str) -> int:
        return self._tokeniser.count(text)

    def embed(self, texts: Sequence[str], *, normalize: bool = True) -> NDArray[np.float32]:
        import numpy as np

        self._loaded_session()
        if len(texts) == 1:
            check_deadline()
            vector = self._run([self._tokeniser.encode(texts[0], MAX_TOKENS)])
            report("texts", 1, 1)
            return vector / np.linalg.norm(vector, axis=1, keepdims=True) if normalize else vector
        vectors = np.empty((len(texts), DIMENSIONS), dtype=np.float32)
        for first in range(0, len(texts), _TEXTS_AT_ONCE):
            part = [self._tokeniser.encode(text, MAX_TOKENS) for text in texts[first : first + _TEXTS_AT_ONCE]]
            self._embed_part(part, vectors, first)
        if normalize:
            vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        return vectors

    def _embed_part(self, part: Sequence[Sequence[int]], vectors: NDArray[np.float32], first: int) -> None:
        """Fill in the vectors of some texts, from the first one on, in this thread and in helpers."""
        lengths = [len(ids) for ids in part]
        # Few texts are shared out evenly.
        most = min(_TOKENS_PER_RUN, -(-sum(lengths) // self._threads))
        batches = deque(group_by_length(lengths, most))
        done: list[int] = []

        def work() -> None:
            try:
                while batches:
                    # Helpers have no deadline and nobody who watches them; the caller has.
                    check_deadline()
                    try:
                        batch = batches.popleft()
                    except IndexError:
                        return  # another thread took the last one
                    vectors[[first + number for number in batch]] = self._run([part[number] for number in batch])
                    done.append(len(batch))
                    report("texts", first + sum(done), len(vectors))
            except BaseException:
                batches.clear()
                raise

        _HELPERS.run_beside(work, min(self._threads, len(batches)) - 1)

    @cached_property
    def _manifest(self) -> ModelManifest:
        return read_manifest(self._models, self.model_name)

    @cached_property
    def _tokeniser(self) -> WordPiece:
        return WordPiece(read_vocabulary(self._models, self._manifest))

    def _run(self, batch: Sequence[Sequence[int]]) -> NDArray[np.float32]:
        import numpy as np

        session = self._loaded_session()

        shape = (len(batch), max(map(len, batch)))
        ids = np.zeros(shape, dtype=np.int32)
        mask = np.zeros(shape, dtype=np.int32)
        for row, tokens in enumerate(batch):
            ids[row, : len(tokens)] = tokens
            mask[row, : len(tokens)] = 1
        with contextlib.nullcontext() if is_in_background() else self._running:
            vectors: NDArray[np.float32] = session.run(None, {"ids": ids, "mask": mask})[0]
        return vectors

    def _loaded_session(self) -> InferenceSession:
        with self._loading:
            if self._session is None:
                with ThreadPoolExecutor(1, "cortex-check") as pool:
                    # Checked against the manifest of the reported fingerprint: a replaced graph is refused.
                    checked = pool.submit(checked_graph, self._models, self._manifest)
                    # What else a first call needs is loaded meanwhile.
                    import_onnxruntime()
                    _ = self._tokeniser
                    graph = checked.result()
                self._session = open_session(graph, 1, beside_others=True)
            return self._session


def open_session(
    path: Path,
    threads: int | None = None,
    device: Device = "cpu",
    *,
    rewrite: bool = False,
    beside_others: bool = False,
) -> InferenceSession:
    """Load a graph. `rewrite` lets the runtime fuse what its author did not; that ties numbers to its version.

    `beside_others`: several short runs of the graph are made at once.
    """
    onnxruntime = import_onnxruntime()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads or _default_threads()
    options.log_severity_level = 3
    # Our graph is fused already: rewriting it would only take time, and tie its numbers to the runtime's version.
    level = onnxruntime.GraphOptimizationLevel
    options.graph_optimization_level = level.ORT_ENABLE_ALL if rewrite else level.ORT_DISABLE_ALL
    # Runs that share the runtime's own pool of memory write to the same lines of the cache: two at once then take 1.3
    # times the processor time each. Long runs need the pool, or they get new pages from the system each time.
    options.enable_cpu_mem_arena = not beside_others or device != "cpu"
    # Spinning threads would keep a core busy for 30 ms after each run, on a machine people work on.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    if device == "cpu":
        return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    if "CUDAExecutionProvider" in onnxruntime.get_available_providers():
        # Finds CUDA's libraries where they came as Python packages. What it cannot find it prints.
        with contextlib.redirect_stdout(sys.stderr), contextlib.suppress(AttributeError):
            onnxruntime.preload_dlls()  # since 1.21
        # TF32 would give other numbers than the processor.
        cuda = ("CUDAExecutionProvider", {"use_tf32": "0"})
        session = onnxruntime.InferenceSession(path, options, providers=[cuda, "CPUExecutionProvider"])
        # If CUDA does not start, the runtime silently continues without it.
        if "CUDAExecutionProvider" in session.get_providers():
            return session
    raise EmbeddingError(
        "onnxruntime cannot use the graphics card: its CUDA provider did not start.",
        remedy="Install the CUDA and cuDNN libraries that onnxruntime-gpu needs, or set embedding_device to cpu.",
    )


def _default_threads() -> int:
    if hasattr(os, "sched_getaffinity"):
        return min(_MOST_THREADS, len(os.sched_getaffinity(0)))
    return min(_MOST_THREADS, os.cpu_count() or 1)


def threads_beside_others() -> int:
    """How many threads a caller of the model gets in a process with many: two callers share the cores."""
    return max(1, _default_threads() // _CALLERS_AT_ONCE)


def runtime_errors() -> tuple[type[Exception], ...]:
    """The runtime's own errors have no common base; these are the ones that a graph or its input can cause."""
    runtime = import_onnxruntime().capi.onnxruntime_pybind11_state
    return (
        runtime.Fail,
        runtime.InvalidArgument,
        runtime.InvalidGraph,
        runtime.InvalidProtobuf,
        runtime.NoSuchFile,
        runtime.NotImplemented,
        runtime.RuntimeException,
    )
