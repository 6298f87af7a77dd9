"""`cortex license`: operators make keys and issue licences; holders show and check theirs."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ....core.clock import SystemClock, iso
from ....core.config import Settings, load_settings
from ....core.errors import LicenceInvalid, LicenseRequired
from ....core.paths import read_whole
from ..input import read_text
from ..options import CommandSession, group, with_session
from ..output import print_json, say

if TYPE_CHECKING:
    from ....team.licence.licence import Licence, Tier

__all__ = ["license_command"]

_LONGEST_FILE = 64_000

_PUBLIC = click.option(
    "--public-key", type=click.Path(path_type=Path, dir_okay=False), help="Key to check by (default: the setting)."
)


@group("license")
def license_command() -> None:
    """Licences that open marked tools of a shared server: keys, issue, show, verify."""


@license_command.command("keygen")
@click.option(
    "--private-key",
    type=click.Path(path_type=Path, dir_okay=False),
    default="license-private.pem",
    help="File for the key to issue with (default: license-private.pem).",
)
@click.option(
    "--public-key",
    type=click.Path(path_type=Path, dir_okay=False),
    default="license-public.pem",
    help="File for the key to check by (default: license-public.pem).",
)
@with_session
def keygen_command(private_key: Path, public_key: Path, session: CommandSession) -> None:
    """Write two new key files, for their owner alone. Files that are there are not replaced."""
    from ....team.licence.licence import new_keypair, write_keypair

    write_keypair(new_keypair(), private_key, public_key)
    if session.shown_as_json({"private_key": str(private_key.absolute()), "public_key": str(public_key.absolute())}):
        return
    say(f"{private_key} issues licences: keep it to yourself, and off the servers.")
    say(f"{public_key} checks them: name it to each server as license_public_key.")


@license_command.command("issue")
@click.option("--private-key", required=True, type=click.Path(path_type=Path, dir_okay=False), help="Key to sign with.")
@click.option("--holder", required=True, help="Whom it is for.")
@click.option("--tier", required=True, type=click.Choice(["free", "pro", "enterprise"]), help="What it opens.")
@click.option("--days", type=click.IntRange(1, 36_500), help="How long it holds (default: without end).")
@click.option("--expires", type=click.DateTime(["%Y-%m-%d"]), help="First day (UTC) on which it no longer holds.")
@click.option("--feature", multiple=True, help="A single tool to open beside those of the tier (repeat).")
@with_session
def issue_command(
    private_key: Path,
    holder: str,
    tier: Tier,
    days: int | None,
    expires: datetime | None,
    feature: tuple[str, ...],
    session: CommandSession,
) -> None:
    """Sign a licence and print it."""
    from ....team.licence.licence import TIER_OF, issue, read_private_key

    if days and expires:
        raise click.UsageError("Give --days or --expires, not both.")
    unknown = sorted(set(feature) - TIER_OF.keys())
    if unknown:
        raise click.UsageError(f"{unknown[0][:80]!r} needs no licence. Those that do: {', '.join(TIER_OF)}.")
    clock = SystemClock()
    end = expires.replace(tzinfo=UTC) if expires else clock.now() + timedelta(days=days) if days else None
    token = issue(
        read_private_key(private_key), holder=holder, tier=tier, expires_at=end, features=feature, clock=clock
    )
    session.show({"license_key": token}, token)


@license_command.command("show")
@click.argument("file", required=False, type=click.Path(allow_dash=True))
@_PUBLIC
@with_session
def show_command(file: str | None, public_key: Path | None, session: CommandSession) -> None:
    """Show the licence that is set, or the one in FILE (`-`: standard input): whose it is and what it opens."""
    from ....team.licence.licence import check_time, configured, opened_by

    settings = _settings(file, public_key, session.home)
    licence, fault = None, None
    try:
        licence = configured(settings)
        if licence is not None:
            check_time(licence, SystemClock())
    except LicenceInvalid as error:
        fault = str(error)
    opens = opened_by(None if fault else licence)
    if session.as_json:
        report = {
            "required": settings.require_license,
            "set": bool(settings.license_key),
            "valid": licence is not None and fault is None,
            "fault": fault,
            "licence": licence,
            "opens": opens,
        }
        print_json(report)
        return
    if licence is not None:
        for name, value in _rows(licence):
            say(f"{name:<10}{value}")
    say(fault or (f"It is valid and opens: {', '.join(opens) or 'nothing more'}." if licence else "None is set."))
    needed = "is on: marked tools of the server need one" if settings.require_license else "is off: none is needed"
    say(f"require_license {needed}.")


@license_command.command("verify")
@click.argument("file", required=False, type=click.Path(allow_dash=True))
@click.option("--tool", help="Check that it opens this tool too; exit code 13 if not.")
@_PUBLIC
@with_session
def verify_command(file: str | None, tool: str | None, public_key: Path | None, session: CommandSession) -> None:
    """Check the licence that is set, or the one in FILE (`-`: standard input); exit code 2 if it is not valid."""
    from ....team.licence.licence import allowed, check_time, configured, required_tier

    licence = configured(_settings(file, public_key, session.home))
    if licence is None:
        raise LicenceInvalid("No licence is set.", remedy="Set CORTEX_LICENSE_KEY, or name a file.")
    check_time(licence, SystemClock())
    if tool and not allowed(tool, licence):
        needed = required_tier(tool)
        raise LicenseRequired(f"{tool} needs a licence of the tier {needed}; this one is of the tier {licence.tier}.")
    if session.as_json:
        print_json({"valid": True, "licence": licence})
    else:
        say(f"Valid: {licence.tier}, {licence.holder}, {_end(licence)}.")


def _settings(file: str | None, public_key: Path | None, home: str | None) -> Settings:
    """The settings, with the licence of a file in place of theirs. No text of a licence is taken as an argument."""
    token = None
    if file == "-":
        token = read_text(None)
    elif file is not None:
        try:
            token = read_whole(Path(file), _LONGEST_FILE).decode("utf-8", "replace")
        except OSError as error:
            raise LicenceInvalid(f"{file} cannot be read: {error.strerror}.", field="file") from error
    if token is not None and not token.strip():
        raise LicenceInvalid("The file holds no licence.", field="file")
    return load_settings(home, license_key=token, license_public_key=public_key)


def _rows(licence: Licence) -> list[tuple[str, str]]:
    return [
        ("id", licence.id),
        ("holder", licence.holder),
        ("tier", licence.tier),
        ("issued", iso(licence.issued_at)),
        ("expires", iso(licence.expires_at) if licence.expires_at else "never"),
        ("features", ", ".join(licence.features) or "none"),
    ]


def _end(licence: Licence) -> str:
    return f"until {iso(licence.expires_at)}" if licence.expires_at else "without end"
