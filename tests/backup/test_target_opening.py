"""Addresses of targets: which there are, what they refuse, and that secrets stay where they belong."""

from __future__ import annotations

import base64
import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from obstore.store import S3Store

from cases import each
from cortex_py.core.errors import ConfigurationError
from cortex_py.parts.backup.targets.addresses import open_target
from cortex_py.parts.backup.targets.buckets import BucketTarget
from timing import MINUTE

from cloud_servers import KEYS, PASSWORD, Asked, FaultyServer, Reply

SECRET = "hunter2-secret"
NOWHERE = {"AWS_SHARED_CREDENTIALS_FILE": "/nonexistent/credentials", "AWS_CONFIG_FILE": "/nonexistent/config"}


@pytest.fixture
def server() -> Iterator[FaultyServer]:
    with FaultyServer() as one:
        yield one


@pytest.mark.parametrize("form", ["{}", "file://{}", "file://localhost{}", "  {} "])
def test_a_folder_has_several_addresses(tmp_path: Path, form: str) -> None:
    target = open_target(form.format(f"{tmp_path}/copies"))
    target.put("a", b"1")
    assert (tmp_path / "copies" / "a").read_bytes() == b"1"
    assert target.shown == f"{tmp_path}/copies"


@pytest.mark.parametrize("form", ["~/copies", "file://~/copies", "file:///~/copies"])
def test_a_folder_may_lie_in_the_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert open_target(form).shown == f"{tmp_path}/copies"


def test_the_path_of_a_file_address_may_be_quoted(tmp_path: Path) -> None:
    assert open_target(f"file://{tmp_path}/my%20copies").shown == f"{tmp_path}/my copies"


