"""`cortex export` and `cortex import`: everything as plain files, and back."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import fields
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ....core.errors import NotFound
from ....core.memory.recall.filters import parse_moment
from ....core.records import DOMAINS, Domain
from ..options import CommandSession, command, with_session
from ..output import counted, print_json, print_table, say, stdout_bytes
from ..progress import watched

if TYPE_CHECKING:
    from ....app import Cortex
    from ....parts.backup.transfer.importer import ImportResult
    from ....parts.backup.transfer.intake import SourceSummary
    from ....parts.backup.transfer.readers.discovery import Discovery

__all__ = ["export_command", "import_command"]

_CONFLICT_CODE = 6
_SHOWN = 20
# What people know by name; the rest is what was learned from use.
_KINDS = {
    "memory": "memory",
    "turn": "turn",
    "branch": "line of work",
    "saved": "saved text",
    "entity": "entity",
    "relationship": "relationship",
    "mention": "mention",
}


@command("export")
@click.option(
    "--format", type=click.Choice(["jsonl", "markdown", "server-memory", "mem0"]), default="jsonl", show_default=True
)
@click.option("-o", "--output", default="-", show_default=True, help="File, or for Markdown a new folder; - prints.")
@click.option("--domain", "domains", type=click.Choice(DOMAINS), multiple=True, help="Repeat; all where left out.")
@with_session
def export_command(format: str, output: str, domains: tuple[Domain, ...], session: CommandSession) -> None:
    """Write everything as JSON Lines, texts as Markdown, or memories for the MCP memory server or mem0."""
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
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path))
@click.option("--from", "kind", help="What wrote the files; by their content where left out.")
@click.option("--discover", is_flag=True, help="List what this machine has, and ask which to take.")
@click.option("--report", is_flag=True, help="Show what came of the last import.")
@click.option("--since", help="Only records from then on: 30d, 2026-01-31.")
@click.option("--folder", help="Only records of this project folder.")
@click.option("--limit", type=click.IntRange(min=1), help="At most so many new records.")
@click.option("--field", "fields", multiple=True, help="NAME=FIELD: which field holds the content, tags, ... Repeat.")
@click.option("--domain", type=click.Choice(DOMAINS), help="Take only this of exports; plain memories go there.")
@click.option("--replace", is_flag=True, help="Replace what is here and differs.")
@click.option("--dry-run", is_flag=True, help="Only tell what would happen.")
@with_session
def import_command(
    paths: tuple[Path, ...],
    kind: str | None,
    discover: bool,
    report: bool,
    since: str | None,
    folder: str | None,
    limit: int | None,
    fields: tuple[str, ...],
    domain: Domain | None,
    replace: bool,
    dry_run: bool,
    session: CommandSession,
) -> None:
    """Add exports, sessions and chats, instructions, notes and tables of other programs; exit code 6 for conflicts."""
    if bool(paths) + discover + report != 1:
        raise click.UsageError("Give either files and folders, or --discover, or --report.")
    if report:
        _show_report(session)
        return
    moment = None if since is None else parse_moment(since, now=datetime.now(UTC))
    missing = [path for path in paths if not os.path.exists(path)]  # noqa: PTH110  # no name is too odd for it
    if missing and len(missing) == len(paths):
        raise click.UsageError(f"{', '.join(map(str, missing))}: there is no such file or folder.")
    with session.open(needs_model=True) as cortex:
        if discover:
            paths = _chosen(cortex, session)
            if not paths:
                return
        with watched("Importing", "documents", session):
            done = cortex.backups.import_from(
                [path for path in paths if path not in missing],
                kind=kind,
                fields=dict(map(_field, fields)),
                since=moment,
                folder=None if folder is None else Path(folder).absolute(),
                limit=limit,
                domain=domain,
                replace=replace,
                dry_run=dry_run,
            )
        done.left_out[:0] = [f"{path}: there is no such file or folder" for path in missing]
        if session.as_json:
            print_json(done)
        else:
            _print_summary(done)
            if not dry_run:
                _say_what_waits(cortex)
    # Not click's `Exit`: in the mode in which the group runs, that is only a return value.
    if missing:
        sys.exit(click.UsageError.exit_code)
    if done.conflicts:
        sys.exit(_CONFLICT_CODE)


def _say_what_waits(cortex: Cortex) -> None:
    """Read the new turns for a short time, and say how many sentences wait for a review."""
    so_far = " so far" if cortex.review.read().more else ""
    if waiting := cortex.memories.status().status_counts.get("pending", 0):
        say(f"to be reviewed: {counted(waiting, 'sentence')}{so_far}; see them with: cortex review")


def _show_report(session: CommandSession) -> None:
    with session.open() as cortex:
        found = cortex.backups.last_import()
    if found is None:
        raise NotFound(
            "Nothing was imported into this project yet.", remedy="See what there is: cortex import --discover"
        )
    if session.as_json:
        print_json(found[1])
    else:
        say(f"The import of {found[0]:%Y-%m-%d %H:%M} UTC:")
        _print_summary(found[1], shown=None)


def _field(text: str) -> tuple[str, str]:
    name, equals, field = text.partition("=")
    if not equals or not name or not field:
        raise click.UsageError("Give --field as NAME=FIELD, for example content=text.")
    return name, field


def _chosen(cortex: Cortex, session: CommandSession) -> tuple[Path, ...]:
    """Show what can be imported; the paths that a person at a terminal chooses."""
    found = cortex.backups.discover()
    if session.as_json:
        print_json(found)
        return ()
    rows = [
        (
            str(n),
            one.kind,
            str(len(one.paths)),
            _size(one.size_bytes),
            _days(one),
            one.folder,
        )
        for n, one in enumerate(found, start=1)
    ]
    print_table(("", "kind", "files", "size", "days", "folder"), rows, wide=(5,), empty="Nothing to import was found.")
    if not found or session.quiet or not (sys.stdin.isatty() and sys.stdout.isatty()):
        return ()
    asked = "Import which? Numbers, all or none"
    words = str(click.prompt(asked, default="none", err=True)).replace(",", " ").split()
    if "all" in words:
        return tuple(path for one in found for path in one.paths)
    numbers = [int(word) for word in words if word.isdecimal() and 1 <= int(word) <= len(found)]
    return tuple(path for number in numbers for path in found[number - 1].paths)


def _size(count: int) -> str:
    return f"{count / 1e6:.1f} MB" if count >= 100_000 else f"{count / 1e3:.1f} KB"


def _days(one: Discovery | SourceSummary) -> str:
    if one.first is None or one.last is None:
        return ""
    days = (f"{one.first:%Y-%m-%d}", f"{one.last:%Y-%m-%d}")
    return days[0] if days[0] == days[1] else " to ".join(days)


def _print_summary(done: ImportResult, shown: int | None = _SHOWN) -> None:
    would = "would be " if done.dry_run else ""
    if done.sources:
        rows = [
            (one.kind, one.project, *map(str, (one.files, one.added, one.changed, one.known, one.skipped)),
             _days(one))
            for one in done.sources
        ]  # fmt: skip
        columns = ("kind", "project", "files", "new", "changed", "known", "left out", "days")
        print_table(columns, rows, wide=(1,), empty="")
    say(f"{would}added: {_counted(done.added)}")
    if done.replaced:
        say(f"{would}replaced: {_counted(done.replaced)}")
    say(f"already here: {done.unchanged + done.kept}")
    if done.redacted:
        say(f"secrets {would}taken out of: {done.redacted}")
    for conflict in done.conflicts[:shown]:
        say(f"conflict: {conflict.kind} {conflict.key} ({conflict.place}): {conflict.reason}", err=True)
    left_out = done.left_out if shown is None else _together(done.left_out)
    for line in (*(f"left out: {one}" for one in left_out[:shown]), *done.notes):
        say(line, err=True)
    for line in done.gone[:shown]:
        say(f"no longer in its source: {line}", err=True)
    lists = (done.gone, done.conflicts, left_out)
    if more := 0 if shown is None else sum(max(0, len(one) - shown) for one in lists):
        say(f"… and {more} more; --json shows all{'' if done.dry_run else ', cortex import --report too'}.", err=True)


def _together(lines: Sequence[str]) -> list[str]:
    """Lines with the same reason as one, from the third on."""
    by_reason: dict[str, list[str]] = {}
    for line in lines:
        by_reason.setdefault(line.rpartition(": ")[2], []).append(line)
    shown = []
    for same in by_reason.values():
        shown += [*same[:2], *([f"… and {len(same) - 2:,} more like this"] if len(same) > 2 else [])]
    return shown


def _counted(documents: Mapping[str, int]) -> str:
    named = [counted(documents[kind], word) for kind, word in _KINDS.items() if documents.get(kind)]
    others = sum(count for kind, count in documents.items() if kind not in _KINDS)
    return ", ".join([*named, *([counted(others, "other record")] if others else [])]) or "nothing"
