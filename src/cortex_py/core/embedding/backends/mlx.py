"""BERT models on Apple silicon: the encoder in MLX, from a folder with safetensors.

MLX and the weights are loaded when something is first embedded. The arithmetic was checked against the
default backend on MLX's processor build for Linux; on Apple silicon itself, and on its graphics part, it has
not been run.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ...errors import ConfigurationError, ModelCorrupt, ModelMissing
from .model_folder import DEFAULT_MODEL, Digest, ModelFolder, digest_files, find_folder, given_folder
from .token_batches import embed_batches

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["MlxBackend"]

# MLX has no types that the checker here could read.
Array = Any

_WEIGHTS = "model.safetensors"
_TOKENS_PER_RUN = 8192


class MlxBackend:
    """Embeds texts with a BERT model. Safe to share between threads: one run at a time."""

    name = "mlx"

    def __init__(self, model: str | None = None) -> None:
        """`model` is a folder or the name of a model that was fetched from the hub before; nothing is fetched."""
        wanted = model or DEFAULT_MODEL
        path = find_folder(wanted)
        if path is None or not (path / _WEIGHTS).is_file():
            raise ModelMissing(
                f"The model {wanted} is not on this machine, or has no {_WEIGHTS}.",
                remedy=f"Fetch it once: `hf download {wanted}`; or set embedding_model to its folder.",
            )
        self._folder = ModelFolder(path)
        self._folder.check_plain()
        config = self._folder.config
        if config.get("model_type") != "bert" or config.get("hidden_act", "gelu") != "gelu":
            raise ConfigurationError(
                f"The model {wanted} is no BERT model.",
                remedy="Choose another model or backend.",
                field="embedding_model",
            )
        self.model_name = path.resolve().name if given_folder(wanted) else wanted
        self.dimensions = self._folder.dimensions
        self.max_tokens = self._folder.max_tokens
        self._running = threading.Lock()
        self._encoder: _Encoder | None = None

    @property
    def fingerprint(self) -> str:
        return f"{self.name}:{self.model_name}:{self._digest.text[:16]}:float32"

    @property
    def loaded(self) -> bool:
        return self._encoder is not None

    def count_tokens(self, text: str) -> int:
        return self._folder.tokeniser.count(text)

    def embed(self, texts: Sequence[str], *, normalize: bool = True) -> NDArray[np.float32]:
        with self._running:
            if self._encoder is None:
                self._digest.check()
                self._encoder = _Encoder(self._folder)
            encoder = self._encoder
        return embed_batches(
            texts,
            lambda ids, mask: self._run(encoder, ids, mask),
            self._folder.tokeniser,
            dimensions=self.dimensions,
            max_tokens=self.max_tokens,
            tokens_per_run=_TOKENS_PER_RUN,
            normalize=normalize,
        )

    @cached_property
    def _digest(self) -> Digest:
        path = self._folder.path
        files = [path / _WEIGHTS, path / "config.json", self._folder.tokeniser_file]
        return digest_files(files, self.max_tokens, self._folder.pooling)

    def _run(self, encoder: _Encoder, ids: NDArray[np.int64], mask: NDArray[np.int64]) -> NDArray[np.float32]:
        with self._running:
            return encoder.pooled(ids, mask)


class _Encoder:
    """The network: embeddings, attention layers, pooling. In 32-bit floats, whatever the file holds."""

    def __init__(self, folder: ModelFolder) -> None:
        import mlx.core as mx

        config = folder.config
        self._layers = int(config["num_hidden_layers"])
        self._heads = int(config["num_attention_heads"])
        self._epsilon = float(config.get("layer_norm_eps", 1e-12))
        self._pooling = folder.pooling
        stored: Mapping[str, Array] = mx.load(str(folder.path / _WEIGHTS))
        self._tensors = {
            name.removeprefix("bert."): tensor.astype(mx.float32)
            for name, tensor in stored.items()
            if mx.issubdtype(tensor.dtype, mx.floating)
        }
        if f"encoder.layer.{self._layers - 1}.output.dense.weight" not in self._tensors:
            raise ModelCorrupt(f"{folder.path / _WEIGHTS} lacks layers that config.json declares.")
        # Until it is computed, an array belongs to the thread that made it, and no other can use it.
        mx.eval(list(self._tensors.values()))

    def pooled(self, ids: NDArray[np.int64], mask: NDArray[np.int64]) -> NDArray[np.float32]:
        import mlx.core as mx
        import numpy as np

        present = mx.array(mask.astype(np.float32))
        hidden = self._embeddings(mx.array(ids.astype(np.int32)))
        # Added to the scores of a text's padding, so that nothing attends to it.
        hide = ((1.0 - present) * -1e9)[:, None, None, :]
        for layer in range(self._layers):
            hidden = self._layer(f"encoder.layer.{layer}", hidden, hide)
        if self._pooling == "cls":
            found = hidden[:, 0]
        else:
            found = (hidden * present[:, :, None]).sum(axis=1) / mx.maximum(present.sum(axis=1, keepdims=True), 1e-9)
        return np.array(found, dtype=np.float32)

    def _embeddings(self, ids: Array) -> Array:
        tables = [self._tensors[f"embeddings.{kind}_embeddings.weight"] for kind in ("word", "position", "token_type")]
        return self._normalised("embeddings.LayerNorm", tables[0][ids] + tables[1][: ids.shape[1]] + tables[2][0])

    def _layer(self, prefix: str, hidden: Array, hide: Array) -> Array:
        import mlx.core as mx
        from mlx.nn import gelu

        texts, tokens, width = hidden.shape

        def heads(name: str) -> Array:
            made = self._product(f"{prefix}.attention.self.{name}", hidden)
            return made.reshape(texts, tokens, self._heads, -1).transpose(0, 2, 1, 3)

        context = mx.fast.scaled_dot_product_attention(
            heads("query"), heads("key"), heads("value"), scale=(width // self._heads) ** -0.5, mask=hide
        )
        context = context.transpose(0, 2, 1, 3).reshape(texts, tokens, width)
        attended = self._product(f"{prefix}.attention.output.dense", context)
        hidden = self._normalised(f"{prefix}.attention.output.LayerNorm", attended + hidden)
        inner = gelu(self._product(f"{prefix}.intermediate.dense", hidden))
        return self._normalised(f"{prefix}.output.LayerNorm", self._product(f"{prefix}.output.dense", inner) + hidden)

    def _product(self, name: str, values: Array) -> Array:
        return values @ self._tensors[f"{name}.weight"].T + self._tensors[f"{name}.bias"]

    def _normalised(self, name: str, values: Array) -> Array:
        import mlx.core as mx

        return mx.fast.layer_norm(values, self._tensors[f"{name}.weight"], self._tensors[f"{name}.bias"], self._epsilon)
