"""The page as HTML: the frame of every view, and all that can be read for browsers without JavaScript."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import quote, urlencode

from ...version import __version__
from . import models, project_models
from .assets import static_version
from .html import Node, document, element

__all__ = [
    "NAVIGATION", "PageFrame", "error_page", "graph_text", "health_text", "lines_text", "memory_page", "next_text",
    "plain_page", "review_text", "search_page", "sign_in_page", "timeline_text",
]  # fmt: skip

# Views by path: the name in the navigation, and what the view shows.
NAVIGATION: dict[str, tuple[str, str]] = {
    "/": ("Search", "Everything that is remembered here."),
    "/timeline": ("Timeline", "What was captured, begun, committed and saved in this project."),
    "/graph": ("Graph", "What the memories name, and how it belongs together."),
    "/review": ("Review", "Memories that wait until you accept or drop them."),
    "/check": ("Check", "Paste an answer. Each claim in it is compared with the project and its history."),
    "/lines": ("Lines of work", "Where each line of work stands, as an agent gets it."),
    "/next": ("Next session", "Exactly what the hooks give to the next session in this project."),
    "/doctor": ("Health", "Whether all is well, and what leaves this machine."),
}


# The module that brings a view to life.
_MODULES = {
    "/": "search", "/timeline": "timeline", "/graph": "graph", "/review": "review", "/check": "check", "/lines": "work",
    "/next": "next", "/doctor": "doctor", "": "memory",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class PageFrame:
    """What surrounds every view. `csrf` proves that a change comes from the page."""

    csrf: str
    project: str
    may_change: bool = True


def search_page(frame: PageFrame, query: str, found: models.SearchResults | None, error: str = "") -> str:
    count = "" if found is None else found.found
    results = [] if found is None else [_result(one, query) for one in found.results]
    body = element(
        "section",
        _search_form(query),
        element("p", error, class_="error", role="alert") if error else None,
        [element("p", one, class_="hint") for one in (found.warnings if found else [])],
        element("p", count, class_="count", role="status"),
        element("ol", *results, class_="results", data_total=str(found.total if found else 0)),
        class_="search",
    )
    return _document("Search", "/", frame, body)


def memory_page(frame: PageFrame, memory: models.MemoryView) -> str:
    body = element(
        "article",
        element("pre", memory.content, class_="plain"),
        _facts(memory),
        class_="memory",
    )
    return _document("Memory", "", frame, element("h1", "Memory", class_="quiet"), body)


def error_page(frame: PageFrame, path: str, error: str) -> str:
    """Why a view cannot be shown. It has no script: one would replace the error, and the address with it."""
    title = NAVIGATION.get(path, ("Memory", ""))[0]
    text = element("p", error, class_="error", role="alert")
    return _document(title, path if path in NAVIGATION else "", frame, element("h1", title), text, plain=True)


def plain_page(frame: PageFrame, path: str, content: Node = None) -> str:
    """The frame of a view that a script fills in, or the view as plain text."""
    title, about = NAVIGATION[path]
    link = element("a", "Read this view without it", href=f"{path}?plain=1")
    note = element("noscript", element("p", "JavaScript is off. ", link, "."))
    head = (element("h1", title), element("p", about, class_="hint"))
    if content is None:
        return _document(title, path, frame, *head, note)
    return _document(title, path, frame, *head, element("div", content, class_="memory"), plain=True)


# -- views as plain text ---------------------------------------------------------------------------


def review_text(found: models.SearchResults) -> Node:
    return [
        element("p", _counted(found.total, "memory waits", "memories wait"), class_="count"),
        element("ol", *(_result(one, "") for one in found.results), class_="results"),
    ]


def timeline_text(days: project_models.TimelineDays, newest: list[tuple[str, project_models.TimelineEvents]]) -> Node:
    def event_row(one: project_models.EventView) -> Node:
        place = f"/memories/{quote(one.id, safe='')}"
        title = element("a", one.title, href=place) if one.kind == "memory" else one.title
        return element("li", _day(one.at), " ", one.kind, ": ", title, f" ({one.detail})" if one.detail else None)

    shown = [
        (element("h2", day), element("ul", *(event_row(one) for one in found.events), class_="plain-list"))
        for day, found in newest
    ]
    return [element("p", _counted(days.total, "event", "events"), class_="count"), *shown]


def graph_text(found: project_models.GraphView) -> Node:
    names = {one.id: one.name for one in found.nodes}
    facts = [f"{names[one.source]} {one.type} {names[one.target]}" for one in found.edges]
    things = [element("li", f"{one.name} ({one.type}, in {one.mentions})") for one in found.nodes]
    return [
        element("h2", "Relationships"),
        element("ul", *(element("li", one) for one in facts)),
        element("h2", "Names"),
        element("ul", *things),
    ]


def lines_text(lines: Iterable[models.LineOfWork], active: models.LineSummary | None) -> Node:
    rows = [element("li", one.topic, " ", element("code", one.id), f" ({one.status})") for one in lines]
    standing = [element("h2", active.topic), element("pre", active.text, class_="plain")] if active else []
    return [*standing, element("h2", "All lines of work"), element("ul", *rows, class_="plain-list")]


def next_text(found: models.NextSession) -> Node:
    given = found.start
    links = [element("a", one.text, href=f"/memories/{quote(one.id, safe='')}") for one in given.memories]
    return [
        element("h2", "At the start"),
        element("p", f"{given.tokens:,} tokens", class_="hint"),
        element("pre", given.text or "Nothing is given.", class_="plain"),
        element("ul", *(element("li", link) for link in links), class_="plain-list"),
    ]


def health_text(found: models.Health) -> Node:
    rows = [
        (element("dt", f"{'well' if one.well else 'failed'}: {one.name}"), element("dd", one.detail))
        for one in found.checks
    ]
    leaving = [element("li", f"{one.host}: {one.what}") for one in found.outbound] or element("li", "Nothing.")
    return [
        element("dl", *rows, class_="details"),
        element("h2", "What leaves this machine"),
        element("ul", leaving),
    ]


# -- the frame -------------------------------------------------------------------------------------


def sign_in_page(*, takes_token: bool, wrong_token: bool = False, spent_link: bool = False) -> str:
    """What a browser without a session sees."""
    note = "This link was used already, or is too old." if spent_link else "This token is not known here."
    form = element(
        "form",
        element("label", "Your token", for_="token"),
        element("input", id="token", name="token", type="password", autocomplete="off", required=True, autofocus=True),
        element("button", "Sign in", type="submit"),
        method="post",
        action="/session",
    )
    how = element("p", "Run ", element("code", "cortex ui"), " in a terminal. It opens this page with a fresh link.")
    main = element(
        "main",
        element("h1", "Cortex"),
        element("p", note, class_="error", role="alert") if wrong_token or spent_link else None,
        form if takes_token else how,
        class_="sign-in",
    )
    return document(_head("Sign in"), element("body", main))


def _document(title: str, path: str, frame: PageFrame, *main: Node, plain: bool = False) -> str:
    links = [
        element("a", name, href=place, aria_current="page" if place == path else None)
        for place, (name, _) in NAVIGATION.items()
    ]
    return document(
        _head(title, frame.csrf, "" if plain else _MODULES[path]),
        element(
            "body",
            element("a", "Skip to the content", class_="skip", href="#main"),
            element(
                "header",
                element("a", "Cortex", class_="name", href="/"),
                element("span", frame.project, class_="project"),
                element("nav", *links, aria_label="Views"),
                class_="top",
            ),
            element("main", *main, id="main", tabindex="-1"),
            element("div", id="notices", role="status", aria_live="polite"),
            element("footer", element("span", f"Cortex {__version__}"), element("span", id="keys")),
            data_may_change="yes" if frame.may_change else "no",
            data_view=_MODULES[path],
        ),
    )


def _head(title: str, csrf: str = "", module: str = "") -> Node:
    files = f"/static/{static_version()}"
    return element(
        "head",
        element("meta", charset="utf-8"),
        element("title", f"{title} · Cortex"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("meta", name="csrf", content=csrf) if csrf else None,
        element("link", rel="icon", href=f"{files}/icon.svg", type="image/svg+xml"),
        element("link", rel="stylesheet", href=f"{files}/page.css"),
        element("script", src=f"{files}/app.js", type="module") if csrf and module else None,
        element("link", rel="modulepreload", href=f"{files}/{module}.js") if csrf and module else None,
    )


def _search_form(query: str) -> Node:
    return element(
        "form",
        element("label", "Search memories", for_="q", class_="unseen"),
        element(
            "input",
            id="q",
            name="q",
            type="search",
            value=query,
            placeholder="Search, or filter: ns:decisions tag:auth since:7d",
            autocomplete="off",
            spellcheck="false",
            enterkeyhint="search",
        ),
        element("noscript", element("button", "Search", type="submit")),
        role="search",
        action="/",
        method="get",
    )


def _result(one: models.SearchResult, query: str) -> Node:
    memory = one.memory
    asked = f"?{urlencode({'q': query})}" if query else ""
    snippet = [element("mark", part.text) if part.match else part.text for part in one.snippet]
    return element(
        "li",
        element("a", *snippet, class_="snippet", href=f"/memories/{quote(memory.id, safe='')}{asked}"),
        element(
            "p",
            element("span", memory.namespace, class_="namespace"),
            element("span", memory.status, class_="status") if memory.status != "active" else None,
            [element("span", f"#{tag}", class_="tag") for tag in memory.tags],
            element("span", _day(memory.created_at)),
            element("span", f"{round(100 * one.score)} %", class_="score") if one.score else None,
            element("span", _why(one.signals), class_="why") if one.signals else None,
            class_="facts",
        ),
    )


def _why(signals: models.SignalsView) -> Node:
    """Which signals gave the score."""

    def meter(name: str, value: float) -> Node:
        percent = round(100 * max(0.0, min(1.0, value)))
        bar = element(
            "span",
            *(element("i", class_="on" if percent >= step else None) for step in (10, 30, 50, 70, 90)),
            class_="bar",
            role="meter",
            aria_label=name,
            aria_valuemin="0",
            aria_valuemax="100",
            aria_valuenow=str(percent),
        )
        return element("span", f"{name} ", bar, class_="signal")

    return [
        meter("meaning", signals.meaning),
        meter("words", signals.words),
        element("span", "this line of work", class_="signal") if signals.near else None,
        element("span", "names somebody", class_="signal") if signals.named else None,
    ]


def _facts(memory: models.MemoryView) -> Node:
    lines = f":{memory.first_line}" if memory.first_line else ""
    rows: dict[str, Node] = {
        "Namespace": memory.namespace,
        "Status": memory.status,
        "Tags": ", ".join(memory.tags),
        "Captured": _day(memory.created_at),
        "Changed": _day(memory.updated_at) if memory.version > 1 else "",
        "By": " through ".join(filter(None, (memory.user_id, memory.agent_id))),
        "Branch": memory.git_branch or "",
        "Source": memory.source or "",
        "File": f"{memory.path}{lines}" if memory.path else "",
        "Superseded by": memory.superseded_by or "",
        "Id": memory.id,
    }
    shown = [(element("dt", name), element("dd", value)) for name, value in rows.items() if value]
    return element("dl", *shown, class_="details")


def _day(moment: datetime) -> Node:
    return element("time", f"{moment:%Y-%m-%d %H:%M}", datetime=moment.isoformat())


def _counted(number: int, one: str, more: str) -> str:
    return f"{number:,} {one if number == 1 else more}"
