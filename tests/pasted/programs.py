"""Programs that pages mention and that are not here: each checks what it is given as far as that can be done.

A page's `claude mcp add … -- cortex serve` starts the server it names and asks it for its tools; `docker`, `kubectl`
and `make` look whether their files and targets exist; `curl` asks a server that it starts;
`pip` looks whether what it is to install is not on an index.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from itertools import pairwise
from pathlib import Path
from urllib.request import Request, urlopen

ROOT = Path(__file__).parents[2]
NAMES = ("claude", "code", "codex", "curl", "docker", "gemini", "kubectl", "make", "pip", "pipx", "uvx")

_QUESTIONS = (
    '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},'
    '"clientInfo":{"name":"page","version":"1"}}}\n'
    '{"jsonrpc":"2.0","method":"notifications/initialized"}\n'
    '{"jsonrpc":"2.0","id":2,"method":"tools/list"}\n'
)


def _serve(command: list[str]) -> None:
    """Start a server as a client would, and read its list of tools."""
    done = subprocess.run(command, input=_QUESTIONS, capture_output=True, text=True, timeout=60, check=True)
    tools = json.loads(done.stdout.splitlines()[-1])["result"]["tools"]
    assert any(tool["name"] == "subcog_recall" for tool in tools), done.stdout


def _client(words: list[str]) -> None:
    if "--" in words:
        _serve(words[words.index("--") + 1 :])
    elif "--add-mcp" in words:
        entry = json.loads(words[words.index("--add-mcp") + 1].replace("${workspaceFolder}", str(Path.cwd())))
        _serve([entry["command"], *entry["args"]])
    else:
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/mcp", words[-1]), words


def _files(words: list[str]) -> None:
    for option, value in pairwise(words):
        if option == "-f":
            assert Path(value).exists(), value


def _make(words: list[str]) -> None:
    subprocess.run(["/usr/bin/make", "-n", "-C", str(ROOT), *words], check=True, stdout=subprocess.DEVNULL)


def _install(words: list[str]) -> None:
    """Only a checkout, a wheel or a requirements file: the package is on no index."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    for word in words:
        if found := re.fullmatch(r"(.*)\[([\w,-]+)\]", word):
            assert set(found[2].split(",")) <= extras.keys(), word
        assert not re.match(r"cortex[-_]py(?!.*\.whl)", word), f"{word} is on no index"


def _ask(words: list[str]) -> None:
    """The request of `curl`, to a server of the same home and with the same variables that ends afterwards."""
    headers = dict(value.split(": ", 1) for option, value in pairwise(words) if option == "-H")
    bodies = [value.encode() for option, value in pairwise(words) if option == "--json"]
    (address,) = [word for word in words if word.startswith("http://127.0.0.1:8765/")]
    process = subprocess.Popen(["cortex", "serve", "--http", "--port", "0"], stdout=subprocess.PIPE, text=True)
    try:
        found = re.search(r"://[^/]*:(\d+)", process.stdout.readline() if process.stdout else "")
        assert found
        if bodies:
            headers["Content-Type"] = "application/json"
        request = Request(address.replace(":8765", f":{found[1]}"), bodies[0] if bodies else None, headers)
        with urlopen(request, timeout=60) as answer:
            print(answer.read().decode())
    finally:
        process.terminate()
        process.wait(60)


def main() -> None:
    name, *words = sys.argv[1:]
    if name in ("claude", "code", "codex", "gemini"):
        _client(words)
    elif name == "make":
        _make(words)
    elif name == "curl":
        _ask(words)
    elif name in ("docker", "kubectl"):
        _files(words)
    else:
        _install(words)


if __name__ == "__main__":
    main()
