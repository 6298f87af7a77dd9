"""Keeps a folder and the memories of a space in step, both ways.

For each pair of a file and a memory it is known what both said when they were last in step. What changed on one side is
carried to the other. If both changed, the memory keeps its text, and what the file said becomes a memory of its own, so
that both stay visible. A run that was killed is repeated: what it had done is found done.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import PurePosixPath
from typing import Any, NamedTuple

from ....core.clock import Clock, to_micros
from ....core.echo import clean_text
from ....core.errors import Conflict, CortexError, StorageError
from ....core.memory.service import Memories
from ....core.records import Domain, NewMemory
from ....core.store.documents.document import Document
from ....core.store.store import Store
from ....texts.structured import one_line
from ..transfer.graph_intake import GraphIntake
from ..transfer.readers.notes import relations_in
from .layouts import AGENT_TAG, ClaudeMemory, Layout, Parsed, Shared, Vault, differing, plain
from .tree import NoteFile, NoteTree

__all__ = ["BridgeResult", "FolderBridge"]

CONFLICT_TAG = "bridge-conflict"
# From so many known files on, that more than half of them are gone is taken for an accident.
_FEW = 6
_BATCH = 400
_ATTEMPTS = 50
_MENTIONS = 12


@dataclass(slots=True)
class BridgeResult:
    """What one run moved. `conflicts` names files whose text became a memory of its own."""

    folder: str
    kind: str
    dry_run: bool = False
    taken: int = 0  # files that became memories
    changed: int = 0  # memories with a new version from their file
    deleted: int = 0  # memories whose file was deleted
    written: int = 0
    removed: int = 0  # files whose memory is gone or lost its rank
    in_step: int = 0
    conflicts: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


class _Entry(NamedTuple):
    """What a pair said when it was last in step: digests of both sides, and the state of the file."""

    path: str
    file: str
    memory: str
    size: int = -1
    modified: int = 0


@dataclass(slots=True)
class _State:
    revision: int = -1
    entries: dict[str, _Entry] = field(default_factory=dict)
    # The lines of the index, by file.
    lines: dict[str, str] = field(default_factory=dict)
    # Files that are no memory: blank ones, and those that cannot be taken.
    others: dict[str, tuple[int, int]] = field(default_factory=dict)


@dataclass(slots=True)
class _Seen:
    """A file of this run. `parsed` is None if it was not read, because it did not change."""

    file: NoteFile
    digest: str
    text: str | None = None
    parsed: Parsed | None = None


class FolderBridge:
    """One comparison of a folder with a space, and what follows from it.

    `key` is where the store keeps what was last in step; links in notes go into `graph`. Without `allow_deletes`, a
    folder that lost most of its files is filled again.
    """

    def __init__(
        self,
        store: Store,
        clock: Clock,
        memories: Memories,
        space: str,
        domain: Domain,
        layout: Layout,
        tree: NoteTree,
        key: str,
        graph: Callable[[], GraphIntake],
        *,
        dry_run: bool = False,
        allow_deletes: bool = False,
    ) -> None:
        self._store = store
        self._clock = clock
        self._memories = memories
        self._space = space
        self._domain: Domain = domain
        self._layout = layout
        self._tree = tree
        self._key = key
        self._graph = graph
        self._dry = dry_run
        self._allow_deletes = allow_deletes
        self._result = BridgeResult(str(tree.folder), layout.kind, dry_run)
        self._state = self._load()
        self._live: dict[str, Document] = {}
        self._seen: dict[str, _Seen] = {}
        # Files that are there and are not touched, because they could not be read.
        self._blocked: set[str] = set()
        # An index that holds nothing but the list.
        self._bare_index: str | None = None
        self._to_write: set[str] = set()
        # Files to remove, and the memories that are gone with them.
        self._to_remove: dict[str, tuple[NoteFile, str | None]] = {}

    def run(self) -> BridgeResult:
        """Bring both sides into step."""
        # Taken first: what changes during the run is looked at again by the next one.
        revision = self._memories.revision()
        listed = self._tree.files(self._refuse)
        if self._is_still(revision, listed):
            self._result.in_step = len(self._state.entries)
            return self._result
        self._live = self._shown()
        self._read(listed)
        pairs = self._pair()
        self._check_missing(pairs)
        for path, memory_id in pairs.items():
            self._decide(path, memory_id)
        index = self._layout if isinstance(self._layout, ClaudeMemory) else None
        if index is not None:
            self._take_lines(index)
        if self._dry:
            self._count_writes(index)
            return self._result
        self._save()
        if index is not None:
            self._write_claude(index)
        else:
            self._write(set(self._live) - self._paired_blocked())
        self._state.revision = revision
        self._save()
        return self._result

    def _is_still(self, revision: int, listed: Mapping[str, NoteFile]) -> bool:
        """Whether neither side changed since the last run."""
        state = self._state
        if revision != state.revision or self._result.left_out:
            return False
        known = {entry.path: (entry.size, entry.modified) for entry in state.entries.values()} | state.others
        return known == {path: one.stamp for path, one in listed.items()} and all(one[1] for one in known.values())

    # -- reading ---------------------------------------------------------------------------------

    def _read(self, listed: Mapping[str, NoteFile]) -> None:
        by_path = {entry.path: entry for entry in self._state.entries.values()}
        others: dict[str, tuple[int, int]] = {}
        for path, file in listed.items():
            entry = by_path.get(path)
            if entry is not None and entry.modified and (entry.size, entry.modified) == file.stamp:
                self._seen[path] = _Seen(file, entry.file)
                continue
            with self._reported(path):
                text = self._tree.read(path)
                parsed = self._layout.parse(path, text)
                if not parsed.shared.content.strip() and (entry is None or path != self._layout.index):
                    # Nothing was written yet. A known file that is empty is filled again.
                    if entry is None:
                        others[path] = file.stamp
                        self._bare_index = text if path == self._layout.index else self._bare_index
                    else:
                        self._seen[path] = _Seen(file, entry.file, text)
                    continue
                self._seen[path] = _Seen(file, parsed.shared.digest, text, parsed)
            if path not in self._seen and path not in others:
                self._blocked.add(path)
                others[path] = file.stamp if entry is None else (0, 0)
        self._state.others = {path: stamp for path, stamp in others.items() if path not in by_path}

    @contextmanager
    def _reported(self, path: str) -> Iterator[None]:
        """Report an error about a file, and leave both sides as they are."""
        try:
            yield
        except StorageError:
            raise
        except CortexError as error:
            self._refuse(path, error.message.rstrip("."))
        except OSError as error:
            self._refuse(path, error.strerror or "it cannot be read")

    def _refuse(self, path: str, reason: str) -> None:
        self._result.left_out.append(f"{clean_text(one_line(path), 500)}: {clean_text(one_line(reason), 300)}")

    # -- which memory a file is ------------------------------------------------------------------

    def _pair(self) -> dict[str, str | None]:
        """The memory of each file: by the id in it, its path, or its text where it was renamed; None for a new one."""
        entries, pairs = self._state.entries, dict[str, str | None]()
        claimed: set[str] = set()

        def claim(path: str, memory_id: str) -> None:
            pairs[path] = memory_id
            claimed.add(memory_id)

        by_path = {entry.path: one for one, entry in entries.items()}
        for path in self._blocked & by_path.keys():
            claimed.add(by_path[path])
        unread = {path for path, seen in self._seen.items() if seen.parsed is None}
        for path in unread:
            claim(path, by_path[path])
        named = {
            path: seen.parsed.memory_id
            for path, seen in self._seen.items()
            if seen.parsed is not None and seen.parsed.memory_id is not None
        }
        # Of two files with one id, the one at the known path is the memory, and the other a copy.
        for path, one in sorted(named.items(), key=lambda pair: by_path.get(pair[0]) != pair[1]):
            if one in (entries.keys() | self._live.keys()) and one not in claimed:
                claim(path, one)
        for path in self._seen.keys() - pairs.keys():
            if path in by_path and by_path[path] not in claimed:
                claim(path, by_path[path])
        missing = {entry.file: one for one, entry in entries.items() if one not in claimed}
        for path in sorted(self._seen.keys() - pairs.keys()):
            found = missing.get(self._seen[path].digest)
            if found is not None and found not in claimed:
                claim(path, found)
        return {path: pairs.get(path) for path in sorted(self._seen)}

    def _check_missing(self, pairs: Mapping[str, str | None]) -> None:
        """Delete the memories whose files were deleted; fill the folder again if most of it vanished at once."""
        paired = {one for one in pairs.values() if one is not None}
        kept = {one for one, entry in self._state.entries.items() if entry.path in self._blocked}
        missing = [one for one in self._state.entries if one not in paired and one not in kept]
        unchanged = [
            one for one in missing if one in self._live and self._memory_digest(one) == self._state.entries[one].memory
        ]
        many = len(self._state.entries) >= _FEW and 2 * len(unchanged) > len(self._state.entries)
        if many and not self._allow_deletes:
            self._result.notes.append(
                f"{len(unchanged)} of {len(self._state.entries)} files are gone. They are written again; "
                "--allow-deletes deletes their memories instead."
            )
            unchanged = []
        for one in missing:
            if one in unchanged:
                self._result.deleted += 1
                if not self._dry:
                    self._memories.delete(one)
                del self._live[one]
            del self._state.entries[one]

    # -- what to do with a pair ------------------------------------------------------------------

    def _decide(self, path: str, memory_id: str | None) -> None:
        seen = self._seen[path]
        base = self._state.entries.get(memory_id) if memory_id is not None else None
        memory = self._live.get(memory_id) if memory_id is not None else None
        if memory_id is None or memory is None:
            if base is not None and seen.digest == base.file:
                # Its memory was deleted, replaced or archived here. Known until the file is gone: a run that is
                # killed before must not take the file for a new one.
                self._to_remove[path] = (seen.file, memory_id)
                self._result.removed += 1
                return
            if memory_id is not None:
                self._state.entries.pop(memory_id, None)
            self._take(path, seen)
            return
        if seen.parsed is None and seen.text is not None:
            # It was emptied, by accident or by a crash of the machine.
            self._keep(memory_id, path, seen, memory="")
            return
        file_changed = base is None or seen.digest != base.file
        memory_changed = base is None or self._memory_digest(memory_id) != base.memory
        changes = self._changes(path, memory) if file_changed else {}
        if base is None and changes.keys() <= {"summary"}:
            # A line that describes the file, and may be the one that was made for an earlier text.
            changes = {}
        if not changes:
            self._keep(memory_id, path, seen, memory=base.memory if base and memory_changed else None)
            self._result.in_step += not memory_changed
        elif not memory_changed:
            self._update(path, memory_id, memory, changes)
        elif self._capture_copy(path, seen):
            # Written with the text of the memory, because that is what differs from before.
            self._keep(memory_id, path, seen, memory="")

    def _changes(self, path: str, memory: Document) -> dict[str, Any]:
        parsed = self._seen[path].parsed
        if parsed is None:
            return {}
        known = self._layout.shared(memory)
        if path == self._layout.index:
            known = Shared(known.content)
        if not plain(parsed.shared.content):
            # The free text of an index was removed.
            return {"content": ""}
        return differing(parsed.shared, known)

    def _memory_digest(self, memory_id: str) -> str:
        return self._layout.shared(self._live[memory_id]).digest

    def _keep(self, memory_id: str, path: str, seen: _Seen, *, memory: str | None = None) -> None:
        """Note that a file and its memory are a pair; `memory` is what the file is known to say, if it is behind."""
        digest = self._memory_digest(memory_id) if memory is None else memory
        self._state.entries[memory_id] = _Entry(path, seen.digest, digest, *seen.file.stamp)

    def _update(self, path: str, memory_id: str, memory: Document, changes: dict[str, Any]) -> None:
        """Make what a file says the next version of its memory."""
        seen = self._seen[path]
        if changes.get("content") == "":
            self._result.deleted += 1
            if not self._dry:
                self._memories.delete(memory_id)
            del self._live[memory_id]
            self._state.entries.pop(memory_id, None)
            return
        self._result.changed += 1
        if self._dry:
            self._keep(memory_id, path, seen)
            return
        with self._reported(path):
            self._memories.update(memory_id, expected_version=memory.data["version"], **changes)
            self._reload(memory_id)
            self._keep(memory_id, path, seen)
            self._relate(path, seen)
            return
        self._result.changed -= 1
        self._blocked.add(path)

    def _take(self, path: str, seen: _Seen) -> None:
        """Make a memory of a file."""
        if seen.parsed is None:
            return
        self._result.taken += 1
        if self._dry:
            return
        with self._reported(path):
            memory_id = self._captured(self._item(path, seen.parsed), f"{path}:{seen.digest}")
            self._keep(memory_id, path, seen)
            if seen.parsed.memory_id not in (None, memory_id):
                # It names the id of another memory, of which it is a copy, or of one that is gone.
                self._to_write.add(memory_id)
            self._relate(path, seen)
            return
        self._result.taken -= 1
        self._blocked.add(path)

    def _capture_copy(self, path: str, seen: _Seen) -> bool:
        """Keep what a file says as a memory of its own, because its memory was changed too."""
        parsed = seen.parsed
        if parsed is None:
            return False
        self._result.conflicts.append(path)
        if self._dry:
            return True
        with self._reported(path):
            item = self._item(path, parsed)
            tags = tuple(dict.fromkeys((*item.tags, CONFLICT_TAG)))
            self._captured(replace(item, tags=tags), f"conflict:{path}:{seen.digest}")
            return True
        self._result.conflicts.pop()
        self._blocked.add(path)
        return False

    def _captured(self, item: NewMemory, key: str) -> str:
        """Capture a text; a run that was killed after it finds the same memory again."""
        for attempt in range(_ATTEMPTS):
            # A memory with this key may have been deleted since: the same text is a new one then.
            digest = sha256(f"{key}:{attempt}".encode("utf-8", "replace")).hexdigest()[:32]
            (memory,) = self._memories.capture_many([replace(item, idempotency_key=f"{self._key}:{digest}")])
            self._reload(memory.id)
            if memory.id in self._live and memory.id not in self._state.entries:
                return memory.id
        raise Conflict("It was captured and deleted too often.", remedy="Change the text.")

    def _reload(self, memory_id: str) -> None:
        self._live.pop(memory_id, None)
        self._live |= self._shown(memory_id)

    def _relate(self, path: str, seen: _Seen) -> None:
        if seen.parsed is None or not isinstance(self._layout, Vault):
            return
        if found := relations_in(seen.parsed.shared.content, PurePosixPath(path).stem):
            self._graph().relate((), found)

    # -- writing ---------------------------------------------------------------------------------

    def _paired_blocked(self) -> set[str]:
        return {one for one, entry in self._state.entries.items() if entry.path in self._blocked}

    def _outdated(self, chosen: set[str]) -> list[str]:
        """The memories whose files have to be written."""
        entries = self._state.entries
        return sorted(
            one
            for one in chosen
            if one in self._to_write or one not in entries or self._memory_digest(one) != entries[one].memory
        )

    def _count_writes(self, index: ClaudeMemory | None) -> None:
        waiting = set(self._outdated(set(self._live) - self._paired_blocked()))
        self._result.written = len(waiting) if index is None else min(len(waiting), 200)

    def _write(self, chosen: set[str]) -> None:
        outdated = self._outdated(chosen)
        mentions = self._mentions(outdated) if isinstance(self._layout, Vault) else {}
        for one in outdated:
            entry = self._state.entries.get(one)
            path = entry.path if entry else self._new_path(self._live[one])
            with self._reported(path):
                seen = self._seen.get(path) if entry else None
                before = None
                if seen is not None:
                    before = seen.text if seen.text is not None else self._tree.read(path)
                text = self._layout.render(self._live[one], mentions.get(one, ()), before)
                if text != before:
                    file = self._tree.write(path, text, seen.file if seen else None)
                    self._result.written += 1
                else:
                    file = seen.file if seen is not None else self._tree.write(path, text, None)
                digest = self._layout.parse(path, text).shared.digest
                self._state.entries[one] = _Entry(path, digest, self._memory_digest(one), *file.stamp)
        for path, (file, memory_id) in self._to_remove.items():
            with self._reported(path):
                self._tree.remove(path, file)
                if memory_id is not None:
                    self._state.entries.pop(memory_id, None)
        self._to_remove.clear()

    def _new_path(self, memory: Document) -> str:
        used = {entry.path.casefold() for entry in self._state.entries.values()}
        for whole_id in (False, True):
            path = self._layout.name(memory, whole_id=whole_id)
            if path.casefold() not in used and self._tree.is_free(path):
                return path
        stem = path.removesuffix(".md")
        return next(
            name
            for n in range(2, 10_000)
            if (name := f"{stem}-{n}.md").casefold() not in used and self._tree.is_free(name)
        )

    # -- the memory folder of Claude Code --------------------------------------------------------

    def _index_id(self, layout: ClaudeMemory) -> str | None:
        return next((one for one, entry in self._state.entries.items() if entry.path == layout.index), None)

    def _take_lines(self, layout: ClaudeMemory) -> None:
        """Take changed lines of the list as summaries, unless the memory was changed too."""
        seen, text = self._seen.get(layout.index), self._bare_index
        if seen is not None:
            text = seen.text if seen.text is not None else self._tree.read(layout.index)
        if text is None:
            return
        by_path = {entry.path: one for one, entry in self._state.entries.items()}
        for path, line in layout.entries(text).items():
            one, former = by_path.get(path), self._state.lines.get(path)
            if one is None or one not in self._live or former is None or line == former:
                continue
            if layout.line(path, self._live[one]) != former or not layout.said(line):
                continue
            self._result.changed += 1
            if not self._dry:
                with self._reported(path):
                    self._memories.update(one, summary=layout.said(line))
                    self._reload(one)

    def _write_claude(self, layout: ClaudeMemory) -> None:
        free_id = self._split_free(layout)
        free = plain(self._live[free_id].data["content"]) if free_id else ""
        ranked = [one for one in layout.rank(list(self._live.values())) if one.key != free_id]
        entries = self._state.entries
        named = layout.linked(free)
        paths: dict[str, str] = {}
        for one in ranked[: 2 * _BATCH]:
            paths[one.key] = entries[one.key].path if one.key in entries else self._new_path(one)
        index = layout.build_index(free, [(paths[one.key], one) for one in ranked[: 2 * _BATCH]])
        chosen = {
            one.key
            for one in ranked
            if AGENT_TAG in one.data["tags"]
            or (one.key in paths and (paths[one.key] in index.lines or _is_named(paths[one.key], named)))
        }
        retired = {one: entry for one, entry in entries.items() if one in self._live and one not in (*chosen, free_id)}
        for memory_id, entry in retired.items():
            if entry.path in self._seen and entry.path not in self._blocked:
                # Its memory stays; it only has no line here. Forgotten before the file goes, so that a run that is
                # killed in between does not take that for a deletion.
                self._to_remove[entry.path] = (self._seen[entry.path].file, None)
                self._result.removed += 1
                del entries[memory_id]
        self._save()
        self._write(chosen - self._paired_blocked())
        self._write_index(layout, index.text, free_id, free)
        self._state.lines = dict(index.lines)

    def _split_free(self, layout: ClaudeMemory) -> str | None:
        """The memory of the free text of the index; what does not fit into the index becomes a memory of its own."""
        free_id = self._index_id(layout)
        if free_id is None or free_id not in self._live or layout.index in self._blocked:
            return None
        content = plain(self._live[free_id].data["content"])
        head, tail = layout.fit(content)
        if plain(tail):
            item = replace(self._item(layout.index, Parsed(Shared(tail))), tags=(AGENT_TAG,))
            # First the rest, then the beginning: a run that is killed in between leaves both.
            self._captured(item, f"rest:{Shared(tail).digest}")
            if plain(head):
                version = self._live[free_id].data["version"]
                self._memories.update(free_id, content=plain(head), expected_version=version)
            self._reload(free_id)
        return free_id

    def _write_index(self, layout: ClaudeMemory, text: str, free_id: str | None, free: str) -> None:
        path = layout.index
        if path in self._blocked:
            return
        seen = self._seen.get(path)
        with self._reported(path):
            file = seen.file if seen is not None else None
            before = self._bare_index
            if seen is not None:
                before = seen.text if seen.text is not None else self._tree.read(path)
            if file is None and path in self._state.others:
                file = self._tree.known(path)
            if text and text != before:
                file = self._tree.write(path, text, file)
                self._result.written += 1
            if free_id is not None and file is not None:
                digest = Shared(free).digest
                self._state.entries[free_id] = _Entry(path, digest, self._memory_digest(free_id), *file.stamp)
            elif file is not None:
                self._state.others[path] = file.stamp

    # -- the store -------------------------------------------------------------------------------

    def _load(self) -> _State:
        with self._store.database.read() as session:
            value = self._store.settings.get(session, self._key)
        if not value:
            return _State()
        known: dict[str, Any] = json.loads(value)
        return _State(
            known["revision"],
            {one: _Entry(*entry) for one, entry in known["entries"].items()},
            known["lines"],
            {path: (stamp[0], stamp[1]) for path, stamp in known["others"].items()},
        )

    def _save(self) -> None:
        # Not `dataclasses.asdict`, which makes objects of the entries.
        value = {name: getattr(self._state, name) for name in ("revision", "entries", "lines", "others")}
        with self._store.database.write() as session:
            self._store.settings.put(session, self._key, json.dumps(value, separators=(",", ":")))

    def _shown(self, memory_id: str | None = None) -> dict[str, Document]:
        """The memories that a folder shows, or one of them: in use, not replaced, not expired."""
        now, documents = to_micros(self._clock.now()), self._store.documents
        with self._store.database.read() as session:
            found: Iterable[Document] = documents.scan(session, self._space, ["memory"])
            if memory_id is not None:
                found = documents.by_keys(session, self._space, "memory", [memory_id])
            return {
                one.key: one
                for one in found
                if one.data["status"] == "active"
                and one.data["superseded_by"] is None
                and (one.data["expires_at"] is None or one.data["expires_at"] > now)
            }

    def _mentions(self, ids: Sequence[str]) -> dict[str, list[str]]:
        """The names of the entities that memories mention."""
        with self._store.database.read() as session:

            def read(kind: str, keys: Sequence[str]) -> Iterator[Document]:
                for low in range(0, len(keys), _BATCH):
                    yield from self._store.documents.by_keys(session, self._space, kind, keys[low : low + _BATCH])

            listed = {one.key: [each["entity_id"] for each in one.data["mentions"]] for one in read("mention", ids)}
            wanted = sorted({entity for all_of in listed.values() for entity in all_of})
            names = {one.key: str(one.data["name"]) for one in read("entity", wanted)}
        found: dict[str, list[str]] = {}
        for one, entities in listed.items():
            shown = dict.fromkeys(names[entity] for entity in entities if entity in names)
            found[one] = [name for name in shown if not set(name) & set("[]|#^\n")][:_MENTIONS]
        return found

    def _item(self, path: str, parsed: Parsed) -> NewMemory:
        return replace(self._layout.new(path, parsed), domain=self._domain)


def _is_named(path: str, named: set[str]) -> bool:
    return path in named or path.removesuffix(".md") in named
