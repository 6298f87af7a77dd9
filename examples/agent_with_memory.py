"""An agent that remembers: the memory tool of Claude's API, answered by Cortex instead of a folder of files.
Set ANTHROPIC_API_KEY and run it twice: `agent_with_memory.py "We deploy on Tuesdays."`, then `"When do we deploy?"`."""

from __future__ import annotations

import os
import sys

from anthropic import Anthropic
from anthropic.types import MessageParam, ToolResultBlockParam, ToolUseBlock

from cortex_py import Cortex, CortexError
from cortex_py.parts.backup.bridges.memory_tool import MemoryTool

MODEL = os.environ.get("ANTHROPIC_MODEL", "claude-sonnet-5")
MOST_TURNS = 20


def converse(client: Anthropic, memory: MemoryTool, prompt: str) -> str:
    """Let the model read and write its memory until it has an answer."""
    messages: list[MessageParam] = [{"role": "user", "content": prompt}]
    for _ in range(MOST_TURNS):
        reply = client.messages.create(
            model=MODEL, max_tokens=4_000, tools=[{"type": "memory_20250818", "name": "memory"}], messages=messages
        )
        calls = [block for block in reply.content if block.type == "tool_use"]
        if not calls:
            return "".join(block.text for block in reply.content if block.type == "text")
        messages.append({"role": "assistant", "content": reply.content})
        messages.append({"role": "user", "content": [carry_out(memory, call) for call in calls]})
    raise SystemExit(f"The model has no answer after {MOST_TURNS} turns.")


def carry_out(memory: MemoryTool, call: ToolUseBlock) -> ToolResultBlockParam:
    """One call of the tool. A mistake of the model goes back to it, so that it can try again."""
    try:
        answer, failed = memory.call(call.input), False
    except CortexError as error:
        answer, failed = str(error), True
    print(f"  memory: {call.input.get('command')} {call.input.get('path', '')}", file=sys.stderr)
    return {"type": "tool_result", "tool_use_id": call.id, "content": answer, "is_error": failed}


if __name__ == "__main__":
    prompt = " ".join(sys.argv[1:]) or sys.exit(__doc__)
    # The client takes the key and, where it is set, ANTHROPIC_BASE_URL from the environment.
    with Anthropic() as client, Cortex.open(project=".") as cortex:
        print(converse(client, MemoryTool(cortex.memories), prompt))
