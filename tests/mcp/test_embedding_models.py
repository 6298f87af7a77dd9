"""The embedding tools by themselves: the published examples run, and every answer has the published form."""

from __future__ import annotations

import ast
import asyncio
import json
import platform
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, get_args

import pytest
from pydantic import BaseModel, ValidationError

from cases import each
from cortex_py.core.embedding.backends.onnx import OnnxBackend
from cortex_py.core.embedding.service import EmbeddingService
from cortex_py.core.errors import WIRE_FORMS
from cortex_py.mcp import models
from cortex_py.surfaces.mcp.families.embedding import CortexPyMCPTools
from timing import MINUTE

from helpers import FakeClock

# As published, to the letter.
FIRST_EXAMPLE = """
from cortex_py.surfaces.mcp.server import create_mcp_server

server = create_mcp_server()
# register server with FastMCP CLI or ChatGPT MCP client
"""
SECOND_EXAMPLE = """
from cortex_py.mcp.tools import CortexPyMCPTools
from cortex_py.services import EmbeddingService

service = EmbeddingService(generator=my_generator)
tools = CortexPyMCPTools(service)
result = await tools.embedding_generate(text="hello world")
"""
TOOLS = {"embedding.generate", "embedding.batch", "model.info", "health.status"}

Tools = Callable[..., CortexPyMCPTools]


def my_generator(text: str) -> list[float]:
    return [3.0, 4.0]


@pytest.fixture
def tools_over(clock: FakeClock) -> Iterator[Tools]:
    services: list[EmbeddingService] = []

    def make(generator: Any = my_generator, **options: Any) -> CortexPyMCPTools:
        services.append(EmbeddingService(generator, clock=clock, **options))
        return CortexPyMCPTools(services[-1])

    yield make
    for service in services:
        service.close()


