"""Two sessions of Claude Code with Cortex's hooks, recorded from a real run and drawn as a terminal.

    python tools/record_session.py         writes docs/pictures/session.svg; `make session` runs it

The words of the person and the assistant are a script; no model runs. Each event goes to `cortex hook` as the client
sends it, in a throwaway home and repository, and what Cortex keeps and gives is its real output. Only ids are shortened
and the date is fixed, so that a second run draws nearly the same picture.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

from cortex_py.parts.hooks.warm import address_file

PICTURE = Path(__file__).parents[1] / "docs" / "pictures" / "session.svg"
FIRST_SESSION = (
    (
        "Should orders go to MongoDB or to PostgreSQL?",
        "Both would work. Reports join orders with customers: that is one query in PostgreSQL and a loop in MongoDB.",
    ),
    (
        "Let's use PostgreSQL for orders, because reports join them with customers.",
        "Done: `orders` is a table with a foreign key to `customers`.",
    ),
    (
        "The checkout tests time out on my machine.",
        "The checkout tests timed out because the fake bank listens on port 9090 only after `make bank`. "
        "I ran it, and all tests pass.",
    ),
)
SECOND_PROMPT = "I changed the discount code, please run the checkout tests again."
KEPT = 2  # what Cortex keeps of the first session
SECONDS = 120
DAY = "2026-01-05"
COLUMNS, LINES = 92, 40


class Line(NamedTuple):
    """A line of the terminal; `kind` is its style: `command`, `person`, `assistant`, `output`, `memory` or `note`."""

    kind: str
    text: str


class Client:
    """Runs hooks as Claude Code does, in a repository of its own; `command` starts `cortex`."""

    def __init__(self, folder: Path, command: Sequence[str]) -> None:
        self.home, self.repository = folder / "home", folder / "shop"
        self._command = command
        plain = {k: v for k, v in os.environ.items() if not k.startswith(("CORTEX_", "GIT_", "CLAUDE"))}
        self._environment = plain | {
            "CORTEX_HOME": str(self.home),
            # A busy machine must not change the picture.
            "CORTEX_HOOK_DEADLINE_MS": "30000",
            "CORTEX_HOOK_IDLE_SECONDS": str(SECONDS),
            "GIT_CONFIG_GLOBAL": os.devnull,
        }
        self.home.mkdir()
        self.repository.mkdir()
        git = ["git", "-c", "user.name=Ada", "-c", "user.email=ada@example.org"]
        self._run([*git, "init", "-q", "-b", "main"])
        self._run([*git, "commit", "-q", "--allow-empty", "-m", "Begin"])

    def _run(self, command: Sequence[str], sent: str = "") -> str:
        done = subprocess.run(
            command,
            cwd=self.repository,
            env=self._environment,
            input=sent,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=True,
        )
        return done.stdout

    def cortex(self, *words: str) -> str:
        return self._run([*self._command, *words])

    def hook(self, event: str, session: str, **fields: str) -> str:
        """Send an event; what Cortex adds to the session."""
        sent = {"hook_event_name": event, "session_id": session, "cwd": str(self.repository), **fields}
        answer: dict[str, Any] = json.loads(self._run([*self._command, "hook", "claude-code", event], json.dumps(sent)))
        return str(answer.get("hookSpecificOutput", {}).get("additionalContext", ""))

    def end_helper(self) -> None:
        """End the process that the hooks have started."""
        with suppress(OSError, ValueError):
            os.kill(json.loads(address_file(self.home).read_text("utf-8"))["pid"], signal.SIGTERM)


def wait_until(condition: Callable[[], object]) -> None:
    until = time.monotonic() + SECONDS
    while not condition():
        if time.monotonic() > until:
            raise SystemExit(f"This did not happen within {SECONDS} seconds.")
        time.sleep(0.05)


def record(command: Sequence[str]) -> list[Line]:
    """Run both sessions; the lines of the terminal."""
    with tempfile.TemporaryDirectory(prefix="cortex-session-", ignore_cleanup_errors=True) as folder:
        client = Client(Path(folder), command)
        try:
            return [*_first_session(client), *_second_session(client)]
        finally:
            client.end_helper()


def _first_session(client: Client) -> list[Line]:
    lines = [
        Line("note", "# The first session, played from a script. Cortex knows nothing yet."),
        Line("command", "~/shop $ claude"),
    ]
    client.hook("SessionStart", "first", source="startup")
    # A person takes longer than this to type.
    wait_until(address_file(client.home).exists)
    for prompt, answer in FIRST_SESSION:
        client.hook("UserPromptSubmit", "first", prompt=prompt)
        client.hook("Stop", "first", last_assistant_message=answer)
        lines += [*_wrap("person", prompt, "> "), *_wrap("assistant", answer, "● ")]
    client.hook("SessionEnd", "first", reason="prompt_input_exit")
    lines.append(Line("person", "> /exit"))
    return lines


def _second_session(client: Client) -> list[Line]:
    lines = [Line("note", ""), Line("note", "# What Cortex kept of it, without being asked.")]
    rows: list[str] = []

    def is_read() -> bool:
        """Sessions are read in the background."""
        rows[:] = client.cortex("review").splitlines()
        return len(rows) == KEPT

    wait_until(is_read)
    lines.append(Line("command", "~/shop $ cortex review | cut -f 2,5"))
    for _, namespace, _, _, content in (row.split("\t") for row in rows):
        lines += _wrap("output", content, f"{namespace:12}")
    lines.append(Line("command", "~/shop $ cortex review --accept-all"))
    client.cortex("review", "--accept-all")

    lines += [Line("note", ""), Line("note", "# The second session is given the decision at its start,")]
    lines.append(Line("command", "~/shop $ claude"))
    lines += _quoted(client.hook("SessionStart", "second", source="startup"))
    lines.append(Line("note", "# and with a prompt what is known about it."))
    lines += _wrap("person", SECOND_PROMPT, "> ")
    lines += _quoted(client.hook("UserPromptSubmit", "second", prompt=SECOND_PROMPT))
    return lines


def _quoted(context: str) -> list[Line]:
    if not context:
        raise SystemExit("Cortex gave nothing, so there is nothing to show.")
    text = re.sub(r"\b\d{4}-\d\d-\d\d\b", DAY, re.sub(r"\b([0-9a-f]{8})[0-9a-f]{4,}\b", r"\1", context))
    return [line for one in text.splitlines() for line in _wrap("memory", one, "  │ ", "  │   ")]


def _wrap(kind: str, text: str, first: str, next_lines: str | None = None) -> list[Line]:
    indent = " " * len(first) if next_lines is None else next_lines
    return [Line(kind, one) for one in textwrap.wrap(text, COLUMNS, initial_indent=first, subsequent_indent=indent)]


STYLE = """
  svg { --paper: #ffffff; --edge: #d0d7de; --ink: #1f2328; --dim: #59636e; --person: #0550ae; --memory: #1a7f37 }
  @media (prefers-color-scheme: dark) {
    svg { --paper: #0d1117; --edge: #3d444d; --ink: #e6edf3; --dim: #9198a1; --person: #79c0ff; --memory: #56d364 }
  }
  text { font: 14px ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; white-space: pre; fill: var(--ink) }
  .note { fill: var(--dim) } .command { font-weight: bold }
  .person { fill: var(--person) } .memory { fill: var(--memory) }
  rect { fill: var(--paper); stroke: var(--edge) } circle { fill: var(--edge) }
"""


def draw(lines: Sequence[Line]) -> str:
    """The lines as a terminal in SVG, light or dark as the reader's system is."""
    if len(lines) > LINES:
        raise SystemExit(f"{len(lines)} lines do not fit into a picture of {LINES}.")
    width, step, top = round(COLUMNS * 8.43) + 48, 20, 56
    height = top + step * len(lines)
    texts = [
        f'<text class="{line.kind}" x="24" y="{top + step * number}" xml:space="preserve">{escape(line.text)}</text>'
        for number, line in enumerate(lines)
    ]
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        'role="img" aria-labelledby="title">',
        '<title id="title">A second session of Claude Code remembers what the first one decided and learned</title>',
        f"<style>{STYLE}</style>",
        f'<rect x="0.5" y="0.5" width="{width - 1}" height="{height - 1}" rx="8"/>',
        *(f'<circle cx="{x}" cy="22" r="6"/>' for x in (24, 44, 64)),
        *texts,
        "</svg>",
        "",
    ])  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=PICTURE, help="the file to write")
    chosen = parser.parse_args()
    chosen.out.write_text(draw(record([sys.executable, "-m", "cortex_py"])), "utf-8")
    print(chosen.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
