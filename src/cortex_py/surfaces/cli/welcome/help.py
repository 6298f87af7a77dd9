"""`cortex help`: a command, or an error by its name or code."""

from __future__ import annotations

from dataclasses import asdict
from difflib import get_close_matches

import click

from ...mcp.reference.error_help import ErrorHelp, all_errors, find_errors
from ..options import CommandSession, command, with_session

__all__ = ["help_command"]

_MOST = 3


@command("help", context_settings={"ignore_unknown_options": True})
@click.argument("topic", nargs=-1)
@with_session
def help_command(topic: tuple[str, ...], session: CommandSession) -> None:
    """Explain TOPIC: a command, or an error by the name or code that it was reported with, such as -32604."""
    context = click.get_current_context().find_root()
    if not topic:
        session.show({"errors": [one.name for one in all_errors()]}, context.get_help())
        return
    found = find_errors(" ".join(topic))
    if found:
        session.show([_as_json(one) for one in found], _text(found))
        return
    _show_command(topic, context, session)


def _show_command(topic: tuple[str, ...], context: click.Context, session: CommandSession) -> None:
    found: click.Command = context.command
    for name in topic:
        known = found.list_commands(context) if isinstance(found, click.Group) else []
        inner = found.get_command(context, name) if name in known and isinstance(found, click.Group) else None
        if inner is None:
            near = get_close_matches(name.lower(), [*known, *(one.name.lower() for one in all_errors())], n=1)
            raise click.UsageError(
                f"There is no command and no error {name!r}." + (f" Did you mean {near[0]!r}?" if near else "")
            )
        found, context = inner, click.Context(inner, info_name=name, parent=context)
    text = found.get_help(context)
    session.show({"command": context.command_path, "help": text}, text)


def _text(found: list[ErrorHelp]) -> str:
    """Few errors in full; of many that share a code the names."""
    if len(found) > _MOST:
        widest = max(len(one.name) for one in found)
        lines = [f"  {one.name.ljust(widest)}  {one.means}" for one in found]
        return "\n".join([f"{len(found)} errors have this code. For one of them: cortex help NAME", *lines])
    return "\n\n".join(
        f"{one.name}\n  {one.means}\n  Why: {one.why}\n  Do: {one.do}\n  Codes: {one.shown_codes.replace('`', '')}"
        for one in found
    )


def _as_json(one: ErrorHelp) -> dict[str, object]:
    return asdict(one)
