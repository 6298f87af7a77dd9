"""Relations that the syntax of TypeScript and Go shows: kinds, members, embedding, private methods, refusals."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from sample_project import commit, make_repository

from cases import each
from cortex_py import Cortex

QUEUE = """import {EventEmitter} from 'node:events'

export type EventName = 'active' | 'idle' | 'next'

export interface Store {
  get: () => number
  set(value: number): void
  reset(): void
}

export class Queue extends EventEmitter {
  #pending = 0

  #next(): void {
    this.#pending--
    this.tryToStart()
  }

  tryToStart(): boolean {
    return this.#pending === 0
  }
}
"""
CODEC = """package codec

type Encoder interface {
\tEncode(v map[string]any) ([]byte, error)
}

type Decoder interface {
\tDecode(b []byte, v map[string]any) error
}

type Codec interface {
\tEncoder
\tDecoder
}

type MissingError string

type Handler func() []string

type Writer struct {
\tmode os.FileMode
}

func New() *Writer {
\treturn &Writer{mode: os.FileMode(0o644)}
}

func (w *Writer) Size(alias string, key string) uint {
\treturn 1
}

func (w *Writer) Find(name string) error {
\tif name == "" {
\t\treturn MissingError(name)
\t}
\treturn nil
}
"""
URLS = """def build(*, port=None, host=""):
    if port and not host:
        raise ValueError("Can't build URL with a port but without a host")
    return host
"""
SHAPES = """LEVELS = ["low", "middle", "high"]


class Base:
    pass


class Left(Base):
    pass


class Right(Base):
    pass
"""
LOADER = """const timeout = parseInt(config.timeout, 10)

export function load(text) {
  try {
    return JSON.parse(text)
  } catch (e) {
    return null
  }
}

export function onStart(step) {
  steps.push(step)
}

export function start() {
  steps.forEach(step => step())
}
"""
SINK = """pub trait Sink: Send {
    fn put(&self);
}

pub fn close() {
    unreachable!()
}
"""
CRATE = """[package]
name = "sink"
version = "0.4.1"
rust-version = "1.71.0"
"""
MANIFEST = """{
  "name": "queue",
  "version": "5.0.1",
  "engines": {"node": ">=20"},
  "dependencies": {"a-one": "^1.0.0", "b-two": "^2.0.0"},
  "peerDependencies": {"react": ">=18.0.0"}
}
"""


@pytest.fixture(scope="module")
def cortex(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cortex]:
    folder = tmp_path_factory.mktemp("relations")
    make_repository(folder / "project")
    files = {"src/queue.ts": QUEUE, "codec.go": CODEC, "urls.py": URLS, "package.json": MANIFEST}
    files |= {"shapes.py": SHAPES, "src/loader.js": LOADER, "src/sink.rs": SINK, "crate/Cargo.toml": CRATE}
    commit(folder / "project", files, "first")
    with Cortex.open(folder / "home", project=folder / "project") as found:
        yield found


@each(
    "text",
    [
        "`Codec` embeds the `Encoder` and `Decoder` interfaces.",
        "`Store` is an interface.",
        "`Store` has three members.",
        "`#next` calls `tryToStart`.",
        "`Queue` is a subclass of EventEmitter.",
        "`New` sets the mode to 0644.",
        "`Find` returns a `MissingError` if the name is empty.",
        "`build` refuses a port without a host.",
        "The package has two runtime dependencies.",
        "`package.json` asks for Node.js 20 or newer.",
        "`Left` and `Right` both derive from `Base`.",
        "Every `Sink` implementation must be `Send`.",
        "The minimum supported Rust version in `crate/Cargo.toml` is 1.71.0.",
    ],
)
def test_what_the_syntax_shows_is_accepted(cortex: Cortex, text: str) -> None:
    found = cortex.grounding.verify(text)
    assert found.status == "ACCEPT", (text, [(one.verdict, one.reason) for one in found.findings])


@each(
    "text",
    [
        "`MissingError` is a struct with a path field.",
        "`Store` has five members.",
        "`Queue` is a subclass of Array.",
        "`Size` returns an int64.",
        "`Size` takes the key first and the alias second.",
        "React 17 is the oldest version that the peer dependencies allow.",
        "The package has three runtime dependencies.",
        "`Left` derives from `Right`.",
    ],
)
def test_what_the_syntax_shows_otherwise_is_rejected(cortex: Cortex, text: str) -> None:
    found = cortex.grounding.verify(text)
    assert found.status == "REJECT", (text, [(one.verdict, one.reason) for one in found.findings])


@each(
    "text",
    [
        "The default `timeout` is 0.",  # it is computed
        "The table of the levels' names has six entries.",  # another table may be meant
        "`Handler` is a function without arguments.",
        "`load` swallows a SyntaxError.",  # it catches whatever is thrown
        "`start` runs the functions registered with `onStart`.",
        "`close` panics through `unreachable!`.",
        "`Handler` reports every message as disabled.",
    ],
)
def test_another_attribute_or_subject_contradicts_nothing(cortex: Cortex, text: str) -> None:
    found = cortex.grounding.verify(text)
    assert all(one.verdict != "contradicted" for one in found.findings), [one.reason for one in found.findings]


def test_a_second_clause_is_about_the_subject_of_the_first(cortex: Cortex) -> None:
    found = cortex.grounding.verify("`Queue` extends `EventEmitter`, and it does not extend `Store`.")
    assert [one.claim.text for one in found.findings] == [
        "`Queue` extends `EventEmitter`",
        "`Queue` does not extend `Store`.",
    ]
    assert [one.verdict for one in found.findings] == ["supported", "supported"]
