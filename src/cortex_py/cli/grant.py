"""`cortex grant`: who may do what in one project, whom it belongs to, and whether it is closed to the rest."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, TypeVar

import click

from .options import common, open_cortex
from .org import level_option
from .show import print_json, print_table

if TYPE_CHECKING:
    from ..access.tenants import Grant, TenantProject
    from ..app import Cortex

__all__ = ["grant_command"]

_F = TypeVar("_F", bound=Callable[..., Any])

_on_option = click.option("--on", help="The project by id, remote or name (default: the one of --project).")


def _to_options(command: _F) -> _F:
    user = click.option("--user", help="A member of the project's organisation.")
    return user(click.option("--group", help="A group of the project's organisation.")(command))


@click.group("grant")
def grant_command() -> None:
    """Levels on single projects: add, remove, list; restrict, open and assign a project."""


@grant_command.command("add")
@_to_options
@level_option
@_on_option
@common
def add_command(
    user: str | None, group: str | None, level: str, on: str | None, home: str | None, project: str, as_json: bool
) -> None:
    """Give a person or a group a level on a project."""
    with open_cortex(home, project) as cortex:
        made = cortex.tenants.grant(_project(cortex, on), level, user=user, group=group)
    _show(made, f"{_named(made)} may {made.level} in {made.project_id}.", as_json=as_json)


@grant_command.command("remove")
@_to_options
@_on_option
@common
def remove_command(
    user: str | None, group: str | None, on: str | None, home: str | None, project: str, as_json: bool
) -> None:
    """Take a grant back; it holds from the next request on."""
    with open_cortex(home, project) as cortex:
        gone = cortex.tenants.revoke(_project(cortex, on), user=user, group=group)
    _show(gone, f"{_named(gone)} has no grant on {gone.project_id} any more.", as_json=as_json)


@grant_command.command("list")
@_on_option
@common
def list_command(on: str | None, home: str | None, project: str, as_json: bool) -> None:
    """Show what is granted on a project."""
    with open_cortex(home, project) as cortex:
        found = cortex.tenants.grants(_project(cortex, on))
    if as_json:
        print_json([asdict(one) for one in found])
    else:
        print_table(["to", "level"], [[_named(one), one.level] for one in found])


@grant_command.command("restrict")
@_on_option
@common
def restrict_command(on: str | None, home: str | None, project: str, as_json: bool) -> None:
    """Close a project to all but those with a grant on it."""
    with open_cortex(home, project) as cortex:
        found = cortex.tenants.restrict(_project(cortex, on))
    _show(found, f"{found.name} is for those with a grant.", as_json=as_json)


@grant_command.command("open")
@_on_option
@common
def open_command(on: str | None, home: str | None, project: str, as_json: bool) -> None:
    """Open a project to all members of its organisation."""
    with open_cortex(home, project) as cortex:
        found = cortex.tenants.restrict(_project(cortex, on), restricted=False)
    _show(found, f"{found.name} is for all members of {found.org}.", as_json=as_json)


@grant_command.command("assign")
@click.argument("org")
@_on_option
@common
def assign_command(org: str, on: str | None, home: str | None, project: str, as_json: bool) -> None:
    """Give a project to an organisation; what was granted on it elsewhere ends."""
    with open_cortex(home, project) as cortex:
        found = cortex.tenants.assign(_project(cortex, on), org)
    _show(found, f"{found.name} belongs to {found.org}.", as_json=as_json)


def _project(cortex: Cortex, on: str | None) -> str:
    return cortex.project.id if on is None else on


def _named(grant: Grant) -> str:
    return f"user {grant.user}" if grant.user is not None else f"group {grant.group}"


def _show(value: Grant | TenantProject, text: str, *, as_json: bool) -> None:
    if as_json:
        print_json(asdict(value))
    else:
        click.echo(text)
