"""`cortex org`, `group` and `grant`: organisations of a shared server, their members, and who may do what."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ..options import CommandSession, group, with_session

if TYPE_CHECKING:
    from ....app import Cortex
    from ....team.access.tenants import Grant, Group

__all__ = ["grant_command", "group_command", "org_command"]

_LEVELS = ("read", "write", "admin")

_org_option = click.option("--org", help="The organisation (default: that of the settings).")
_level_option = click.option("--level", type=click.Choice(_LEVELS), default="read", help="Each includes those before.")


@group("org")
def org_command() -> None:
    """Organisations and their members: create, list, members, join, leave, projects."""


@org_command.command("create")
@click.argument("name")
@with_session
def org_create(name: str, session: CommandSession) -> None:
    """Begin an organisation."""
    with session.open() as cortex:
        made = cortex.tenants.create(name)
    session.show(made, f"There is an organisation {made.name}.")


@org_command.command("list")
@with_session
def org_list(session: CommandSession) -> None:
    """Show all organisations."""
    with session.open() as cortex:
        found = cortex.tenants.list()
    session.show_table(
        found,
        ["name", "created"],
        [[one.name, f"{one.created_at:%Y-%m-%d}"] for one in found],
        empty="There is no organisation yet.",
    )


@org_command.command("members")
@_org_option
@with_session
def org_members(org: str | None, session: CommandSession) -> None:
    """Show who belongs to an organisation, and with which level."""
    with session.open() as cortex:
        found = cortex.tenants.members(org)
    rows = [[one.user, one.level, f"{one.since:%Y-%m-%d}"] for one in found]
    session.show_table(found, ["user", "level", "since"], rows, empty="Nobody is a member yet.")


@org_command.command("join")
@click.argument("user")
@_level_option
@_org_option
@with_session
def org_join(user: str, level: str, org: str | None, session: CommandSession) -> None:
    """Make a person a member, or give a member another level."""
    with session.open() as cortex:
        made = cortex.tenants.join(user, level, org=org)
    session.show(made, f"{made.user} is a member of {made.org} with the level {made.level}.")


@org_command.command("leave")
@click.argument("user")
@_org_option
@with_session
def org_leave(user: str, org: str | None, session: CommandSession) -> None:
    """End a membership, with the person's groups and grants; from the next request on."""
    with session.open() as cortex:
        gone = cortex.tenants.leave(user, org=org)
    session.show(gone, f"{gone.user} is no member of {gone.org} any more.")


@org_command.command("projects")
@_org_option
@with_session
def org_projects(org: str | None, session: CommandSession) -> None:
    """Show the projects of an organisation, and which are restricted."""
    with session.open() as cortex:
        found = cortex.tenants.projects(org)
    session.show_table(
        found,
        ["id", "name", "restricted"],
        [[one.id, one.name, _said(one.restricted)] for one in found],
        empty="It has no project yet.",
    )


def _said(restricted: bool) -> str:
    return "restricted" if restricted else ""


@group("group")
def group_command() -> None:
    """Groups of an organisation: create, list, add, remove, delete."""


@group_command.command("create")
@click.argument("name")
@_org_option
@with_session
def group_create(name: str, org: str | None, session: CommandSession) -> None:
    """Begin a group."""
    with session.open() as cortex:
        _show_group(cortex.tenants.create_group(name, org=org), session)


@group_command.command("list")
@_org_option
@with_session
def group_list(org: str | None, session: CommandSession) -> None:
    """Show all groups with their members."""
    with session.open() as cortex:
        found = cortex.tenants.groups(org)
    session.show_table(
        found,
        ["group", "members"],
        [[one.name, ", ".join(one.members)] for one in found],
        wide=(1,),
        empty="There is no group yet.",
    )


@group_command.command("add")
@click.argument("group")
@click.argument("user")
@_org_option
@with_session
def group_add(group: str, user: str, org: str | None, session: CommandSession) -> None:
    """Put a member of the organisation into a group."""
    with session.open() as cortex:
        _show_group(cortex.tenants.add_to_group(group, user, org=org), session)


