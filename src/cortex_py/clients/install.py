"""`cortex install` and `cortex uninstall`: put Cortex into the configuration of clients, and take exactly that away.

A change is a `Step`: it says what it does, and does it. Files are replaced whole and atomically, keep their comments
and their mode, and the first version is kept beside them. What was done stands in `clients.json` in the home.
"""

from __future__ import annotations

import hashlib
import json
import shlex
import tomllib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from shutil import which
from typing import Any

from ..backup.files import atomic_write
from ..errors import InvalidInput
from .catalogue import CATALOGUE, SERVER, Client, Scope, find_client, hook_entries, text_of
from .json_edit import add_item, read_json, remove_items, remove_member, set_member
from .programs import cortex_words, hook_command, run_words

__all__ = ["Outcome", "Setup", "chosen_clients"]

_BACKUP = ".before-cortex"
_BEGIN, _END = "<!-- cortex:begin -->", "<!-- cortex:end -->"
_TOML_BEGIN, _TOML_END = "# cortex:begin", "# cortex:end"
_MDC = "---\ndescription: The project's lasting memory\nalwaysApply: true\n---\n\n"
_MOST_BYTES = 16 << 20


@dataclass(frozen=True, slots=True)
class Outcome:
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
        client = find_client(key.strip().lower())
        if client is None:
            known = ", ".join(one.key for one in CATALOGUE)
            raise InvalidInput(f"There is no client {key[:40]!r}.", remedy=f"Known: {known}.", field="client")
        found.append(client)
    return found


