"""Commands that look after the store: status, gc, reindex."""

from __future__ import annotations

import click

from ..memory.hygiene import Finding
from .options import common, open_cortex
from .show import SHORT_ID, print_json, print_table, progress_bar

__all__ = ["gc_command", "reindex_command", "status_command"]


@click.command("status")
@common
def status_command(home: str | None, project: str, as_json: bool) -> None:
    """Show what the memory holds here."""
    with open_cortex(home, project) as cortex:
        status = cortex.memories.status()
    if as_json:
        print_json(status)
        return
    rows = [
        ("project", f"{status.project_name} ({status.project_id})"),
        ("path", status.path or "-"),
        ("git branch", status.branch or "-"),
        ("memories", str(status.total_count)),
        ("by namespace", ", ".join(f"{name} {count}" for name, count in status.namespace_counts.items()) or "-"),
        ("by status", ", ".join(f"{name} {count}" for name, count in status.status_counts.items()) or "-"),
        ("recent topics", ", ".join(status.recent_topics) or "-"),
        ("top tags", ", ".join(f"{tag} {count}" for tag, count in status.top_tags) or "-"),
        ("grounding", ", ".join(f"{name} {count}" for name, count in status.grounding_counts.items()) or "-"),
        ("store", f"{status.engine}, {status.size_bytes / 1e6:.1f} MB"),
        ("model", status.model or "none yet"),
        *(
            (f"{model} today", f"{calls} calls ({failed} failed), {asked:,} tokens asked, {answered:,} answered")
            for model, calls, asked, answered, failed in status.llm_use
        ),
    ]
    print_table(("", ""), rows, wide=1)


@click.command("gc")
@click.option("--dry-run", is_flag=True, help="Only tell what would happen.")
@click.option("--branch", help="Only this git branch.")
@click.option("--purge", is_flag=True, help="Remove tombstones for good.")
@click.option("--older-than", help="Purge only tombstones of this age, such as 30d.")
@click.option("--suggest", is_flag=True, help="Only report what could be tidied up, with the command for it.")
@common
def gc_command(
    dry_run: bool,
    branch: str | None,
    purge: bool,
    older_than: str | None,
    suggest: bool,
    home: str | None,
    project: str,
    as_json: bool,
) -> None:
    """Collect memories of deleted git branches and expired ones; with --purge remove tombstones."""
    with open_cortex(home, project) as cortex:
        if suggest:
            _print_findings(cortex.memories.suggest(), as_json=as_json)
            return
        result = cortex.memories.gc(dry_run=dry_run, branch=branch, purge=purge, older_than=older_than)
    if as_json:
        print_json(result)
        return
    click.echo(f"Stale branches: {', '.join(result.stale_branches) or 'none'}")
    click.echo(
        f"{'Would delete' if dry_run else 'Deleted'} {result.tombstoned} ({result.expired} expired), "
        f"{'would purge' if dry_run else 'purged'} {result.purged}."
    )


def _print_findings(found: list[Finding], *, as_json: bool) -> None:
    if as_json:
        print_json(found)
        return
    for one in found:
        # In lines of their own: a table would cut the commands where the window is narrow.
        ids = ", ".join(id[:SHORT_ID] for id in one.memories)
        click.secho(f"{one.trouble}  {ids}", bold=True)
        click.echo(f"  {one.reason}")
        click.echo(f"  {one.remedy}")
    click.echo(f"{len(found)} suggestions; nothing was changed.")


@click.command("reindex")
@click.option("--repo", type=click.Path(), help="Only the memories of the project in this folder.")
@common
def reindex_command(repo: str | None, home: str | None, project: str, as_json: bool) -> None:
    """Rebuild the text index and the vectors of the whole store with the configured model."""
    with open_cortex(home, project) as cortex, progress_bar("Reindexing", hidden=as_json) as progress:
        project_id = cortex.contexts.project_at(repo).id if repo else None
        result = cortex.memories.reindex(project_id=project_id, progress=progress)
    if as_json:
        print_json({"indexed": result.indexed, "duration_ms": result.duration_ms, "status": "success"})
    else:
        click.echo(f"Indexed {result.indexed} memories in {result.duration_ms / 1000:.1f} s.")
