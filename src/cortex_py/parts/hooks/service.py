"""`cortex.hooks`: what a session is given at its start, with a prompt and after a tool, and what is kept of it."""

from __future__ import annotations

import re
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...core.clock import iso
from ...core.errors import ConfigurationError, CortexError
from ...core.memory.text import Chunk, leading_query_terms, snippet, stop_words
from ...core.records import PINNED_TAG, Branch, Hit, Memory
from ...core.security.quoting import neutralise
from ...session import ProjectSession, ProjectSessions
from ..context.claims import find_claim
from ..context.project import identify
from ..context.summary.service import BranchSummary
from .frame import Quote, fit, frame, quote
from .front import log_line
from .prepared import read_head, write_prepared
from .selection import LONGEST_QUOTE, MOST_GIVEN, HookLimits, certain, limits, may_be_given, quoted
from .sessions import GivenMemories, GivenTo, session_of

if TYPE_CHECKING:
    from ..prompts.templates import Templates
    from .staging import ImportedTurnReader, Reading, TurnReader

__all__ = ["NOTHING", "Hooks", "Injection"]

_QUERY_CHARACTERS = 2_000
# A prompt with fewer telling words is a remark ("yes, go on"), not a subject.
_FEWEST_TERMS = 3
# What a start shows besides the line of work: how many of each, the newest, those of this git branch first.
_SHOWN_AT_START = {"blockers": 3, "decisions": 5, "patterns": 4}
_LISTED = 40
_MOST_PINNED = 5
_SUMMARY_SHARE = 0.5
_TRAPS = "learnings,tech-debt,blockers,security,patterns"
_SOLUTIONS = "learnings,tech-debt,config,testing,patterns"
_TOOL_TOKENS = 200
_MOST_TRAPS = 3
_PROJECT_SECONDS = 60.0
_MOST_PROJECTS = 64
_MOST_CHECKED = 4_096
_TEMPLATE_KINDS = ("start", "prompt", "tool")
# Of imported turns, in one round of upkeep and for a person who waits.
_MOST_IMPORTED, _IMPORTED_SECONDS, _PATIENCE_SECONDS = 2_000, 15.0, 8.0
_FOREVER = 4_102_444_800.0  # the year 2100


@dataclass(frozen=True, slots=True)
class Injection:
    """A text for a session, and the ids of the memories in it."""

    text: str = ""
    ids: tuple[str, ...] = ()
    # When the first of these memories expires, as a Unix time.
    until: float = _FOREVER


NOTHING = Injection()


