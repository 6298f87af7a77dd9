"""`cortex init`: make a project ready."""

from __future__ import annotations

import click

from .options import common, open_cortex
from .show import print_json

__all__ = ["init_command"]


@click.command("init")
@common
def init_command(home: str | None, project: str, as_json: bool) -> None:
    """Register the project and install the embedding model if it is missing."""
    from ..embedding.model_files import install

    with open_cortex(home, project) as cortex:
        manifest = install(cortex.settings.models_dir, precision=cortex.settings.precision)
        found = cortex.project
        told = {
            "project_id": found.id,
            "name": found.name,
            "root": found.root,
            "remote": found.remote,
            "home": str(cortex.settings.home),
            "model_installed": True,
            "model": manifest.fingerprint,
        }
    if as_json:
        print_json(told)
    else:
        click.echo(f"Project {found.name} ({found.id}) is ready; memories are kept in {told['home']}.")
