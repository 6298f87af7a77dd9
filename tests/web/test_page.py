"""The page in a real browser: what a person sees and does there."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cortex_py.core.errors import MemoryNotFound

from browser import Browser, Tab

pytestmark = pytest.mark.browser

Serve = Callable[..., Any]
Look = Callable[..., Tab]


def _results(tab: Tab) -> list[str]:
    found: list[str] = tab.run("[...document.querySelectorAll('.results .snippet')].map(one => one.innerText)")
    return found


@pytest.mark.slow
def test_results_appear_while_typing_with_the_words_marked(serve: Serve, look: Look) -> None:
    served = serve()
    served.cortex.memories.capture("We chose PostgreSQL for orders", namespace="decisions", tags=["db"])
    served.cortex.memories.capture("Tests need Redis on port 6380", namespace="learnings", tags=["test"])
    tab = look(served)
    tab.wait("document.querySelectorAll('.results li').length === 2")
    tab.press("/")
    tab.type("redis tests")
    marked = tab.wait(
        "document.querySelector('.results mark') && [...document.querySelectorAll('mark')].map(m => m.innerText).join()"
    )
    assert marked == "Tests,Redis"
    assert _results(tab)[0] == "Tests need Redis on port 6380"
    assert tab.run("location.search") == "?q=redis+tests"


@pytest.mark.slow
def test_conditions_narrow_down_and_a_wrong_one_says_why(serve: Serve, look: Look) -> None:
    served = serve()
    for number in range(3):
        served.cortex.memories.capture(f"Decision {number}", namespace="decisions", tags=["db"])
    served.cortex.memories.capture("A lesson", namespace="learnings", tags=["test"])
    tab = look(served)
    tab.click(".facets button:not([aria-pressed=true])")
    tab.wait("document.querySelectorAll('.results li').length === 3")
    assert tab.run("document.querySelector('#q').value") == "ns:decisions"
    tab.click(".facets button[aria-pressed=true]")
    tab.wait("document.querySelectorAll('.results li').length === 4")
    tab.press("/")
    tab.type("status:strange")
    assert "strange" in tab.wait(
        "!document.querySelector('.error').hidden && document.querySelector('.error').innerText"
    )


@pytest.mark.slow
def test_the_count_and_the_values_are_those_of_the_query(serve: Serve, look: Look) -> None:
    served = serve(backend=None)
    memories = served.cortex.memories
    for n in range(3):
        memories.capture(f"Tests need Redis on port {6380 + n}", namespace="learnings", tags=["test"])
    for n in range(20):
        memories.capture(f"Decision {n} is about the colour of buttons", namespace="decisions", tags=[f"t{n}"])
    tab = look(served, "/?q=redis+tests")
    values = "[...document.querySelectorAll('.facets li')].map(one => one.innerText.replace(/\\s+/g, ' ').trim())"
    tab.wait("!!document.querySelector('#keys kbd')")
    assert tab.text(".count") == "3 memories fit, weaker ones follow"
    tab.run("q.value = ''; q.dispatchEvent(new Event('input'))")
    tab.wait("document.querySelector('.count').innerText === '23 memories'")
    tab.wait(f"{values}.includes('decisions 20')")
    tab.run("q.value = 'redis tests'; q.dispatchEvent(new Event('input'))")
    tab.wait("document.querySelector('.count').innerText === '3 memories fit, weaker ones follow'")
    tab.wait(f"!{values}.some(one => one.includes('decisions') || one.startsWith('t1'))")
    tab.run("q.value = 'redis tests ns:learnings'; q.dispatchEvent(new Event('input'))")
    tab.wait(f"{values}.includes('learnings 3')")
    assert tab.wait("!document.querySelector('.more:not([hidden])') && document.querySelector('.count').innerText") == (
        "3 memories fit"
    )
    tab.run("q.value = 'zebra unicorn knitting'; q.dispatchEvent(new Event('input'))")
    tab.wait("document.querySelector('.count').innerText.startsWith('Nothing fits.')")
    tab.wait("document.querySelectorAll('.facets li').length === 0")


@pytest.mark.slow
def test_the_keyboard_reaches_everything(serve: Serve, look: Look) -> None:
    served = serve()
    memory = served.cortex.memories.capture("Older")
    served.cortex.memories.capture("Newer")
    tab = look(served)
    tab.wait("!!document.querySelector('#keys kbd')")
    tab.press("j", "j")
    tab.wait("!!document.querySelector('.results li:nth-child(2).chosen')")
    tab.press("k", "j", "Enter")
    tab.wait("location.pathname.startsWith('/memories/')")
    assert tab.run("location.pathname") == f"/memories/{memory.id}"
    tab.wait("!!document.querySelector('#keys kbd')")
    tab.press("?")
    tab.wait("!!document.querySelector('dialog[open]')")
    tab.press("Escape")
    tab.wait("!document.querySelector('dialog')")


def _go_and_wait(tab: Tab, url: str, selector: str) -> None:
    tab.go(url)
    tab.wait(f"!!document.querySelector('{selector}')")


@pytest.mark.slow
def test_a_memory_is_edited_and_the_change_undone(serve: Serve, look: Look) -> None:
    served = serve()
    memories = served.cortex.memories
    memory = memories.capture("Sessions last **thirty** minutes", tags=["auth"])
    tab = look(served)
    _go_and_wait(tab, f"{served.url}/memories/{memory.id}", ".text strong")
    tab.press("e")
    tab.run("document.querySelector('#content').select()")
    tab.type("Sessions last **twenty** minutes")
    tab.click(".save")
    tab.wait("document.querySelector('.text')?.innerText === 'Sessions last twenty minutes'")
    assert memories.get(memory.id).content == "Sessions last **twenty** minutes"
    assert tab.run("[...document.querySelectorAll('.versions del')].map(one => one.innerText)") == ["thirty"]
    assert tab.run("[...document.querySelectorAll('.versions ins')].map(one => one.innerText)") == ["twenty"]
    tab.click(".notice button")
    tab.wait("document.querySelector('.text')?.innerText === 'Sessions last thirty minutes'")
    assert memories.get(memory.id).content == "Sessions last **thirty** minutes"


@pytest.mark.slow
def test_a_memory_is_deleted_brought_back_and_purged(serve: Serve, look: Look) -> None:
    served = serve()
    memories = served.cortex.memories
    memory = memories.capture("Forget me")
    tab = look(served)
    _go_and_wait(tab, f"{served.url}/memories/{memory.id}", ".delete")
    tab.press("d")
    tab.wait("document.querySelector('h1').innerText === 'Deleted'")
    assert memories.recall(None).total == 0
    tab.click(".notice button")
    tab.wait("!!document.querySelector('.purge')")
    assert memories.get(memory.id).status == "active"
    tab.click(".purge")
    tab.click("dialog button[value=no]")
    tab.wait("!document.querySelector('dialog')")
    assert memories.get(memory.id).content == "Forget me"
    tab.click(".purge")
    tab.click("dialog .confirm")
    tab.wait("document.querySelector('h1').innerText === 'Deleted for good'")
    with pytest.raises(MemoryNotFound):
        memories.history(memory.id)


@pytest.mark.slow
def test_of_two_windows_the_second_cannot_overwrite_the_first(serve: Serve, look: Look, browser: Browser) -> None:
    served = serve()
    memory = served.cortex.memories.capture("First")
    address = f"{served.url}/memories/{memory.id}"
    one = look(served)
    two = browser.open_beside(one.context)
    for tab in (one, two):
        _go_and_wait(tab, address, ".edit")
        tab.click(".edit")
    for tab, text in ((one, "Second"), (two, "Third")):
        tab.run(f"document.querySelector('#content').value = '{text}'")
        tab.click(".save")
        tab.wait("!!document.querySelector('.notice')")
    told = two.text(".notice")
    assert "version 2" in told
    assert told.count("Read it again") == 1
    assert served.cortex.memories.get(memory.id).content == "Second"
    assert two.run("document.querySelector('#content').value") == "Third", "what was typed is not lost"


@pytest.mark.slow
def test_a_link_to_a_memory_that_is_gone_says_so_and_keeps_its_address(serve: Serve, look: Look) -> None:
    served = serve()
    memories = served.cortex.memories
    deleted = memories.capture("Sessions last thirty minutes")
    memories.delete(deleted.id)
    tab = look(served)
    for id in (deleted.id, "0123456789abcdef"):
        tab.go(f"{served.url}/memories/{id}")
        assert tab.run("document.querySelector('.results')") is None
        assert tab.text(".error") == f"There is no memory '{id}'. Search for it; a deleted memory can be restored."
        assert tab.run("location.pathname") == f"/memories/{id}"


@pytest.mark.slow
def test_staged_memories_are_decided_by_keyboard(serve: Serve, look: Look) -> None:
    served = serve()
    memories = served.cortex.memories
    for number in range(4):
        memories.update(memories.capture(f"Staged {number}").id, status="pending")
    tab = look(served)
    _go_and_wait(tab, f"{served.url}/review", ".pick:nth-child(4)")
    tab.press("j", "a")
    tab.wait("document.querySelectorAll('.pick').length === 3")
    assert [hit.memory.content for hit in memories.recall(None, filter="status:active").results] == ["Staged 3"]
    tab.press("j", "x", "j", "x", "d")
    tab.wait("document.querySelectorAll('.pick').length === 1")
    assert memories.recall(None, filter="status:tombstoned").total == 2
    tab.click(".notice button")
    tab.wait("document.querySelectorAll('.pick').length === 3")
    assert memories.recall(None, filter="status:pending").total == 3


@pytest.mark.slow
def test_a_read_only_server_offers_no_change(serve: Serve, look: Look) -> None:
    served = serve(read_only=True)
    memory = served.cortex.memories.capture("Only read")
    tab = look(served)
    _go_and_wait(tab, f"{served.url}/memories/{memory.id}", ".details .tags, .details code")
    assert tab.run("document.querySelector('.edit')") is None
    status = tab.run(
        f"""fetch('/api/v1/memories/{memory.id}', {{method: 'DELETE',
        headers: {{'Cortex-CSRF': document.querySelector('meta[name=csrf]').content}}}}).then(r => r.status)"""
    )
    assert status == 403
    assert served.cortex.memories.get(memory.id).status == "active"


@pytest.mark.slow
def test_an_answer_is_checked_claim_by_claim(serve: Serve, look: Look, project: Path) -> None:
    (project / "limits.py").write_text("TIMEOUT = 30\n\n\ndef read_limits():\n    return TIMEOUT\n")
    (project / "view.py").write_text("def render_page():\n    return 'the page is rendered with care'\n")
    served = serve()
    tab = look(served, "/check")

    def check(text: str, claims: int) -> None:
        tab.wait("document.activeElement.id === 'answer'")
        tab.type(text)
        tab.click("main button.primary")
        tab.wait(f"document.querySelectorAll('.claims > li').length >= {claims}")

    check("The function read_limits is in limits.py. The file missing_thing.py defines parse_everything.", 2)
    verdicts = tab.run("[...document.querySelectorAll('.claims .verdict')].map(one => one.className)")
    assert verdicts[0] == "verdict good"
    assert verdicts[-1] in ("verdict warn", "verdict bad")
    assert "limits.py" in tab.text(".claims .evidence")
    tab.go(f"{served.url}/check")
    check("The page is rendered with React.", 1)
    assert tab.text(".claims .verdict") == "unverified"
    assert tab.run("document.querySelector('.claims .evidence')") is None


@pytest.mark.slow
def test_lines_of_work_show_where_they_stand(serve: Serve, look: Look) -> None:
    served = serve()
    contexts = served.cortex.contexts
    tab = look(served, "/lines")
    tab.wait("!!document.querySelector('.count code')")
    assert tab.text(".count") == "There is no line of work yet. cortex branch create begins one."
    branch = contexts.create_branch("Import of suppliers")
    contexts.append(branch.id, "We decided to read the feed as CSV. Should we keep the XML reader?", "user")
    _go_and_wait(tab, f"{served.url}/lines", ".lines summary")
    tab.click(".lines summary")
    shown = tab.wait("document.querySelector('.summary ul') && document.querySelector('.lines').innerText")
    assert "Import of suppliers" in shown
    assert "XML reader" in shown


@pytest.mark.slow
def test_the_next_session_is_shown_word_by_word(serve: Serve, look: Look, project: Path) -> None:
    served = serve()
    served.cortex.memories.capture("Orders are kept in PostgreSQL", namespace="decisions")
    tab = look(served, "/next")
    shown = tab.wait("document.querySelector('.injected')?.innerText")
    given = served.cortex.hooks.session_start(project)
    assert "Orders are kept in PostgreSQL" in given.text
    assert shown.split() == given.text.split()
    assert f"{served.cortex.memories.count_tokens(given.text)} tokens" in tab.text("main")


@pytest.mark.slow
def test_health_shows_every_check(serve: Serve, look: Look, project: Path) -> None:
    served = serve()
    tab = look(served, "/doctor")
    tab.wait("!!document.querySelector('.checks')")
    names = tab.run("[...document.querySelectorAll('.checks dt')].map(one => one.innerText.slice(2))")
    assert names == [one.name for one in served.cortex.doctor().checks]
    assert "Nothing." in tab.text("main")
    # Nothing here uses the memory, so not all is well.
    assert tab.text("main h2") == "All checks passed"
    assert "No client on this machine" in tab.text("main")
    configuration = project / ".mcp.json"
    configuration.write_text(json.dumps({"mcpServers": {"cortex": {"command": "cortex", "args": ["serve"]}}}))
    _go_and_wait(tab, f"{served.url}/doctor", ".checks")
    assert tab.text("main h2") == "All is well"


@pytest.mark.slow
def test_what_is_captured_elsewhere_shows_up(serve: Serve, look: Look) -> None:
    served = serve()
    tab = look(served)
    tab.wait("!!document.querySelector('#keys kbd')")
    served.cortex.memories.capture("Fresh from a terminal")
    tab.wait("document.querySelector('.results')?.innerText.includes('Fresh from a terminal')")
