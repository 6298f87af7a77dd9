"""Reads the turns of sessions in the background, and stages what is worth keeping; `Review` decides about it.

What is staged is a memory with the status `pending`, on the git branch of its turn, with its source (client, session
and turn) and its confidence as a tag. What says nothing new is left out: a session that only repeats what it was given
adds nothing.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...core.clock import in_utc, iso
from ...core.errors import Conflict, CortexError, LLMError
from ...core.files import exclusive_lock
from ...core.memory.comparison.conflicts import conflict, differences, judge
from ...core.memory.comparison.statements import Statement, read_statement
from ...core.memory.service import Memories
from ...core.paths import read_whole
from ...core.records import (
    CONFIDENCE_TAG,
    FETCHED_TAG,
    FOUND_BY_MODEL_TAG,
    SESSION_TAG,
    STAGED_TAG,
    Contradiction,
    Memory,
    NewMemory,
)  # fmt: skip
from ...core.security.quoting import without_unseen
from ...session import ProjectSession, ProjectSessions
from ...texts.reader import all_words
from .front import log_line
from .gate import Passage, SessionState, default_gate
from .turns import RawTurn, forget_turns, read_turns

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ...core.llm.client import LanguageModel

__all__ = ["ImportedTurnReader", "Reading", "Review", "Staged", "TurnReader"]

_AT_ONCE = 50  # turns between two savings of the position
_IMPORTED_AT_ONCE = 10  # the same of imported ones, where calls go first in between
_MOST_TURNS = 5_000  # of one call
_MOST_SESSIONS = 200
_MOST_STATE = 64_000_000  # bytes
_NEAR = 6  # memories that a passage is compared with
_CONTAINED = 0.8  # share of a passage's words that a memory has, from which on it says nothing new
_LONGEST_SOURCE = 200
_NOT_KEPT = {"program": "", "failure": "", "changed": []}  # of the state of a session: its texts
_LISTED = 500
_ROLES = ("user", "assistant")


@dataclass(frozen=True, slots=True)
class Reading:
    """How many turns were read, the memories that were staged, and whether turns are left to read."""

    turns: int = 0
    staged: tuple[Memory, ...] = ()
    more: bool = False


class TurnReader:
    """Reads on in the spool of a home, one process at a time. `project` finds the project at a folder."""

    def __init__(self, sessions: ProjectSessions, project: Callable[[str], ProjectSession | None]) -> None:
        self._home = sessions.settings.home
        self._key = sessions.key
        self._embed = sessions.backend.embed
        self._project = project
        self._model = sessions.model if sessions.settings.hook_model else lambda: None
        self._states: dict[str, SessionState] = {}
        # What failed and then succeeded before an answer, by the turn of the answer.
        self._failures: dict[str, str] = {}
        # Answers before which a tool brought something from outside.
        self._fetched: set[str] = set()

    def read(self, pause: Callable[[], bool] = lambda: True, most: int = _MOST_TURNS) -> Reading:
        """Read turns that nobody has read. `pause` is called before each and may wait; False ends the reading."""
        folder = self._home / "hooks"
        if not folder.is_dir():
            return Reading()
        with exclusive_lock(folder / "reading.lock", "", wait=False) as held:
            return self._read(pause, most) if held else Reading()

    def _read(self, pause: Callable[[], bool], most: int) -> Reading:
        position = self._load()
        count, staged = 0, list[Memory]()
        found: list[tuple[RawTurn, Passage]] = []
        turns: list[RawTurn] = []
        model = self._model()
        for after, turn in read_turns(self._home, position, self._key):
            if count == most or not pause():
                break
            found += ((turn, passage) for passage in self._passages(turn))
            turns.append(turn)
            position, count = after, count + 1
            if len(turns) == _AT_ONCE:
                found, model = self._by_model(model, turns, found)
                staged += self._stage(found)
                found, turns = [], []
                self._save(position)
        if count:
            found, model = self._by_model(model, turns, found)
            staged += self._stage(found)
            self._save(position)
            forget_turns(self._home, position)
        return Reading(count, tuple(staged))

    def _by_model(
        self, model: LanguageModel | None, turns: Sequence[RawTurn], found: list[tuple[RawTurn, Passage]]
    ) -> tuple[list[tuple[RawTurn, Passage]], LanguageModel | None]:
        """The passages that a language model finds; if it fails, those of the gate, and no model for this reading."""
        if model is None or not turns:
            return found, model
        from .model_reading import read_by_model

        try:
            return read_by_model(model, turns, found), model
        except LLMError as error:
            self._log("the language model did not read the turns", error)
            return found, None

    def _log(self, what: str, error: Exception) -> None:
        log_line(self._home, f"{what} ({type(error).__name__})")

    def _passages(self, turn: RawTurn) -> list[Passage]:
        """What the gate finds worth keeping of a turn."""
        session = f"{turn.client}:{turn.session}"
        state = self._states.pop(session, None) or SessionState()
        self._states[session] = state
        while len(self._states) > _MOST_SESSIONS:
            del self._states[next(iter(self._states))]
        if turn.role == "assistant" and (repaired := state.repaired()):
            self._failures[turn.id] = repaired
        if turn.role == "assistant" and state.fetched:
            self._fetched.add(turn.id)
        found = default_gate().read(turn, state)
        if turn.role == "event" and turn.event == "end":
            self._states.pop(session, None)
        return found

    # -- staging ---------------------------------------------------------------------------------

    def _stage(self, found: Sequence[tuple[RawTurn, Passage]]) -> list[Memory]:
        staged = []
        failures, self._failures = self._failures, {}
        fetched, self._fetched = self._fetched, set()
        vectors = self._embed([passage.text for _, passage in found]) if found else ()
        for (turn, passage), vector in zip(found, vectors, strict=True):
            try:
                project = self._project(turn.cwd)
                if project and not self._is_known(project.memories, passage.text, vector, turn.given):
                    failure = failures.get(turn.id, "") if passage.namespace == "learnings" else ""
                    item = _new_memory(turn, passage, failure, fetched=turn.id in fetched)
                    (memory,) = project.memories.capture_many([item])
                    staged.append(memory)
            except CortexError as error:  # a text that is refused is not kept; a folder may be gone
                self._log("a passage was not kept", error)
        return staged

    def _is_known(self, memories: Memories, text: str, vector: NDArray[np.float32], given: Sequence[str]) -> bool:
        """Whether a memory says the same or more, and nothing in the text speaks against it."""
        near = {hit.memory.id: hit.memory for hit in memories.related(text, _NEAR, mode="hybrid", filter="kind:note")}
        near |= memories.visible([one for one in given if one not in near])
        if not near:
            return False
        vectors = memories.vectors(list(near))
        said, words = read_statement(text), all_words(text)
        for id, memory in near.items():
            other = read_statement(memory.content)
            cosine = float(vectors[id] @ vector) if id in vectors else 0.0
            contained = len(words & all_words(memory.content)) >= _CONTAINED * max(1, len(words))
            if judge(other, said, cosine).same or (contained and not _speaks_against(other, said)):
                return True
        return False

    # -- the position ----------------------------------------------------------------------------

    @property
    def _file(self) -> Path:
        return self._home / "hooks" / "reading.json"

    def _load(self) -> str:
        """The position behind what was read. What is known of open sessions comes from the last process."""
        try:
            content: dict[str, Any] = json.loads(read_whole(self._file, _MOST_STATE))
            if not self._states:
                self._states = {session: SessionState(**state) for session, state in content["sessions"].items()}
            return str(content["position"])
        except FileNotFoundError:
            return ""
        except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
            self._log("the position in the turns was not read", error)
            return ""

    def _save(self, position: str) -> None:
        states = {session: asdict(state) | _NOT_KEPT for session, state in self._states.items()}
        draft = self._file.with_name(f".reading-{os.getpid()}")
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            json.dump({"position": position, "sessions": states}, file)
        draft.replace(self._file)


def _speaks_against(known: Statement, said: Statement) -> bool:
    """Whether a text has another value in the place of a known one, or is a contradiction otherwise.

    A value that only one of them has says nothing: the text may repeat a part of the memory.
    """
    return any(one.left and one.right for one in differences(known, said)) or bool(conflict(known, said, 1.0))


def _new_memory(turn: RawTurn, passage: Passage, failure: str, *, fetched: bool) -> NewMemory:
    return NewMemory(
        # A review shows all of the text.
        content=without_unseen(f"{passage.text}\nSeen as: {failure}" if failure else passage.text),
        namespace=passage.namespace,
        tags=(STAGED_TAG, *_confidence_tag(passage.confidence), *((FETCHED_TAG,) if fetched else ())),
        source=f"{turn.client}/{turn.session}/{turn.turn or turn.id}"[:_LONGEST_SOURCE],
        git_branch=turn.git_branch or None,
        status="pending",
        created_at=_moment(turn.at),
        # A process that was killed reads the same turn again.
        idempotency_key=f"turn-{turn.id}-{passage.text[:60]}",
    )


def _moment(text: str) -> datetime | None:
    """When a turn was said; of an imported one that may be long ago."""
    try:
        return in_utc(datetime.fromisoformat(text))
    except ValueError:
        return None


def _confidence_tag(confidence: float | None) -> tuple[str, ...]:
    return (FOUND_BY_MODEL_TAG,) if confidence is None else (f"{CONFIDENCE_TAG}{round(100 * confidence)}",)


class ImportedTurnReader(TurnReader):
    """Reads on in the turns that were imported into a project.

    The position is kept in the store for each project, so that a reading that is stopped or killed goes on from there.
    """

    def __init__(self, sessions: ProjectSessions, project: ProjectSession) -> None:
        super().__init__(sessions, lambda _folder: project)
        self._store = sessions.store
        self._space = project.memories.place.space("project", "turn")
        self._fact = f"turns-read:{project.id}"

    def read_on(self, stop: Callable[[], bool], most: int, seconds: float) -> Reading:
        """Read turns that were not read yet, until there are none, or `most`, or the time is over."""
        folder = self._home / "hooks"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        until = time.monotonic() + seconds
        with exclusive_lock(folder / "imported.lock", "", wait=False) as held:
            count, staged = 0, list[Memory]()
            after, more = self._load_position() if held else 0, True
            while held and count < most and time.monotonic() < until and not stop():
                with self._store.database.read() as session:
                    nums = self._store.memories.numbers_after(
                        session, self._space, after, min(_IMPORTED_AT_ONCE, most - count)
                    )
                    rows = self._store.memories.by_numbers(session, self._space, nums)
                if not nums:
                    more = False
                    break
                turns = [_imported_turn(memory) for _, _, _, memory in rows if memory.status == "active"]
                read = [(turn, passage) for turn in turns if turn.role in _ROLES for passage in self._passages(turn)]
                staged += self._stage(read)
                after, count = nums[-1], count + len(nums)
                self._save_position(after)
        return Reading(count, tuple(staged), more)

    def _load_position(self) -> int:
        with self._store.database.read() as session:
            value = self._store.settings.get(session, self._fact)
        known: dict[str, Any] = json.loads(value) if value else {"after": 0, "sessions": {}}
        if not self._states:
            self._states = {name: SessionState(**state) for name, state in known["sessions"].items()}
        return int(known["after"])

    def _save_position(self, after: int) -> None:
        states = {name: asdict(state) | _NOT_KEPT for name, state in list(self._states.items())[-20:]}
        with self._store.database.write() as session:
            self._store.settings.put(session, self._fact, json.dumps({"after": after, "sessions": states}))


def _imported_turn(memory: Memory) -> RawTurn:
    session = next((tag.removeprefix(SESSION_TAG) for tag in memory.tags if tag.startswith(SESSION_TAG)), "")
    return RawTurn(
        id=memory.id,
        client=memory.agent_id or "import",
        session=session,
        role=memory.role or "",
        text=memory.content,
        git_branch=memory.git_branch or "",
        at=iso(memory.created_at),
    )


@dataclass(frozen=True, slots=True)
class Staged:
    """A memory that waits for a review, how certain the gate was of it, and what it contradicts."""

    memory: Memory
    confidence: float | None
    conflicts: tuple[Contradiction, ...] = ()


class Review:
    """`cortex.review`: accept, change or drop what was staged in a project."""

    def __init__(self, memories: Memories, read: Callable[[], Reading]) -> None:
        self._memories = memories
        self._read = read

    def read(self) -> Reading:
        """Read the turns that nobody has read yet, now instead of in the background."""
        return self._read()

    def staged(self, limit: int = 50) -> list[Staged]:
        """What waits for a review, newest first."""
        found = self._memories.listed("kind:note status:pending", max(0, min(limit, _LISTED)))
        return [Staged(one, _confidence(one), self._memories.conflicts(one.id)) for one in found]

    def accept(self, ref: str, *, content: str | None = None, namespace: str | None = None) -> Memory:
        """Make a staged memory an ordinary one, with another text or namespace if given."""
        memory = self._pending(ref)
        tags = [tag for tag in memory.tags if not tag.startswith(CONFIDENCE_TAG)]
        return self._memories.update(memory.id, content=content, namespace=namespace, tags=tags, status="active")

    def drop(self, ref: str) -> Memory:
        """Delete a staged memory; `memories.restore` brings it back."""
        return self._memories.delete(self._pending(ref).id)

    def accept_all(self) -> list[Memory]:
        """Accept all that is staged, without what contradicts another memory."""
        return [self.accept(one.memory.id) for one in self.staged(_LISTED) if not one.conflicts]

    def _pending(self, ref: str) -> Memory:
        memory = self._memories.get(ref)
        if memory.status != "pending":
            raise Conflict(
                f"The memory {memory.id[:12]} does not wait for a review: it is {memory.status}.",
                remedy="See what does: cortex review",
                field="id",
            )
        return memory


def _confidence(memory: Memory) -> float | None:
    for tag in memory.tags:
        if tag.startswith(CONFIDENCE_TAG) and tag.removeprefix(CONFIDENCE_TAG).isdecimal():
            return int(tag.removeprefix(CONFIDENCE_TAG)) / 100
    return None
