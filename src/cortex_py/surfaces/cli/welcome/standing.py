"""`cortex` without a command: where you stand, and what to do next."""

from __future__ import annotations

from dataclasses import dataclass

from ....core.config import load_settings
from ....core.errors import ModelCorrupt, ModelMissing
from ....version import __version__
from ..options import CommandSession
from ..output import print_table, say

__all__ = ["show_standing"]


@dataclass(frozen=True, slots=True)
class _Standing:
    """What `cortex --json` prints. Nothing is known of a project before there is a store."""

    home: str
    project: str | None = None
    path: str | None = None
    git_branch: str | None = None
    memories: int = 0
    model: str | None = None
    line_of_work: str | None = None
    topic: str | None = None


def show_standing(session: CommandSession) -> None:
    standing = _look(session)
    steps = _next_steps(standing)
    if session.shown_as_json({"standing": standing, "next": [command for command, _ in steps]}):
        return
    say(f"Cortex {__version__}, memory for AI coding agents", bold=True)
    print_table(("", ""), _rows(standing), wide=1, empty="")
    say()
    say("What next", bold=True)
    print_table(("", ""), [(f"  {command}", text) for command, text in steps], wide=1, empty="")


def _look(session: CommandSession) -> _Standing:
    settings = load_settings(session.home)
    if not settings.database_url and not settings.database.exists():
        # Looking creates nothing.
        return _Standing(str(settings.home))
    with session.open() as cortex:
        status, active = cortex.memories.status(), cortex.contexts.active()
        try:
            model = cortex.backend.fingerprint
        except (ModelMissing, ModelCorrupt):
            model = None
    return _Standing(
        home=str(settings.home),
        project=status.project_name,
        path=status.path,
        git_branch=status.branch,
        memories=status.total_count,
        model=model,
        line_of_work=active.id if active else None,
        topic=active.topic if active else None,
    )


def _rows(standing: _Standing) -> list[tuple[str, str]]:
    if standing.project is None:
        return [("home", f"{standing.home} (nothing is stored there yet)")]
    git = f"none for the git branch {standing.git_branch}" if standing.git_branch else "none: no git branch here"
    return [
        ("project", f"{standing.project} in {standing.path or '-'}"),
        ("memories", f"{standing.memories:,}"),
        ("model", standing.model or "not installed: words are searched, not meanings"),
        ("line of work", f"{standing.topic} ({standing.line_of_work})" if standing.line_of_work else git),
        ("home", standing.home),
    ]


def _next_steps(standing: _Standing) -> list[tuple[str, str]]:
    """At most five commands, the most useful first."""
    steps = []
    if standing.project is None:
        steps += [("cortex tour", "see in a minute how it works"), ("cortex init", "prepare this project")]
    steps.append(("cortex capture 'We use PostgreSQL' -n decisions", "remember something"))
    if standing.memories:
        steps.append(("cortex recall 'which database'", "find it again"))
        if standing.git_branch and standing.line_of_work is None:
            command = f"cortex branch create TOPIC --git-branch {standing.git_branch}"
            steps.append((command, "begin a line of work here"))
    return [
        *steps,
        ("cortex install", "set up your AI clients"),
        ("cortex --help", "see all commands"),
    ]
