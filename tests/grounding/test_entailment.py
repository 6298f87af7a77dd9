"""An entailment model of the user: which folders are accepted, how pairs are read, how its outputs are used."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from entailment_folders import CLS, INT64, NO, PAIRED, SEP, YES, write_config, write_graph, write_tokeniser
from onnx_writer import FLOAT, GraphWriter
from tokenizers import processors

from cortex_py.core.embedding.backends.onnx_folder import GraphSlot, Signature
from cortex_py.core.errors import ConfigurationError, ModelCorrupt
from cortex_py.parts.verify.judges.entailment import EntailmentModel, _output


@dataclass(frozen=True, slots=True)
class Question:
    """As the judge is asked; kept apart from the code that asks, which needs a whole project."""

    claim: str
    passages: tuple[str, ...]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "small-nli"
    made.mkdir()
    write_graph(made)
    write_config(made)
    write_tokeniser(made)
    return made


def ask(model: EntailmentModel, *passages: str, claim: str = "It is so") -> float | None:
    (answer,) = model.judge([Question(claim, passages)])
    return answer


def share(*numbers: float) -> float:
    """The first number's share after the softmax."""
    return math.exp(numbers[0]) / sum(map(math.exp, numbers))


# What is made of the numbers


def test_a_passage_is_the_premise_and_a_claim_the_hypothesis(folder: Path) -> None:
    model = EntailmentModel(folder)
    assert model.name == "onnx:small-nli"
    assert ask(model, "yes word") == pytest.approx(share(3, 0, 0))
    assert ask(model, "word word") == pytest.approx(1 / 3)
    assert ask(model, "no word") == pytest.approx(share(0, 0, 4))
    assert ask(model, "word", claim="yes yes yes") == pytest.approx(1 / 3)


def test_the_best_passage_counts(folder: Path) -> None:
    model = EntailmentModel(folder)
    assert ask(model, "word", "yes yes", "yes") == pytest.approx(share(6, 0, 0))


def test_a_stronger_contradiction_bounds_the_answer_and_a_weaker_does_not(folder: Path) -> None:
    model = EntailmentModel(folder)
    assert ask(model, "yes", "no no") == pytest.approx(1 - share(8, 0, 0))
    assert ask(model, "yes yes", "no") == pytest.approx(share(6, 0, 0))


@pytest.mark.parametrize(
    ("labels", "place"),
    [
        ({"0": "ENTAILMENT", "1": "NEUTRAL", "2": "CONTRADICTION"}, 0),
        ({"0": "contradiction", "1": "entailment", "2": "neutral"}, 1),
        ({"2": "Entailment", "1": "Neutral", "0": "Contradiction"}, 2),
        ({"0": "REFUTES", "1": "SUPPORTS", "2": "NOT ENOUGH INFO"}, 1),
        ({"0": "entailment", "1": "not_entailment"}, 0),
        ({"0": "not supported", "1": "supported"}, 1),
        ({"0": "inconsistent", "1": "consistent"}, 1),
        ({"0": "Not-Entailment", "1": "Entailment"}, 1),
    ],
)
def test_labels_are_found_by_their_names(folder: Path, labels: dict[str, str], place: int) -> None:
    width = len(labels)
    write_graph(folder, {YES: [5.0 if number == place else 0.0 for number in range(width)]}, width=width)
    write_config(folder, labels)
    rest = [0.0] * (width - 1)
    assert ask(EntailmentModel(folder), "yes") == pytest.approx(share(5, *rest))


def test_names_may_stand_the_other_way_round(folder: Path) -> None:
    numbered = {str(number): f"LABEL_{number}" for number in range(3)}
    write_config(folder, numbered, label2id={"contradiction": 0, "neutral": 1, "entailment": 2})
    assert ask(EntailmentModel(folder), "yes") == pytest.approx(share(0, 0, 3))


@pytest.mark.parametrize("labels", [{"0": "LABEL_0"}, {"0": "supported"}, None])
@pytest.mark.parametrize("flat", [False, True])
def test_a_single_number_is_the_odds_of_the_claim(folder: Path, labels: object, flat: bool) -> None:
    write_graph(folder, {YES: [2.0], NO: [-900.0]}, width=1, flat=flat)
    write_config(folder, labels)
    model = EntailmentModel(folder)
    assert ask(model, "yes") == pytest.approx(1 / (1 + math.exp(-2)))
    assert ask(model, "no no") == 0.0
    # Neither the passage that is for it nor the one against it is a contradiction of its own.
    assert ask(model, "yes", "no no") == pytest.approx(1 / (1 + math.exp(-2)))


