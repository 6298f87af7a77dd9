"""`cortex init`: make a project ready."""

from __future__ import annotations

import click

from ..context.scan import SCAN_MODES, ScanMode
from .options import common, open_cortex
from .show import print_json, progress_bar

__all__ = ["init_command"]


@click.command("init")
@click.option(
    "--mode",
    type=click.Choice(SCAN_MODES),
    default="light",
    show_default=True,
    help="light: README, entry points, configuration; full: all text files; none: no scan.",
)
@common
def init_command(mode: ScanMode, home: str | None, project: str, as_json: bool) -> None:
    """Register the project, install the embedding model if it is missing, and scan the project's files.

    A scan that was stopped goes on where it was; a repeated one reads only what changed.
    """
    from ..embedding.model_files import install

    with open_cortex(home, project) as cortex, progress_bar("Scanning", hidden=as_json) as progress:
        manifest = install(cortex.settings.models_dir, precision=cortex.settings.precision)
        scanned = cortex.contexts.initialize(mode=mode, progress=progress)
        found = cortex.project
        told = {
            "project_id": found.id,
            "name": found.name,
            "root": found.root,
            "remote": found.remote,
            "home": str(cortex.settings.home),
            "model_installed": True,
            "model": manifest.fingerprint,
            "mode": scanned.mode,
            "files_scanned": scanned.files_scanned,
            "files_changed": scanned.files_changed,
            "files_removed": scanned.files_removed,
            "contexts_created": scanned.contexts_created,
            "contexts_updated": scanned.contexts_updated,
            "left_out": scanned.left_out,
        }
    if as_json:
        print_json(told)
    else:
        click.echo(f"Project {found.name} ({found.id}) is ready; memories are kept in {told['home']}.")
        if mode != "none":
            click.echo(
                f"Scanned {scanned.files_scanned} files: {scanned.files_changed} new or changed, "
                f"{scanned.contexts_created} contexts created, {scanned.contexts_updated} updated."
            )
