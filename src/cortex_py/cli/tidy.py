"""Commands that make less of more: consolidate, enrich, supersede; and doctor, which tells how things stand."""

from __future__ import annotations

import click

from ..errors import InvalidInput
from ..memory.consolidation import STRATEGIES
from ..memory.wording import METHODS
from .options import common, open_cortex
from .show import SHORT_ID, memory_as_dict, print_json, print_table, progress_bar

__all__ = ["consolidate_command", "doctor_command", "enrich_command", "supersede_command"]


@click.command("consolidate")
@click.argument("namespace", required=False)
@click.option("--strategy", type=click.Choice(STRATEGIES), default="merge", show_default=True)
@click.option("-q", "--query", help="Only what fits these words; filter words such as tag:auth count as such.")
@click.option("--dry-run", is_flag=True, help="Only tell what would happen.")
@click.option("--method", type=click.Choice(METHODS), default="auto", show_default=True)
@click.option("--undo", "result", metavar="ID", help="Take back the consolidation that made this memory.")
@common
def consolidate_command(
    namespace: str | None,
    strategy: str,
    query: str | None,
    dry_run: bool,
    method: str,
    result: str | None,
    home: str | None,
    project: str,
    as_json: bool,
) -> None:
    """Make one memory of several in NAMESPACE, or in each; the originals become superseded."""
    if result is not None and (namespace is not None or query is not None or dry_run):
        raise InvalidInput("--undo goes alone.", remedy="Leave NAMESPACE, --query and --dry-run out.", field="undo")
    with open_cortex(home, project) as cortex:
        if result is not None:
            undone = cortex.memories.undo(result)
            if as_json:
                print_json(undone)
            else:
                click.echo(f"{len(undone.restored)} memories are back; {undone.result_id[:SHORT_ID]} is deleted.")
            return
        with progress_bar("Consolidating", hidden=as_json) as progress:
            done = cortex.memories.consolidate(
                namespace,
                strategy=strategy,  # type: ignore[arg-type]  # one of the choices above
                query=query,
                dry_run=dry_run,
                method=method,
                progress=progress,
            )
    if as_json:
        print_json(done)
        return
    for group in done.groups:
        ids = ", ".join(one[:SHORT_ID] for one in group.memories)
        made = f" -> {group.result_id[:SHORT_ID]}" if group.result_id else ""
        click.secho(f"{group.namespace}  {group.similarity:.2f}  {ids}{made}", bold=True)
        click.echo(group.content)
    click.echo(f"{len(done.groups)} groups {'found' if dry_run else 'consolidated'}.")
    if done.skipped:
        click.echo(f"{done.skipped} groups were left as they are: their memories changed meanwhile.", err=True)
    for warning in done.warnings:
        click.echo(warning, err=True)


@click.command("enrich")
@click.argument("memory_id")
@click.option("--tags/--no-tags", default=True, help="Suggest tags.")
@click.option("--structure/--no-structure", default=True, help="Put it into a better form.")
@click.option("--context/--no-context", default=False, help="Add what the store knows around it.")
@click.option("--method", type=click.Choice(METHODS), default="auto", show_default=True)
@click.option("--dry-run", is_flag=True, help="Only show what would change.")
@common
def enrich_command(
    memory_id: str,
    tags: bool,
    structure: bool,
    context: bool,
    method: str,
    dry_run: bool,
    home: str | None,
    project: str,
    as_json: bool,
) -> None:
    """Give a memory better tags, a better form, and context; the former version stays in its history."""
    with open_cortex(home, project) as cortex:
        done = cortex.memories.enrich(
            memory_id, tags=tags, structure=structure, context=context, method=method, dry_run=dry_run
        )
    if as_json:
        print_json(done)
        return
    click.echo(f"Tags added: {', '.join(done.tags_added) or 'none'}")
    click.echo(done.diff or "The content stays as it is.")
    for warning in done.warnings:
        click.echo(warning, err=True)


@click.command("supersede")
@click.argument("older")
@click.argument("newer")
@common
def supersede_command(older: str, newer: str, home: str | None, project: str, as_json: bool) -> None:
    """Put the memory NEWER in the place of OLDER, which recall then no longer shows."""
    with open_cortex(home, project) as cortex:
        memory = cortex.memories.supersede(older, newer)
    if as_json:
        print_json(memory_as_dict(memory))
    else:
        click.echo(f"{memory.id[:SHORT_ID]} is superseded by {(memory.superseded_by or '')[:SHORT_ID]}.")


@click.command("doctor")
@common
def doctor_command(home: str | None, project: str, as_json: bool) -> None:
    """Check the store and the model, and tell what would be sent to which other machine."""
    with open_cortex(home, project) as cortex:
        report = cortex.doctor()
    if as_json:
        print_json(report)
    else:
        rows = [(one.name, "ok" if one.well else "!", one.told) for one in report.checks]
        print_table(("", "", ""), rows, wide=2)
        for one in report.outbound:
            click.echo(f"Sends {one.what} to {one.host} ({one.purpose}).")
        if not report.outbound:
            click.echo("Nothing is sent to any other machine.")
    if not all(one.well for one in report.checks):
        raise SystemExit(7)
