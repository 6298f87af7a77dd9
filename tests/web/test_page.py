"""The page in a real browser: what a person sees and does there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from browser import Tab

pytestmark = pytest.mark.browser

Serve = Callable[..., Any]
Look = Callable[..., Tab]


def _results(tab: Tab) -> list[str]:
    found: list[str] = tab.run("[...document.querySelectorAll('.results .snippet')].map(one => one.innerText)")
    return found


def test_results_appear_while_typing_with_the_words_marked(serve: Serve, look: Look) -> None:
    served = serve()
    served.cortex.memories.capture("We chose PostgreSQL for orders", namespace="decisions", tags=["db"])
    served.cortex.memories.capture("Tests need Redis on port 6380", namespace="learnings", tags=["test"])
    tab = look(served)
    tab.wait("document.querySelectorAll('.results li').length === 2")
    tab.press("/")
    tab.type("redis tests")
    marked = tab.wait(
        "document.querySelector('.results mark') && [...document.querySelectorAll('mark')].map(m => m.innerText).join()"
    )
    assert marked == "Tests,Redis"
    assert _results(tab)[0] == "Tests need Redis on port 6380"
    assert tab.run("location.search") == "?q=redis+tests"


def test_conditions_narrow_down_and_a_wrong_one_says_why(serve: Serve, look: Look) -> None:
    served = serve()
    for number in range(3):
        served.cortex.memories.capture(f"Decision {number}", namespace="decisions", tags=["db"])
    served.cortex.memories.capture("A lesson", namespace="learnings", tags=["test"])
    tab = look(served)
    tab.click(".facets button:not([aria-pressed=true])")
    tab.wait("document.querySelectorAll('.results li').length === 3")
    assert tab.run("document.querySelector('#q').value") == "ns:decisions"
    tab.click(".facets button[aria-pressed=true]")
    tab.wait("document.querySelectorAll('.results li').length === 4")
    tab.press("/")
    tab.type("status:strange")
    assert "strange" in tab.wait(
        "!document.querySelector('.error').hidden && document.querySelector('.error').innerText"
    )


def test_the_keyboard_reaches_everything(serve: Serve, look: Look) -> None:
    served = serve()
    memory = served.cortex.memories.capture("Older")
    served.cortex.memories.capture("Newer")
    tab = look(served)
    tab.wait("!!document.querySelector('.facets')")
    tab.press("j", "j")
    tab.wait("!!document.querySelector('.results li:nth-child(2).chosen')")
    tab.press("k", "j", "Enter")
    tab.wait("location.pathname.startsWith('/memories/')")
    assert tab.run("location.pathname") == f"/memories/{memory.id}"
    tab.wait("!!document.querySelector('#keys kbd')")
    tab.press("?")
    tab.wait("!!document.querySelector('dialog[open]')")
    tab.press("Escape")
    tab.wait("!document.querySelector('dialog')")


def test_everything_can_be_read_without_javascript(serve: Serve, look: Look) -> None:
    served = serve()
    memory = served.cortex.memories.capture("Use tabs in Makefiles", tags=["make"])
    tab = look(served, "/?q=makefiles", script=False)
    # Scripts of the test still run; those of the page do not.
    assert tab.run("document.querySelector('.facets')") is None
    assert "Use tabs in Makefiles" in tab.text("main")
    tab.go(f"{served.url}/memories/{memory.id}")
    assert "Use tabs in Makefiles" in tab.text("main")
    assert "make" in tab.text("dl")


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [360, 1440])
def test_it_fits_every_width_in_both_schemes(serve: Serve, look: Look, width: int, dark: bool) -> None:
    served = serve()
    served.cortex.memories.capture("A" * 400, tags=["x" * 60])
    tab = look(served, width=width, dark=dark)
    tab.wait("!!document.querySelector('.results li')")
    assert tab.run("document.documentElement.scrollWidth <= window.innerWidth")
    background = tab.run("getComputedStyle(document.body).backgroundColor")
    assert background == ("rgb(21, 23, 26)" if dark else "rgb(251, 250, 248)")
