"""A user's own model in ONNX form, in a folder as hubs and exporters write it:

    model.onnx  or  onnx/model.onnx          with its external weights, if it has any
    tokenizer.json  or  vocab.txt            the first needs the package `tokenizers`
    config.json, tokenizer_config.json, 1_Pooling/config.json, sentence_bert_config.json    if there

Opening one reads what these files say, without a runtime; the graph is loaded when something is first
embedded. An output for whole texts is taken as it is; else the outputs for tokens are pooled.
"""

from __future__ import annotations

import mmap
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from ...errors import ConfigurationError, EmbeddingError, ModelCorrupt, ModelMissing
from ...jobs import ForkLock, renew_in_forks
from ...paths import open_regular
from .model_folder import Digest, ModelFolder, digest_files
from .token_batches import embed_batches

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ...config import Device
    from .runtime import InferenceSession

__all__ = ["GraphSlot", "OnnxFolderBackend", "Signature", "read_signature"]

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
        self._loading = ForkLock()
        self._session: InferenceSession | None = None
        self.renew()
        renew_in_forks(self)
        self.model_name = folder.resolve().name
        self.max_tokens = self._folder.max_tokens
        self.dimensions = self._output.shape[-1] or self._folder.dimensions
        if not self.dimensions:
            raise ConfigurationError(
                f"Neither the graph {self._graph} nor a config.json says how long its vectors are.",
                remedy="Put the model's config.json into the folder.",
                field="embedding_backend",
            )

    def renew(self) -> None:
        self._running = threading.Semaphore(_RUNS_AT_ONCE)

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
        return digest_files(
            [*weights, self._folder.tokeniser_file], self.max_tokens, self._folder.pooling, self._output.name
        )

    def _run(self, session: InferenceSession, ids: NDArray[np.int64], mask: NDArray[np.int64]) -> NDArray[np.float32]:
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

    def _loaded_session(self) -> InferenceSession:
        with self._loading:
            if self._session is None:
                from .onnx import open_session

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


def _inputs(signature: Signature, path: Path) -> list[tuple[GraphSlot, tuple[str, ...]]]:
    """Each input with what it is for."""
    found: list[tuple[GraphSlot, tuple[str, ...]]] = []
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


def _output(signature: Signature, path: Path) -> GraphSlot:
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
    """Wrap the runtime's errors about a graph or its input."""
    from .onnx import runtime_errors

    try:
        yield
    except runtime_errors() as error:
        raise EmbeddingError(f"onnxruntime cannot run {path}: {error}") from error


def _mean(tokens: NDArray[np.float32], mask: NDArray[np.int64]) -> NDArray[np.float32]:
    import numpy as np

    present = mask[:, :, np.newaxis].astype(np.float32)
    mean: NDArray[np.float32] = (tokens * present).sum(axis=1) / np.maximum(present.sum(axis=1), 1e-9)
    return mean


# -- The signature of an ONNX file, read without a runtime (field numbers of onnx.proto3) ----------


_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_GRAPH = 7
_INITIALIZER, _INPUT, _OUTPUT = 5, 11, 12
_TENSOR_NAME, _TENSOR_EXTERNAL = 8, 13


@dataclass(frozen=True, slots=True)
class GraphSlot:
    """One input or output. `element` is the type's number; sizes that are not fixed are None."""

    name: str
    element: int
    shape: tuple[int | None, ...]


@dataclass(frozen=True, slots=True)
class Signature:
    inputs: tuple[GraphSlot, ...]
    outputs: tuple[GraphSlot, ...]
    external: tuple[str, ...]


def read_signature(path: Path) -> Signature:
    """Raises ModelMissing where there is no such file, ModelCorrupt where it is no ONNX file."""
    try:
        with open_regular(path) as file:
            # Let go together with the last view into it.
            content = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
        return _signature(content)
    except OSError as error:
        raise ModelMissing(f"The model file {path} cannot be read: {error.strerror}.") from error
    except (ValueError, IndexError) as error:
        raise ModelCorrupt(f"{path} is not an ONNX file.", remedy="Copy the model again.") from error


def _signature(content: memoryview) -> Signature:
    inputs, outputs = [], []
    stored: set[str] = set()
    external: dict[str, None] = {}
    for field, graph in _messages(content):
        if field != _GRAPH:
            continue
        for part, value in _messages(graph):
            if part == _INPUT:
                inputs.append(_slot(value))
            elif part == _OUTPUT:
                outputs.append(_slot(value))
            elif part == _INITIALIZER:
                name, location = _tensor(value)
                stored.add(name)
                external[location] = None
    if not outputs:
        raise ValueError("no graph")
    # Older files list their weights among the inputs.
    asked = tuple(slot for slot in inputs if slot.name not in stored)
    return Signature(asked, tuple(outputs), tuple(name for name in external if name))


def _slot(value: memoryview) -> GraphSlot:
    name, element, shape = "", 0, []
    for field, part in _messages(value):
        if field == 1:
            name = _text(part)
        elif field == 2:
            for tensor in _nested(part, 1):
                element = next((number for field, number in _numbers(tensor) if field == 1), 0)
                for dimensions in _nested(tensor, 2):
                    shape = [
                        next((number for field, number in _numbers(size) if field == 1), None)
                        for size in _nested(dimensions, 1)
                    ]
    return GraphSlot(name, element, tuple(shape))


def _tensor(value: memoryview) -> tuple[str, str]:
    """The tensor's name, and the external file with its data, if any."""
    name = location = ""
    for field, part in _messages(value):
        if field == _TENSOR_NAME:
            name = _text(part)
        elif field == _TENSOR_EXTERNAL:
            entry = {key: _text(text) for key, text in _messages(part)}
            if entry.get(1) == "location":
                location = entry.get(2, "")
    return name, location


def _nested(content: memoryview, wanted: int) -> Iterator[memoryview]:
    return (value for field, value in _messages(content) if field == wanted)


def _messages(content: memoryview) -> Iterator[tuple[int, memoryview]]:
    return ((field, value) for field, value in _fields(content) if isinstance(value, memoryview))


def _numbers(content: memoryview) -> Iterator[tuple[int, int]]:
    return ((field, value) for field, value in _fields(content) if isinstance(value, int))


def _fields(content: memoryview) -> Iterator[tuple[int, int | memoryview]]:
    place = 0
    while place < len(content):
        key, place = _varint(content, place)
        kind = key & 7
        if kind == _VARINT:
            number, place = _varint(content, place)
            yield key >> 3, number
            continue
        if kind == _BYTES:
            size, place = _varint(content, place)
        elif kind in (_FIXED32, _FIXED64):
            size = 4 if kind == _FIXED32 else 8
        else:
            raise ValueError(f"wire type {kind}")
        if place + size > len(content):
            raise ValueError("cut off")
        yield key >> 3, content[place : place + size]
        place += size


def _varint(content: memoryview, place: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = content[place]
        value |= (byte & 0x7F) << shift
        place, shift = place + 1, shift + 7
        if byte < 0x80:
            return value, place
        if shift > 63:
            raise ValueError("endless number")


def _text(value: memoryview) -> str:
    return bytes(value).decode("utf-8")
