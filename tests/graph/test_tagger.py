"""The shipped tagger is what the training script makes of the inputs it names, small and quick to load."""

import subprocess
import sys

import pytest

from cortex_py.graph.gazetteer import NAMES_FILE
from cortex_py.graph.tagger import MODEL_FILE, TYPE_OF, shipped

from datasets import DatasetMissing


def test_the_file_fits_its_inputs() -> None:
    training = pytest.importorskip("train_entities")
    recorded = shipped().model.provenance["inputs"]
    assert isinstance(recorded, dict)
    try:
        now = training.inputs()
    except (DatasetMissing, FileNotFoundError):
        pytest.skip("the training sentences are not here")
    assert recorded == now


def test_the_features_are_those_the_weights_were_learned_for() -> None:
    training = pytest.importorskip("train_entities")
    model = shipped().model
    assert model.provenance["features"] == training.seen_digest(model.tables)


def test_what_ships_is_small() -> None:
    assert MODEL_FILE.stat().st_size + NAMES_FILE.stat().st_size < 2_000_000


def test_nothing_is_loaded_before_it_is_asked_for() -> None:
    code = "import cortex_py.graph.extract, cortex_py.graph.tagger as t; print(t.shipped.cache_info().currsize)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "0\n"


def test_a_sentence_is_tagged_alone_as_among_others() -> None:
    rows = [["I", "use", "Django", "with", "PostgreSQL", "."], ["Open", "main.py", "."], ["x"] * 70, ["Thanks", "!"]]
    together = shipped().tag(rows)
    assert [[(n.first, n.last, n.type) for n in names] for names in together] == [
        [(n.first, n.last, n.type) for n in shipped().tag([row])[0]] for row in rows
    ]
    assert {(name.first, name.type) for name in together[0]} == {(2, "Technology"), (4, "Technology")}


def test_confidence_grows_with_likelihood() -> None:
    tagger = shipped()
    values = [tagger.sure(step / 20) for step in range(21)]
    assert values == sorted(values)
    assert 0 < values[0] < values[-1] < 1


def test_labels_map_to_our_types() -> None:
    named = {label[2:] for label in shipped().model.labels if label != "O"}
    assert {name for name in named if not name.startswith("x")} == set(TYPE_OF)
