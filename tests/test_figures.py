"""Results of benchmarks are compared with the figures of record."""

from pathlib import Path

import pytest

import figures

BENCH = Path(figures.__file__).parent
LOAD = {
    "load": [{"server": "cortex", "calls_per_s": 20.0, "stored": 1000}, {"server": "trivial", "calls_per_s": 500.0}]
}


def test_a_result_is_found_by_its_path_and_compared() -> None:
    by_name = {one.name: one for one in figures.compare("server", LOAD)}
    slow = by_name["50 clients, calls per second over the trivial server"]
    assert (slow.measured, slow.recorded, slow.within) == (0.04, 0.3, False)
    assert slow.worse == pytest.approx(7.5)
    assert by_name["50 clients, captures kept of 1,000"].within
    assert "50 clients, memory at the peak, MB" not in by_name
    assert figures.find({"rows": [["cold", 3], ["warm", 2]]}, ["rows", {"0": "warm"}, 1]) == 2


def test_a_figure_for_another_size_is_left_out() -> None:
    paints = {"memories": 5000, "first_paint_ms": {"/": 80}, "bytes": 39_440}
    assert [one.name for one in figures.compare("page", paints)] == ["page, compressed bytes"]


def test_every_figure_of_record_is_complete() -> None:
    known = {"path", "over", "when", "value", "better", "allowed", "ratio", "command"}
    for name, listed in figures.records()["figures"].items():
        for title, one in listed.items():
            assert set(one) <= known and one["allowed"] >= 1 and one["better"] in ("lower", "higher"), (name, title)
            assert one["path"] and one["command"] and one["value"] > 0, (name, title)
    for script, *_ in figures.records()["short"].values():
        assert (BENCH / script).is_file()


@pytest.mark.soak
def test_no_ratio_is_far_from_its_figure_of_record() -> None:
    found = figures.run_short()
    assert [f"{one.name}: {one.measured:.3g}, record {one.recorded:.3g}" for one in found if not one.within] == []
