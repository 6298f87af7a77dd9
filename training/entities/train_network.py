"""Make `network.npz`: the convolutional network that reads names beside the tagger's chain.

    python training/entities/train_network.py train FOLD|all FILE
    python training/entities/train_network.py join FILE CHAIN:FILE...

`train` needs PyTorch, which the project itself does not use. It learns from `software_ner_train.jsonl.gz` alone,
without one fold of `train_entities.py` or with everything, and writes the weights. `join` reads networks and
chains that were trained without the same fold, finds on those left-out sentences how much the network should count,
how eager the two together are best and how sure their names are, and writes the network of the package. On one thread
a run is deterministic.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cortex_py.parts.graph.reading.network import (
    FLAGS,
    LETTERS_MOST,
    NETWORK_FILE,
    PIECES_MOST,
    gazetteer_bits,
    letters_of,
    unpack_network,
    word_flags,
)
from cortex_py.parts.graph.reading.shapes import Gazetteer, listed_names
from cortex_py.parts.graph.reading.tagger import MODEL_FILE, Features, Tables, Tagger, unpack_model

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))

from train_entities import PLACEHOLDERS, Sentence, f1, fold_of, label_of, sentences, truth, vocabulary

WIDTH, PIECE, LETTER, LETTERS = 96, 32, 16, 48
DISTANCES = (1, 2, 1)
STEPS, BATCH, RATE = 1_600, 40, 3e-3
SHARES = (0.0, 0.2, 0.3, 0.4)
EAGERNESS = (1.0, 0.85, 0.7, 0.55, 0.4)
EQUAL = 0.001
_LISTED = 32


class Inputs:
    """Words as the network sees them, as rows of arrays."""

    def __init__(self, rows: Sequence[Sentence], tables: Tables) -> None:
        self.labels = sorted({label_of(tag) for row in rows for tag in row.tags})
        number = {label: place for place, label in enumerate(self.labels)}
        words = {word: place for place, word in enumerate(dict.fromkeys(w for row in rows for w in row.words))}
        features = Features(tables, Gazetteer(listed_names()))
        self.pieces = np.zeros((len(words), PIECES_MOST), np.int64)
        self.letters = np.zeros((len(words), LETTERS_MOST), np.int64)
        self.flags = np.zeros((len(words), FLAGS), np.float32)
        for word, place in words.items():
            low = word.lower()
            # Row 0 is for no piece.
            found = [piece + 1 for piece in features.pieces(low)[:PIECES_MOST]]
            self.pieces[place, : len(found)] = found
            spelled = letters_of(word)
            self.letters[place, : len(spelled)] = spelled
            self.flags[place] = word_flags(word, low in tables.languages, low in tables.modules)
        self.words = [[words[word] for word in row.words] for row in rows]
        self.tags = [[number[label_of(tag)] for tag in row.tags] for row in rows]
        self.listed = [self._listed(features, row.words) for row in rows]

    @staticmethod
    def _listed(features: Features, words: Sequence[str]) -> NDArray[np.float32]:
        found = np.zeros((len(words), _LISTED), np.float32)
        for first, last, kinds in features.gazetteer.matches(words, [word.lower() for word in words]):
            for place in range(first, last):
                found[place, gazetteer_bits(kinds, place == first)] = 1
        return found


def train(left_out: int | None, file: Path) -> None:
    import torch
    from torch import nn
    from torch.nn import functional

    torch.manual_seed(0)
    torch.set_num_threads(1)
    rows = sentences()
    inputs = Inputs(rows, unpack_model(MODEL_FILE.read_bytes()).tables)
    entering = vocabulary(lambda words: np.zeros((len(words), 1), np.float32)).entering
    start = entering @ np.linalg.svd(entering[::4], full_matrices=False)[2][:PIECE].T
    pieces, letters, flags = (torch.tensor(part) for part in (inputs.pieces, inputs.letters, inputs.flags))

    class Net(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.pieces = nn.Embedding(len(start) + 1, PIECE, padding_idx=0)
            self.pieces.weight.data[1:] = torch.tensor(start / start.std() / 2)
            self.letters = nn.Embedding(129, LETTER, padding_idx=0)
            self.by_letters = nn.Conv1d(LETTER, LETTERS, 3, padding=1)
            self.word = nn.Linear(2 * PIECE + LETTERS + FLAGS + _LISTED, WIDTH)
            self.layers = nn.ModuleList(nn.Conv1d(WIDTH, WIDTH, 3, padding=d, dilation=d) for d in DISTANCES)
            self.label = nn.Linear(WIDTH, len(inputs.labels))
            self.on_words, self.on_state = nn.Dropout(0.3), nn.Dropout(0.2)

        def forward(self, words: Any, listed: Any, mask: Any) -> Any:
            own = pieces[words]
            vectors = self.pieces(own)
            mean = vectors.sum(2) / (own > 0).sum(-1, keepdim=True).clamp(min=1)
            flat = self.letters(letters[words]).flatten(0, 1).transpose(1, 2)
            spelled = functional.relu(self.by_letters(flat)).amax(-1).view(*words.shape, LETTERS)
            seen = torch.cat([mean, vectors[:, :, 0], spelled, flags[words], listed], -1)
            state = functional.relu(self.word(self.on_words(seen))) * mask
            for layer in self.layers:
                moved = functional.relu(layer(self.on_state(state).transpose(1, 2))).transpose(1, 2)
                state = state + moved * mask
            return self.label(self.on_state(state))

    def batch(numbers: Sequence[int]) -> tuple[Any, Any, Any, Any]:
        longest = max(len(inputs.words[n]) for n in numbers)
        words = np.zeros((len(numbers), longest), np.int64)
        tags = np.full((len(numbers), longest), -1, np.int64)
        listed = np.zeros((len(numbers), longest, _LISTED), np.float32)
        for place, n in enumerate(numbers):
            size = len(inputs.words[n])
            words[place, :size], tags[place, :size], listed[place, :size] = (
                inputs.words[n],
                inputs.tags[n],
                inputs.listed[n],
            )
        mask = (tags >= 0)[:, :, None].astype(np.float32)
        return tuple(torch.tensor(part) for part in (words, listed, mask, tags))

    kept = [
        n for n, row in enumerate(rows) if fold_of(n) != left_out and (row.words[0] not in PLACEHOLDERS or n % 7 == 0)
    ]
    net = Net()
    net.train()
    best = torch.optim.AdamW(net.parameters(), lr=RATE, weight_decay=0.01)
    rates = torch.optim.lr_scheduler.OneCycleLR(best, RATE, total_steps=STEPS + 1)
    chance = random.Random(0)
    step = 0
    while step < STEPS:
        order = sorted(kept, key=lambda n: len(inputs.words[n]) + chance.random() * 3)
        parts = [order[at : at + BATCH] for at in range(0, len(order), BATCH)]
        chance.shuffle(parts)
        for part in parts[: STEPS - step]:
            words, listed, mask, tags = batch(part)
            given = net(words, listed, mask)
            loss = functional.cross_entropy(given.flatten(0, 1), tags.flatten(), ignore_index=-1)
            best.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            best.step()
            rates.step()
            step += 1
            if step % 200 == 0:
                print(step, round(loss.item(), 4), file=sys.stderr, flush=True)
    write(file, {name: value.numpy() for name, value in net.state_dict().items()}, inputs.labels)


def write(file: Path, state: dict[str, NDArray[np.float32]], labels: Sequence[str]) -> None:
    """Write the weights in the package's form: the table of pieces as bytes, all else in half precision."""
    table = state["pieces.weight"][1:]
    scale = np.abs(table).max(axis=0) / 127
    parts: dict[str, NDArray[Any]] = {
        "pieces": np.round(table / scale).astype(np.int8),
        "piece_scale": scale.astype(np.float32),
        "letters": state["letters.weight"],
        "letter_weights": _stacked(state["by_letters.weight"]),
        "letter_offsets": state["by_letters.bias"],
        "word_weights": state["word.weight"].T[:-_LISTED],
        "word_offsets": state["word.bias"],
        "listed_weights": state["word.weight"].T[-_LISTED:],
        "label_weights": state["label.weight"].T,
        "label_offsets": state["label.bias"],
    }
    for number in range(len(DISTANCES)):
        parts[f"layer_{number}_weights"] = _stacked(state[f"layers.{number}.weight"])
        parts[f"layer_{number}_offsets"] = state[f"layers.{number}.bias"]
    halves = {name: part.astype(np.float16) if part.dtype == np.float32 else part for name, part in parts.items()}
    save(file, halves, {"labels": labels, "distances": DISTANCES})


