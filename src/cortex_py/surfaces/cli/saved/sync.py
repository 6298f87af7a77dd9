"""`cortex sync`: encrypted copies in a folder, a bucket or on a server, and several machines through them."""

from __future__ import annotations

import click

from ....core.clock import from_micros, iso
from ..input import new_passphrase
from ..options import CommandSession, group, with_session
from ..output import counted, print_json, print_table, say
from ..progress import watched

__all__ = ["sync_command"]


@group("sync")
def sync_command() -> None:
    """Sync with a folder, bucket or server, encrypted end to end: push, pull, status, passphrase."""


@sync_command.command("push")
@click.option("--whole", is_flag=True, help="Write everything again, also what may be damaged there.")
@with_session
def push_command(whole: bool, session: CommandSession) -> None:
    """Bring what changed here to the target."""
    with session.open() as cortex, watched("Pushing", "documents", session):
        done = cortex.backups.push(whole=whole)
    if session.as_json:
        print_json(done)
    elif done.documents:
        say(
            f"{counted(done.documents, 'change')}, {done.uploaded_bytes:,} bytes, to {done.target} ({done.cloud_path})."
        )
    else:
        say(f"Nothing had changed; {done.target} has all: {counted(done.total, 'document')}.")
    if done.stayed and not session.as_json:
        say(f"Not pushed, for personal data: {done.stayed}.", err=True)


@sync_command.command("pull")
@with_session
def pull_command(session: CommandSession) -> None:
    """Merge what other machines brought to the target. Where two changed the same, both are kept."""
    with session.open() as cortex, watched("Pulling", "packs", session):
        done = cortex.backups.pull()
    if session.shown_as_json(done):
        return
    say(
        f"{done.added:,} added, {done.changed:,} changed, {done.removed:,} removed "
        f"from {counted(len(done.machines), 'machine')} ({done.downloaded_bytes:,} bytes)."
    )
    for conflict in done.conflicts:
        kept = f"; the other is kept as {conflict.kept.key}" if conflict.kept else ""
        say(f"Changed on both sides: {conflict.name.kind} {conflict.name.key}{kept}.")
    for fault in done.faults:
        say(f"Not read: {fault}", err=True)


@sync_command.command("status")
@with_session
def status_command(session: CommandSession) -> None:
    """Show what waits here, and what other machines brought; nothing is changed."""
    with session.open() as cortex:
        found = cortex.backups.sync_status()
    if session.shown_as_json(found):
        return
    say(
        f"{found.target}, as machine {found.machine}; "
        f"{counted(found.pushes_today, 'push')} and {counted(found.pulls_today, 'pull')} today."
    )
    rows = [
        (
            domain,
            one.machine[:8] + (" (here)" if one.own else ""),
            iso(from_micros(one.moment)),
            f"{one.stored_bytes:,}",
            "" if one.merged else "to be pulled",
        )
        for domain, status in found.domains.items()
        for one in status.machines
    ]
    for domain, status in found.domains.items():
        if status.pending:
            say(f"{domain}: {status.pending:,} to be pushed.")
    print_table(("what", "machine", "pushed", "bytes", ""), rows, empty="No machine has pushed yet.")


@sync_command.command("passphrase")
@click.option("--change", is_flag=True, help="Put a new one in the place of the one the target is encrypted under.")
@with_session
def passphrase_command(change: bool, session: CommandSession) -> None:
    """Keep a passphrase in the system's keyring. It is asked for, or read from standard input, never an argument."""
    from ....parts.backup.vault.passphrase import keep_in_keyring

    new = new_passphrase()
    if change:
        with session.open() as cortex:
            cortex.backups.change_passphrase(new)
            text = "The target opens with the new passphrase now; set it on every machine."
    else:
        keep_in_keyring(new)
        text = "Kept in the system's keyring."
    session.show({"changed": change, "kept_in_keyring": not change}, text)
