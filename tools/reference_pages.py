"""Writes the generated pages of `docs/reference`, of tools, settings and errors, from what the server serves.

The table of tools, the snapshot and the help pages say what there is. `FAMILY.reference.toml`, and the `reference.toml`
that all families share, say what parameters and fields mean: words in a schema cost every client tokens, words on a
page do not. Run by `make reference`; tests compare the pages with its output.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING
from functools import cache
from pathlib import Path
from typing import Any

from cortex_py.core import errors
from cortex_py.core.config import Setting, declared_settings
from cortex_py.surfaces.mcp import families
from cortex_py.surfaces.mcp.help_pages import HELP
from cortex_py.surfaces.mcp.reference.error_help import all_errors
from cortex_py.surfaces.mcp.registry import EVERY_TOOL, TOOLSETS, ToolSpec
from cortex_py.surfaces.mcp.stdio.front import HANDSHAKE_VERSIONS, SNAPSHOT_FILE

__all__ = [
    "ERRORS_FILE", "REFERENCE_FILE", "SETTINGS_FILE", "read_words", "render", "render_errors", "render_settings",
]  # fmt: skip

REFERENCE_FILE = Path("docs", "reference", "tools.md")
SETTINGS_FILE = Path("docs", "reference", "settings.md")
ERRORS_FILE = Path("docs", "reference", "errors.md")

Schema = Mapping[str, Any]
Row = Sequence[str]

_INTRODUCTION = """\
# Tools, resources and errors

