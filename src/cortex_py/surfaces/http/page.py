"""The page that people look at: its views as HTML, its files, and the operations behind them."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from ...core.clock import Limit, apply_limit
from ...core.echo import clean_text
from ...core.errors import AccessDenied, AmbiguousId, Conflict, CortexError, InvalidInput, NotFound
from ...core.memory.recall.filters import split_query
from ...core.security.callers import current_caller
from ..web import models, project_models, views
from ..web.assets import find_asset, static_version
from ..web.html import Node
from ..web.models import text_parts, word_difference
from .access import API, STATIC_PATH, page_scope
from .api import NoInput, Operations, api_routes, may_change
from .insight import INSIGHT, show_health, show_line, show_lines, show_next_session
from .project_views import PROJECT_VIEWS, show_days, show_graph, show_window
from .sessions import SESSION_KEY, html_response

if TYPE_CHECKING:
    from ...app import Cortex
    from ...core.records import Page

__all__ = ["OPERATIONS", "page_routes"]

_LONGEST_ID = 200
_WHOLE_ID = 16
_PLAIN_DAYS = 7
# A result with this score is said to fit the query. docs/explain/recall.md has how often that is so.
_FITTING = 0.3
_MOST_COUNTED = 100
_FOR_GOOD = "public, max-age=31536000, immutable"


# -- operations ------------------------------------------------------------------------------------

OPERATIONS = Operations()


@OPERATIONS.add("GET", "/search", "search", "Memories that match, best first")
def _search(cortex: Cortex, _id: str, asked: models.SearchQuery) -> models.SearchResults:
    words, filter = split_query(asked.q)
    memories = cortex.memories
    if words:
        page = _look_up(cortex, words, filter, asked.offset)
        found = "" if asked.offset else _found_text(page)
    else:
        page = memories.recall(None, filter=filter, limit=asked.limit, offset=asked.offset)
        found = f"{page.total:,} {'memory' if page.total == 1 else 'memories'}"
    hits = page.results[: asked.limit]
    results = [models.SearchResult.of(hit, memories.marks(words, hit.snippet)) for hit in hits]
    return models.SearchResults(total=page.total, found=found, results=results, warnings=list(page.warnings))


def _look_up(cortex: Cortex, words: str, filter: str, offset: int = 0) -> Page:
    """The best memories for some words. Looking at the page is not a use of them: it does not count as a recall."""
    return cortex.memories.look_up(words, filter=filter, limit=_MOST_COUNTED, offset=offset)


def _fitting(page: Page) -> list[str]:
    return [hit.memory.id for hit in page.results if hit.score >= _FITTING]


def _found_text(page: Page) -> str:
    count = len(_fitting(page))
    if count == _MOST_COUNTED:
        return f"{count} memories fit, or more"
    if not count:
        return "Nothing fits. The nearest memories:" if page.total else "Nothing fits."
    rest = ", weaker ones follow" if page.total > count else ""
    return f"{count} {'memory fits' if count == 1 else 'memories fit'}{rest}"


@OPERATIONS.add("GET", "/facets", "facets", "What the matching memories have in common")
def _facets(cortex: Cortex, _id: str, asked: models.FacetsQuery) -> models.Facets:
    words, filter = split_query(asked.q)
    among = _fitting(_look_up(cortex, words, filter)) if words else None
    found = cortex.memories.facets(filter, among=among)
    facets = {key: [models.Facet(value=value, count=count) for value, count in values] for key, values in found.items()}
    return models.Facets(facets=facets)


@OPERATIONS.add("GET", "/memories/{id}", "memory", "A memory with its links")
def _memory(cortex: Cortex, id: str, asked: models.MemoryQuery) -> models.MemoryPage:
    memories = cortex.memories
    memory = memories.get(id)
    words = split_query(asked.q)[0]
    contradicting = memories.visible([one.memory_id for one in memories.conflicts(memory.id)])
    entities = [
        models.EntityLink(name=one.name, type=one.type, mentions=one.mention_count)
        for one in cortex.graph.named_in(memory.id)
    ]
    return models.MemoryPage(
        memory=models.MemoryView.of(memory),
        text=text_parts(memory.content, memories.marks(words, memory.content)),
        chain=[models.Brief.of(one) for one in memories.chain(memory.id)],
        conflicts=[models.Brief.of(one) for one in contradicting.values()],
        entities=entities,
        uses=_uses(cortex, memory.id),
        check=_checked(memories.verification(memory.id)),
        may_change=may_change(cortex),
    )


def _uses(cortex: Cortex, id: str) -> models.UsesView:
    recalled, given = cortex.memories.uses(id), cortex.hooks.given(id)
    return models.UsesView(
        recalls=recalled.recalls,
        last_recalled_at=recalled.last_recalled_at,
        sessions=given.sessions,
        last_given_at=given.last_at,
    )


def _checked(result: str | None) -> models.CheckedMemory | None:
    """The stored result of a check; None where there is none, or an earlier version stored it in another form."""
    if result is None:
        return None
    try:
        found = json.loads(result)
        claims = [
            models.VerifiedClaim(text=one["claim"], verdict=one["verdict"], evidence=one["evidence"])
            for one in found["claims"]
        ]
        return models.CheckedMemory(score=found["grounding_score"], status=found["status"], claims=claims)
    except (ValueError, LookupError, TypeError):
        return None


@OPERATIONS.add("GET", "/memories/{id}/history", "history", "All versions of a memory")
def _history(cortex: Cortex, id: str, _: NoInput) -> models.History:
    return models.History.of(cortex.memories.history(id))


@OPERATIONS.add("PATCH", "/memories/{id}", "changeMemory", "Change a memory", changes=True)
def _change(cortex: Cortex, id: str, given: models.MemoryChange) -> models.MemoryView:
    fields = given.model_dump(exclude={"version"}, exclude_none=True)
    return models.MemoryView.of(cortex.memories.update(id, **fields, expected_version=given.version))


@OPERATIONS.add("DELETE", "/memories/{id}", "deleteMemory", "Delete a memory", changes=True)
def _delete(cortex: Cortex, id: str, _: NoInput) -> models.Deleted:
    return models.Deleted(id=cortex.memories.delete(id).id)


@OPERATIONS.add("POST", "/memories/{id}/restore", "restoreMemory", "Undo a deletion", changes=True)
def _restore(cortex: Cortex, id: str, _: NoInput) -> models.MemoryView:
    return models.MemoryView.of(cortex.memories.restore(id))


@OPERATIONS.add("POST", "/memories/{id}/purge", "purgeMemory", "Delete for good", changes=True)
def _purge(cortex: Cortex, id: str, given: models.MemoryPurge) -> models.Deleted:
    # A prefix may have come to name another memory: only the whole id confirms.
    if given.confirm != id or len(id) < _WHOLE_ID:
        raise InvalidInput("The purge is not confirmed.", remedy="Repeat the whole id in confirm.", field="confirm")
    return models.Deleted(id=cortex.memories.delete(id, hard=True).id)


@OPERATIONS.add("POST", "/review", "review", "Decide on staged memories", changes=True)
def _review(cortex: Cortex, _id: str, given: models.ReviewDecision) -> models.ReviewOutcome:
    done: list[str] = []
    failed: dict[str, str] = {}
    memories = cortex.memories
    for id in dict.fromkeys(given.ids):
        try:
            status = memories.get(id).status
            if status != ("active" if given.action == "stage" else "pending"):
                raise InvalidInput(f"Its status is {status}.", field="ids")
            if given.action == "drop":
                memories.delete(id)
            else:
                memories.update(id, status="active" if given.action == "accept" else "pending")
            done.append(id)
        except (NotFound, InvalidInput, AmbiguousId, AccessDenied) as error:
            failed[clean_text(id, _LONGEST_ID)] = str(error)
    return models.ReviewOutcome(done=done, failed=failed)


@OPERATIONS.add("POST", "/memories/{id}/supersede", "supersedeMemory", "Replace a memory by another one", changes=True)
def _supersede(cortex: Cortex, id: str, given: project_models.Supersession) -> models.MemoryView:
    return models.MemoryView.of(cortex.memories.supersede(id, given.by))


@OPERATIONS.add("GET", "/review/{id}", "compare", "What repeats or contradicts a memory")
def _compare(cortex: Cortex, id: str, _: NoInput) -> project_models.Comparison:
    memory = cortex.memories.get(id)
    found = [
        project_models.CounterpartView.from_record(
            one,
            memory=models.MemoryView.of(one.memory),
            difference=word_difference(one.memory.content, memory.content),
            merged_difference=word_difference(one.memory.content, one.merged) if one.merged else [],
        )
        for one in cortex.memories.counterparts(memory.id)
    ]
    return project_models.Comparison(memory=models.MemoryView.of(memory), counterparts=found)


@OPERATIONS.add("POST", "/review/{id}/merge", "mergeMemory", "Merge a staged memory into another one", changes=True)
def _merge(cortex: Cortex, id: str, given: project_models.MergeRequest) -> models.MemoryView:
    memories = cortex.memories
    staged, kept = memories.get(id), memories.get(given.into)
    if given.version is not None and kept.version != given.version:
        raise Conflict(
            f"The memory {kept.id[:12]} has version {kept.version} by now.",
            remedy="Compare them again.",
            field="version",
        )
    memories.supersede(staged.id, kept.id)
    try:
        return models.MemoryView.of(memories.update(kept.id, content=given.content, expected_version=kept.version))
    except CortexError:
        memories.update(staged.id, status=staged.status)
        raise


OPERATIONS += [*PROJECT_VIEWS, *INSIGHT]


# -- views -----------------------------------------------------------------------------------------


def page_routes(cortex: Cortex) -> list[Route]:
    """The views, their files, and `/api/v1`."""

    def view(render: Callable[[Request, views.PageFrame], str]) -> Callable[[Request], Awaitable[Response]]:
        async def answer(request: Request) -> Response:
            session = request.scope.get(SESSION_KEY)
            frame = views.PageFrame(session.csrf if session else "", "", may_change(cortex))
            try:
                frame = replace(frame, project=cortex.project.name)
                text = await run_in_threadpool(render, request, frame)
            except CortexError as error:
                return html_response(views.error_page(frame, request.url.path, str(error)), 404)
            return html_response(text)

        return answer

    def search(request: Request, frame: views.PageFrame) -> str:
        query = request.query_params.get("q", "")
        try:
            return views.search_page(frame, query, _search(cortex, "", models.SearchQuery(q=query[:10_000])))
        except InvalidInput as error:
            return views.search_page(frame, query, None, str(error))

    def memory(request: Request, frame: views.PageFrame) -> str:
        return views.memory_page(
            frame, models.MemoryView.of(cortex.memories.get(request.path_params["id"][:_LONGEST_ID]))
        )

    def other(request: Request, frame: views.PageFrame) -> str:
        path = request.url.path
        content = None
        if "plain" in request.query_params and path in _PLAIN:
            if page_scope(f"{API}{path}") == "admin" and not _is_admin():
                raise AccessDenied("This view needs the scope admin.")
            with apply_limit(Limit(cortex.settings.call_seconds)):
                content = _PLAIN[path](cortex)
        return views.plain_page(frame, path, content)

    routes = [Route(path, view(search if path == "/" else other), methods=["GET"]) for path in views.NAVIGATION]
    routes.append(Route("/memories/{id}", view(memory), methods=["GET"]))
    routes.append(Route(STATIC_PATH, _static, methods=["GET"]))
    return [*routes, *api_routes(cortex, OPERATIONS)]


def _is_admin() -> bool:
    caller = current_caller()
    return caller is None or "admin" in caller.scopes


def _plain_timeline(cortex: Cortex) -> Node:
    days = show_days(cortex, "", project_models.TimelineQuery())
    newest = [one.day.isoformat() for one in days.days[:_PLAIN_DAYS]]
    return views.timeline_text(
        days, [(day, show_window(cortex, day, project_models.TimelineWindowQuery())) for day in newest]
    )


def _plain_lines(cortex: Cortex) -> Node:
    found = show_lines(cortex, "", NoInput())
    active = next((one.id for one in found.lines if one.active), None)
    return views.lines_text(found.lines, show_line(cortex, active, NoInput()) if active else None)


# What a view shows without JavaScript.
_PLAIN: dict[str, Callable[[Cortex], Node]] = {
    "/timeline": _plain_timeline,
    "/graph": lambda cortex: views.graph_text(show_graph(cortex, "", project_models.GraphQuery(limit=100))),
    "/review": lambda cortex: views.review_text(_search(cortex, "", models.SearchQuery(q="status:pending", limit=100))),
    "/lines": _plain_lines,
    "/next": lambda cortex: views.next_text(show_next_session(cortex, "", models.NextSessionQuery())),
    "/doctor": lambda cortex: views.health_text(show_health(cortex, "", NoInput())),
}


async def _static(request: Request) -> Response:
    name = request.path_params["name"]
    asset = find_asset(name)
    if asset is None:
        return Response("There is no such file.", 404, media_type="text/plain")
    if request.path_params["version"] != static_version():
        return RedirectResponse(f"/static/{static_version()}/{name}", 307)
    headers = {"Cache-Control": _FOR_GOOD, "Vary": "Accept-Encoding", "X-Content-Type-Options": "nosniff"}
    if "gzip" in request.headers.get("accept-encoding", ""):
        return Response(asset.packed, headers={**headers, "Content-Encoding": "gzip"}, media_type=asset.kind)
    return Response(asset.plain, headers=headers, media_type=asset.kind)
