"""The `cortex` command, a thin layer on the library.

This module has the table of commands and reports errors; there is one module per command or group of commands, those
for operators of a shared server in `admin`, those for saved texts, snapshots and sync in `saved`, those for newcomers
in `welcome`. `options` has what every command has, `input`, `output` and `progress` how they ask and print, `remedies`
how errors are worded here.
"""

from __future__ import annotations

import sys
from importlib import import_module
from io import StringIO
from typing import TYPE_CHECKING

import click

from ...core.echo import cleaner_for, format_trace
from ...core.errors import CortexError, advice_on_limits, wire_form
from ...version import __version__
from .options import CommandGroup, command_session
from .output import say

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

__all__ = ["cli", "main"]

# Section of the help → command → (module, help). Modules are imported only when their command runs.
_SECTIONS: dict[str, dict[str, tuple[str, str]]] = {
    "Everyday": {
        "capture": ("memories", "Remember a text."),
        "recall": ("memories", "Search memories, or list them."),
        "get": ("memories", "Show one memory."),
        "update": ("memories", "Change a memory; the old version is kept."),
        "delete": ("memories", "Delete a memory; restore brings it back."),
        "restore": ("memories", "Bring a deleted memory back."),
        "history": ("memories", "Show all versions of a memory."),
        "verify": ("verify", "Check what a text says against the project."),
        "suggest": ("suggest", "Suggest what a task will need, and learn from the answer."),
        "review": ("clients", "Accept, edit or drop what sessions left to be kept."),
        "status": ("admin.upkeep", "Show what the memory holds."),
        "tour": ("welcome.tour", "See in a minute how it works, without leaving a trace."),
        "serve": ("serve", "Serve the memory to MCP clients, on stdio or HTTP."),
        "ui": ("serve", "Open the page that shows, searches and corrects the memory."),
        "install": ("clients", "Set up the AI clients of this machine: MCP entry, hooks, instructions, skill."),
        "uninstall": ("clients", "Take away what install set up."),
    },
    "Projects": {
        "init": ("setup", "Prepare a project: register it and scan its files."),
        "branch": ("branch", "Lines of work: begin, resume, link to git branches, edit as files."),
        "prompt": ("saved.texts", "Prompts: save, fill in, share as files."),
        "template": ("saved.texts", "Templates that lay memories out: save, render, share as files."),
        "automation": ("suggest", "Show whether automatic behaviour acts or asks first."),
    },
    "Knowledge": {
        "graph": ("graph", "The knowledge graph: entities, relationships, paths, pictures."),
        "consolidate": ("tidy", "Make one memory of several that say the same."),
        "enrich": ("tidy", "Give a memory better tags, form and context."),
        "supersede": ("tidy", "Put a newer memory in the place of an older one."),
        "embed": ("embed", "Turn texts into vectors."),
    },
    "Maintenance": {
        "doctor": ("tidy", "Check the memory, and show what leaves this machine."),
        "gc": ("admin.upkeep", "Collect memories of deleted git branches, and old tombstones."),
        "reindex": ("admin.upkeep", "Rebuild text index and vectors from the records."),
        "model": ("setup", "Show the embedding model."),
        "export": ("saved.export", "Write everything as JSON Lines or Markdown."),
        "import": ("saved.export", "Add what exports, notes and files of other programs hold."),
        "bridge": ("saved.bridge", "Folders kept in step: a vault of notes, the memory folder of Claude Code."),
        "snapshot": ("saved.snapshot", "Save a project in one verified file, and put it back."),
        "sync": ("saved.sync", "Encrypted copies elsewhere, and several machines through them."),
        "encryption": ("admin.encryption", "Encrypt the home on this disk, or decrypt it."),
        "migrate": ("admin.upkeep", "Copy everything into PostgreSQL, or back into the home."),
        "distribute": ("admin.upkeep", "Spread a PostgreSQL store over the workers of a Citus cluster."),
        "hook": ("clients", "Answer a hook of an AI client; clients run it."),
        "help": ("welcome.help", "Explain a command, or an error by its name or code."),
        "completion": ("welcome.completion", "Let bash, zsh or fish complete commands and options."),
    },
    "Team": {
        "token": ("admin.access", "Tokens by which callers of a shared server are known: create, list, revoke."),
        "org": ("admin.tenants", "Organisations of a shared server and their members."),
        "group": ("admin.tenants", "Groups of an organisation: create, list, add, remove, delete."),
        "grant": ("admin.tenants", "Who may do what in a project: add, remove, list, restrict, open, assign."),
        "license": ("admin.license", "Licences that open marked tools of a shared server."),
        "audit": ("admin.access", "What callers did: list, and check that the log was not changed."),
    },
}
_COMMANDS = {name: row for section in _SECTIONS.values() for name, row in section.items()}

