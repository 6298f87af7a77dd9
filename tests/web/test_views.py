"""Timeline, graph, and the changes of every view, in a real browser."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hostile_memories import HOSTILE

from cortex_py import Cortex
from cortex_py.core.records import NEVER_INJECTED_TAG, PINNED_TAG, Memory, NewMemory

from browser import Tab
from helpers import git

pytestmark = pytest.mark.browser

Serve = Callable[..., Any]
Look = Callable[..., Tab]

VIEWS = ("/", "/timeline", "/graph", "/review", "/check", "/lines", "/next", "/doctor")
HERE = Path(__file__).parent
# Read before the environment is cleared: the script of axe, where it is installed.
_AXE = os.environ.get("CORTEX_AXE", "")
_STATED = (
    "Maria Keller works at Acme.",
    "The importer uses Redis.",
    "Orders are kept in PostgreSQL.",
)


def _commit(project: Path, name: str) -> None:
    (project / name).write_text("x = 1\n")
    git(project, "add", "-A")
    git(project, "commit", "-m", f"Add {name}")


def _staged(cortex: Cortex, text: str) -> Memory:
    return cortex.memories.update(cortex.memories.capture(text, namespace="learnings").id, status="pending")


def _see(tab: Tab, url: str, ready: str) -> None:
    tab.go(url)
    tab.wait(ready)


@pytest.mark.slow
def test_the_timeline_shows_everything_in_order_and_reads_only_what_is_in_sight(
    serve: Serve, look: Look, project: Path
) -> None:
    git(project, "init", "-b", "main")
    _commit(project, "a.py")
    git(project, "checkout", "-q", "-b", "side")
    _commit(project, "b.py")
    git(project, "checkout", "-q", "main")
    git(project, "merge", "--no-ff", "-m", "Merge side", "side")
    served = serve()
    cortex = served.cortex
    now = datetime.now(UTC)
    cortex.memories.capture_many(
        NewMemory(content=f"Fact {n}", created_at=now - timedelta(minutes=n)) for n in range(500)
    )
    cortex.contexts.create_branch("Import of suppliers")
    cortex.backups.create("Before the move")
    tab = look(served, "/timeline")
    tab.wait("document.querySelectorAll('.event .title').length > 8")
    kinds = tab.run("[...document.querySelectorAll('.chips .chip')].map(one => one.innerText.replace(/\\s+/g, ' '))")
    assert kinds == ["Memories 500", "Lines of work 1", "Commits 2", "Merges 1", "Snapshots 1"]
    assert tab.run("document.querySelectorAll('.space > *').length") < 60
    # The end of the history, without what lies between.
    tab.run("const axis = document.querySelector('.axis'); axis.scrollTop = axis.scrollHeight")
    tab.wait("document.querySelector('.space').innerText.includes('Fact 499')")
    # Of six parts (seven where midnight lies between); a change elsewhere reads the same parts again.
    assert len({one for one in tab.requests if "/timeline/" in one}) <= 4
    shown = tab.run("[...document.querySelectorAll('.event')].sort((a, b) => a.dataset.number - b.dataset.number)"
                    ".map(one => one.querySelector('.title')?.innerText).filter(Boolean)")  # fmt: skip
    numbers = [int(one.removeprefix("Fact ")) for one in shown if one.startswith("Fact ")]
    assert numbers == sorted(numbers)
    # Without memories the rest stands together; the keyboard walks through it.
    tab.click(".chip.kind-memory")
    tab.wait("document.querySelectorAll('.event .title').length === 5")
    titles = tab.run("[...document.querySelectorAll('.event .title')].map(one => one.innerText)")
    assert set(titles) == {"Before the move", "Import of suppliers", "Merge side", "Add b.py", "Add a.py"}
    tab.press("j", "j")
    assert tab.run("document.querySelector('.event.chosen').dataset.number") == "1"


def test_parts_of_a_day_join_without_gaps(serve: Serve, project: Path) -> None:
    git(project, "init", "-b", "main")
    _commit(project, "a.py")
    cortex = serve().cortex
    now = datetime.now(UTC).replace(hour=12)
    cortex.memories.capture_many(
        NewMemory(content=f"Fact {n}", created_at=now - timedelta(seconds=n)) for n in range(25)
    )
    for n in range(4):
        cortex.contexts.create_branch(f"Line {n}")
    timeline = cortex.timeline
    whole = timeline.window(now.date(), limit=200)
    assert len(whole) == 30
    assert [one.at for one in whole] == sorted((one.at for one in whole), reverse=True)
    for size in (1, 3, 7, 29):
        parts = [timeline.window(now.date(), limit=size, offset=at) for at in range(0, 30, size)]
        assert [one.id for part in parts for one in part] == [one.id for one in whole], size
    (day,) = timeline.days()
    assert (day.day, day.total, day.counts["memory"]) == (now.date(), 30, 25)


@pytest.mark.slow
def test_the_graph_leads_to_the_memory_behind_every_edge(serve: Serve, look: Look) -> None:
    served = serve()
    kept = [served.cortex.memories.capture(text) for text in _STATED]
    served.cortex.graph.relate("Acme", "PostgreSQL", "Uses")
    tab = look(served, "/graph")
    tab.wait("document.querySelector('canvas').dataset.calm === 'true'")
    assert "relationships" in tab.text(".count")
    # By keyboard: the first name, and from it the first edge.
    tab.press("i")
    tab.type("Maria Keller")
    tab.press("Enter")
    tab.wait("document.querySelector('.panel h2')?.innerText === 'Maria Keller'")
    tab.press("Escape")
    tab.wait("!!document.querySelector('.panel .edge')")
    assert "works at Acme" in tab.text(".panel")
    tab.click(".panel .edge")
    tab.wait("document.querySelector('.panel h2')?.innerText === 'Maria Keller and Acme'")
    links = tab.run("[...document.querySelectorAll('.panel a')].map(one => one.pathname)")
    assert set(links) <= {f"/memories/{one.id}" for one in kept}
    # A path between two, in words and on the canvas.
    for field, name in (("from", "Maria Keller"), ("to", "PostgreSQL")):
        tab.run(f"document.querySelector('#{field}').value = '{name}'")
    tab.click(".tools .pair button")
    tab.wait("document.querySelector('.panel h2')?.innerText === 'Path'")
    assert tab.run("document.querySelectorAll('.panel ol li').length") == 2
    # A type that is switched off is not listed.
    tab.click(".panel > p button")
    tab.click(".chip.type-Person")
    tab.click(".panel .names button")
    assert tab.run("document.querySelector('.chip.type-Person').getAttribute('aria-pressed')") == "false"


@pytest.mark.slow
def test_names_are_in_the_order_of_the_memories_that_have_them(serve: Serve, look: Look) -> None:
    served = serve()
    memories = served.cortex.memories
    memories.capture("Ada uses Apollo. Ada uses Ansible. Ada uses Airflow, says Ada.")
    for n in range(3):
        memories.capture(f"The importer uses Redis, part {n}.")
    for n in range(2):
        memories.capture(f"Orders are kept in PostgreSQL, part {n}.")
    memories.finish_reading()
    tab = look(served, "/graph")
    tab.wait("!!document.querySelector('.panel .names')")
    names = tab.run("[...document.querySelectorAll('.panel .names li')].map(one => one.innerText.trim())")
    assert names[:2] == ["Redis 3", "PostgreSQL 2"]
    assert "Ada 1" in names, "one memory that has the name four times"
    few = tab.run("fetch('/api/v1/graph?limit=2').then(one => one.json())")
    assert [one["name"] for one in few["nodes"]] == ["Redis", "PostgreSQL"]


@pytest.mark.slow
def test_conditions_are_completed_while_typing(serve: Serve, look: Look) -> None:
    served = serve()
    served.cortex.memories.capture("We chose PostgreSQL", namespace="decisions", tags=["two words"])
    served.cortex.memories.capture("A lesson", namespace="learnings")
    tab = look(served)
    tab.wait("!!document.querySelector('#keys kbd')")
    tab.press("/")
    tab.type("na")
    tab.run("document.querySelector('#q').value = ''")
    tab.type("n")
    tab.wait("!document.querySelector('.completions').hidden")
    tab.press("Tab")
    tab.wait("document.querySelector('.completions').innerText.includes('ns:decisions')")
    tab.press("Tab")
    tab.wait("document.querySelectorAll('.results li').length === 1")
    assert tab.run("document.querySelector('#q').value").startswith("ns:")
    tab.run("document.querySelector('#q').value = ''")
    tab.type("tag:tw")
    tab.wait("document.querySelector('.completions').innerText.includes('two words')")
    tab.press("Tab")
    assert tab.run("document.querySelector('#q').value").strip() == 'tag:"two words"'
    tab.run("document.querySelector('#q').value = ''")
    tab.type("postgresql")
    tab.wait("!!document.querySelector('.results .why .bar .on')")


@pytest.mark.slow
def test_a_memory_is_pinned_kept_from_sessions_and_replaced(serve: Serve, look: Look, project: Path) -> None:
    served = serve()
    memories, hooks = served.cortex.memories, served.cortex.hooks
    new = memories.capture("Orders are kept in PostgreSQL", namespace="decisions")
    old = memories.capture("Sessions last twenty minutes", namespace="decisions")
    tab = look(served)
    _see(tab, f"{served.url}/memories/{old.id}", "!!document.querySelector('.uses')")
    tab.press("n")
    tab.wait("document.querySelector('.never-inject')?.getAttribute('aria-pressed') === 'true'")
    assert NEVER_INJECTED_TAG in memories.get(old.id).tags
    assert old.id not in hooks.session_start(project).ids
    tab.click(".notice button")
    tab.wait("document.querySelector('.never-inject')?.getAttribute('aria-pressed') === 'false'")
    tab.press("p")
    tab.wait("document.querySelector('.pinned')?.getAttribute('aria-pressed') === 'true'")
    assert PINNED_TAG in memories.get(old.id).tags
    assert hooks.session_start(project).ids[0] == old.id
    tab.press("s")
    tab.click(".choices button")
    tab.wait("!!document.querySelector('.reinstate')")
    assert memories.get(old.id).superseded_by == new.id
    tab.click(".notice button")
    tab.wait("!!document.querySelector('.supersede')")
    assert memories.get(old.id).status == "active"


@pytest.mark.slow
def test_staged_memories_are_compared_merged_and_that_undone(serve: Serve, look: Look) -> None:
    served = serve()
    memories = served.cortex.memories
    known = memories.capture("Tests need Redis on port 6380.", namespace="learnings")
    staged = _staged(served.cortex, "Tests need Redis on port 6380.")
    tab = look(served, "/review")
    tab.wait("!!document.querySelector('.compare')")
    tab.press("j", "c")
    tab.wait("document.querySelector('.pair')?.innerText.includes('Repeats')")
    assert tab.run("document.querySelectorAll('.pair .columns > div').length") == 2
    tab.press("m")
    tab.wait("document.querySelectorAll('.pick').length === 0")
    assert memories.get(staged.id).superseded_by == known.id
    tab.click(".notice button")
    tab.wait("document.querySelectorAll('.pick').length === 1")
    assert (memories.get(staged.id).status, memories.get(known.id).content) == ("pending", known.content)


@pytest.mark.slow
def test_evidence_opens_at_its_line(serve: Serve, look: Look, project: Path) -> None:
    (project / "limits.py").write_text("import os\n\nTIMEOUT = 30\n\n\ndef read_limits():\n    return TIMEOUT\n")
    tab = look(serve(), "/check")
    tab.wait("document.activeElement.id === 'answer'")
    tab.type("The function read_limits is in limits.py.")
    tab.click("main button.primary")
    tab.click(".evidence button")
    here = tab.wait("document.querySelector('.excerpt .here')?.innerText")
    assert here == "def read_limits():"
    # Nothing else of the machine can be opened.
    for path in ("../secret", "/etc/passwd", "missing.py"):
        assert tab.run(f"fetch('/api/v1/evidence?path={path}').then(one => one.status)") == 422


@pytest.mark.slow
def test_the_next_session_is_changed_by_a_switch(serve: Serve, look: Look, project: Path) -> None:
    served = serve()
    served.cortex.memories.capture("Orders are kept in PostgreSQL", namespace="decisions")
    tab = look(served, "/next")
    tab.click(".never")
    tab.wait("!!document.querySelector('.left-out') && !document.querySelector('.injected')")
    assert served.cortex.hooks.session_start(project).text == ""
    tab.click(".again")
    tab.wait("!!document.querySelector('.injected') && !document.querySelector('.left-out')")
    assert "PostgreSQL" in served.cortex.hooks.session_start(project).text


@pytest.mark.slow
def test_staged_memories_of_a_branch_are_promoted_or_dropped(serve: Serve, look: Look, project: Path) -> None:
    git(project, "init", "-b", "main")
    _commit(project, "a.py")
    git(project, "checkout", "-q", "-b", "feature")
    served = serve(branch_memories="stage")
    cortex = served.cortex
    line = cortex.contexts.create_branch("Import", git_branch="feature")
    kept = cortex.memories.capture("The feed is CSV", namespace="decisions")
    assert [one.id for one in cortex.contexts.staged(line.id)] == [kept.id]
    tab = look(served, "/lines")
    tab.click(".staged .keep")
    tab.wait("!document.querySelector('.staged')")
    assert cortex.contexts.staged(line.id) == []
    assert cortex.memories.get(kept.id).confinement is None
    tab.click(".notice button")
    tab.wait("!!document.querySelector('.staged')")
    assert cortex.memories.get(kept.id).confinement == "stage"


@pytest.mark.slow
def test_snapshots_are_taken_verified_and_gone_back_to(serve: Serve, look: Look) -> None:
    served = serve()
    memories = served.cortex.memories
    memory = memories.capture("Sessions last twenty minutes")
    memories.recall("sessions")
    tab = look(served, "/doctor")
    tab.click(".create")
    tab.click(".verify")
    tab.wait("document.querySelector('.notice')?.innerText === 'It is intact.'")
    assert tab.run("document.querySelectorAll('.spark').length") == 1
    assert "1 memory" in tab.text("#snapshots li")
    memories.update(memory.id, content="Sessions last ninety minutes")
    tab.click(".restore")
    tab.click("dialog .confirm")
    tab.wait("document.querySelector('.notice')?.innerText.includes('as they were')")
    assert memories.get(memory.id).content == "Sessions last twenty minutes"
    tab.click(".notice button")
    tab.wait("document.querySelector('.notice')?.innerText === 'Undone.'")
    assert memories.get(memory.id).content == "Sessions last ninety minutes"


def _fill(cortex: Cortex) -> Memory:
    for text in _STATED:
        cortex.memories.capture(text, tags=["a"])
    _staged(cortex, "A" * 400)
    line = cortex.contexts.create_branch("Import of suppliers")
    cortex.contexts.append(line.id, "We decided to read the feed as CSV. Should we keep the XML reader?", "user")
    cortex.backups.create("Before the move")
    return cortex.memories.update(cortex.memories.capture("Before", tags=["x" * 60]).id, content="After")


@pytest.mark.slow
@pytest.mark.parametrize("width", [390, 820, 1280])
def test_everything_stays_in_its_place(serve: Serve, look: Look, project: Path, width: int) -> None:
    folder = Path("every_supplier_has_a_feed_of_its_own", "and_limits_that_nobody_else_has")
    (project / folder).mkdir(parents=True)
    (project / folder / "limits.py").write_text("TIMEOUT = 30\n")
    served = serve()
    memory = _fill(served.cortex)
    served.cortex.memories.capture("A" * 400, namespace="learnings")
    served.cortex.memories.recall("orders")
    tab = look(served, width=width, height=800)
    geometry = (HERE / "geometry.js").read_text().rstrip()
    faults = []
    asked = "'TIMEOUT in limits.py is 30. TIMEOUT in limits.py is 40.'"
    tab.go(f"{served.url}/memories/{'0' * 60}")
    assert tab.run(f"{geometry}({width})") == []
    for path, act, ready in (
        ("/?q=orders+are+kept+in+redis+at+acme", "", "document.querySelectorAll('.results .bar').length > 3"),
        ("/?q=status:active", "", "!!document.querySelector('.facets li')"),
        (f"/memories/{memory.id}", "", "!!document.querySelector('.versions')"),
        ("/timeline", "", "document.querySelectorAll('.event .title').length > 3"),
        ("/graph", "", "!!document.querySelector('.names')"),
        ("/review", "document.querySelector('.compare').click()", "!!document.querySelector('.pair')"),
        (
            "/check",
            f"answer.value = {asked}; document.querySelector('main .primary').click()",
            "document.querySelectorAll('.claims > li').length > 1",
        ),
        ("/lines", "document.querySelector('.lines summary').click()", "!!document.querySelector('.summary ul')"),
        ("/next", "", "!!document.querySelector('.injected, .left-out, main p.hint')"),
        ("/doctor", "", "!!document.querySelector('#snapshots li')"),
    ):
        _see(tab, served.url + path, "!!document.querySelector('#keys kbd')")
        tab.wait(f"(() => {{ {act}; return true }})()")
        tab.wait(ready)
        for scheme in ("light", "dark"):
            tab.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
            faults += [(path, scheme, one) for one in tab.run(f"{geometry}({width})")]
    assert faults == []


@pytest.mark.slow
@pytest.mark.parametrize(("width", "dark"), [(360, True), (1440, False)])
def test_every_view_is_accessible(serve: Serve, look: Look, width: int, dark: bool) -> None:
    served = serve()
    memory = _fill(served.cortex)
    tab = look(served, width=width, height=740, dark=dark)
    for path in (*VIEWS, f"/memories/{memory.id}"):
        _see(
            tab,
            served.url + path,
            "!!document.querySelector('#keys kbd') && document.querySelectorAll('main > *').length > 0",
        )
        tab.wait("!document.querySelector('.waiting')")
        assert tab.run((HERE / "audit.js").read_text()) == [], path
        if _AXE:
            tab.run(f"{Path(_AXE).read_text()}; 0")
            found = tab.run("axe.run({resultTypes: ['violations']}).then(r => r.violations.map(one => "
                            "`${one.impact} ${one.id}: ${one.nodes[0].html.slice(0, 200)}`))")  # fmt: skip
            assert [one for one in found if one.startswith(("serious", "critical"))] == [], path
    background = tab.run("getComputedStyle(document.body).backgroundColor")
    assert background == ("rgb(21, 23, 26)" if dark else "rgb(251, 250, 248)")


@pytest.mark.slow
def test_every_view_can_be_read_without_javascript(serve: Serve, look: Look) -> None:
    served = serve()
    memory = _fill(served.cortex)
    tab = look(served, f"/memories/{memory.id}", script=False)
    # Scripts of the test still run; those of the page do not.
    assert "After" in tab.text("main")
    assert "x" * 60 in tab.text("dl")
    tab.go(f"{served.url}/?q=postgresql")
    assert tab.run("document.querySelector('.facets')") is None
    assert "Orders are kept in PostgreSQL." in tab.text("main")
    for path, text in (
        ("/timeline", "Import of suppliers"),
        ("/graph", "Maria Keller WorksAt Acme"),
        ("/review", "A" * 40),
        ("/lines", "Import of suppliers"),
        ("/next", "tokens"),
        ("/doctor", "well: store"),
    ):
        tab.go(served.url + path)
        assert "Read this view without it" in tab.run("document.querySelector('noscript').innerHTML")
        tab.go(f"{served.url}{path}?plain=1")
        assert text in tab.text("main"), path


@pytest.mark.slow
def test_hostile_texts_run_nothing_in_any_view(serve: Serve, look: Look, project: Path) -> None:
    git(project, "init", "-b", "main")
    _commit(project, "a.py")
    git(project, "commit", "--allow-empty", "-m", HOSTILE[0])
    served = serve()
    cortex = served.cortex
    for text in HOSTILE:
        memory = cortex.memories.capture(text, tags=["<img src=x onerror=window.ran=1>"], namespace="decisions")
        cortex.graph.create(text[:120], "Concept")
    assert len(HOSTILE) >= 50
    whole = cortex.memories.capture("\n\n".join(HOSTILE))
    names = [one.id for one in cortex.graph.entities(limit=60)[0]]
    for one, other in pairwise(names):
        cortex.graph.relate(one, other, "RelatesTo")
    cortex.memories.update(memory.id, content=HOSTILE[1])
    _staged(cortex, HOSTILE[2])
    cortex.contexts.create_branch(HOSTILE[3])
    cortex.backups.create(HOSTILE[4])
    tab = look(served)
    for path, ready in (
        ("/timeline", "document.querySelectorAll('.event .title').length > 5"),
        ("/graph", "document.querySelector('canvas').dataset.calm === 'true'"),
        ("/review", "!!document.querySelector('.compare')"),
        ("/lines", "!!document.querySelector('.lines li')"),
        ("/next", "!!document.querySelector('.injected')"),
        ("/doctor", "!!document.querySelector('#snapshots li')"),
        (f"/memories/{memory.id}", "!!document.querySelector('.difference')"),
        (f"/memories/{whole.id}?q=script", "!!document.querySelector('.edit')"),
        ("/?q=script%20onerror", "!!document.querySelector('.facets')"),
        ("/graph?plain=1", "document.querySelectorAll('li').length > 50"),
    ):
        _see(tab, served.url + path, ready)
        if path == "/graph":
            tab.click(".panel .names button")
            tab.wait("!!document.querySelector('.panel .edge')")
        if path == "/review":
            tab.click(".compare")
            tab.wait("!!document.querySelector('.sides > *')")
        assert tab.run("window.ran") is None, path
        assert tab.violations() == [], path
        inside = "main :is(script, img, iframe, svg:not(.spark), object, embed, style, base)"
        assert tab.run(f"document.querySelectorAll('{inside}').length") == 0, path
        links = tab.run("[...document.querySelectorAll('main a')].map(one => one.href)")
        assert all(link.startswith(("http://", "https://")) for link in links), path


@pytest.mark.slow
def test_without_motion_the_graph_stands_still_at_once(serve: Serve, look: Look) -> None:
    served = serve()
    for text in _STATED:
        served.cortex.memories.capture(text)
    tab = look(served)
    tab.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-reduced-motion", "value": "reduce"}])
    _see(tab, f"{served.url}/graph", "document.querySelector('canvas').dataset.calm === 'true'")
    assert "names" in tab.text(".count")
