"""An agent that remembers, with OpenAI's SDK: two functions of the library are its tools, `remember` and `recall`.
Set OPENAI_API_KEY and run it twice: `agent_with_tools.py "We deploy on Tuesdays."`, then `"When do we deploy?"`."""

from __future__ import annotations

import json
import os
import sys
from typing import Any

from openai import OpenAI
from openai.types.chat import ChatCompletionFunctionToolParam, ChatCompletionMessageFunctionToolCall

from cortex_py import Cortex, CortexError

MODEL = os.environ.get("OPENAI_MODEL", "gpt-5-mini")
MOST_TURNS = 20
SYSTEM = "You have a memory of this project. Recall before you answer; remember what will still matter next week."


def tool(name: str, description: str, argument: str) -> ChatCompletionFunctionToolParam:
    """A function with one text as its argument, as the API wants it described."""
    parameters: dict[str, object] = {
        "type": "object",
        "properties": {argument: {"type": "string"}},
        "required": [argument],
    }
    return {"type": "function", "function": {"name": name, "description": description, "parameters": parameters}}


TOOLS = [
    tool("remember", "Keep one fact, decision or preference for later conversations.", "text"),
    tool("recall", "Search what earlier conversations kept.", "question"),
]


def converse(client: OpenAI, cortex: Cortex, prompt: str) -> str:
    """Let the model use its tools until it has an answer."""
    messages: list[Any] = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": prompt}]
    for _ in range(MOST_TURNS):
        reply = client.chat.completions.create(model=MODEL, messages=messages, tools=TOOLS).choices[0].message
        if not reply.tool_calls:
            return reply.content or ""
        messages.append(reply)
        for call in reply.tool_calls:
            assert isinstance(call, ChatCompletionMessageFunctionToolCall)
            answer = carry_out(cortex, call.function.name, call.function.arguments)
            messages.append({"role": "tool", "tool_call_id": call.id, "content": answer})
    raise SystemExit(f"The model has no answer after {MOST_TURNS} turns.")


def carry_out(cortex: Cortex, name: str, arguments: str) -> str:
    """One call of a tool. A mistake of the model goes back to it, so that it can try again."""
    try:
        given = json.loads(arguments)
        if name == "remember":
            return f"Kept as {cortex.memories.capture(given['text']).id[:12]}."
        hits = cortex.memories.recall(given["question"], limit=5).results
    except (CortexError, KeyError, TypeError, ValueError) as error:
        return f"This did not work: {error}"
    return "\n".join(f"{hit.score:.2f} {hit.snippet}" for hit in hits) or "Nothing is known about it."


if __name__ == "__main__":
    prompt = " ".join(sys.argv[1:]) or sys.exit(__doc__)
    # The client takes the key and, where it is set, OPENAI_BASE_URL from the environment.
    with OpenAI() as client, Cortex.open(project=".") as cortex:
        print(converse(client, cortex, prompt))
