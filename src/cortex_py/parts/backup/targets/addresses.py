"""Opens a target by its address: a folder, a bucket or a WebDAV server."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from ....core.errors import ConfigurationError
from ....core.paths import expanded
from ....core.remote import is_loopback
from .buckets import BUCKET_OPTIONS, Bucket, BucketTarget, open_store, require_library
from .folder import FolderTarget
from .target import Target
from .webdav import WebDavTarget

__all__ = ["open_target"]

_PASSWORD = "CORTEX_CLOUD_PASSWORD"
_FORMS = "Give a folder, file:///FOLDER, s3://BUCKET/PREFIX, gs://…, az://… or https://USER@HOST/FOLDER."


def open_target(url: str, *, environment: Mapping[str, str] = os.environ, timeout: float = 30.0) -> Target:
    """Open the target at an address. No operation takes more than `timeout` seconds, retries included.

    Nothing is sent yet. Secrets come from the environment; an address that contains one is refused.
    """
    if not 0 < timeout < 86_400:
        raise ConfigurationError("The time limit of a target is out of range.", remedy="Give a number of seconds.")
    url = url.strip()
    if url.startswith("~") or Path(url).is_absolute():
        return FolderTarget(_folder(url))
    parts = _parts(url)
    if parts.scheme == "file":
        return FolderTarget(_folder_of(parts))
    if parts.scheme in ("http", "https"):
        return _webdav(parts, environment, timeout)
    if parts.scheme in BUCKET_OPTIONS:
        return _bucket(parts, environment, timeout)
    raise ConfigurationError("The target has an unknown kind of address.", remedy=_FORMS, field="url")


def _parts(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        password, _ = parts.password, parts.port
    except ValueError:
        # Without the cause, which would show the address.
        raise ConfigurationError("The address of the target cannot be read.", remedy=_FORMS, field="url") from None
    if password is not None or (parts.username is not None and parts.scheme not in ("http", "https")):
        raise ConfigurationError(
            "The address of the target contains credentials.",
            remedy=f"Leave them out; a server's password is read from {_PASSWORD}, those of buckets from their usual "
            "variables.",
            field="url",
        )
    if parts.fragment or not url.isprintable():
        raise ConfigurationError("The address of the target cannot be read.", remedy=_FORMS, field="url")
    return parts


def _options(parts: SplitResult, known: tuple[str, ...]) -> dict[str, str]:
    pairs = parse_qsl(parts.query, keep_blank_values=True)
    options = dict(pairs)
    if set(options) - set(known) or len(options) != len(pairs):
        # Not named: they could contain a secret.
        remedy = f"Known are {', '.join(known)}." if known else "Leave out the question mark and what follows it."
        raise ConfigurationError("The address of the target has unknown options.", remedy=remedy, field="url")
    return options


def _folder(path: str) -> Path:
    try:
        return expanded(path).absolute()
    except RuntimeError:
        raise ConfigurationError(
            "The home folder of the target is not known.", remedy="Give the whole path.", field="url"
        ) from None


def _folder_of(parts: SplitResult) -> Path:
    _options(parts, ())
    path = unquote(parts.path)
    if parts.netloc.startswith("~"):
        path = parts.netloc + path
    elif path.startswith("/~/"):
        path = path[1:]
    elif parts.netloc not in ("", "localhost") or not path.startswith("/"):
        raise ConfigurationError(
            "The target is a file: address with a host, or without a folder.",
            remedy="Give it as file:///FOLDER, with three slashes.",
            field="url",
        )
    return _folder(path)


def _webdav(parts: SplitResult, environment: Mapping[str, str], timeout: float) -> WebDavTarget:
    _options(parts, ())
    host = parts.hostname
    if not host:
        raise ConfigurationError("The address of the target names no server.", remedy=_FORMS, field="url")
    loopback = is_loopback(host)
    if parts.scheme == "http" and not loopback:
        raise ConfigurationError(
            f"The target on {host} would be asked without encryption.", remedy="Give it as https://…", field="url"
        )
    user = unquote(parts.username) if parts.username else None
    password = environment.get(_PASSWORD)
    if user is not None and not password:
        raise ConfigurationError(
            f"There is no password for the target on {host}.", remedy=f"Set {_PASSWORD}.", field=_PASSWORD
        )
    shown_host = f"[{host}]" if ":" in host else host
    port = f":{parts.port}" if parts.port else ""
    return WebDavTarget(
        f"{parts.scheme}://{shown_host}{port}",
        _prefix(parts),
        user=user,
        password=password,
        timeout=timeout,
        loopback=loopback,
    )


def _bucket(parts: SplitResult, environment: Mapping[str, str], timeout: float) -> BucketTarget:
    options = _options(parts, BUCKET_OPTIONS[parts.scheme])
    # Not `hostname`, which is in lower case.
    name, prefix = parts.netloc, _prefix(parts)
    if not name or ":" in name:
        raise ConfigurationError("The address of the target names no bucket.", remedy=_FORMS, field="url")
    require_library()
    bucket = Bucket(name, prefix, options, environment, timeout)
    return BucketTarget(open_store(parts.scheme, bucket), f"{parts.scheme}://{name}/{prefix}".rstrip("/"), timeout)


def _prefix(parts: SplitResult) -> str:
    """The path without slashes at its ends."""
    prefix = unquote(parts.path).strip("/")
    if prefix and any(step in ("", ".", "..") for step in prefix.split("/")):
        raise ConfigurationError(
            "The path of the target has empty or relative steps.",
            remedy="Leave out '.', '..' and double slashes.",
            field="url",
        )
    return prefix
