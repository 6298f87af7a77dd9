"""How well notes are classified: by cross-validation over the training notes, and on a set kept apart.

    python bench/ontology.py [--repeats N]

Everything that is learned, and every setting that is chosen, comes from the training part of a fold; notes that are
alike stay in one fold. What is scored are the answers of the real classifier, with its floors.

The listed words of the cues are fixed, and were written with the notes of the first file in view, by and by also
while looking at the errors made on them. On those notes cross-validation flatters: the words were chosen with the
answers known. Hence three figures:

- `later`: the notes written after the list was closed, which no listed word was chosen by. This is the headline; the
  two batches in which they were written are told apart as well.
- `no listed words`: all notes, by vector, shapes and the table of words alone; nothing in it is known beforehand.
- `all notes`: with the listed words; a listed word counts for a note of the first file only if the training part
  has it too, which takes away part of the flattery and not all.

The check set was labelled before any classifier had read it and is scored with the shipped model. It has been looked
at twice, see `docs/reference/ontology.md`; nothing may be tuned by it.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from cortex_py.core.embedding.backends.backend import Backend
from cortex_py.core.embedding.backends.registry import open_backend
from cortex_py.core.memory.labels.classifier import (
    BY_CATEGORY,
    BY_SUBCATEGORY,
    CATEGORY_FLOOR,
    FILING_FLOOR,
    Classification,
    Classifier,
    Lexicon,
    default_lexicon,
    default_model,
    namespace_for,
)
from cortex_py.core.memory.labels.ontology import CATEGORY_NAMES, FALLBACK
from cortex_py.core.store.search.vectors import single_threaded

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "training"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "training" / "ontology"))

from train_ontology import (
    CHECK_FILE,
    FIRST_LATER,
    LATER_FILE,
    SETTINGS,
    Notes,
    choose,
    descriptions,
    digest,
    folds,
    read,
    train,
    training_set,
)

import report

FOLDS = 5
WANTED = 0.75
BINS = (0.0, 0.25, 0.4, 0.55, 0.7, 0.85, 0.95, 1.0)
WORST_PAIRS = 10
FINGERPRINT = "cross-validation"


@dataclass(frozen=True, slots=True)
class Scored:
    """One note, answered by a classifier that never saw it."""

    text: str
    category: str
    subcategory: str
    batch: int  # 0: the first file; 1: written when the listed words were closed; 2: and when figures had been seen
    repeat: int
    fold: int
    answer: Classification
    cues_alone: Classification
    unlisted: Classification  # by a model without the listed words


def cross_validate(rows: Sequence[dict[str, str]], notes: Notes, extra: Notes, repeats: int) -> list[Scored]:
    scored = []
    nothing = Lexicon(())
    first = int((~notes.later).sum())
    for repeat in range(repeats):
        fold = folds(notes, FOLDS, seed=repeat)
        for number in range(FOLDS):
            known = notes.those(fold != number)
            choice = choose(known, extra, seed=100 * repeat + number)
            model = train(known, extra, choice, default_lexicon(), FINGERPRINT)
            closed = Classifier(FINGERPRINT, model)
            guarded = Classifier(FINGERPRINT, replace(model, lexicon=(known + extra).words(1)))
            unlisted = Classifier(FINGERPRINT, train(known, extra, choice, nothing, FINGERPRINT, learn_by=nothing))
            for place in np.flatnonzero(fold == number).tolist():
                row, vector = rows[place], notes.vectors[place].astype(np.float32)
                batch = 0 if place < first else 1 if place < first + FIRST_LATER else 2
                reader = closed if batch else guarded
                answers = reader.classify(row["text"], vector), reader.classify(row["text"], None)
                bare = unlisted.classify(row["text"], vector)
                label = row["text"], row["category"], row["subcategory"]
                scored.append(Scored(*label, batch, repeat, number, *answers, bare))
            print(f"repeat {repeat + 1}, fold {number + 1}: {choice}", file=sys.stderr, flush=True)
    return scored


def f1_of(pairs: Sequence[tuple[str, str]]) -> dict[str, float]:
    """F1 by category from pairs of truth and answer."""
    truth, answers, right = (
        Counter(true for true, _ in pairs),
        Counter(given for _, given in pairs),
        Counter(true for true, given in pairs if true == given),
    )
    return {name: 2 * right[name] / max(truth[name] + answers[name], 1) for name in CATEGORY_NAMES}


def macro(pairs: Sequence[tuple[str, str]]) -> float:
    return float(np.mean(list(f1_of(pairs).values())))


def pairs_of(scored: Sequence[Scored], by: str = "answer") -> list[tuple[str, str]]:
    return [(s.category, getattr(s, by).category) for s in scored]


def figure(scored: Sequence[Scored], by: str = "answer") -> tuple[float, float]:
    """Macro-F1, the mean over repeats; and how far single folds stray from it (their standard deviation)."""
    repeats = sorted({s.repeat for s in scored})
    whole = [macro(pairs_of([s for s in scored if s.repeat == repeat], by)) for repeat in repeats]
    single = [
        macro(pairs_of([s for s in scored if (s.repeat, s.fold) == (repeat, number)], by))
        for repeat in repeats
        for number in range(FOLDS)
    ]
    return float(np.mean(whole)), float(np.std(single))


def accuracy(scored: Sequence[Scored], by: str = "answer") -> float:
    return float(np.mean([true == given for true, given in pairs_of(scored, by)]))


def filed(scored: Sequence[Scored], by: str = "answer") -> dict[str, object]:
    """How many notes are given a namespace, and how many of these the one that their label gives."""
    moved = [(s, name) for s in scored if (name := namespace_for(getattr(s, by))) is not None]
    right = [name == BY_SUBCATEGORY.get(s.subcategory, BY_CATEGORY.get(s.category)) for s, name in moved]
    single = {
        wanted: float(np.mean([ok for ok, (_, name) in zip(right, moved, strict=True) if name == wanted]))
        for wanted in sorted({name for _, name in moved})
    }
    return {"share": len(moved) / len(scored), "precision": float(np.mean(right)) if right else 0.0, "by_name": single}


def reliability(confidence: NDArray[np.float64], right: NDArray[np.bool_]) -> tuple[list[list[object]], float]:
    """A row per band of confidence, and the expected calibration error over these bands."""
    rows: list[list[object]] = []
    error = 0.0
    band = np.digitize(confidence, BINS[1:-1])
    for number in range(len(BINS) - 1):
        inside = band == number
        if inside.any():
            said, was = float(confidence[inside].mean()), float(right[inside].mean())
            error += float(inside.mean()) * abs(said - was)
            rows.append([f"{BINS[number]:.2f}-{BINS[number + 1]:.2f}", int(inside.sum()), said, was])
    return rows, error


def calibration(scored: Sequence[Scored], cues_alone: bool = False) -> tuple[list[list[object]], float]:
    answers = [s.cues_alone if cues_alone else s.answer for s in scored]
    right = [answer.category == s.category for answer, s in zip(answers, scored, strict=True)]
    return reliability(np.array([answer.confidence for answer in answers]), np.array(right))


def subcategories(scored: Sequence[Scored]) -> dict[str, float]:
    told = [s for s in scored if s.answer.subcategory is not None]
    right = sum(s.answer.subcategory == s.subcategory for s in told)
    of_right_category = [s for s in told if s.answer.category == s.category]
    return {
        "told": len(told) / len(scored),
        "right_when_told": right / len(told),
        "right_when_told_and_category_right": right / len(of_right_category),
        "right_of_all": right / len(scored),
    }


def milliseconds(rows: Sequence[dict[str, str]], notes: Notes, fingerprint: str) -> dict[str, float]:
    """Time of one answer by the shipped model, without the embedding: notes never seen, and seen before."""
    classifier = Classifier(fingerprint)
    vectors = notes.vectors.astype(np.float32)
    found = {}
    for name in ("first_time", "again"):
        started = perf_counter()
        for row, vector in zip(rows, vectors, strict=True):
            classifier.classify(row["text"], vector)
        found[name] = 1000 * (perf_counter() - started) / len(rows)
    return found


def check_set(fingerprint: str, backend: Backend) -> list[Scored]:
    """The set kept apart, answered by the shipped model."""
    rows = read(CHECK_FILE)
    vectors = np.asarray(backend.embed([row["text"] for row in rows]), np.float32)
    classifier = Classifier(fingerprint)
    found = []
    for row, vector in zip(rows, vectors, strict=True):
        answer, alone = classifier.classify(row["text"], vector), classifier.classify(row["text"], None)
        found.append(Scored(row["text"], row["category"], row["subcategory"], 2, 0, 0, answer, alone, answer))
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--repeats", type=int, default=3, help="how often the notes are divided again")
    chosen = parser.parse_args(arguments)
    rows = read()
    backend = open_backend(settings=SETTINGS)
    notes = training_set(backend)
    extra = descriptions(backend)
    times = milliseconds(rows, notes, backend.fingerprint)
    with single_threaded():
        scored = cross_validate(rows, notes, extra, chosen.repeats)
    later = [s for s in scored if s.batch]
    batches = {batch: [s for s in scored if s.batch == batch] for batch in (1, 2)}
    checked = check_set(backend.fingerprint, backend)

    figures = {
        "later notes (headline)": (figure(later), accuracy(later)),
        "later notes, first batch": (figure(batches[1]), accuracy(batches[1])),
        "later notes, second batch": (figure(batches[2]), accuracy(batches[2])),
        "later notes, no listed words": (figure(later, "unlisted"), accuracy(later, "unlisted")),
        "later notes, cues alone": (figure(later, "cues_alone"), accuracy(later, "cues_alone")),
        "all notes, no listed words": (figure(scored, "unlisted"), accuracy(scored, "unlisted")),
        "all notes (flattered)": (figure(scored), accuracy(scored)),
        "check set, shipped model": ((macro(pairs_of(checked)), 0.0), accuracy(checked)),
        "check set, cues alone": ((macro(pairs_of(checked, "cues_alone")), 0.0), accuracy(checked, "cues_alone")),
    }
    report.table(
        ["notes", "macro-F1", "± over folds", "accuracy"],
        [[name, *pair, share] for name, (pair, share) in figures.items()],
    )
    per_category = {
        name: f1_of(pairs_of(part)) for name, part in (("later", later), ("first batch", batches[1]), ("all", scored))
    }
    per_category["check"] = f1_of(pairs_of(checked))
    print()
    report.table(
        ["category", *(f"F1 {part}" for part in per_category)],
        [[name, *(part[name] for part in per_category.values())] for name in CATEGORY_NAMES],
    )
    confusion = Counter(pair for pair in pairs_of(scored) if pair[0] != pair[1]).most_common(WORST_PAIRS)
    print()
    report.table(["is", "was called", "per repeat"], [[*pair, count / chosen.repeats] for pair, count in confusion])
    bands, error = calibration(later)
    errors = {
        "later": error,
        "later, cues alone": calibration(later, cues_alone=True)[1],
        "all": calibration(scored)[1],
        "check": calibration(checked)[1],
    }
    print()
    report.table(["confidence (later notes)", "answers", "mean", "right"], bands)
    print()
    report.table(["expected calibration error", ""], list(errors.items()))
    parts = {"later": subcategories(later), "all": subcategories(scored), "check": subcategories(checked)}
    print()
    report.table(["subcategory", *parts], [[name, *(part[name] for part in parts.values())] for name in parts["later"]])
    moves = {
        "later": filed(later),
        "later, cues alone": filed(later, "cues_alone"),
        "all, no listed words": filed(scored, "unlisted"),
        "all": filed(scored),
        "check": filed(checked),
    }
    print()
    report.table(
        [f"filed at {FILING_FLOOR}", "share", "precision"],
        [[name, found["share"], found["precision"]] for name, found in moves.items()],
    )
    print()
    report.table(["milliseconds per note", ""], list(times.items()))
    provenance = {
        "notes": len(rows),
        "notes_sha256": digest(),
        "later_sha256": digest(LATER_FILE),
        "check_sha256": digest(CHECK_FILE),
        "model": dict(default_model().provenance),
    }
    print(f"\n{provenance}")
    (reached, stray), _ = figures["later notes (headline)"]
    report.write(
        "ontology",
        {
            "macro_f1": reached,
            "macro_f1_over_folds": stray,
            "folds": FOLDS,
            "repeats": chosen.repeats,
            "figures": {
                name: {"macro_f1": pair[0], "over_folds": pair[1], "accuracy": share}
                for name, (pair, share) in figures.items()
            },
            "f1": per_category,
            "confused": [[true, given, count / chosen.repeats] for (true, given), count in confusion],
            "reliability": bands,
            "expected_calibration_error": errors,
            "subcategory": parts,
            "fell_back_to_" + FALLBACK: float(np.mean([s.answer.confidence < CATEGORY_FLOOR for s in scored])),
            "filed": moves,
            "milliseconds_per_note": times,
            "provenance": provenance,
        },
    )
    enough = reached >= WANTED
    print(f"\nmacro-F1 {reached:.3f} on later notes, wanted {WANTED}: {'reached' if enough else 'NOT reached'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
