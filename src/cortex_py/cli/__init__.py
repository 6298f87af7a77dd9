"""The `cortex` command: a thin skin on the library. One module per group of commands."""

from __future__ import annotations

import sys
from importlib import import_module

import click

from ..errors import CortexError, wire_form
from ..version import __version__

__all__ = ["cli", "main"]

# Command → (module, help). Modules are imported only when their command runs.
_COMMANDS: dict[str, tuple[str, str]] = {
    "init": ("init", "Prepare a project: register it, install the model, scan its files."),
    "capture": ("memories", "Remember a text."),
    "recall": ("memories", "Search memories, or list them."),
    "get": ("memories", "Show one memory."),
    "update": ("memories", "Change a memory; the old version is kept."),
    "delete": ("memories", "Delete a memory; restore brings it back."),
    "restore": ("memories", "Bring a deleted memory back."),
    "history": ("memories", "Show all versions of a memory."),
    "status": ("upkeep", "Show what the memory holds."),
    "gc": ("upkeep", "Collect memories of deleted git branches, and old tombstones."),
    "consolidate": ("tidy", "Make one memory of several that say the same."),
    "enrich": ("tidy", "Give a memory better tags, form and context."),
    "supersede": ("tidy", "Put a newer memory in the place of an older one."),
    "suggest": ("suggest", "Suggest what a task will need, and learn from the answer."),
    "automation": ("suggest", "Show whether automatic behaviour acts or asks first."),
    "verify": ("verify", "Check what a text says against the project."),
    "branch": ("branch", "Lines of work: begin, resume, link to git branches, edit as files."),
    "graph": ("graph", "The knowledge graph: entities, relationships, ways, pictures."),
    "prompt": ("prompt", "Prompts: save, fill in, share as files."),
    "template": ("template", "Templates that lay memories out: save, render, share as files."),
    "export": ("export", "Write everything as JSON Lines or Markdown."),
    "import": ("export", "Add what exports, notes and files of other programs hold."),
    "reindex": ("upkeep", "Rebuild text index and vectors from the records."),
    "doctor": ("tidy", "Check the memory, and tell what leaves this machine."),
    "embed": ("embed", "Turn texts into vectors."),
    "model": ("model", "Install the embedding model, or show it."),
    "snapshot": ("snapshot", "Save a project in one verified file, and put it back."),
    "sync": ("sync", "Encrypted copies elsewhere, and several machines through them."),
    "migrate": ("migrate", "Copy everything into PostgreSQL, or back into the home."),
    "license": ("license", "Licences that open marked tools of a shared server: keys, issue, show, verify."),
    "token": ("token", "Tokens by which callers of a shared server are known: create, list, revoke."),
    "org": ("org", "Organisations of a shared server and their members: create, list, members, join, leave."),
    "group": ("group", "Groups of an organisation: create, list, add, remove, delete."),
    "grant": ("grant", "Who may do what in a project: add, remove, list, restrict, open, assign."),
    "audit": ("audit", "What callers did: list, and check that the log was not changed."),
    "serve": ("serve", "Serve the memory to MCP clients, on stdio or HTTP."),
}


class _LazyGroup(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        module = import_module(f".{_COMMANDS[cmd_name][0]}", __name__)
        command: click.Command = getattr(module, f"{cmd_name}_command")
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in _COMMANDS.items()])


@click.group(cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="cortex")
def cli() -> None:
    """Lasting, local-first memory for AI coding agents."""


def main() -> None:
    """Run the command line; errors become one line with a remedy, and a documented exit code."""
    for stream in (sys.stdout, sys.stderr):
        # Windows code pages cannot spell every memory.
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure:
            reconfigure(encoding="utf-8", errors="replace")
    try:
        cli(standalone_mode=False)
    except click.exceptions.Abort:
        click.echo("Stopped.", err=True)
        sys.exit(130)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except CortexError as error:
        click.echo(click.style("Error: ", fg="red", bold=True) + str(error), err=True)
        sys.exit(wire_form(error).exit_code)
