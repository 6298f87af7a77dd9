"""`cortex branch …`: lines of work, their files, and their git branches."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from ...core.clock import iso
from ...core.errors import BranchNotFound
from .input import read_text
from .options import CommandSession, group, with_session
from .output import counted, memory_as_dict, note, page, print_json, print_table, say, verdict_colour

if TYPE_CHECKING:
    from ...app import Cortex
    from ...core.records import Branch

__all__ = ["branch_command"]

_ACTIVE = "active"


@group("branch")
def branch_command() -> None:
    """Lines of work: begin, resume, link to git branches, edit as files.

    BRANCH is an id, or "active" for the one linked to the git branch that is checked out.
    """


@branch_command.command("list")
@with_session
def list_command(session: CommandSession) -> None:
    """List the lines of work of the project; * marks the active one."""
    with session.open() as cortex:
        branches = cortex.contexts.branches()
        active = cortex.contexts.active()
    if session.shown_as_json({"branches": branches, "active": active.id if active else None}):
        return
    rows = [
        ("*" if active and one.id == active.id else "", one.id, one.topic, one.git_branch or "-", one.parent_id or "-")
        for one in branches
    ]
    print_table(
        ("", "id", "topic", "git branch", "parent"),
        rows,
        wide=2,
        empty="There is no line of work yet. Begin one: cortex branch create TOPIC",
    )


@branch_command.command("create")
@click.argument("topic")
@click.option("--parent", help="Id of the line of work it grows from.")
@click.option("--git-branch", help="Git branch to link it to; HEAD is the one checked out.")
@with_session
def create_command(topic: str, parent: str | None, git_branch: str | None, session: CommandSession) -> None:
    """Begin a line of work on TOPIC."""
    with session.open() as cortex:
        branch = cortex.contexts.create_branch(topic, parent_id=parent, git_branch=git_branch)
        check = cortex.contexts.check_branch(branch.id)
    if session.shown_as_json({**_fields(branch), "path": str(check.path), "verified": check.verified}):
        return
    say(branch.id)
    note(f"{check.path}{'' if check.verified else ' (not verified)'}")


@branch_command.command("add")
@click.argument("branch")
@click.argument("content", required=False)
@click.option("--role", type=click.Choice(["user", "assistant"]), default="user", show_default=True)
@with_session
def add_command(branch: str, content: str | None, role: str, session: CommandSession) -> None:
    """Add CONTENT (or standard input) to a line of work; an assistant's is checked against the project."""
    with session.open(needs_model=True) as cortex, _commands_that_help(cortex, branch):
        added = cortex.contexts.append(branch, read_text(content), role)
    found = added.verification
    checked = found and {"status": found.status, "grounding_score": found.score, "message": found.message}
    if session.as_json:
        entry = {"task_id": added.task_id, **memory_as_dict(added.memory)}
        print_json(entry | {"verification": checked, "unchecked": added.unchecked or None})
        return
    say(f"{added.memory.id}  {added.memory.category}")
    if found is not None:
        say(f"{found.status}  {found.score:.2f}  {found.message}", fg=verdict_colour(found.status))
    elif added.unchecked:
        note(f"Not checked: {added.unchecked}")


@branch_command.command("summary")
@click.argument("branch", default=_ACTIVE)
@click.option("--max-tokens", type=int, help="Fit the answer into this many tokens.")
@click.option("--content", "with_content", is_flag=True, help="Show the newest entries too.")
@with_session
def summary_command(branch: str, max_tokens: int | None, with_content: bool, session: CommandSession) -> None:
    """Show what a line of work is about and where it stands."""
    with session.open() as cortex, _commands_that_help(cortex, branch):
        found = cortex.contexts.resume(branch, max_tokens=max_tokens)
    summary = found.summary
    if session.shown_as_json(
        {
            **_fields(summary.branch),
            "summary": summary.summary.text,
            "sections": summary.summary.sections,
            "left_out": summary.summary.left_out,
            "entries": summary.entries,
            "last_updated": iso(summary.last_updated),
            "content": found.content,
        }
    ):
        return
    page(f"{summary.summary.text}\n\n{found.content}" if with_content else summary.summary.text)


@branch_command.command("show")
@click.argument("branch", default=_ACTIVE)
@with_session
def show_command(branch: str, session: CommandSession) -> None:
    """Show every entry of a line of work."""
    with session.open() as cortex, _commands_that_help(cortex, branch):
        found = cortex.contexts.get_branch(branch)
        entries = cortex.contexts.content(found.id)
    if session.shown_as_json({**_fields(found), "entries": [memory_as_dict(one) for one in entries]}):
        return
    if not entries:
        note("There is no entry yet. Add one: cortex branch add BRANCH TEXT")
        return
    heads = [f"{iso(one.created_at)}  {one.role or 'note'}  {one.category or '-'}  {one.id}" for one in entries]
    page("\n\n".join(f"{head}\n{one.content}" for head, one in zip(heads, entries, strict=True)))


