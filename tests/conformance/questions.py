"""Fixtures that ask the client something before they answer.

In the handshake protocol a tool sends the client a request and waits. In the stateless one it answers with
its questions, and the client calls again with the replies and whatever state the tool gave it.
"""

from __future__ import annotations

from typing import Any

from fastmcp import Context
from fastmcp.tools import ToolResult
from mcp_types import (
    CreateMessageRequest,
    CreateMessageRequestParams,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitResult,
    InputRequiredResult,
    ListRootsRequest,
    SamplingMessage,
    TextContent,
)

__all__ = ["PROMPTS", "TOOLS"]

Answer = ToolResult | InputRequiredResult
Request = ElicitRequest | CreateMessageRequest | ListRootsRequest


async def test_sampling(prompt: str, context: Context) -> ToolResult:
    """Has the client's model answer a prompt."""
    reply = await context.session.create_message(
        messages=[_said(prompt)], max_tokens=100, related_request_id=context.request_id
    )
    return ToolResult(content=f"LLM response: {getattr(reply.content, 'text', '')}")


async def test_elicitation(message: str, context: Context) -> ToolResult:
    """Asks the person for a name and an address."""
    text = {"type": "string"}
    return await _elicit(
        context,
        message,
        {
            "username": {**text, "description": "User's response"},
            "email": {**text, "description": "User's email address"},
        },
        required=["username", "email"],
    )


async def test_elicitation_sep1034_defaults(context: Context) -> ToolResult:
    """Asks with a default for every kind of field."""
    return await _elicit(
        context,
        "Please review the values.",
        {
            "name": {"type": "string", "default": "John Doe"},
            "age": {"type": "integer", "default": 30},
            "score": {"type": "number", "default": 95.5},
            "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
            "verified": {"type": "boolean", "default": True},
        },
    )


async def test_elicitation_sep1330_enums(context: Context) -> ToolResult:
    """Asks for a choice in each of the five ways a schema can offer one."""
    options = ["option1", "option2", "option3"]
    titled = [{"const": f"value{number}", "title": f"Choice {number}"} for number in (1, 2, 3)]
    return await _elicit(
        context,
        "Please choose.",
        {
            "untitledSingle": {"type": "string", "enum": options},
            "titledSingle": {"type": "string", "oneOf": titled},
            "legacyEnum": {
                "type": "string",
                "enum": ["opt1", "opt2", "opt3"],
                "enumNames": ["Option One", "Option Two", "Option Three"],
            },
            "untitledMulti": {"type": "array", "items": {"type": "string", "enum": options}},
            "titledMulti": {"type": "array", "items": {"anyOf": titled}},
        },
    )


def test_input_required_result_elicitation(context: Context) -> Answer:
    """Greets by the name it asks for, and asks again until it has one."""
    reply = (context.input_responses or {}).get("user_name")
    if not isinstance(reply, ElicitResult):
        return _ask(user_name=_form("What is your name?", name="string"))
    return ToolResult(content=f"Hello, {(reply.content or {}).get('name')}!")


def test_input_required_result_sampling(context: Context) -> Answer:
    """Needs the client's model."""
    return _replied(context) or _ask(capital_question=_sample("What is the capital of France?"))


def test_input_required_result_list_roots(context: Context) -> Answer:
    """Needs the client's roots."""
    return _replied(context) or _ask(client_roots=ListRootsRequest())


def test_input_required_result_request_state(context: Context) -> Answer:
    """Wants its own state back beside the reply."""
    if context.input_responses and context.request_state == "kept":
        return ToolResult(content="state-ok")
    return _ask("kept", confirm=_form("Please confirm", ok="boolean"))


def test_input_required_result_tampered_state(context: Context) -> Answer:
    """Gives out state that nobody may alter."""
    return _replied(context) or _ask("sealed", confirm=_form("Please confirm", ok="boolean"))


def test_input_required_result_multiple_inputs(context: Context) -> Answer:
    """Asks for three kinds of input at once."""
    return _replied(context) or _ask(
        "three",
        user_name=_form("What is your name?", name="string"),
        greeting=_sample("Generate a greeting"),
        client_roots=ListRootsRequest(),
    )


def test_input_required_result_multi_round(context: Context) -> Answer:
    """Asks twice, one question after the other."""
    if context.request_state is None:
        return _ask("first", step1=_form("Step 1: What is your name?", name="string"))
    if context.request_state == "first":
        return _ask("second", step2=_form("Step 2: What is your favorite color?", color="string"))
    return ToolResult(content="Both questions are answered.")


def test_input_required_result_capabilities(context: Context) -> Answer:
    """Asks only what the client can answer."""
    able = context.session.client_capabilities
    requests: dict[str, Request] = {}
    if able and able.sampling:
        requests["greeting"] = _sample("Generate a greeting")
    if able and able.elicitation:
        requests["user_name"] = _form("What is your name?", name="string")
    return _replied(context) or _ask(**requests)


def test_streaming_elicitation(context: Context) -> Answer:
    """Asks in its answer, never by a request of its own."""
    return _replied(context) or _ask(user_name=_form("What is your name?", name="string"))


TOOLS = (
    test_sampling,
    test_elicitation,
    test_elicitation_sep1034_defaults,
    test_elicitation_sep1330_enums,
    test_input_required_result_elicitation,
    test_input_required_result_sampling,
    test_input_required_result_list_roots,
    test_input_required_result_request_state,
    test_input_required_result_tampered_state,
    test_input_required_result_multiple_inputs,
    test_input_required_result_multi_round,
    test_input_required_result_capabilities,
    test_streaming_elicitation,
)


def test_input_required_result_prompt(context: Context) -> str | InputRequiredResult:
    """A prompt that asks what it should be about."""
    reply = (context.input_responses or {}).get("user_context")
    if not isinstance(reply, ElicitResult):
        return _ask(user_context=_form("What context should the prompt use?", context="string"))
    return f"Work with this context: {(reply.content or {}).get('context')}"


PROMPTS = (test_input_required_result_prompt,)


async def _elicit(
    context: Context, message: str, properties: dict[str, Any], required: list[str] | None = None
) -> ToolResult:
    schema = {"type": "object", "properties": properties, "required": required or []}
    reply = await context.session.elicit(message, schema, related_request_id=context.request_id)
    return ToolResult(content=f"Elicitation completed: action={reply.action}, content={reply.content}")


def _replied(context: Context) -> ToolResult | None:
    return ToolResult(content="The replies have arrived.") if context.input_responses else None


def _ask(state: str | None = None, **requests: Request) -> InputRequiredResult:
    return InputRequiredResult(input_requests=requests, request_state=state)


def _form(message: str, **fields: str) -> ElicitRequest:
    properties = {name: {"type": kind} for name, kind in fields.items()}
    schema = {"type": "object", "properties": properties, "required": list(fields)}
    return ElicitRequest(params=ElicitRequestFormParams(message=message, requested_schema=schema))


def _sample(prompt: str) -> CreateMessageRequest:
    return CreateMessageRequest(params=CreateMessageRequestParams(messages=[_said(prompt)], max_tokens=100))


def _said(text: str) -> SamplingMessage:
    return SamplingMessage(role="user", content=TextContent(text=text))