class Hooks:
    """Chooses what sessions are given. A session is any text that stays the same while a conversation goes on."""

    def __init__(self, sessions: ProjectSessions, templates: Callable[[ProjectSession], Templates]) -> None:
        self._sessions = sessions
        self._settings = sessions.settings
        self._clock = sessions.clock
        self._templates_of = templates
        self._layouts = _layouts(sessions.settings.hook_templates)
        self._given = GivenMemories(sessions.settings.home)
        floor, measured = sessions.settings.hook_floor_percent, limits("warm")
        self._limits = measured._replace(floor=floor / 100) if floor else measured
        # What waits for a review takes no place of what may be given.
        self._notes = "kind:note" if sessions.settings.hook_unreviewed else "kind:note status:active"
        self._lock = threading.Lock()
        self._projects: OrderedDict[str, tuple[float, ProjectSession | None]] = OrderedDict()
        self._contradicted: OrderedDict[tuple[str, int], bool] = OrderedDict()
        self._imported: dict[str, ImportedTurnReader] = {}

    @cached_property
    def _reader(self) -> TurnReader:
        # Imported on first use: no answer needs it.
        from .staging import TurnReader

        return TurnReader(self._sessions, self._project)

    # -- what is given ---------------------------------------------------------------------------

    def session_start(self, folder: str | Path, *, session: str = "", source: str = "startup") -> Injection:
        """Where the work in a folder stands: the line of work, what blocks it, and what was decided for it.

        The order is that of the records, so that the text changes only if they do.
        """
        if source in ("clear", "compact"):
            self._given.forget(session)
        project = self._project(folder)
        if project is None:
            return NOTHING
        budget = self._settings.hook_session_tokens
        branch = self._active(project)
        standing = self._standing(project, branch, int(budget * _SUMMARY_SHARE)) if branch else ""
        left = budget - (project.memories.count_tokens(standing) if standing else 0)
        memories = [one for one in self._important(project, branch) if not self._is_contradicted(project, one)]
        quotes = fit([quote(one, _beginning(one)) for one in memories], left, project.memories.count_tokens)
        chosen = [one for one in memories if one.id in {shown.id for shown in quotes}]
        return self._laid_out("start", project, chosen, quotes, standing, budget)

    def prompt(self, text: str, folder: str | Path, *, session: str = "", without: Collection[str] = ()) -> Injection:
        """Memories about a prompt: few, certain ones, that this session was not given before, nor `without` these."""
        project = self._project(folder)
        hits = [hit for hit in self.candidates(text, folder) if hit.memory.id not in without]
        if project is None or not hits:
            return NOTHING
        return self._choose("prompt", project, hits, self._limits, session, self._settings.hook_prompt_tokens)

    def candidates(self, text: str, folder: str | Path) -> list[Hit]:
        """The memories that are considered for a prompt, best first; none for one without a subject."""
        project = self._project(folder)
        if project is None or not _has_subject(text):
            return []
        return project.memories.related(text[:_QUERY_CHARACTERS], 2 * MOST_GIVEN, mode="hybrid", filter=self._notes)

    def tool_used(
        self, folder: str | Path, *, session: str = "", path: str = "", command: str = "", output: str = "",
        failed: bool = False,
    ) -> Injection:  # fmt: skip
        """What is known about a file that was opened, or about a failure that was seen before."""
        project = self._project(folder)
        if project is None:
            return NOTHING
        if failed and output.strip():
            query = f"{command[:200]}\n{output[-600:]}".strip()
            filter = f"{self._notes} ns:{_SOLUTIONS}"
            hits = project.memories.related(query, _MOST_TRAPS, mode="hybrid", filter=filter)
            return self._choose("tool", project, hits, self._limits, session, _TOOL_TOKENS)
        relative = self._relative(project, path)
        if not relative:
            return NOTHING
        escaped = relative.replace("\\", "\\\\").replace('"', '\\"')
        notes = f"{self._notes} ns:{_TRAPS}"
        traps = project.memories.listed(f'{notes} path:"{escaped}"', _MOST_TRAPS)
        worded = (hit.memory for hit in project.memories.related(relative, _LISTED, filter=notes))
        traps += [one for one in worded if one not in traps and _names(one.content, relative)][:_MOST_TRAPS]
        hits = [Hit(one, 1.0, 1.0, _snippet_of(one.content)) for one in traps]
        return self._choose("tool", project, hits, HookLimits(0.0, 0.0), session, _TOOL_TOKENS)

    def compacting(self, folder: str | Path, *, session: str = "") -> None:
        """The conversation is about to be cut: refresh the summary of the line of work, and forget what was given."""
        self._given.forget(session)
        project = self._project(folder)
        branch = self._active(project) if project else None
        if project and branch:
            project.summaries.refresh(branch.id)
            project.projection.try_refresh(branch.id)

    # -- events of clients -----------------------------------------------------------------------

    def answer(self, event: Mapping[str, Any]) -> Injection:
        """What the session of an event is given."""
        folder, session = str(event.get("cwd") or ""), session_of(event)
        kind, text = event.get("kind"), str(event.get("text") or "")
        if not folder:
            return NOTHING
        if kind == "start":
            return self.session_start(folder, session=session, source=str(event.get("source") or "startup"))
        if kind == "prompt":
            owed = self._given.owes_start(session)
            start = self.session_start(folder, session=session, source="late") if owed else NOTHING
            found = self.prompt(text, folder, session=session, without=start.ids)
            return Injection(f"{start.text}\n{found.text}".strip(), (*start.ids, *found.ids))
        if kind == "tool":
            given = {name: str(event.get(name) or "") for name in ("path", "command")}
            return self.tool_used(folder, session=session, output=text, failed=bool(event.get("failed")), **given)
        if kind == "compact":
            self.compacting(folder, session=session)
        return NOTHING

    def delivered(self, event: Mapping[str, Any], found: Injection) -> None:
        """The client has taken the answer."""
        kind = event.get("kind")
        if found.ids or kind in ("start", "prompt"):
            self._given.add(session_of(event), found.ids, owed=False)
        if kind in ("answer", "compact", "end") and event.get("cwd"):
            self.prepare(str(event["cwd"]))
        if kind in ("start", "answer", "end") and event.get("cwd"):
            self.keep_bridges(str(event["cwd"]))

    def keep_bridges(self, folder: str | Path) -> None:
        """Bring the folders that are bridges of a project into step: Claude may have written into its own memory."""
        # Imported on first use: no answer needs it.
        from ..backup.bridges.service import Bridges

        if project := self._project(folder):
            sessions = self._sessions
            bridges = Bridges(sessions.store, self._clock, self._settings, sessions, sessions.places)
            bridges.keep(project_id=project.id)

    def missed(self, event: Mapping[str, Any]) -> None:
        """The client did not wait for the answer."""
        if event.get("kind") == "start":
            self._given.add(session_of(event), owed=True)

    def given(self, memory_id: str) -> GivenTo:
        """How many sessions of the last two weeks were given a memory, and when the last of them was active."""
        return self._given.of_memory(memory_id)

    def prepare(self, folder: str | Path) -> None:
        """Keep the start of a session in a folder for when no process is warm."""
        project = self._project(folder)
        # A hook that finds the text reads no settings, so it holds reviewed memories alone.
        if project is None or self._sessions.key or self._settings.database_url or self._settings.hook_unreviewed:
            return
        revision = project.memories.revision()
        found = self.session_start(folder, source="prepared")
        home = self._settings.home
        write_prepared(home, Path(folder), text=found.text, ids=list(found.ids), until=found.until, revision=revision)

    def warm_up(self, folder: str | Path) -> None:
        """Load all that an answer needs, so that the first one comes in time; remove what is left of old sessions."""
        self._given.clean()
        self.session_start(folder, source="warm")
        self.prompt("Which of the recorded decisions matter here?", folder)

    def read_turns(self, pause: Callable[[], bool] = lambda: True) -> Reading:
        """Read the turns that nobody has read, and stage what is worth keeping; see `hooks.staging`."""
        return self._reader.read(pause)

    def read_imported(
        self,
        stop: Callable[[], bool] = lambda: False,
        *,
        most: int = _MOST_IMPORTED,
        seconds: float = _IMPORTED_SECONDS,
    ) -> Reading:
        """Read turns of the conversations that were imported into the project, for a bounded time."""
        # Imported on first use: no answer needs it.
        from .staging import ImportedTurnReader, Reading

        project = self._sessions.current
        if not self._settings.import_staging:
            return Reading()
        with self._lock:
            reader = self._imported.setdefault(project.id, ImportedTurnReader(self._sessions, project))
        return reader.read_on(stop, most, seconds)

    def read_all(self) -> Reading:
        """Read the turns of sessions, and for a short time those of imported conversations."""
        from .staging import Reading

        live, imported = self.read_turns(), self.read_imported(seconds=_PATIENCE_SECONDS)
        return Reading(live.turns + imported.turns, (*live.staged, *imported.staged), imported.more)

    # -- parts -----------------------------------------------------------------------------------

    def _project(self, folder: str | Path) -> ProjectSession | None:
        """The project at a folder; None for a plain folder that no memories are kept for."""
        key, now = str(folder), time.monotonic()
        with self._lock:
            found = self._projects.get(key)
        if found and now - found[0] < _PROJECT_SECONDS:
            return found[1]
        project = self._open(Path(folder))
        with self._lock:
            self._projects[key] = (now, project)
            self._projects.move_to_end(key)
            while len(self._projects) > _MOST_PROJECTS:
                self._projects.popitem(last=False)
        return project

    def _open(self, folder: Path) -> ProjectSession | None:
        if not folder.is_absolute() or not folder.is_dir():
            return None
        try:
            known = find_claim(self._sessions.store, identify(folder), self._sessions.screen).project
            return self._sessions.at(folder) if known or read_head(folder.resolve()) else None
        except CortexError as error:
            self._log("a folder's project was not opened", error)
            return None

    def _log(self, what: str, error: Exception) -> None:
        log_line(self._settings.home, f"{what} ({type(error).__name__})")

    def _relative(self, project: ProjectSession, path: str) -> str:
        """The path of a file inside its project; empty for any other."""
        root = project.root
        if not path or root is None:
            return ""
        try:
            root, place = root.resolve(), (root / path).resolve()
        except (ValueError, OSError, RuntimeError) as error:
            self._log("the path of a file was not followed", error)
            return ""
        return place.relative_to(root).as_posix() if place.is_relative_to(root) else ""

    def _active(self, project: ProjectSession) -> Branch | None:
        project.git.sync_git_state()
        name = project.git.git_branch()
        if name is None:
            return None
        with self._sessions.store.database.read() as session:
            return self._sessions.store.branches.linked_to(session, project.id, name)

    def _standing(self, project: ProjectSession, branch: Branch, tokens: int) -> str:
        """The summary of a line of work; statements that a check did not find true are marked."""
        found: BranchSummary = project.summaries.of(branch, tokens)
        return neutralise(f"Line of work {branch.id}: {found.summary.text}")

    def _important(self, project: ProjectSession, branch: Branch | None) -> list[Memory]:
        """What is pinned, then blockers, decisions and patterns, each in the order of their records."""
        here = project.git.git_branch()
        pinned = filter(self._may_be_given, project.memories.listed(f"{self._notes} tag:{PINNED_TAG}", _MOST_PINNED))
        chosen = sorted(pinned, key=lambda one: (one.created_at, one.id))
        for namespace, most in _SHOWN_AT_START.items():
            found = project.memories.listed(f"{self._notes} ns:{namespace}", _LISTED)
            listed = [one for one in found if self._may_be_given(one) and one not in chosen]
            near = [one for one in listed if _is_near(one, branch, here)]
            rest = [one for one in listed if one not in near]
            chosen += sorted((*near, *rest)[:most], key=lambda one: (one.created_at, one.id))
        return chosen

    def _may_be_given(self, memory: Memory) -> bool:
        return may_be_given(memory, unreviewed=self._settings.hook_unreviewed)

    def _choose(
        self, kind: str, project: ProjectSession, hits: Sequence[Hit], least: HookLimits, session: str, tokens: int
    ) -> Injection:
        given = set(self._given.ids(session)) if session else set()
        allowed = [hit for hit in hits if hit.score >= least.floor and self._may_be_given(hit.memory)]
        # An outdated memory must not keep its successor out by a slightly better score.
        current = [
            (hit.score, hit)
            for hit in allowed
            if hit.outdated_by is None and not self._is_contradicted(project, hit.memory)
        ]
        sound = [hit for hit in certain(current, least) if hit.memory.id not in given][:MOST_GIVEN]
        fitting = quoted(sound, tokens, project.memories.count_tokens)
        memories = [hit.memory for hit in sound if hit.memory.id in {one.id for one in fitting}]
        return self._laid_out(kind, project, memories, fitting, "", tokens)

    def _is_contradicted(self, project: ProjectSession, memory: Memory) -> bool:
        """Whether a newer memory says otherwise; one that nobody reviewed hides nothing either."""
        key = (memory.id, project.memories.revision())
        with self._lock:
            known = self._contradicted.get(key)
        if known is None:
            others = project.memories.visible([one.memory_id for one in project.memories.conflicts(memory.id)])
            newer = (one for one in others.values() if one.created_at > memory.created_at)
            known = any(one.status != "pending" or self._may_be_given(one) for one in newer)
            with self._lock:
                self._contradicted[key] = known
                while len(self._contradicted) > _MOST_CHECKED:
                    self._contradicted.popitem(last=False)
        return known

    def _laid_out(
        self,
        kind: str,
        project: ProjectSession,
        memories: Sequence[Memory],
        quotes: Sequence[Quote],
        standing: str,
        tokens: int,
    ) -> Injection:
        text = frame([standing, *(one.text for one in quotes)])
        if text and (name := self._layouts.get(kind)):
            text = self._by_template(name, project, memories, standing, tokens) or text
        expiry = [one.expires_at.timestamp() for one in memories if one.expires_at]
        return Injection(text, tuple(one.id for one in quotes), min(expiry, default=_FOREVER))

    def _by_template(
        self, name: str, project: ProjectSession, memories: Sequence[Memory], standing: str, tokens: int
    ) -> str:
        """What a saved template makes of the memories; empty if it cannot, or if that is over the budget.

        A file of the project, which may be a stranger's, lays nothing out.
        """
        shown: list[Any] = [
            {
                "id": one.id,
                "namespace": one.namespace,
                "content": neutralise(_beginning(one)),
                "created_at": iso(one.created_at),
                "tags": list(one.tags),
                "branch": one.git_branch,
            }
            for one in memories
        ]
        values: dict[str, Any] = {"memories": shown, "total_count": len(shown), "summary": standing}
        try:
            templates = self._templates_of(project)
            if templates.get(name).path:
                return ""
            text = frame([neutralise(templates.render(name, variables=values).output)])
        except CortexError as error:
            self._log("a template was not used", error)
            return ""
        return text if project.memories.count_tokens(text) <= tokens else ""


