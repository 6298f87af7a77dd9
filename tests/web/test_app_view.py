"""Views inside a conversation, in a sandboxed frame of a real browser whose host passes calls on to the server."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anyio
import pytest
from hostile_memories import HOSTILE

from cortex_py import Cortex
from cortex_py.surfaces.mcp.app_views import EXTENSION, MIME_TYPE
from cortex_py.surfaces.mcp.reference.rendering import ask
from cortex_py.surfaces.mcp.server import build_server

from browser import Browser, Tab
from stub_backend import StubBackend

pytestmark = pytest.mark.browser

_HELLO = {
    "protocolVersion": "2025-11-25",
    "capabilities": {"extensions": {EXTENSION: {"mimeTypes": [MIME_TYPE]}}},
    "clientInfo": {"name": "host", "version": "1"},
}
# A host as the protocol wants it: nothing is sent before the view is initialised.
_HOST = """
(() => {
  const frame = document.createElement("iframe");
  frame.sandbox = "allow-scripts";
  window.heard = [];
  window.calls = [];
  window.say = (message) => frame.contentWindow.postMessage({ jsonrpc: "2.0", ...message }, "*");
  addEventListener("message", ({ data, source }) => {
    if (source !== frame.contentWindow) return;
    heard.push(data);
    if (data.method === "ui/initialize") say({ id: data.id, result: { protocolVersion: data.params.protocolVersion,
      hostInfo: { name: "host", version: "1" }, hostCapabilities: { serverTools: {}, openLinks: {} },
      hostContext: { theme: "dark", styles: { variables: { "--color-text-primary": "rgb(1, 2, 3)" } } } } });
    else if (data.id !== undefined && data.method) calls.push(data);
    else if (data.method === "ui/notifications/size-changed") frame.style.height = data.params.height + "px";
  });
  frame.srcdoc = DOCUMENT;
  document.body.append(frame);
})()
"""


class _Host:
    """Plays the client: reads the document, shows it in a frame, and passes its calls on to a real server."""

    def __init__(self, cortex: Cortex, browser: Browser) -> None:
        self._cortex = cortex
        self._browser = browser
        self.tab: Tab = browser.open()

    def request(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        requests = [
            {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": _HELLO},
            {"jsonrpc": "2.0", "id": 1, "method": method, "params": params},
        ]
        found: dict[str, Any] = anyio.run(ask, build_server(self._cortex), requests)[method]
        return found

    def show(self, view: str, tool: str, arguments: dict[str, Any]) -> None:
        """Call a tool, and show its answer in the view."""
        (content,) = self.request("resources/read", {"uri": f"ui://cortex/{view}"})["contents"]
        self.tab.run(_HOST.replace("DOCUMENT", json.dumps(content["text"])))
        self.tab.wait("heard.some(one => one.method === 'ui/notifications/initialized')")
        result = self.request("tools/call", {"name": tool, "arguments": arguments})
        self.say("ui/notifications/tool-input", {"arguments": arguments})
        self.say("ui/notifications/tool-result", result)

    def say(self, method: str, params: dict[str, Any]) -> None:
        self.tab.run(f"say({json.dumps({'method': method, 'params': params})}); 0")

    def pass_on(self) -> str:
        """Wait for one call of the view, and answer it."""
        self.tab.wait("calls.length > 0")
        call = self.tab.run("calls.shift()")
        result = self.request(call["method"], call["params"])
        self.tab.run(f"say({json.dumps({'id': call['id'], 'result': result})}); 0")
        return str(call["params"]["name"])

    def inside(self, script: str) -> Any:
        """The value of an expression in the frame, which has an origin of its own."""
        targets = self._browser.call("Target.getTargets")["targetInfos"]
        (frame,) = [one for one in targets if one["type"] == "iframe" and one["browserContextId"] == self.tab.context]
        session = self._browser.call("Target.attachToTarget", targetId=frame["targetId"], flatten=True)["sessionId"]
        answer = self._browser.call("Runtime.evaluate", session, expression=script, returnByValue=True)
        self._browser.call("Target.detachFromTarget", sessionId=session)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def wait(self, condition: str) -> Any:
        for _ in range(2_000):
            if found := self.inside(condition):
                return found
            anyio.run(anyio.sleep, 0.005)
        raise AssertionError(f"never true: {condition}\n{self.inside('document.body.innerText')[:500]}")


@pytest.fixture
def host(home: Path, project: Path, browser: Browser) -> Any:
    with Cortex.open(home, project=project, backend=StubBackend()) as cortex:
        made = _Host(cortex, browser)
        yield made, cortex
        assert made.tab.faults == []
        browser.close(made.tab)


Hosted = tuple[_Host, Cortex]


@pytest.mark.slow
def test_a_search_opens_memories_in_place_and_takes_the_colours_of_its_host(host: Hosted) -> None:
    view, cortex = host
    kept = cortex.memories.capture("Tests need **Redis** on port 6380", tags=["test"])
    view.show("search", "subcog_recall", {"query": "redis tests"})
    view.wait("!!document.querySelector('.list mark')")
    assert view.inside("document.documentElement.dataset.theme") == "dark"
    assert view.inside("getComputedStyle(document.body).color") == "rgb(1, 2, 3)"
    heard = view.tab.run("heard.map(one => one.method)")
    assert heard[0] == "ui/initialize"
    assert "ui/notifications/size-changed" in heard
    view.inside("document.querySelector('.open').click()")
    assert view.pass_on() == "subcog_get"
    assert view.wait("document.querySelector('article strong')?.innerText") == "Redis"
    view.inside("[...document.querySelectorAll('button')].find(one => one.innerText === 'Delete').click()")
    assert view.pass_on() == "subcog_delete"
    view.wait("document.body.innerText.includes('Deleted')")
    view.inside("[...document.querySelectorAll('button')].find(one => one.innerText === 'Undo').click()")
    assert view.pass_on() == "subcog_restore"
    assert cortex.memories.get(kept.id).status == "active"
    # Requests of the host are answered, known or not.
    for id, method, wanted in (
        ("a", "ping", "result"),
        ("b", "ui/resource-teardown", "result"),
        ("c", "strange", "error"),
    ):
        view.tab.run(f"say({{id: '{id}', method: '{method}', params: {{}}}}); 0")
        assert wanted in view.tab.wait(f"heard.find(one => one.id === '{id}' && !one.method)")


def test_a_review_is_decided_in_the_view(host: Hosted) -> None:
    view, cortex = host
    staged = cortex.memories.update(cortex.memories.capture("Staged by a session").id, status="pending")
    view.show("review", "subcog_status", {})
    assert view.pass_on() == "cortex_review"
    view.wait("document.body.innerText.includes('Staged by a session')")
    view.inside("[...document.querySelectorAll('button')].find(one => one.innerText === 'Accept').click()")
    assert [view.pass_on(), view.pass_on()] == ["cortex_review"] * 2
    view.wait("document.body.innerText.includes('Accepted')")
    assert cortex.memories.get(staged.id).status == "active"


@pytest.mark.slow
def test_hostile_memories_run_nothing_in_a_view(host: Hosted) -> None:
    view, cortex = host
    whole = cortex.memories.capture("\n\n".join(HOSTILE))
    for text in HOSTILE:
        cortex.memories.capture(text)
    for name, tool, arguments in (
        ("memory", "subcog_get", {"memory_id": whole.id}),
        ("search", "subcog_recall", {"query": "script onerror", "limit": 60}),
    ):
        view.tab.go("about:blank")
        view.show(name, tool, arguments)
        view.wait("!document.body.innerText.includes('Waiting')")
        view.inside("[...document.querySelectorAll('a')].forEach(one => one.click())")
        assert (
            view.inside("document.querySelectorAll('main :is(script, img, iframe, svg, object, embed, style)').length")
            == 0
        )
        links = view.inside("[...document.querySelectorAll('a')].map(one => one.href)")
        assert all(link.startswith(("http://", "https://")) for link in links)
        assert view.tab.run("window.ran") is None
        assert view.inside("window.ran ?? null") is None
    # What asks for code is refused by the document itself.
    assert "trusted-types 'none'" in view.inside("document.querySelector('meta[http-equiv]').content")
