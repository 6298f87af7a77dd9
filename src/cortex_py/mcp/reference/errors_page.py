"""Writes `docs/reference/errors.md` from the help about errors."""

from __future__ import annotations

from pathlib import Path

from .error_help import all_errors

__all__ = ["ERRORS_FILE", "render_errors"]

ERRORS_FILE = Path("docs", "reference", "errors.md")

_HEAD = """\
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
    return _HEAD + "\n".join(
        f"## {one.name}\n\n{one.means}\n\n- **Why:** {one.why}\n- **What to do:** {one.do}\n- {one.shown_codes}\n"
        for one in all_errors()
    )


if __name__ == "__main__":
    ERRORS_FILE.write_text(render_errors(), "utf-8")
