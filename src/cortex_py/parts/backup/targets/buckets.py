"""A bucket of an object store (S3, Google Cloud Storage, Azure) as a target.

The library reads variables by itself, asks services of the machine for credentials and follows redirects. So
everything that matters is passed explicitly: the endpoint, the credentials, and a proxy that does not exist for every
other host. Services that hand out credentials over the network are never asked.
"""

from __future__ import annotations

import asyncio
import configparser
import json
import re
from collections.abc import Callable, Coroutine, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

from ....core.errors import ConfigurationError, extra_remedy
from ....core.paths import expanded, read_whole
from ....core.remote import is_loopback
from .target import (
    StoredObject,
    TargetProblem,
    Trouble,
    check_name,
    check_prefix,
    is_name,
    problem_of_status,
    retry_request,
    too_large,
)

if TYPE_CHECKING:
    from obstore.store import (
        AzureConfig,
        AzureCredential,
        AzureStore,
        ClientConfig,
        GCSConfig,
        GCSCredential,
        GCSStore,
        S3Config,
        S3Credential,
        S3Store,
    )

__all__ = ["BUCKET_OPTIONS", "Bucket", "BucketTarget", "open_store", "require_library"]


_USUAL_REGION = "us-east-1"
_MOST_CREDENTIALS = 1_000_000
BUCKET_OPTIONS = {"s3": ("endpoint", "region", "path_style"), "gs": ("endpoint",), "az": ("endpoint",)}
# Nothing can listen on port 0.
_NOWHERE = "http://127.0.0.1:0"


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Bucket:
    """The parts of a bucket's address."""

    name: str
    prefix: str
    options: Mapping[str, str]
    environment: Mapping[str, str]
    timeout: float


def open_store(scheme: str, bucket: Bucket) -> S3Store | GCSStore | AzureStore:
    """Create the library's store for a bucket; ConfigurationError if something is missing."""
    if scheme == "s3":
        return _s3(bucket)
    return _google(bucket) if scheme == "gs" else _azure(bucket)


