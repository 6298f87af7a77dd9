"""The texts in `help`: short pages for models and people on using the memory well, and the server's instructions.

The instructions are what a model reads when it connects: when to recall, what to keep, how to scope.
"""

from __future__ import annotations

from pathlib import Path

__all__ = ["HELP", "INSTRUCTIONS", "help_title"]

_FOLDER = Path(__file__).with_name("help")
_TOPICS = ("capture", "recall", "filters", "resources", "errors")

HELP: dict[str, str] = {topic: (_FOLDER / f"{topic}.md").read_text("utf-8") for topic in _TOPICS}
INSTRUCTIONS = (_FOLDER / "instructions.txt").read_text("utf-8").removesuffix("\n")


def help_title(topic: str) -> str:
    return HELP[topic].partition("\n")[0].removeprefix("# ")
