"""A small convolutional network that reads names beside the tagger's linear chain; the two together beat each alone.

The chain knows the words of its training; the network knows words by their pieces and letters, and sees three words to
each side at once. `train_network.py` trains it with PyTorch; here numpy applies it. What depends on a word alone
is computed once and cached by the tagger.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ....core.jobs import load_once

__all__ = [
    "FLAGS", "NETWORK_FILE", "PIECES_MOST", "Network", "gazetteer_bits", "letters_of", "load_network", "word_flags",
]  # fmt: skip

NETWORK_FILE = Path(__file__).with_name("network.bin")
PIECES_MOST = 6
LETTERS_MOST = 20
FLAGS = 12
_KINDS = ("library", "application", "language", "system", "device", "website", "organization", "given")

Floats = NDArray[np.float32]


def letters_of(word: str) -> list[int]:
    """The letters of a word by number; of a long word both ends."""
    kept = word if len(word) <= LETTERS_MOST else word[: LETTERS_MOST // 2] + word[-LETTERS_MOST // 2 :]
    return [min(ord(letter), 127) + 1 for letter in kept]


def word_flags(word: str, is_language: bool, is_module: bool) -> list[bool]:
    """What the spelling of a word says."""
    return [
        is_language, is_module, word.isupper(), word[:1].isupper(), word[1:] != word[1:].lower(), "." in word[1:-1],
        any(letter.isdigit() for letter in word), "_" in word, "(" in word, "/" in word, "-" in word, word.isalpha(),
    ]  # fmt: skip


def gazetteer_bits(listed: Sequence[tuple[str, bool]], is_first: bool) -> list[int]:
    """The inputs that the kinds of a listed name set: four for each kind, by spelling and place."""
    return [4 * _KINDS.index(kind) + (0 if exact else 2) + (0 if is_first else 1) for kind, exact in listed]


@dataclass(frozen=True, slots=True)
class Network:
    """The trained network."""

    labels: tuple[str, ...]
    pieces: Floats
    letters: Floats
    letter_weights: Floats  # for three neighbouring letters
    letter_offsets: Floats
    word_weights: Floats  # for the mean of the pieces, the first piece, the letters and the flags
    word_offsets: Floats
    listed_weights: Floats
    layers: tuple[tuple[int, Floats, Floats], ...]  # the distance of the neighbours, weights of the three, offsets
    label_weights: Floats
    label_offsets: Floats
    share: float  # of the network in the likelihoods
    eagerness: float  # the factor that makes "no name" less likely
    calibration: tuple[tuple[float, float], ...]  # likelihoods, and the precision of names found with each
    provenance: Mapping[str, object]

    def of_word(self, word: str, pieces: Sequence[int], flags: Sequence[bool]) -> Floats:
        """What a word alone contributes to the first layer."""
        rows = self.pieces[list(pieces[:PIECES_MOST])] if pieces else self.pieces[:1] * 0
        spelled = np.zeros((LETTERS_MOST + 2, self.letters.shape[1]), np.float32)
        numbers = letters_of(word)
        spelled[1 : 1 + len(numbers)] = self.letters[numbers]
        windows = np.hstack([spelled[:-2], spelled[1:-1], spelled[2:]])
        by_letters = np.maximum(windows @ self.letter_weights + self.letter_offsets, 0).max(axis=0)
        inputs = np.concatenate([rows.mean(axis=0), rows[0], by_letters, np.array(flags, np.float32)])
        found: Floats = inputs @ self.word_weights + self.word_offsets
        return found

    def log_likelihoods(self, words: Floats, bits: Sequence[tuple[int, int]], filled: NDArray[np.bool_]) -> Floats:
        """The logarithm of each label's likelihood for rows of words, with empty rows between sentences.

        `bits` are pairs of a row and an input that a listed name sets; `filled` says which rows have a word.
        """
        state = words.copy()
        if bits:
            at = np.array(bits)
            np.add.at(state, at[:, 0], self.listed_weights[at[:, 1]])
        mask = filled[:, None]
        state = np.maximum(state, 0) * mask
        for distance, weights, offsets in self.layers:
            around = np.zeros((len(state) + 2 * distance, state.shape[1]), np.float32)
            around[distance:-distance] = state
            joined = np.hstack([around[: -2 * distance], state, around[2 * distance :]])
            state = state + np.maximum(joined @ weights + offsets, 0) * mask
        values = state @ self.label_weights + self.label_offsets
        values -= values.max(axis=1, keepdims=True)
        found: Floats = values - np.log(np.exp(values).sum(axis=1, keepdims=True))
        return found


def unpack_network(path: Path) -> Network:
    with np.load(path) as file:
        about = json.loads(bytes(file["about"]).decode())
        parts = {name: file[name].astype(np.float32) for name in file.files if name != "about"}
    return Network(
        tuple(about["labels"]),
        parts["pieces"] * parts["piece_scale"],
        parts["letters"],
        parts["letter_weights"],
        parts["letter_offsets"],
        parts["word_weights"],
        parts["word_offsets"],
        parts["listed_weights"],
        tuple(
            (distance, parts[f"layer_{number}_weights"], parts[f"layer_{number}_offsets"])
            for number, distance in enumerate(about["distances"])
        ),
        parts["label_weights"],
        parts["label_offsets"],
        about["share"],
        about["eagerness"],
        tuple((known, right) for known, right in about["calibration"]),
        about["provenance"],
    )


@load_once
def load_network() -> Network:
    """The network of the package, loaded when first needed."""
    return unpack_network(NETWORK_FILE)
