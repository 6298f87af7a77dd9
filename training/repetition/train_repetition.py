"""Make `repetition.json`: the weights by which a repeated word of a text is taken for a name.

    python training/repetition/train_repetition.py [--check]

Learned from the descriptions of installed packages: each as it stands, once more without title, addresses and code,
and in excerpts as long as a note. A package's own name is a name; a repeated word that is no name of a package,
no listed name and not surely tagged is none. The projects that `bench/own_names.py` reports on are left out. `--check`
fits nothing and shows the words that the shipped weights take for names.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.metadata
import json
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cortex_py.parts.graph.reading.repetition import FEATURES, WEIGHTS_FILE, Candidate, candidates, learned_names
from cortex_py.parts.graph.reading.shapes import listed_names
from cortex_py.parts.graph.reading.tagger import load_tagger
from cortex_py.parts.graph.reading.tokens import MAX_CHARACTERS, code_spans, sentences

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "training"))

from logistic import minimise
from own_names import HELD_OUT, description

FOLDS = 5
EXCERPT = 700
PENALTY = 2.0
LEAST_PRECISION = 0.65  # of the left-out words taken for names, by these labels, which miss names of other things
SURELY_TAGGED = 0.5
_ADDRESS = re.compile(r"(?:https?://|www\.)\S+")


@dataclass(frozen=True, slots=True)
class Labelled:
    project: str
    candidate: Candidate
    is_name: bool


def projects() -> list[tuple[str, str]]:
    """The installed packages that are described, without those that are kept for the report."""
    found = {}
    for one in importlib.metadata.distributions():
        name = one.metadata["Name"]
        if name.lower() not in HELD_OUT and name.lower() != "cortex-py":
            found[name] = description(name)
    return sorted((name, text) for name, text in found.items() if len(text) > 500)


def bare(text: str) -> str:
    """The text as somebody would write it in a note: without title, addresses and code."""
    for first, last in reversed(code_spans(text)):
        text = text[:first] + text[last:]
    return "\n".join(_ADDRESS.sub("", text).splitlines()[3:])


def forms(text: str) -> list[str]:
    plain = bare(text)[:MAX_CHARACTERS]
    return [text, plain, *(plain[at : at + EXCERPT] for at in range(0, len(plain), EXCERPT))]


def labelled(name: str, text: str, names: frozenset[str]) -> Iterator[Labelled]:
    tagger = load_tagger()
    parts = list(sentences(text))
    likely = [tagger.by_type(one) for one in tagger.likelihoods([[token.text for token in part] for part in parts])]
    for one in candidates(text[:MAX_CHARACTERS], parts, likely, tagger.model.tables.rows):
        own = one.key == name.lower().replace("_", "-") or one.key == name.lower()
        mean = one.values[FEATURES.index("mean")]
        if own or (one.key not in names and mean < SURELY_TAGGED):
            yield Labelled(name, one, own)


def fit(rows: NDArray[np.float64], wanted: NDArray[np.float64]) -> NDArray[np.float64]:
    columns = np.hstack([rows, np.ones((len(rows), 1))])
    held = np.append(np.full(rows.shape[1], PENALTY), 0.0)

    def loss(weights: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        value = columns @ weights
        cost = np.logaddexp(0, value).sum() - value @ wanted + (held * weights**2).sum() / 2
        return float(cost), columns.T @ (1 / (1 + np.exp(-value)) - wanted) + held * weights

    return minimise(loss, np.zeros(columns.shape[1]))


def threshold(sure: NDArray[np.float64], wanted: NDArray[np.float64]) -> tuple[float, float, float]:
    """The lowest bar at which enough of the words above it are names, with the precision and the recall there."""
    order = np.argsort(-sure)
    right = np.cumsum(wanted[order])
    precision = right / np.arange(1, len(order) + 1)
    last = int(np.flatnonzero(precision >= LEAST_PRECISION).max())
    return float(sure[order][last]), float(precision[last]), float(right[last] / wanted.sum())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--check", action="store_true", help="show what the shipped weights take for names")
    described = projects()
    if parser.parse_args().check:
        show(described)
        return 0
    listed = {name.lower() for kind, names in listed_names().items() if kind != "about" for name in names}
    names = frozenset(listed | {one.metadata["Name"].lower() for one in importlib.metadata.distributions()})
    found = [row for name, text in described for form in forms(text) for row in labelled(name, form, names)]
    rows = np.array([row.candidate.values for row in found])
    wanted = np.array([row.is_name for row in found], np.float64)
    # By project, so that one left out is left out whole.
    fold = np.array([int(hashlib.sha256(row.project.encode()).hexdigest(), 16) % FOLDS for row in found])
    sure = np.empty(len(rows))
    for number in range(FOLDS):
        weights = fit(rows[fold != number], wanted[fold != number])
        sure[fold == number] = 1 / (1 + np.exp(-(rows[fold == number] @ weights[:-1] + weights[-1])))
    least, precision, recall = threshold(sure, wanted)
    weights = fit(rows, wanted)
    table = {
        "about": "Weights of repeated words. Made by train_repetition.py; read by graph.reading.repetition.",
        "projects": len(described),
        "words": len(rows),
        "left_out_precision_recall": [round(precision, 3), round(recall, 3)],
        "least": round(least, 4),
        "offset": round(float(weights[-1]), 4),
        "weights": {name: round(float(weight), 4) for name, weight in zip(FEATURES, weights, strict=False)},
    }
    WEIGHTS_FILE.write_text(json.dumps(table, indent=1) + "\n", "utf-8")
    print(json.dumps(table, indent=1))
    return 0


def show(described: list[tuple[str, str]]) -> None:
    tagger = load_tagger()
    for name, text in described:
        parts = list(sentences(text))
        likely = [tagger.by_type(one) for one in tagger.likelihoods([[token.text for token in part] for part in parts])]
        taken = learned_names(text[:MAX_CHARACTERS], parts, likely, tagger.model.tables.rows)
        words = {" ".join(token.text for token in parts[n][a:b]) for one in taken for n, a, b in one.places}
        print(f"{name}: {', '.join(sorted(words))}")


if __name__ == "__main__":
    sys.exit(main())
