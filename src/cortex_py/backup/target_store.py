"""A target that is a bucket of an object store."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, TypeVar

from ..errors import ConfigurationError
from .target import Stored
from .target_faults import TargetProblem, Trouble, persist, problem_of_status, too_large
from .target_names import check_name, check_prefix, is_name

if TYPE_CHECKING:
    from obstore.store import AzureStore, GCSStore, S3Store

__all__ = ["BucketTarget", "require_library"]

T = TypeVar("T")

_STATUS = re.compile(r"non-2xx status code: (\d{3})")
_NO_BUCKET = re.compile(r"NoSuchBucket|ContainerNotFound|bucket does not exist")
_FULL = re.compile(r"QuotaExceeded|StorageFull|EntityTooLarge")
_UNTRUSTED = re.compile(r"InvalidCertificate|UnknownIssuer|HandshakeFailure")
# More names than this no replica has; an endless list is somebody's joke.
_MOST_LISTED = 1_000_000
_PAGE = 1_000


def require_library() -> None:
    """Say what to install where the library is missing."""
    try:
        import obstore  # noqa: F401
    except ImportError:
        raise ConfigurationError(
            "Buckets need a library that is not installed.", remedy="Run pip install 'cortex-py[cloud]'."
        ) from None


class BucketTarget:
    """Objects are objects. The server makes each of them appear whole."""

    def __init__(self, store: S3Store | GCSStore | AzureStore, shown: str, timeout: float) -> None:
        self._store = store
        self._shown = shown
        self._timeout = timeout

    @property
    def shown(self) -> str:
        return self._shown

    def put(self, name: str, data: bytes) -> None:
        check_name(name)

        async def write() -> None:
            await self._store.put_async(name, data, use_multipart=False)

        self._asked(write)

    def create(self, name: str, data: bytes) -> bool:
        """Write an object unless there is one; the server decides which of several writers was first.

        Some servers know no such condition. One that says so, or that ignores it, is asked beforehand whether there is
        an object: of two writers at the very same moment both may then believe to have been first.
        """
        check_name(name)

        async def write() -> bool:
            if await self._exists(name):
                return False
            try:
                await self._store.put_async(name, data, mode="create")
            except _library_errors() as error:
                status = _status(error)
                if status == 412:
                    return False
                if status == 409:
                    # There is one, or another writer is at work and nobody was first yet.
                    if await self._exists(name):
                        return False
                    raise TargetProblem(Trouble.BUSY, status=status, passing=True, undone=True) from None
                if status != 501:
                    raise
                await self._store.put_async(name, data, use_multipart=False)
            return True

        return self._asked(write, repeatable=False)

    def get(self, name: str, limit: int) -> bytes | None:
        check_name(name)

        async def read() -> bytes | None:
            try:
                found = await self._store.get_async(name)
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

    def list(self, prefix: str) -> Iterator[Stored]:
        check_prefix(prefix)
        # The library knows whole parts of names only.
        folder = prefix.rpartition("/")[0] or None

        async def read() -> set[Stored]:
            found: set[Stored] = set()
            async for page in self._store.list(folder, chunk_size=_PAGE):
                for one in page:
                    if one["path"].startswith(prefix) and is_name(one["path"]):
                        found.add(Stored(one["path"], one["size"]))
                if len(found) > _MOST_LISTED:
                    raise TargetProblem(Trouble.FOREIGN)
            return found

        return iter(sorted(self._asked(read)))

    def delete(self, name: str) -> None:
        check_name(name)

        async def remove() -> None:
            try:
                await self._store.delete_async(name)
            except FileNotFoundError as error:
                if _NO_BUCKET.search(str(error)):
                    raise

        self._asked(remove)

    def close(self) -> None:
        """Connections end with the store."""

    async def _exists(self, name: str) -> bool:
        try:
            await self._store.head_async(name)
        except FileNotFoundError:
            return False
        except _library_errors() as error:
            problem = _problem(error)
            problem.undone = True
            raise problem from None
        return True

    def _asked(self, ask: Callable[[], Coroutine[Any, Any, T]], *, repeatable: bool = True) -> T:
        def attempt(seconds: float) -> T:
            # In a thread of its own, since the caller's may have a loop already.
            with ThreadPoolExecutor(1) as thread:
                return thread.submit(asyncio.run, _bounded(ask, seconds)).result()

        return persist(self.shown, self._timeout, attempt, repeatable=repeatable)


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

    # What is not found it tells with the error for files.
    return (BaseError, FileNotFoundError)


def _status(error: Exception) -> int | None:
    found = _STATUS.search(str(error))
    return int(found[1]) if found else None


def _problem(error: Exception) -> TargetProblem:
    """What the library says went wrong; much of it is in its words only."""
    from obstore.exceptions import InvalidPathError

    words = str(error)
    status = _status(error)
    if isinstance(error, InvalidPathError):
        return TargetProblem(Trouble.FOREIGN)
    if status is not None:
        # Only what is refused is full: the text of an answer is anybody's.
        return TargetProblem(Trouble.FULL, status=status) if _FULL.search(words) else problem_of_status(status)
    if "BareRedirect" in words:
        return TargetProblem(Trouble.MOVED)
    if "kind: Timeout" in words:
        return TargetProblem(Trouble.TIMED_OUT, passing=True)
    if "kind: Connect" in words:
        if _UNTRUSTED.search(words):
            return TargetProblem(Trouble.TLS, undone=True)
        return TargetProblem(Trouble.UNREACHABLE, passing=True, undone=True)
    return TargetProblem(Trouble.BROKEN_OFF, passing=True)
