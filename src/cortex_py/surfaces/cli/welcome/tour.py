"""`cortex tour`: capture, recall, connect and verify in a minute, in a home and a project that are thrown away."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import click

from ..options import CommandSession, command, with_session
from ..output import print_table, say

__all__ = ["tour_command"]

_CODE = 'TAX = 0.19\n\n\ndef gross(net: float) -> float:\n    """The price with tax."""\n    return net * (1 + TAX)\n'
_SETTINGS = "CORTEX_"

# Heading, what it says, and the commands that show it.
_STEPS: tuple[tuple[str, str, tuple[tuple[str, ...], ...]], ...] = (
    (
        "Capture",
        "Cortex remembers what you or your agent decided and learned, on this machine.",
        (
            ("capture", "We chose PostgreSQL because the reports need JSONB", "-n", "decisions", "-t", "database"),
            ("capture", "Prices are stored without tax; prices.py adds it", "-n", "learnings"),
        ),
    ),
    (
        "Recall",
        "Ask in your own words. The score says how well a memory fits.",
        (("recall", "which database do the reports need"),),
    ),
    ("Connect", "An agent does this by itself once it is connected. Add Cortex to your client:", ()),
    (
        "Verify",
        "A text is checked against the files and the history of the project: yes, NO, or not found.",
        (("verify", "The function gross() is in prices.py. TAX is 0.25."),),
    ),
)


@command("tour")
@with_session
def tour_command(session: CommandSession) -> None:
    """Show in a minute how to capture, recall, connect and verify. Nothing of it stays on this machine."""
    if session.as_json:
        raise click.UsageError("tour has no JSON form. Leave out --json.")
    asks = sys.stdin.isatty() and sys.stdout.isatty()
    with tempfile.TemporaryDirectory(prefix="cortex-tour-", ignore_cleanup_errors=True) as folder:
        project = _make_project(Path(folder, "shop"))
        with _without_settings():
            for number, (title, text, lines) in enumerate(_STEPS, 1):
                _head(number, title, text)
                for words in lines:
                    _run(words, Path(folder, "home"), project, session)
                if not lines:
                    print_table(("client", "line"), _client_lines(), wide=1, empty="")
                if asks and number < len(_STEPS):
                    click.prompt("\nPress Enter to go on, Ctrl-C to stop", default="", show_default=False, err=True)
    say()
    say("The home and the project of this tour are removed. Begin with your own: cortex init")


def _head(number: int, title: str, text: str) -> None:
    say()
    say(f"{number}. {title}", bold=True)
    say(text)


def _run(words: tuple[str, ...], home: Path, project: Path, session: CommandSession) -> None:
    """Show a command as it would be typed, and run it."""
    say()
    say(f"$ cortex {shlex.join(words)}", fg="cyan")
    shared = ["--home", str(home), "--project", str(project), *(["--no-color"] if session.no_color else [])]
    root = click.get_current_context().find_root().command
    # `verify` ends with the verdict.
    with suppress(SystemExit):
        root.main([*words, *shared, "--quiet"], prog_name="cortex", standalone_mode=False)


def _make_project(folder: Path) -> Path:
    """A small git repository, without a program: its HEAD and two empty folders make one."""
    for name in ("objects", "refs/heads"):
        (folder / ".git" / name).mkdir(parents=True)
    (folder / ".git" / "HEAD").write_text("ref: refs/heads/main\n", "utf-8")
    (folder / ".git" / "config").write_text("[core]\n\trepositoryformatversion = 0\n", "utf-8")
    (folder / "prices.py").write_text(_CODE, "utf-8")
    return folder


@contextmanager
def _without_settings() -> Iterator[None]:
    """Without the person's own settings: their database, keys and addresses are not for a tour."""
    before = {name: value for name, value in os.environ.items() if name.startswith(_SETTINGS)}
    for name in before:
        del os.environ[name]
    try:
        yield
    finally:
        os.environ.update(before)


def _client_lines() -> list[tuple[str, str]]:
    found = shutil.which("cortex")
    start = [found] if found else [sys.executable, "-P", "-m", "cortex_py"]

    def entry(*options: str) -> dict[str, object]:
        return {"command": start[0], "args": [*start[1:], "serve", *options]}

    workspace = ("--project", "${workspaceFolder}")
    desktop = json.dumps({"mcpServers": {"cortex": entry("--portable-names", "--project", "FOLDER")}})
    return [
        ("Claude Code", f"claude mcp add cortex -- {shlex.join(start)} serve"),
        ("Codex", f"codex mcp add cortex -- {shlex.join(start)} serve"),
        ("VS Code", f"code --add-mcp {shlex.quote(json.dumps({'name': 'cortex', **entry(*workspace)}))}"),
        ("Cursor", f"in .cursor/mcp.json: {json.dumps({'mcpServers': {'cortex': entry(*workspace)}})}"),
        ("Claude Desktop", f"in claude_desktop_config.json: {desktop}"),
    ]
