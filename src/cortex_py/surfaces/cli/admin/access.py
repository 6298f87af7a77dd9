"""`cortex token` and `cortex audit`: who may call a shared server, and what callers did."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

import click

from ....core.clock import SystemClock, iso
from ....core.errors import InvalidInput
from ..options import CommandSession, group, with_session
from ..output import SHORT_ID, counted, print_table, say

if TYPE_CHECKING:
    from ....team.access.service import TokenRecord

__all__ = ["audit_command", "token_command"]

_TOOL = "tool:"
_COLUMNS = ("id", "subject", "agent", "scopes", "state", "expires_at", "last_used_at")


@group("token")
def token_command() -> None:
    """Tokens by which callers of a shared server are known: create, list, revoke."""


@token_command.command("create")
@click.option("--subject", required=True, help="The person it is for; what is written with it is theirs.")
@click.option("--agent", help="The agent of theirs that will use it.")
@click.option("--scope", "scopes", multiple=True, help="read, write, admin, embed, tool:NAME (repeat; default: read).")
@click.option("--org", help="The organisation it is for (default: that of the settings).")
@click.option("--in", "work_in", help="The project that calls work in which name none, by id, remote or name.")
@click.option("--days", type=click.IntRange(1, 36_500), help="How long it holds (default: until it is revoked).")
@with_session
def token_create(
    subject: str,
    agent: str | None,
    scopes: tuple[str, ...],
    org: str | None,
    work_in: str | None,
    days: int | None,
    session: CommandSession,
) -> None:
    """Make a token and show it, this once."""
    _check_tools(scopes)
    with session.open() as cortex:
        made = cortex.access.create(
            subject, agent=agent, scopes=scopes or ("read",), days=days, org=org, project=work_in
        )
    if session.shown_as_json({"token": made.token, **_shown(made.record), "joined": made.joined}):
        return
    say(made.token)
    allowed = ", ".join(sorted(made.record.scopes))
    # Beside the token, not among it: the output can be piped into where secrets are kept.
    say(f"Token {made.record.id} of {subject} for {allowed}. It cannot be shown again.", err=True)
    if made.joined:
        say(f"{subject} became a member of the organisation, with the level {made.joined}.", err=True)


@token_command.command("list")
@with_session
def token_list(session: CommandSession) -> None:
    """Show all tokens that were made, without their text."""
    with session.open() as cortex:
        shown = [_shown(record) for record in cortex.access.list()]
    rows = [[_cell(row[name]) for name in _COLUMNS] for row in shown]
    session.show_table(
        shown,
        [name.removesuffix("_at").replace("_", " ") for name in _COLUMNS],
        rows,
        wide=(1, 2, 3),
        empty="There is no token yet.",
    )


@token_command.command("revoke")
@click.argument("id")
@with_session
def token_revoke(id: str, session: CommandSession) -> None:
    """End a token: the next call with it is refused."""
    with session.open() as cortex:
        record = cortex.access.revoke(id)
    session.show(_shown(record), f"Token {record.id} of {record.user} is revoked.")


def _check_tools(scopes: tuple[str, ...]) -> None:
    from ...mcp.registry import EVERY_TOOL

    known = {name for spec in EVERY_TOOL for name in spec.spellings}
    for name in (scope.removeprefix(_TOOL) for scope in scopes if scope.startswith(_TOOL)):
        if name not in known:
            raise InvalidInput(
                f"There is no tool {name[:80]!r}.", remedy="docs/reference/tools.md names them.", field="scope"
            )


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


@group("audit")
def audit_command() -> None:
    """What callers did: list, and check that the log was not changed."""


@audit_command.command("list")
@click.option("-l", "--limit", type=click.IntRange(1, 100_000), default=50, show_default=True)
@with_session
def audit_list(limit: int, session: CommandSession) -> None:
    """Show the latest events, newest first."""
    with session.open() as cortex:
        found = cortex.audit.list(limit)
    if session.shown_as_json(found):
        return
    print_table(
        ["n", "when", "who", "what", "outcome", "ids"],
        [
            [
                str(entry.number),
                iso(entry.event.at),
                "/".join(filter(None, (entry.event.user, entry.event.agent))) or f"({entry.event.via})",
                entry.event.action,
                entry.event.outcome,
                " ".join(id[:SHORT_ID] for id in entry.event.ids),
            ]
            for entry in found
        ],
        wide=5,
        empty="No caller did anything yet.",
    )


@audit_command.command("verify")
@click.option("--expect", help="A head that was shown earlier: it must be part of this log.")
@with_session
def audit_verify(expect: str | None, session: CommandSession) -> None:
    """Check every event; exit code 7 if one was changed, removed, added or moved."""
    with session.open() as cortex:
        found = cortex.audit.verify(expect)
    session.show(found, f"{counted(found.events, 'event')}, none changed. Head: {found.head}")
