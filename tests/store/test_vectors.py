"""Coarse-to-fine search finds what an exact scan finds, and never what it may not see."""

import numpy as np
import pytest

from cortex_py.core.store.search import vectors as module
from cortex_py.core.store.search.vectors import VectorMatrix

SIZE, DIMENSIONS = 6_000, 384


@pytest.fixture(scope="module")
def vectors() -> np.ndarray:
    random = np.random.default_rng(5)
    spectrum = np.arange(1, DIMENSIONS + 1) ** -0.5
    centres = random.standard_normal((200, DIMENSIONS)) * spectrum
    noise = random.standard_normal((SIZE, DIMENSIONS)) * spectrum
    points = (centres[random.integers(0, 200, SIZE)] + 0.7 * noise).astype(np.float32)
    return points / np.linalg.norm(points, axis=1, keepdims=True)


def _matrix(vectors: np.ndarray) -> VectorMatrix:
    matrix = VectorMatrix(vectors[:2_000], len(vectors))
    matrix.append(vectors, np.arange(len(vectors), dtype=np.int32))
    return matrix


def _exact(vectors: np.ndarray, query: np.ndarray, mask: np.ndarray, count: int) -> set[int]:
    scores = np.where(mask, vectors @ query, -np.inf)
    return set(np.argsort(-scores)[:count].tolist())


@pytest.mark.parametrize("share", [1.0, 0.1, 0.01])
def test_recall_against_an_exact_scan(vectors: np.ndarray, share: float) -> None:
    matrix = _matrix(vectors)
    random = np.random.default_rng(9)
    mask = random.random(SIZE) < share
    found = wanted = 0
    for query in vectors[random.integers(0, SIZE, 40)]:
        got = matrix.nearest(query, mask, 150).tolist()
        assert mask[got].all()
        truth = _exact(vectors, query, mask, 10)
        found += len(truth & set(got[:10]))
        wanted += len(truth)
    assert found / wanted >= 0.99


@pytest.mark.parametrize("count", [1, 5, 40, 200])
def test_a_record_with_many_chunks_is_found_once(vectors: np.ndarray, count: int) -> None:
    matrix = VectorMatrix(vectors[:500], 600)
    matrix.append(vectors[:600], np.arange(600, dtype=np.int32) // 3)
    got = matrix.nearest(vectors[4], np.ones(200, np.bool_), count).tolist()
    best = np.argsort(-(vectors[:600] @ vectors[4])) // 3
    assert len(got) == len(set(got)) == count
    assert len({*got} & {*list(dict.fromkeys(best.tolist()))[:count]}) >= 0.9 * count


def test_forgotten_records_are_not_found_and_new_ones_are(vectors: np.ndarray) -> None:
    matrix = _matrix(vectors[:1_000])
    everything = np.ones(1_001, np.bool_)
    assert matrix.nearest(vectors[7], everything, 1).tolist() == [7]
    matrix.forget(np.array([7], np.int32))
    assert 7 not in matrix.nearest(vectors[7], everything, 1_000)
    matrix.append(vectors[7:8], np.array([1_000], np.int32))
    assert matrix.nearest(vectors[7], everything, 1).tolist() == [1_000]


def test_growing_far_beyond_the_first_size_keeps_everything(vectors: np.ndarray) -> None:
    matrix = VectorMatrix(vectors[:300], 300)
    for low in range(0, 3_000, 100):
        matrix.append(vectors[low : low + 100], np.arange(low, low + 100, dtype=np.int32))
    assert matrix.outgrown
    assert matrix.nearest(vectors[2_950], np.ones(3_000, np.bool_), 1).tolist() == [2_950]


# -- in groups, as in the file of a large space ------------------------------------------------------


@pytest.fixture
def _grouped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "GROUPED_FROM", SIZE // 2)


def _kept(matrix: VectorMatrix) -> VectorMatrix:
    """The matrix as it comes back from a file."""
    rows, arrays, facts = matrix.arrays(np.arange(SIZE + 1))
    assert rows is not None
    per_chunk = {name: arrays[name][rows] for name in ("coarse", "fine", "scale", "place")}
    return VectorMatrix.from_arrays({**arrays, **per_chunk}, facts)


@pytest.mark.usefixtures("_grouped")
@pytest.mark.parametrize("share", [1.0, 0.7])
def test_groups_give_nearly_what_all_rows_give(vectors: np.ndarray, share: float) -> None:
    whole = _matrix(vectors)
    matrix = _kept(whole)
    random = np.random.default_rng(9)
    mask = random.random(SIZE) < share
    found = compared = 0
    for query in vectors[random.integers(0, SIZE, 40)] + random.normal(0, 0.02, (40, DIMENSIONS)).astype(np.float32):
        got, expected = (one.nearest(query, mask, 32).tolist() for one in (matrix, whole))
        assert mask[got].all()
        found += len({*got} & {*expected})
        compared += sum(len(part) for part in matrix._probed(query @ matrix._basis))
    assert found / (40 * 32) >= 0.97
    assert compared / (40 * SIZE) < 0.3


@pytest.mark.usefixtures("_grouped")
def test_what_came_after_the_groups_is_found_and_what_went_is_not(vectors: np.ndarray) -> None:
    matrix = _kept(_matrix(vectors))
    everything = np.ones(SIZE + 1, np.bool_)
    assert matrix.nearest(vectors[7], everything, 1).tolist() == [7]
    matrix.forget(np.array([7], np.int32))
    assert 7 not in matrix.nearest(vectors[7], everything, 100)
    matrix.append(vectors[7:8], np.array([SIZE], np.int32))
    assert matrix.nearest(vectors[7], everything, 1).tolist() == [SIZE]
    matrix = _kept(matrix)
    assert matrix.nearest(vectors[7], everything, 1).tolist() == [SIZE]
    assert 7 not in matrix.nearest(vectors[7], everything, 100)


@pytest.mark.usefixtures("_grouped")
def test_a_filter_that_hides_the_nearest_groups_leaves_nothing_out(vectors: np.ndarray) -> None:
    whole = _matrix(vectors)
    matrix = _kept(whole)
    near = [row for part in matrix._probed(vectors[7] @ matrix._basis) for row in part]
    mask = np.ones(SIZE, np.bool_)
    mask[matrix._place[near]] = False
    assert matrix.nearest(vectors[7], mask, 50).tolist() == whole.nearest(vectors[7], mask, 50).tolist()


@pytest.mark.usefixtures("_grouped")
def test_no_centre_is_that_of_a_single_record(vectors: np.ndarray, monkeypatch: pytest.MonkeyPatch) -> None:
    # So many groups that some have a single record.
    monkeypatch.setattr(module, "_GROUPED_ON", 16)
    _, arrays, _ = _matrix(vectors).arrays(np.arange(SIZE + 1))
    codes = arrays["coarse"][:SIZE] * arrays["steps"]
    likeness = codes @ arrays["centres"].T / np.linalg.norm(codes, axis=1, keepdims=True)
    assert likeness.shape[1] > 100
    assert likeness.max() < 0.999
