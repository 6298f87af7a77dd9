"""Runs inside a peer's own environment: calls its library for the harness, one JSON line for each call.

    .make/peers/chromadb/bin/python bench/peer_worker.py chromadb FOLDER     # calls on stdin, answers on stdout
    .make/peers/chromadb/bin/python bench/peer_worker.py embedder            # vectors over loopback, in OpenAI's form

Only the standard library and the peer are imported. What is printed elsewhere goes to stderr.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Callable, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar, Protocol

Items = Sequence[tuple[str, str]]


class Library(Protocol):
    """A peer without a server: what the harness asks of it."""

    def store(self, items: Items) -> None: ...

    def search(self, query: str, limit: int) -> list[str]: ...

    def kept(self) -> list[str]: ...


class Chroma:
    """A persistent client with the default collection: its own all-MiniLM-L6-v2, and its default distance."""

    def __init__(self, folder: str) -> None:
        import chromadb
        from chromadb.config import Settings

        client = chromadb.PersistentClient(path=folder, settings=Settings(anonymized_telemetry=False))
        self.collection = client.get_or_create_collection("notes")

    def store(self, items: Items) -> None:
        self.collection.add(ids=[key for key, _ in items], documents=[text for _, text in items])

    def search(self, query: str, limit: int) -> list[str]:
        found: list[str] = self.collection.query(query_texts=[query], n_results=limit)["ids"][0]
        return found

    def kept(self) -> list[str]:
        ids: list[str] = self.collection.get(include=[])["ids"]
        return ids


class Mem0:
    """Qdrant in a folder and an embedder in OpenAI's form; texts are stored as they are, without a language model."""

    def __init__(self, folder: str) -> None:
        from mem0 import Memory

        embedder = {"api_key": "none", "openai_base_url": os.environ["PEER_EMBEDDER"], "embedding_dims": 384}
        self.memory = Memory.from_config(
            {
                "vector_store": {
                    "provider": "qdrant",
                    "config": {"path": f"{folder}/qdrant", "on_disk": True, "embedding_model_dims": 384},
                },
                "embedder": {"provider": "openai", "config": embedder},
                "llm": {"provider": "openai", "config": {"api_key": "none"}},
                "history_db_path": f"{folder}/history.db",
            }
        )

    def store(self, items: Items) -> None:
        for key, text in items:
            said = [{"role": "user", "content": text}]
            self.memory.add(said, user_id="bench", metadata={"key": key}, infer=False)

    def search(self, query: str, limit: int) -> list[str]:
        found = self.memory.search(query, filters={"user_id": "bench"}, top_k=limit)["results"]
        return [one["metadata"]["key"] for one in found]

    def kept(self) -> list[str]:
        found = self.memory.get_all(filters={"user_id": "bench"}, top_k=1_000_000)["results"]
        return [one["metadata"]["key"] for one in found]


class CortexFill:
    """Fills a home by `capture_many`; everything else is asked of the MCP server."""

    def __init__(self, folder: str) -> None:
        from cortex_py import Cortex, NewMemory

        self.cortex, self.new = Cortex.open(f"{folder}/home", project=folder), NewMemory

    def store(self, items: Items) -> None:
        self.cortex.memories.capture_many([self.new(content=text, namespace="learnings") for _, text in items])

    def search(self, query: str, limit: int) -> list[str]:
        return [hit.memory.id for hit in self.cortex.memories.recall(query, limit=limit).results]

    def kept(self) -> list[str]:
        raise NotImplementedError("asked of the server")


LIBRARIES: dict[str, Callable[[str], Library]] = {"chromadb": Chroma, "mem0": Mem0, "cortex": CortexFill}


def serve_calls(name: str, folder: str) -> None:
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # nothing but answers on stdout
    library = LIBRARIES[name](folder)
    for line in sys.stdin:
        call = json.loads(line)
        if "id" not in call:
            continue
        answer: dict[str, Any] = {"jsonrpc": "2.0", "id": call["id"]}
        try:
            method, given = call["method"], call.get("params") or {}
            answer["result"] = {} if method == "open" else getattr(library, method)(**given)
        except Exception as error:  # noqa: BLE001 - a failed call is an answer of the peer
            answer["error"] = {"message": f"{type(error).__name__}: {error}"[:500]}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()
    with contextlib.suppress(AttributeError):
        library.cortex.close()  # type: ignore[attr-defined]


class Embeddings(BaseHTTPRequestHandler):
    """`POST /v1/embeddings` with the vectors of all-MiniLM-L6-v2."""

    protocol_version = "HTTP/1.1"
    embed: ClassVar[Callable[[list[str]], Any]]

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        texts = asked["input"] if isinstance(asked["input"], list) else [asked["input"]]
        vectors = type(self).embed(texts)
        rows = [
            {"object": "embedding", "index": n, "embedding": [float(value) for value in vector]}
            for n, vector in enumerate(vectors)
        ]
        answer = {"object": "list", "model": "all-MiniLM-L6-v2", "data": rows, "usage": {"prompt_tokens": 0}}
        body = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nothing: the harness reads stdout."""


def serve_vectors() -> None:
    from chromadb.utils.embedding_functions import ONNXMiniLM_L6_V2

    model = ONNXMiniLM_L6_V2()
    model(["warm"])
    Embeddings.embed = staticmethod(model)  # type: ignore[assignment]
    server = ThreadingHTTPServer(("127.0.0.1", 0), Embeddings)
    print(server.server_address[1], flush=True)
    server.serve_forever()


if __name__ == "__main__":
    if sys.argv[1] == "embedder":
        serve_vectors()
    else:
        serve_calls(sys.argv[1], sys.argv[2])