@pytest.mark.parametrize(
    "labels",
    [
        None,
        "entailment",
        {},
        {"0": "LABEL_0", "1": "LABEL_1", "2": "LABEL_2"},
        {"0": "positive", "1": "neutral", "2": "negative"},
        {"0": "entailment", "1": "supported", "2": "neutral"},
        {"0": "entailment", "1": "contradiction", "2": "refutes"},
        {"0": "entailment", "1": "neutral", "7": "contradiction"},
        {"0": "entailment", "1": "neutral"},
        {"0": "contradiction"},
    ],
)
def test_labels_that_do_not_tell_are_refused(folder: Path, labels: object) -> None:
    write_config(folder, labels)
    with pytest.raises(ConfigurationError, match=r"config\.json") as caught:
        EntailmentModel(folder)
    assert caught.value.remedy
    assert caught.value.field == "grounding_model"


# How pairs are read


def test_a_long_passage_is_read_to_its_end(folder: Path) -> None:
    model = EntailmentModel(folder)
    assert ask(model, "word " * 3_000 + "yes yes") == pytest.approx(share(6, 0, 0))


@pytest.mark.parametrize(
    "pairing",
    [
        PAIRED,
        processors.BertProcessing(("<sep>", SEP), ("<cls>", CLS)),
        processors.RobertaProcessing(("<sep>", SEP), ("<cls>", CLS)),
    ],
    ids=["template", "bert", "roberta"],
)
def test_windows_overlap_and_have_the_form_that_the_tokeniser_gives(
    folder: Path, pairing: processors.PostProcessor
) -> None:
    write_tokeniser(folder, pairing)
    model = EntailmentModel(folder)
    tokeniser = model._load().tokeniser
    words = [("yes", "no", "word")[number * number // 7 % 3] for number in range(1_200)]
    claim = "yes word no"
    (short,) = model._windows(0, Question(claim, ("yes no word",)), tokeniser)
    pair = tokeniser.encode("yes no word", claim)
    assert (short.ids, short.segments) == (pair.ids, pair.type_ids)

    windows = list(model._windows(0, Question(claim, (" ".join(words),)), tokeniser))
    assert max(len(window.ids) for window in windows) == 512
    room = 512 - 3 - tokeniser.num_special_tokens_to_add(True)
    step = room - 64
    for number, window in enumerate(windows):
        premise = words[number * step : number * step + room]
        pair = tokeniser.encode(" ".join(premise), claim)
        assert (window.ids, window.segments) == (pair.ids, pair.type_ids)
    assert (len(windows) - 1) * step + room >= len(words)


def test_a_claim_that_is_too_long_leaves_room_for_the_passage(folder: Path) -> None:
    write_config(folder, max_position_embeddings=64)
    model = EntailmentModel(folder)
    windows = list(model._windows(0, Question("word " * 900, ("no " * 200,)), model._load().tokeniser))
    assert {len(window.ids) for window in windows[:-1]} == {64}
    assert ask(model, "word " * 200 + "yes", claim="word " * 900) == pytest.approx(share(3, 0, 0))


def test_many_questions_have_the_answers_of_each(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = EntailmentModel(folder)
    questions = [
        Question(
            "word " * (1 + number % 7), ("yes " * (number % 5) + "word " * (number * 37 % 700), "no " * (number % 3))
        )
        for number in range(24)
    ]
    singly = [model.judge([question])[0] for question in questions]
    sizes: list[int] = []
    run = model._run

    def counted(session: Any, batch: Any) -> Any:
        sizes.append(len(batch) * max(len(window.ids) for window in batch))
        return run(session, batch)

    monkeypatch.setattr(model, "_run", counted)
    assert model.judge(questions) == singly == model.judge(questions)
    assert max(sizes) <= 1024
    assert len(sizes) < 2 * len(questions)


@pytest.mark.parametrize("element", [6, INT64])
def test_a_graph_without_a_mask_sees_no_padding(folder: Path, element: int) -> None:
    write_graph(folder, inputs=("input_ids",), element=element)
    questions = [Question("word", ("yes " * number,)) for number in (1, 2, 3)]
    assert EntailmentModel(folder).judge(questions) == [pytest.approx(share(3 * n, 0, 0)) for n in (1, 2, 3)]


def test_questions_without_words_are_not_answered(folder: Path) -> None:
    model = EntailmentModel(folder)
    empty = [Question("It is so", ()), Question(" \n", ("yes",)), Question("It is so", ("", "  "))]
    assert model.judge([]) == []
    assert model.judge(empty) == [None] * 3
    assert not model.loaded
    assert model.judge([*empty, Question("It is so", ("", "yes\ud800"))])[3] == pytest.approx(share(3, 0, 0))


def test_threads_share_one_model(folder: Path) -> None:
    model = EntailmentModel(folder, threads=1)
    questions = [Question("It is so", ("yes " * number, "word " * 700)) for number in range(1, 6)]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: model.judge(questions), range(16)))
    assert found == [EntailmentModel(folder).judge(questions)] * 16


# Which folders are taken


def test_opening_loads_nothing_heavy(folder: Path) -> None:
    script = f"""
import json, sys
from pathlib import Path
from cortex_py.parts.verify.judges.entailment import EntailmentModel
assert EntailmentModel(Path({str(folder)!r})).loaded is False
print(json.dumps(sorted(sys.modules)))
"""
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert not set(json.loads(run.stdout)) & {"numpy", "onnxruntime", "tokenizers"}


def test_the_graph_may_lie_where_exporters_put_it(folder: Path) -> None:
    (folder / "onnx").mkdir()
    (folder / "model.onnx").rename(folder / "onnx" / "model.onnx")
    assert ask(EntailmentModel(folder), "yes") == pytest.approx(share(3, 0, 0))


@pytest.mark.parametrize("name", ["model.onnx", "tokenizer.json", "config.json"])
def test_a_missing_file_is_named(folder: Path, name: str) -> None:
    (folder / name).unlink()
    with pytest.raises(ConfigurationError, match=f"holds no .*{name}.* Name in grounding_model"):
        EntailmentModel(folder)


@pytest.mark.parametrize(
    ("graph", "message"),
    [
        ({"inputs": ("input_ids", "pixels")}, "'pixels'"),
        ({"inputs": ("attention_mask",)}, "takes no token ids"),
        ({"element": FLOAT}, "'input_ids'"),
        ({"shape": (1, 128)}, "dynamic axes"),
        ({"declared": ("texts", "tokens", 3)}, "text classification"),
        ({"width": 2}, "2 numbers .* 3 labels"),
    ],
)
def test_other_kinds_of_models_are_refused(folder: Path, graph: dict[str, Any], message: str) -> None:
    write_graph(folder, **graph)
    with pytest.raises(ConfigurationError, match=message) as caught:
        EntailmentModel(folder)
    assert caught.value.field == "grounding_model"


def test_the_numbers_are_known_by_their_name() -> None:
    logits, hidden = GraphSlot("logits", FLOAT, ()), GraphSlot("hidden", FLOAT, (None, 8))
    assert _output(Signature((), (hidden, logits), ()), Path("m")) is logits
    assert _output(Signature((), (hidden,), ()), Path("m")) is hidden
    with pytest.raises(ConfigurationError):
        _output(Signature((), (hidden, GraphSlot("other", FLOAT, (None, 3))), ()), Path("m"))


def test_more_numbers_than_declared_are_refused_when_they_come(folder: Path) -> None:
    write_graph(folder, width=2, declared=("texts", "labels"))
    with pytest.raises(ConfigurationError, match=r"\(1, 2\) for 1 pairs of texts and 3 labels"):
        ask(EntailmentModel(folder), "yes")


def test_what_is_no_number_is_refused(folder: Path) -> None:
    write_graph(folder, {YES: (math.nan, 0.0, 0.0)})
    model = EntailmentModel(folder)
    with pytest.raises(ConfigurationError, match="non-finite"):
        ask(model, "yes")


def test_a_graph_that_the_runtime_refuses_is_named(folder: Path) -> None:
    graph = GraphWriter()
    made = graph.node("NoSuchOperator", "input_ids")
    message = graph.model([("input_ids", INT64, ("texts", "tokens"))], (made, FLOAT, ("texts", 3)))
    (folder / "model.onnx").write_bytes(b"".join(message.parts()))
    model = EntailmentModel(folder)
    with pytest.raises(ConfigurationError, match="onnxruntime cannot run"):
        ask(model, "yes")
    assert not model.loaded


def test_a_model_that_reads_next_to_nothing_is_refused(folder: Path) -> None:
    write_config(folder, max_position_embeddings=16)
    with pytest.raises(ConfigurationError, match="reads 16 tokens"):
        EntailmentModel(folder)


def test_the_package_that_reads_the_tokeniser_is_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cortex_py.parts.verify.judges.entailment.find_spec", lambda _: None)
    with pytest.raises(ConfigurationError, match=r"'tokenizers'. .*'\.\[onnx-folder\]'"):
        EntailmentModel(folder)


@pytest.mark.parametrize("name", ["model.onnx", "tokenizer.json", "config.json"])
def test_a_broken_file_is_named(folder: Path, name: str) -> None:
    (folder / name).write_text("{")
    with pytest.raises(ModelCorrupt, match=name):
        ask(EntailmentModel(folder), "yes")
