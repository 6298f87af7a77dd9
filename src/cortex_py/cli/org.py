"""`cortex org`: organisations of a shared server, and who belongs to them with which level."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from .options import common, open_cortex
from .show import print_json, print_table

if TYPE_CHECKING:
    from ..access.tenants import Member

__all__ = ["level_option", "org_command", "org_option"]

_LEVELS = ("read", "write", "admin")

org_option = click.option("--org", help="The organisation (default: that of the settings).")
level_option = click.option("--level", type=click.Choice(_LEVELS), default="read", help="Each includes those before.")


@click.group("org")
def org_command() -> None:
    """Organisations and their members: create, list, members, join, leave, projects."""


@org_command.command("create")
@click.argument("name")
@common
def create_command(name: str, home: str | None, project: str, as_json: bool) -> None:
    """Begin an organisation."""
    with open_cortex(home, project) as cortex:
        made = cortex.tenants.create(name)
    if as_json:
        print_json(asdict(made))
    else:
        click.echo(f"There is an organisation {made.name}.")


@org_command.command("list")
@common
def list_command(home: str | None, project: str, as_json: bool) -> None:
    """Show all organisations."""
    with open_cortex(home, project) as cortex:
        found = cortex.tenants.list()
    if as_json:
        print_json([asdict(one) for one in found])
    else:
        print_table(["name", "created"], [[one.name, f"{one.created_at:%Y-%m-%d}"] for one in found])


@org_command.command("members")
@org_option
@common
def members_command(org: str | None, home: str | None, project: str, as_json: bool) -> None:
    """Show who belongs to an organisation, and with which level."""
    with open_cortex(home, project) as cortex:
        found = cortex.tenants.members(org)
    if as_json:
        print_json([asdict(one) for one in found])
    else:
        rows = [[one.user, one.level, f"{one.since:%Y-%m-%d}"] for one in found]
        print_table(["user", "level", "since"], rows)


@org_command.command("join")
@click.argument("user")
@level_option
@org_option
@common
def join_command(user: str, level: str, org: str | None, home: str | None, project: str, as_json: bool) -> None:
    """Make a person a member, or give a member another level."""
    with open_cortex(home, project) as cortex:
        made = cortex.tenants.join(user, level, org=org)
    _show(made, f"{made.user} is a member of {made.org} with the level {made.level}.", as_json=as_json)


@org_command.command("leave")
@click.argument("user")
@org_option
@common
def leave_command(user: str, org: str | None, home: str | None, project: str, as_json: bool) -> None:
    """End a membership, with the person's groups and grants; from the next request on."""
    with open_cortex(home, project) as cortex:
        gone = cortex.tenants.leave(user, org=org)
    _show(gone, f"{gone.user} is no member of {gone.org} any more.", as_json=as_json)


@org_command.command("projects")
@org_option
@common
def projects_command(org: str | None, home: str | None, project: str, as_json: bool) -> None:
    """Show the projects of an organisation, and which are restricted."""
    with open_cortex(home, project) as cortex:
        found = cortex.tenants.projects(org)
    if as_json:
        print_json([asdict(one) for one in found])
    else:
        print_table(["id", "name", "restricted"], [[one.id, one.name, _said(one.restricted)] for one in found])


def _said(restricted: bool) -> str:
    return "restricted" if restricted else ""


def _show(member: Member, text: str, *, as_json: bool) -> None:
    if as_json:
        print_json(asdict(member))
    else:
        click.echo(text)
