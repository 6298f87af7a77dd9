"""Models of the sentence-transformers library, on the processor or an NVIDIA card.

What its files say is known before anything is imported; torch and the library are loaded when something is
first embedded. Vectors are computed in 32-bit floats whatever the weights are stored in, and without the
short float formats of cards, so processor and card differ by rounding only and share a fingerprint.

Nothing is fetched unless `model` was given by the user as a name on the hub: then the library may do so
when something is first embedded. A model that is on the machine is never looked up elsewhere.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from ...errors import EmbeddingError, ModelMissing
from .model_folder import DEFAULT_MODEL, Digest, ModelFolder, digest_files, drop_surrogates, find_folder, given_folder
from .runtime import refuse_telemetry
from .token_batches import embed_batches

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from sentence_transformers import SentenceTransformer

    from ...config import Device

__all__ = ["SentenceTransformersBackend"]

Width = Literal["float32", "float16"]

# A card wants many texts at once; a processor gains nothing and only takes more memory.
_TOKENS_PER_RUN = {"cpu": 2048, "cuda": 65_536}

# What decides a vector, beside the weights. Other files come and go as a download is completed.
_DESCRIPTIONS = (
    "config.json",
    "modules.json",
    "sentence_bert_config.json",
    "config_sentence_transformers.json",
    "tokenizer.json",
)


class SentenceTransformersBackend:
    """Embeds texts with a model of that library. Safe to share between threads: one text batch at a time."""

    name = "sentence_transformers"

    def __init__(
        self,
        model: str | None = None,
        device: Device = "cpu",
        threads: int | None = None,
        width: Width = "float32",
    ) -> None:
        """`model` is a folder, or a name on the hub; without one, the default model if it is on this machine."""
        self._wanted = model or DEFAULT_MODEL
        self._chosen = model is not None
        self._device = device
        self._threads = threads
        self._width = width
        self._using = threading.Lock()
        self._model: SentenceTransformer | None = None
        self._found: ModelFolder | None = None
        path = given_folder(self._wanted)
        self.model_name = path.resolve().name if path else self._wanted

    @property
    def dimensions(self) -> int:
        """0 while the model is not on this machine."""
        folder = self._folder()
        return folder.dimensions if folder else 0

    @property
    def max_tokens(self) -> int:
        """0 while the model is not on this machine."""
        folder = self._folder()
        return folder.max_tokens if folder else 0

    @property
    def fingerprint(self) -> str:
        return f"{self.name}:{self.model_name}:{self._digest.text[:16]}:{self._width}"

    @property
    def loaded(self) -> bool:
        return self._model is not None

    def count_tokens(self, text: str) -> int:
        return self._present().tokeniser.count(text)

    def embed(self, texts: Sequence[str], *, normalize: bool = True) -> NDArray[np.float32]:
        with self._using:
            model = self._loaded_model()
        folder = self._present()

        def run(ids: NDArray[np.int64], mask: NDArray[np.int64]) -> NDArray[np.float32]:
            import torch

            # Taken for each batch, so that a short text waits for at most one batch of a long job.
            with self._using, _faults(self.model_name), torch.inference_mode():
                features = {
                    "input_ids": torch.from_numpy(ids).to(self._device),
                    "attention_mask": torch.from_numpy(mask).to(self._device),
                }
                vectors: NDArray[np.float32] = model(features)["sentence_embedding"].float().cpu().numpy()
                return vectors

        # Tokenised here: the library's own way is the slower half of the work once a card does the other.
        return embed_batches(
            [drop_surrogates(text) for text in texts],
            run,
            folder.tokeniser,
            dimensions=folder.dimensions,
            max_tokens=folder.max_tokens,
            tokens_per_run=_TOKENS_PER_RUN[self._device],
            padding=int(folder.config.get("pad_token_id") or 0),
            normalize=normalize,
        )

    @cached_property
    def _digest(self) -> Digest:
        """Of weights and descriptions. Takes about a second for each gigabyte, once."""
        folder = self._present()
        places = [folder.path, *(folder.path / path for _, path in folder.modules if path)]
        files = [place / name for place in places for name in _DESCRIPTIONS]
        for place in places:
            # The second is an older form of the first, left alone where both are there.
            files += sorted(place.glob("*.safetensors")) or sorted(place.glob("pytorch_model*.bin"))
        return digest_files([path for path in files if path.is_file()], folder.max_tokens)

    def _folder(self) -> ModelFolder | None:
        if self._found is None and (path := find_folder(self._wanted)):
            self._found = ModelFolder(path)
        return self._found

    def _present(self) -> ModelFolder:
        folder = self._folder()
        if folder is None:
            raise ModelMissing(
                f"The model {self._wanted} is not on this machine.",
                remedy=f"Fetch it once: `hf download {self._wanted}`; or set embedding_model to its folder.",
            )
        return folder

    def _loaded_model(self) -> SentenceTransformer:
        if self._model is None:
            if self._folder() is not None or not self._chosen:
                self._present()
                self._digest.check()
            elif Path(self._wanted).exists():
                # The library would take it for the model, from wherever this process happens to be.
                raise ModelMissing(
                    f"{self._wanted} is a path from the current folder, where no model is taken from.",
                    remedy="Set embedding_model to the model's whole path.",
                )
            self._model = self._load()
        return self._model

    def _load(self) -> SentenceTransformer:
        folder = self._folder()
        refuse_telemetry()
        with _faults(self.model_name), _quiet():
            import torch
            from sentence_transformers import SentenceTransformer

            if self._threads:
                torch.set_num_threads(self._threads)
            # Loaded from the folder that the fingerprint describes, never by a name that may have moved on.
            model = SentenceTransformer(
                str(folder.path) if folder else self._wanted,
                device=self._device,
                local_files_only=folder is not None,
            )
            # The library keeps the width of the file; what is stored short is computed long all the same.
            model.to(getattr(torch, self._width))
            while len(model) > 1 and type(model[-1]).__name__ == "Normalize":
                # It would give rows of length 1 to those who ask for the raw ones.
                del model[-1]
            model.max_seq_length = self._present().max_tokens
            width = model.encode(["-"], show_progress_bar=False).shape[1]
        if width != self.dimensions:
            raise EmbeddingError(
                f"The model {self.model_name} makes vectors of {width} numbers where its files say {self.dimensions}.",
                remedy="Fetch the model again.",
            )
        return model


@contextmanager
def _faults(model: str) -> Iterator[None]:
    """What the library and torch raise: a file that is not there or not whole, a card that is full."""
    from safetensors import SafetensorError

    try:
        yield
    except (OSError, ImportError, KeyError, RuntimeError, TypeError, ValueError, SafetensorError) as error:
        raise EmbeddingError(f"sentence-transformers cannot run {model}: {error}") from error


@contextmanager
def _quiet() -> Iterator[None]:
    """No progress bars while a model is loaded."""
    from transformers.utils import logging

    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()
