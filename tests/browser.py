"""A real Chromium for tests, driven over its DevTools protocol through a pipe: no driver, no package, no port.

Every page notes what must never happen: exceptions, violations of the content policy, dialogs, and requests to any
other origin.
"""

from __future__ import annotations

import base64
import fcntl
import json
import os
import shutil
import signal
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import Empty, Queue
from typing import Any

from timing import MINUTE

__all__ = ["Browser", "Tab", "browser_program", "running_browser"]

_FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-extensions",
    "--disable-default-apps", "--mute-audio", "--disable-dev-shm-usage", "--remote-debugging-pipe",
    "--force-color-profile=srgb", "--hide-scrollbars",
)  # fmt: skip
_SECONDS = MINUTE
_TICK = 0.01


def browser_program() -> str | None:
    """The browser of this machine."""
    return next(
        (found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None
    )


class Browser:
    """The connection. Messages to a tab carry the id of its session."""

    def __init__(self, to: int, back: int) -> None:
        self._to = os.fdopen(to, "wb", buffering=0)
        self._back = os.fdopen(back, "rb")
        self._number = 0
        self._answers: Queue[dict[str, Any]] = Queue()
        self._tabs: dict[str, Tab] = {}
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def end(self) -> None:
        """Close the pipes, once the browser has gone."""
        self._to.close()
        self._reader.join()
        self._back.close()

    def _read(self) -> None:
        pending = b""
        while piece := self._back.read1(1 << 20):  # type: ignore[attr-defined]  # a buffered reader
            *messages, pending = (pending + piece).split(b"\0")
            for message in map(json.loads, messages):
                if "id" in message:
                    self._answers.put(message)
                elif (tab := self._tabs.get(message.get("sessionId", ""))) is not None:
                    tab.note(message["method"], message["params"])

    def call(self, method: str, session: str | None = None, /, **params: Any) -> dict[str, Any]:
        self._number += 1
        asked: dict[str, Any] = {"id": self._number, "method": method, "params": params}
        if session:
            asked["sessionId"] = session
        self._to.write(json.dumps(asked).encode() + b"\0")
        while True:
            try:
                answer = self._answers.get(timeout=_SECONDS)
            except Empty:
                raise AssertionError(f"{method} was not answered") from None
            if answer["id"] == self._number:
                result: dict[str, Any] = answer.get("result", {"result": {}, "exceptionDetails": answer.get("error")})
                return result

    def open(self, *, width: int = 1440, height: int = 900, dark: bool = False, script: bool = True) -> Tab:
        """A tab with cookies and storage of its own."""
        context = self.call("Target.createBrowserContext")["browserContextId"]
        return self.open_beside(context, width=width, height=height, dark=dark, script=script)

    def open_beside(
        self, context: str, *, width: int = 1440, height: int = 900, dark: bool = False, script: bool = True
    ) -> Tab:
        """A further tab of the same person."""
        target = self.call("Target.createTarget", url="about:blank", browserContextId=context)["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        tab = self._tabs[session] = Tab(self, session, context)
        for domain in ("Page", "Runtime", "Network", "Log"):
            tab.call(f"{domain}.enable")
        tab.call("Page.addScriptToEvaluateOnNewDocument", source=_WATCH)
        tab.resize(width, height)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        tab.call("Emulation.setEmulatedMedia", features=[scheme])
        if not script:
            tab.call("Emulation.setScriptExecutionDisabled", value=True)
        return tab

    def close(self, tab: Tab) -> None:
        """Forget a tab and its cookies."""
        self.call("Target.disposeBrowserContext", browserContextId=tab.context)


# Violations of the policy are noted by the page itself, before any other script can run.
_WATCH = """
window.violations = [];
document.addEventListener('securitypolicyviolation', (e) => violations.push(`${e.violatedDirective} ${e.blockedURI}`));
"""
_CODES = {"Enter": ("Enter", 13, "\r"), "Escape": ("Escape", 27, ""), "Tab": ("Tab", 9, ""), " ": ("Space", 32, " ")}


class Tab:
    def __init__(self, browser: Browser, session: str, context: str) -> None:
        self._browser = browser
        self._session = session
        self.context = context
        self.faults: list[str] = []
        self.requests: list[str] = []

    def note(self, method: str, params: dict[str, Any]) -> None:
        if method == "Runtime.exceptionThrown":
            self.faults.append(str(params["exceptionDetails"].get("exception", params["exceptionDetails"])))
        elif method == "Page.javascriptDialogOpening":
            self.faults.append(f"dialog: {params['message']}")
        elif method == "Log.entryAdded" and params["entry"]["source"] in ("security", "violation"):
            self.faults.append(params["entry"]["text"])
        elif method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        return self._browser.call(method, self._session, **params)

    def resize(self, width: int, height: int) -> None:
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )

    def run(self, script: str) -> Any:
        """The value of an expression in the page; a promise is waited for."""
        answer = self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def wait(self, condition: str) -> Any:
        """The first value of an expression that is true."""
        end = time.monotonic() + _SECONDS
        while True:
            # Fails between two documents, and for parts that are not there yet.
            found = self.call("Runtime.evaluate", expression=f"({condition})", returnByValue=True)
            value = found["result"].get("value") if "exceptionDetails" not in found else None
            if value:
                return value
            if time.monotonic() > end:
                raise AssertionError(f"never true: {condition}\n{self.text()[:800]}")
            time.sleep(_TICK)

    def go(self, url: str) -> None:
        """Load an address, and wait until the document is there."""
        self.run("window.left = true")
        self.call("Page.navigate", url=url)
        self.wait("!window.left && document.readyState === 'complete'")

    def text(self, selector: str = "body") -> str:
        found: str = self.run(f"document.querySelector({json.dumps(selector)})?.innerText ?? ''")
        return found

    def click(self, selector: str) -> None:
        self.wait(f"!!document.querySelector({json.dumps(selector)})")
        self.run(f"document.querySelector({json.dumps(selector)}).click()")

    def type(self, text: str) -> None:
        self.call("Input.insertText", text=text)

    def press(self, *keys: str) -> None:
        """Keys one after another, as a keyboard sends them."""
        for name in keys:
            code, number, text = _CODES.get(name, (name, ord(name[0].upper()), name))
            base = {"key": name, "code": code, "windowsVirtualKeyCode": number}
            self.call("Input.dispatchKeyEvent", type="keyDown" if text else "rawKeyDown", text=text, **base)
            self.call("Input.dispatchKeyEvent", type="keyUp", **base)

    def picture(self, path: Path, *, whole: bool = False) -> None:
        found = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(found["data"]))

    def violations(self) -> list[str]:
        found: list[str] = self.run("window.violations")
        return found


