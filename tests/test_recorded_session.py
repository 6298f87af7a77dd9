"""The recorded session of the README is what Cortex does today: a new run draws the same picture."""

import html
import re
import runpy
from pathlib import Path

import pytest

from forking import cortex_command

ROOT = Path(__file__).parents[1]


def _texts(picture: str) -> list[str]:
    """The lines of a picture, without what differs from run to run: ids, scores, dates and times."""
    lines = [html.unescape(one) for one in re.findall(r"<text[^>]*>(.*?)</text>", picture)]
    differs = r"\b(?=[0-9a-f]*\d)[0-9a-f]{8,40}\b|\b[01]\.\d\d\b|\b\d{4}-\d\d-\d\d\b|\b\d\d:\d\d\b"
    return [re.sub(differs, "…", line) for line in lines]


@pytest.mark.sqlite_only  # hooks of a home on PostgreSQL need a server
def test_the_recorded_session_is_what_happens() -> None:
    recorder = runpy.run_path(str(ROOT / "tools" / "record_session.py"))
    committed = _texts((ROOT / "docs" / "pictures" / "session.svg").read_text("utf-8"))
    assert len(committed) <= 40
    assert committed == _texts(recorder["draw"](recorder["record"](cortex_command()))), "run: make session"
