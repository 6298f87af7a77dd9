"""What every target does, over a folder, a bucket of a real S3 server, and a real WebDAV server."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cortex_py.core.errors import InvalidInput, NetworkError
from cortex_py.parts.backup.targets.addresses import open_target
from cortex_py.parts.backup.targets.target import StoredObject, Target
from timing import MINUTE

from cloud_servers import S3Server, WebDavServer, s3_server, webdav_server

KINDS = ["folder", "s3", "webdav"]
BAD_PREFIXES = [
    *("/a", "a//b", "..", "a/../b", "./a", ".a", "a/.b", "A", "ä", "a b", "a\\b", "a%2fb", "a\n", "a\0"),
    "/".join(["x" * 100] * 6),
]


@pytest.fixture(scope="module")
def s3() -> Iterator[S3Server]:
    with s3_server() as server:
        yield server


@pytest.fixture(scope="module")
def dav(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebDavServer]:
    with webdav_server(tmp_path_factory.mktemp("dav")) as server:
        yield server


@pytest.fixture(params=KINDS)
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[], Target]]:
    """Opens one and the same target, as often as it is called."""
    if request.param == "folder":
        url, environment = f"file://{tmp_path}/target", {}
    elif request.param == "s3":
        server: S3Server = request.getfixturevalue("s3")
        url = f"{server.new_bucket(f'b-{secrets.token_hex(4)}')}/in/here{server.query}"
        environment = server.environment
    else:
        dav: WebDavServer = request.getfixturevalue("dav")
        url, environment = f"{dav.url}/{tmp_path.name.lower()}%20x", dav.environment
    targets: list[Target] = []

    def opening() -> Target:
        targets.append(open_target(url, environment=environment, timeout=MINUTE))
        return targets[-1]

    yield opening
    for target in targets:
        target.close()


@pytest.fixture
def target(opened: Callable[[], Target]) -> Target:
    return opened()


class TestContract:
    @pytest.mark.parametrize("data", [b"", b"\0", bytes(range(256)) * 1000], ids=["empty", "byte", "256 kB"])
    def test_what_is_put_is_what_is_got(self, target: Target, data: bytes) -> None:
        target.put("packs/ab/c0-d_1.enc", data)
        assert target.get("packs/ab/c0-d_1.enc", len(data)) == data

    def test_an_object_can_be_replaced(self, target: Target) -> None:
        target.put("head", b"first, and longer")
        target.put("head", b"second")
        assert target.get("head", 100) == b"second"
        assert list(target.list("")) == [StoredObject("head", 6)]

    def test_nothing_is_there_before_anything_was_put(self, target: Target) -> None:
        assert target.get("packs/none", 10) is None
        assert list(target.list("")) == []
        assert list(target.list("packs/")) == []
        target.delete("packs/none")

    def test_create_writes_where_there_is_nothing_and_only_there(self, target: Target) -> None:
        assert target.create("claims/one", b"mine") is True
        assert target.create("claims/one", b"theirs") is False
        assert target.get("claims/one", 10) == b"mine"
        assert list(target.list("")) == [StoredObject("claims/one", 4)]
        target.delete("claims/one")
        assert target.create("claims/one", b"b")
        assert target.get("claims/one", 1) == b"b"

    # The protocol of WebDAV promises nothing here.
    @pytest.mark.parametrize("opened", ["folder", "s3"], indirect=True)
    def test_of_several_who_create_at_once_one_succeeds(self, opened: Callable[[], Target]) -> None:
        count = 4
        targets = [opened() for _ in range(count)]
        start = threading.Barrier(count)
        written: list[int] = []

        def race(number: int) -> None:
            start.wait()
            if targets[number].create("claims/race", str(number).encode()):
                written.append(number)

        threads = [threading.Thread(target=race, args=(number,)) for number in range(count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(written) == 1
        assert targets[0].get("claims/race", 10) == str(written[0]).encode()

    def test_a_list_has_the_names_that_begin_so_in_order(self, target: Target) -> None:
        for name in ["packs/b", "packs/a.x", "packs/a/deep/er", "pac", "packs-2/c", "heads/z", "packs/ab"]:
            target.put(name, name.encode())
        assert [one.name for one in target.list("")] == sorted(
            ["packs/b", "packs/a.x", "packs/a/deep/er", "pac", "packs-2/c", "heads/z", "packs/ab"]
        )
        assert [one.name for one in target.list("packs/a")] == ["packs/a.x", "packs/a/deep/er", "packs/ab"]
        assert [one.name for one in target.list("packs/")] == ["packs/a.x", "packs/a/deep/er", "packs/ab", "packs/b"]
        assert [one.name for one in target.list("pac")] == [one.name for one in target.list("") if one.name[0] == "p"]
        assert list(target.list("packs/a/deep/er")) == [StoredObject("packs/a/deep/er", 15)]
        assert list(target.list("heads/zz")) == []

    def test_deleting_removes_that_object_alone(self, target: Target) -> None:
        target.put("packs/a", b"a")
        target.put("packs/b", b"b")
        for name in ("packs/a", "packs"):
            target.delete(name)
        assert [one.name for one in target.list("")] == ["packs/b"]

    def test_an_object_of_more_bytes_than_the_limit_is_refused(self, target: Target) -> None:
        target.put("big", b"x" * 1001)
        with pytest.raises(NetworkError, match="more than 1,000 bytes"):
            target.get("big", 1000)
        assert target.get("big", 1001) == b"x" * 1001

    def test_names_and_prefixes_that_none_can_have_are_refused_everywhere(self, target: Target) -> None:
        uses: list[Callable[[str], object]] = [
            lambda name: target.put(name, b""),
            lambda name: target.create(name, b""),
            lambda name: target.get(name, 1),
            target.delete,
        ]
        for name in [*BAD_PREFIXES, "", "a/", "x" * 181, "a.sync-conflict-20260101-000000-abc.enc"]:
            for use in uses:
                with pytest.raises(InvalidInput):
                    use(name)
        for prefix in BAD_PREFIXES:
            with pytest.raises(InvalidInput):
                target.list(prefix)
        assert list(target.list("")) == []

    def test_a_long_name_can_be_used(self, target: Target) -> None:
        name = f"{'x' * 180}/{'y' * 180}"
        assert target.create(name, b"1")
        target.put(name, b"2")
        assert list(target.list("x")) == [StoredObject(name, 1)]

    def test_it_is_shown_without_secrets(self, target: Target) -> None:
        assert target.shown
        for secret in ("alice", "horse", "AKIA", "very", "?", "@"):
            assert secret not in target.shown

    def test_many_threads_can_share_it(self, target: Target) -> None:
        def write(number: int) -> None:
            target.put(f"many/{number}", b"x" * number)

        threads = [threading.Thread(target=write, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert list(target.list("many/")) == [StoredObject(f"many/{number}", number) for number in range(8)]


def test_a_running_event_loop_is_no_obstacle(opened: Callable[[], Target]) -> None:
    import asyncio

    async def use() -> bytes | None:
        target = opened()
        target.put("a", b"1")
        return target.get("a", 1)

    assert asyncio.run(use()) == b"1"
