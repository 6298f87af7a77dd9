"""A model folder in the layout of model hubs: its location, settings and tokeniser.

Files are read; nothing is downloaded and no model is loaded. Several backends share this module.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

from ...errors import ConfigurationError, ModelCorrupt, ModelMissing, extra_remedy
from ...paths import expanded, open_regular, read_whole
from ..wordpiece import WordPiece

__all__ = [
    "DEFAULT_MODEL",
    "Digest",
    "ModelFolder",
    "Tokeniser",
    "digest_files",
    "drop_surrogates",
    "find_folder",
    "given_folder",
]

DEFAULT_MODEL = "sentence-transformers/all-MiniLM-L6-v2"

# The limit if a model does not state how many tokens it reads.
_MOST_TOKENS = 512
_MOST_DESCRIPTION = 64_000_000
_PLAIN_MODULES = ("Transformer", "Pooling", "Normalize")


class Tokeniser(Protocol):
    """Text to ids. Safe to share between threads."""

    def encode(self, text: str, limit: int) -> list[int]:
        """Ids with the model's own marks, at most `limit` of them."""

    def count(self, text: str) -> int:
        """How many ids the whole text has."""


@dataclass(frozen=True, slots=True)
class Digest:
    """The SHA-256 of some files, with their sizes and times when it was computed."""

    text: str
    stamps: Mapping[Path, tuple[int, int]]

    def check(self) -> None:
        """Raise ModelCorrupt if a file has changed since: its vectors would carry the old fingerprint."""
        for path, stamp in self.stamps.items():
            if _stamp(path) != stamp:
                raise ModelCorrupt(f"The model file {path} changed while Cortex was running.", remedy="Start it again.")


def digest_files(files: Iterable[Path], *settings: object) -> Digest:
    """One digest over files and over settings that change what is computed from them."""
    total = hashlib.sha256(repr(settings).encode())
    stamps = {}
    for path in files:
        stamps[path] = _stamp(path)
        with _opened(path) as file:
            total.update(path.name.encode() + hashlib.file_digest(file, "sha256").digest())
    return Digest(total.hexdigest(), stamps)


def given_folder(model: str) -> Path | None:
    """The folder that a setting gives as a whole path.

    A name on the hub is never one, although it reads like a path from the current folder: that may be a stranger's
    repository, and a model can bring code.
    """
    folder = expanded(model)
    return folder if folder.is_absolute() and folder.is_dir() else None


def find_folder(model: str) -> Path | None:
    """The folder of a model, given as a whole path or hub name; None if it is not on this machine."""
    if folder := given_folder(model):
        return folder
    # Names without an owner are looked up as sentence-transformers does.
    for name in (model, f"sentence-transformers/{model}") if "/" not in model else (model,):
        for cache in _hub_caches():
            stored = cache / f"models--{name.replace('/', '--')}"
            try:
                snapshot = stored / "snapshots" / read_whole(stored / "refs" / "main", 1_000).decode("utf-8").strip()
            except (OSError, UnicodeDecodeError):
                continue
            if (snapshot / "config.json").is_file():
                return snapshot
    return None


def drop_surrogates(text: str) -> str:
    """The text without lone surrogates, which no encoder takes."""
    return text if text.isascii() else text.encode("utf-8", "ignore").decode("utf-8")


