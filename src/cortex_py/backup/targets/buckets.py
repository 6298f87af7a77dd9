"""Buckets: how the library for object stores is set up for S3, Google Cloud Storage and Azure.

The library reads variables by itself, asks services of the machine for credentials, and follows redirects. So all that
matters is told to it here: where to ask, who asks, and that every other host lies behind a proxy that there is not.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import urlsplit

from ..errors import ConfigurationError
from ..paths import expanded
from ..remote import is_loopback
from .target_aws import aws_credentials, aws_region

if TYPE_CHECKING:
    from obstore.store import (
        AzureCredential,
        AzureStore,
        ClientConfig,
        GCSConfig,
        GCSCredential,
        GCSStore,
        RetryConfig,
        S3Credential,
        S3Store,
    )

__all__ = ["BUCKET_OPTIONS", "Bucket", "open_store"]

T = TypeVar("T")

BUCKET_OPTIONS = {"s3": ("endpoint", "region", "path_style"), "gs": ("endpoint",), "az": ("endpoint",)}

# Nothing can listen on port 0.
_NOWHERE = "http://127.0.0.1:0"


@dataclass(frozen=True, slots=True)
class Bucket:
    """What the address of a bucket says."""

    name: str
    prefix: str
    options: Mapping[str, str]
    environment: Mapping[str, str]
    timeout: float


def open_store(scheme: str, bucket: Bucket) -> S3Store | GCSStore | AzureStore:
    """The library's store for a bucket; a ConfigurationError where it lacks something, credentials above all."""
    if scheme == "s3":
        return _s3(bucket)
    return _google(bucket) if scheme == "gs" else _azure(bucket)