@group_command.command("remove")
@click.argument("group")
@click.argument("user")
@_org_option
@with_session
def group_remove(group: str, user: str, org: str | None, session: CommandSession) -> None:
    """Take somebody out of a group."""
    with session.open() as cortex:
        _show_group(cortex.tenants.remove_from_group(group, user, org=org), session)


@group_command.command("delete")
@click.argument("name")
@_org_option
@with_session
def group_delete(name: str, org: str | None, session: CommandSession) -> None:
    """End a group, with all that it was granted."""
    with session.open() as cortex:
        gone = cortex.tenants.delete_group(name, org=org)
    session.show(gone, f"There is no group {gone.name} in {gone.org} any more.")


def _show_group(group: Group, session: CommandSession) -> None:
    session.show(group, f"{group.name} of {group.org}: {', '.join(group.members) or 'nobody'}.")


_F = TypeVar("_F", bound=Callable[..., Any])

_on_option = click.option("--on", help="The project by id, remote or name (default: the one of --project).")


def _to_options(command: _F) -> _F:
    user = click.option("--user", help="A member of the project's organisation.")
    return user(click.option("--group", help="A group of the project's organisation.")(command))


@group("grant")
def grant_command() -> None:
    """Levels on single projects: add, remove, list; restrict, open and assign a project."""


@grant_command.command("add")
@_to_options
@_level_option
@_on_option
@with_session
def grant_add(user: str | None, group: str | None, level: str, on: str | None, session: CommandSession) -> None:
    """Give a person or a group a level on a project."""
    with session.open() as cortex:
        made = cortex.tenants.grant(_project(cortex, on), level, user=user, group=group)
    session.show(made, f"{_named(made)} may {made.level} in {made.project_id}.")


@grant_command.command("remove")
@_to_options
@_on_option
@with_session
def grant_remove(user: str | None, group: str | None, on: str | None, session: CommandSession) -> None:
    """Take a grant back; it holds from the next request on."""
    with session.open() as cortex:
        gone = cortex.tenants.revoke(_project(cortex, on), user=user, group=group)
    session.show(gone, f"{_named(gone)} has no grant on {gone.project_id} any more.")


@grant_command.command("list")
@_on_option
@with_session
def grant_list(on: str | None, session: CommandSession) -> None:
    """Show what is granted on a project."""
    with session.open() as cortex:
        found = cortex.tenants.grants(_project(cortex, on))
    session.show_table(
        found, ["to", "level"], [[_named(one), one.level] for one in found], empty="Nothing is granted on it."
    )


@grant_command.command("restrict")
@_on_option
@with_session
def grant_restrict(on: str | None, session: CommandSession) -> None:
    """Close a project to all but those with a grant on it."""
    with session.open() as cortex:
        found = cortex.tenants.restrict(_project(cortex, on))
    session.show(found, f"{found.name} is for those with a grant.")


@grant_command.command("open")
@_on_option
@with_session
def grant_open(on: str | None, session: CommandSession) -> None:
    """Open a project to all members of its organisation."""
    with session.open() as cortex:
        found = cortex.tenants.restrict(_project(cortex, on), restricted=False)
    session.show(found, f"{found.name} is for all members of {found.org}.")


@grant_command.command("assign")
@click.argument("org")
@_on_option
@with_session
def grant_assign(org: str, on: str | None, session: CommandSession) -> None:
    """Give a project to an organisation; what was granted on it elsewhere ends."""
    with session.open() as cortex:
        found = cortex.tenants.assign(_project(cortex, on), org)
    session.show(found, f"{found.name} belongs to {found.org}.")


def _project(cortex: Cortex, on: str | None) -> str:
    return cortex.project.id if on is None else on


def _named(grant: Grant) -> str:
    return f"user {grant.user}" if grant.user is not None else f"group {grant.group}"