Written by `make reference` from the server's own tables; do not edit it by hand. How the server behaves around
them: [mcp.md](mcp.md)."""

_CORTEX_FORM = '{"success": false, "error": "…", "error_code": "…", "details": "…"}'
# The protocol itself uses these, so no error of the library belongs to them.
_PROTOCOL_CODES = frozenset(("-32600", "-32601"))


@cache
def read_words(family: str = "") -> Mapping[str, Any]:
    """The words of a family, or those that all families share."""
    path = Path(families.__path__[0], f"{family}.reference.toml" if family else "reference.toml")
    return tomllib.loads(path.read_text("utf-8"))


def render(snapshot: Path = SNAPSHOT_FILE) -> str:
    """The whole page."""
    served = _served(json.loads(snapshot.read_text("utf-8")))
    listed: dict[str, Schema] = {tool["name"]: tool for tool in served["tools/list"]["tools"]}
    parts = [
        _INTRODUCTION,
        _table(("tool", "what it does", "toolsets", "nature"), (_summary(spec) for spec in EVERY_TOOL)),
        _toolsets(listed.values()),
        *(_tool(spec, listed[spec.name]) for spec in EVERY_TOOL),
        _resources(served["resources/list"]["resources"]),
        _templates(served["resources/templates/list"]["resourceTemplates"]),
        _errors(),
        _cortex_errors(),
    ]
    return "\n\n".join(parts) + "\n"


def _served(content: Mapping[str, Any]) -> dict[str, Schema]:
    """What the server answers to each list, as the newest handshake version shows it."""
    places = content["places"][HANDSHAKE_VERSIONS[-1]]
    return {method: content["results"][place] for method, place in places.items()}


# -- tools ---------------------------------------------------------------------------------------


def _summary(spec: ToolSpec) -> Row:
    first, _, _ = spec.description.partition(". ")
    return f"[`{spec.name}`](#{spec.name.replace('.', '')})", first.rstrip("."), _codes(spec.toolsets), _nature(spec)


def _nature(spec: ToolSpec) -> str:
    """The annotations in words."""
    if spec.read_only:
        return "only reads"
    changes = "may destroy" if spec.destructive else "writes"
    return f"{changes}; repeating it changes nothing more" if spec.idempotent else changes


def _toolsets(listed: Iterable[Schema]) -> str:
    reaching = [str(tool["name"]) for tool in listed if tool["annotations"]["openWorldHint"]]
    members = {name: [spec.name for spec in EVERY_TOOL if name in spec.toolsets] for name in TOOLSETS}
    rows = [(f"`{name}`", _codes(tools)) for name, tools in members.items() if tools]
    reading = _codes(spec.name for spec in EVERY_TOOL if spec.read_only)
    return "\n\n".join(
        (
            f"Tools that may ask another machine, where one is configured: {_codes(reaching) or 'none'}.\n"
            "With `--toolsets` a server offers only the tools of these sets, with `--read-only` only those that read.\n"
            "`memory-tool` must be asked for: `--toolsets all,memory-tool` offers all tools and that one.",
            _table(("toolset", "tools"), [*rows, ("(`--read-only`)", reading)]),
        )
    )


def _tool(spec: ToolSpec, listed: Schema) -> str:
    heading = f"## {spec.name}\n\n{spec.description}"
    given = list(_parameters(spec, listed["inputSchema"]))
    parameters = _table(("parameter", "type", "required", "default", "meaning"), given) if given else "No parameters."
    if "legacy" in spec.toolsets:
        return "\n\n".join((heading, parameters, "Answers as `subcog_prompts` does, with a note in `deprecated`."))
    if "outputSchema" not in listed:
        return "\n\n".join((heading, parameters, read_words(spec.family)["answers"][spec.name]))
    answered = list(_fields(spec, listed["outputSchema"]))
    return "\n\n".join((heading, parameters, _table(("answer", "type", "present", "meaning"), answered)))


def _parameters(spec: ToolSpec, schema: Schema) -> Iterator[Row]:
    for name, value in schema.get("properties", {}).items():
        default = f"`{json.dumps(value['default'])}`" if "default" in value else ""
        required = "yes" if name in schema.get("required", ()) else ""
        tool = "subcog_prompts" if "legacy" in spec.toolsets else spec.name
        known = {**read_words()["parameters"], **read_words(spec.family)["parameters"].get(tool, {})}
        meaning = value.get("description") or known.get(name, "")
        yield f"`{name}`", _type(value), required, default, meaning


def _fields(spec: ToolSpec, schema: Schema, path: str = "") -> Iterator[Row]:
    """The fields of an answer, those of an object after it under its path."""
    for name, value in schema.get("properties", {}).items():
        place = f"{path}{name}"
        present = "always" if name in schema.get("required", ()) else "when filled"
        yield f"`{place}`", _type(value), present, _meaning(spec, place, name)
        inner, suffix = (value["items"], "[].") if value.get("type") == "array" else (value, ".")
        yield from _fields(spec, inner, place + suffix)


def _meaning(spec: ToolSpec, place: str, name: str) -> str:
    """The words for a field: by its path or its last part, where one tool means something else by its name too."""
    known = {**read_words()["fields"], **read_words(spec.family)["fields"]}
    keys = (f"{spec.name}.{place}", place, f"{spec.name}.{name}", name)
    return next((known[key] for key in keys if key in known), "")


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
    named = _names_by_code(lambda form: form.subcog)
    rows = [(code, meaning, _codes(named.get(code, ()))) for code, meaning in _documented_codes()]
    unused = [code for code, _, names in rows if not names and code not in _PROTOCOL_CODES]
    return "\n\n".join(
        (
            "## Error codes",
            "In this form all but the embedding and the context tools and `memory` fail. `data.error` names the\n"
            "error; `data.field` the argument at fault; `data.remedy` what to do.\n"
            f"No tool of this version answers {' or '.join(unused)}.",
            _table(("code", "meaning", "`data.error`"), rows),
        )
    )


def _cortex_errors() -> str:
    tools = _codes(spec.name for spec in EVERY_TOOL if spec.errors == "cortex")
    named = _names_by_code(lambda form: form.cortex)
    rows = [(f"`{code}`", meaning, _codes(named.get(code, ()))) for code, meaning in read_words()["errors"].items()]
    return "\n\n".join(
        (
            "## Errors of the context tools",
            f"A failed call of {tools}\nis answered with a result that is marked as an error (`isError`) and holds:",
            f"```json\n{_CORTEX_FORM}\n```",
            "`error` says what is wrong. `details` names the kind of error and the argument at fault, then says what\n"
            "to do; for an id that begins several others it lists the candidates. Nothing was changed.",
            _table(("code", "meaning", "errors"), rows),
        )
    )


def _documented_codes() -> list[tuple[str, str]]:
    """The codes and their meanings, as the help page for models has them."""
    return re.findall(r"^\| (-\d+) \| (.*?) \|$", HELP["errors"], re.MULTILINE)


def _names_by_code(code: Callable[[errors.WireForm], object]) -> dict[str, list[str]]:
    """The library's errors by their code."""
    names: dict[str, list[str]] = {}
    for name in errors.__all__:
        kind = getattr(errors, name)
        if isinstance(kind, type) and issubclass(kind, errors.CortexError):
            form = next(form for known, form in errors.WIRE_FORMS if issubclass(kind, known))
            names.setdefault(str(code(form)), []).append(name)
    return names