def save(file: Path, parts: dict[str, NDArray[Any]], about: dict[str, object]) -> None:
    whole = {"share": 0.0, "eagerness": 1.0, "calibration": [[0, 0], [1, 1]], "provenance": {}} | about
    with file.open("wb") as out:
        np.savez_compressed(out, **parts, about=np.frombuffer(json.dumps(whole).encode(), np.uint8))  # type: ignore[arg-type]


def _stacked(weights: NDArray[np.float32]) -> NDArray[np.float32]:
    """The weights of a convolution for three neighbours side by side."""
    return weights.transpose(2, 1, 0).reshape(-1, weights.shape[0])


def join(file: Path, pairs: Sequence[tuple[Path, Path]]) -> None:
    """Choose the share, the eagerness and the calibration on sentences that neither part has learned from."""
    rows = sentences()
    folds = [(int(network.stem[-1]), chain, network) for chain, network in pairs]
    asked = [[row for n, row in enumerate(rows) if fold_of(n) == fold] for fold, _, _ in folds]
    table = []
    for share in SHARES:
        taggers = [
            Tagger(unpack_model(chain.read_bytes()), network=replace(unpack_network(network), share=share))
            for _, chain, network in folds
        ]
        likely = [tagger.likelihoods([row.words for row in part]) for tagger, part in zip(taggers, asked, strict=True)]
        for eagerness in EAGERNESS:
            found = []
            for tagger, part in zip(taggers, likely, strict=True):
                tagger.eagerness = eagerness
                found += [tagger.read(row) for row in part]
            table.append((f1(found, [row for part in asked for row in part]), share, eagerness, found))
            print(share, eagerness, [round(score, 4) for score in table[-1][0]], file=sys.stderr, flush=True)
    # Of settings that are equally good, the most eager: callers drop unsure names by their confidence.
    top = max(row[0][2] for row in table)
    scores, share, eagerness, found = max((row for row in table if row[0][2] > top - EQUAL), key=lambda row: row[0][1])
    chain = max(row[0][2] for row in table if row[1] == 0.0)
    points = calibrated(found, [row for part in asked for row in part])
    with np.load(file) as whole:
        parts = {name: whole[name] for name in whole.files if name != "about"}
        about = json.loads(bytes(whole["about"]).decode())
    about |= {
        "share": share,
        "eagerness": eagerness,
        "calibration": points,
        "provenance": {
            "folds": [fold for fold, _, _ in folds],
            "left_out_precision_recall_f1": [round(score, 4) for score in scores],
            "chain_alone_f1": round(chain, 4),
        },
    }
    save(NETWORK_FILE, parts, about)
    print(json.dumps(about["provenance"]), share, eagerness, NETWORK_FILE.stat().st_size)


def calibrated(found: Sequence[Sequence[Any]], asked: Sequence[Sentence]) -> list[tuple[float, float]]:
    """How often names of a likelihood are right, for twelve likelihoods."""
    pairs = sorted(
        (name.likelihood, (name.first, name.last, name.type) in truth(sentence.tags))
        for names, sentence in zip(found, asked, strict=True)
        for name in names
    )
    points: list[tuple[float, float]] = []
    for group in np.array_split(np.array(pairs, np.float64), 12):
        share = max(float(group[:, 1].mean()), points[-1][1] if points else 0.0)
        points.append((round(float(group[:, 0].mean()), 3), round(share, 3)))
    return points


def main(given: Sequence[str]) -> int:
    if len(given) == 3 and given[0] == "train":
        train(None if given[1] == "all" else int(given[1]), Path(given[2]))
        return 0
    if len(given) > 2 and given[0] == "join":
        join(Path(given[1]), [(Path(a), Path(b)) for a, _, b in (pair.partition(":") for pair in given[2:])])
        return 0
    print(__doc__)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
