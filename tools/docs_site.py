"""What the site of the documentation adds to MkDocs: the pages at the root of the repository belong to it."""

from __future__ import annotations

import re
from pathlib import Path
from posixpath import normpath, relpath
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[1]
PAGES = ("ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")


def on_files(files: Files, config: Any) -> Files:
    for name in PAGES:
        files.append(File.generated(config, name, content=(ROOT / name).read_text("utf-8")))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Links as the site has them: root pages lie beside the folders of docs/."""
    here = page.file.src_uri
    folder = "" if here in PAGES else "docs/"

    def moved(found: re.Match[str]) -> str:
        target = normpath(f"{folder}{here}/../{found[1]}")
        inside = target.removeprefix("docs/") if target.startswith("docs/") else target if target in PAGES else None
        if inside is None:
            return found[0]
        return f"]({relpath(inside, normpath(f'{here}/..'))}{found[2] or ''})"

    return re.sub(r"\]\((?!\w+:)([^)#\s]+)(#[^)]*)?\)", moved, markdown)
