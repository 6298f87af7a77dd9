"""What every command has: its options before or after its name, its session, and help that lists them apart.

`--home`, `--project`, `--json`, `--quiet`, `--verbose` and `--no-color` are options of `cortex`, of each group and of
each command; the one nearest to the end of the line counts.
"""

from __future__ import annotations

import contextlib
import logging
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Any, get_args

import click

from ...core.errors import StoreLocked, StoreReadOnly
from .input import ask_home_passphrase
from .output import print_json, print_table, say

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...app import Cortex

__all__ = ["CommandGroup", "CommandSession", "command", "command_session", "group", "with_session"]

# How long a command computes vectors that memories wait for, before it does its own work.
_FILL_SECONDS = 2.0


@dataclass(slots=True)
class CommandSession:
    """What a command works on, and how it prints; filled from the options of the line."""

    home: str | None = None
    project: str | None = None
    as_json: bool = False
    quiet: bool = False
    verbose: bool = False
    no_color: bool = False

    def open(self, *, needs_model: bool = False, **settings: Any) -> Cortex:
        """The library. On a terminal, the passphrase of an encrypted home is asked for.

        `needs_model`: some of the memories that wait for their vectors get them. A server would do that in the
        background.
        """
        if needs_model:
            cortex = self.open(**settings)
            until = time.monotonic() + _FILL_SECONDS
            with contextlib.suppress(StoreReadOnly):
                cortex.memories.fill_vectors(lambda: time.monotonic() > until)
            return cortex
        from ...app import Cortex
        from ..mcp.middleware.logs import PlainLines

        if logging.lastResort:
            # What the library logs while a command runs goes to standard error, without secrets.
            logging.lastResort.setFormatter(PlainLines())
        project = self.project or "."
        try:
            return Cortex.open(self.home, project=project, **settings)
        except StoreLocked:
            if not _on_terminal():
                raise
            return Cortex.open(self.home, project=project, home_passphrase=ask_home_passphrase(), **settings)

    def shown_as_json(self, value: object) -> bool:
        """Print a value as JSON if that is asked for; whether it was."""
        if self.as_json:
            print_json(value)
        return self.as_json

    def show(self, value: object, text: str) -> None:
        """Print a value as JSON, or a text in its place."""
        if not self.shown_as_json(value):
            say(text)

    def show_table(
        self,
        value: object,
        columns: Sequence[str],
        rows: Sequence[Sequence[str]],
        wide: int | Sequence[int] = (),
        *,
        empty: str,
    ) -> None:
        """Print a value as JSON, or a table in its place, or what `empty` says where there is nothing."""
        if not self.shown_as_json(value):
            print_table(columns, rows, wide, empty=empty)

    def start_log(self) -> None:
        """Show on standard error what is logged, if that is asked for."""
        from ...core.config import LogLevel

        level = "debug" if self.verbose else os.environ.get("CORTEX_LOG")
        # What is no level is an error once the settings are read.
        if level in get_args(LogLevel):
            from ..mcp.middleware.logs import log_to_stderr

            log_to_stderr(level)  # type: ignore[arg-type]  # one of its values


def _on_terminal() -> bool:
    return sys.stdin.isatty()


def command_session(context: click.Context) -> CommandSession:
    """The session of the line that is being run."""
    session: CommandSession = context.find_root().ensure_object(CommandSession)
    return session


def with_session(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command its `session`."""

    @wraps(command)
    def run(**given: Any) -> None:
        session = command_session(click.get_current_context())
        session.start_log()
        command(session=session, **given)

    return run


class _SharedOption(click.Option):
    """An option of every command. Its value goes to the session."""

    def __init__(self, name: str, **details: Any) -> None:
        field = "as_json" if name == "json" else name.replace("-", "_")

        def store(context: click.Context, _option: click.Parameter, value: object) -> None:
            # Where it is left out, what an option nearer to the beginning of the line said stays.
            if value:
                setattr(command_session(context), field, value)

        super().__init__([f"--{name}", field], expose_value=False, callback=store, **details)


def _shared_options() -> list[click.Parameter]:
    return [
        _SharedOption("home", type=click.Path(), help="Home folder (default: CORTEX_HOME or ~/.cortex)."),
        _SharedOption("project", type=click.Path(), help="Project folder (default: here)."),
        _SharedOption("json", is_flag=True, help="Print JSON instead of text."),
        _SharedOption("quiet", is_flag=True, help="Print results, warnings and errors; no hints, no progress."),
        _SharedOption(
            "verbose", is_flag=True, help="Show on standard error what is logged; CORTEX_LOG=info shows less."
        ),
        _SharedOption("no-color", is_flag=True, help="No colours; the variable NO_COLOR does the same."),
    ]


class _Shared(click.Command):
    """A command with the options of every command, which its help lists after its own."""

    def __init__(self, *arguments: Any, **details: Any) -> None:
        super().__init__(*arguments, **details)
        self.params += _shared_options()

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        listed: dict[str, list[tuple[str, str]]] = {"Options": [], "Options of every command": []}
        for one in self.get_params(ctx):
            record = None if isinstance(one, click.Argument) else one.get_help_record(ctx)
            if record:
                listed["Options of every command" if isinstance(one, _SharedOption) else "Options"].append(record)
        for title, records in listed.items():
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)


class CommandGroup(_Shared, click.Group):
    """A group of commands. A name that it does not have gets the nearest one that it has."""

    command_class = _Shared

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        known = self.list_commands(ctx)
        if name not in known and not name.startswith("-") and not ctx.resilient_parsing:
            from difflib import get_close_matches

            near = get_close_matches(name.lower(), known, n=1)
            ctx.fail(f"No such command {name!r}." + (f" Did you mean {near[0]!r}?" if near else ""))
        return super().resolve_command(ctx, args)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        self.format_commands(ctx, formatter)
        super().format_options(ctx, formatter)


def command(name: str, **attributes: Any) -> Callable[[Callable[..., None]], click.Command]:
    return click.command(name, cls=_Shared, **attributes)


def group(name: str) -> Callable[[Callable[..., None]], CommandGroup]:
    return click.group(name, cls=CommandGroup)
