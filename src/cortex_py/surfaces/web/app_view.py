"""A view for the inside of a conversation (MCP Apps): one document with its script and style.

The script joins the modules that it shares with the page and its own, because a host takes a single document. The
document loads nothing, and allows exactly this script and this style by their digests.
"""

from __future__ import annotations

import base64
import hashlib
import re
from functools import cache
from pathlib import Path

from ...version import __version__
from .html import Raw, document, element

__all__ = ["app_document"]

_HERE = Path(__file__).parent
_SHARED = ("static/dom.js", "static/markdown.js")
_IMPORT = re.compile(r"^import .*\n", re.MULTILINE)
_EXPORT = re.compile(r"^export ", re.MULTILINE)


@cache
def app_document(view: str, title: str) -> str:
    """The document of a view: `search`, `memory` or `review`."""
    parts = [(_HERE / name).read_text("utf-8") for name in (*_SHARED, "app/view.js")]
    script = "(() => {\n" + "\n".join(_EXPORT.sub("", _IMPORT.sub("", part)) for part in parts) + "})();\n"
    style = (_HERE / "app" / "view.css").read_text("utf-8")
    policy = (
        f"default-src 'none'; script-src '{_digest(script)}'; style-src '{_digest(style)}'; base-uri 'none'; "
        "form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
    )
    return document(
        element(
            "head",
            element("meta", charset="utf-8"),
            element("meta", http_equiv="Content-Security-Policy", content=policy),
            element("meta", name="viewport", content="width=device-width, initial-scale=1"),
            element("title", title),
            element("style", Raw(style)),
        ),
        element(
            "body",
            element("main", element("p", "Waiting for the answer…", class_="hint")),
            element("script", Raw(script), type="module"),
            data_view=view,
            data_version=__version__,
        ),
    )


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
