"""`cortex export` and `cortex import`: everything as plain files, and back."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ...records import DOMAINS, Domain
from ..options import CommandSession, command, with_session
from ..output import counted, print_json, say, stdout_bytes
from ..progress import watched

if TYPE_CHECKING:
    from ...backup.transfer.importer import ImportResult

__all__ = ["export_command", "import_command"]

_CONFLICT_CODE = 6
_SHOWN = 20
# What people know by name; the rest is what was learned from use.
_KINDS = {
    "memory": "memory",
    "branch": "line of work",
    "saved": "saved text",
    "entity": "entity",
    "relationship": "relationship",
    "mention": "mention",
}


@command("export")
@click.option("--format", type=click.Choice(["jsonl", "markdown"]), default="jsonl", show_default=True)
@click.option("-o", "--output", default="-", show_default=True, help="File, or for Markdown a new folder; - prints.")
@click.option("--domain", "domains", type=click.Choice(DOMAINS), multiple=True, help="Repeat; all where left out.")
@with_session
def export_command(format: str, output: str, domains: tuple[Domain, ...], session: CommandSession) -> None:
    """Write everything as JSON Lines, or memories, prompts and templates as Markdown."""
    if format == "markdown" and output == "-":
        raise click.UsageError("Give -o FOLDER for Markdown.")
    printed = output == "-"
    with session.open() as cortex:
        done = cortex.backups.export_to(stdout_bytes() if printed else Path(output), format=format, domains=domains)
    if printed:
        return
    if session.as_json:
        report = {field.name: getattr(done, field.name) for field in fields(done)}
        print_json({**report, "path": str(done.path)})
        return
    say(
        f"{_counted(done.documents)} written to {done.path} "
        f"({counted(done.size_bytes, 'byte')}, {counted(done.files, 'file')})."
    )


@command("import")
@click.argument("paths", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
@click.option("--domain", type=click.Choice(DOMAINS), help="Take only this of exports; plain memories go there.")
@click.option("--replace", is_flag=True, help="Replace what is here and differs.")
@click.option("--dry-run", is_flag=True, help="Only tell what would happen.")
@with_session
def import_command(
    paths: tuple[Path, ...], domain: Domain | None, replace: bool, dry_run: bool, session: CommandSession
) -> None:
    """Add what exports, folders of Markdown, and JSON files of other programs hold; exit code 6 for conflicts."""
    with session.open(needs_model=True) as cortex, watched("Importing", "documents", session):
        done = cortex.backups.import_from(paths, domain=domain, replace=replace, dry_run=dry_run)
    if session.as_json:
        print_json(done)
    else:
        _print_summary(done)
    if done.conflicts:
        # Not click's `Exit`: in the mode in which the group runs, that is only a return value.
        sys.exit(_CONFLICT_CODE)


def _print_summary(done: ImportResult) -> None:
    would = "would be " if done.dry_run else ""
    say(f"{would}added: {_counted(done.added)}")
    if done.replaced:
        say(f"{would}replaced: {_counted(done.replaced)}")
    say(f"already here: {done.unchanged + done.kept}")
    if done.redacted:
        say(f"secrets {would}taken out of: {done.redacted}")
    for conflict in done.conflicts[:_SHOWN]:
        say(f"conflict: {conflict.kind} {conflict.key} ({conflict.place}): {conflict.reason}", err=True)
    for line in (*(f"left out: {one}" for one in done.left_out[:_SHOWN]), *done.notes):
        say(line, err=True)
    more = max(0, len(done.conflicts) - _SHOWN) + max(0, len(done.left_out) - _SHOWN)
    if more:
        say(f"… and {more} more; --json shows all.", err=True)


def _counted(documents: Mapping[str, int]) -> str:
    named = [counted(documents[kind], word) for kind, word in _KINDS.items() if documents.get(kind)]
    others = sum(count for kind, count in documents.items() if kind not in _KINDS)
    return ", ".join([*named, *([counted(others, "other record")] if others else [])]) or "nothing"
