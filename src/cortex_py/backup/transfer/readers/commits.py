"""The history of a git repository: what its commits decided. Additions and repairs are no decisions."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from ....records import CommitMessage
from .files import SourceFile
from .parsing import moment
from .records import Found, SourceRecord

__all__ = ["GIT_KIND", "GitHistory"]

GIT_KIND = "git"
_DECIDED = re.compile(
    r"\bbreaking\b|^[a-z]+(?:\([^)]*\))?!:|\bdeprecat|\bdrop(?:ped|s)? support\b|\breplac(?:e|es|ed|ing)\b|"
    r"\bswitch(?:ed|es|ing)?\b|\bmigrat(?:e|es|ed|ing)\b|\bno longer\b|\binstead of\b|\bin favou?r of\b|\bdecid|"
    r"\bchose\b|\bgoing with\b|\bnow (?:requires?|uses?|defaults?)\b",
    re.IGNORECASE,
)
# Who signed or took part is not part of what was decided.
_TRAILER = re.compile(
    r"^(?:(?:signed-off|co-authored|reviewed|acked|tested|reported|suggested)-by|change-id):.*$",
    re.IGNORECASE | re.MULTILINE,
)


class GitHistory:
    """Reads the messages of commits; they come from the repository, not from a file."""

    kind = GIT_KIND

    def __init__(self, commits: Iterable[CommitMessage]) -> None:
        self._commits = commits

    def recognises(self, file: SourceFile) -> bool:  # noqa: ARG002 - a repository is named, never recognised
        return False

    def read(self, file: SourceFile) -> Iterator[Found]:
        for one in self._commits:
            body = _TRAILER.sub("", one.body).strip()
            text = f"{one.subject.strip()}\n\n{body}".strip()
            if _DECIDED.search(one.subject) or (body and _DECIDED.search(body)):
                yield SourceRecord(
                    source=self.kind,
                    position=one.id,
                    content=text,
                    namespace="decisions",
                    tags=("git",),
                    at=moment(one.at),
                    shown=f"{file.name}@{one.id[:12]}",
                )
