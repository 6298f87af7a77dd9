"""`cortex serve --http`: plain pages beside the protocol, strangers refused, a clean end."""

import os
import signal
import subprocess
from collections.abc import Iterator
from http.client import HTTPConnection
from itertools import takewhile
from json import loads
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from timing import MINUTE

from servers import HttpServer, http_server, serve_command, serve_environment, stdio_server

TOKEN = "a-long-enough-token-0123"


@pytest.fixture
def server(home: Path, project: Path) -> Iterator[HttpServer]:
    with http_server(home, project) as running:
        yield running


def _get(url: str, path: str, **headers: str) -> tuple[int, bytes]:
    place = urlsplit(url)
    connection = HTTPConnection(place.hostname or "", place.port, timeout=MINUTE)
    try:
        connection.request("GET", path, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def _json(url: str, path: str, **headers: str) -> dict:
    status, body = _get(url, path, **headers)
    assert status == 200
    return loads(body)


def test_health_and_status_are_answered(server: HttpServer) -> None:
    assert _json(server.url, "/health/live") == {"status": "live"}
    health = _json(server.url, "/health")
    assert (health["status"], health["model"]["loaded"]) == ("healthy", False)
    assert _json(server.url, "/health/ready") == {"status": "ready"}
    assert _json(server.url, "/status")["total_count"] == 0
    assert _get(server.url, "/nothing")[0] == 404


@pytest.mark.slow
def test_settings_in_the_folder_of_a_project_are_not_the_servers(home: Path, project: Path) -> None:
    """FastMCP would read them, and refuse to start with this one."""
    (project / ".env").write_text("FASTMCP_LOG_LEVEL=none-of-these\n", "ascii")
    with stdio_server(home, project, own_interpreter=True) as server:
        server.handshake()
        assert "error" not in server.call(1, "subcog_status")
    with http_server(home, project, own_interpreter=True) as running:
        assert _json(running.url, "/health/live") == {"status": "live"}


@pytest.mark.slow
def test_what_the_server_prints_can_be_pasted_without_its_program_on_the_path(home: Path, project: Path) -> None:
    with http_server(home, project, own_interpreter=True, PATH=os.defpath) as server:
        lines = takewhile(lambda line: "curl" not in line, server.process.stdout)  # type: ignore[arg-type]
        printed = dict(line.rstrip().split(":  ", 1) for line in lines if ":  " in line)
        pasted = " && ".join(printed[step] for step in ("In another shell", "Remember", "Recall"))
        done = subprocess.run(
            ["sh", "-c", pasted],
            cwd=project,
            env=serve_environment(home, PATH=os.defpath),
            capture_output=True,
            text=True,
            timeout=MINUTE,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    assert "Use PostgreSQL for JSONB" in done.stdout


def test_another_host_name_or_origin_is_refused(server: HttpServer) -> None:
    assert _get(server.url, "/status", Host="evil.example")[0] == 421
    assert _get(server.url, "/status", Origin="https://evil.example")[0] == 403
    assert _get(server.url, "/mcp", Host="evil.example")[0] == 421
    assert _get(server.url, "/status", Origin=server.url)[0] == 200


@pytest.mark.slow
@pytest.mark.parametrize("name", [signal.SIGTERM, signal.SIGINT])
def test_it_stops_on_a_signal(home: Path, project: Path, name: signal.Signals) -> None:
    with http_server(home, project, own_interpreter=True) as server:
        assert _json(server.url, "/health/live") == {"status": "live"}
        server.process.send_signal(name)
        assert server.process.wait(MINUTE) == 0


def test_a_token_is_asked_for_where_one_is_set(home: Path, project: Path) -> None:
    with http_server(home, project, CORTEX_TOKEN=TOKEN) as server:
        assert _get(server.url, "/status")[0] == 401
        assert _get(server.url, "/mcp")[0] == 401
        assert _get(server.url, "/status", Authorization="Bearer wrong")[0] == 401
        assert _get(server.url, "/status", Authorization=f"Bearer {TOKEN}")[0] == 200
        assert _get(server.url, "/health/live")[0] == 200


@pytest.mark.parametrize("token", [None, "short"])
def test_it_refuses_to_serve_the_world_without_a_token(home: Path, project: Path, token: str | None) -> None:
    done = subprocess.run(
        serve_command("--http", "--host", "0.0.0.0", "--port", "0"),
        cwd=project,
        env=serve_environment(home, **({"CORTEX_TOKEN": token} if token else {})),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 2
    assert "Refusing" in done.stderr


def test_a_port_in_use_is_told_plainly(server: HttpServer, home: Path, project: Path) -> None:
    done = subprocess.run(
        serve_command("--http", "--port", str(urlsplit(server.url).port)),
        cwd=project,
        env=serve_environment(home),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 2
    assert "cannot be used" in done.stderr
