"""`cortex serve`: answers on this machine, refuses others, stops cleanly."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from helpers import MODELS


@pytest.fixture
def server(home: Path, project: Path) -> Iterator[tuple[subprocess.Popen[str], str, int]]:
    environment = {**os.environ, "CORTEX_HOME": str(home), "CORTEX_MODELS_DIR": str(MODELS), "PYTHONUNBUFFERED": "1"}
    process = subprocess.Popen(
        [sys.executable, "-m", "cortex_py", "serve", "--port", "0"],
        cwd=project,
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    url = urlsplit(process.stdout.readline().split()[2])
    yield process, url.hostname or "", url.port or 0
    process.kill()
    process.wait()
    process.stdout.close()


def _get(host: str, port: int, path: str, **headers: str) -> tuple[int, dict]:
    connection = HTTPConnection(host, port, timeout=30)
    try:
        connection.request("GET", path, headers=headers)
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())
    finally:
        connection.close()


def test_health_and_status_are_answered(server) -> None:
    _, host, port = server
    assert _get(host, port, "/health/live") == (200, {"status": "live"})
    status, health = _get(host, port, "/health")
    assert (status, health["status"], health["model"]["loaded"]) == (200, "healthy", False)
    assert _get(host, port, "/health/ready")[1]["memories"] == 0
    assert _get(host, port, "/status")[1]["total_count"] == 0
    assert _get(host, port, "/nothing")[0] == 404


def test_another_host_name_is_refused(server) -> None:
    _, host, port = server
    assert _get(host, port, "/status", Host="evil.example")[0] == 403


def test_it_stops_on_a_signal(server) -> None:
    process, _, _ = server
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=20) == 0


def test_it_refuses_to_serve_the_world(home: Path, project: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "cortex_py", "serve", "--host", "0.0.0.0", "--home", str(home)],
        cwd=project,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 2
    assert "Refusing" in done.stderr
