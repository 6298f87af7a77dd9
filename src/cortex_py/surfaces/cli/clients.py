"""Commands for AI clients: install, uninstall, review of what their sessions left, and hook, which clients run."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ...core.config import load_settings
from ...core.errors import InvalidInput
from ...parts.hooks.dialects import CLIENTS
from .options import CommandSession, command, with_session
from .output import SHORT_ID, counted, memory_as_dict, note, print_json, print_table, say

if TYPE_CHECKING:
    from ...parts.clients.catalogue import Client, Scope
    from ...parts.clients.install import Setup, SetupOutcome
    from ...parts.hooks.staging import Review, Staged

__all__ = ["hook_command", "install_command", "review_command", "uninstall_command"]

_SCOPE = click.option(
    "--scope",
    type=click.Choice(["user", "project"]),
    default="user",
    show_default=True,
    help="For all your projects, or in the files of this one.",
)
_DRY = click.option("--dry-run", is_flag=True, help="Only show what would change.")
_CHOICES = "a = accept, e = edit, d = drop, Enter = later, q = stop"


@command("install")
@click.argument("clients", nargs=-1)
@_SCOPE
@_DRY
@with_session
def install_command(clients: tuple[str, ...], scope: Scope, dry_run: bool, session: CommandSession) -> None:
    """Set up CLIENTS, or all that are found: MCP server, hooks, instructions, skill.

    For you, a client's own command is used where it has one; otherwise its files are edited, and a copy of each is
    kept. In a project, a file that a link puts outside it is left alone. Doing it again changes nothing.
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
    work: Callable[[Setup, Client], Iterator[SetupOutcome]],
) -> None:
    from ...parts.clients.install import Setup, chosen_clients

    setup = Setup(load_settings(session.home).home, Path(session.project or ".").absolute(), scope, dry_run=dry_run)
    outcomes = [outcome for client in chosen_clients(keys) for outcome in work(setup, client)]
    if session.as_json:
        print_json(outcomes)
    else:
        rows = [(one.client, one.what, one.state, one.detail) for one in outcomes]
        print_table(("client", "what", "", "where"), rows, wide=3, empty="No client was found on this machine.")
    if any(one.state == "failed" for one in outcomes):
        raise SystemExit(1)


@command("review")
@click.option("--accept", "accepted", multiple=True, metavar="ID", help="Accept one; repeat for more.")
@click.option("--drop", "dropped", multiple=True, metavar="ID", help="Drop one; repeat for more.")
@click.option("--accept-all", is_flag=True, help="Accept all but those that contradict another memory.")
@click.option("--content", help="With one --accept: keep this text in its place.")
@click.option("--limit", type=click.IntRange(1, 500), default=50, show_default=True, help="How many to show.")
@with_session
def review_command(
    accepted: tuple[str, ...],
    dropped: tuple[str, ...],
    accept_all: bool,
    content: str | None,
    limit: int,
    session: CommandSession,
) -> None:
    """Show what sessions left to be kept; on a terminal, accept, edit or drop it one by one."""
    if content is not None and len(accepted) != 1:
        raise InvalidInput("--content needs exactly one --accept.", remedy="Name the memory.", field="content")
    with session.open(needs_model=True) as cortex:
        review = cortex.review
        if accepted or dropped or accept_all:
            kept = [review.accept(ref, content=content) for ref in accepted]
            gone = [review.drop(ref) for ref in dropped]
            kept += review.accept_all() if accept_all else []
            answer = {"accepted": [one.id for one in kept], "dropped": [one.id for one in gone]}
            session.show(answer, f"{counted(len(kept), 'memory')} accepted, {len(gone)} dropped.")
            return
        review.read()
        staged = review.staged(limit)
        if session.as_json:
            print_json([_as_dict(one) for one in staged])
        elif staged and sys.stdin.isatty() and sys.stdout.isatty():
            _ask(review, staged)
        else:
            _print(staged)


def _as_dict(one: Staged) -> dict[str, object]:
    conflicts = [{"id": other.memory_id, "reason": other.reason} for other in one.conflicts]
    return {**memory_as_dict(one.memory), "confidence": one.confidence, "conflicts_with": conflicts}


def _print(staged: list[Staged]) -> None:
    rows = [
        (one.memory.id[:SHORT_ID], one.memory.namespace, _sure(one), one.memory.source or "", one.memory.content)
        for one in staged
    ]
    print_table(("id", "namespace", "sure", "source", "content"), rows, wide=4, empty="Nothing waits for a review.")
    if rows:
        note("Decide: cortex review --accept ID, --drop ID, or --accept-all")


def _sure(one: Staged) -> str:
    return "" if one.confidence is None else f"{one.confidence:.2f}"


def _ask(review: Review, staged: list[Staged]) -> None:
    """Show one after the other and ask what becomes of it."""
    for place, one in enumerate(staged, 1):
        memory = one.memory
        say(f"\n{place} of {len(staged)}: {memory.namespace} {_sure(one)} ({memory.source or 'no source'})", bold=True)
        say(memory.content)
        for other in one.conflicts:
            say(f"Contradicts {other.memory_id[:SHORT_ID]}: {other.reason}", fg="yellow")
        choice = click.prompt(_CHOICES, default="", show_default=False).strip().lower()[:1]
        if choice == "q":
            return
        if choice == "a":
            review.accept(memory.id)
        elif choice == "d":
            review.drop(memory.id)
        elif choice == "e":
            text = click.edit(memory.content)
            if text and text.strip():
                review.accept(memory.id, content=text.strip())


@command("hook")
@click.argument("client", type=click.Choice(list(CLIENTS)))
@click.argument("event")
@click.pass_context
def hook_command(context: click.Context, client: str, event: str) -> None:
    """Answer the hook EVENT of CLIENT: its JSON is read from standard input.

    The event has the client's own name, in any case, hyphens allowed. The answer is empty where there is nothing to
    give, and on any fault; a hook never stops a prompt.
    """
    from ...parts.hooks.front import run_hook
    from .options import command_session

    home = command_session(context).home
    context.exit(run_hook([client, event, *(("--home", home) if home else ())]))
