"""What a model's vectors alone are worth on public data that was not trained on: likeness, code, conversations.

    python training/cortex_recall/evaluate.py [--models FOLDER] [sts code talks sessions]

Reads the data of the benchmarks. STS-B: Spearman's rank correlation of cosine and score. CoSQA: MRR@10 and recall@10 of
the right function among all. LoCoMo: the share of the answering turns among the first ten, in its own conversation, by
the turn's vector and by its mean with the vector of turn and neighbours. LongMemEval: sessions by the best of their
parts, of all sessions together.
"""

from __future__ import annotations

import argparse
import ast
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2] / "src"))
sys.path.insert(0, str(Path(__file__).parents[2] / "bench"))

from cortex_py.core.embedding.backends.onnx import OnnxBackend
from cortex_py.core.embedding.shipped_model import SHIPPED
from cortex_py.core.memory.text import chunk

from datasets import locomo, longmemeval, read_lines

Vectors = np.ndarray[Any, Any]


def _ranks(values: Vectors) -> Vectors:
    """Ranks, equal values having their mean."""
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    return np.asarray((np.cumsum(counts) - (counts - 1) / 2)[place])


def sts(model: OnnxBackend) -> Iterator[tuple[str, float]]:
    rows = list(read_lines("stsb.jsonl.gz"))
    left, right = (model.embed([row[side] for row in rows]) for side in "ab")
    scores = np.array([float(row["score"]) for row in rows])
    found = [_ranks((left * right).sum(1)), _ranks(scores)]
    yield "STS-B Spearman", float(np.corrcoef(*found)[0, 1])


def _without_docstring(code: str) -> str:
    try:
        tree = ast.parse(textwrap.dedent(code))
    except SyntaxError:
        return code
    function = tree.body[0]
    if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef) or ast.get_docstring(function) is None:
        return code
    first = function.body[0]
    lines = textwrap.dedent(code).split("\n")
    return "\n".join(lines[: first.lineno - 1] + lines[first.end_lineno :])


def code(model: OnnxBackend) -> Iterator[tuple[str, float]]:
    functions = list(read_lines("cosqa_code.jsonl.gz"))
    asked = list(read_lines("cosqa_queries.jsonl.gz"))
    queries = model.embed([row["query"] for row in asked])
    place = {row["id"]: n for n, row in enumerate(functions)}
    right = np.array([place[row["code_id"]] for row in asked])
    forms: dict[str, Callable[[str], str]] = {"with docstrings": str, "without": _without_docstring}
    for name, form in forms.items():
        scores = queries @ model.embed([form(row["code"]) for row in functions]).T
        rank = 1 + (scores > scores[np.arange(len(right)), right][:, None]).sum(1)
        yield f"CoSQA MRR@10, {name}", float(np.where(rank <= 10, 1 / rank, 0).mean())
        yield f"CoSQA recall@10, {name}", float((rank <= 10).mean())


def talks(model: OnnxBackend) -> Iterator[tuple[str, float]]:
    found: dict[str, list[float]] = {"turn": [], "turn and window": []}
    for collection in locomo():
        asked = [question for question in collection.questions if question.answerable]
        own = model.embed([record.content for record in collection.records])
        queries = model.embed([question.text for question in asked])
        window = own.copy()
        for n in range(len(own) - 1):
            if collection.records[n].branch == collection.records[n + 1].branch:
                window[n] += 0.5 * own[n + 1]
                window[n + 1] += 0.5 * own[n]
        window /= np.linalg.norm(window, axis=1, keepdims=True)
        keys = [record.key for record in collection.records]
        for name, vectors in (("turn", own), ("turn and window", own + window)):
            best = np.argsort(-(queries @ vectors.T), axis=1)[:, :10]
            for question, row in zip(asked, best, strict=True):
                seen = {keys[n] for n in row} & question.relevant
                found[name].append(len(seen) / len(question.relevant))
    for name, shares in found.items():
        yield f"LoCoMo found@10, {name}", float(np.mean(shares))


def sessions(model: OnnxBackend) -> Iterator[tuple[str, float]]:
    collection = longmemeval()
    parts, owner = [], []
    for n, record in enumerate(collection.records):
        cuts = chunk(record.content, count_tokens=model.count_tokens)
        parts += [record.content[cut.start : cut.end] for cut in cuts]
        owner += [n] * len(cuts)
    vectors = model.embed(parts)
    asked = [question for question in collection.questions if question.answerable]
    scores = model.embed([question.text for question in asked]) @ vectors.T
    best = np.full((len(asked), len(collection.records)), -1.0)
    np.maximum.at(best, (np.arange(len(asked))[:, None], np.array(owner)[None, :]), scores)
    units = [record.unit for record in collection.records]
    seen = [
        len({units[n] for n in row[:5]} & question.relevant) / len(question.relevant)
        for question, row in zip(asked, np.argsort(-best, axis=1), strict=True)
    ]
    yield "LongMemEval any@5", float(np.mean([share > 0 for share in seen]))
    yield "LongMemEval all@5", float(np.mean([share == 1 for share in seen]))


def main() -> None:
    measures = {"sts": sts, "code": code, "talks": talks, "sessions": sessions}
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--models", type=Path, default=SHIPPED, help="where the model's folder is")
    parser.add_argument("measure", nargs="*", help=f"any of {', '.join(measures)}")
    given = parser.parse_args()
    model = OnnxBackend(given.models)
    print(model.fingerprint, flush=True)
    for name in given.measure or measures:
        for figure, value in measures[name](model):
            print(f"{figure}: {value:.4f}", flush=True)


if __name__ == "__main__":
    main()