def _layouts(given: Sequence[str]) -> dict[str, str]:
    """Templates by the kind of event they lay out."""
    found = {}
    for one in given:
        kind, _, name = one.partition("=")
        if kind not in _TEMPLATE_KINDS or not name:
            raise ConfigurationError(
                f"hook_templates has {one[:80]!r}.",
                remedy=f"Give pairs such as prompt=my-template; the first is one of {', '.join(_TEMPLATE_KINDS)}.",
                field="hook_templates",
            )
        found[kind] = name
    return found


def _has_subject(text: str) -> bool:
    """Whether a prompt is about something: not a command of the client, not a remark of a few words."""
    text = text.strip()
    if not text or text.startswith(("/", "!")):
        return False
    return len({*leading_query_terms(text[:_QUERY_CHARACTERS])} - stop_words()) >= _FEWEST_TERMS


def _names(text: str, path: str) -> bool:
    """Whether a text names a file by its whole path; a single word without a dot may be any other."""
    return bool(re.search(rf"(?<![\w/.-])(?:\./)?{re.escape(path)}(?![\w/-]|\.\w)", text)) and not path.isidentifier()


def _is_near(memory: Memory, branch: Branch | None, here: str | None) -> bool:
    return bool((branch and memory.branch_id == branch.id) or (here and memory.git_branch == here))


def _beginning(memory: Memory) -> str:
    text = memory.summary or memory.content
    return text if len(text) <= LONGEST_QUOTE else f"{text[:LONGEST_QUOTE].rstrip()}…"


def _snippet_of(content: str) -> Callable[..., str]:
    return partial(snippet, content, span=Chunk(0, len(content)), words=None, length=LONGEST_QUOTE)
