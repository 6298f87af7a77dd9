"""Plain HTTP beside the protocol: `/health`, `/health/live`, `/health/ready` and `/status`, as JSON."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from ..errors import CortexError
from ..version import __version__

if TYPE_CHECKING:
    from ..app import Cortex
    from .readiness import Readiness

__all__ = ["health_routes"]

Page = Callable[[], dict[str, Any]]


def health_routes(cortex: Cortex, readiness: Readiness) -> list[Route]:
    """What an operator or a probe asks. Nothing here loads the model."""
    pages: dict[str, Page] = {
        "/health": lambda: _health(cortex),
        "/status": lambda: asdict(cortex.memories.status()),
    }
    routes = [Route(path, _endpoint(page), methods=["GET"]) for path, page in pages.items()]
    routes.append(Route("/health/live", _live, methods=["GET"]))
    routes.append(Route("/health/ready", readiness.page, methods=["GET"]))
    return routes


async def _live(_: Request) -> Response:
    """Answered at once, without a thread: those may all be waiting for the database."""
    return JSONResponse({"status": "live"})


def _health(cortex: Cortex) -> dict[str, Any]:
    """What is true now."""
    model = cortex.backend
    return {
        "status": "healthy",
        "version": __version__,
        "project_id": cortex.project.id,
        "model": {"name": model.model_name, "loaded": model.loaded},
    }


def _endpoint(page: Page) -> Callable[[Request], Awaitable[Response]]:
    async def answer(_: Request) -> Response:
        try:
            return JSONResponse(await run_in_threadpool(page))
        except CortexError as error:
            body = {"error": {"code": type(error).__name__, "message": str(error)}}
            return JSONResponse(body, status_code=503)

    return answer
