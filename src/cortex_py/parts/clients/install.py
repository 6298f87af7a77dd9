"""`cortex install` and `cortex uninstall`: put Cortex into the configuration of clients, and take exactly that away.

A change is a `Step`: it says what it does, and does it. Files are replaced whole and atomically, keep their comments
and their mode, and the first version is kept beside them. What was done stands in `clients.json` in the home.

A stranger may have written the files of a project, links among them. There a step fails whose file, or the copy of it,
would lie outside the project, and the programs of clients are not run, since they would follow such a link.
"""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import tomllib
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...core.errors import CortexError, InvalidInput
from ...core.files import atomic_write
from ...core.paths import find_program, open_regular, read_regular
from .catalogue import BY_KEY, CATALOGUE, SERVER, Client, Scope, hook_entries, hook_lines, text_of
from .json_edit import add_item, put_source, read_json, remove, remove_empty, set_member, source_of
from .programs import cortex_words, hook_command, hook_words, is_hook_line, is_server, own_folder, run_words

__all__ = ["Setup", "SetupOutcome", "chosen_clients", "find_plugin", "read_members"]

_BACKUP = ".before-cortex"
_BEGIN, _END = "<!-- cortex:begin -->", "<!-- cortex:end -->"
_TOML_BEGIN, _TOML_END = "# cortex:begin", "# cortex:end"
_MDC = "---\ndescription: The project's lasting memory\nalwaysApply: true\n---\n\n"
# Clients keep histories in the user's files; one of a project is small, and a stranger may have written it.
_MOST_BYTES = {"user": 16 << 20, "project": 1 << 20}

# The text of a file without our part, given the text and what it was before `install`, if that is known.
_Removal = Callable[[str, str | None], str | None]


@dataclass(frozen=True, slots=True)
class SetupOutcome:
    """One thing that was done to a client, or would be. `state` is `done`, `unchanged`, `would` or `failed`."""

    client: str
    what: str
    state: str
    detail: str = ""


def chosen_clients(keys: Sequence[str]) -> list[Client]:
    """The clients by their keys, or all that are installed here; InvalidInput for an unknown one."""
    if not keys:
        return [one for one in CATALOGUE if one.is_installed()]
    found = []
    for key in keys:
        client = BY_KEY.get(key.strip().lower())
        if client is None:
            known = ", ".join(BY_KEY)
            raise InvalidInput(f"There is no client {key[:40]!r}.", remedy=f"Known: {known}.", field="client")
        found.append(client)
    return found