def _s3(bucket: Bucket) -> S3Store:
    from obstore.store import S3Store

    known = aws_credentials(bucket.environment)
    credential: S3Credential = {
        "access_key_id": known.key_id,
        "secret_access_key": known.secret,
        "token": known.token,
        "expires_at": None,
    }
    region = bucket.options.get("region") or aws_region(bucket.environment)
    endpoint = _endpoint(bucket, ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"), f"https://s3.{region}.amazonaws.com")
    path_style = _switch(bucket.options.get("path_style", "true"))
    if not path_style:
        parts = urlsplit(endpoint)
        endpoint = parts._replace(netloc=f"{bucket.name}.{parts.netloc}").geturl()
    return S3Store(
        bucket.name,
        prefix=bucket.prefix or None,
        config={
            "endpoint": endpoint,
            # It would win over the other if a variable set it.
            "aws_endpoint_url_s3": endpoint,
            "region": region,
            "virtual_hosted_style_request": not path_style,
            "conditional_put": "etag",
            # Not every server knows how to delete several objects at once.
            "disable_bulk_delete": True,
            "skip_signature": False,
            "s3_express": False,
        },
        client_options=_client(bucket, endpoint),
        retry_config=_no_retries(),
        credential_provider=_always(credential),
    )


def _google(bucket: Bucket) -> GCSStore:
    from obstore.store import GCSStore

    endpoint = _endpoint(bucket, (), "https://storage.googleapis.com")
    provider: Callable[[], GCSCredential] | None = None
    config: GCSConfig = {"base_url": endpoint, "skip_signature": False}
    if token := bucket.environment.get("GOOGLE_OAUTH_ACCESS_TOKEN"):
        provider = _always({"token": token, "expires_at": None})
    else:
        config["service_account_key"] = _service_account(bucket.environment)
    return GCSStore(
        bucket.name,
        prefix=bucket.prefix or None,
        config=config,
        client_options=_client(bucket, endpoint),
        retry_config=_no_retries(),
        credential_provider=provider,
    )


def _azure(bucket: Bucket) -> AzureStore:
    from obstore.store import AzureStore

    account = bucket.environment.get("AZURE_STORAGE_ACCOUNT_NAME") or bucket.environment.get("AZURE_STORAGE_ACCOUNT")
    if not account:
        raise ConfigurationError(
            "The address of a container needs an account.",
            remedy="Set AZURE_STORAGE_ACCOUNT_NAME.",
            field="AZURE_STORAGE_ACCOUNT_NAME",
        )
    endpoint = _endpoint(bucket, ("AZURE_STORAGE_ENDPOINT",), f"https://{account}.blob.core.windows.net")
    return AzureStore(
        bucket.name,
        prefix=bucket.prefix or None,
        config={
            "account_name": account,
            "endpoint": endpoint,
            "skip_signature": False,
            "use_emulator": False,
            "use_azure_cli": False,
            "use_fabric_endpoint": False,
        },
        client_options=_client(bucket, endpoint),
        retry_config=_no_retries(),
        credential_provider=_always(_azure_credential(bucket.environment)),
    )


def _azure_credential(environment: Mapping[str, str]) -> AzureCredential:
    if key := environment.get("AZURE_STORAGE_ACCOUNT_KEY"):
        return {"access_key": key, "expires_at": None}
    if signature := environment.get("AZURE_STORAGE_SAS_TOKEN"):
        return {"sas_token": signature, "expires_at": None}
    if token := environment.get("AZURE_STORAGE_TOKEN"):
        return {"token": token, "expires_at": None}
    raise ConfigurationError(
        "There are no credentials for Azure.",
        remedy="Set AZURE_STORAGE_ACCOUNT_KEY, AZURE_STORAGE_SAS_TOKEN or AZURE_STORAGE_TOKEN.",
        field="AZURE_STORAGE_ACCOUNT_KEY",
    )


def _service_account(environment: Mapping[str, str]) -> str:
    """The key of a service account; what other kinds of credentials need lies on other hosts."""
    text = environment.get("GOOGLE_SERVICE_ACCOUNT_KEY")
    path = environment.get("GOOGLE_APPLICATION_CREDENTIALS")
    if not text and not path:
        raise ConfigurationError(
            "There are no credentials for Google Cloud Storage.",
            remedy="Set GOOGLE_APPLICATION_CREDENTIALS to the file of a service account's key.",
            field="GOOGLE_APPLICATION_CREDENTIALS",
        )
    try:
        text = text or expanded(path or "").read_text(encoding="utf-8")
        known = json.loads(text)
    except (OSError, ValueError):
        known = None
    if not isinstance(known, dict) or known.get("type") != "service_account":
        raise ConfigurationError(
            "The credentials for Google Cloud Storage are not the key of a service account.",
            remedy="Create a key for a service account and name its file in GOOGLE_APPLICATION_CREDENTIALS.",
            field="GOOGLE_APPLICATION_CREDENTIALS",
        )
    # What else such a file can hold would lead the library elsewhere.
    kept = ("type", "private_key", "private_key_id", "client_email")
    return json.dumps({name: known[name] for name in kept if name in known})


def _endpoint(bucket: Bucket, variables: tuple[str, ...], usual: str) -> str:
    named = [bucket.options.get("endpoint"), *(bucket.environment.get(variable) for variable in variables)]
    endpoint = next((one for one in named if one), usual).rstrip("/")
    try:
        parts = urlsplit(endpoint)
        usable = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        usable = None
    if not usable or "@" in parts.netloc or parts.query or parts.fragment:
        raise ConfigurationError(
            "The endpoint is not the address of a server.",
            remedy="Give it as https://HOST or https://HOST:PORT, without user name and password.",
            field="endpoint",
        )
    if parts.scheme == "http" and not (
        is_loopback(parts.hostname or "") or _switch(bucket.environment.get("AWS_ALLOW_HTTP", "false"))
    ):
        raise ConfigurationError(
            f"The endpoint {parts.hostname} would be asked without encryption.",
            remedy="Give it as https://…, or set AWS_ALLOW_HTTP=true where nobody else can listen.",
            field="endpoint",
        )
    return endpoint


def _client(bucket: Bucket, endpoint: str) -> ClientConfig:
    parts = urlsplit(endpoint)
    host = parts.hostname or ""
    proxy, excluded = _NOWHERE, host
    if not is_loopback(host):
        named = [_variable(bucket.environment, f"{kind}_proxy") for kind in (parts.scheme, "all")]
        if any(named):
            proxy, excluded = named[0] or named[1], _variable(bucket.environment, "no_proxy")
    return {
        "allow_http": parts.scheme == "http",
        "timeout": timedelta(seconds=bucket.timeout),
        "connect_timeout": timedelta(seconds=bucket.timeout),
        "proxy_url": proxy,
        "proxy_excludes": excluded,
    }


def _variable(environment: Mapping[str, str], name: str) -> str:
    """A variable that is usual in small letters and in capitals."""
    return environment.get(name) or environment.get(name.upper()) or ""


def _no_retries() -> RetryConfig:
    # It is tried again outside, where the time for all attempts together is known.
    return {"max_retries": 0, "retry_timeout": timedelta(0)}


def _switch(value: str) -> bool:
    if value.lower() not in ("true", "1", "yes", "false", "0", "no"):
        raise ConfigurationError("A switch is neither true nor false.", remedy="Give true or false.", field="url")
    return value.lower() in ("true", "1", "yes")


def _always(value: T) -> Callable[[], T]:
    return lambda: value
