"""Servers that fail: what is tried again, for how long, and what is told in the end."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import pytest

from cortex_py.core.errors import NetworkError
from cortex_py.parts.backup.targets.addresses import open_target
from cortex_py.parts.backup.targets.target import StoredObject, Target
from timing import no_hang

from cloud_servers import KEYS, PASSWORD, USER, Asked, FaultyServer, Reply, always, closed_port, hang_up, s3_server

SECRETS = (*KEYS.values(), PASSWORD, USER, "token-of-session", "endpoint=")
FOUND = Reply(200, b"hello", {"ETag": '"1"', "Last-Modified": "Wed, 21 Oct 2015 07:28:00 GMT"})
MULTISTATUS = '<?xml version="1.0"?><D:multistatus xmlns:D="DAV:">{}</D:multistatus>'
ENTRY = (
    "<D:response><D:href>{}</D:href><D:propstat><D:prop><D:resourcetype>{}</D:resourcetype>"
    "<D:getcontentlength>{}</D:getcontentlength></D:prop></D:propstat></D:response>"
)


OPENED: list[Target] = []


def open_at(kind: str, port: int, timeout: float = 10.0, host: str = "127.0.0.1") -> Target:
    if kind == "s3":
        url, environment = f"s3://bucket/in?endpoint=http://{host}:{port}", dict(KEYS)
        environment["AWS_SESSION_TOKEN"] = "token-of-session"
    else:
        url, environment = f"http://{USER}@{host}:{port}/in", {"CORTEX_CLOUD_PASSWORD": PASSWORD}
    target = open_target(url, environment=environment, timeout=timeout)
    OPENED.append(target)
    return target


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cortex_py.parts.backup.targets.target.FIRST_PAUSE", 0.02)


@pytest.fixture(autouse=True)
def _all_closed() -> Iterator[None]:
    yield
    while OPENED:
        OPENED.pop().close()


def listing(kind: str, names: dict[str, int]) -> Reply:
    """A folder or bucket that holds those names."""
    if kind == "s3":
        keys = "".join(
            f"<Contents><Key>in/{name}</Key><Size>{size}</Size><LastModified>2026-01-01T00:00:00.000Z</LastModified>"
            f"<ETag>1</ETag></Contents>"
            for name, size in names.items()
        )
        return Reply(200, f"<ListBucketResult><IsTruncated>false</IsTruncated>{keys}</ListBucketResult>".encode())
    entries = "".join(ENTRY.format(f"/in/{name}", "", size) for name, size in names.items())
    return Reply(207, MULTISTATUS.format(entries).encode())


@pytest.fixture
def server() -> Iterator[FaultyServer]:
    with FaultyServer() as one:
        yield one


@pytest.fixture(params=["s3", "webdav"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def target(kind: str, server: FaultyServer) -> Target:
    return open_at(kind, server.port)


def fault_of(use: Callable[[], object], said: str) -> NetworkError:
    with pytest.raises(NetworkError, match=said) as caught:
        use()
    error = caught.value
    assert re.match(r"(s3://bucket/in|http://127\.0\.0\.1:\d+/in) ", error.message)
    assert error.remedy
    assert not any(secret in str(error) for secret in SECRETS)
    assert error.__cause__ is None
    assert error.__suppress_context__
    return error


def test_a_server_that_recovers_is_asked_again(server: FaultyServer, target: Target) -> None:
    server.script = [always(503), always(500), always(429), lambda _: FOUND]
    assert target.get("a", 5) == b"hello"
    assert len(server.asked) == 4


def test_a_list_is_asked_for_again(server: FaultyServer, target: Target, kind: str) -> None:
    server.script = [always(503), hang_up, lambda _: listing(kind, {"a": 1, "b": 2})]
    assert list(target.list("")) == [StoredObject("a", 1), StoredObject("b", 2)]


def test_one_that_stays_out_of_order_is_told_after_a_few_attempts(server: FaultyServer, kind: str) -> None:
    server.usual = always(503)
    error = fault_of(lambda: open_at(kind, server.port, timeout=10).get("a", 5), "busy")
    assert "503" in error.message
    assert 2 <= len(server.asked) <= 6


@pytest.mark.parametrize(
    ("status", "said"),
    [(401, "denies access"), (403, "denies access"), (507, "is full"), (400, "refuses"), (307, "redirects")],
)
def test_what_will_not_pass_is_told_at_once(server: FaultyServer, target: Target, status: int, said: str) -> None:
    server.usual = always(status, b"<Error><Code>Whatever</Code></Error>")
    fault_of(lambda: target.get("a", 5), said)
    assert len(server.asked) == 1
    for use in (lambda: target.put("a", b"1"), lambda: target.create("a", b"1"), lambda: target.list("")):
        fault_of(use, said)


def uses(target: Target) -> list[Callable[[], object]]:
    return [
        lambda: target.get("a", 5),
        lambda: target.put("a", b"1"),
        lambda: target.create("a", b"1"),
        lambda: target.list(""),
        lambda: target.delete("a"),
    ]


def test_a_missing_bucket_is_told(server: FaultyServer) -> None:
    server.usual = always(404, b"<Error><Code>NoSuchBucket</Code></Error>")
    for use in uses(open_at("s3", server.port)):
        fault_of(use, "does not exist")


@pytest.mark.parametrize(
    ("kind", "answer", "use", "said"),
    [
        ("webdav", always(403), lambda target: target.put("packs/a", b"1"), "denies access"),
        ("webdav", always(409), lambda target: target.put("a", b"1"), "does not exist"),
        ("s3", always(403, b"<Error><Code>QuotaExceeded</Code></Error>"), lambda one: one.put("a", b"1"), "is full"),
        ("s3", lambda _: listing("s3", {"good": 1, "../../x": 1}), lambda target: target.list(""), "not from Cortex"),
        ("webdav", always(200, b"\x1f\x8b", Content_Encoding="gzip"), lambda target: target.get("a", 10), "refuses"),
        ("webdav", always(503, Retry_After="3600"), lambda target: target.get("a", 1), "busy"),
        *(
            ("webdav", always(207, document), lambda target: target.list(""), "refuses")
            for document in (
                b'<!DOCTYPE a [<!ENTITY x "xxxx">]><D:multistatus xmlns:D="DAV:">&x;</D:multistatus>',
                b'<!DOCTYPE a SYSTEM "file:///etc/passwd"><D:multistatus xmlns:D="DAV:"/>',
                b"<html><body>Log in",
                b"\xff\xfe\x00",
                b"",
            )
        ),
    ],
)
def test_each_fault_is_told_without_waiting(
    server: FaultyServer, kind: str, answer: Callable[[Asked], Reply], use: Callable[[Target], object], said: str
) -> None:
    server.usual = answer
    with no_hang():
        fault_of(lambda: use(open_at(kind, server.port)), said)


def test_a_missing_bucket_of_a_real_server_is_told() -> None:
    with s3_server() as s3:
        target = open_target(f"s3://bucket/in{s3.query}", environment=s3.environment)
        fault_of(lambda: target.get("a", 1), "does not exist")
        fault_of(lambda: target.put("a", b"1"), "does not exist")


def test_a_body_that_ends_too_soon_is_never_taken_for_whole(server: FaultyServer, kind: str) -> None:
    target = open_at(kind, server.port, timeout=10)
    cut = Reply(200, b"hel", FOUND.headers, length=5, cut=True)
    server.script = [lambda _: cut, lambda _: FOUND]
    assert target.get("a", 5) == b"hello"
    server.usual = lambda _: cut
    fault_of(lambda: target.get("a", 5), "closed the connection")


def test_an_upload_that_is_broken_off_is_sent_again(server: FaultyServer, target: Target) -> None:
    server.script = [hang_up]
    server.usual = always(201, ETag='"1"')
    target.put("a", b"data")
    assert [one.body for one in server.asked if one.method == "PUT"] == [b"data", b"data"]


def test_a_creation_with_an_unknown_end_is_not_repeated(server: FaultyServer, target: Target, kind: str) -> None:
    decisive = "PUT" if kind == "s3" else "MOVE"

    def usual(asked: Asked) -> Reply:
        if asked.method == decisive:
            return hang_up(asked)
        return Reply(201) if asked.method == "PUT" else Reply(404)

    server.usual = usual
    fault_of(lambda: target.create("a", b"1"), "closed the connection")
    assert [one.method for one in server.asked].count(decisive) == 1


def test_a_creation_that_surely_had_no_effect_is_repeated(server: FaultyServer, target: Target, kind: str) -> None:
    refused = iter([503, 429])

    def usual(asked: Asked) -> Reply:
        if asked.method in ("PUT", "MOVE"):
            return Reply(next(refused, 201), headers={"ETag": '"1"'})
        return Reply(404)

    server.usual = usual
    assert target.create("a", b"1") is True


def test_silence_ends_with_the_time_limit(server: FaultyServer, kind: str) -> None:
    server.usual = server.silence
    target = open_at(kind, server.port, timeout=0.3)
    for use in uses(target):
        with no_hang():
            fault_of(use, "did not answer in time")


@pytest.mark.parametrize("drips", ["head", "body"])
def test_drop_by_drop_ends_with_the_time_limit(server: FaultyServer, kind: str, drips: str) -> None:
    server.usual = lambda _: Reply(200, b"", FOUND.headers, length=100_000, drips=drips)
    target = open_at(kind, server.port, timeout=0.3)
    with no_hang():
        fault_of(lambda: target.get("a", 100_000), "did not answer in time")


def test_a_closed_port_is_told(kind: str) -> None:
    target = open_at(kind, closed_port(), timeout=0.5)
    fault_of(lambda: target.get("a", 1), "cannot be reached")
    fault_of(lambda: target.create("a", b""), "cannot be reached")


def test_tls_with_a_server_that_speaks_none_is_told(server: FaultyServer) -> None:
    target = open_target(f"https://127.0.0.1:{server.port}/in", timeout=10)
    with pytest.raises(NetworkError, match=r"certificate|broke|reached"):
        target.get("a", 1)


def test_a_body_larger_than_the_limit_is_not_read(server: FaultyServer, target: Target) -> None:
    # It says that it has a terabyte; reading it would take until the time limit.
    server.usual = lambda _: Reply(200, b"x" * 70_000, FOUND.headers, length=10**12)
    with no_hang(), pytest.raises(NetworkError, match="more than 1,000 bytes"):
        target.get("a", 1000)
    assert len(server.asked) == 1


@pytest.mark.parametrize("status", [302, 307])
def test_nothing_is_sent_to_another_host(server: FaultyServer, kind: str, status: int) -> None:
    with FaultyServer(usual=lambda _: FOUND) as other:
        server.usual = lambda asked: Reply(status, headers={"Location": f"http://localhost:{other.port}{asked.path}"})
        target = open_at(kind, server.port, timeout=0.3)
        for use in uses(target):
            fault_of(use, "redirects|cannot be reached|did not answer in time")
        assert server.asked
        assert other.asked == []


def test_the_condition_is_left_to_the_server(server: FaultyServer) -> None:
    server.usual = lambda asked: Reply(404 if asked.method == "HEAD" else 412)
    assert open_at("s3", server.port).create("a", b"1") is False
    assert [(one.method, one.headers.get("if-none-match")) for one in server.asked] == [("HEAD", None), ("PUT", "*")]


def test_servers_without_conditions_are_asked_beforehand(server: FaultyServer) -> None:
    def usual(asked: Asked) -> Reply:
        if asked.method == "HEAD":
            return Reply(404)
        return Reply(501 if "if-none-match" in asked.headers else 200, headers={"ETag": '"1"'})

    server.usual = usual
    target = open_at("s3", server.port)
    assert target.create("a", b"1") is True
    server.usual = lambda asked: FOUND if asked.method == "HEAD" else Reply(200, headers={"ETag": '"1"'})
    server.asked.clear()
    assert target.create("a", b"1") is False
    assert [one.method for one in server.asked] == ["HEAD"]


def test_a_conflict_between_writers_is_decided_by_asking_again(server: FaultyServer) -> None:
    server.script = [always(404), always(409), always(404), always(404), always(409), lambda _: FOUND]
    assert open_at("s3", server.port).create("a", b"1") is False
    assert [one.method for one in server.asked] == ["HEAD", "PUT", "HEAD"] * 2


def test_a_webdav_server_that_cannot_move_is_sent_the_object_itself(server: FaultyServer) -> None:
    def usual(asked: Asked) -> Reply:
        if asked.method == "MOVE":
            return Reply(501)
        if asked.method == "PUT":
            return Reply(412 if asked.headers.get("if-none-match") == "*" else 201)
        return Reply(404)

    server.usual = usual
    target = open_at("webdav", server.port)
    target.put("a", b"1")
    assert [one.path for one in server.asked if one.method == "PUT"][-1] == "/in/a"
    assert target.create("a", b"1") is False


def test_names_that_no_object_has_are_skipped(server: FaultyServer, target: Target, kind: str) -> None:
    odd = ["Foreign.txt", "a b", ".hidden", "x" * 200, "caf%C3%A9", "a.sync-conflict-1-2-3"]
    server.usual = lambda _: listing(kind, {**dict.fromkeys(odd, 1), "good": 7})
    assert list(target.list("")) == [StoredObject("good", 7)]


def test_names_that_lead_out_are_never_taken(server: FaultyServer) -> None:
    hrefs = ["/in/../etc/passwd", "/other/a", "/in/%2e%2e/b", "http://elsewhere/in2/c", "/in//d", "/in/e/f", "%ff", ""]
    entries = "".join(ENTRY.format(href, "", 1) for href in [*hrefs, "http://127.0.0.1/in/good"])
    server.usual = lambda _: Reply(207, MULTISTATUS.format(entries).encode())
    assert list(open_at("webdav", server.port).list("")) == [StoredObject("good", 1)]


def test_folders_without_end_are_not_walked_for_ever(server: FaultyServer) -> None:
    def deeper(asked: Asked) -> Reply:
        folder = ENTRY.format(f"{asked.path}x/", "<D:collection/>", 0)
        return Reply(207, MULTISTATUS.format(folder).encode())

    server.usual = deeper
    assert list(open_at("webdav", server.port, timeout=20).list("")) == []
    assert len(server.asked) < 300


def test_a_bucket_whose_pages_have_no_end_is_left_in_time(server: FaultyServer) -> None:
    page = b"<ListBucketResult><IsTruncated>true</IsTruncated><NextContinuationToken>x</NextContinuationToken>"
    server.usual = always(200, page + b"</ListBucketResult>")
    with no_hang():
        fault_of(lambda: open_at("s3", server.port, timeout=0.5).list(""), "did not answer in time")


@pytest.mark.slow
@pytest.mark.parametrize("inside", [b"<a>" * 100 + b"</a>" * 100, b"<a/>" * 2_100_000], ids=["deep", "many"])
def test_an_answer_with_more_elements_than_a_list_has_is_refused(server: FaultyServer, inside: bytes) -> None:
    """Each would take a hundred times its bytes in memory."""
    server.usual = always(207, b'<D:multistatus xmlns:D="DAV:">' + inside + b"</D:multistatus>")
    fault_of(lambda: open_at("webdav", server.port, timeout=60).list(""), "refuses")


def test_old_drafts_on_a_webdav_server_are_removed(server: FaultyServer) -> None:
    dated = ENTRY.replace("<D:getcontentlength>", "<D:getlastmodified>{}</D:getlastmodified><D:getcontentlength>")
    old, new = "Thu, 01 Jan 2026 00:00:00 GMT", "Fri, 02 Jan 2026 23:00:00 GMT"
    entries = "".join(
        [
            dated.format("/in/.a-0123456789abcdef.part", "", old, 1),
            dated.format("/in/.b-0123456789abcdef.part", "", new, 1),
            dated.format("/in/.foreign.part", "", old, 1),
            dated.format("/in/c", "", old, 1),
        ]
    )

    def usual(asked: Asked) -> Reply:
        if asked.method == "DELETE":
            return Reply(204)
        return Reply(207, MULTISTATUS.format(entries).encode(), {"Date": "Sat, 03 Jan 2026 12:00:00 GMT"})

    server.usual = usual
    assert list(open_at("webdav", server.port).list("")) == [StoredObject("c", 1)]
    assert [one.path for one in server.asked if one.method == "DELETE"] == ["/in/.a-0123456789abcdef.part"]


def test_what_others_put_into_a_bucket_is_not_listed() -> None:
    with s3_server() as s3:
        target = open_target(f"{s3.new_bucket('bucket')}/in{s3.query}", environment=s3.environment)
        target.put("mine", b"1")
        for key in ("in/Foreign", "other/mine", "in/.hidden"):
            s3.place("bucket", key, b"x")
        assert list(target.list("")) == [StoredObject("mine", 1)]