class Setup:
    """Sets up clients for one home, for the user or for one project."""

    def __init__(self, home: Path, project: Path, scope: Scope = "user", *, dry_run: bool = False) -> None:
        self._home = home
        self._project = project
        self._scope: Scope = scope
        self._dry = dry_run
        self._words = cortex_words()

    # -- install ---------------------------------------------------------------------------------

    def install(self, client: Client) -> Iterator[Outcome]:
        """Set up a client; what is set up already stays as it is."""
        yield self._add_server(client)
        if path := client.place(client.hooks, self._scope, self._project):
            yield self._edit(client, path, "hooks", lambda text: self._with_hooks(client, text))
        if path := client.place(client.instructions, self._scope, self._project):
            rule = path.suffix == ".mdc"
            yield self._edit(client, path, "instructions", lambda text: _with_block(text, rule=rule))
        if path := client.place(client.skill, self._scope, self._project):
            yield self._edit(client, path, "skill", lambda _text: text_of("SKILL.md"))

    def server_words(self, client: Client) -> list[str]:
        """The command by which a client starts the server."""
        names = ["--portable-names"] if client.portable_names else []
        return [*self._words, "serve", "--home", str(self._home), *names]

    def _add_server(self, client: Client) -> Outcome:
        path = client.place(client.servers, self._scope, self._project)
        if path is None:
            return Outcome(client.name, "MCP server", "unchanged", f"it has no file for the scope {self._scope}")
        command, *arguments = self.server_words(client)
        entry = self.server_entry(client, path)
        if entry and entry.get("command") == command and entry.get("args") == arguments:
            return Outcome(client.name, "MCP server", "unchanged", str(path))
        if words := self._own_command(client, add=True):
            return self._run(client, "MCP server", words)
        if path.suffix == ".toml":
            return self._edit(client, path, "MCP server", lambda text: self._with_table(client, text))
        wanted = self._wanted_entry(client)
        return self._edit(
            client, path, "MCP server", lambda text: set_member(text, (client.servers_key, SERVER), wanted)
        )

    def _wanted_entry(self, client: Client) -> dict[str, Any]:
        command, *arguments = self.server_words(client)
        entry: dict[str, Any] = {"command": command, "args": arguments}
        if client.key == "copilot":
            return {"type": "local", **entry, "tools": ["*"]}
        return entry if client.key in ("gemini", "claude-desktop") else {"type": "stdio", **entry}

    def server_entry(self, client: Client, path: Path) -> dict[str, Any] | None:
        """The entry of Cortex in a client's file of servers."""
        try:
            text = _read(path)
            found = tomllib.loads(text) if path.suffix == ".toml" else read_json(text)
            entry = found[client.servers_key][SERVER]
        except (OSError, ValueError, LookupError, TypeError):
            return None
        return entry if isinstance(entry, dict) else None

    def _own_command(self, client: Client, *, add: bool) -> list[str] | None:
        """The client's own command for servers, where it is installed and knows the scope."""
        program = which(client.program) if client.program else None
        server = self.server_words(client)
        if program is None:
            return None
        if client.key == "claude-code":
            scope = ["--scope", self._scope]
            return [program, "mcp", *(("add", *scope, SERVER, "--", *server) if add else ("remove", *scope, SERVER))]
        if client.key == "codex" and self._scope == "user":
            return [program, "mcp", *(("add", SERVER, "--", *server) if add else ("remove", SERVER))]
        if client.key == "vscode" and self._scope == "user" and add:
            return [program, "--add-mcp", json.dumps({"name": SERVER, **self._wanted_entry(client)})]
        return None

    def _run(self, client: Client, what: str, words: list[str]) -> Outcome:
        line = shlex.join([Path(words[0]).name, *words[1:]])
        if self._dry:
            return Outcome(client.name, what, "would", f"run {line}")
        if client.key == "claude-code" and "add" in words:
            # It refuses a name that is there, even if the entry differs.
            run_words(self._own_command(client, add=False) or words, folder=self._project)
        done = run_words(words, folder=self._project)
        if done.code != 0:
            return Outcome(client.name, what, "failed", f"{line}: {done.problem}")
        return Outcome(client.name, what, "done", f"ran {line}")

    def _with_hooks(self, client: Client, text: str) -> str:
        text = self._without_hooks(client, text) if text.strip() else text
        if client.key in ("cursor", "copilot"):
            text = set_member(text, ("version",), 1)
        entries = hook_entries(client.key, lambda event: hook_command(self._words, client.key, event, self._home))
        for event, entry in entries.items():
            text = add_item(text, ("hooks", event), entry)
        return text

    def _without_hooks(self, client: Client, text: str) -> str:
        content = read_json(text)
        if not isinstance(content, dict):
            raise ValueError("it is not an object")
        hooks = content.get("hooks", {})
        for event in hooks if isinstance(hooks, dict) else ():
            text = remove_items(text, ("hooks", event), lambda item: _is_ours(item, client.key), with_empty=1)
        return text

    def _with_table(self, client: Client, text: str) -> str:
        command, *arguments = self.server_words(client)
        block = f"[{client.servers_key}.{SERVER}]\ncommand = {json.dumps(command)}\nargs = {json.dumps(arguments)}\n"
        text = _without_marked(text, _TOML_BEGIN, _TOML_END)
        if f"[{client.servers_key}.{SERVER}]" in text:
            raise ValueError(f"it has a table [{client.servers_key}.{SERVER}] of its own")
        return _with_marked(text, block, _TOML_BEGIN, _TOML_END)

    # -- uninstall -------------------------------------------------------------------------------

    def uninstall(self, client: Client) -> Iterator[Outcome]:
        """Take away what `install` set up; what others wrote stays."""
        yield self._remove_server(client)
        if path := client.place(client.hooks, self._scope, self._project):
            yield self._edit(client, path, "hooks", lambda text: self._hooks_removed(client, text), remove=True)
        if path := client.place(client.instructions, self._scope, self._project):
            yield self._edit(client, path, "instructions", lambda text: _without_block(text), remove=True)
        if path := client.place(client.skill, self._scope, self._project):
            yield self._edit(client, path, "skill", _without_skill, remove=True)

    def _hooks_removed(self, client: Client, text: str) -> str:
        text = self._without_hooks(client, text)
        if client.key in ("cursor", "copilot") and read_json(text) == {"version": 1}:
            return ""
        return text

    def _remove_server(self, client: Client) -> Outcome:
        path = client.place(client.servers, self._scope, self._project)
        if path is None or self.server_entry(client, path) is None:
            return Outcome(client.name, "MCP server", "unchanged", "it is not there")
        if words := self._own_command(client, add=False):
            return self._run(client, "MCP server", words)
        if path.suffix == ".toml":
            return self._edit(
                client, path, "MCP server", lambda text: _without_marked(text, _TOML_BEGIN, _TOML_END), remove=True
            )
        keys = (client.servers_key, SERVER)
        return self._edit(client, path, "MCP server", lambda text: remove_member(text, keys, with_empty=1), remove=True)

    # -- files -----------------------------------------------------------------------------------

    def _edit(
        self, client: Client, path: Path, what: str, change: Callable[[str], str], *, remove: bool = False
    ) -> Outcome:
        try:
            # A link stays one: what it names is replaced.
            path = path.resolve() if path.is_symlink() else path
            before = _read(path)
            after = self._restored(path, before, change) if remove else change(before)
            if after == before or (remove and not path.exists()):
                return Outcome(client.name, what, "unchanged", str(path))
            if self._dry:
                return Outcome(client.name, what, "would", f"{'change' if path.exists() else 'write'} {path}")
            if remove or after is None:
                self._take_away(path, after)
            else:
                self._put(path, after)
            return Outcome(client.name, what, "done", str(path))
        except (OSError, ValueError) as error:
            return Outcome(client.name, what, "failed", f"{path} was not changed: {error}")

    def _restored(self, path: Path, text: str, change: Callable[[str], str]) -> str | None:
        """The text of a file without our part; None for a file that then holds nothing and was not there before.

        A file that nobody has changed since is put back as it was.
        """
        known = self._noted().get(str(path), {})
        backup = path.with_name(path.name + _BACKUP)
        if known.get("digest") == _digest(text):
            if known.get("created"):
                return None
            if backup.exists():
                return _read(backup)
        after = change(text) if text.strip() else text
        return None if after.strip() in ("", "{}") and (known.get("created") or not after) else after

    def _put(self, path: Path, text: str) -> None:
        noted = self._noted()
        created = noted.get(str(path), {}).get("created", not path.exists())
        backup = path.with_name(path.name + _BACKUP)
        if not created and not backup.exists():
            with atomic_write(backup) as copy:
                copy.write(path.read_bytes())
        self._write(path, text)
        self._write_noted({**noted, str(path): {"created": created, "digest": _digest(text)}})

    def _write(self, path: Path, text: str) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        mode = path.stat().st_mode & 0o777 if path.exists() else 0o644
        with atomic_write(path) as file:
            file.write(text.encode())
        path.chmod(mode)

    def _take_away(self, path: Path, text: str | None) -> None:
        if text is not None:
            self._write(path, text)
        else:
            path.unlink(missing_ok=True)
            if path.parent.name == "cortex" and not any(path.parent.iterdir()):
                path.parent.rmdir()
        path.with_name(path.name + _BACKUP).unlink(missing_ok=True)
        noted = self._noted()
        if text is not None and str(path) in noted:
            # What is left of ours in it is still known by the next step.
            noted[str(path)] = {**noted[str(path)], "digest": ""}
        else:
            noted.pop(str(path), None)
        self._write_noted(noted)

    def _noted(self) -> dict[str, Any]:
        """By file: whether `install` made it, and how it left it."""
        try:
            found = json.loads((self._home / "clients.json").read_text("utf-8"))
        except (OSError, ValueError):
            return {}
        return found if isinstance(found, dict) else {}

    def _write_noted(self, noted: dict[str, Any]) -> None:
        self._home.mkdir(mode=0o700, parents=True, exist_ok=True)
        with atomic_write(self._home / "clients.json") as file:
            file.write(json.dumps(noted, indent=2).encode())


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _read(path: Path) -> str:
    if not path.exists():
        return ""
    if not path.is_file() or path.stat().st_size > _MOST_BYTES:
        raise ValueError("it is not an ordinary text file")
    return path.read_bytes().decode("utf-8")


def _is_ours(item: Any, client: str) -> bool:
    """Whether an item of a list of hooks runs `cortex hook`."""
    text = json.dumps(item)
    return f" hook {client} " in text and "cortex" in text


def _with_marked(text: str, block: str, begin: str, end: str) -> str:
    text = _without_marked(text, begin, end)
    gap = "\n" if text else ""
    return f"{text}{gap}{begin}\n{block.strip()}\n{end}\n"


def _without_marked(text: str, begin: str, end: str) -> str:
    start = text.find(f"{begin}\n")
    stop = text.find(f"{end}\n", start)
    if start < 0 or stop < 0:
        return text
    # The line end before the block came with it.
    return text[:start].removesuffix("\n") + text[stop + len(end) + 1 :]


def _with_block(text: str, *, rule: bool) -> str:
    if rule:
        return _MDC + text_of("instructions.md")
    return _with_marked(text, text_of("instructions.md"), _BEGIN, _END)


def _without_block(text: str) -> str:
    return "" if text == _MDC + text_of("instructions.md") else _without_marked(text, _BEGIN, _END)


def _without_skill(text: str) -> str:
    """A skill that a person has changed stays."""
    return "" if text == text_of("SKILL.md") else text
