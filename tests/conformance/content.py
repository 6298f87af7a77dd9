"""Fixtures that only answer: every kind of content, as the suite names it."""

from __future__ import annotations

import asyncio
import base64
import json
from typing import Annotated, Any

from fastmcp import Context
from fastmcp.prompts import Message
from fastmcp.tools import Tool, ToolResult
from mcp_types import AudioContent, EmbeddedResource, ImageContent, TextContent, TextResourceContents
from pydantic import Field

__all__ = ["PROMPTS", "RESOURCES", "TEMPLATES", "TOOLS", "schema_tool"]

# The smallest there are: one pixel, and a sound of no length.
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="
WAV = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA="

STEP_SECONDS = 0.05


def test_simple_text() -> ToolResult:
    """A line of text."""
    return ToolResult(content="This is a simple text response for testing.")


def test_image_content() -> ToolResult:
    """An image."""
    return ToolResult(content=[_image()])


def test_audio_content() -> ToolResult:
    """A sound."""
    return ToolResult(content=[AudioContent(data=WAV, mime_type="audio/wav")])


def test_embedded_resource() -> ToolResult:
    """A resource within an answer."""
    return ToolResult(content=[_embedded("test://embedded-resource", "This is an embedded resource content.")])


def test_multiple_content_types() -> ToolResult:
    """Text, an image and a resource in one answer."""
    resource = _embedded("test://mixed-content-resource", '{"test":"data","value":123}', "application/json")
    return ToolResult(content=[TextContent(text="Multiple content types test:"), _image(), resource])


def test_error_handling() -> ToolResult:
    """An answer that says it is an error."""
    return ToolResult(content="This tool intentionally returns an error for testing", is_error=True)


async def test_tool_with_logging(context: Context) -> ToolResult:
    """Three lines of log while it runs."""
    for line in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        await context.info(line)
        await asyncio.sleep(STEP_SECONDS)
    return ToolResult(content="Logged three lines.")


async def test_tool_with_progress(context: Context) -> ToolResult:
    """Progress while it runs, to whoever asked for it."""
    for done in (0, 50, 100):
        await context.report_progress(done, 100)
        await asyncio.sleep(STEP_SECONDS)
    return ToolResult(content="Reported progress.")


def test_header_parameter(
    region: Annotated[str, Field(json_schema_extra={"x-mcp-header": "Region"})],
) -> ToolResult:
    """An argument that clients repeat in a header."""
    return ToolResult(content=f"Region: {region}")


TOOLS = (
    test_simple_text,
    test_image_content,
    test_audio_content,
    test_embedded_resource,
    test_multiple_content_types,
    test_error_handling,
    test_tool_with_logging,
    test_tool_with_progress,
    test_header_parameter,
)

WIDE_SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}


def schema_tool() -> Tool:
    """A tool whose schema uses what JSON Schema 2020-12 added."""

    def answer(name: str = "") -> ToolResult:
        return ToolResult(content=f"Name: {name}")

    tool = Tool.from_function(answer, name="json_schema_2020_12_tool", description="A wide schema.")
    tool.parameters = WIDE_SCHEMA
    return tool


def static_text() -> str:
    """Text that stays."""
    return "This is the content of the static text resource."


def static_binary() -> bytes:
    """Bytes that stay."""
    return base64.b64decode(PNG)


def template_data(id: str) -> str:
    """Whatever is asked for."""
    return json.dumps({"id": id, "templateTest": True, "data": f"Data for ID: {id}"})


RESOURCES = (
    ("test://static-text", static_text, "text/plain"),
    ("test://static-binary", static_binary, "image/png"),
)
TEMPLATES = (("test://template/{id}/data", template_data, "application/json"),)


def test_simple_prompt() -> str:
    """One message."""
    return "This is a simple prompt for testing."


def test_prompt_with_arguments(arg1: str, arg2: str) -> str:
    """One message with two arguments in it."""
    return f"Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"


def test_prompt_with_embedded_resource(resourceUri: str) -> list[Message]:  # noqa: N803
    """A resource, and what to do with it."""
    resource = _embedded(resourceUri, "Embedded resource content for testing.")
    return [Message(resource), Message("Please process the embedded resource above.")]


def test_prompt_with_image() -> list[Message]:
    """An image, and what to do with it."""
    return [Message(_image()), Message("Please analyze the image above.")]


PROMPTS = (
    test_simple_prompt,
    test_prompt_with_arguments,
    test_prompt_with_embedded_resource,
    test_prompt_with_image,
)


def _image() -> ImageContent:
    return ImageContent(data=PNG, mime_type="image/png")


def _embedded(uri: str, text: str, mime_type: str = "text/plain") -> EmbeddedResource:
    return EmbeddedResource(resource=TextResourceContents(uri=uri, mime_type=mime_type, text=text))