def _s3(bucket: Bucket) -> S3Store:
    from obstore.store import S3Store

    credential = aws_credentials(bucket.environment)
    region = bucket.options.get("region") or aws_region(bucket.environment)
    endpoint = _endpoint(bucket, ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"), f"https://s3.{region}.amazonaws.com")
    path_style = _switch(bucket.options.get("path_style", "true"))
    if not path_style:
        parts = urlsplit(endpoint)
        endpoint = parts._replace(netloc=f"{bucket.name}.{parts.netloc}").geturl()
    config: S3Config = {
        "endpoint": endpoint,
        # It would take precedence if a variable set it.
        "aws_endpoint_url_s3": endpoint,
        "region": region,
        "virtual_hosted_style_request": not path_style,
        "conditional_put": "etag",
        # Not every server can delete several objects at once.
        "disable_bulk_delete": True,
        "skip_signature": False,
        "s3_express": False,
    }
    return S3Store(
        bucket.name, config=config, credential_provider=lambda: credential, **_usual_options(bucket, endpoint)
    )


def _google(bucket: Bucket) -> GCSStore:
    from obstore.store import GCSStore

    endpoint = _endpoint(bucket, (), "https://storage.googleapis.com")
    provider: Callable[[], GCSCredential] | None = None
    config: GCSConfig = {"base_url": endpoint, "skip_signature": False}
    if token := bucket.environment.get("GOOGLE_OAUTH_ACCESS_TOKEN"):
        provider = lambda: {"token": token, "expires_at": None}  # noqa: E731 - its type is above
    else:
        config["service_account_key"] = _service_account(bucket.environment)
    return GCSStore(bucket.name, config=config, credential_provider=provider, **_usual_options(bucket, endpoint))


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
    credential = _azure_credential(bucket.environment)
    config: AzureConfig = {
        "account_name": account,
        "endpoint": endpoint,
        "skip_signature": False,
        "use_emulator": False,
        "use_azure_cli": False,
        "use_fabric_endpoint": False,
    }
    return AzureStore(
        bucket.name, config=config, credential_provider=lambda: credential, **_usual_options(bucket, endpoint)
    )


def _usual_options(bucket: Bucket, endpoint: str) -> Any:
    return {
        "prefix": bucket.prefix or None,
        "client_options": _client(bucket, endpoint),
        # Retries happen outside, where the time for all attempts together is known.
        "retry_config": {"max_retries": 0, "retry_timeout": timedelta(0)},
    }


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
    """The key of a service account; other kinds of credentials would need requests to other hosts."""
    text = environment.get("GOOGLE_SERVICE_ACCOUNT_KEY")
    path = environment.get("GOOGLE_APPLICATION_CREDENTIALS")
    if not text and not path:
        raise ConfigurationError(
            "There are no credentials for Google Cloud Storage.",
            remedy="Set GOOGLE_APPLICATION_CREDENTIALS to the file of a service account's key.",
            field="GOOGLE_APPLICATION_CREDENTIALS",
        )
    try:
        text = text or read_whole(expanded(path or ""), _MOST_CREDENTIALS).decode("utf-8")
        known = json.loads(text)
    except (OSError, ValueError):
        known = None
    if not isinstance(known, dict) or known.get("type") != "service_account":
        raise ConfigurationError(
            "The credentials for Google Cloud Storage are not the key of a service account.",
            remedy="Create a key for a service account and name its file in GOOGLE_APPLICATION_CREDENTIALS.",
            field="GOOGLE_APPLICATION_CREDENTIALS",
        )
    # Other fields of the file could direct the library to other hosts.
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
            f"The endpoint {parts.hostname} would be used without encryption.",
            remedy="Give it as https://…, or set AWS_ALLOW_HTTP=true on a trusted network.",
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
    """A variable that is commonly written in lower case or in capitals."""
    return environment.get(name) or environment.get(name.upper()) or ""


def _switch(value: str) -> bool:
    if value.lower() not in ("true", "1", "yes", "false", "0", "no"):
        raise ConfigurationError("A switch is neither true nor false.", remedy="Give true or false.", field="url")
    return value.lower() in ("true", "1", "yes")


# -- credentials for S3 -----------------------------------------------------------------------------


def aws_credentials(environment: Mapping[str, str]) -> S3Credential:
    """The credentials in the environment, else those of the profile in the credentials file."""
    source: Mapping[str, str] = {
        name: environment.get(name.upper(), "")
        for name in ("aws_access_key_id", "aws_secret_access_key", "aws_session_token")
    }
    if not source["aws_access_key_id"] and not source["aws_secret_access_key"]:
        source = _section(environment, "AWS_SHARED_CREDENTIALS_FILE", "~/.aws/credentials", _profile(environment))
    key_id, secret = source.get("aws_access_key_id", ""), source.get("aws_secret_access_key", "")
    if not key_id or not secret:
        raise ConfigurationError(
            "There are no credentials for S3.",
            remedy="Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE with a key in ~/.aws/credentials; "
            "`aws configure export-credentials --format env` writes those of other kinds.",
            field="AWS_ACCESS_KEY_ID",
        )
    token = source.get("aws_session_token") or None
    return {"access_key_id": key_id, "secret_access_key": secret, "token": token, "expires_at": None}


def aws_region(environment: Mapping[str, str]) -> str:
    """The region that the environment or the profile names."""
    named = environment.get("AWS_REGION") or environment.get("AWS_DEFAULT_REGION")
    if named:
        return named
    profile = _profile(environment)
    title = profile if profile == "default" else f"profile {profile}"
    return _section(environment, "AWS_CONFIG_FILE", "~/.aws/config", title).get("region") or _USUAL_REGION


def _profile(environment: Mapping[str, str]) -> str:
    return environment.get("AWS_PROFILE") or "default"


def _section(environment: Mapping[str, str], variable: str, usual: str, title: str) -> Mapping[str, str]:
    path = expanded(environment.get(variable) or usual)
    # Without interpolation: a secret may contain a percent sign.
    parser = configparser.RawConfigParser(default_section="")
    try:
        parser.read_string(read_whole(path, _MOST_CREDENTIALS).decode("utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError, configparser.Error):
        # Without the cause, which would show lines of the file.
        raise ConfigurationError(f"{path} cannot be read.", remedy="Fix it, or check its permissions.") from None
    return dict(parser[title]) if parser.has_section(title) else {}


_STATUS = re.compile(r"non-2xx status code: (\d{3})")
_NO_BUCKET = re.compile(r"NoSuchBucket|ContainerNotFound|bucket does not exist")
_FULL = re.compile(r"QuotaExceeded|StorageFull|EntityTooLarge")
_UNTRUSTED = re.compile(r"InvalidCertificate|UnknownIssuer|HandshakeFailure")
# No replica has more names than this; it guards against an endless list.
_MOST_LISTED = 1_000_000
_PAGE = 1_000


def require_library() -> None:
    """Name what to install if the library is missing."""
    try:
        import obstore  # noqa: F401
    except ImportError:
        raise ConfigurationError(
            "Buckets need a library that is not installed.", remedy=extra_remedy("cloud")
        ) from None


class BucketTarget:
    """Objects are objects of the bucket. The server makes each of them appear whole."""

    def __init__(self, store: S3Store | GCSStore | AzureStore, shown: str, timeout: float) -> None:
        self.store = store
        self.shown = shown
        self._timeout = timeout

    def put(self, name: str, data: bytes) -> None:
        check_name(name)

        async def write() -> None:
            await self.store.put_async(name, data, use_multipart=False)

        self._asked(write)

    def create(self, name: str, data: bytes) -> bool:
        """Write an object unless it exists; the server decides which of several writers was first.

        Some servers do not support that. For one that says so, or ignores the condition, the check happens before the
        write: two writers at the same moment may then both succeed.
        """
        check_name(name)

        async def write() -> bool:
            if await self._exists(name):
                return False
            try:
                await self.store.put_async(name, data, mode="create")
            except _library_errors() as error:
                status = _status(error)
                if status == 412:
                    return False
                if status == 409:
                    # It exists, or another writer is at work and neither was first yet.
                    if await self._exists(name):
                        return False
                    raise TargetProblem(Trouble.BUSY, status=status, retryable=True, undone=True) from None
                if status != 501:
                    raise
                await self.store.put_async(name, data, use_multipart=False)
            return True

        return self._asked(write, repeatable=False)

    def get(self, name: str, limit: int) -> bytes | None:
        check_name(name)

        async def read() -> bytes | None:
            try:
                found = await self.store.get_async(name)
            except FileNotFoundError as error:
                if _NO_BUCKET.search(str(error)):
                    raise
                return None
            data = bytearray()
            if found.meta["size"] <= limit:
                async for part in found.stream(min_chunk_size=1):
                    data += part
                    if len(data) > limit:
                        break
                else:
                    return bytes(data)
            raise too_large(self.shown, name, limit)

        return self._asked(read)

    def list(self, prefix: str) -> Iterator[StoredObject]:
        check_prefix(prefix)
        # The library knows whole parts of names only.
        folder = prefix.rpartition("/")[0] or None

        async def read() -> set[StoredObject]:
            found: set[StoredObject] = set()
            async for page in self.store.list(folder, chunk_size=_PAGE):
                for one in page:
                    if one["path"].startswith(prefix) and is_name(one["path"]):
                        found.add(StoredObject(one["path"], one["size"]))
                if len(found) > _MOST_LISTED:
                    raise TargetProblem(Trouble.FOREIGN)
            return found

        return iter(sorted(self._asked(read)))

    def delete(self, name: str) -> None:
        check_name(name)

        async def remove() -> None:
            try:
                await self.store.delete_async(name)
            except FileNotFoundError as error:
                if _NO_BUCKET.search(str(error)):
                    raise

        self._asked(remove)

    def close(self) -> None:
        """Connections end with the store."""

    async def _exists(self, name: str) -> bool:
        try:
            await self.store.head_async(name)
        except FileNotFoundError:
            return False
        except _library_errors() as error:
            problem = _problem(error)
            problem.undone = True
            raise problem from None
        return True

    def _asked(self, ask: Callable[[], Coroutine[Any, Any, T]], *, repeatable: bool = True) -> T:
        def attempt(seconds: float) -> T:
            # In its own thread, since the caller's thread may already run an event loop.
            with ThreadPoolExecutor(1) as thread:
                return thread.submit(asyncio.run, _bounded(ask, seconds)).result()

        return retry_request(self.shown, self._timeout, attempt, repeatable=repeatable)


async def _bounded(ask: Callable[[], Coroutine[Any, Any, T]], seconds: float) -> T:
    try:
        async with asyncio.timeout(seconds):
            return await ask()
    except TimeoutError:
        raise TargetProblem(Trouble.TIMED_OUT) from None
    except _library_errors() as error:
        raise _problem(error) from None


def _library_errors() -> tuple[type[Exception], ...]:
    from obstore.exceptions import BaseError

    # The library reports a missing object with the error for files.
    return (BaseError, FileNotFoundError)


def _status(error: Exception) -> int | None:
    found = _STATUS.search(str(error))
    return int(found[1]) if found else None


def _problem(error: Exception) -> TargetProblem:
    """The fault behind an error of the library, much of which is only in its message."""
    from obstore.exceptions import InvalidPathError

    words = str(error)
    status = _status(error)
    if isinstance(error, InvalidPathError):
        return TargetProblem(Trouble.FOREIGN)
    if status is not None:
        # Only with an error status: the text of an answer can be anything.
        return TargetProblem(Trouble.FULL, status=status) if _FULL.search(words) else problem_of_status(status)
    if "BareRedirect" in words:
        return TargetProblem(Trouble.MOVED)
    if "kind: Timeout" in words:
        return TargetProblem(Trouble.TIMED_OUT, retryable=True)
    if "kind: Connect" in words:
        if _UNTRUSTED.search(words):
            return TargetProblem(Trouble.TLS, undone=True)
        return TargetProblem(Trouble.UNREACHABLE, retryable=True, undone=True)
    return TargetProblem(Trouble.BROKEN_OFF, retryable=True)
