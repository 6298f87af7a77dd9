"""`cortex branch …`: lines of work, their files, and their git branches."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ..clock import iso
from .options import common, open_cortex, read_text
from .show import memory_as_dict, print_json, print_table

if TYPE_CHECKING:
    from ..records import Branch

__all__ = ["branch_command"]

_ACTIVE = "active"


@click.group("branch")
def branch_command() -> None:
    """Lines of work: begin, resume, link to git branches, edit as files.

    BRANCH is an id, or "active" for the one linked to the git branch that is checked out.
    """


@branch_command.command("list")
@common
def list_command(home: str | None, project: str, as_json: bool) -> None:
    """List the lines of work of the project; * marks the active one."""
    with open_cortex(home, project) as cortex:
        branches = cortex.contexts.branches()
        active = cortex.contexts.active()
    if as_json:
        print_json({"branches": branches, "active": active.id if active else None})
        return
    rows = [
        ("*" if active and one.id == active.id else "", one.id, one.topic, one.git_branch or "-", one.parent_id or "-")
        for one in branches
    ]
    print_table(("", "id", "topic", "git branch", "parent"), rows, wide=2)


@branch_command.command("create")
@click.argument("topic")
@click.option("--parent", help="Id of the line of work it grows from.")
@click.option("--git-branch", help="Git branch to link it to.")
@common
def create_command(
    topic: str, parent: str | None, git_branch: str | None, home: str | None, project: str, as_json: bool
) -> None:
    """Begin a line of work on TOPIC."""
    with open_cortex(home, project) as cortex:
        branch = cortex.contexts.create_branch(topic, parent_id=parent, git_branch=git_branch)
        check = cortex.contexts.check_branch(branch.id)
    if as_json:
        print_json({**_fields(branch), "path": str(check.path), "verified": check.verified})
        return
    click.echo(branch.id)
    click.echo(f"{check.path}{'' if check.verified else ' (not verified)'}", err=True)


@branch_command.command("add")
@click.argument("branch")
@click.argument("content", required=False)
@click.option("--role", type=click.Choice(["user", "assistant"]), default="user", show_default=True)
@common
def add_command(branch: str, content: str | None, role: str, home: str | None, project: str, as_json: bool) -> None:
    """Add CONTENT (or standard input) to a line of work."""
    with open_cortex(home, project) as cortex:
        added = cortex.contexts.append(branch, read_text(content), role)
    if as_json:
        print_json({"task_id": added.task_id, **memory_as_dict(added.memory)})
    else:
        click.echo(f"{added.memory.id}  {added.memory.category}")


@branch_command.command("summary")
@click.argument("branch", default=_ACTIVE)
@click.option("--max-tokens", type=int, help="Fit the answer into this many tokens.")
@click.option("--content", "with_content", is_flag=True, help="Show the newest entries too.")
@common
def summary_command(
    branch: str, max_tokens: int | None, with_content: bool, home: str | None, project: str, as_json: bool
) -> None:
    """Show what a line of work is about and where it stands."""
    with open_cortex(home, project) as cortex:
        found = cortex.contexts.resume(branch, max_tokens=max_tokens)
    summary = found.summary
    if as_json:
        print_json(
            {
                **_fields(summary.branch),
                "summary": summary.summary.text,
                "sections": summary.summary.sections,
                "left_out": summary.summary.left_out,
                "entries": summary.entries,
                "last_updated": iso(summary.last_updated),
                "content": found.content,
            }
        )
        return
    click.echo(summary.summary.text)
    if with_content:
        click.echo(f"\n{found.content}")


@branch_command.command("show")
@click.argument("branch", default=_ACTIVE)
@common
def show_command(branch: str, home: str | None, project: str, as_json: bool) -> None:
    """Show every entry of a line of work."""
    with open_cortex(home, project) as cortex:
        found = cortex.contexts.get_branch(branch)
        entries = cortex.contexts.content(found.id)
    if as_json:
        print_json({**_fields(found), "entries": [memory_as_dict(one) for one in entries]})
        return
    for one in entries:
        click.secho(f"{iso(one.created_at)}  {one.role or 'note'}  {one.category or '-'}  {one.id}", bold=True)
        click.echo(f"{one.content}\n")


@branch_command.command("link")
@click.argument("branch")
@click.argument("git_branch")
@common
def link_command(branch: str, git_branch: str, home: str | None, project: str, as_json: bool) -> None:
    """Make BRANCH the active one whenever GIT_BRANCH is checked out."""
    with open_cortex(home, project) as cortex:
        link = cortex.contexts.link(branch, git_branch)
    if as_json:
        print_json({**_fields(link.branch), "released": link.released, "git_branch_exists": link.exists})
        return
    click.echo(f"{link.branch.id} follows {git_branch}{'' if link.exists else ', which does not exist yet'}.")
    for released in link.released:
        click.echo(f"{released} no longer does.")


@branch_command.command("current")
@click.option("--quiet", is_flag=True, help="Say nothing when no line of work is active.")
@common
def current_command(quiet: bool, home: str | None, project: str, as_json: bool) -> None:
    """Show the line of work that belongs to the git branch checked out now."""
    with open_cortex(home, project) as cortex:
        active = cortex.contexts.active()
    if as_json:
        print_json(_fields(active) if active else None)
    elif active:
        click.echo(f"{active.id}  {active.topic}")
    elif not quiet:
        click.echo("No line of work is linked to this git branch.")


@branch_command.command("sync")
@click.argument("branch", required=False)
@common
def sync_command(branch: str | None, home: str | None, project: str, as_json: bool) -> None:
    """Take in what was edited in branch files: of BRANCH, or of all.

    Where both the file and the store changed, both texts are kept; yours gets the tag "conflict".
    """
    with open_cortex(home, project) as cortex:
        ids = [branch] if branch else [one.id for one in cortex.contexts.branches()]
        done = {one: cortex.contexts.sync(one) for one in ids}
    if as_json:
        print_json(done)
        return
    for one, synced in done.items():
        if synced or branch:
            click.echo(
                f"{one}: {synced.updated} changed, {synced.added} added, {synced.removed} removed, "
                f"{synced.conflicts} kept beside a newer version"
            )


@branch_command.command("graph")
@click.argument("branch", required=False)
@common
def graph_command(branch: str | None, home: str | None, project: str, as_json: bool) -> None:
    """Show how contexts hang together, and which hang on nothing."""
    with open_cortex(home, project) as cortex:
        graph = cortex.contexts.graph(branch)
    if as_json:
        print_json(graph)
        return
    labels = {node.id: node.label for node in graph.nodes}
    rows = [(edge.kind, f"{edge.weight:.2f}", labels[edge.source], labels[edge.target]) for edge in graph.edges]
    print_table(("relation", "weight", "from", "to"), rows, wide=2)
    click.echo(f"{graph.total_nodes} nodes, {len(graph.edges)} edges, {len(graph.orphans)} orphans")


@branch_command.command("hook")
@click.argument("action", type=click.Choice(["install", "remove", "status"]))
@click.option("--shared", is_flag=True, help="Also where one hooks folder serves several repositories.")
@common
def hook_command(action: str, shared: bool, home: str | None, project: str, as_json: bool) -> None:
    """Install or remove a post-checkout hook that has the memory follow git right after each checkout.

    Nothing depends on the hook: every call follows git by itself.
    """
    from ..worktree.checkout_hook import install, installed, remove

    with open_cortex(home, project) as cortex:
        repository = cortex.contexts.repository()
    told: dict[str, object] = {"action": action}
    if action == "install":
        told["path"] = str(install(repository, _hook_command(), shared=shared).path)
    elif action == "remove":
        told["removed"] = remove(repository)
    else:
        path = installed(repository)
        told["path"] = str(path) if path else None
    if as_json:
        print_json(told)
    else:
        click.echo(", ".join(f"{name}: {value}" for name, value in told.items()))


@branch_command.command("arrived", hidden=True)
@click.argument("checkout", nargs=-1, expose_value=False)
@common
def arrived_command(home: str | None, project: str, as_json: bool) -> None:
    """Follow git to where it stands; the hook runs this, and what git tells the hook is not needed."""
    with open_cortex(home, project) as cortex:
        active = cortex.contexts.active()
    if as_json:
        print_json({"active": active.id if active else None})


def _hook_command() -> list[str]:
    import shutil
    import sys

    found = shutil.which("cortex")
    start = [found] if found else [sys.executable, "-m", "cortex_py"]
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
