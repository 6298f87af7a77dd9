"""Commands that tidy memories: consolidate, enrich, supersede; and doctor, which checks the store and the model."""

from __future__ import annotations

import click

from ...core.errors import InvalidInput
from ...core.memory.consolidation.consolidation import STRATEGIES
from ...core.memory.consolidation.merging import METHODS
from .options import CommandSession, command, with_session
from .output import SHORT_ID, counted, memory_as_dict, print_json, print_table, print_warnings, say, verdict_colour
from .progress import progress_bar

__all__ = ["consolidate_command", "doctor_command", "enrich_command", "supersede_command"]


@command("consolidate")
@click.argument("namespace", required=False)
@click.option("--strategy", type=click.Choice(STRATEGIES), default="merge", show_default=True)
@click.option("-q", "--query", help="Only what fits these words; filter words such as tag:auth count as such.")
@click.option("--dry-run", is_flag=True, help="Only tell what would happen.")
@click.option("--method", type=click.Choice(METHODS), default="auto", show_default=True)
@click.option("--undo", "result", metavar="ID", help="Take back the consolidation that made this memory.")
@with_session
def consolidate_command(
    namespace: str | None,
    strategy: str,
    query: str | None,
    dry_run: bool,
    method: str,
    result: str | None,
    session: CommandSession,
) -> None:
    """Make one memory of several in NAMESPACE, or in each; the originals become superseded."""
    if result is not None and (namespace is not None or query is not None or dry_run):
        raise InvalidInput("--undo goes alone.", remedy="Leave NAMESPACE, --query and --dry-run out.", field="undo")
    with session.open(needs_model=True) as cortex:
        if result is not None:
            undone = cortex.memories.undo(result)
            session.show(
                undone,
                f"{counted(len(undone.restored), 'memory')} {'is' if len(undone.restored) == 1 else 'are'} back; "
                f"{undone.result_id[:SHORT_ID]} is deleted.",
            )
            return
        with progress_bar("Consolidating", hidden=session.as_json) as progress:
            done = cortex.memories.consolidate(
                namespace,
                strategy=strategy,  # type: ignore[arg-type]  # one of the choices above
                query=query,
                dry_run=dry_run,
                method=method,
                progress=progress,
            )
    if session.shown_as_json(done):
        return
    for group in done.groups:
        ids = ", ".join(one[:SHORT_ID] for one in group.memories)
        made = f" -> {group.result_id[:SHORT_ID]}" if group.result_id else ""
        say(f"{group.namespace}  {group.similarity:.2f}  {ids}{made}", bold=True)
        say(group.content)
    if done.groups:
        say(f"{counted(len(done.groups), 'group')} {'found' if dry_run else 'consolidated'}.")
    else:
        say("No memories say the same.")
    if done.skipped:
        left = "group was left as it is: its" if done.skipped == 1 else "groups were left as they are: their"
        say(f"{done.skipped} {left} memories changed meanwhile.", err=True)
    print_warnings(done.warnings)


@command("enrich")
@click.argument("memory_id")
@click.option("--tags/--no-tags", default=True, help="Suggest tags.")
@click.option("--structure/--no-structure", default=True, help="Put it into a better form.")
@click.option("--context/--no-context", default=False, help="Add what the store knows around it.")
@click.option("--method", type=click.Choice(METHODS), default="auto", show_default=True)
@click.option("--dry-run", is_flag=True, help="Only show what would change.")
@with_session
def enrich_command(
    memory_id: str, tags: bool, structure: bool, context: bool, method: str, dry_run: bool, session: CommandSession
) -> None:
    """Give a memory better tags, a better form, and context; the former version stays in its history."""
    with session.open(needs_model=True) as cortex:
        done = cortex.memories.enrich(
            memory_id, tags=tags, structure=structure, context=context, method=method, dry_run=dry_run
        )
    if session.shown_as_json(done):
        return
    say(f"Tags added: {', '.join(done.tags_added) or 'none'}")
    say(done.diff or "The content stays as it is.")
    print_warnings(done.warnings)


@command("supersede")
@click.argument("older")
@click.argument("newer")
@with_session
def supersede_command(older: str, newer: str, session: CommandSession) -> None:
    """Put the memory NEWER in the place of OLDER, which recall then no longer shows."""
    with session.open() as cortex:
        memory = cortex.memories.supersede(older, newer)
    session.show(
        memory_as_dict(memory), f"{memory.id[:SHORT_ID]} is superseded by {(memory.superseded_by or '')[:SHORT_ID]}."
    )


@command("doctor")
@click.option(
    "--clients", is_flag=True, help="Run the hooks and the server that `cortex install` wrote for each client."
)
@with_session
def doctor_command(clients: bool, session: CommandSession) -> None:
    """Check the store and the model; show the homes, the clients that use them, and what other machines get."""
    if clients:
        _check_clients(session)
        return
    with session.open() as cortex:
        report = cortex.doctor()
    rows = [(one.name, "ok" if one.well else "!", one.told) for one in report.checks]
    if session.as_json:
        print_json(report)
    else:
        print_table(("", "", ""), rows, wide=2, empty="Nothing was checked.", tint={1: verdict_colour})
        for one in report.outbound:
            say(f"Sends {one.what} to {one.host} ({one.purpose}).")
        if not report.outbound:
            say("Nothing is sent to any other machine.")
        for number, home in enumerate(report.homes):
            users = f"used by {', '.join(home.clients)}" if home.clients else "no client is set up to use it"
            say(f"{'This home' if number == 0 else 'Another home'}: {home.path}, {users}.")
    if not all(one.well for one in report.checks):
        raise SystemExit(7)


def _check_clients(session: CommandSession) -> None:
    from pathlib import Path

    from ...core.config import load_settings
    from ...parts.clients.checks import check_client
    from ...parts.clients.install import chosen_clients

    home, project = load_settings(session.home).home, Path(session.project or ".").absolute()
    found = [one for client in chosen_clients(()) for one in check_client(client, home, project)]
    rows = [(one.client, one.name, "ok" if one.well else "!", one.detail) for one in found]
    session.show_table(found, ("", "", "", ""), rows, wide=3, empty="No client was found on this machine.")
    if not all(one.well for one in found):
        raise SystemExit(7)
