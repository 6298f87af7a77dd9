"""`cortex init` and `cortex model`: prepare a project, and show the embedding model."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

import click

from ...core.config import load_settings
from ...core.embedding.shipped_model import FORMER, MAX_TOKENS, RECALL, SHIPPED, read_manifest
from ...core.errors import EmbeddingError
from ...core.memory.spaces import model_problem
from ...parts.context.scan import SCAN_MODES, ScanMode
from .options import CommandSession, command, group, with_session
from .output import counted, note, print_table, say
from .progress import describe_seconds, progress_bar

if TYPE_CHECKING:
    from ...app import Cortex

__all__ = ["init_command", "model_command"]

_SAMPLE = "def total(order): return sum(line.price * line.count for line in order.lines)  # without tax\n" * 10
# Scanned at once; measuring would take longer.
_SAMPLE_BYTES = 50_000
_LONG_SECONDS = 60
# A second, where there is no model and only words are stored.
_WORDS_BYTES = 500_000.0


@command("init")
@click.option(
    "--mode",
    type=click.Choice(SCAN_MODES),
    default="light",
    show_default=True,
    help="light: README, entry points, configuration; full: all text files; none: no scan.",
)
@click.option("--background", is_flag=True, help="Leave the scan to the server of this project.")
@click.option("--new-store", is_flag=True, help="Begin an empty store, though the home had one that is gone.")
@click.option("--join", is_flag=True, help="Use the memories of the project that this folder names; only for your own.")
@with_session
def init_command(mode: ScanMode, background: bool, new_store: bool, join: bool, session: CommandSession) -> None:
    """Register the project and scan its files.

    A scan that was stopped goes on where it was; a repeated one reads only what changed.
    """
    with session.open(needs_model=True, new_store=new_store, join=join) as cortex:
        if cortex.contexts.apart:
            note(cortex.contexts.apart)
        elif join:
            held = counted(cortex.memories.status().total_count, "memory")
            note(f"This folder belongs to the project {cortex.project.name} ({cortex.project.id}), which has {held}.")
        problem = model_problem(cortex.backend)
        if mode == "full":
            background = background or _estimate(cortex, session)
        if background:
            cortex.contexts.request_scan(mode)
        with progress_bar("Scanning", hidden=session.as_json) as progress:
            scanned = cortex.contexts.initialize(mode="none" if background else mode, progress=progress)
        left = scanned.pending_vectors
        if left:
            note("All files are found by words now. Ctrl-C leaves the vectors that are missing to the next command.")
            with progress_bar("Embedding", hidden=session.as_json) as progress:
                cortex.memories.fill_vectors(progress=progress)
            left, _ = cortex.memories.files.pending_vectors()
        found = cortex.project
        report = {
            "project_id": found.id,
            "name": found.name,
            "root": found.root,
            "remote": found.remote,
            "home": str(cortex.settings.home),
            "model_installed": problem is None,
            "model": None if problem else cortex.backend.fingerprint,
            "mode": mode,
            "background": background,
            "files_scanned": scanned.files_scanned,
            "files_changed": scanned.files_changed,
            "files_removed": scanned.files_removed,
            "contexts_created": scanned.contexts_created,
            "contexts_updated": scanned.contexts_updated,
            "left_out": scanned.left_out,
            "pending_vectors": left,
        }
    session.show(report, f"Project {found.name} ({found.id}) is ready; memories are kept in {report['home']}.")
    if background:
        note("A server of this project that runs begins the scan within a minute; else the next one does: cortex serve")
    elif mode != "none" and not session.as_json:
        say(
            f"Scanned {counted(scanned.files_scanned, 'file')}: {scanned.files_changed} new or changed, "
            f"{counted(scanned.contexts_created, 'context')} created, {scanned.contexts_updated} updated."
        )


def _estimate(cortex: Cortex, session: CommandSession) -> bool:
    """Say how long a full scan will take; whether a person wants to leave a long one to the server."""
    found = cortex.contexts.estimate_scan("full")
    seconds = found.size_bytes / _bytes_a_second(cortex) if found.size_bytes > _SAMPLE_BYTES else 0
    if session.as_json or not found.files:
        return False
    size = f"{found.size_bytes / 1e6:.1f} MB"
    note(
        f"A full scan reads {counted(found.files, 'file')} ({size}), about {describe_seconds(seconds)}. "
        "Ctrl-C stops it; repeated, it goes on where it was."
    )
    if seconds < _LONG_SECONDS or session.quiet or not (sys.stdin.isatty() and sys.stdout.isatty()):
        return False
    asked = "Scan now, or leave it to the server of this project?"
    return str(click.prompt(asked, type=click.Choice(["now", "server"]), default="now", err=True)) == "server"


def _bytes_a_second(cortex: Cortex) -> float:
    """How much text this machine stores in a second, measured with a little of it: the model takes most of the time."""
    texts = [f"{number} {_SAMPLE}" for number in range(8)]
    try:
        cortex.backend.embed(texts[:1])
        begun = time.monotonic()
        cortex.backend.embed(texts)
    except EmbeddingError:
        return _WORDS_BYTES
    return sum(map(len, texts)) / max(1e-3, time.monotonic() - begun)


@group("model")
def model_command() -> None:
    """Show the embedding model."""


@model_command.command("install", hidden=True)
@click.option("--precision", expose_value=False)
@click.option("--wheel", expose_value=False)
def model_install() -> None:
    """Deprecated: say that nothing is to be installed. Scripts of earlier versions call it."""
    note(f"{RECALL} comes with Cortex: there is nothing to install. {FORMER} is no longer offered.")


@model_command.command("info")
@with_session
def model_info(session: CommandSession) -> None:
    """Show the model that comes with Cortex; loads nothing."""
    settings = load_settings(session.home)
    manifest = read_manifest()
    used = settings.embedding_model in (None, RECALL)
    if session.shown_as_json(
        {
            "installed": used,
            "precision": manifest.precision,
            "name": manifest.name if used else None,
            "dimensions": manifest.dimensions if used else None,
            "max_tokens": MAX_TOKENS if used else None,
            "fingerprint": manifest.fingerprint if used else None,
            "folder": str(SHIPPED),
            "models": [{"name": manifest.name, "precision": manifest.precision}],
        }
    ):
        return
    folder = SHIPPED / manifest.name
    size = sum((folder / name).stat().st_size for name in ("int8.onnx", "vocab.txt"))
    row = (
        manifest.name,
        manifest.precision + (" (in use)" if used else ""),
        str(manifest.dimensions),
        f"{size / 1e6:.1f} MB",
        str(folder),
    )
    print_table(("model", "precision", "dimensions", "size", "folder"), [row], wide=4, empty="")
