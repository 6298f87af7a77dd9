"""`cortex migrate`: all that the store holds, put into a store of another engine."""

from __future__ import annotations

from dataclasses import asdict

import click

from .options import common, open_cortex
from .show import print_json, progress_bar

__all__ = ["migrate_command"]


@click.command("migrate")
@click.option("--to", "place", required=True, help="postgresql://…, or `home` for the file in the home.")
@common
def migrate_command(place: str, home: str | None, project: str, as_json: bool) -> None:
    """Copy everything into another store, and read it back to be sure of it. Scanned files are read anew there.

    Nothing else may write meanwhile. The present store stays as it is; repeat the command if it was interrupted.
    """
    with open_cortex(home, project) as cortex, progress_bar("Moving", hidden=as_json) as progress:
        moved = cortex.move_to(None if place == "home" else place, progress)
    if as_json:
        print_json(asdict(moved))
        return
    click.echo(
        f"{moved.documents.get('memory', 0)} memories in {moved.spaces + moved.there_already} spaces, "
        f"{moved.there_already} of them there before; read back and compared."
    )
    click.echo("Unset database_url to use it." if place == "home" else "Set database_url to use it.")
