"""`cortex group`: groups of an organisation, to which levels on projects are granted."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from .options import common, open_cortex
from .org import org_option
from .show import print_json, print_table

if TYPE_CHECKING:
    from ..access.tenants import Group

__all__ = ["group_command"]


@click.group("group")
def group_command() -> None:
    """Groups of an organisation: create, list, add, remove, delete."""


@group_command.command("create")
@click.argument("name")
@org_option
@common
def create_command(name: str, org: str | None, home: str | None, project: str, as_json: bool) -> None:
    """Begin a group."""
    with open_cortex(home, project) as cortex:
        _show(cortex.tenants.create_group(name, org=org), as_json=as_json)


@group_command.command("list")
@org_option
@common
def list_command(org: str | None, home: str | None, project: str, as_json: bool) -> None:
    """Show all groups with their members."""
    with open_cortex(home, project) as cortex:
        found = cortex.tenants.groups(org)
    if as_json:
        print_json([asdict(one) for one in found])
    else:
        print_table(["group", "members"], [[one.name, ", ".join(one.members)] for one in found], wide=(1,))


@group_command.command("add")
@click.argument("group")
@click.argument("user")
@org_option
@common
def add_command(group: str, user: str, org: str | None, home: str | None, project: str, as_json: bool) -> None:
    """Put a member of the organisation into a group."""
    with open_cortex(home, project) as cortex:
        _show(cortex.tenants.add_to_group(group, user, org=org), as_json=as_json)


@group_command.command("remove")
@click.argument("group")
@click.argument("user")
@org_option
@common
def remove_command(group: str, user: str, org: str | None, home: str | None, project: str, as_json: bool) -> None:
    """Take somebody out of a group."""
    with open_cortex(home, project) as cortex:
        _show(cortex.tenants.remove_from_group(group, user, org=org), as_json=as_json)


@group_command.command("delete")
@click.argument("name")
@org_option
@common
def delete_command(name: str, org: str | None, home: str | None, project: str, as_json: bool) -> None:
    """End a group, with all that it was granted."""
    with open_cortex(home, project) as cortex:
        gone = cortex.tenants.delete_group(name, org=org)
    if as_json:
        print_json(asdict(gone))
    else:
        click.echo(f"There is no group {gone.name} in {gone.org} any more.")


def _show(group: Group, *, as_json: bool) -> None:
    if as_json:
        print_json(asdict(group))
    else:
        click.echo(f"{group.name} of {group.org}: {', '.join(group.members) or 'nobody'}.")
