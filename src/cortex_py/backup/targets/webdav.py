"""A target that is a folder of a WebDAV server."""

from __future__ import annotations

import re
import secrets
from base64 import b64encode
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from time import monotonic
from urllib.parse import quote

from .target import Stored
from .target_faults import TargetProblem, Trouble, persist, problem_of_status, too_large
from .target_http import Answer, HttpLine, TooMuch
from .target_names import check_name, check_prefix, is_name
from .target_propfind import QUESTION, Resource, moment, resources

__all__ = ["WebDavTarget"]

_DRAFT = re.compile(r"\.[a-z0-9._-]+-[a-z0-9]{16}\.part")
_DRAFT_AGE = timedelta(days=1)
_MOST_LISTED = 1_000_000
_LISTING_BYTES = 64_000_000
# What servers answer that cannot give a file another name, or that sit behind a proxy which changes addresses.
_CANNOT_MOVE = (400, 405, 501, 502)


class WebDavTarget:
    """Objects are files. Each is sent under the name of a draft and takes its own when all of it is there."""

    def __init__(
        self, origin: str, path: str, *, user: str | None, password: str | None, timeout: float, loopback: bool
    ) -> None:
        """`origin` is scheme and host, `path` the folder, decoded, with a slash at neither end."""
        self._origin = origin
        self._root = f"/{path}" if path else ""
        self._timeout = timeout
        headers = {}
        if user is not None:
            headers["Authorization"] = "Basic " + b64encode(f"{user}:{password}".encode()).decode()
        self._line = HttpLine(headers, direct=loopback, encrypted=origin.startswith("https:"))

    @property
    def shown(self) -> str:
        return self._origin + self._root

    def put(self, name: str, data: bytes) -> None:
        check_name(name)
        persist(self.shown, self._timeout, lambda seconds: self._write(name, data, seconds, replace=True))

    def create(self, name: str, data: bytes) -> bool:
        """Write an object unless there is one, which the server is asked beforehand and once more in the end.

        Servers decide the latter between writers as well as they can: the protocol promises no more.
        """
        check_name(name)

        def write(seconds: float) -> bool:
            end = monotonic() + seconds
            with _without_effect():
                if self._resource(name, seconds) is not None:
                    return False
            return self._write(name, data, end - monotonic(), replace=False)

        return persist(self.shown, self._timeout, write, repeatable=False)

    def get(self, name: str, limit: int) -> bytes | None:
        check_name(name)

        def read(seconds: float) -> bytes | None:
            try:
                answer = self._line.ask("GET", self._url(name), seconds=seconds, limit=limit)
            except TooMuch:
                raise too_large(self.shown, name, limit) from None
            if answer.status in (404, 410):
                return None
            return _checked(answer, 200).body

        return persist(self.shown, self._timeout, read)

    def list(self, prefix: str) -> Iterator[Stored]:
        check_prefix(prefix)
        found = persist(self.shown, self._timeout, lambda seconds: self._listed(prefix, seconds))
        return iter(sorted(found))

    def delete(self, name: str) -> None:
        check_name(name)

        def remove(seconds: float) -> None:
            end = monotonic() + seconds
            there = self._resource(name, seconds)
            # A folder would be removed with all that is in it.
            if there is not None and not there.folder:
                self._remove(name, end - monotonic())

        persist(self.shown, self._timeout, remove)

    def close(self) -> None:
        self._line.close()

    def _url(self, name: str) -> str:
        return self._origin + quote(f"{self._root}/{name}" if name else f"{self._root}/")

    def _write(self, name: str, data: bytes, seconds: float, *, replace: bool) -> bool:
        end = monotonic() + seconds
        folder, slash, own = name.rpartition("/")
        draft = f"{folder}{slash}.{own}-{secrets.token_hex(8)}.part"
        with _without_effect():
            # Nobody sees a draft.
            self._sent(draft, data, end)
        moved = self._line.ask(
            "MOVE",
            self._url(draft),
            headers={"Destination": self._url(name), "Overwrite": "T" if replace else "F"},
            seconds=_left(end),
        )
        if moved.status in (201, 204):
            return True
        problem = problem_of_status(moved.status, after=moved.after)
        with suppress(TargetProblem):
            # A server that failed has not moved what is still there.
            problem.undone = self._resource(draft, _left(end)) is not None
            self._remove(draft, _left(end))
        if moved.status == 412 and not replace:
            return False
        if moved.status in _CANNOT_MOVE:
            condition = {} if replace else {"If-None-Match": "*"}
            answer = self._line.ask("PUT", self._url(name), headers=condition, content=data, seconds=_left(end))
            if answer.status == 412 and not replace:
                return False
            _checked(answer, 200, 201, 204)
            return True
        raise problem

    def _sent(self, draft: str, data: bytes, end: float) -> None:
        answer = self._line.ask("PUT", self._url(draft), content=data, seconds=_left(end))
        if answer.status in (403, 404, 409):
            # The folder is missing, which servers tell in different ways.
            self._make_folders(draft.rpartition("/")[0], end)
            answer = self._line.ask("PUT", self._url(draft), content=data, seconds=_left(end))
        _checked(answer, 200, 201, 204)

    def _make_folders(self, folder: str, end: float) -> None:
        parts = folder.split("/") if folder else []
        for count in range(len(parts) + 1):
            made = "/".join(parts[:count])
            address = self._url(f"{made}/" if made else "")
            # What it answers shows in what comes next: many a server has its own way of saying that it is there.
            self._line.ask("MKCOL", address, seconds=_left(end))

    def _remove(self, name: str, seconds: float) -> None:
        _checked(self._line.ask("DELETE", self._url(name), seconds=seconds), 200, 202, 204, 404, 410)

    def _resource(self, name: str, seconds: float) -> Resource | None:
        found, _ = self._asked_for(name, "0", seconds)
        return found[0] if found else None

    def _asked_for(self, name: str, depth: str, seconds: float) -> tuple[Sequence[Resource], datetime]:
        """What there is at a name, and the moment it is on the server."""
        headers = {"Depth": depth, "Content-Type": "application/xml"}
        try:
            answer = self._line.ask(
                "PROPFIND", self._url(name), headers=headers, content=QUESTION, seconds=seconds, limit=_LISTING_BYTES
            )
        except TooMuch:
            raise TargetProblem(Trouble.FOREIGN) from None
        now = moment(answer.headers.get("date", "")) or datetime.now(UTC)
        if answer.status in (404, 410):
            return [], now
        return [*resources(_checked(answer, 207).body)], now

    def _listed(self, prefix: str, seconds: float) -> set[Stored]:
        end = monotonic() + seconds
        found: set[Stored] = set()
        above, slash, _ = prefix.rpartition("/")
        waiting = {above + slash}
        seen = set(waiting)
        while waiting:
            folder = waiting.pop()
            inside, now = self._asked_for(folder, "1", _left(end))
            for one in inside:
                # Only what lies in the folder itself: a server may say what it likes.
                parent, _, own = one.path.rpartition("/")
                if f"{parent}/" != f"{self._root}/{folder}":
                    continue
                name = folder + own
                if _DRAFT.fullmatch(own) and not one.folder:
                    if one.changed is not None and now - one.changed > _DRAFT_AGE:
                        with suppress(TargetProblem):
                            self._remove(name, _left(end))
                elif not is_name(name):
                    continue
                elif not one.folder:
                    if name.startswith(prefix):
                        found.add(Stored(name, one.size))
                elif f"{name}/".startswith(prefix) or prefix.startswith(f"{name}/"):
                    waiting |= {f"{name}/"} - seen
                    seen.add(f"{name}/")
            if len(found) + len(seen) > _MOST_LISTED:
                raise TargetProblem(Trouble.FOREIGN)
        return found


def _checked(answer: Answer, *wanted: int) -> Answer:
    if answer.status not in wanted:
        raise problem_of_status(answer.status, after=answer.after)
    return answer


@contextmanager
def _without_effect() -> Iterator[None]:
    """Whatever goes wrong within has changed nothing."""
    try:
        yield
    except TargetProblem as problem:
        problem.undone = True
        raise


def _left(end: float) -> float:
    """The seconds until then, if there are any."""
    left = end - monotonic()
    if left <= 0:
        raise TargetProblem(Trouble.TIMED_OUT)
    return left
