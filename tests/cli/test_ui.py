"""`cortex ui`: it finds the server of its home, gives nothing to another one, and starts one where there is none."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from urllib.parse import urlsplit

import httpx2

from forking import cortex_command
from servers import http_server, serve_environment


def _ui(home: Path, project: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [*cortex_command(), "ui", "--no-browser", *options]
    return subprocess.run(
        command, cwd=project, env=serve_environment(home), capture_output=True, text=True, timeout=60, check=False
    )


def test_a_link_to_the_running_server_opens_the_page_once(home: Path, project: Path) -> None:
    with http_server(home, project) as server, httpx2.Client(follow_redirects=True) as client:
        done = _ui(home, project, "--port", str(urlsplit(server.url).port), "--json")
        assert done.returncode == 0, done.stderr
        link = json.loads(done.stdout)["url"]
        page = client.get(link)
        assert page.status_code == 200
        assert project.name in page.text
        client.cookies.clear()
        assert client.get(link).status_code == 401


class _Impostor(BaseHTTPRequestHandler):
    asked: list[str] = []  # noqa: RUF012  # one server in one test

    def do_GET(self) -> None:
        self.asked.append(self.path)
        body = json.dumps({"run": "x", "proof": "y"}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def _impostor() -> Iterator[int]:
    with HTTPServer(("127.0.0.1", 0), _Impostor) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port
        server.shutdown()


def test_a_server_without_the_key_of_the_home_gets_no_link(home: Path, project: Path) -> None:
    with _impostor() as port:
        done = _ui(home, project, "--port", str(port), "--json")
    assert done.returncode == 2
    assert "code=" not in done.stdout + done.stderr
    assert all("nonce=" in path for path in _Impostor.asked)
    assert len(_Impostor.asked) == 1


def test_it_starts_a_server_where_there_is_none(home: Path, project: Path) -> None:
    command = [*cortex_command(), "ui", "--no-browser", "--port", "0"]
    with subprocess.Popen(
        command, cwd=project, env=serve_environment(home), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        try:
            assert process.stdout is not None
            link = process.stdout.readline().strip()
            assert "/session?code=" in link
            assert httpx2.get(link, follow_redirects=True).status_code in (200, 401)
        finally:
            process.kill()
            process.wait()