@each(
    "url",
    [
        *("", "copies", "ftp://host/x", "file://host/x", "file://", "s3://", "s3:///x", "https://", "http:///x"),
        *(
            "s3://bucket/a/../b",
            "s3://bucket/a//b",
            "https://host/a/./b",
            "s3://bucket#x",
            "http://[::1",
            "s3://b:99/x",
        ),
        *("https://host/x?a=b", "file:///x?y=z", "s3://bucket?unknown=1", "s3://bucket?region=a&region=b"),
        *("https://ho\nst/", "https://host:99999/", "s3://bucket?path_style=perhaps", "s3://bucket?endpoint=ftp://x"),
        *("http://example.org/dav", "s3://bucket?endpoint=http://minio.example.org:9000"),
    ],
)
def test_an_address_that_cannot_be_used_is_refused(url: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        open_target(url, environment=KEYS)
    assert caught.value.remedy


@each(
    "url",
    [
        f"s3://AKIA:{SECRET}@bucket/x",
        f"s3://{SECRET}@bucket/x",
        f"https://alice:{SECRET}@example.org/dav",
        f"https://alice:{SECRET}@[::1/dav",
        f"file://alice:{SECRET}@/x",
        f"gs://a:{SECRET}@bucket",
        f"s3://bucket?endpoint=https://a:{SECRET}@example.org",
        f"s3://bucket?secret={SECRET}",
        f"s3://bucket?{SECRET}",
        f"https://example.org/dav?token={SECRET}",
        f"ftp://alice:{SECRET}@example.org",
    ],
)
def test_a_secret_in_an_address_is_refused_and_not_repeated(url: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        open_target(url, environment=KEYS)
    assert SECRET not in str(caught.value)
    assert SECRET not in repr(caught.value.__cause__)


def test_a_user_needs_a_password() -> None:
    with pytest.raises(ConfigurationError, match="CORTEX_CLOUD_PASSWORD"):
        open_target("https://alice@example.org/dav", environment={})


def test_user_and_password_are_sent_to_the_server(server: FaultyServer) -> None:
    target = open_target(
        f"http://al%40ice@127.0.0.1:{server.port}/my%20dav/", environment={"CORTEX_CLOUD_PASSWORD": PASSWORD}
    )
    assert target.get("a", 1) is None
    target.close()
    (asked,) = server.asked
    assert asked.path == "/my%20dav/a"
    assert base64.b64decode(asked.headers["authorization"].removeprefix("Basic ")).decode() == f"al@ice:{PASSWORD}"
    assert target.shown == f"http://127.0.0.1:{server.port}/my dav"


def test_without_a_user_nobody_is_named(server: FaultyServer) -> None:
    target = open_target(server.url, environment={"CORTEX_CLOUD_PASSWORD": PASSWORD})
    assert target.get("a", 1) is None
    target.close()
    assert "authorization" not in server.asked[0].headers


def test_a_proxy_is_not_used_on_this_machine(server: FaultyServer, monkeypatch: pytest.MonkeyPatch) -> None:
    with FaultyServer() as proxy:
        variables = dict.fromkeys(("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"), proxy.url)
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        for url in (server.url, f"s3://bucket?endpoint={server.url}"):
            target = open_target(url, environment={**KEYS, **variables})
            assert target.get("a", 1) is None
            target.close()
        assert proxy.asked == []
    assert len(server.asked) == 2


def test_credentials_come_from_the_environment(server: FaultyServer) -> None:
    environment = {**KEYS, "AWS_SESSION_TOKEN": "tok", "AWS_ENDPOINT_URL": server.url, "AWS_REGION": "eu-north-1"}
    assert open_target("s3://bucket/x", environment=environment).get("a", 1) is None
    (asked,) = server.asked
    assert asked.path == "/bucket/x/a"
    assert "Credential=AKIATEST/" in asked.headers["authorization"]
    assert "/eu-north-1/s3/" in asked.headers["authorization"]
    assert asked.headers["x-amz-security-token"] == "tok"


def test_credentials_come_from_a_profile(server: FaultyServer, tmp_path: Path) -> None:
    (tmp_path / "credentials").write_text(
        "[default]\naws_access_key_id = OTHER\naws_secret_access_key = x\n"
        "[work]\naws_access_key_id = AKIAWORK\naws_secret_access_key = a%b\n"
    )
    (tmp_path / "config").write_text("[profile work]\nregion = ap-south-1\n")
    environment = {
        "AWS_SHARED_CREDENTIALS_FILE": str(tmp_path / "credentials"),
        "AWS_CONFIG_FILE": str(tmp_path / "config"),
        "AWS_PROFILE": "work",
    }
    assert open_target(f"s3://bucket?endpoint={server.url}", environment=environment).get("a", 1) is None
    assert "Credential=AKIAWORK/" in server.asked[0].headers["authorization"]
    assert "/ap-south-1/" in server.asked[0].headers["authorization"]


def test_a_damaged_profile_is_told_without_its_lines(tmp_path: Path) -> None:
    (tmp_path / "credentials").write_text(f"{SECRET}\n")
    with pytest.raises(ConfigurationError, match="cannot be read") as caught:
        open_target("s3://bucket", environment={"AWS_SHARED_CREDENTIALS_FILE": str(tmp_path / "credentials")})
    assert SECRET not in str(caught.value)
    assert caught.value.__cause__ is None


def test_the_bucket_may_be_part_of_the_host() -> None:
    """No name of this machine has one below it everywhere, so this is looked up and not tried."""
    target = open_target("s3://bucket/x?endpoint=https://example.org:9000&path_style=false", environment=KEYS)
    assert isinstance(target, BucketTarget)
    store = target.store
    assert isinstance(store, S3Store)
    assert {value for name, value in store.config.items() if "endpoint" in name} == {"https://bucket.example.org:9000"}
    assert store.client_options is not None
    assert store.client_options["proxy_excludes"] == "bucket.example.org"


@pytest.mark.parametrize("scheme", ["s3", "gs", "az"])
def test_without_credentials_nobody_is_asked_for_some(
    server: FaultyServer, monkeypatch: pytest.MonkeyPatch, scheme: str
) -> None:
    """The services of a machine in the cloud, which would give credentials, are not looked for."""
    for name in ("AWS_METADATA_ENDPOINT", "AWS_CONTAINER_CREDENTIALS_FULL_URI", "AWS_STS_ENDPOINT", "MSI_ENDPOINT"):
        monkeypatch.setenv(name, server.url)
    monkeypatch.setenv("GCE_METADATA_HOST", f"127.0.0.1:{server.port}")
    environment = {**NOWHERE, "AZURE_STORAGE_ACCOUNT_NAME": "account"}
    with pytest.raises(ConfigurationError, match="no credentials"):
        open_target(f"{scheme}://bucket/x", environment=environment)
    assert server.asked == []


def test_only_the_given_environment_counts(server: FaultyServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """The library would read the variables of the process by itself."""
    with FaultyServer() as other:
        for name in ("AWS_ENDPOINT", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_METADATA_ENDPOINT"):
            monkeypatch.setenv(name, other.url)
        others = {"AWS_ACCESS_KEY_ID": "OTHER", "AWS_SECRET_ACCESS_KEY": "OTHER", "AWS_SESSION_TOKEN": "OTHER"}
        for name, value in {**others, "AWS_SKIP_SIGNATURE": "true", "AWS_REGION": "xx", "AWS_BUCKET": "yy"}.items():
            monkeypatch.setenv(name, value)
        environment = {**KEYS, **NOWHERE, "AWS_ENDPOINT_URL_S3": server.url}
        assert open_target("s3://bucket", environment=environment).get("a", 1) is None
        assert other.asked == []
    (asked,) = server.asked
    assert asked.path == "/bucket/a"
    assert "Credential=AKIATEST/" in asked.headers["authorization"]
    assert "/us-east-1/" in asked.headers["authorization"]
    assert "x-amz-security-token" not in asked.headers


def test_google_is_asked_with_a_condition_for_what_is_new(server: FaultyServer) -> None:
    def usual(asked: Asked) -> Reply:
        if asked.method == "PUT":
            return Reply(412 if asked.headers.get("x-goog-if-generation-match") == "0" else 500)
        return Reply(404)

    server.usual = usual
    target = open_target(
        f"gs://bucket/x?endpoint={server.url}", environment={"GOOGLE_OAUTH_ACCESS_TOKEN": "tok"}, timeout=MINUTE
    )
    assert target.create("a", b"1") is False
    assert target.get("a", 1) is None
    assert {one.headers["authorization"] for one in server.asked} == {"Bearer tok"}
    assert target.shown == "gs://bucket/x"


def test_azure_is_asked_with_a_condition_for_what_is_new(server: FaultyServer) -> None:
    heads = iter([404, 200])

    def usual(asked: Asked) -> Reply:
        if asked.method == "PUT":
            return Reply(409 if asked.headers.get("if-none-match") == "*" else 500)
        found = {"ETag": '"1"', "Last-Modified": "Wed, 21 Oct 2015 07:28:00 GMT"}
        return Reply(next(heads) if asked.method == "HEAD" else 404, headers=found)

    server.usual = usual
    environment = {
        "AZURE_STORAGE_ACCOUNT_NAME": "account",
        "AZURE_STORAGE_ACCOUNT_KEY": base64.b64encode(b"k" * 32).decode(),
    }
    target = open_target(f"az://container/x?endpoint={server.url}", environment=environment, timeout=MINUTE)
    assert target.create("a", b"1") is False
    assert target.get("a", 1) is None
    assert all(one.headers["authorization"].startswith("SharedKey account:") for one in server.asked)


def test_azure_needs_an_account() -> None:
    with pytest.raises(ConfigurationError, match="AZURE_STORAGE_ACCOUNT_NAME"):
        open_target("az://container", environment={})


@pytest.mark.parametrize("content", [None, "{", "[]", json.dumps({"type": "authorized_user", "refresh_token": SECRET})])
def test_google_takes_the_key_of_a_service_account_only(tmp_path: Path, content: str | None) -> None:
    path = tmp_path / "key.json"
    if content is not None:
        path.write_text(content)
    with pytest.raises(ConfigurationError, match="service account") as caught:
        open_target("gs://bucket", environment={"GOOGLE_APPLICATION_CREDENTIALS": str(path)})
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize("url", ["s3://bucket", "gs://bucket", "az://container"])
def test_a_missing_library_is_told_with_how_to_get_it(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    monkeypatch.setitem(sys.modules, "obstore", None)
    with pytest.raises(ConfigurationError, match=r"pip install '\.\[cloud\]'"):
        open_target(url, environment=KEYS)


def test_other_targets_do_without_the_library(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "obstore", None)
    monkeypatch.setitem(sys.modules, "obstore.store", None)
    open_target(str(tmp_path / "x")).put("a", b"1")
    open_target("https://example.org/dav").close()


@each("timeout", [0, -1, float("nan"), float("inf")])
def test_a_time_limit_is_a_number_of_seconds(timeout: float) -> None:
    with pytest.raises(ConfigurationError, match="time limit"):
        open_target("/x", timeout=timeout)
