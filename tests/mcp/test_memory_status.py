"""What `subcog_status` says of the newest memories, through a real client."""

from pathlib import Path

import pytest

from cortex_py import Cortex
from cortex_py.surfaces.mcp.server import build_server

from clients import CURRENT, connected
from stub_backend import StubBackend

NOTES = (
    "PostgreSQL keeps the orders because of JSONB support",
    "The connection pool of PostgreSQL is limited to 20 connections",
    "Failed payment webhooks are repeated three times",
    "Payment webhooks carry a signature that we check",
)


_MARKS = ("from-session", "confidence-98", "after-fetch", "found-by-model", "session:b5", "pinned")


@pytest.mark.parametrize("marks", [(), _MARKS])
@pytest.mark.parametrize("tags", [(), ("storage",)])
def test_recent_topics_are_what_memories_speak_of(
    home: Path, project: Path, tags: tuple[str, ...], marks: tuple[str, ...]
) -> None:
    with (
        Cortex.open(home, project=project, backend=StubBackend()) as cortex,
        connected(build_server(cortex), CURRENT) as caller,
    ):
        assert caller.call("subcog_status")["statistics"]["recent_topics"] == []
        for note in NOTES:
            caller.call("subcog_capture", content=note, namespace="decisions", tags=[*marks, *tags])
        told = caller.call("subcog_status")["statistics"]
    assert set(told["recent_topics"][: 2 + len(tags)]) == {"postgresql", "payment-webhooks", *tags}
    assert len(told["recent_topics"]) == len(set(told["recent_topics"])) <= 10
    assert [one["tag"] for one in told["top_tags"]] == list(tags)
