"""`cortex export` and `cortex import`: everything as plain files, and back."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..records import DOMAINS, Domain
from .options import common, open_cortex
from .show import print_json

if TYPE_CHECKING:
    from ..backup.importing import Imported

__all__ = ["export_command", "import_command"]

_CONFLICT_CODE = 6
_TOLD = 20


@click.command("export")
@click.option("--format", type=click.Choice(["jsonl", "markdown"]), default="jsonl", show_default=True)
@click.option("-o", "--output", default="-", show_default=True, help="File, or for Markdown a new folder; - prints.")
@click.option("--domain", "domains", type=click.Choice(DOMAINS), multiple=True, help="Repeat; all where left out.")
@common
def export_command(
    format: str, output: str, domains: tuple[Domain, ...], home: str | None, project: str, as_json: bool
) -> None:
    """Write everything as JSON Lines, or memories, prompts and templates as Markdown."""
    if format == "markdown" and output == "-":
        raise click.UsageError("Give -o FOLDER for Markdown.")
    printed = output == "-"
    with open_cortex(home, project) as cortex:
        done = cortex.backups.export_to(sys.stdout.buffer if printed else Path(output), format=format, domains=domains)
    if printed:
        return
    if as_json:
        told = {field.name: getattr(done, field.name) for field in fields(done)}
        print_json({**told, "path": str(done.path)})
        return
    click.echo(f"{_counted(done.documents)} written to {done.path} ({done.size_bytes:,} bytes, {done.files} files).")


@click.command("import")
@click.argument("paths", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
@click.option("--domain", type=click.Choice(DOMAINS), help="Take only this of exports; plain memories go there.")
@click.option("--replace", is_flag=True, help="Replace what is here and differs.")
@click.option("--dry-run", is_flag=True, help="Only tell what would happen.")
@common
def import_command(
    paths: tuple[Path, ...],
    domain: Domain | None,
    replace: bool,
    dry_run: bool,
    home: str | None,
    project: str,
    as_json: bool,
) -> None:
    """Add what exports, folders of Markdown, and JSON files of other programs hold; exit code 6 for conflicts."""
    with open_cortex(home, project) as cortex:
        done = cortex.backups.import_from(paths, domain=domain, replace=replace, dry_run=dry_run)
    if as_json:
        print_json(done)
    else:
        _tell(done)
    if done.conflicts:
        # Not `Exit`: the group is run in a mode in which that is a value that nobody reads.
        sys.exit(_CONFLICT_CODE)


def _tell(done: Imported) -> None:
    would = "would be " if done.dry_run else ""
    click.echo(f"{would}added: {_counted(done.added)}")
    if done.replaced:
        click.echo(f"{would}replaced: {_counted(done.replaced)}")
    click.echo(f"already here: {done.unchanged + done.kept}")
    if done.redacted:
        click.echo(f"secrets {would}taken out of: {done.redacted}")
    for conflict in done.conflicts[:_TOLD]:
        click.echo(f"conflict: {conflict.kind} {conflict.key} ({conflict.place}): {conflict.reason}", err=True)
    for line in (*(f"left out: {one}" for one in done.left_out[:_TOLD]), *done.notes):
        click.echo(line, err=True)
    more = max(0, len(done.conflicts) - _TOLD) + max(0, len(done.left_out) - _TOLD)
    if more:
        click.echo(f"… and {more} more; --json tells all.", err=True)


def _counted(documents: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {kind}" for kind, count in documents.items()) or "nothing"
