"""How an opened memory stands: what is well, what is not, and what would leave this machine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from .errors import CortexError

if TYPE_CHECKING:
    from .app import Cortex

__all__ = ["Check", "Diagnosis", "Outbound", "diagnose"]


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at, whether it is well, and what was seen."""

    name: str
    well: bool
    told: str


@dataclass(frozen=True, slots=True)
class Outbound:
    """What is sent to which other machine, and what for."""

    purpose: str
    host: str
    what: str


@dataclass(frozen=True, slots=True)
class Diagnosis:
    checks: tuple[Check, ...]
    outbound: tuple[Outbound, ...]


def diagnose(cortex: Cortex) -> Diagnosis:
    """Look at everything; nothing is sent for it."""
    checks = (_store(cortex), _model(cortex), _language_model(cortex), _snapshots(cortex))
    return Diagnosis(checks, tuple(_outbound(cortex)))


def _store(cortex: Cortex) -> Check:
    try:
        faults = cortex.check()
    except CortexError as error:
        return Check("store", False, str(error))
    return Check("store", not faults, "; ".join(faults) or _place(cortex))


def _place(cortex: Cortex) -> str:
    """Where the store lies; of an address without user and password."""
    if not cortex.settings.database_url:
        return str(cortex.settings.database)
    parts = urlsplit(cortex.settings.database_url)
    return f"PostgreSQL at {parts.netloc.rpartition('@')[2] or 'localhost'}{parts.path}"


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
    told = model.describe()
    day = f"{told['spent_today']} of {told['daily_tokens'] or 'unlimited'} tokens today"
    return Check("language model", not told["resting"], f"{told['provider']} {told['model']} at {told['host']}, {day}")


def _snapshots(cortex: Cortex) -> Check:
    try:
        found = cortex.backups.snapshots()
    except CortexError as error:
        return Check("snapshots", False, str(error))
    faults = [f"{one.id}: {one.fault}" for one in found if not one.verified]
    newest = f"{len(found)}, the newest of {found[0].created_at:%Y-%m-%d %H:%M} UTC" if found else "none yet"
    return Check("snapshots", not faults, "; ".join(faults) or newest)


def _outbound(cortex: Cortex) -> list[Outbound]:
    found = []
    settings = cortex.settings
    if settings.database_url:
        host = urlsplit(settings.database_url).netloc.rpartition("@")[2] or "localhost"
        found.append(Outbound("store", host, "everything that is stored, readable for whoever runs the database"))
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
        found.append(Outbound("sync", where, "encrypted memories, prompts and graph, when you push"))
    return found
