"""Enrichment: better tags, form and context, each told exactly, and nothing that has no source."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cortex_py import Cortex, Memory
from cortex_py.core.embedding.backends.backend import Backend
from cortex_py.core.errors import InvalidInput, MemoryNotFound

from helpers import FakeClock, git
from stub_backend import StubBackend

RUN_ON = (
    "We decided to move session storage from Redis to PostgreSQL because the cluster kept evicting keys. "
    "Steps: 1) drain the queue 2) copy the rows 3) switch the flag"
)
DECISION = "We decided to use PostgreSQL for sessions because Redis kept evicting keys under memory pressure."
ADDRESS = re.compile(r"\((subcog://[^\s)]+)\)$")


@pytest.fixture
def desk(home: Path, project: Path, clock: FakeClock) -> Iterator[Cortex]:
    with Cortex.open(home, project=project, clock=clock, backend=StubBackend()) as opened:
        yield opened


def patched(before: str, diff: str) -> str:
    """A text after a unified diff, applied line by line as anybody would."""
    if not diff:
        return before
    old, new, at = before.split("\n"), [], 0
    for line in diff.split("\n")[2:]:
        if hunk := re.match(r"@@ -(\d+)(?:,(\d+))? \+", line):
            first = int(hunk[1]) - (hunk[2] != "0")
            new += old[at:first]
            at = first
        elif line[:1] == "+":
            new.append(line[1:])
        else:
            assert old[at] == line[1:]
            new += [line[1:]] if line[:1] == " " else []
            at += 1
    return "\n".join(new + old[at:])


def words(text: str) -> list[str]:
    return re.findall(r"\w+", text)


def test_tags_and_form_are_improved_and_the_former_version_is_kept(cortex: Cortex) -> None:
    memory = cortex.memories.capture(RUN_ON, tags=["ops"])
    done = cortex.memories.enrich(memory.id)
    assert (done.method, done.warnings, done.structure_improved, done.context_added) == ("local", (), True, None)
    assert {"redis", "postgresql"} <= set(done.tags_added)
    assert done.memory.tags == ("ops", *done.tags_added)
    assert done.memory == cortex.memories.get(memory.id)
    assert patched(memory.content, done.diff) == done.memory.content != memory.content
    assert done.changed
    assert [one.content for one in cortex.memories.history(memory.id)] == [memory.content, done.memory.content]
    assert cortex.memories.recall(filter="tag:redis").total == 1


def test_repeating_it_changes_nothing_more(cortex: Cortex) -> None:
    notes = [
        cortex.memories.capture(text) for text in (RUN_ON, DECISION, "Use tabs.", "The Redis cache uses PostgreSQL.")
    ]
    for note in notes * 2:
        done = cortex.memories.enrich(note.id, context=True)
        again = cortex.memories.enrich(note.id, context=True)
        assert (again.tags_added, again.diff, again.structure_improved, again.context_added) == ((), "", False, None)
        assert not again.changed
        assert again.memory == done.memory
    versions = [cortex.memories.get(note.id) for note in notes]
    for note in notes:
        assert not cortex.memories.enrich(note.id, context=True).changed
    assert [cortex.memories.get(note.id) for note in notes] == versions


def test_what_a_memory_was_given_as_context_is_not_told_as_its_own(cortex: Cortex) -> None:
    stating = cortex.memories.capture("PostgreSQL replaces Redis.")
    quoting = cortex.memories.capture("The Redis cache of the shop is next to PostgreSQL.")
    asking = cortex.memories.capture("Redis and PostgreSQL are in the same rack.")
    stated = "PostgreSQL Supersedes Redis"
    assert stated in cortex.memories.enrich(quoting.id, context=True).memory.content
    block = str(cortex.memories.enrich(asking.id, context=True).context_added)
    assert [line for line in block.split("\n") if stated in line] == [f"- {stated} (subcog://memory/{stating.id})"]
    cortex.memories.delete(stating.id)
    assert stated not in cortex.memories.enrich(asking.id, context=True).memory.content


@pytest.mark.parametrize("flags", [(a, b, c) for a in (0, 1) for b in (0, 1) for c in (0, 1)])
def test_only_what_is_asked_for_is_done(cortex: Cortex, flags: tuple[int, int, int]) -> None:
    cortex.memories.capture("Redis evicts session keys under memory pressure; PostgreSQL keeps sessions.")
    memory = cortex.memories.capture(DECISION)
    tags, structure, context = map(bool, flags)
    done = cortex.memories.enrich(memory.id, tags=tags, structure=structure, context=context)
    assert bool(done.tags_added) == tags
    assert done.structure_improved == structure
    assert bool(done.context_added) == context
    assert bool(done.diff) == (structure or context)
    assert ("**Decision:**" in done.memory.content) == structure
    assert ("**Context:**" in done.memory.content) == context
    assert done.memory.version == (2 if any(flags) else 1)


def test_a_preview_tells_the_same_and_changes_nothing(cortex: Cortex) -> None:
    cortex.memories.capture("Redis evicts session keys under memory pressure; PostgreSQL keeps sessions.")
    memory = cortex.memories.capture(DECISION)
    preview = cortex.memories.enrich(memory.id, context=True, dry_run=True)
    assert preview.memory == memory == cortex.memories.get(memory.id)
    assert len(cortex.memories.history(memory.id)) == 1
    done = cortex.memories.enrich(memory.id, context=True)
    assert (done.tags_added, done.diff, done.context_added) == (preview.tags_added, preview.diff, preview.context_added)


def sources(cortex: Cortex, block: str) -> list[Memory]:
    """The memories that the lines of a context name; a line without one fails."""
    addresses = [ADDRESS.search(line) for line in block.split("\n")]
    assert all(addresses), block
    return [cortex.memories.get(address[1]) for address in addresses if address]


def test_every_line_of_the_context_has_a_source_that_says_it(
    home: Path, project: Path, clock: FakeClock, model: Backend
) -> None:
    git(project, "init", "-b", "main")
    git(project, "commit", "--allow-empty", "-m", "first")
    git(project, "checkout", "-b", "work")
    with Cortex.open(home, project=project, clock=clock, backend=model) as cortex:
        stated = cortex.memories.capture("PostgreSQL replaces Redis.")
        near = cortex.memories.capture("Redis evicts session keys under memory pressure.")
        cortex.memories.capture("Bananas ripen faster beside apples.")
        memory = cortex.memories.capture(DECISION)
        done = cortex.memories.enrich(memory.id, context=True)
        block = str(done.context_added)
        named = [one.id for one in sources(cortex, block)]
        assert "`work`" not in block  # the record has its branch already
        assert set(named) <= {memory.id, stated.id, near.id}
        assert near.id in named
        assert done.memory.content.endswith(f"\n\n**Context:**\n{block}")
        for line, source in zip(block.split("\n"), sources(cortex, block), strict=True):
            if line.startswith("- See also: "):
                assert source.content.startswith(line.removeprefix("- See also: ").partition(" (subcog")[0][:100])


def test_names_become_tags_and_code_does_not(cortex: Cortex) -> None:
    memory = cortex.memories.capture("Kubernetes restarts the pods of the billing service when Prometheus alerts.")
    assert {"kubernetes", "prometheus"} <= set(cortex.memories.enrich(memory.id).tags_added)


def test_a_context_follows_what_the_store_knows(cortex: Cortex) -> None:
    memory = cortex.memories.capture(DECISION)
    assert cortex.memories.enrich(memory.id, context=True).context_added is None
    near = cortex.memories.capture("Redis kept evicting keys under memory pressure, so sessions moved to PostgreSQL.")
    first = cortex.memories.enrich(memory.id, context=True)
    assert near.id in str(first.context_added)
    cortex.memories.delete(near.id)
    second = cortex.memories.enrich(memory.id, context=True)
    assert "**Context:**" not in second.memory.content
    assert near.id not in second.memory.content
    # Without asking for it, the context that is there stays.
    cortex.memories.restore(near.id)
    kept = cortex.memories.enrich(memory.id, context=True).memory
    assert cortex.memories.enrich(memory.id).memory == kept


def test_a_context_that_a_person_wrote_is_theirs(cortex: Cortex) -> None:
    own = "Use tabs.\n\n**Context:**\n- Anna asked for it\n- see subcog://memory/ nothing"
    memory = cortex.memories.capture(own)
    cortex.memories.enrich(memory.id, context=True)
    assert cortex.memories.get(memory.id).content == own
    near = cortex.memories.capture("Use tabs. Context: Anna asked for it.")
    done = cortex.memories.enrich(memory.id, context=True)
    assert done.memory.content.startswith(f"{own}\n\n**Context:**\n- See also: ")
    assert near.id in str(done.context_added)
    assert not cortex.memories.enrich(memory.id, context=True).changed


@pytest.mark.parametrize("domain", ["user", "org"])
def test_memories_of_every_domain_are_enriched_from_their_own(cortex: Cortex, domain) -> None:
    cortex.memories.capture("Redis evicts session keys under memory pressure.")
    memory = cortex.memories.capture(DECISION, domain=domain)
    alone = cortex.memories.enrich(memory.id, context=True)
    assert (alone.memory.domain, alone.context_added) == (domain, None)
    assert "redis" in alone.tags_added
    near = cortex.memories.capture("Redis evicts session keys under memory pressure!", domain=domain)
    assert [one.id for one in sources(cortex, str(cortex.memories.enrich(memory.id, context=True).context_added))] == [
        near.id
    ]


def test_a_memory_of_another_project_is_enriched_from_its_own(
    cortex: Cortex, home: Path, tmp_path: Path, clock: FakeClock, model: Backend
) -> None:
    (tmp_path / "other").mkdir()
    with Cortex.open(home, project=tmp_path / "other", clock=clock, backend=model) as other:
        theirs = other.memories.capture(DECISION)
    cortex.memories.capture("Redis kept evicting keys under memory pressure, so sessions moved to PostgreSQL.")
    done = cortex.memories.enrich(theirs.id, context=True)
    assert done.context_added is None
    assert "redis" in done.tags_added


def test_tags_stop_at_the_most_that_a_memory_may_have(desk: Cortex) -> None:
    for present in (64, 63, 60):
        tags = [f"t{n}" for n in range(present)]
        memory = desk.memories.capture("Redis replaced PostgreSQL and Kafka.", tags=tags)
        assert len(desk.memories.enrich(memory.id).memory.tags) <= 64


@pytest.mark.slow
def test_a_long_text_is_enriched(desk: Cortex) -> None:
    long = "".join(f"Line {n} of the log of Redis says nothing.\n" for n in range(5_000))[:200_000]
    memory = desk.memories.capture(long)
    done = desk.memories.enrich(memory.id, context=True)
    assert done.memory.content.startswith(long)
    assert "redis" in done.memory.tags
    assert not desk.memories.enrich(memory.id, context=True).changed


def test_what_is_not_there_or_not_known_is_refused(desk: Cortex) -> None:
    memory = desk.memories.capture("x")
    with pytest.raises(MemoryNotFound):
        desk.memories.enrich("0" * 40)
    with pytest.raises(InvalidInput, match="method"):
        desk.memories.enrich(memory.id, method="magic")
    desk.memories.delete(memory.id)
    with pytest.raises(MemoryNotFound):
        desk.memories.enrich(memory.id)


LINES = st.sampled_from(
    [
        "We decided to use Redis because it is fast.",
        "1) one 2) two 3) three",
        "",
        "**Context:**",
        "- a",
        "def f():",
        "    return 1",
        "\r",
        "Ä\u2028ö",
        "```",
        "- See also: x (subcog://memory/00)",
        "$ make test",
        " ",
    ]
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(LINES, min_size=1, max_size=8).map("\n".join).filter(str.strip), st.booleans())
def test_any_text_keeps_its_words_has_a_true_diff_and_is_enriched_once(desk: Cortex, text: str, context: bool) -> None:
    memory = desk.memories.capture(text)
    try:
        done = desk.memories.enrich(memory.id, context=context)
        assert patched(text, done.diff) == done.memory.content
        assert (done.diff == "") == (done.memory.content == text)
        if not context:
            kept = iter(words(done.memory.content))
            assert all(word in kept for word in words(text))
        assert not desk.memories.enrich(memory.id, context=context).changed
    finally:
        desk.memories.delete(memory.id, hard=True)
