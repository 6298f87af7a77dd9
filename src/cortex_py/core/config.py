"""Settings: one frozen value, read from `config.toml`, then `CORTEX_*` variables, then arguments.

Later sources win. A setting that cannot be understood is an error that names its source; nothing is guessed or silently
ignored. A field of `Settings` or `ToolBound` is the whole declaration of a setting: its type says how it is parsed,
`_setting` the rest. `tools/reference_pages.py` writes the table in `docs/reference/settings.md` from it.
"""

from __future__ import annotations

import logging
import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cache
from pathlib import Path
from types import NoneType
from typing import Any, Literal, get_args, get_origin, get_type_hints

from .errors import ConfigurationError, StoreDenied
from .ownership import open_folders, shut_out_others
from .paths import expanded, read_whole

__all__ = [
    "RETIRED", "AuditWhen", "Authentication", "AutoJoin", "AutomationPlan", "BranchMemories", "Device", "Fusion",
    "GroundingJudge", "LLMProvider", "LogFormat", "LogLevel", "PersonalPolicy", "Profile", "SecretPolicy", "Setting",
    "Settings", "SnapshotEvery", "Stateless", "ToolBound", "declared_settings", "load_settings", "setting_names",
]  # fmt: skip

# Settings of all-MiniLM-L6-v2, which earlier versions installed: a file that still has them goes on being read.
RETIRED = frozenset(("fetch_model", "models_dir", "precision", "service_model"))

SecretPolicy = Literal["redact", "block", "allow"]
# Personal data in texts that come from outside: not looked for, counted, or removed.
PersonalPolicy = Literal["keep", "mark", "redact"]
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

_log = logging.getLogger(__name__)

_MOST_BYTES = 1_000_000
_SWITCH = {"true": True, "1": True, "yes": True, "on": True, "false": False, "0": False, "no": False, "off": False}


def _setting(
    default: Any, help: str, *, shown: str | None = None, secret: bool = False, minimum: int = 0, variable: str = ""
) -> Any:
    """Declare a setting. `shown` is its default in words, `variable` a further environment variable that sets it."""
    details = {"help": help, "shown": shown, "minimum": minimum, "variable": variable}
    return field(default=default, repr=not secret, metadata=details)


@dataclass(frozen=True, slots=True)
class ToolBound:
    """Which tools one source allows. No sets and no tools means all of them.

    Each source bounds the list of tools: a later one can narrow what an earlier one allows, never widen it.
    """

    toolsets: tuple[str, ...] = _setting(
        (),
        "sets of tools to serve, by commas: `core`, `context`, `memory`, `graph`, `prompts`, `embedding`, "
        "`backup`, `legacy`, `all`; and `memory-tool`, which `all` does not include",
        shown="all",
    )
    tools: tuple[str, ...] = _setting((), "single tools to serve, beside the sets if any are named", shown="all")
    exclude_tools: tuple[str, ...] = _setting((), "tools not to serve")
    read_only: bool = _setting(False, "serve only tools that change nothing")


