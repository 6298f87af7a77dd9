"""Try the plugins with the real clients: `make clients`. Needs npm, and no login.

Each client is installed from the npm registry, validates and installs its plugin in a home of its own, connects to the
MCP server, and sends one prompt to a model on this machine that only listens. What the hooks gave must be in that
request: a client that drops it, or refuses the form of an answer, fails here.
"""

from __future__ import annotations

import http.server
import json
import os
import subprocess
import sys
import tempfile
import threading
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGES = ROOT / ".make" / "clients"
NAMES = {"claude": "@anthropic-ai/claude-code", "codex": "@openai/codex", "gemini": "@google/gemini-cli"}
NOTE = "We use PostgreSQL 16 with JSONB for the event store"
PROMPT = "Does the event store use PostgreSQL 16 with JSONB?"
_SECONDS = 120
_MOST_BYTES = 4_000_000


class Model:
    """Keeps the requests that it gets, and refuses each."""

    def __init__(self) -> None:
        self.requests: list[str] = []
        kept = self.requests

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                length = int(self.headers.get("Content-Length") or 0)
                sent = self.rfile.read(length) if length else self.rfile.read1(_MOST_BYTES)  # the latter in chunks
                kept.append(sent.decode("utf-8", "replace"))
                body = b'{"type": "error", "error": {"type": "invalid_request_error", "message": "not a model"}}'
                self.send_response(400)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                """Quiet."""

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self._server.server_port}"


@dataclass(frozen=True, slots=True)
class Step:
    """A command of a client, and what its output must have."""

    words: tuple[str, ...]
    expects: str = ""


def steps(url: str) -> dict[str, list[Step]]:
    """What each client does; the last step sends the prompt."""
    provider = f'model_providers.own={{name="own",base_url="{url}/v1",env_key="OWN_KEY",wire_api="responses"}}'
    gemini = str(ROOT / "plugins" / "gemini")
    return {
        "claude": [
            Step(("plugin", "validate", str(ROOT)), "Validation passed"),
            Step(("plugin", "validate", str(ROOT / "plugins" / "claude-code")), "Validation passed"),
            Step(("plugin", "marketplace", "add", str(ROOT))),
            Step(("plugin", "install", "cortex@cortex")),
            Step(("mcp", "list"), "Connected"),
            Step(("-p", PROMPT)),
        ],
        "codex": [
            Step(("plugin", "marketplace", "add", str(ROOT))),
            Step(("plugin", "add", "cortex@cortex"), "Added plugin"),
            Step(("mcp", "list"), "enabled"),
            Step(
                ("exec", "--skip-git-repo-check", "--dangerously-bypass-hook-trust", "-c", "model_provider=own",
                 "-c", provider, "-c", "model=any", PROMPT),
                "UserPromptSubmit Completed",
            ),
        ],
        "gemini": [
            Step(("extensions", "validate", gemini), "successfully validated"),
            Step(("extensions", "install", gemini, "--consent"), "installed successfully"),
            Step(("mcp", "list"), "Connected"),
            Step(("--skip-trust", "-m", "gemini-2.5-flash", "-p", PROMPT)),
        ],
    }  # fmt: skip


def check(name: str, planned: list[Step], model: Model, home: Path) -> list[str]:
    """What a client got wrong; nothing if all is right."""
    project = home / "project"
    project.mkdir(parents=True)
    (home / ".gemini").mkdir()
    (home / ".codex").mkdir()
    settings = {"security": {"auth": {"selectedType": "gemini-api-key"}}}
    (home / ".gemini" / "settings.json").write_text(json.dumps(settings))
    variables = {
        **os.environ, "HOME": str(home), "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "CORTEX_HOME": str(home / ".cortex"), "CORTEX_HOOK_DEADLINE_MS": "20000", "CORTEX_HOOK_IDLE_SECONDS": "5",
        "CODEX_HOME": str(home / ".codex"), "CLAUDE_CONFIG_DIR": str(home / ".claude"), "DISABLE_AUTOUPDATER": "1",
        "DISABLE_TELEMETRY": "1", "OWN_KEY": "none", "ANTHROPIC_API_KEY": "none", "ANTHROPIC_BASE_URL": model.url,
        "GEMINI_API_KEY": "none", "GOOGLE_GEMINI_BASE_URL": model.url,
    }  # fmt: skip
    git = ["git", "-c", "user.name=x", "-c", "user.email=x@localhost"]
    for words in (["git", "init", "-q"], [*git, "commit", "-q", "--allow-empty", "-m", "begin"]):
        subprocess.run(words, cwd=project, check=True)
    subprocess.run(["cortex", "capture", NOTE, "--namespace", "decisions"], cwd=project, env=variables, check=True,
                   stdout=subprocess.DEVNULL)  # fmt: skip
    wrong = []
    for step in planned:
        done = subprocess.run(
            [str(PACKAGES / "node_modules" / ".bin" / name), *step.words], cwd=project, env=variables, input="y\n" * 5,
            capture_output=True, text=True, timeout=_SECONDS, check=False,
        )  # fmt: skip
        if step.expects not in done.stdout + done.stderr:
            wrong.append(f"{' '.join(step.words[:3])}: {(done.stdout + done.stderr)[-300:]}")
    if not any("cortex-memory note" in one and NOTE in one for one in model.requests):
        wrong.append("what the hook gave did not arrive in the request to the model")
    return wrong


def main() -> int:
    PACKAGES.mkdir(parents=True, exist_ok=True)
    subprocess.run(["npm", "install", "--no-audit", "--no-fund", "--silent", *NAMES.values()], cwd=PACKAGES, check=True)
    failed = False
    for name, package in NAMES.items():
        version = json.loads((PACKAGES / "node_modules" / package / "package.json").read_text("utf-8"))["version"]
        model = Model()
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            wrong = check(name, steps(model.url)[name], model, Path(folder))
        print(f"{package} {version}: {'plugin, MCP server and hooks work' if not wrong else 'FAILED'}")
        for one in wrong:
            print(f"  {one}")
        failed = failed or bool(wrong)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