# -- Markdown ------------------------------------------------------------------------------------


def _table(head: Row, rows: Iterable[Row]) -> str:
    return "\n".join((_line(head), "|---" * len(head) + "|", *map(_line, rows)))


def _line(cells: Row) -> str:
    escaped = (cell.replace("|", "\\|") for cell in cells)
    return f"| {' | '.join(escaped)} |"


def _codes(words: Iterable[str]) -> str:
    return ", ".join(f"`{word}`" for word in words)


# -- settings ------------------------------------------------------------------------------------

_SETTINGS_HEAD = """\
| key | variable | default | meaning |
|---|---|---|---|
| (the home itself) | `CORTEX_HOME` | `~/.cortex` | where everything is kept |
"""
_SETTINGS_TABLE = re.compile(r"^\| key \|.*?\n(?=\n)", re.DOTALL | re.MULTILINE)


def render_settings(page: str) -> str:
    """The page with its table rendered from the declarations."""
    table = _SETTINGS_HEAD + "".join(map(_setting_row, declared_settings().values()))
    return _SETTINGS_TABLE.sub(lambda _: table, page, count=1)


def _setting_row(setting: Setting) -> str:
    return f"| `{setting.name}` | `{setting.variables[0]}` | {_default(setting)} | {setting.help} |\n"


def _default(setting: Setting) -> str:
    if setting.shown is not None:
        return setting.shown
    if setting.default in (None, (), MISSING):
        return "none"
    return f"`{str(setting.default).lower() if isinstance(setting.default, bool) else setting.default}`"


# -- errors --------------------------------------------------------------------------------------

_ERRORS_HEAD = """\
# Errors

For everybody who met an error. Each kind has a name, which every interface reports: `data.error`, `details`, or the
last line on the terminal. The same sections without a network:

```sh
cortex help StoreBusy
cortex help CONTEXT_NOT_FOUND
cortex help 4
```

A failed call changes nothing, unless its section says otherwise. The codes under a section are those of the context
tools, of all other tools (JSON-RPC), of the embedding service, and the exit code of a command. The last sections
explain codes of the protocol, of the HTTP server, and of results.

"""


def render_errors() -> str:
    """The whole page."""
    return _ERRORS_HEAD + "\n".join(
        f"## {one.name}\n\n{one.means}\n\n- **Why:** {one.why}\n- **What to do:** {one.do}\n- {one.shown_codes}\n"
        for one in all_errors()
    )


def main() -> None:
    REFERENCE_FILE.write_text(render(), "utf-8")
    SETTINGS_FILE.write_text(render_settings(SETTINGS_FILE.read_text("utf-8")), "utf-8")
    ERRORS_FILE.write_text(render_errors(), "utf-8")


if __name__ == "__main__":
    main()