class Setup:
    """Sets up clients for one home, for the user or for one project."""

    def __init__(self, home: Path, project: Path, scope: Scope = "user", *, dry_run: bool = False) -> None:
        self.project = project
        self.scope: Scope = scope
        self._home = home
        self._dry = dry_run
        self._words = cortex_words()

    # -- what it writes ----------------------------------------------------------------------------

    def server_words(self, client: Client) -> list[str]:
        """The command by which a client starts the server."""
        names = ["--portable-names"] if client.portable_names else []
        return [*self._words, "serve", "--home", str(self._home), *names]

    def hook_words(self, client: Client, event: str) -> list[str]:
        """The command of a hook."""
        return hook_words(self._words, client.key, event, self._home)

    def hook_line(self, client: Client, event: str) -> str:
        """The command of a hook as it stands in a client's file."""
        return hook_command(self._words, client.key, event, self._home)

    def server_entry(self, client: Client) -> dict[str, Any] | None:
        """The entry of Cortex in a client's file of servers."""
        path = client.place(client.servers, self.scope, self.project)
        entry = read_members(path, client.servers_key, self.scope).get(SERVER)
        return entry if isinstance(entry, dict) else None

    def beside(self, client: Client, entry: dict[str, Any]) -> list[str]:
        """The names of what stands in an entry of our server and is not ours, such as variables."""
        wanted = {"type": "stdio", **self._wanted_entry(client)}
        return [name for name, value in entry.items() if value and wanted.get(name) != value]

    def _wanted_entry(self, client: Client) -> dict[str, Any]:
        command, *arguments = self.server_words(client)
        entry: dict[str, Any] = {"command": command, "args": arguments}
        if client.key == "copilot":
            return {"type": "local", **entry, "tools": ["*"]}
        return entry if client.key in ("gemini", "claude-desktop") else {"type": "stdio", **entry}

    # -- install ---------------------------------------------------------------------------------

    def install(self, client: Client) -> Iterator[SetupOutcome]:
        """Set up a client; what is set up already stays as it is. Beside a plugin all would come twice."""
        if plugin := find_plugin(client):
            detail = f"the plugin {plugin} is on and brings all; to set up without it, remove it first"
            yield SetupOutcome(client.name, "plugin", "unchanged", detail)
            return
        yield self._add_server(client)
        if path := client.place(client.hooks, self.scope, self.project):
            yield self._edit(client, path, "hooks", lambda text: self._with_hooks(client, text))
        if path := client.place(client.instructions, self.scope, self.project):
            rule = path.suffix == ".mdc"
            yield self._edit(client, path, "instructions", lambda text: _with_block(text, rule=rule))
        if path := client.place(client.skill, self.scope, self.project):
            yield self._edit(client, path, "skill", lambda _text: text_of("SKILL.md"))

    def _add_server(self, client: Client) -> SetupOutcome:
        path = client.place(client.servers, self.scope, self.project)
        if path is None:
            return SetupOutcome(client.name, "MCP server", "unchanged", f"it has no file for the scope {self.scope}")
        entry, wanted = self.server_entry(client), self._wanted_entry(client)
        if self.scope == "user" and entry and _words_of(entry) == self.server_words(client):
            beside = self.beside(client, entry)
            more = f", with more than ours: {', '.join(beside)[:200]}" if beside else ""
            return SetupOutcome(client.name, "MCP server", "unchanged", f"{path}{more}")
        if path.suffix == ".toml":
            is_free = entry is None or is_server(_words_of(entry))
            if is_free and (words := self._own_command(client, add=True)):
                return self._run(client, words)
            return self._edit(client, path, "MCP server", lambda text: self._with_table(client, text))
        if words := self._own_command(client, add=True):
            self._keep_former(client, path)
            done = self._run(client, words)
            if done.state == "failed":
                self._bring_back(client, path)
            return done
        return self._edit(
            client,
            path,
            "MCP server",
            lambda text: set_member(text, (client.servers_key, SERVER), wanted),
            ready=lambda: self._keep_former(client, path),
        )

    def _keep_former(self, client: Client, path: Path) -> None:
        """Note an entry `cortex` that is the user's own, for `uninstall` to bring back."""
        if self._dry:
            return
        place, entry = self._target(path), self.server_entry(client)
        noted = self._noted()
        known = noted.get(str(place), {})
        if entry is not None and is_server(_words_of(entry)):
            return
        former = source_of(self._read(place) or "", (client.servers_key, SERVER)) if entry is not None else None
        if known.get("former") != former:
            self._write_noted({**noted, str(place): {**known, "former": former}})

    def _bring_back(self, client: Client, path: Path) -> None:
        keys = (client.servers_key, SERVER)
        former = self._noted().get(str(self._target(path)), {}).get("former")
        if isinstance(former, str) and not self._dry and self.server_entry(client) is None:
            self._edit(client, path, "MCP server", lambda text: put_source(text, keys, former))

    def _own_command(self, client: Client, *, add: bool) -> list[str] | None:
        """The client's own command for servers of the user, where it is installed."""
        program = find_program(client.program) if client.program and self.scope == "user" else None
        server = self.server_words(client)
        if program is None:
            return None
        if client.key == "claude-code":
            scope = ["--scope", "user"]
            return [program, "mcp", *(("add", *scope, SERVER, "--", *server) if add else ("remove", *scope, SERVER))]
        if client.key == "codex":
            return [program, "mcp", *(("add", SERVER, "--", *server) if add else ("remove", SERVER))]
        if client.key == "vscode" and add:
            return [program, "--add-mcp", json.dumps({"name": SERVER, **self._wanted_entry(client)})]
        return None

    def _run(self, client: Client, words: list[str]) -> SetupOutcome:
        line = shlex.join([Path(words[0]).name, *words[1:]])
        if self._dry:
            return SetupOutcome(client.name, "MCP server", "would", f"run {line}")
        if client.key == "claude-code" and "add" in words:
            # It refuses a name that is there, even if the entry differs.
            run_words(self._own_command(client, add=False) or words, folder=own_folder())
        done = run_words(words, folder=own_folder())
        if done.code != 0:
            return SetupOutcome(client.name, "MCP server", "failed", f"{line}: {done.problem}")
        return SetupOutcome(client.name, "MCP server", "done", f"ran {line}")

    def _with_hooks(self, client: Client, text: str) -> str:
        entries = hook_entries(client.key, lambda event: self.hook_line(client, event))
        text = _without_hooks(client, text, entries) if text.strip() else text
        if client.key in ("cursor", "copilot") and source_of(text, ("version",)) is None:
            text = set_member(text, ("version",), 1)
        for event, entry in entries.items():
            text = add_item(text, ("hooks", event), entry)
        return text

    def _with_table(self, client: Client, text: str) -> str:
        command, *arguments = self.server_words(client)
        block = f"[{client.servers_key}.{SERVER}]\ncommand = {json.dumps(command)}\nargs = {json.dumps(arguments)}\n"
        others = _read_toml(_without_marked(text, _TOML_BEGIN, _TOML_END)).get(client.servers_key)
        if isinstance(others, dict) and SERVER in others:
            raise ValueError(f"it has a table [{client.servers_key}.{SERVER}] of its own")
        text = _with_marked(text, block, _TOML_BEGIN, _TOML_END)
        _read_toml(text)
        return text

    # -- uninstall -------------------------------------------------------------------------------

    def uninstall(self, client: Client) -> Iterator[SetupOutcome]:
        """Take away what `install` set up; what others wrote stays."""
        outcomes = [(client.place(client.servers, self.scope, self.project), self._remove_server(client))]
        for where, what, change in (
            (client.hooks, "hooks", lambda text, before: _hooks_removed(client, text, before)),
            (client.instructions, "instructions", _without_block),
            (client.skill, "skill", _without_skill),
        ):
            if path := client.place(where, self.scope, self.project):
                outcomes.append((path, self._edit(client, path, what, _nothing, removal=change)))
        failed = {path for path, outcome in outcomes if outcome.state == "failed"}
        for path in {path for path, outcome in outcomes if path and outcome.state == "done"} - failed:
            self._forget(self._target(path))
        yield from (outcome for _, outcome in outcomes)

    def _remove_server(self, client: Client) -> SetupOutcome:
        path = client.place(client.servers, self.scope, self.project)
        entry = self.server_entry(client)
        if path is None or entry is None:
            return SetupOutcome(client.name, "MCP server", "unchanged", "it is not there")
        if not is_server(_words_of(entry)):
            return SetupOutcome(client.name, "MCP server", "unchanged", f"{path}: the entry {SERVER} is not ours")
        if words := self._own_command(client, add=False):
            done = self._run(client, words)
            self._bring_back(client, path)
            return done
        if path.suffix == ".toml":
            change: _Removal = lambda text, _before: _without_marked(text, _TOML_BEGIN, _TOML_END)  # noqa: E731
        else:
            change = lambda text, before: self._server_removed(client, path, text, before)  # noqa: E731
        return self._edit(client, path, "MCP server", _nothing, removal=change)

    def _server_removed(self, client: Client, path: Path, text: str, before: str | None) -> str:
        keys = (client.servers_key, SERVER)
        former = self._noted().get(str(self._target(path)), {}).get("former")
        if isinstance(former, str):
            return put_source(text, keys, former)
        return _tidy(remove(text, keys), before, [keys[:1]])

    # -- files -----------------------------------------------------------------------------------

    def _edit(
        self,
        client: Client,
        path: Path,
        what: str,
        change: Callable[[str], str],
        *,
        removal: _Removal | None = None,
        ready: Callable[[], None] = lambda: None,
    ) -> SetupOutcome:
        """Change a file, or take our part of it away by a `removal`. Before a change, `ready` is called."""
        try:
            path = self._target(path)
            before = self._read(path)
            if removal:
                after = None if before is None else self._restored(path, before, removal)
            else:
                after = change(before or "")
            if after == before:
                return SetupOutcome(client.name, what, "unchanged", str(path))
            if self._dry:
                return SetupOutcome(client.name, what, "would", f"{'write' if before is None else 'change'} {path}")
            ready()
            if removal:
                self._take_away(path, before or "", after)
            else:
                self._put(path, before, after or "")
            return SetupOutcome(client.name, what, "done", str(path))
        except (OSError, ValueError, CortexError) as error:
            return SetupOutcome(client.name, what, "failed", f"{path} was not changed: {error}")

    def _target(self, path: Path) -> Path:
        """The file that is written. A link stays one: what it names is replaced, unless it leads out of the project."""
        try:
            if self.scope == "user":
                return path.resolve() if path.is_symlink() else path
            root, target = self.project.resolve(), path.resolve()
            places = (target, _backup_of(target).resolve())
        except RuntimeError as error:
            raise ValueError("its links go round in a circle") from error
        for place in places:
            if not place.is_relative_to(root):
                raise ValueError(f"a link leads out of the project, to {place}")
            if ".git" in (part.lower() for part in place.relative_to(root).parts):
                raise ValueError(f"a link leads into what git keeps, to {place}")
        return target

    def _read(self, path: Path) -> str | None:
        return _read_text(path, self.scope)

    def _restored(self, path: Path, text: str, change: _Removal) -> str | None:
        """The text of a file without our part; None for a file that then holds nothing and was not there before.

        Where nobody has changed anything but ours, it is what it was, to the last blank.
        """
        known = self._noted().get(str(path), {})
        original = "" if known.get("created") else self._original(path, known)
        after = change(text, original)
        if after is None:
            return None
        if after.strip() in ("", "{}"):
            if known.get("created"):
                return None
            if original is not None and original.strip() in ("", "{}"):
                return original
        is_as_left = known.get("digest") == _digest(text)
        return original if is_as_left and original is not None and original.split() == after.split() else after

    def _original(self, path: Path, known: dict[str, Any]) -> str | None:
        """What a file was before `install`; None if that is not known. A copy that we did not make is not taken."""
        data = read_regular(_backup_of(path), _MOST_BYTES[self.scope], follow=False) if known else None
        if data is None or known.get("kept", (digest := hashlib.sha256(data).hexdigest())) != digest:
            return None
        return data.decode("utf-8")

    def _put(self, path: Path, before: str | None, text: str) -> None:
        known = self._noted().get(str(path), {})
        created = known.get("created", before is None)
        kept = {name: known[name] for name in ("former", "kept") if name in known}
        backup = _backup_of(path)
        if not created and before is not None and not os.path.lexists(backup):
            self._write(backup, before, mode=0o600)
            kept["kept"] = _digest(before)
        elif "created" not in known:
            kept["kept"] = ""
        self._write(path, text)
        self._write_noted({**self._noted(), str(path): {**kept, "created": created, "digest": _digest(text)}})

    def _write(self, path: Path, text: str, mode: int = 0o644) -> None:
        self._check_still(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        self._check_still(path)
        with atomic_write(path) as file:
            file.write(text.encode())
            if os.name == "posix":
                present = path.lstat().st_mode & 0o777 if os.path.lexists(path) else mode
                os.chmod(file.fileno(), present)  # noqa: PTH101 - the draft has no other name here
            self._check_still(path)

    def _check_still(self, path: Path) -> None:
        """A link may have come into a project since the path was resolved; replacing a file follows none at its end."""
        if self.scope == "project" and self._target(path) != path:
            raise ValueError("a link has come in its place")

    def _take_away(self, path: Path, before: str, text: str | None) -> None:
        noted = self._noted()
        known = noted.get(str(path), {})
        if text is not None:
            self._write(path, text)
        else:
            self._check_still(path)
            path.unlink(missing_ok=True)
            if path.parent.name == "cortex" and not any(path.parent.iterdir()):
                path.parent.rmdir()
        if known:
            # What is left of ours in it is still known by the next step.
            digest = _digest(text) if text is not None and known.get("digest") == _digest(before) else ""
            self._write_noted({**noted, str(path): {**known, "digest": digest}})

    def _forget(self, path: Path) -> None:
        """Nothing of ours is left in a file: its first version needs no copy any more."""
        noted = self._noted()
        known = noted.pop(str(path), None)
        if known is None or self._dry:
            return
        if known.get("kept", "as versions before did"):
            with suppress(OSError):
                _backup_of(path).unlink()
        self._write_noted(noted)

    def _noted(self) -> dict[str, Any]:
        """By file: whether `install` made it, how it left it, the digest of the copy, and a former entry."""
        data = read_regular(self._home / "clients.json", _MOST_BYTES["user"])
        try:
            found = json.loads(data or b"{}")
        except (ValueError, RecursionError):
            return {}
        return {path: one for path, one in found.items() if isinstance(one, dict)} if isinstance(found, dict) else {}

    def _write_noted(self, noted: dict[str, Any]) -> None:
        self._home.mkdir(mode=0o700, parents=True, exist_ok=True)
        with atomic_write(self._home / "clients.json") as file:
            file.write(json.dumps(noted, indent=2).encode())


def _read_text(path: Path, scope: Scope) -> str | None:
    """The text of a client's file; None if there is none, an error if it is no regular file or too large."""
    try:
        with open_regular(path) as file:
            data = file.read(_MOST_BYTES[scope] + 1)
    except FileNotFoundError:
        return None
    if len(data) > _MOST_BYTES[scope]:
        raise ValueError(f"it has more than {_MOST_BYTES[scope] >> 20} MB")
    return data.decode("utf-8")


def read_members(path: Path | None, key: str, scope: Scope) -> dict[str, Any]:
    """The object under a key of a client's file; empty if there is none, or if the file cannot be read."""
    try:
        text = (_read_text(path, scope) if path else None) or ""
        found = (_read_toml(text) if path and path.suffix == ".toml" else read_json(text))[key]
    except (OSError, ValueError, LookupError, TypeError):
        return {}
    return found if isinstance(found, dict) else {}


def find_plugin(client: Client) -> str:
    """The name of the plugin of Cortex that is on in a client, for the user; empty if none is."""
    for name, state in read_members(client.plugins_file, client.plugins_key, "user").items():
        is_on = state.get("enabled", True) if isinstance(state, dict) else state
        if name.partition("@")[0] == SERVER and is_on is True:
            return name
    return ""


def _nothing(text: str) -> str:
    return text


def _backup_of(path: Path) -> Path:
    return path.with_name(path.name + _BACKUP)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _read_toml(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text.removeprefix("\ufeff"))
    except RecursionError as error:
        raise ValueError("it is nested too deep") from error


def _words_of(entry: dict[str, Any]) -> list[str]:
    """The command of an entry; nothing if it is not one of words."""
    words = [entry.get("command"), *(entry["args"] if isinstance(entry.get("args"), list) else ())]
    return words if all(isinstance(word, str) for word in words) else []


def _is_ours(hook: Any, client: str) -> bool:
    lines = hook_lines(hook)
    return bool(lines) and all(is_hook_line(line, client) for line in lines)


def _without_hooks(client: Client, text: str, kept: dict[str, dict[str, Any]]) -> str:
    """The text without our hooks. Items that are to be `kept`, and what a person put beside ours, stay."""
    content = read_json(text)
    if not isinstance(content, dict):
        raise ValueError("it is not an object")
    hooks = content.get("hooks")
    lists = hooks.items() if isinstance(hooks, dict) else ()
    for event, items in lists:
        numbered = [(number, one) for number, one in enumerate(items if isinstance(items, list) else ())]
        for number, item in reversed(numbered):
            if item == kept.get(event):
                continue
            inner = item.get("hooks") if isinstance(item, dict) else None
            inner = inner if isinstance(inner, list) else []
            ours = [place for place, one in enumerate(inner) if _is_ours(one, client.key)]
            if _is_ours(item, client.key) or (ours and len(ours) == len(inner)):
                text = remove(text, ("hooks", event, number))
                continue
            for place in reversed(ours):
                text = remove(text, ("hooks", event, number, "hooks", place))
    return text


def _hooks_removed(client: Client, text: str, before: str | None) -> str:
    if not text.strip():
        return text
    after = _without_hooks(client, text, {})
    if after == text:
        return text
    hooks, left = read_json(text)["hooks"], read_json(after)["hooks"]
    after = _tidy(after, before, [*(("hooks", event) for event in hooks if hooks[event] != left[event]), ("hooks",)])
    if client.key in ("cursor", "copilot") and not (before and source_of(before, ("version",))):
        left = {name: value for name, value in read_json(after).items() if (name, value) != ("version", 1)}
        # Hooks that were added since need it.
        came = left == (read_json(before) if before and before.strip() else {})
        after = remove(after, ("version",)) if came else after
    return after


def _tidy(text: str, before: str | None, made: Sequence[Sequence[str]]) -> str:
    """The text without the objects and lists that were made for our part: empty ones that were not there before."""
    for keys in made:
        if before is None or source_of(before, keys) is None:
            text = remove_empty(text, keys)
    return text


def _with_marked(text: str, block: str, begin: str, end: str) -> str:
    """The text with a block between marks: where it stood, or at the end."""
    line_end = "\r\n" if "\r\n" in text else "\n"
    block = line_end.join([begin, *block.strip().splitlines(), end])
    if place := _marked(text, begin, end):
        start, stop = place
        return text[:start] + block + (line_end if text[start:stop].endswith("\n") else "") + text[stop:]
    if not text:
        return block + line_end
    # After a last line without an end the block has none either, so that it can be taken away exactly.
    return text + line_end + block + (line_end if text.endswith("\n") else "")


def _without_marked(text: str, begin: str, end: str) -> str:
    place = _marked(text, begin, end)
    if place is None:
        return text
    start, stop = place
    head = text[:start]
    shorter = head.removesuffix("\n").removesuffix("\r")
    # The empty line before the block came with it, or the end of a last line that had none.
    came = shorter.endswith("\n") or not text[start:stop].endswith("\n")
    return (shorter if came else head) + text[stop:]


def _marked(text: str, begin: str, end: str) -> tuple[int, int] | None:
    """Where a block with its marks begins and ends."""
    start, place = None, 0
    for line in text.splitlines(keepends=True):
        if line.rstrip() == begin:
            start = place
        place += len(line)
        if line.rstrip() == end and start is not None:
            return start, place
    return None


def _with_block(text: str, *, rule: bool) -> str:
    if rule:
        return _MDC + text_of("instructions.md")
    return _with_marked(text, text_of("instructions.md"), _BEGIN, _END)


def _without_block(text: str, before: str | None) -> str | None:
    return before if text == _MDC + text_of("instructions.md") else _without_marked(text, _BEGIN, _END)


def _without_skill(text: str, before: str | None) -> str | None:
    """A skill that a person has changed stays."""
    return before if text == text_of("SKILL.md") else text
