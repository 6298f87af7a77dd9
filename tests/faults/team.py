"""A team at work: servers on one database, and clients that repeat what was not acknowledged."""

from __future__ import annotations

import random
import threading
import time
from contextlib import ExitStack
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any

from operations.raw_calls import answer, connection, message, send_call

from servers import HttpServer, http_server

# What a client may be told while the database is away, to come again.
_AGAIN = {"StoreUnavailable", "StoreBusy"}
PATIENCE = 60


class Team:
    """Servers that come and go; `faults` is set while some of them, or the database, are being killed."""

    def __init__(self, home: Path, project: Path, url: str, count: int, stack: ExitStack) -> None:
        self._home, self._project, self._url, self._stack = home, project, url, stack
        self._lock = threading.Lock()
        self.faults = threading.Event()
        self.stop = threading.Event()
        self.servers = [self._begun(number) for number in range(count)]

    def _begun(self, number: int) -> HttpServer:
        home = self._home / str(number)
        # On a busy machine the database takes longer to come back than a server usually waits for it.
        more = {"CORTEX_DATABASE_URL": self._url, "CORTEX_DATABASE_RETRY_SECONDS": str(PATIENCE)}
        return self._stack.enter_context(http_server(home, self._project, **more))

    def any(self) -> str:
        with self._lock:
            return random.choice(self.servers).url

    def replace(self, number: int) -> None:
        """Kill a server where it stands, and start another in its place."""
        self.servers[number].process.kill()
        begun = self._begun(number)
        with self._lock:
            self.servers[number] = begun


class Client(threading.Thread):
    """Writes and reads until told to stop. `written` is what was acknowledged, `retried` what had to be repeated.

    If it is `keyed`, each of its captures has a request id, with which a repeated one is stored once.
    """

    def __init__(self, team: Team, number: int, *, keyed: bool = False) -> None:
        super().__init__(name=f"client-{number}")
        self._team, self._number, self._keyed = team, number, keyed
        self._to: HTTPConnection | None = None
        self.written: dict[str, str] = {}
        self.retried: set[str] = set()
        self.read = 0
        self.last_success = 0.0
        self.fault: BaseException | None = None

    def run(self) -> None:
        try:
            turn = 0
            while not self._team.stop.is_set():
                self._turn(turn)
                turn += 1
        except BaseException as error:  # noqa: BLE001  # told where the threads are joined
            self.fault = error
        finally:
            self._hang_up()

    def _hang_up(self) -> None:
        if self._to is not None:
            self._to.close()
            self._to = None

    def _turn(self, turn: int) -> None:
        content = f"client c{self._number} noted t{turn} about c{self._number}x{turn}"
        made = self._call("subcog_capture", {"content": content, "namespace": "decisions"}, content)
        self.written[made["id"]] = content
        # Whichever server is asked, what was acknowledged is there.
        found = self._call("subcog_get", {"memory_id": made["id"]}, content)
        assert (found["id"], found["content"]) == (made["id"], content)
        if turn % 3 == 0:
            listed = self._call("subcog_recall", {"query": f"c{self._number}x{turn}", "mode": "text"}, content)
            assert made["id"] in {one["id"] for one in listed["results"]}
        self.read += 1

    def _call(self, tool: str, arguments: dict[str, Any], content: str) -> Any:
        until = time.monotonic() + PATIENCE
        while True:
            troubled = self._team.faults.is_set()
            try:
                told = self._once(tool, arguments, content if self._keyed and tool == "subcog_capture" else "")
            except (OSError, HTTPException):
                self._hang_up()
                assert troubled or self._team.faults.is_set(), "a connection was lost without reason"
            else:
                if "result" in told:
                    self.last_success = time.monotonic()
                    return told["result"]["structuredContent"]
                assert told["error"]["data"]["error"] in _AGAIN, told
                assert troubled or self._team.faults.is_set(), told
            if tool == "subcog_capture":
                self.retried.add(content)
            assert time.monotonic() < until, "the client did not recover"
            time.sleep(random.uniform(0.02, 0.2))

    def _once(self, tool: str, arguments: dict[str, Any], request_id: str) -> Any:
        if self._to is None or random.random() < 0.2:
            self._hang_up()
            self._to = connection(self._team.any())
        send_call(self._to, tool, arguments, request_id)
        return message(answer(self._to)[2])
