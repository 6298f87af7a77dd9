"""The page on a real port, and a real browser in front of it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from cortex_py import Cortex
from cortex_py.surfaces.http.server import build_app
from cortex_py.surfaces.http.sessions import page_address

from browser import Browser, Tab, browser_program, running_browser
from servers import app_server
from stub_backend import StubBackend

# Read before the environment is cleared. Set where a machine without a browser is a fault.
_REQUIRED = bool(os.environ.get("CORTEX_REQUIRE_BROWSER"))


@dataclass(frozen=True, slots=True)
class Served:
    """A server with its library; `link` makes a one-time link to its page."""

    url: str
    cortex: Cortex
    link: Callable[[], str]


@contextmanager
def _serving(cortex: Cortex) -> Iterator[Served]:
    app = build_app(cortex)
    with app_server(app, timeout_graceful_shutdown=1) as url:
        yield Served(url, cortex, lambda: page_address(url, app.state.page_links))
        app.state.end_streams()


@pytest.fixture
def serve(home: Path, project: Path) -> Iterator[Callable[..., Served]]:
    """Starts a server with settings, or with another model than the stub."""
    with ExitStack() as stack:

        def start(**settings: Any) -> Served:
            opened = Cortex.open(home, project=project, **{"backend": StubBackend(), **settings})
            return stack.enter_context(_serving(stack.enter_context(opened)))

        yield start


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    program = browser_program()
    if program is None:
        reason = "no Chromium on this machine; the page was not looked at"
        (pytest.fail if _REQUIRED else pytest.skip)(reason)
    with running_browser(program) as started:
        yield started


@pytest.fixture
def look(browser: Browser, serve: Callable[..., Served]) -> Iterator[Callable[..., Tab]]:
    """Opens the page of a server in a browser that came by a link, and checks at the end that nothing went wrong."""
    opened: list[tuple[Tab, Served]] = []

    def open_tab(served: Served, path: str = "/", **options: Any) -> Tab:
        tab = browser.open(**options)
        opened.append((tab, served))
        tab.go(served.link())
        if path != "/":
            tab.go(served.url + path)
        return tab

    yield open_tab
    for tab, served in opened:
        assert tab.faults == []
        assert [one for one in tab.requests if not one.startswith((served.url, "data:", "about:"))] == []
        browser.close(tab)