# What people type who know other programs.
_MEANT = {
    **dict.fromkeys(("add", "remember", "save", "store", "note"), "capture"),
    **dict.fromkeys(("find", "list", "ls", "query", "search"), "recall"),
    **dict.fromkeys(("cat", "show", "view"), "get"),
    **dict.fromkeys(("edit", "change"), "update"),
    **dict.fromkeys(("forget", "remove", "rm"), "delete"),
    **dict.fromkeys(("undelete",), "restore"),
    **dict.fromkeys(("log",), "history"),
    **dict.fromkeys(("check",), "verify"),
    **dict.fromkeys(("info", "stats"), "status"),
    **dict.fromkeys(("mcp", "server", "start"), "serve"),
    **dict.fromkeys(("browse", "open", "page", "web"), "ui"),
    **dict.fromkeys(("scan", "setup"), "init"),
    **dict.fromkeys(("backup",), "snapshot"),
    **dict.fromkeys(("pull", "push"), "sync"),
    **dict.fromkeys(("entities", "relationships"), "graph"),
    "version": "--version",
}


class _LazyGroup(CommandGroup):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        module = import_module(f".{_COMMANDS[cmd_name][0]}", __name__)
        command: click.Command = getattr(module, f"{cmd_name}_command")
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] in _MEANT and not ctx.resilient_parsing:
            ctx.fail(f"No such command {args[0]!r}. Did you mean {_MEANT[args[0]]!r}?")
        return super().resolve_command(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        from click.shell_completion import CompletionItem

        # Without importing what each command needs.
        found = [
            CompletionItem(name, help=text) for name, (_, text) in _COMMANDS.items() if name.startswith(incomplete)
        ]
        return [*found, *click.Command.shell_complete(self, ctx, incomplete)]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        widest = max(map(len, _COMMANDS))
        for title, commands in _SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(widest), text) for name, (_, text) in commands.items()])


@click.group(
    cls=_LazyGroup,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name="cortex")
@click.pass_context
def cli(context: click.Context) -> None:
    """Lasting, local-first memory for AI coding agents.

    Without a command, at a terminal: where you stand and what to do next.
    """
    if context.invoked_subcommand is not None:
        return
    session = command_session(context)
    if not session.as_json and not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise click.exceptions.NoArgsIsHelpError(context)
    from .welcome.standing import show_standing

    session.start_log()
    show_standing(session)


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
        say("Stopped.", err=True)
        sys.exit(130)
    except click.ClickException as error:
        # Of several names that are near, the nearest.
        del (getattr(error, "possibilities", None) or [])[1:]
        text = StringIO()
        error.show(text)
        if error.message.startswith("Got unexpected extra argument"):
            text.write("A text of several words needs quotes around it.\n")
        say(_shown(text.getvalue()), err=True, nl=False)
        sys.exit(error.exit_code)
    except CortexError as error:
        from .remedies import message_of

        say("Error: ", err=True, nl=False, fg="red", bold=True)
        say(_shown(message_of(error)), err=True)
        if sys.stderr.isatty():
            say(f"More: cortex help {type(error).__name__}", err=True)
        sys.exit(wire_form(error).exit_code)
    except Exception as error:  # noqa: BLE001  # the interpreter would print it with the data it quotes
        if advice := advice_on_limits(error):
            # Nothing is imported for this: that takes what there is not.
            sys.stderr.write(f"Error: {advice}\n")
            sys.exit(1)
        say(_shown(format_trace(error)), err=True)
        sys.exit(1)


def _shown(text: str) -> str:
    """A text as the person who typed the command may see it."""
    return cleaner_for(sys.argv[1:])(text)
