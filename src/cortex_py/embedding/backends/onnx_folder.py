"""A user's own model in ONNX form, in a folder as hubs and exporters write it:

    model.onnx  or  onnx/model.onnx          with its external weights, if it has any
    tokenizer.json  or  vocab.txt            the first needs the package `tokenizers`
    config.json, tokenizer_config.json, 1_Pooling/config.json, sentence_bert_config.json    if there

Opening one reads what these files say, without a runtime; the graph is loaded when something is first
embedded. An output for whole texts is taken as it is; else the outputs for tokens are pooled.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import ConfigurationError, EmbeddingError
from .model_folder import Digest, ModelFolder, digest
from .onnx_signature import Signature, Slot, read_signature
from .token_batches import embed_batches

if TYPE_CHECKING:
    import numpy as np
    import onnxruntime
    from numpy.typing import NDArray

    from ..config import Device

__all__ = ["OnnxFolderBackend"]

_PLACES = ("model.onnx", "onnx/model.onnx")
_IDS, _MASK, _SEGMENTS = ("input_ids", "ids"), ("attention_mask", "mask"), ("token_type_ids",)
_WHOLE = ("sentence_embedding", "text_embeds")
_INT32, _INT64 = 6, 7

_TOKENS_PER_RUN = {"cpu": 1024, "cuda": 32_768}
_RUNS_AT_ONCE = 2


class OnnxFolderBackend:
    """Embeds texts with the model in a folder. Safe to share between threads."""

    name = "onnx_folder"

    def __init__(self, folder: Path, threads: int | None = None, device: Device = "cpu") -> None:
        self._folder = ModelFolder(folder)
        self._graph = _graph(folder)
        self._signature = read_signature(self._graph)
        self._inputs = _inputs(self._signature, self._graph)
        self._output = _output(self._signature, self._graph)
        if len(self._output.shape) == 3:
            self._folder.check_plain()
        _ = self._folder.tokeniser_file
        self._threads = threads
        self._device = device
        self._loading = threading.Lock()
        self._running = threading.Semaphore(_RUNS_AT_ONCE)
        self._session: onnxruntime.InferenceSession | None = None
        self.model_name = folder.resolve().name
        self.max_tokens = self._folder.max_tokens
        self.dimensions = self._output.shape[-1] or self._folder.dimensions
        if not self.dimensions:
            raise ConfigurationError(
                f"Neither the graph {self._graph} nor a config.json says how long its vectors are.",
                remedy="Put the model's config.json into the folder.",
                field="embedding_backend",
            )

    @property
    def fingerprint(self) -> str:
        device = "" if self._device == "cpu" else f":{self._device}"
        return f"{self.name}:{self.model_name}:{self._digest.text[:16]}{device}"

    @property
    def loaded(self) -> bool:
        return self._session is not None

    def count_tokens(self, text: str) -> int:
        return self._folder.tokeniser.count(text)

    def embed(self, texts: Sequence[str], *, normalize: bool = True) -> NDArray[np.float32]:
        session = self._loaded_session()
        return embed_batches(
            texts,
            lambda ids, mask: self._run(session, ids, mask),
            self._folder.tokeniser,
            dimensions=self.dimensions,
            max_tokens=self.max_tokens,
            tokens_per_run=_TOKENS_PER_RUN[self._device],
            padding=int(self._folder.config.get("pad_token_id") or 0),
            normalize=normalize,
        )

    @cached_property
    def _digest(self) -> Digest:
        """Of all that decides a vector. Takes about a second for each gigabyte, once."""
        weights = [self._graph, *(self._graph.parent / name for name in self._signature.external)]
        return digest([*weights, self._folder.tokeniser_file], self.max_tokens, self._folder.pooling, self._output.name)

    def _run(
        self, session: onnxruntime.InferenceSession, ids: NDArray[np.int64], mask: NDArray[np.int64]
    ) -> NDArray[np.float32]:
        import numpy as np

        given = {_IDS: ids, _MASK: mask, _SEGMENTS: np.zeros_like(ids)}
        feed = {
            slot.name: given[role].astype(np.int32 if slot.element == _INT32 else np.int64)
            for slot, role in self._inputs
        }
        with self._running, _faults(self._graph):
            found: NDArray[np.float32] = session.run([self._output.name], feed)[0].astype(np.float32)
        if found.ndim == 3:
            found = found[:, 0] if self._folder.pooling == "cls" else _mean(found, mask)
        if found.shape != (len(ids), self.dimensions):
            raise EmbeddingError(
                f"The model in {self._folder.path} gave an array of {found.shape} for {len(ids)} texts, "
                f"where {self.dimensions} numbers for each were expected.",
                remedy="Export it with one vector per text, or one per token.",
            )
        return found

    def _loaded_session(self) -> onnxruntime.InferenceSession:
        with self._loading:
            if self._session is None:
                from .onnx_backend import open_session

                self._digest.check()
                with _faults(self._graph):
                    # Exported graphs are not fused; the runtime does that.
                    self._session = open_session(self._graph, self._threads, self._device, rewrite=True)
            return self._session


def _graph(folder: Path) -> Path:
    for place in _PLACES:
        if (folder / place).is_file():
            return folder / place
    raise ConfigurationError(
        f"The folder {folder} holds no ONNX model: neither {' nor '.join(_PLACES)} is there.",
        remedy="Name the folder that holds the exported model.",
        field="embedding_backend",
    )


def _inputs(signature: Signature, path: Path) -> list[tuple[Slot, tuple[str, ...]]]:
    """Each input with what it is for."""
    found: list[tuple[Slot, tuple[str, ...]]] = []
    roles: tuple[tuple[str, ...], ...] = (_IDS, _MASK, _SEGMENTS)
    for slot in signature.inputs:
        role = next((role for role in roles if slot.name in role), None)
        if role is None or slot.element not in (_INT32, _INT64):
            raise ConfigurationError(
                f"The model {path} asks for an input that Cortex does not know: {slot.name!r}.",
                remedy="Export it with the inputs input_ids, attention_mask and, if needed, token_type_ids.",
                field="embedding_backend",
            )
        found.append((slot, role))
    if _IDS not in [role for _, role in found]:
        raise ConfigurationError(
            f"The model {path} takes no token ids.", remedy="Give a text model.", field="embedding_backend"
        )
    return found


def _output(signature: Signature, path: Path) -> Slot:
    """The output that holds the vectors: the one for whole texts, or else the one for tokens."""
    usable = [slot for slot in signature.outputs if len(slot.shape) in (2, 3)]
    if not usable:
        raise ConfigurationError(
            f"The model {path} gives no vectors.", remedy="Give an embedding model.", field="embedding_backend"
        )
    named = [slot for slot in usable if slot.name in _WHOLE]
    tokens = [slot for slot in usable if len(slot.shape) == 3]
    return (named or tokens or usable)[0]


@contextmanager
def _faults(path: Path) -> Iterator[None]:
    """What the runtime says against a graph or its input, in our own words."""
    from .onnx_backend import runtime_errors

    try:
        yield
    except runtime_errors() as error:
        raise EmbeddingError(f"onnxruntime cannot run {path}: {error}") from error


def _mean(tokens: NDArray[np.float32], mask: NDArray[np.int64]) -> NDArray[np.float32]:
    import numpy as np

    present = mask[:, :, np.newaxis].astype(np.float32)
    mean: NDArray[np.float32] = (tokens * present).sum(axis=1) / np.maximum(present.sum(axis=1), 1e-9)
    return mean
