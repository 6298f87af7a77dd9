"""What clients send is read, and what they get is in exactly their form."""

import json
from typing import Any

import jsonschema

from cases import each
from cortex_py.parts.hooks.dialects import CLIENTS, Hook, answer, find_hook, read_event

from hook_runs import answer_schema

ALL = [(client, hook) for client, hooks in CLIENTS.items() for hook in hooks]


@each(("client", "hook"), ALL)
@each("context", ["", "Ünïcode 🧠\n<b>\u2028"])
def test_every_answer_has_the_form_of_its_client(client: str, hook: Hook, context: str) -> None:
    text = answer(client, hook, context)
    assert text.isascii()
    assert "\n" not in text
    body = json.loads(text)
    jsonschema.validate(body, answer_schema(client, hook))


def test_a_context_is_given_only_where_the_client_takes_it() -> None:
    for client, hook in ALL:
        assert ("word" in answer(client, hook, "word")) == hook.takes_context


@each("name", ["UserPromptSubmit", "userpromptsubmit", "user-prompt-submit", "USER_PROMPT_SUBMIT"])
def test_an_event_is_known_in_any_case_and_with_hyphens(name: str) -> None:
    assert find_hook("claude-code", name) == Hook("UserPromptSubmit", "prompt", True)
    assert find_hook("claude-code", "prompt") is None
    assert find_hook("nobody", name) is None


@each(
    ("client", "event", "sent", "expected"),
    [
        (
            "claude-code",
            "UserPromptSubmit",
            {"session_id": "s", "cwd": "/p", "prompt": "Why?", "prompt_id": "7", "permission_mode": "plan"},
            {"session": "s", "cwd": "/p", "text": "Why?", "turn": "7", "kind": "prompt"},
        ),
        (
            "codex",
            "Stop",
            {
                "session_id": "s",
                "turn_id": "t",
                "cwd": "/p",
                "last_assistant_message": "Done.",
                "transcript_path": None,
            },
            {"session": "s", "turn": "t", "text": "Done.", "kind": "answer"},
        ),
        ("gemini", "AfterAgent", {"session_id": "s", "prompt": "a", "prompt_response": "b"}, {"text": "b"}),
        (
            "cursor",
            "beforeSubmitPrompt",
            {"conversation_id": "c", "generation_id": "g", "workspace_roots": ["/p", "/q"], "prompt": "Hi there"},
            {"session": "c", "turn": "g", "cwd": "/p", "text": "Hi there"},
        ),
        (
            "copilot",
            "postToolUse",
            {
                "sessionId": "s",
                "cwd": "/p",
                "toolName": "bash",
                "toolArgs": '{"command":"make"}',
                "toolResult": {"resultType": "failure", "textResultForLlm": "no rule"},
            },
            {"tool": "bash", "command": "make", "failed": True, "text": "no rule"},
        ),
        (
            "gemini",
            "AfterTool",
            {
                "tool_name": "run_shell_command",
                "tool_input": {"command": "make"},
                "tool_response": {
                    "llmContent": "<untrusted_context>\nOutput: no rule\nExit Code: 2\nProcess Group PGID: 7\n"
                    "</untrusted_context>",
                    "returnDisplay": "no rule",
                },
            },
            {"command": "make", "failed": True},
        ),
        (
            "gemini",
            "AfterTool",
            {"tool_response": {"llmContent": "<untrusted_context>\nOutput: (empty)\nSignal: 9\n</untrusted_context>"}},
            {"failed": True},
        ),
        (
            "gemini",
            "AfterTool",
            {
                "tool_response": {
                    "llmContent": "<untrusted_context>\nOutput: see below\nExit Code: 2\nwas yesterday\n"
                    "Process Group PGID: 7\n</untrusted_context>"
                }
            },
            {"failed": False},
        ),
        (
            "claude-code",
            "PostToolUse",
            {"tool_name": "Read", "tool_input": {"file_path": "/p/a.py"}, "tool_response": {"content": "x"}},
            {"tool": "Read", "path": "/p/a.py", "failed": False},
        ),
    ],
)
def test_what_a_client_sends_is_read(client: str, event: str, sent: Any, expected: dict[str, Any]) -> None:
    hook = find_hook(client, event)
    assert hook
    found = read_event(client, hook, json.dumps(sent).encode())
    assert {name: found.get(name, "") for name in expected} == expected


@each("data", [b"", b"[]", b"{", b"\xff\xfe", b"[" * 100_000, b'{"prompt": 3, "session_id": []}'])
def test_strange_input_is_an_event_without_text(data: bytes) -> None:
    for client, hook in ALL:
        found = read_event(client, hook, data)
        assert found["kind"] == hook.kind
        assert not found.get("text")


def test_a_long_output_of_a_tool_keeps_its_beginning_and_its_end() -> None:
    hook = Hook("PostToolUse", "tool", True)
    sent = {"tool_response": {"stdout": "first" + "x" * 100_000 + "last"}}
    text = read_event("claude-code", hook, json.dumps(sent).encode())["text"]
    assert text.startswith("first")
    assert text.endswith("last")
    assert len(text) < 5_000
