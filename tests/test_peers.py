"""The comparison with other memories: what a process answers, and what the page makes of the figures."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

import peer_page
from peer_adapters import PeerError, Session

BENCH = Path(peer_page.__file__).parent
ANSWERS = """
import json, sys
print("a word that is no answer", flush=True)
for line in sys.stdin:
    call = json.loads(line)
    if call["method"] == "quit":
        sys.exit("gone for good")
    print(json.dumps({"jsonrpc": "2.0", "method": "notifications/message", "params": {}}))
    body = {"error": {"message": "no such thing"}} if call["method"] == "wrong" else {"result": [1]}
    print(json.dumps({"jsonrpc": "2.0", "id": call["id"]} | body), flush=True)
"""


def test_a_session_gives_the_answer_and_says_why_there_is_none(tmp_path: Path) -> None:
    session = Session([sys.executable, "-c", ANSWERS], tmp_path, {})
    assert session.request("right") == [1]
    with pytest.raises(PeerError, match="no such thing"):
        session.request("wrong")
    with pytest.raises(PeerError, match="gone for good"):
        session.request("quit")
    session.close()


def _peers(load: float) -> dict[str, dict[str, Any]]:
    stamp = {"at": "2026-11-17", "load": load}
    mine = {
        "install": {"version": "1", "install_mb": 200.0, "packages": 50},
        "start": {"start_ms": 90.0, "tools": 46, "tool_tokens": 4000},
        "size 1000": {"store_p50_ms": 8.0, "recall_p50_ms": 5.0, "recall_p95_ms": 7.0, "rss_mb": 120.0},
        "writers": {"writes": 800, "acknowledged": 800, "kept": 800, "seconds": 9.0},
        "LoCoMo": {"collections": 2, "questions": 300, "records": 1100, "found@10": 0.8, "any@5": 0.8},
    }
    other = {
        "install": {"version": "2", "install_mb": 20.0, "packages": 9},
        "start": {"start_ms": 300.0, "tools": 9, "tool_tokens": 2000},
        "size 1000": {"store_p50_ms": 2.0, "recall_p50_ms": 1.0, "recall_p95_ms": 2.0, "rss_mb": 60.0},
        "size 20000": {"reason": "> 10 s: 9,000 records were stored when the limit was reached"},
        "writers": {"writes": 800, "acknowledged": 800, "kept": 200, "seconds": 1.0},
        "LoCoMo": {"collections": 2, "questions": 300, "records": 1100, "found@10": 0.1, "any@5": 0.1},
    }
    return {
        name: {part: found | stamp for part, found in row.items()}
        for name, row in (("cortex", mine), ("server-memory", other))
    }


def test_the_page_shows_who_is_ahead_what_failed_and_what_is_missing() -> None:
    text = " ".join(peer_page.page(_peers(load=0.4)).split())
    assert "- recall p50, 1,000: server-memory 1.0; Cortex 5.0" in text
    assert "- on disk, MB: server-memory 20; Cortex 200" in text
    assert "- seconds" not in text, "a store that lost writes is not the faster one"
    assert "† server-memory, size 20000: > 10 s: 9,000 records" in text
    assert "Not measured yet: stores of 100,000 records." in text
    assert "only the first 2 of 5 conversations." in text
    assert "recall p50 with 1,000 records, ms" in peer_page.plot(_peers(load=0.4))


def test_times_of_a_busy_machine_are_left_out() -> None:
    text = " ".join(peer_page.page(_peers(load=9.0)).split())
    assert "load average up to 9" in text
    assert "recall p50, 1,000" not in text
    assert "- resident MB, 1,000: server-memory 60; Cortex 120" in text
    assert "resident memory with 1,000 records, MB" in peer_page.plot(_peers(load=9.0))


def test_the_page_and_its_plot_are_what_the_kept_results_give() -> None:
    peers = json.loads((BENCH / "peers.json").read_text("utf-8"))["peers"]
    assert peer_page.page(peers) == peer_page.PAGE.read_text("utf-8")
    assert peer_page.plot(peers) == peer_page.PLOT.read_text("utf-8")
