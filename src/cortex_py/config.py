"""Settings: one frozen value, read from `config.toml`, then `CORTEX_*` variables, then arguments.

Later sources win. A setting that cannot be understood is an error that names its source; nothing is
guessed and nothing is silently ignored.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Literal, get_args

from .errors import ConfigurationError
from .paths import expanded

__all__ = [
    "AuditWhen",
    "Authentication",
    "AutoJoin",
    "AutomationPlan",
    "BranchMemories",
    "Device",
    "Fusion",
    "GroundingJudge",
    "LLMProvider",
    "LogFormat",
    "LogLevel",
    "Precision",
    "Profile",
    "SecretPolicy",
    "Settings",
    "SnapshotEvery",
    "Stateless",
    "ToolBound",
    "load_settings",
    "setting_names",
]

SecretPolicy = Literal["redact", "block", "allow"]
Precision = Literal["int8", "fp32"]
Fusion = Literal["learned", "weighted", "rrf"]
Device = Literal["cpu", "cuda"]
Profile = Literal["code", "strict"]
BranchMemories = Literal["share", "isolate", "stage"]
# Whether automatic behaviour acts or asks first: as the answers to it have it, or always one of the two.
AutomationPlan = Literal["learned", "A", "B"]
LLMProvider = Literal["openai", "anthropic"]
GroundingJudge = Literal["rules", "onnx", "llm"]
SnapshotEvery = Literal["off", "hourly", "daily", "weekly"]
# How HTTP callers are known: one shared token or none, tokens of their own, or an issuer's signed ones.
Authentication = Literal["token", "tokens", "oidc"]
# What a person whom a shared server sees for the first time becomes: nothing, or a member with a level.
AutoJoin = Literal["off", "read", "write"]
# `auto`: where callers are known by name.
AuditWhen = Literal["auto", "on", "off"]
# `auto`: where the store is one that several servers share.
Stateless = Literal["auto", "on", "off"]
LogFormat = Literal["text", "json"]
LogLevel = Literal["debug", "info", "warning", "error"]

# Settings of the tool list. Each source bounds it: a later one can narrow what an earlier one allows, never widen it.
_BOUNDS = ("toolsets", "tools", "exclude_tools", "read_only")
_LISTS = ("toolsets", "tools", "exclude_tools", "allowed_hosts")
_PATHS = ("models_dir", "grounding_model", "license_public_key", "passphrase_file", "audit_key_file")
_SWITCHES = ("read_only", "portable_names", "prefer_newer", "require_license")
_NUMBERS = (
    "threads",
    "max_content_bytes",
    "embedding_dimensions",
    "rate_limit",
    "cache_bytes",
    "max_text_length",
    "compress_after_minutes",
    "llm_timeout_seconds",
    "llm_daily_tokens",
    "llm_concurrency",
    "snapshot_keep_hourly",
    "snapshot_keep_daily",
    "snapshot_keep_weekly",
    "subject_rate_limit",
    "vector_index_above",
    "database_retry_seconds",
    "drain_seconds",
)

_SECRETS = ("token", "database_url", "embedding_api_key", "llm_api_key", "license_key", "passphrase")

_CHOICES: dict[str, tuple[str, ...]] = {
    "secrets": get_args(SecretPolicy),
    "precision": get_args(Precision),
    "fusion": get_args(Fusion),
    "embedding_device": get_args(Device),
    "security_profile": get_args(Profile),
    "branch_memories": get_args(BranchMemories),
    "automation": get_args(AutomationPlan),
    "llm_provider": get_args(LLMProvider),
    "grounding_judge": get_args(GroundingJudge),
    "snapshot_every": get_args(SnapshotEvery),
    "auth": get_args(Authentication),
    "audit": get_args(AuditWhen),
    "auto_join": get_args(AutoJoin),
    "stateless_http": get_args(Stateless),
    "log_format": get_args(LogFormat),
    "log_level": get_args(LogLevel),
}


@dataclass(frozen=True, slots=True)
class ToolBound:
    """Which tools one source allows. No sets and no tools means all of them."""

    toolsets: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    exclude_tools: tuple[str, ...] = ()
    read_only: bool = False


@dataclass(frozen=True, slots=True)
class Settings:
    """All that can be set. Field names are the keys of the file and, upper-cased, of the variables."""

    home: Path
    models_dir: Path
    # It may hold a password.
    database_url: str | None = field(default=None, repr=False)
    vector_index_above: int = 50_000
    database_retry_seconds: int = 10
    secrets: SecretPolicy = "redact"
    precision: Precision = "int8"
    fusion: Fusion = "learned"
    threads: int = 0
    user_id: str | None = None
    agent_id: str | None = None
    org: str = "default"
    max_content_bytes: int = 16_000_000
    branch_memories: BranchMemories = "share"
    automation: AutomationPlan = "learned"
    compress_after_minutes: int = 30
    prefer_newer: bool = False
    embedding_backend: str = "onnx"
    embedding_model: str | None = None
    embedding_device: Device = "cpu"
    embedding_url: str | None = None
    embedding_api_key: str | None = field(default=None, repr=False)
    embedding_dimensions: int = 0
    security_profile: Profile = "code"
    rate_limit: int = 120
    cache_bytes: int = 64_000_000
    max_text_length: int = 8_192
    llm_provider: LLMProvider | None = None
    llm_model: str | None = None
    llm_url: str | None = None
    llm_api_key: str | None = field(default=None, repr=False)
    llm_timeout_seconds: int = 60
    llm_daily_tokens: int = 200_000
    llm_concurrency: int = 2
    grounding_judge: GroundingJudge = "rules"
    grounding_model: Path | None = None
    require_license: bool = False
    license_key: str | None = field(default=None, repr=False)
    license_public_key: Path | None = None
    snapshot_every: SnapshotEvery = "daily"
    snapshot_keep_hourly: int = 24
    snapshot_keep_daily: int = 7
    snapshot_keep_weekly: int = 8
    cloud_url: str | None = None
    passphrase: str | None = field(default=None, repr=False)
    passphrase_file: Path | None = None
    tool_bounds: tuple[ToolBound, ...] = ()
    portable_names: bool = False
    token: str | None = field(default=None, repr=False)
    allowed_hosts: tuple[str, ...] = ()
    auth: Authentication = "token"
    oidc_issuer: str | None = None
    oidc_audience: str | None = None
    oidc_jwks: str | None = None
    oidc_org_claim: str | None = None
    auto_join: AutoJoin = "off"
    subject_rate_limit: int = 600
    audit: AuditWhen = "auto"
    audit_key_file: Path | None = None
    stateless_http: Stateless = "auto"
    drain_seconds: int = 20
    log_format: LogFormat = "text"
    log_level: LogLevel = "warning"
    otel_endpoint: str | None = None

    @property
    def database(self) -> Path:
        return self.home / "cortex.db"

    @property
    def embedding_cache(self) -> Path:
        return self.home / "embeddings.db"


def load_settings(
    home: str | Path | None = None,
    *,
    environment: Mapping[str, str] | None = None,
    **overrides: Any,
) -> Settings:
    """Settings for a home: its file, the environment, then the arguments that are not None."""
    variables = os.environ if environment is None else environment
    folder = expanded(home or variables.get("CORTEX_HOME") or "~/.cortex").absolute()
    settings = Settings(home=folder, models_dir=folder / "models")
    settings = _apply(settings, _from_file(folder / "config.toml"), str(folder / "config.toml"))
    settings = _apply(settings, _from_environment(variables), "the environment")
    return _apply(settings, {k: v for k, v in overrides.items() if v is not None}, "the arguments")


def _from_file(path: Path) -> dict[str, object]:
    try:
        text = path.read_text(encoding="utf-8")
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except OSError as error:
        if not os.access(path.parent, os.X_OK):
            # The home itself is closed; opening the store says so better.
            return {}
        raise ConfigurationError(
            f"{path} cannot be read: {error.strerror}.", remedy="Check its permissions."
        ) from error
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigurationError(f"{path} is not valid TOML: {error}.", remedy="Mend or remove it.") from error


def _from_environment(variables: Mapping[str, str]) -> dict[str, object]:
    names = {f"CORTEX_{name.upper()}": name for name in setting_names()}
    return {name: variables[variable] for variable, name in names.items() if variables.get(variable)}


def setting_names() -> list[str]:
    """What a source can set, by name. The home is where the file lies; the bounds are made of their parts."""
    return [one.name for one in fields(Settings) if one.name not in ("home", "tool_bounds")] + list(_BOUNDS)


def _apply(settings: Settings, values: Mapping[str, object], source: str) -> Settings:
    known = setting_names()
    unknown = sorted(set(values) - set(known))
    if unknown:
        raise ConfigurationError(
            f"Unknown setting {unknown[0]!r} in {source}.", remedy=f"Known: {', '.join(sorted(known))}."
        )
    converted: dict[str, Any] = {name: _converted(name, value, source) for name, value in values.items()}
    bound = {name: converted.pop(name) for name in _BOUNDS if name in converted}
    if bound:
        converted["tool_bounds"] = (*settings.tool_bounds, ToolBound(**bound))
    return replace(settings, **converted)


def _converted(name: str, value: object, source: str) -> object:
    if name in _CHOICES:
        if value not in _CHOICES[name]:
            raise _misread(name, value, source, f"Choose one of {', '.join(_CHOICES[name])}.")
        return value
    if name in _PATHS:
        return expanded(str(value)).absolute()
    if name in _NUMBERS:
        text = str(value)
        if not text.isascii() or not text.isdigit():
            raise _misread(name, value, source, "Give a whole number.")
        return int(text)
    if name in _LISTS:
        items = value.split(",") if isinstance(value, str) else value
        if not isinstance(items, list | tuple) or not all(isinstance(item, str) for item in items):
            raise _misread(name, value, source, "Give names, separated by commas.")
        return tuple(item.strip() for item in items if item.strip())
    if name in _SWITCHES:
        words = {
            "true": True,
            "1": True,
            "yes": True,
            "on": True,
            "false": False,
            "0": False,
            "no": False,
            "off": False,
        }
        if str(value).lower() not in words:
            raise _misread(name, value, source, "Give true or false.")
        return words[str(value).lower()]
    if not isinstance(value, str):
        raise _misread(name, value, source, "Give a text.")
    return value


def _misread(name: str, value: object, source: str, remedy: str) -> ConfigurationError:
    shown = "not a text" if name in _SECRETS else repr(value)
    return ConfigurationError(f"Setting {name!r} in {source} is {shown}.", remedy=remedy)
