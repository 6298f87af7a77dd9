"""No tool takes long over any text of 100 KB, in whichever of its parameters the text stands.

The embedding model is a stand-in: what the real one costs grows with the length of the text and no faster.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from cortex_py.surfaces.mcp.registry import TOOLS
from hostile_texts import HOSTILE, hostile
from timing import is_steep
from tool_calls import Meter, opened, use_every_parameter, use_every_tool

_CEILING = 2.0  # seconds of CPU for one call
# The everyday run reads less: what is quadratic takes eleven times less there, and what is linear a third.
_SHORT = 30_000
_SHORT_CEILING = _CEILING / 2
# Those that were slowest in some tool once; the long run has all of them.
_WORST = ("question-blank",)
_ORDINARY = "Alice uses Redis. Is it fast?"


@pytest.fixture(scope="module", autouse=True)
def warm(tmp_path_factory: pytest.TempPathFactory) -> Meter:
    """Tables are loaded by the first calls."""
    with opened(tmp_path_factory.mktemp("warm")) as meter:
        use_every_tool(meter, _ORDINARY)
        use_every_parameter(meter, _ORDINARY)
    return meter


def _slow(folder: Path, pattern: str, size: int, ceiling: float, *uses: Callable[[Meter, str], None]) -> set[str]:
    """The calls above the ceiling in each of three new stores that are far quicker with a text of a quarter."""

    def best(size: int, enough: float) -> dict[str, float]:
        least: dict[str, float] = {}
        for number in range(3):
            with opened(folder / f"{size} {number}") as meter:
                for use in uses:
                    use(meter, hostile(pattern, size))
            # The time of other threads counts too, in one store or another.
            least = {label: min(seconds, least.get(label, seconds)) for label, seconds in meter.seconds.items()}
            if max(least.values()) < enough:
                break
        return least

    above = {label: seconds for label, seconds in best(size, ceiling).items() if seconds > ceiling}
    short = best(size // 4, 0) if above else {}
    return {label for label, seconds in above.items() if is_steep(seconds, short.get(label, 0.0))}


@pytest.mark.slow
def test_every_tool_that_takes_a_text_is_called_with_it(warm: Meter) -> None:
    without_text = {"subcog_status", "subcog_namespaces", "subcog_sync", "model.info", "health.status"}
    assert {label.split()[0] for label in warm.seconds} >= {spec.name for spec in TOOLS} - without_text
    # The main uses succeed with an ordinary text: the code behind them is reached.
    tools = {spec.name for spec in TOOLS}
    assert {label for label in warm.refused if label.split()[0] not in tools} == set()


@pytest.mark.slow
@pytest.mark.parametrize("pattern", _WORST)
def test_a_tool_is_quick_with_the_worst_texts(tmp_path: Path, pattern: str) -> None:
    assert _slow(tmp_path, pattern, _SHORT, _SHORT_CEILING, use_every_tool) == set()


@pytest.mark.soak
@pytest.mark.parametrize("pattern", HOSTILE)
def test_a_tool_is_quick_with_every_text_in_every_parameter(tmp_path: Path, pattern: str) -> None:
    slow = _slow(tmp_path, pattern, 100_000, _CEILING, use_every_tool, use_every_parameter)
    if pattern == "slash":
        # As a path it names the root folder: the call reads the whole machine, as it was asked to.
        slow.discard("initialize_context project_path")
    assert slow == set()
