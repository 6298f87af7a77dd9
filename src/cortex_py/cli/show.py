"""How results look on a terminal, and as JSON. Colours and tables only where a person reads."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, fields, is_dataclass
from datetime import datetime
from typing import TYPE_CHECKING

import click

from ..clock import iso
from ..ids import memory_uri, memory_urn
from ..records import Hit, Memory

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["console", "hit_as_dict", "memory_as_dict", "print_json", "print_memory", "print_table", "progress_bar"]

SHORT_ID = 12


def console() -> Console:
    from rich.console import Console

    return Console(highlight=False, soft_wrap=False)


def print_json(value: object) -> None:
    click.echo(json.dumps(_plain(value), ensure_ascii=False, indent=2))


def _plain(value: object) -> object:
    """A result as JSON can hold it: what has named fields becomes an object, at any depth."""
    if isinstance(value, datetime):
        return iso(value)
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return _plain(value._asdict())
    if isinstance(value, frozenset | set):
        return [_plain(item) for item in sorted(value)]
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value


def memory_as_dict(memory: Memory) -> dict[str, object]:
    """A memory for JSON: its fields without the empty ones, and its addresses."""
    filled = {name: value for name, value in asdict(memory).items() if value not in (None, (), [])}
    filled.setdefault("tags", ())
    return {
        **filled,
        "urn": memory_urn(memory.domain, memory.namespace, memory.id),
        "uri": memory_uri(memory.id),
    }


def hit_as_dict(hit: Hit) -> dict[str, object]:
    return {**memory_as_dict(hit.memory), "score": round(hit.score, 4), "snippet": hit.snippet}


def print_memory(memory: Memory) -> None:
    from rich.markup import escape

    out = console()
    out.print(f"[bold]{memory.id}[/bold]  [cyan]{memory.namespace}[/cyan]  {iso(memory.created_at)}")
    facts = {
        "tags": ", ".join(memory.tags),
        "source": memory.source,
        "branch": memory.branch_id or memory.git_branch,
        "status": None if memory.status == "active" else memory.status,
        "version": None if memory.version == 1 else memory.version,
        "expires": memory.expires_at and iso(memory.expires_at),
        "duplicate of": memory.duplicate_of,
        "superseded by": memory.superseded_by,
        "grounding": None if memory.grounding is None else f"{memory.grounding:.2f}",
        "redacted": ", ".join(memory.redactions),
    }
    for name, value in facts.items():
        if value:
            out.print(f"[dim]{name}:[/dim] {escape(str(value))}")
    out.print()
    click.echo(memory.content)


def print_table(columns: Sequence[str], rows: Sequence[Sequence[str]], wide: int | Sequence[int] = ()) -> None:
    """A table; `wide` are the columns that share the remaining width."""
    from rich.markup import escape
    from rich.table import Table

    flowing = (wide,) if isinstance(wide, int) else wide
    table = Table(box=None, header_style="bold", pad_edge=False)
    for number, name in enumerate(columns):
        table.add_column(name, overflow="fold", no_wrap=number not in flowing, ratio=1 if number in flowing else None)
    for row in rows:
        table.add_row(*(escape(cell) for cell in row))
    console().print(table)


@contextmanager
def progress_bar(label: str, *, hidden: bool = False) -> Iterator[Callable[[int, int], None] | None]:
    """A bar for long work when a person watches; nothing otherwise."""
    if hidden or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn(label), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(label, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
