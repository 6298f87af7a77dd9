"""The simulation behind scale.md: right where theory knows the answer, and the page holds what it prints."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

import scale_model
from cortex_py.core.store.database import COORDINATOR, DISTRIBUTED, FAN_OUTS
from scale_model import SETUPS, Setup, Simulation, _Servers, placed, rendered, simulated

FIGURES = json.loads(scale_model.FIGURES.read_text("utf-8"))
NUMBERS = {name: float(value) for name, value in FIGURES.items() if isinstance(value, int | float)}
PAGE = (Path(__file__).parents[1] / "docs" / "operate" / "scale.md").read_text("utf-8")


@pytest.mark.slow
def test_the_page_holds_the_table_that_the_script_makes() -> None:
    assert placed(PAGE, rendered(FIGURES)) == PAGE


@pytest.mark.parametrize("load", [0.3, 0.7])
def test_one_server_with_random_arrivals_is_as_slow_as_theory_says(load: float) -> None:
    simulation, server, taken = Simulation(seed=1), _Servers(1), []

    def arrive() -> None:
        began = simulation.now
        simulation.work(server, simulation.random.expovariate(1.0), lambda: taken.append(simulation.now - began))

    moment = 0.0
    for _ in range(40_000):
        moment += simulation.random.expovariate(load)
        simulation.at(moment, arrive)
    simulation.run()
    assert len(taken) == 40_000
    assert sum(taken) / len(taken) == pytest.approx(1 / (1 - load), rel=0.06)


def test_more_load_waits_longer_and_too_much_falls_behind() -> None:
    setup = Setup(10**8, "one server", spaces=1)
    calm = simulated(setup, NUMBERS)
    least = 1 / calm.busy
    busy = simulated(replace(setup, load=0.85 * least, app_cores=64, cores=64), NUMBERS)
    over = simulated(replace(setup, load=1.5 * least, app_cores=64, cores=64), NUMBERS)
    assert calm.capture[1] < busy.capture[1] < over.capture[1]
    assert (calm.falls_behind, busy.falls_behind, over.falls_behind) == (False, False, True)
    # Writers wait for each other; readers do not wait for them.
    assert over.recall[1] < 1.5 * calm.recall[1]


def test_servers_under_one_lock_write_no_faster_and_spaces_of_their_own_do() -> None:
    one = simulated(Setup(10**8, "", spaces=1, load=10, app_cores=16), NUMBERS)
    under_one_lock = simulated(Setup(10**8, "", spaces=1, shards=8, load=10, app_cores=16), NUMBERS)
    apart = simulated(Setup(10**8, "", spaces=8, load=10, app_cores=16), NUMBERS)
    assert under_one_lock.busy == pytest.approx(one.busy, rel=0.1)
    assert apart.busy == pytest.approx(one.busy / 8, rel=0.1)


def test_the_same_figures_give_the_same_outcome() -> None:
    assert simulated(SETUPS[0], NUMBERS) == simulated(SETUPS[0], NUMBERS)


def test_every_table_without_a_space_and_every_statement_for_all_servers_is_on_the_page() -> None:
    kept = PAGE.partition("These tables have no space")[2].partition("They are")[0]
    assert set(re.findall(r"`(\w+)`", kept)) == set(COORDINATOR)
    assert not set(COORDINATOR) & set(DISTRIBUTED)
    everywhere = PAGE.partition("| goes to every server | why |")[2].partition("\n\n")[0]
    assert sorted(re.findall(r"^\| ([a-z ]+) \| (.+) \|$", everywhere, re.MULTILINE)) == sorted(FAN_OUTS.items())
