"""The health of an opened memory, and what it sends to other machines (`cortex doctor`)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

from .core.errors import CortexError
from .parts.clients.checks import ClientState, client_states
from .parts.clients.homes import Home, find_homes

if TYPE_CHECKING:
    from .app import Cortex
    from .core.config import Settings

__all__ = ["Check", "Diagnosis", "Outbound", "diagnose"]


@dataclass(frozen=True, slots=True)
class Check:
    """One check: whether all is well, and what to show. `cortex doctor --json` prints these names."""

    name: str
    well: bool
    told: str


@dataclass(frozen=True, slots=True)
class Outbound:
    """What is sent to another machine, and for which purpose."""

    purpose: str
    host: str
    what: str


@dataclass(frozen=True, slots=True)
class Diagnosis:
    checks: tuple[Check, ...]
    outbound: tuple[Outbound, ...]
    homes: tuple[Home, ...]
    clients: tuple[ClientState, ...] = ()


def diagnose(cortex: Cortex) -> Diagnosis:
    """Run all checks. Nothing is sent to another machine."""
    checks = (_store, _encryption, _model, _language_model, _snapshots, _personal_data)
    home, project = cortex.settings.home, Path(cortex.project.root or ".")
    return Diagnosis(
        tuple(check(cortex) for check in checks),
        tuple(_outbound(cortex)),
        tuple(find_homes(home, project)),
        tuple(client_states(home, project)),
    )


def _store(cortex: Cortex) -> Check:
    try:
        faults = cortex.check()
    except CortexError as error:
        return Check("store", False, str(error))
    return Check("store", not faults, "; ".join(faults) or _place(cortex))


def _encryption(cortex: Cortex) -> Check:
    found = cortex.encryption()
    detail = f"the home is {found.described}"
    if found.encrypted and cortex.settings.database_url:
        detail += "; the PostgreSQL database is not covered"
    return Check("encryption", not found.unfinished, detail)


def _place(cortex: Cortex) -> str:
    """Where the store is; an address is shown without user and password."""
    if not cortex.settings.database_url:
        return str(cortex.settings.database)
    parts = urlsplit(cortex.settings.database_url)
    return f"PostgreSQL at {_servers(cortex.settings.database_url)}{parts.path}"


def _servers(url: str) -> str:
    """The hosts of a database, of which there may be several, without user and password."""
    parts = urlsplit(url)
    named = parse_qs(parts.query)
    return parts.netloc.rpartition("@")[2] or ",".join(named.get("host", named.get("hostaddr", []))) or "localhost"


def _model(cortex: Cortex) -> Check:
    if cortex.settings.embedding_backend == "openai":
        return Check("embedding model", True, f"{cortex.backend.fingerprint}; nothing was sent to try it")
    try:
        cortex.backend.embed(["well"])
    except CortexError as error:
        return Check("embedding model", False, str(error))
    return Check("embedding model", True, cortex.backend.fingerprint)


def _language_model(cortex: Cortex) -> Check:
    try:
        model = cortex.language_model
    except CortexError as error:
        return Check("language model", False, str(error))
    if model is None:
        return Check("language model", True, "none configured; everything is done on this machine")
    state = model.describe()
    day = f"{state['spent_today']} of {state['daily_tokens'] or 'unlimited'} tokens today"
    return Check(
        "language model", not state["resting"], f"{state['provider']} {state['model']} at {state['host']}, {day}"
    )


def _snapshots(cortex: Cortex) -> Check:
    try:
        found = cortex.backups.snapshots()
    except CortexError as error:
        return Check("snapshots", False, str(error))
    faults = [f"{one.id}: {one.fault}" for one in found if not one.verified]
    newest = f"{len(found)}, the newest of {found[0].created_at:%Y-%m-%d %H:%M} UTC" if found else "none yet"
    return Check("snapshots", not faults, "; ".join(faults) or newest)


def _personal_data(cortex: Cortex) -> Check:
    """How many memories hold personal data, and what the settings do with it."""
    settings = cortex.settings
    if settings.personal_data == "keep":
        return Check("personal data", True, "not looked for")
    try:
        counts = cortex.memories.status().personal_counts
    except CortexError as error:
        return Check("personal data", False, str(error))
    found = ", ".join(f"{kind} {count}" for kind, count in counts.items()) or "none found"
    shared = "synced" if settings.sync_personal_data else "not synced"
    return Check("personal data", True, f"{settings.personal_data}, {shared}: {found}")


def _synced(settings: Settings) -> str:
    kept = settings.personal_data != "keep" and not settings.sync_personal_data
    except_for = ", without those that hold personal data" if kept else ""
    return f"encrypted memories, prompts and graph, when you push{except_for}"


def _outbound(cortex: Cortex) -> list[Outbound]:
    found = []
    settings = cortex.settings
    if settings.database_url:
        host = _servers(settings.database_url)
        found.append(Outbound("store", host, "everything that is stored, readable by the operator of the database"))
    if settings.embedding_backend == "openai" and settings.embedding_url:
        host = urlsplit(settings.embedding_url).netloc.rpartition("@")[2]
        found.append(Outbound("embedding", host, "every text that is stored or searched for"))
    try:
        model = cortex.language_model
    except CortexError:
        model = None
    if model is not None:
        what = "the memories that consolidate and enrich work on"
        if cortex.settings.grounding_judge == "llm":
            what += ", and claims with the passages of the project that bear on them"
        found.append(Outbound("language model", str(model.describe()["host"]), what))
    if settings.auth == "oidc" and "://" in (settings.oidc_jwks or ""):
        host = urlsplit(settings.oidc_jwks or "").netloc.rpartition("@")[2]
        found.append(Outbound("issuer", host, "a request for its public keys, by a server"))
    if settings.otel_endpoint:
        host = urlsplit(settings.otel_endpoint).netloc.rpartition("@")[2]
        found.append(Outbound("traces", host, "which tools a server was asked for, when, and how long that took"))
    if settings.cloud_url:
        parts = urlsplit(settings.cloud_url)
        where = parts.netloc.rpartition("@")[2] or parts.path
        found.append(Outbound("sync", where, _synced(settings)))
    return found