def _pipe() -> tuple[int, int]:
    """A pipe with high numbers: in the browser's process its ends become 3 and 4."""
    low = os.pipe()
    high = fcntl.fcntl(low[0], fcntl.F_DUPFD_CLOEXEC, 64), fcntl.fcntl(low[1], fcntl.F_DUPFD_CLOEXEC, 64)
    for one in low:
        os.close(one)
    return high


@contextmanager
def running_browser(program: str) -> Iterator[Browser]:
    """A browser with a profile of its own, which is removed afterwards."""
    read_there, write_here = _pipe()
    read_here, write_there = _pipe()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        # Spawned, not forked: the tests have threads.
        nowhere = [(os.POSIX_SPAWN_OPEN, one, os.devnull, os.O_RDWR, 0) for one in (0, 1, 2)]
        pipes = [(os.POSIX_SPAWN_DUP2, read_there, 3), (os.POSIX_SPAWN_DUP2, write_there, 4)]
        command = [program, *_FLAGS, f"--user-data-dir={profile}", "about:blank"]
        process = os.posix_spawn(program, command, os.environ, file_actions=[*nowhere, *pipes])
        os.close(read_there)
        os.close(write_there)
        started = Browser(write_here, read_here)
        try:
            yield started
        finally:
            os.kill(process, signal.SIGTERM)
            os.waitpid(process, 0)
            started.end()
