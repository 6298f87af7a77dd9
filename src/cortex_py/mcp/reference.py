"""Writes `docs/tools.md`, the reference of tools, resources and errors, from what the server serves.

The table of tools, the snapshot and the help pages say what there is; only the meaning of fields is worded
here, because words in a schema cost tokens in every client and words on a page do not. Run by
`make reference`, and a test compares the page with it. Standard library only.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from .. import errors
from .help_pages import HELP
from .registry import TOOLS, TOOLSETS, ToolSpec
from .snapshot import HANDSHAKE_VERSIONS, SNAPSHOT_FILE

__all__ = ["REFERENCE_FILE", "render"]

REFERENCE_FILE = Path("docs", "tools.md")

Schema = Mapping[str, Any]
Row = Sequence[str]

_INTRODUCTION = """\
# Tools, resources and errors

Written by `make reference` from the server's own tables; do not edit it by hand. How the server behaves around
them: [mcp.md](mcp.md)."""

_PARAMETERS: dict[tuple[str, str], str] = {
    ("subcog_capture", "tags"): "What it is about; two to four do best",
    ("subcog_recall", "namespace"): "Only this namespace",
    ("subcog_recall", "mode"): "Meaning and words, meaning alone, or words alone",
    ("subcog_recall", "detail"): "No content, the best passage, or all of it",
    ("subcog_recall", "offset"): "How many results to skip",
    ("subcog_recall", "user_id"): "Only what this person wrote",
    ("subcog_recall", "agent_id"): "Only what this agent wrote",
    ("subcog_update", "content"): "The new text; omit to keep it",
    ("subcog_update", "tags"): "The new tags, in place of all former ones; omit to keep them",
    ("subcog_sync", "direction"): "Read and ignored",
    ("embedding.generate", "text"): "What to embed",
    ("embedding.batch", "texts"): "What to embed, in order",
}

# By the last part of a field's path; a path of its own where one word means two things.
_FIELDS: dict[str, str] = {
    "id": "The memory's id, 40 hexadecimal digits",
    "urn": "Its scoped address, with domain and namespace",
    "uri": "Its short address",
    "namespace": "What kind of memory it is",
    "domain": "`project`, `user` or `org`",
    "tags": "What it is about",
    "content": "The text",
    "source": "The file or address it comes from",
    "branch": "The git branch it was written on",
    "version": "Counts the changes, from 1",
    "created_at": "When it was captured, UTC",
    "updated_at": "When it last changed, UTC",
    "expires_at": "When its time to live ends, UTC",
    "recorded_at": "When this version came about, UTC",
    "operation": "What made this version",
    "duplicate_of": "The memory that already held the same text",
    "redacted": "Kinds of secrets that were replaced",
    "deleted": "True",
    "hard": "Whether it is gone for good",
    "results": "The memories, best or newest first",
    "results[].content": "The best passage, or with `detail: everything` the whole text",
    "results[].score": "How likely it is what was asked for, 0 to 1; only in a search",
    "total": "In a list all that match; in a search all that were ranked",
    "warnings": "What was ignored in the filter",
    "versions": "Oldest first",
    "repository": "Where the server works",
    "repository.branch": "The git branch checked out",
    "path": "The project's folder",
    "project_id": "The git remote, or the project's own id",
    "storage": "What keeps the memories",
    "persistence": "The engine of the records",
    "index": "The engine of the text search",
    "vector": "How vectors are searched",
    "statistics": "Numbers over this project's memories",
    "total_count": "How many memories there are",
    "namespace_counts": "How many by namespace",
    "recent_topics": "Tags of the newest memories",
    "top_tags": "The most used tags",
    "tag": "The tag",
    "count": "How many memories have it",
    "embedding": "The vector",
    "embeddings": "One vector per text, in order",
    "metadata": "Where it came from",
    "model_name": "The model",
    "dimensions": "How long its vectors are",
    "backend": "What runs the model",
    "cached": "Whether everything was known already",
    "metadata.source": "`generator`, `cache`, or `mixed` in a batch",
    "generated_at": "When this was answered, UTC",
    "cache_metrics": "Counted since the server began",
    "metrics": "Counted since the server began",
    "cache_hits": "Texts whose vectors were known",
    "cache_misses": "Texts that went to the model",
    "rate_limited": "Requests refused",
    "metadata.count": "How many texts",
    "cached_hits": "How many of them were known",
    "tokens": "How many tokens the text has",
    "truncated": "Whether the model read only the beginning",
    "model_loaded": "Whether it is in memory",
    "extras": "Backends that could run here, the model's window and fingerprint",
    "platform": "The operating system",
    "backends_available": "Which backends could run here",
    "rate_limit": "Requests a minute for each caller; 0 for no limit",
    "cache_size": "Vectors that are known",
    "problem": "What is wrong, if something is",
    "stale_branches": "Git branches that are gone",
    "memories_affected": "How many memories, each counted once",
    "dry_run": "Whether this was only a preview",
    "expired": "Memories whose time to live was over",
    "purged": "Deleted memories removed for good",
    "namespaces": "Every namespace there is",
    "name": "The namespace",
    "description": "What belongs in it",
    "signal_words": "Words that suggest it",
    "indexed": "How many memories were indexed anew",
    "duration_ms": "How long it took",
    "message": "What to know",
    "subcog_gc.status": "`preview` or `completed`",
    "subcog_reindex.status": "`success`",
    "subcog_sync.status": "`deprecated`",
    "status": "`active`, `pending`, `archived`, `superseded`, `consolidated` or `tombstoned`",
}

# Said by the protocol itself, so no error of the library belongs to them.
_PROTOCOL_CODES = frozenset(("-32600", "-32601"))


def render(snapshot: Path = SNAPSHOT_FILE) -> str:
    """The whole page."""
    served = _served(json.loads(snapshot.read_text("utf-8")))
    listed: dict[str, Schema] = {tool["name"]: tool for tool in served["tools/list"]["tools"]}
    parts = [
        _INTRODUCTION,
        _table(("tool", "what it does", "toolsets", "nature"), (_summary(spec) for spec in TOOLS)),
        _toolsets(listed.values()),
        *(_tool(spec, listed[spec.name]) for spec in TOOLS),
        _resources(served["resources/list"]["resources"]),
        _templates(served["resources/templates/list"]["resourceTemplates"]),
        _errors(),
    ]
    return "\n\n".join(parts) + "\n"


def _served(content: Mapping[str, Any]) -> dict[str, Schema]:
    """What the server answers to each list, as the newest handshake version shows it."""
    places = content["places"][HANDSHAKE_VERSIONS[-1]]
    return {method: content["results"][place] for method, place in places.items()}


# -- tools ---------------------------------------------------------------------------------------


def _summary(spec: ToolSpec) -> Row:
    first, _, _ = spec.description.partition(". ")
    return f"[`{spec.name}`](#{spec.name})", first.rstrip("."), _codes(spec.toolsets), _nature(spec)


def _nature(spec: ToolSpec) -> str:
    """The annotations in words."""
    if spec.read_only:
        return "only reads"
    changes = "may destroy" if spec.destructive else "writes"
    return f"{changes}; repeating it changes nothing more" if spec.idempotent else changes


def _toolsets(listed: Iterable[Schema]) -> str:
    reaching = [str(tool["name"]) for tool in listed if tool["annotations"]["openWorldHint"]]
    members = {name: [spec.name for spec in TOOLS if name in spec.toolsets] for name in TOOLSETS}
    rows = [(f"`{name}`", _codes(tools)) for name, tools in members.items() if tools]
    reading = _codes(spec.name for spec in TOOLS if spec.read_only)
    return "\n\n".join(
        (
            f"Tools that reach outside this machine: {_codes(reaching) or 'none'}. With `--toolsets` a server offers\n"
            "only the tools of these sets, with `--read-only` only those that read.",
            _table(("toolset", "tools"), [*rows, ("(`--read-only`)", reading)]),
        )
    )


def _tool(spec: ToolSpec, listed: Schema) -> str:
    heading = f"## {spec.name}\n\n{spec.description}"
    given = list(_parameters(spec, listed["inputSchema"]))
    answered = list(_fields(spec.name, listed["outputSchema"]))
    parameters = _table(("parameter", "type", "required", "default", "meaning"), given) if given else "No parameters."
    return "\n\n".join((heading, parameters, _table(("answer", "type", "present", "meaning"), answered)))


def _parameters(spec: ToolSpec, schema: Schema) -> Iterator[Row]:
    for name, value in schema.get("properties", {}).items():
        default = f"`{json.dumps(value['default'])}`" if "default" in value else ""
        required = "yes" if name in schema.get("required", ()) else ""
        meaning = value.get("description") or _PARAMETERS.get((spec.name, name), "")
        yield f"`{name}`", _type(value), required, default, meaning


def _fields(tool: str, schema: Schema, path: str = "") -> Iterator[Row]:
    """The fields of an answer, those of an object after it under its path."""
    for name, value in schema.get("properties", {}).items():
        place = f"{path}{name}"
        present = "always" if name in schema.get("required", ()) else "when filled"
        yield f"`{place}`", _type(value), present, _meaning(tool, place, name)
        inner, suffix = (value["items"], "[].") if value.get("type") == "array" else (value, ".")
        yield from _fields(tool, inner, place + suffix)


def _meaning(tool: str, place: str, name: str) -> str:
    return next((_FIELDS[key] for key in (f"{tool}.{place}", place, name) if key in _FIELDS), "")


def _type(schema: Schema) -> str:
    if "enum" in schema:
        return _codes(schema["enum"])
    kind = str(schema.get("type", "any"))
    if kind == "array":
        return f"list of {_type(schema['items'])}"
    inner = schema.get("additionalProperties")
    return f"object of {_type(inner)}" if kind == "object" and isinstance(inner, dict) else kind


# -- resources and errors ------------------------------------------------------------------------


def _resources(listed: Sequence[Schema]) -> str:
    rows = ((f"`{one['uri']}`", str(one["mimeType"]), str(one["description"])) for one in listed)
    return "## Resources\n\n" + _table(("address", "type", "shows"), rows)


def _templates(listed: Sequence[Schema]) -> str:
    rows = ((f"`{one['uriTemplate']}`", str(one["mimeType"]), str(one["description"])) for one in listed)
    return (
        "## Resource templates\n\nThe first that fits answers. Values are percent-encoded.\n\n"
        f"{_table(('address', 'type', 'shows'), rows)}"
    )


def _errors() -> str:
    named = _names_by_code()
    rows = [(code, meaning, _codes(named.get(code, ()))) for code, meaning in _documented_codes()]
    unused = [code for code, _, names in rows if not names and code not in _PROTOCOL_CODES]
    return "\n\n".join(
        (
            "## Error codes",
            "`data.error` names the error; `data.field` the argument at fault; `data.remedy` what to do.\n"
            f"No tool of this version answers {' or '.join(unused)}.",
            _table(("code", "meaning", "`data.error`"), rows),
        )
    )


def _documented_codes() -> list[tuple[str, str]]:
    """The codes and their meanings, as the help page for models has them."""
    return re.findall(r"^\| (-\d+) \| (.*?) \|$", HELP["errors"].text, re.MULTILINE)


def _names_by_code() -> dict[str, list[str]]:
    """The library's errors under the code each is told with."""
    names: dict[str, list[str]] = {}
    for name in errors.__all__:
        kind = getattr(errors, name)
        if isinstance(kind, type) and issubclass(kind, errors.CortexError):
            form = next(form for known, form in errors.WIRE_FORMS if issubclass(kind, known))
            names.setdefault(str(form.subcog), []).append(name)
    return names


# -- Markdown ------------------------------------------------------------------------------------


def _table(head: Row, rows: Iterable[Row]) -> str:
    return "\n".join((_line(head), "|---" * len(head) + "|", *map(_line, rows)))


def _line(cells: Row) -> str:
    escaped = (cell.replace("|", "\\|") for cell in cells)
    return f"| {' | '.join(escaped)} |"


def _codes(words: Iterable[str]) -> str:
    return ", ".join(f"`{word}`" for word in words)


def main() -> None:
    REFERENCE_FILE.write_text(render(), "utf-8")


if __name__ == "__main__":
    main()