@branch_command.command("link")
@click.argument("branch")
@click.argument("git_branch")
@with_session
def link_command(branch: str, git_branch: str, session: CommandSession) -> None:
    """Make BRANCH the active one whenever GIT_BRANCH (HEAD: the current one) is checked out."""
    with session.open() as cortex:
        link = cortex.contexts.link(branch, git_branch)
    if session.shown_as_json({**_fields(link.branch), "released": link.released, "git_branch_exists": link.exists}):
        return
    say(f"{link.branch.id} follows {link.branch.git_branch}{'' if link.exists else ', which does not exist yet'}.")
    for released in link.released:
        say(f"{released} no longer does.")


@branch_command.command("current")
@with_session
def current_command(session: CommandSession) -> None:
    """Show the line of work that belongs to the git branch checked out now; with --quiet nothing where none does."""
    with session.open() as cortex:
        active = cortex.contexts.active()
    if session.as_json:
        print_json(_fields(active) if active else None)
    elif active:
        say(f"{active.id}  {active.topic}")
    elif not session.quiet:
        say("No line of work is linked to this git branch.")


@branch_command.command("sync")
@click.argument("branch", required=False)
@with_session
def sync_command(branch: str | None, session: CommandSession) -> None:
    """Take in what was edited in branch files: of BRANCH, or of all.

    Where both the file and the store changed, both texts are kept; yours gets the tag "conflict".
    """
    with session.open() as cortex:
        ids = [branch] if branch else [one.id for one in cortex.contexts.branches()]
        done = {one: cortex.contexts.sync(one) for one in ids}
    if session.shown_as_json(done):
        return
    for one, synced in done.items():
        if synced or branch:
            say(
                f"{one}: {synced.updated} changed, {synced.added} added, {synced.removed} removed, "
                f"{synced.conflicts} kept beside a newer version"
            )


@branch_command.command("graph")
@click.argument("branch", required=False)
@with_session
def graph_command(branch: str | None, session: CommandSession) -> None:
    """Show how contexts are related, and which are related to nothing."""
    with session.open() as cortex:
        graph = cortex.contexts.graph(branch)
    if session.shown_as_json(graph):
        return
    labels = {node.id: node.label for node in graph.nodes}
    rows = [(edge.kind, f"{edge.weight:.2f}", labels[edge.source], labels[edge.target]) for edge in graph.edges]
    print_table(("relation", "weight", "from", "to"), rows, wide=(2, 3), empty="No context is related to another.")
    counts = (
        counted(graph.total_nodes, "node"),
        counted(len(graph.edges), "edge"),
        counted(len(graph.orphans), "orphan"),
    )
    note(", ".join(counts))


@branch_command.command("hook")
@click.argument("action", type=click.Choice(["install", "remove", "status"]))
@click.option("--shared", is_flag=True, help="Also where one hooks folder serves several repositories.")
@with_session
def hook_command(action: str, shared: bool, session: CommandSession) -> None:
    """Install or remove a post-checkout hook, with which the memory follows git right after each checkout.

    Nothing depends on the hook: every call follows git by itself.
    """
    from ...worktree.git.checkout_hook import find_hook, install_hook, remove_hook

    with session.open() as cortex:
        repository = cortex.contexts.repository()
    report: dict[str, object] = {"action": action}
    if action == "install":
        report["path"] = str(install_hook(repository, _hook_command(), shared=shared).path)
    elif action == "remove":
        report["removed"] = remove_hook(repository)
    else:
        path = find_hook(repository)
        report["path"] = str(path) if path else None
    session.show(report, ", ".join(f"{name}: {value}" for name, value in report.items()))


@branch_command.command("arrived", hidden=True)
@click.argument("checkout", nargs=-1, expose_value=False)
@with_session
def arrived_command(session: CommandSession) -> None:
    """Follow git to what is checked out. The hook runs this; git's arguments to the hook are ignored."""
    with session.open() as cortex:
        active = cortex.contexts.active()
    if session.as_json:
        print_json({"active": active.id if active else None})


@contextmanager
def _commands_that_help(cortex: Cortex, branch: str) -> Iterator[None]:
    """Where no line of work is active, say how there will be one."""
    try:
        yield
    except BranchNotFound:
        if branch.strip().lower() != _ACTIVE:
            raise
        here = cortex.memories.status().branch
        where = f"the git branch {here}" if here else "what is checked out here"
        new = f"cortex branch create TOPIC --git-branch {here or 'GIT_BRANCH'}"
        known = f"cortex branch link BRANCH {here or 'GIT_BRANCH'}"
        raise BranchNotFound(
            f"No line of work is linked to {where}.",
            remedy=f"Begin one: {new}. Link one that `cortex branch list` shows: {known}.",
            field="branch",
        ) from None


def _hook_command() -> list[str]:
    import sys

    from ...core.paths import find_program

    found = find_program("cortex")
    # git runs the hook in the repository, which may have a folder `cortex_py`.
    start = [found] if found else [sys.executable, "-P", "-m", "cortex_py"]
    return [*start, "branch", "arrived"]


def _fields(branch: Branch) -> dict[str, object]:
    return {
        "branch_id": branch.id,
        "project_id": branch.project_id,
        "topic": branch.topic,
        "parent_id": branch.parent_id,
        "git_branch": branch.git_branch,
        "status": branch.status,
        "created_at": iso(branch.created_at),
    }
