"""Every function that reads a text from outside, by name, as a plain call with one text.

Each may refuse the text with an error of its own; none may take long over it.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from datetime import UTC, datetime
from functools import cache, partial

from cortex_py.core import graph_values as values
from cortex_py.core.embedding.wordpiece import WordPiece
from cortex_py.core.memory import text as memory_text
from cortex_py.core.memory.capture.capture import digest
from cortex_py.core.memory.comparison import conflicts, statements
from cortex_py.core.memory.consolidation import enrichment, merging
from cortex_py.core.memory.labels import classifier, keyphrases, structuring
from cortex_py.core.memory.labels.classifier import Classifier
from cortex_py.core.memory.recall import filters
from cortex_py.parts.backup.transfer.import_reader import json_values
from cortex_py.parts.backup.transfer.markdown import read_note
from cortex_py.parts.context.branches import file as branch_file
from cortex_py.parts.context.branches.file import slug
from cortex_py.parts.context.summary import summary as summaries
from cortex_py.parts.context.summary.summary import SaidTurn, SummaryState
from cortex_py.parts.graph.reading.extract import extract
from cortex_py.parts.graph.reading.tokens import sentences as graph_sentences
from cortex_py.parts.prompts import files
from cortex_py.parts.prompts.language import placeholders
from cortex_py.parts.prompts.language import syntax as template_syntax
from cortex_py.parts.suggest import feedback as rejection
from cortex_py.parts.suggest.candidates import task_kind, task_words
from cortex_py.parts.verify import words
from cortex_py.parts.verify.checks.changes import read_sections
from cortex_py.parts.verify.claims import claims, passages
from cortex_py.parts.verify.claims import phrases as hedging
from cortex_py.parts.verify.claims.mentions import mentions
from cortex_py.parts.verify.contradictions import contradictions
from cortex_py.parts.verify.index.facts import file_facts
from cortex_py.parts.verify.judges import support
from cortex_py.parts.verify.judges.support import read_passage
from cortex_py.texts import reader as reading
from cortex_py.texts import sentences as said
from cortex_py.worktree import formats
from cortex_py.worktree import test_reports as reports
from cortex_py.worktree.code import syntax
from cortex_py.worktree.code import syntax as cutting
from cortex_py.worktree.files import choice as roles
from cortex_py.worktree.files import ignore_rules as ignoring
from cortex_py.worktree.git.diffs import PatchReader
from cortex_py.worktree.manifests import versions
from cortex_py.worktree.manifests.manifests import read_dependencies, read_own_version

__all__ = ["READERS"]

_NOW = datetime(2026, 3, 4, tzinfo=UTC)
_Reader = Callable[[str], object]


@cache
def _pieces() -> WordPiece:
    from cortex_py.core.embedding.backends.onnx import OnnxBackend

    return OnnxBackend()._tokeniser


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _chunks(text: str) -> object:
    return memory_text.chunk(text, count_tokens=lambda part: len(part) // 4 + 2)


def _pieced_chunks(text: str) -> object:
    return memory_text.chunk(text, count_tokens=_pieces().count)


def _snippet(text: str) -> object:
    return memory_text.snippet(text, memory_text.Chunk(0, len(text)), ["a", "redis", "数据"])


def _advanced(text: str) -> object:
    state = summaries.advance(SummaryState(), [SaidTurn("1", "user", text, _NOW), SaidTurn("2", None, text, _NOW)])
    return summaries.render(state, "topic", max_tokens=2_000, count_tokens=lambda part: len(part) // 4)


def _compared(text: str) -> object:
    half = text[: len(text) // 2]
    one, other = statements.read_statement(half), statements.read_statement(f"Not so: {half}")
    return conflicts.difference(one, other), conflicts.judge(one, other, 0.9)


def _pair(text: str) -> list[merging.Piece]:
    half = text[: len(text) // 2]
    return [merging.Piece(half, _NOW), merging.Piece(f"Before.\n{half}", _NOW)]


def _contradictions(text: str) -> object:
    return contradictions.find_contradictions(claims.read_claims(text).claims, text)


def _enriched(text: str) -> object:
    return statements.without_context(text), enrichment._diff(text, structuring.structure(text))


def _ignore_rules(text: str) -> object:
    return ignoring.IgnoreRules(_bytes(text)).ignored(b"a/" * 20 + b"b.py", is_folder=False)


def _patch(text: str) -> object:
    lines = iter((b"diff --git a/a.py b/a.py\n" + _bytes(text)).splitlines())
    return PatchReader(lines).changes()


_SOURCES = (
    "py", "js", "ts", "tsx", "go", "rs", "java", "c", "cpp", "cs", "rb", "php", "sh", "lua", "md", "txt", "html",
)  # fmt: skip
_MANIFESTS = (
    *("pyproject.toml", "requirements.txt", "setup.cfg", "setup.py", "Pipfile", "environment.yml", "PKG-INFO"),
    *("package.json", "Cargo.toml", "go.mod", "composer.json", "Gemfile", "pom.xml", "build.gradle", "a.csproj"),
    *("Pipfile.lock", "poetry.lock", "package-lock.json", "yarn.lock", "pnpm-lock.yaml", "go.sum", "composer.lock"),
    *("Gemfile.lock", "VERSION"),
)


def _manifest(path: str, text: str) -> object:
    return read_dependencies(path, text), read_own_version(path, text), list(roles.declared_entries(path, text))


READERS: dict[str, _Reader] = {
    "branch-file": branch_file.parse,
    "branch-file-append": lambda text: branch_file.parse(f"---\n{text}\n---\n{text}"),
    "changelog": lambda text: list(read_sections(tuple(text.split("\n")))),
    "chunks": _chunks,
    "chunks-of-pieces": _pieced_chunks,
    "claims": claims.read_claims,
    "classifier": lambda text: Classifier("stub").classify(text, None),
    "contradictions": _contradictions,
    "cues": lambda text: classifier.default_lexicon().cues(text),
    "dialogue": memory_text.split_turns,
    "digest": digest,
    "enrichment": _enriched,
    "entity-name": lambda text: (values.canonical(text, "Technology"), values.keys_of(text)),
    "facts": merging.facts,
    "filter": lambda text: filters.parse_filter(text, now=_NOW),
    "filter-value": lambda text: filters.parse_filter(f'tag:"{text}"', now=_NOW),
    "graph": extract,
    "graph-sentences": lambda text: list(graph_sentences(text)),
    "hedging": lambda text: (hedging.confidence(text), hedging.hedging(text)),
    "ignore-rules": _ignore_rules,
    "import-lines": lambda text: list(json_values(io.BytesIO(_bytes(text)), "file")),
    "import-note": partial(read_note, "a.md"),
    "key-phrases": keyphrases.key_phrases,
    "mentions": mentions,
    "merging": lambda text: merging.merge(_pair(text)),
    "merging-digest": lambda text: merging.digest(_pair(text)),
    "moment": lambda text: filters.parse_moment(text, now=_NOW),
    "note-front": lambda text: read_note("a.md", f"---\n{text}\n---\nbody"),
    "passage": read_passage,
    "passages": passages.read_passages,
    "patch": _patch,
    "pieces": lambda text: (_pieces().count(text), _pieces().encode(text, 256)),
    "plain-text": statements.plain_text,
    "project-words": lambda text: words.words_of(words.names_in(text)),
    "prompt": placeholders.find_blanks,
    "prompt-file": lambda text: files.load(_bytes(text), filename="a.md", kind="prompt"),
    "prompt-file-json": lambda text: files.load(_bytes(text), filename="a.json", kind="prompt"),
    "prompt-file-yaml": lambda text: files.load(_bytes(text), filename="a.yaml", kind="prompt"),
    "query-terms": memory_text.query_terms,
    "query-traits": memory_text.query_traits,
    "read-env": formats.env_entries,
    "read-ini": formats.ini_entries,
    "read-json": formats.read_json,
    "read-properties": formats.properties_entries,
    "read-toml": formats.read_toml,
    "read-xml": formats.read_xml,
    "read-yaml": formats.read_yaml,
    "record-traits": memory_text.record_traits,
    "rejection": rejection.classify,
    "report": lambda text: reports.read_report("output.txt", text),
    "report-json": lambda text: reports.read_report("report.json", text),
    "report-xml": lambda text: reports.read_report("junit.xml", text),
    "rows": lambda text: cutting.cut_rows(cutting.rows_of(text), loose="text"),
    "said": said.sentences,
    "said-shortened": lambda text: (said.shorten(text, 200), said.one_line(text)),
    "said-words": lambda text: (reading.resolves(text), reading.hedges(text), reading.awaited_words(text)),
    "slug": slug,
    "snippet": _snippet,
    "statement": statements.read_statement,
    "statements-compared": _compared,
    "structure": structuring.structure,
    "summary": _advanced,
    "support": lambda text: support.support("Redis is fast", [text]),
    "support-claim": lambda text: support.support(text, ["Redis is fast"]),
    "tag": keyphrases.tag_for,
    "tags": lambda text: keyphrases.suggest_tags(text, ()),
    "task": lambda text: (task_words(text), task_kind(text)),
    "telling-words": words.distinctive_words,
    "template": template_syntax.parse,
    "terms": memory_text.terms,
    "version": lambda text: versions.admits(text, "1.2.3"),
    "version-of": lambda text: versions.agrees(text, "1.2.3"),
    **{f"source-{kind}": partial(syntax.analyse, f"a.{kind}") for kind in _SOURCES},
    **{f"facts-{kind}": lambda text, kind=kind: file_facts(f"a.{kind}", _bytes(text)) for kind in ("py", "js", "md")},
    **{f"settings-{kind}": partial(formats.read_settings, f"a.{kind}") for kind in ("toml", "json", "yaml", "ini")},
    **{f"manifest-{name}": partial(_manifest, name) for name in _MANIFESTS},
}
