"""The encoder in PyTorch, and the two sets of weights that training can start from.

BERT's layers, written out so that nothing but torch is needed and both bases fit. The word table is never trained: it
travels and ships as 8-bit integers, so training sees exactly the table that the shipped model has.
"""

from __future__ import annotations

import io
import json
import struct
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

WIDTH, HEADS, LAYERS, INNER = 384, 12, 6, 1536
MINILM, GRANITE = "minilm.npz", "granite.whl"


@dataclass(frozen=True, slots=True)
class Base:
    """Weights by the names of BERT's parameters, and how texts become token ids."""

    name: str
    tensors: dict[str, np.ndarray[Any, Any]]
    tokenizer: Any
    pad: int
    first_position: int
    pooling: str

    def encode(self, texts: Sequence[str], most: int) -> list[list[int]]:
        self.tokenizer.enable_truncation(most)
        self.tokenizer.no_padding()
        return [found.ids for found in self.tokenizer.encode_batch(list(texts))]


def read_base(name: str, folder: Path) -> Base:
    return {"minilm": _minilm, "granite": _granite}[name](folder)


def _minilm(folder: Path) -> Base:
    from tokenizers import BertWordPieceTokenizer

    with np.load(folder / MINILM) as kept:
        tensors = {name: kept[name].astype(np.float32) for name in kept.files if name not in ("table", "vocabulary")}
        words = bytes(kept["vocabulary"]).decode().removesuffix("\n").split("\n")
        tensors["embeddings.word_embeddings.weight"] = kept["table"].astype(np.float32) * tensors.pop("table_scales")
    vocabulary = {word: n for n, word in enumerate(words)}
    return Base("minilm", tensors, BertWordPieceTokenizer(vocabulary, lowercase=True), 0, 0, "mean")


def _granite(folder: Path) -> Base:
    """Reads the package that carries granite-embedding-30m-english: integers with a scale for each group of 64."""
    from tokenizers import Tokenizer

    with zipfile.ZipFile(folder / GRANITE) as wheel:
        pack = next(n for n in wheel.namelist() if n.endswith(".hmsemb"))
        content = wheel.read(pack)
    size = struct.unpack_from("<Q", content, 8)[0]
    header = json.loads(content[16 : 16 + size])
    place = 16 + size + header["tokenizer_len"]
    tokenizer = Tokenizer.from_str(content[16 + size : place].decode())
    tensors: dict[str, np.ndarray[Any, Any]] = {}
    for entry in header["tensors"]:
        raw = content[place : place + entry["len"]]
        place += entry["len"]
        count = int(np.prod(entry["shape"]))
        if entry["dtype"] == "i8":
            integers = np.frombuffer(raw[:count], np.int8).astype(np.float32).reshape(-1, entry["group"])
            values = integers * np.frombuffer(raw[count:], "<f4")[:, None]
        else:
            values = np.frombuffer(raw, "<f4").copy()
        tensors.update(_bert_names(entry["name"], values.reshape(entry["shape"])))
    return Base("granite", tensors, tokenizer, 1, header["arch"]["position_offset"], "first")


def _bert_names(name: str, values: np.ndarray[Any, Any]) -> dict[str, np.ndarray[Any, Any]]:
    simple = {
        "word_emb": "embeddings.word_embeddings.weight",
        "pos_emb": "embeddings.position_embeddings.weight",
        "type_emb": "embeddings.token_type_embeddings.weight",
        "emb_ln.w": "embeddings.LayerNorm.weight",
        "emb_ln.b": "embeddings.LayerNorm.bias",
    }
    if name in simple:
        return {simple[name]: values}
    layer, part, kind = name.split(".")
    prefix, end = f"encoder.layer.{layer[1:]}", {"w": "weight", "b": "bias"}[kind]
    if part == "qkv":
        thirds = np.split(values, 3)
        return {
            f"{prefix}.attention.self.{role}.{end}": third
            for role, third in zip(("query", "key", "value"), thirds, strict=True)
        }
    full = {
        "ao": "attention.output.dense",
        "aln": "attention.output.LayerNorm",
        "f1": "intermediate.dense",
        "f2": "output.dense",
        "fln": "output.LayerNorm",
    }[part]
    return {f"{prefix}.{full}.{end}": values}