async def _executed(code: str, names: dict[str, Any]) -> dict[str, Any]:
    """Run code that awaits at its top, as in a notebook."""
    compiled = compile(code, "<example>", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    waiting = eval(compiled, names)
    if waiting is not None:
        await waiting
    return names


# The published examples


def test_the_first_published_example_makes_a_server_with_the_tools() -> None:
    async def listed() -> set[str]:
        from fastmcp import Client

        names = await _executed(FIRST_EXAMPLE, {})
        async with Client(names["server"]) as client:
            return {tool.name for tool in await client.list_tools()}

    assert asyncio.run(listed()) >= TOOLS


def test_the_second_published_example_gives_an_embedding() -> None:
    names = asyncio.run(_executed(SECOND_EXAMPLE, {"my_generator": my_generator}))
    with names["service"]:
        assert names["result"].embedding == pytest.approx([0.6, 0.8])
        assert names["result"]["metadata"]["source"] == "generator"


# Answers


def test_generate_answers_as_published(tools_over: Tools) -> None:
    tools = tools_over()
    answer = asyncio.run(tools.embedding_generate(text="hello world", normalize=False))
    assert answer.payload() == {
        "embedding": [3.0, 4.0],
        "metadata": {
            "model_name": "my_generator",
            "dimensions": 2,
            "backend": "generator",
            "cached": False,
            "source": "generator",
            "generated_at": "2026-01-02T12:34:56Z",
            "cache_metrics": {"cache_hits": 0, "cache_misses": 1, "rate_limited": 0},
            "tokens": 3,
            "truncated": False,
        },
    }
    again = asyncio.run(tools.embedding_generate("hello world", normalize=False)).payload()
    assert again["embedding"] == [3.0, 4.0]
    assert (again["metadata"]["cached"], again["metadata"]["source"]) == (True, "cache")
    assert again["metadata"]["cache_metrics"] == {"cache_hits": 1, "cache_misses": 1, "rate_limited": 0}


def test_generate_normalises_unless_told_otherwise(tools_over: Tools) -> None:
    answer = asyncio.run(tools_over().embedding_generate("x"))
    assert answer["embedding"] == pytest.approx([0.6, 0.8])


def test_batch_answers_as_published(tools_over: Tools) -> None:
    tools = tools_over(lambda text: [float(len(text)), 0.0])
    asyncio.run(tools.embedding_batch(["aa"], normalize=False))
    answer = asyncio.run(tools.embedding_batch(texts=["a", "aa", "a", "aaa"], normalize=False)).payload()
    assert answer["embeddings"] == [[1, 0], [2, 0], [1, 0], [3, 0]]
    assert answer["metadata"] == {
        "model_name": "<lambda>",
        "dimensions": 2,
        "backend": "generator",
        "cached": False,
        "source": "mixed",
        "generated_at": "2026-01-02T12:34:56Z",
        "cache_metrics": {"cache_hits": 1, "cache_misses": 3, "rate_limited": 0},
        "count": 4,
        "cached_hits": 1,
        "tokens": 4,
        "truncated": False,
    }


def test_info_answers_as_published(tools_over: Tools) -> None:
    tools = tools_over()
    asyncio.run(tools.embedding_generate("x"))
    answer = asyncio.run(tools.model_info()).payload()
    fingerprint = answer["extras"].pop("fingerprint")
    assert fingerprint.startswith("generator:")
    assert isinstance(answer["extras"].pop("sentence_transformers_available"), bool)
    assert answer["extras"].pop("onnx_available") is True
    assert {key: answer[key] for key in answer if key != "extras"} == {
        "model_name": "my_generator",
        "dimensions": 2,
        "backend": "generator",
        "model_loaded": True,
    }


def test_health_answers_as_published(tools_over: Tools) -> None:
    tools = tools_over()
    asyncio.run(tools.embedding_batch(["x", "y", "x"]))
    asyncio.run(tools.embedding_generate("x"))
    answer = asyncio.run(tools.health_status()).payload()
    assert {"onnx", "mlx", "sentence_transformers"} <= set(answer.pop("backends_available"))
    assert answer == {
        "status": "healthy",
        "platform": platform.system(),
        "rate_limit": 120,
        "cache_size": 2,
        "metrics": {"cache_hits": 1, "cache_misses": 2, "rate_limited": 0},
    }


def test_without_its_model_the_service_is_unhealthy_and_says_why(tools_over: Tools, tmp_path: Path) -> None:
    tools = tools_over(OnnxBackend(tmp_path / "none"))
    health = asyncio.run(tools.health_status())
    assert isinstance(health, models.HealthStatusResponse)
    assert health.status == "unhealthy"
    assert health.problem is not None
    assert "install Cortex again" in health.problem
    assert asyncio.run(tools.model_info())["model_loaded"] is False
    answer = asyncio.run(tools.embedding_generate("x"))
    assert answer["code"] == "INTERNAL_ERROR"
    assert answer["details"]["remedy"] == "It comes with the package: install Cortex again."


# Errors


def _raise(text: str) -> list[float]:
    raise RuntimeError("out of memory")


@pytest.mark.parametrize(
    ("options", "text", "payload"),
    [
        (
            {},
            " ",
            {
                "code": "VALIDATION_ERROR",
                "message": "text is empty. Give some text.",
                "details": {"error": "InvalidInput", "field": "text", "remedy": "Give some text."},
            },
        ),
        (
            {"max_text_length": 3},
            "long",
            {
                "code": "TEXT_TOO_LONG",
                "message": "text has 4 characters; at most 3 are taken. Cut it into parts and embed each.",
                "details": {
                    "error": "ContentTooLarge",
                    "field": "text",
                    "remedy": "Cut it into parts and embed each.",
                },
            },
        ),
        (
            {"profile": "strict"},
            "../x",
            {
                "code": "SECURITY_VIOLATION",
                "message": "text holds a path that climbs out of its folder, which the profile 'strict' refuses. "
                "Remove it, or use the profile 'code'.",
                "details": {
                    "error": "ContentBlocked",
                    "field": "text",
                    "remedy": "Remove it, or use the profile 'code'.",
                    "kinds": ["a path that climbs out of its folder"],
                },
            },
        ),
        (
            {"generator": _raise},
            "x",
            {
                "code": "INTERNAL_ERROR",
                "message": "The model failed: RuntimeError: out of memory",
                "details": {"error": "EmbeddingError"},
            },
        ),
    ],
    ids=["VALIDATION_ERROR", "TEXT_TOO_LONG", "SECURITY_VIOLATION", "INTERNAL_ERROR"],
)
def test_an_error_is_an_answer_with_its_code(
    tools_over: Tools, options: dict[str, Any], text: str, payload: dict[str, Any]
) -> None:
    tools = tools_over(**options)
    answer = asyncio.run(tools.embedding_generate(text))
    assert isinstance(answer, models.ToolErrorResponse)
    assert answer.payload() == payload
    many = asyncio.run(tools.embedding_batch([text]))
    assert isinstance(many, models.ToolErrorResponse)
    assert many.code == payload["code"]


def test_a_refused_caller_is_told_when_to_come_back(tools_over: Tools) -> None:
    tools = tools_over(rate_limit=1)
    asyncio.run(tools.embedding_generate("a"))
    answer = asyncio.run(tools.embedding_generate("b"))
    assert isinstance(answer, models.ToolErrorResponse)
    assert answer.code == "RATE_LIMITED"
    assert answer.details is not None
    assert 0 < answer.details["retry_after"] <= 60
    assert asyncio.run(tools.health_status())["metrics"]["rate_limited"] == 1
    # What is in the cache is still given.
    assert asyncio.run(tools.embedding_generate("a"))["metadata"]["cached"] is True


def test_every_caller_is_limited_alone() -> None:
    callers = iter(["one", "two", "one"])
    with EmbeddingService(my_generator, rate_limit=1) as service:
        tools = CortexPyMCPTools(service, caller=lambda: next(callers))
        answers = [asyncio.run(tools.embedding_generate(text)) for text in "abc"]
    assert [getattr(answer, "code", "fine") for answer in answers] == ["fine", "fine", "RATE_LIMITED"]


def test_a_cancelled_call_raises_and_is_no_answer(tools_over: Tools) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def slow(text: str) -> list[float]:
        begun.set()
        assert go_on.wait(MINUTE)
        return [1.0]

    tools = tools_over(slow)

    async def work() -> None:
        task = asyncio.create_task(tools.embedding_generate("x"))
        assert await asyncio.to_thread(begun.wait, 20)
        task.cancel()
        await task

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(work())
    go_on.set()
    assert asyncio.run(tools.health_status())["metrics"]["cache_misses"] == 0


# Models


def test_every_error_of_cortex_has_one_of_the_published_codes() -> None:
    published = set(get_args(models.ErrorCode))
    assert published == {"VALIDATION_ERROR", "TEXT_TOO_LONG", "SECURITY_VIOLATION", "RATE_LIMITED", "INTERNAL_ERROR"}
    assert {form.embedding for _, form in WIRE_FORMS} == published


@each(
    ("model", "given"),
    [
        (models.EmbeddingGenerateInput, {}),
        (models.EmbeddingGenerateInput, {"text": 5}),
        (models.EmbeddingGenerateInput, {"text": None}),
        (models.EmbeddingGenerateInput, {"text": "a", "normalise": True}),
        (models.EmbeddingGenerateInput, {"text": "a", "normalize": "maybe"}),
        (models.EmbeddingBatchInput, {"texts": "a"}),
        (models.EmbeddingBatchInput, {"texts": ["a", 5]}),
        (models.ModelInfoInput, {"verbose": True}),
        (models.HealthStatusInput, {"verbose": True}),
        (models.ToolErrorResponse, {"code": "TEAPOT", "message": "short and stout"}),
    ],
)
def test_what_is_not_published_is_not_taken(model: type[BaseModel], given: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        model.model_validate(given)


def test_normalize_is_true_by_default() -> None:
    assert models.EmbeddingGenerateInput(text="a").normalize is True
    assert models.EmbeddingBatchInput(texts=["a"]).normalize is True


def test_answers_can_be_read_as_mappings_of_their_own_fields_only(tools_over: Tools) -> None:
    answer = asyncio.run(tools_over().embedding_generate("x", normalize=False))
    assert answer["embedding"] == [3.0, 4.0]
    for name in ("payload", "model_config", "nothing", "__class__"):
        with pytest.raises(KeyError):
            answer[name]


def test_a_payload_is_plain_json(tools_over: Tools) -> None:
    tools = tools_over()
    answers = (tools.embedding_generate("x"), tools.embedding_batch(["x"]), tools.model_info(), tools.health_status())
    for answer in answers:
        payload = asyncio.run(answer).payload()
        assert json.loads(json.dumps(payload, allow_nan=False)) == payload