class ModelFolder:
    """What the files in one folder say. Safe to share between threads."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @cached_property
    def config(self) -> Mapping[str, Any]:
        return self._json("config.json")

    @cached_property
    def max_tokens(self) -> int:
        """The number of tokens the model reads: as configured, or else what it supports, within reason."""
        configured = _whole(self._json("sentence_bert_config.json").get("max_seq_length"))
        length = _whole(self._json("tokenizer_config.json").get("model_max_length"))
        able = _whole(self.config.get("max_position_embeddings"))
        return min(number for number in (configured or _MOST_TOKENS, able, configured or length) if number)

    @cached_property
    def pooling(self) -> str:
        """How token vectors are pooled: `mean`, `cls`, or a mode that is not supported here."""
        settings = self._json("1_Pooling/config.json")
        mode = settings.get("pooling_mode")
        if mode is not None:
            return mode if isinstance(mode, str) else "+".join(map(str, mode))
        chosen = [key for key, value in settings.items() if key.startswith("pooling_mode_") and value is True]
        names = {"pooling_mode_cls_token": "cls", "pooling_mode_mean_tokens": "mean"}
        return "+".join(names.get(key, key) for key in chosen) or "mean"

    @cached_property
    def modules(self) -> tuple[tuple[str, str], ...]:
        """The steps the model consists of, as kind and sub-folder, where it is more than one network."""
        listed = self._json("modules.json")
        return tuple((str(entry["type"]).rsplit(".", 1)[-1], str(entry["path"])) for entry in listed.get("list", ()))

    @cached_property
    def dimensions(self) -> int:
        """The length of the model's vectors; 0 if no file says."""
        for kind, path in reversed(self.modules):
            if kind == "Dense":
                return _whole(self._json(f"{path}/config.json").get("out_features"))
        width = _whole(self.config.get("hidden_size") or self.config.get("dim"))
        return width * (1 + self.pooling.count("+"))

    def check_plain(self) -> None:
        """Raises ConfigurationError unless the vector is one network's output, pooled in a way known here."""
        strange = [kind for kind, _ in self.modules if kind not in _PLAIN_MODULES]
        if strange or self.pooling not in ("mean", "cls"):
            raise ConfigurationError(
                f"The model in {self.path} ends in a step that Cortex does not know: {(strange or [self.pooling])[0]}.",
                remedy="Use it through the sentence_transformers backend.",
                field="embedding_model",
            )

    @cached_property
    def tokeniser_file(self) -> Path:
        """The tokeniser's file; it depends on the folder only, not on installed packages."""
        full, words = self.path / "tokenizer.json", self.path / "vocab.txt"
        if words.is_file() and (self._is_uncased_bert() or not full.is_file()):
            return words
        if not full.is_file():
            raise ConfigurationError(
                f"The folder {self.path} holds neither tokenizer.json nor vocab.txt.",
                remedy="Copy the tokeniser's files beside the model.",
                field="embedding_model",
            )
        return full

    @cached_property
    def tokeniser(self) -> Tokeniser:
        path = self.tokeniser_file
        if path.name == "vocab.txt":
            try:
                pieces = read_whole(path, _MOST_DESCRIPTION).decode("utf-8", "replace").removesuffix("\n").split("\n")
                return WordPiece(pieces)
            except (OSError, KeyError, ValueError) as error:
                raise ModelCorrupt(f"{path} is not the vocabulary of a BERT model.") from error
        if not find_spec("tokenizers"):
            raise ConfigurationError(
                f"The tokeniser {path} needs the package 'tokenizers'.",
                remedy=extra_remedy("onnx-folder"),
                field="embedding_model",
            )
        return _FileTokeniser(path, self.max_tokens)

    def _is_uncased_bert(self) -> bool:
        """Whether the built-in tokeniser gives the ids of tokenizer.json."""
        settings = self._json("tokenizer_config.json")
        return (
            str(settings.get("tokenizer_class")).startswith("BertTokenizer")
            and settings.get("do_lower_case") is True
            and settings.get("strip_accents") is not False
            and settings.get("tokenize_chinese_chars") is not False
        )

    def _json(self, name: str) -> Mapping[str, Any]:
        """The content of a file, empty if there is none; a list comes as the value of `list`."""
        path = self.path / name
        try:
            content = json.loads(read_whole(path, _MOST_DESCRIPTION))
        except (FileNotFoundError, NotADirectoryError):
            return {}
        except (OSError, ValueError) as error:
            raise ModelCorrupt(f"The model file {path} cannot be read: {error}.") from error
        if isinstance(content, dict):
            return content
        entries = content if isinstance(content, list) else []
        return {"list": [entry for entry in entries if isinstance(entry, dict) and {"type", "path"} <= set(entry)]}


class _FileTokeniser:
    """What tokenizer.json describes. Truncation is set once: setting it between threads is not safe."""

    def __init__(self, path: Path, limit: int) -> None:
        from tokenizers import Tokenizer

        try:
            data = read_whole(path, _MOST_DESCRIPTION)
            self._whole, self._cut = Tokenizer.from_buffer(data), Tokenizer.from_buffer(data)
        except Exception as error:  # the package raises no narrower class
            raise ModelCorrupt(f"The tokeniser {path} cannot be read: {error}") from error
        # Many published files fix short lengths and padding.
        for tokeniser in (self._whole, self._cut):
            tokeniser.no_padding()
            tokeniser.no_truncation()
        self._cut.enable_truncation(limit)

    def encode(self, text: str, limit: int) -> list[int]:
        ids: list[int] = self._cut.encode(drop_surrogates(text)).ids
        return ids[:limit]

    def count(self, text: str) -> int:
        return len(self._whole.encode(drop_surrogates(text)).ids)


def _hub_caches() -> list[Path]:
    """Where downloads from the hub are kept, by its own variables."""
    variables = os.environ
    home = Path(variables.get("XDG_CACHE_HOME") or "~/.cache") / "huggingface"
    chosen = (
        variables.get("SENTENCE_TRANSFORMERS_HOME"),
        variables.get("HF_HUB_CACHE"),
        Path(variables.get("HF_HOME") or home) / "hub",
    )
    return [expanded(folder) for folder in chosen if folder]


def _whole(value: object) -> int:
    return int(value) if isinstance(value, int | float) and value > 0 else 0


def _opened(path: Path) -> io.BufferedReader:
    try:
        return open_regular(path)
    except OSError as error:
        raise ModelMissing(f"The model file {path} cannot be read: {error.strerror}.") from error


def _stamp(path: Path) -> tuple[int, int]:
    try:
        found = path.stat()
    except OSError as error:
        raise ModelMissing(f"The model file {path} cannot be read: {error.strerror}.") from error
    return found.st_size, found.st_mtime_ns
