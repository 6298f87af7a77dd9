"""The tagger of the package fits the inputs that it records, is small, and loads quickly."""

import subprocess
import sys

import pytest

from cortex_py.parts.graph.reading.network import NETWORK_FILE, Network, load_network
from cortex_py.parts.graph.reading.shapes import NAMES_FILE
from cortex_py.parts.graph.reading.tagger import MODEL_FILE, TYPE_OF, load_tagger

from datasets import DatasetMissing


def test_the_file_fits_its_inputs() -> None:
    training = pytest.importorskip("train_entities")
    recorded = load_tagger().model.provenance["inputs"]
    assert isinstance(recorded, dict)
    try:
        now = training.inputs()
    except (DatasetMissing, FileNotFoundError):
        pytest.skip("the training sentences are not here")
    assert recorded == now


def test_the_features_are_those_the_weights_were_learned_for() -> None:
    training = pytest.importorskip("train_entities")
    model = load_tagger().model
    assert model.provenance["features"] == training.seen_digest(model.tables)


def test_what_ships_is_small() -> None:
    assert sum(file.stat().st_size for file in (MODEL_FILE, NETWORK_FILE, NAMES_FILE)) < 2_200_000


def test_nothing_is_loaded_before_it_is_asked_for() -> None:
    code = "from cortex_py.parts.graph.reading import extract, tagger; print(int(tagger.load_tagger.is_loaded))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "0\n"


def test_a_sentence_is_tagged_alone_as_among_others() -> None:
    rows = [["I", "use", "Django", "with", "PostgreSQL", "."], ["Open", "main.py", "."], ["x"] * 70, ["Thanks", "!"]]
    together = load_tagger().tag(rows)
    assert [[(n.first, n.last, n.type) for n in names] for names in together] == [
        [(n.first, n.last, n.type) for n in load_tagger().tag([row])[0]] for row in rows
    ]
    assert {(name.first, name.type) for name in together[0]} == {(2, "Technology"), (4, "Technology")}


def test_confidence_grows_with_likelihood() -> None:
    tagger = load_tagger()
    values = [tagger.sure(step / 20) for step in range(21)]
    assert values == sorted(values)
    assert 0 < values[0] < values[-1] < 1


def test_labels_map_to_our_types() -> None:
    named = {label[2:] for label in load_tagger().model.labels if label != "O"}
    assert {name for name in named if not name.startswith("x")} == set(TYPE_OF)


def test_the_network_reads_the_labels_of_the_chain() -> None:
    network = load_network()
    assert network.labels == load_tagger().model.labels
    assert len(network.pieces) == len(load_tagger().model.tables.rows)
    assert 0 < network.share < 1


def test_a_second_thread_of_the_array_library_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where another process has the other core, waiting for it takes many times as long as the work."""
    steps: list[str] = []

    class Guard:
        def enter(self) -> None:
            steps.append("one thread")

        def leave(self) -> None:
            steps.append("all threads")

    computed = Network.log_likelihoods
    monkeypatch.setattr("cortex_py.core.store.search.vectors._guard", Guard)
    monkeypatch.setattr(Network, "log_likelihoods", lambda *given: (steps.append("compute"), computed(*given))[1])
    load_tagger().likelihoods([["Alice", "uses", "Redis"]])
    assert steps == ["one thread", "compute", "all threads"]
