"""Commands for AI clients: install, uninstall, and hook, which clients run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..config import load_settings
from ..hooks.dialects import CLIENTS
from .options import CommandSession, command, with_session
from .output import note, print_json, print_table

if TYPE_CHECKING:
    from ..clients.catalogue import Client, Scope
    from ..clients.install import Outcome, Setup

__all__ = ["hook_command", "install_command", "uninstall_command"]

_SCOPE = click.option(
    "--scope",
    type=click.Choice(["user", "project"]),
    default="user",
    show_default=True,
    help="For all your projects, or in the files of this one.",
)
_DRY = click.option("--dry-run", is_flag=True, help="Only show what would change.")


@command("install")
@click.argument("clients", nargs=-1)
@_SCOPE
@_DRY
@with_session
def install_command(clients: tuple[str, ...], scope: Scope, dry_run: bool, session: CommandSession) -> None:
    """Set up CLIENTS, or all that are found: MCP server, hooks, instructions, skill.

    A client's own command is used where it has one; otherwise its files are edited, and a copy of each is kept. Doing
    it again changes nothing.
    """
    _each(clients, scope, dry_run, session, lambda setup, client: setup.install(client))
    if not dry_run and not session.as_json:
        note("Restart the clients. See that it works: cortex doctor --clients")


@command("uninstall")
@click.argument("clients", nargs=-1)
@_SCOPE
@_DRY
@with_session
def uninstall_command(clients: tuple[str, ...], scope: Scope, dry_run: bool, session: CommandSession) -> None:
    """Take away from CLIENTS what install set up, and nothing else. Memories stay."""
    _each(clients, scope, dry_run, session, lambda setup, client: setup.uninstall(client))


def _each(
    keys: tuple[str, ...],
    scope: Scope,
    dry_run: bool,
    session: CommandSession,
    work: Callable[[Setup, Client], Iterator[Outcome]],
) -> None:
    from ..clients.install import Setup, chosen_clients

    setup = Setup(load_settings(session.home).home, Path(session.project or ".").absolute(), scope, dry_run=dry_run)
    outcomes = [outcome for client in chosen_clients(keys) for outcome in work(setup, client)]
    if session.as_json:
        print_json(outcomes)
    else:
        rows = [(one.client, one.what, one.state, one.detail) for one in outcomes]
        print_table(("client", "what", "", "where"), rows, wide=3, empty="No client was found on this machine.")
    if any(one.state == "failed" for one in outcomes):
        raise SystemExit(1)


@command("hook")
@click.argument("client", type=click.Choice(list(CLIENTS)))
@click.argument("event")
@click.pass_context
def hook_command(context: click.Context, client: str, event: str) -> None:
    """Answer the hook EVENT of CLIENT: its JSON is read from standard input.

    The event has the client's own name, in any case, hyphens allowed. The answer is empty where there is nothing to
    give, and on any fault; a hook never stops a prompt.
    """
    from ..hooks.front import run_hook
    from .options import command_session

    home = command_session(context).home
    context.exit(run_hook([client, event, *(("--home", home) if home else ())]))