class Layer(nn.Module):
    def __init__(self, dropout: float) -> None:
        super().__init__()
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.attended = nn.Linear(WIDTH, WIDTH)
        self.norm = nn.LayerNorm(WIDTH, eps=1e-12)
        self.inner = nn.Linear(WIDTH, INNER)
        self.outer = nn.Linear(INNER, WIDTH)
        self.last_norm = nn.LayerNorm(WIDTH, eps=1e-12)
        self.dropout = dropout

    def forward(self, hidden: Tensor, mask: Tensor) -> Tensor:
        texts, tokens, _ = hidden.shape
        parts = self.qkv(hidden).view(texts, tokens, 3, HEADS, WIDTH // HEADS).permute(2, 0, 3, 1, 4)
        seen = F.scaled_dot_product_attention(parts[0], parts[1], parts[2], attn_mask=mask)
        seen = self.attended(seen.transpose(1, 2).reshape(texts, tokens, WIDTH))
        hidden = self.norm(hidden + F.dropout(seen, self.dropout, self.training))
        grown = self.outer(F.gelu(self.inner(hidden)))
        return self.last_norm(hidden + F.dropout(grown, self.dropout, self.training))  # type: ignore[no-any-return]


class Encoder(nn.Module):
    """Token ids in, one vector of length 1 per text out."""

    def __init__(self, base: Base, dropout: float = 0.0) -> None:
        super().__init__()
        self.pad, self.first_position, self.pooling = base.pad, base.first_position, base.pooling
        table = torch.from_numpy(base.tensors["embeddings.word_embeddings.weight"])
        self.words = nn.Embedding.from_pretrained(table, freeze=True)
        positions = base.tensors["embeddings.position_embeddings.weight"]
        # There is one segment only, so its vector is part of the position's.
        segment = base.tensors["embeddings.token_type_embeddings.weight"][0]
        self.positions = nn.Parameter(torch.from_numpy(positions + segment)[self.first_position :][:256].clone())
        self.norm = nn.LayerNorm(WIDTH, eps=1e-12)
        self.layers = nn.ModuleList([Layer(dropout) for _ in range(LAYERS)])
        self.dropout = dropout
        self._load(base)

    def _load(self, base: Base) -> None:
        own = self.state_dict()
        with torch.no_grad():
            for name, source in self._sources().items():
                values = [base.tensors[f"{prefix}.{name.rpartition('.')[2]}"] for prefix in source]
                own[name].copy_(torch.from_numpy(np.concatenate(values)))

    def _sources(self) -> dict[str, list[str]]:
        """The trained parameters and the names that BERT has for them."""
        found = {f"norm.{end}": ["embeddings.LayerNorm"] for end in ("weight", "bias")}
        for n in range(LAYERS):
            prefix = f"encoder.layer.{n}"
            names = {
                "qkv": [f"{prefix}.attention.self.{role}" for role in ("query", "key", "value")],
                "attended": [f"{prefix}.attention.output.dense"],
                "norm": [f"{prefix}.attention.output.LayerNorm"],
                "inner": [f"{prefix}.intermediate.dense"],
                "outer": [f"{prefix}.output.dense"],
                "last_norm": [f"{prefix}.output.LayerNorm"],
            }
            for own, source in names.items():
                found |= {f"layers.{n}.{own}.{end}": source for end in ("weight", "bias")}
        return found

    def forward(self, ids: Tensor) -> Tensor:
        present = ids != self.pad
        hidden = self.words(ids) + self.positions[: ids.shape[1]]
        hidden = F.dropout(self.norm(hidden), self.dropout, self.training)
        mask = present[:, None, None, :]
        for layer in self.layers:
            hidden = layer(hidden, mask)
        if self.pooling == "first":
            return F.normalize(hidden[:, 0].float(), dim=-1)
        weights = present.unsqueeze(-1).float()
        return F.normalize((hidden.float() * weights).sum(1) / weights.sum(1), dim=-1)

    def trained(self) -> dict[str, np.ndarray[Any, Any]]:
        """What training changed, by BERT's names, in 16 bits."""
        own = self.state_dict()
        found = {"embeddings.position_embeddings.weight": self.positions.detach()}
        for name, source in self._sources().items():
            for prefix, part in zip(source, own[name].chunk(len(source)), strict=True):
                found[f"{prefix}.{name.rpartition('.')[2]}"] = part
        return {name: value.detach().float().cpu().numpy().astype(np.float16) for name, value in found.items()}


def save_parts(tensors: dict[str, np.ndarray[Any, Any]], stem: Path, most: int = 15 << 20) -> list[Path]:
    """Write the tensors as files of limited size; `read_parts` puts them together again."""
    content = io.BytesIO()
    np.savez(content, **tensors)
    data = content.getvalue()
    paths = []
    for n, first in enumerate(range(0, len(data), most)):
        path = stem.with_name(f"{stem.name}.part{n}")
        path.write_bytes(data[first : first + most])
        paths.append(path)
    return paths


def read_parts(stem: Path) -> dict[str, np.ndarray[Any, Any]]:
    parts = sorted(stem.parent.glob(f"{stem.name}.part*"))
    with np.load(io.BytesIO(b"".join(path.read_bytes() for path in parts))) as kept:
        return {name: kept[name] for name in kept.files}
