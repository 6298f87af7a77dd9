"""Recognises texts that give instructions to a model. A hook uses it, so that it loads little."""

from __future__ import annotations

import json
import re
import unicodedata
from pathlib import Path

__all__ = ["instructs"]

_WORDS: list[str] = json.loads(Path(__file__).with_name("cues.json").read_text("utf-8"))["instructs"]
_INSTRUCTS = re.compile("|".join(_WORDS), re.IGNORECASE)
_INVISIBLE = re.compile("[\u00ad\u200b-\u200f\u2060-\u2064\ufe00-\ufe0f\U000e0000-\U000e007f]")


def instructs(text: str) -> bool:
    """Whether a text gives instructions to the model, which no record of work has a reason to do."""
    return bool(_INSTRUCTS.search(_INVISIBLE.sub("", unicodedata.normalize("NFKC", text))))
