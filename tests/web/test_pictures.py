"""Every drawing in the pages, as a browser shows it in both colour schemes."""

from __future__ import annotations

from pathlib import Path

import pytest

from browser import Browser

pytestmark = pytest.mark.browser

HERE = Path(__file__).parent
DOCS = HERE.parents[1] / "docs"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_drawing_can_be_read(browser: Browser, scheme: str) -> None:
    drawings = sorted(DOCS.rglob("*.svg"))
    assert len(drawings) >= 5
    tab = browser.open(dark=scheme == "dark")
    found = {}
    for drawing in drawings:
        tab.go(drawing.as_uri())
        found[drawing.name] = tab.run((HERE / "drawing.js").read_text())
    browser.close(tab)
    assert found == {one.name: [] for one in drawings}