@dataclass(frozen=True, slots=True)
class Settings:
    """All settings. Field names are the keys of the file and, upper-cased, of the variables."""

    home: Path
    database_url: str | None = _setting(
        None,
        "`postgresql://user:password@host/database` keeps the store in [PostgreSQL](../operate/postgres.md)",
        secret=True,
    )
    database_read_url: str | None = _setting(
        None,
        "a streaming replica of `database_url` that answers recalls and lists, with all that this process wrote; "
        "see [read replicas](../operate/scale.md#read-replicas)",
        secret=True,
    )
    database_direct_url: str | None = _setting(
        None,
        "the PostgreSQL server itself, if `database_url` leads to "
        "[PgBouncer in transaction mode](../operate/database.md#pgbouncer)",
        secret=True,
    )
    vector_index_above: int = _setting(
        50_000,
        "on PostgreSQL, a space with more records gets a vector index; 0 for never",
    )
    database_retry_seconds: int = _setting(10, "how long a call waits for a database that restarts")
    secrets: SecretPolicy = _setting(
        "redact", "what happens to [secrets](../operate/security.md#secrets): `redact`, `block` or `allow`"
    )
    personal_data: PersonalPolicy = _setting(
        "mark", "what happens to [personal data](../guides/personal-data.md): `keep`, `mark` or `redact`"
    )
    fusion: Fusion = _setting("learned", "how recall ranks: `learned`, `weighted` or `rrf`")
    threads: int = _setting(0, "threads of the model; 0 lets it choose")
    user_id: str | None = _setting(None, "recorded with memories; names your own space")
    agent_id: str | None = _setting(None, "recorded with memories")
    org: str = _setting("default", "the organisation's space")
    max_content_bytes: int = _setting(16_000_000, "largest text of one memory")
    max_indexed_characters: int = _setting(
        100_000,
        "how much of a memory is searchable, from its beginning",
    )
    branch_memories: BranchMemories = _setting(
        "share", "who sees what is captured on a [git branch](../guides/git.md): `share`, `isolate` or `stage`"
    )
    automation: AutomationPlan = _setting(
        "learned",
        "[automatic behaviour](../guides/suggestions.md) acts (`A`), asks first (`B`), or goes by your answers",
    )
    compress_after_minutes: int = _setting(30, "idle minutes after which a memory is packed; 0 for never")
    prefer_newer: bool = _setting(False, "show the newest of several results on one subject first")
    recall_conversations: bool = _setting(True, "find turns of imported conversations too, below notes and files")
    import_staging: bool = _setting(
        True, "stage decisions, fixes and preferences of imported conversations for a review"
    )
    embedding_backend: str = _setting(
        "onnx", "`onnx`, `onnx_folder`, `sentence_transformers`, `mlx`, `openai`, or the folder of an ONNX model"
    )
    embedding_model: str | None = _setting(
        None,
        "name of the model, or the whole path of its folder; for `onnx`, `cortex-recall`",
        shown="the backend's own; for `onnx`, `cortex-recall`",
    )
    embedding_device: Device = _setting("cpu", "`cpu`, or `cuda` for `onnx_folder` and `sentence_transformers`")
    embedding_url: str | None = _setting(None, "address of an OpenAI-compatible endpoint")
    embedding_api_key: str | None = _setting(None, "its key", secret=True)
    embedding_dimensions: int = _setting(0, "length of its vectors; needed if it serves memories")
    security_profile: Profile = _setting("code", "what the embedding service refuses: `code` or `strict`")
    rate_limit: int = _setting(120, "embedding requests a minute for each caller; 0 for no limit")
    cache_bytes: int = _setting(64_000_000, "size of the embedding cache in the home; 0 keeps none")
    max_text_length: int = _setting(8_192, "characters of one text given to the embedding service")
    llm_provider: LLMProvider | None = _setting(
        None,
        "`openai` or `anthropic`; none asks no [language model](../guides/llm.md)",
    )
    llm_model: str | None = _setting(None, "the model's name there")
    llm_url: str | None = _setting(None, "address of another server with the same protocol", shown="the provider's own")
    llm_api_key: str | None = _setting(None, "its key", secret=True)
    llm_timeout_seconds: int = _setting(60, "how long one answer may take")
    llm_daily_tokens: int = _setting(200_000, "tokens a day (UTC); 0 for no limit")
    llm_concurrency: int = _setting(2, "questions at the same time")
    grounding_judge: GroundingJudge = _setting(
        "rules",
        "who [judges](../guides/grounding.md#judges) claims that no check decides: `rules` (nobody), `onnx` or `llm`",
    )
    grounding_model: Path | None = _setting(
        None,
        "folder of an entailment model: `model.onnx`, `tokenizer.json` and `config.json` with its labels",
    )
    hook_session_tokens: int = _setting(
        800, "tokens that a [hook](../guides/hooks.md) gives to a session that starts; 0 for none"
    )
    hook_prompt_tokens: int = _setting(400, "tokens that a hook gives with one prompt; 0 for none")
    hook_floor_percent: int = _setting(
        0,
        "minimum score × 100 of a memory that is given with a prompt; 0 = default",
    )
    hook_capture: bool = _setting(True, "whether hooks keep the turns of sessions")
    hook_model: bool = _setting(
        False,
        "whether the [language model](../guides/llm.md) reads the turns that hooks keep, without secrets",
    )
    hook_unreviewed: bool = _setting(
        False,
        "whether hooks give memories that wait for a [review](../guides/hooks.md#what-becomes-a-memory) too, but none "
        "that commands, names an address, claims a permission, or was said after a tool fetched something",
    )
    hook_templates: tuple[str, ...] = _setting(
        (), "saved templates that lay out what hooks give: `start=NAME`, `prompt=NAME`, `tool=NAME`"
    )
    hook_deadline_ms: int = _setting(150, "how long a hook may take, in milliseconds; then it answers nothing")
    hook_idle_seconds: int = _setting(
        900,
        "how long the helper of hooks waits for the next one before it ends; 0 for no helper",
    )
    require_license: bool = _setting(False, "marked tools of the MCP server need a [licence](licences.md)")
    license_key: str | None = _setting(None, "the licence; a secret", secret=True)
    license_public_key: Path | None = _setting(None, "file with the operator's public key")
    snapshot_every: SnapshotEvery = _setting(
        "daily", "how often a server makes a [snapshot](../guides/snapshots.md): `off`, `hourly`, `daily`, `weekly`"
    )
    snapshot_keep_hourly: int = _setting(24, "how many hours keep one of them")
    snapshot_keep_daily: int = _setting(7, "how many days")
    snapshot_keep_weekly: int = _setting(8, "how many weeks")
    cloud_url: str | None = _setting(None, "where to [sync](../guides/sync.md) with")
    sync_personal_data: bool = _setting(False, "push memories with [personal data](../guides/personal-data.md) too")
    passphrase: str | None = _setting(None, "what sync encrypts with; a secret", secret=True)
    passphrase_file: Path | None = _setting(None, "a file with the passphrase that only you may read")
    home_passphrase: str | None = _setting(
        None, "what opens an [encrypted home](../guides/encryption.md); a secret", secret=True
    )
    home_passphrase_file: Path | None = _setting(None, "a file with that passphrase that only you may read")
    tool_bounds: tuple[ToolBound, ...] = ()
    portable_names: bool = _setting(False, "list tool names without dots, for clients that refuse them")
    token: str | None = _setting(
        None,
        "bearer token of HTTP clients; at least 16 printable ASCII characters; required off loopback",
        secret=True,
    )
    allowed_hosts: tuple[str, ...] = _setting((), "further names by which HTTP clients may call this server")
    auth: Authentication = _setting(
        "token",
        "how HTTP [callers](../operate/access.md) are known: `token` (one for all), `tokens` (of their own) or `oidc`",
    )
    oidc_issuer: str | None = _setting(None, "the `iss` of its tokens, exactly")
    oidc_audience: str | None = _setting(None, "the `aud` they must name")
    oidc_jwks: str | None = _setting(None, "its public keys: a file, or the https address its `jwks_uri` names")
    oidc_org_claim: str | None = _setting(
        None,
        "the claim that names the caller's organisation; a token without it is refused. Unset: `org`",
    )
    auto_join: AutoJoin = _setting(
        "off",
        "what an unknown person becomes: nothing (`off`, refused), or a member with the level `read` or `write`",
    )
    subject_rate_limit: int = _setting(600, "HTTP requests a minute for each known caller; 0 for no limit")
    project_roots: tuple[Path, ...] = _setting(
        (),
        "folders of the projects that known callers may name by [path](../operate/access.md#paths)",
    )
    audit: AuditWhen = _setting(
        "auto", "write calls into the audit log: `on`, `off`, or `auto` where callers are known"
    )
    audit_key_file: Path | None = _setting(None, "the key that seals it", shown="`audit.key` in the home")
    stateless_http: Stateless = _setting(
        "auto",
        "HTTP without sessions: `on`, `off`, or `auto` for on with PostgreSQL",
    )
    drain_seconds: int = _setting(20, "how long a stopping server continues with the requests it has")
    http_connections: int = _setting(
        1_000,
        "HTTP connections at the same time, at most half of `ulimit -n`; see [limits](../operate/operations.md#limits)",
        minimum=1,
    )
    http_requests: int = _setting(
        200,
        "HTTP requests at work at the same time, at most two fifths of the connections",
        minimum=1,
    )
    http_header_bytes: int = _setting(65_536, "largest header of a request", minimum=1)
    http_header_seconds: int = _setting(10, "how long a client may take for the header", minimum=1)
    http_body_seconds: int = _setting(
        30,
        "how long it may take for the body, and one second more for each 16,000 bytes; also to read an answer",
        minimum=1,
    )
    http_idle_seconds: int = _setting(30, "how long a connection may wait for its next request", minimum=1)
    call_seconds: int = _setting(
        120,
        "how long one call may take; it then stops with an error and rolls back",
    )
    long_call_seconds: int = _setting(3_600, "the same for tools that scan, tidy, reindex, back up or synchronise")
    log_format: LogFormat = _setting("text", "lines of a server's log: `text` or `json`")
    log_level: LogLevel = _setting(
        "warning",
        "what is logged: `debug`, `info`, `warning` or `error`; `CORTEX_LOG` sets it too ([logs](cli.md#logs))",
        variable="CORTEX_LOG",
    )
    otel_endpoint: str | None = _setting(
        None,
        "address of an OTLP collector, such as `http://localhost:4318`; needs the extra `otel`",
    )

    @property
    def database(self) -> Path:
        return self.home / "cortex.db"

    @property
    def embedding_cache(self) -> Path:
        return self.home / "embeddings.db"


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting that a source can give. `kind` is its type without None; `shown` is its default in words."""

    name: str
    kind: Any
    default: object
    help: str
    shown: str | None
    secret: bool
    minimum: int
    variables: tuple[str, ...]

    def parse(self, value: object, source: str) -> object:
        """The value as the type has it; raises `ConfigurationError` where that cannot be."""
        if get_origin(self.kind) is Literal:
            choices = get_args(self.kind)
            if value not in choices:
                raise self._misread(value, source, f"Choose one of {', '.join(choices)}.")
            return value
        if self.kind is Path:
            return expanded(str(value)).absolute()
        if self.kind is bool:
            if str(value).lower() not in _SWITCH:
                raise self._misread(value, source, "Give true or false.")
            return _SWITCH[str(value).lower()]
        if self.kind is int:
            text = str(value)
            if not text.isascii() or not text.isdigit():
                raise self._misread(value, source, "Give a whole number.")
            if int(text) < self.minimum:
                raise self._misread(value, source, f"Give a whole number of {self.minimum} or more.")
            return int(text)
        if get_origin(self.kind) is tuple:
            items = value.split(",") if isinstance(value, str) else value
            if not isinstance(items, list | tuple) or not all(isinstance(item, str | Path) for item in items):
                raise self._misread(value, source, "Give names, separated by commas.")
            names = tuple(str(item).strip() for item in items if str(item).strip())
            return tuple(expanded(item).absolute() for item in names) if get_args(self.kind)[0] is Path else names
        if not isinstance(value, str):
            raise self._misread(value, source, "Give a text.")
        return value

    def _misread(self, value: object, source: str, remedy: str) -> ConfigurationError:
        given = "not a text" if self.secret else repr(value)
        return ConfigurationError(f"Setting {self.name!r} in {source} is {given}.", remedy=remedy)


@cache
def declared_settings() -> dict[str, Setting]:
    """All settings by name. The home is not one: the file is in it."""
    found = {}
    for owner in (Settings, ToolBound):
        hints = get_type_hints(owner)
        for one in fields(owner):
            if not one.metadata:
                continue
            kinds = [kind for kind in get_args(hints[one.name]) if kind is not NoneType]
            optional = NoneType in get_args(hints[one.name])
            further = one.metadata["variable"]
            found[one.name] = Setting(
                name=one.name,
                kind=kinds[0] if optional else hints[one.name],
                default=one.default,
                help=one.metadata["help"],
                shown=one.metadata["shown"],
                secret=not one.repr,
                minimum=one.metadata["minimum"],
                variables=(f"CORTEX_{one.name.upper()}", *([further] if further else ())),
            )
    return found


def setting_names() -> list[str]:
    return list(declared_settings())


def load_settings(
    home: str | Path | None = None, *, environment: Mapping[str, str] | None = None, **overrides: Any
) -> Settings:
    """Settings for a home: its file, the environment, then the arguments that are not None."""
    variables = os.environ if environment is None else environment
    folder = expanded(home or variables.get("CORTEX_HOME") or "~/.cortex").absolute()
    _keep_to_owner(folder)
    settings = Settings(home=folder)
    settings = _apply(settings, _from_file(folder / "config.toml"), str(folder / "config.toml"))
    settings = _apply(settings, _from_environment(variables), "the environment")
    return _apply(settings, {k: v for k, v in overrides.items() if v is not None}, "the arguments")


def _keep_to_owner(home: Path) -> None:
    """Refuse a home whose settings others can write, or mend it where it is ours."""
    for folder in open_folders(home):
        try:
            mended = shut_out_others(folder)
        except OSError:
            mended = False
        if not mended:
            raise StoreDenied(
                f"Other users of this machine can put files into {folder}, and so decide what Cortex does.",
                remedy="Let its owner alone write there, as with chmod 700, or set CORTEX_HOME elsewhere.",
            )
        if folder not in open_folders(home):  # some file systems keep no permissions
            _log.warning("everybody could write into %s; now its owner can. Look at config.toml there.", folder)


def _from_file(path: Path) -> dict[str, object]:
    try:
        data = read_whole(path, _MOST_BYTES)
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except OSError as error:
        if not os.access(path.parent, os.X_OK):
            # The home itself cannot be entered; opening the store reports that better.
            return {}
        raise ConfigurationError(
            f"{path} cannot be read: {error.strerror}.", remedy="Check its permissions."
        ) from error
    try:
        return tomllib.loads(data.decode("utf-8"))
    except ValueError as error:
        raise ConfigurationError(f"{path} is not valid TOML: {error}.", remedy="Mend or remove it.") from error


def _from_environment(variables: Mapping[str, str]) -> dict[str, object]:
    given = {
        setting.name: next((variables[name] for name in setting.variables if variables.get(name)), None)
        for setting in declared_settings().values()
    }
    return {name: value for name, value in given.items() if value is not None}


def _apply(settings: Settings, values: Mapping[str, object], source: str) -> Settings:
    known = declared_settings()
    if retired := sorted(RETIRED & set(values)):
        _log.warning("%s in %s has no meaning any more: remove it.", ", ".join(retired), source)
        values = {name: value for name, value in values.items() if name not in RETIRED}
    unknown = sorted(set(values) - set(known))
    if unknown:
        raise ConfigurationError(
            f"Unknown setting {unknown[0]!r} in {source}.", remedy=f"Known: {', '.join(sorted(known))}."
        )
    parsed: dict[str, Any] = {name: known[name].parse(value, source) for name, value in values.items()}
    bound = {one.name: parsed.pop(one.name) for one in fields(ToolBound) if one.name in parsed}
    if bound:
        parsed["tool_bounds"] = (*settings.tool_bounds, ToolBound(**bound))
    return replace(settings, **parsed)
