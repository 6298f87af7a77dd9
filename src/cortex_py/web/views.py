"""The page as HTML: the frame of every view, and search and memory in full for browsers without JavaScript."""

from __future__ import annotations

from datetime import datetime
from urllib.parse import quote, urlencode

from ..version import __version__
from .assets import static_version
from .html import Node, document, element
from .models import MemoryView, SearchResult, SearchResults

__all__ = ["NAVIGATION", "memory_page", "plain_page", "search_page", "sign_in_page"]

# Views by path: the name in the navigation, and what the view shows.
NAVIGATION: dict[str, tuple[str, str]] = {
    "/": ("Search", "Everything that is remembered here."),
    "/review": ("Review", "Memories that wait until you accept or drop them."),
    "/check": ("Check", "Paste an answer. Each claim in it is compared with the project and its history."),
    "/lines": ("Lines of work", "Where each line of work stands, as an agent gets it."),
    "/next": ("Next session", "Exactly what the hooks give to the next session in this project."),
    "/doctor": ("Health", "Whether all is well, and what leaves this machine."),
}


def search_page(csrf: str, project: str, query: str, found: SearchResults | None, error: str = "") -> str:
    count = "" if found is None else _counted(found.total, "memory", "memories")
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
    return _frame("Search", "/", project, csrf, body)


def memory_page(csrf: str, project: str, memory: MemoryView) -> str:
    body = element(
        "article",
        element("pre", memory.content, class_="plain"),
        _facts(memory),
        class_="memory",
    )
    return _frame("Memory", "", project, csrf, element("h1", "Memory", class_="quiet"), body)


def plain_page(csrf: str, project: str, path: str) -> str:
    """The frame of a view that needs JavaScript."""
    title, about = NAVIGATION[path]
    note = element("noscript", element("p", "This view needs JavaScript. Search and memories can be read without it."))
    return _frame(title, path, project, csrf, element("h1", title), element("p", about, class_="hint"), note)


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


def _frame(title: str, path: str, project: str, csrf: str, *main: Node) -> str:
    links = [
        element("a", name, href=place, aria_current="page" if place == path else None)
        for place, (name, _) in NAVIGATION.items()
    ]
    return document(
        _head(title, csrf),
        element(
            "body",
            element("a", "Skip to the content", class_="skip", href="#main"),
            element(
                "header",
                element("a", "Cortex", class_="name", href="/"),
                element("span", project, class_="project"),
                element("nav", *links, aria_label="Views"),
                class_="top",
            ),
            element("main", *main, id="main", tabindex="-1"),
            element("div", id="notices", role="status", aria_live="polite"),
            element("footer", element("span", f"Cortex {__version__}"), element("span", id="keys")),
        ),
    )


def _head(title: str, csrf: str = "") -> Node:
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
        element("script", src=f"{files}/app.js", type="module") if csrf else None,
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


def _result(one: SearchResult, query: str) -> Node:
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
            element("span", f"{one.score:.0%}", class_="score") if one.score else None,
            class_="facts",
        ),
    )


def _facts(memory: MemoryView) -> Node:
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
