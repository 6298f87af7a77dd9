"""`cortex token`: who may call a shared server, and what each may do there."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

import click

from ..clock import SystemClock
from ..errors import InvalidInput
from .options import common, open_cortex
from .show import print_json, print_table

if TYPE_CHECKING:
    from ..security.tokens import TokenRecord

__all__ = ["token_command"]

_TOOL = "tool:"
_COLUMNS = ("id", "subject", "agent", "scopes", "state", "expires_at", "last_used_at")


@click.group("token")
def token_command() -> None:
    """Tokens by which callers of a shared server are known: create, list, revoke."""


@token_command.command("create")
@click.option("--subject", required=True, help="The person it is for; what is written with it is theirs.")
@click.option("--agent", help="The agent of theirs that will use it.")
@click.option("--scope", "scopes", multiple=True, help="read, write, admin, embed, tool:NAME (repeat; default: read).")
@click.option("--org", help="The organisation it is for (default: that of the settings).")
@click.option("--in", "work_in", help="The project that calls work in which name none, by id, remote or name.")
@click.option("--days", type=click.IntRange(1, 36_500), help="How long it holds (default: until it is revoked).")
@common
def create_command(
    subject: str,
    agent: str | None,
    scopes: tuple[str, ...],
    org: str | None,
    work_in: str | None,
    days: int | None,
    home: str | None,
    project: str,
    as_json: bool,
) -> None:
    """Make a token and show it, this once."""
    _check_tools(scopes)
    with open_cortex(home, project) as cortex:
        made = cortex.access.create(
            subject, agent=agent, scopes=scopes or ("read",), days=days, org=org, project=work_in
        )
    if as_json:
        print_json({"token": made.token, **_shown(made.record), "joined": made.joined})
        return
    click.echo(made.token)
    allowed = ", ".join(sorted(made.record.scopes))
    # Beside the token, not among it: the output can be piped into where secrets are kept.
    click.echo(f"Token {made.record.id} of {subject} for {allowed}. It cannot be shown again.", err=True)
    if made.joined:
        click.echo(f"{subject} became a member of the organisation, with the level {made.joined}.", err=True)


@token_command.command("list")
@common
def list_command(home: str | None, project: str, as_json: bool) -> None:
    """Show all tokens that were made, without their text."""
    with open_cortex(home, project) as cortex:
        shown = [_shown(record) for record in cortex.access.list()]
    if as_json:
        print_json(shown)
    else:
        rows = [[_cell(row[name]) for name in _COLUMNS] for row in shown]
        print_table([name.removesuffix("_at").replace("_", " ") for name in _COLUMNS], rows, wide=(1, 2, 3))


@token_command.command("revoke")
@click.argument("id")
@common
def revoke_command(id: str, home: str | None, project: str, as_json: bool) -> None:
    """End a token: the next call with it is refused."""
    with open_cortex(home, project) as cortex:
        record = cortex.access.revoke(id)
    if as_json:
        print_json(_shown(record))
    else:
        click.echo(f"Token {record.id} of {record.user} is revoked.")


def _check_tools(scopes: tuple[str, ...]) -> None:
    from ..mcp.registry import TOOLS

    known = {name for spec in TOOLS for name in spec.spellings}
    for name in (scope.removeprefix(_TOOL) for scope in scopes if scope.startswith(_TOOL)):
        if name not in known:
            raise InvalidInput(f"There is no tool {name[:80]!r}.", remedy="docs/tools.md names them.", field="scope")


def _shown(record: TokenRecord) -> dict[str, object]:
    return {
        "id": record.id,
        "subject": record.user,
        "agent": record.agent,
        "scopes": sorted(record.scopes),
        "org": record.org,
        "project_id": record.project_id,
        "state": record.state(SystemClock().now()),
        "created_at": record.created_at,
        "expires_at": record.expires_at,
        "last_used_at": record.last_used_at,
        "revoked_at": record.revoked_at,
    }


def _cell(value: object) -> str:
    if isinstance(value, list):
        return " ".join(value)
    return f"{value:%Y-%m-%d}" if isinstance(value, datetime) else str(value or "")
