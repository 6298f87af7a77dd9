"""What becomes of personal data in memories and prompts under each policy, and how it is shown and found again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cortex_py import Cortex
from cortex_py.core.errors import ConfigurationError, ContentBlocked, FilterSyntaxError
from cortex_py.core.store import migrations, sqlite

from helpers import FakeClock
from homes import opened
from old_schemas import turn_back_spaces
from shell import Shell

MAIL = "anna.berg@parts-shop.de"
PHONE = "+49 30 901820"
TOKEN = "ghp_" + "1a2B3c4D5e" * 3 + "6F7g8h"
NOTE = f"The supplier is {MAIL}, reached under {PHONE}."
NAMED = "I met Angela Merkel in Berlin."


def words_of(cortex: Cortex, text: str) -> int:
    return cortex.memories.recall(text, mode="text").total


def test_marked_memories_keep_their_text_and_say_what_is_in_it(home: Path, project: Path, clock: FakeClock) -> None:
    with opened(home, project, clock) as cortex:
        memory = cortex.memories.capture(NOTE, tags=["mail"], source=f"mailto:{MAIL}")
        assert memory.content == NOTE and memory.redactions == ()
        assert memory.personal == (("email", 2), ("phone", 1))
        assert cortex.memories.get(memory.id).personal == memory.personal
        named = cortex.memories.capture(NAMED)
        assert (named.personal, named.pending) == ((), ("graph",))  # names are read after the answer
        assert cortex.memories.get(named.id).personal == (("person-name", 1),)
        assert cortex.memories.capture("Nothing of the kind in it, 17 times").personal == ()


def test_an_update_is_looked_at_again(home: Path, project: Path, clock: FakeClock) -> None:
    with opened(home, project, clock) as cortex:
        memory = cortex.memories.capture(NOTE)
        assert cortex.memories.update(memory.id, content="The supplier left.").personal == ()
        assert cortex.memories.get(memory.id).personal == ()
        assert cortex.memories.update(memory.id, content=f"Card 4111 1111 1111 1111 of {MAIL}").personal == (
            ("email", 1),
            ("payment-card", 1),
        )


def test_nothing_is_looked_for_under_keep(home: Path, project: Path, clock: FakeClock) -> None:
    with opened(home, project, clock, personal_data="keep") as cortex:
        memory = cortex.memories.capture(f"{NOTE} {NAMED}")
        assert memory.personal is None and MAIL in memory.content
        cortex.upkeep()
        assert cortex.memories.get(memory.id).personal is None
        assert cortex.memories.recall(filter="personal:any").total == 0


def test_redacted_before_words_vectors_and_entities_are_made(home: Path, project: Path, clock: FakeClock) -> None:
    with opened(home, project, clock, personal_data="redact") as cortex:
        memory = cortex.memories.capture(f"{NOTE} {NAMED}", summary=f"of {MAIL}", tags=[MAIL, "keep"])
        assert memory.content == (
            "The supplier is [REDACTED:email], reached under [REDACTED:phone]. I met [REDACTED:person-name] in Berlin."
        )
        assert (memory.summary, memory.tags) == ("of [REDACTED:email]", ("[REDACTED:email]", "keep"))
        assert set(memory.redactions) == {"email", "phone", "person-name"}
        assert memory.personal == ()
        assert words_of(cortex, "Merkel") == words_of(cortex, "anna.berg") == 0
        assert all("merkel" not in one.name.lower() for one in cortex.graph.entities()[0])
        changed = cortex.memories.update(memory.id, content=f"Now {MAIL} alone")
        assert changed.content == "Now [REDACTED:email] alone"
    for file in home.rglob("*"):
        assert not file.is_file() or (MAIL.encode() not in file.read_bytes() and b"Merkel" not in file.read_bytes())


def test_secrets_are_taken_out_first(home: Path, project: Path, clock: FakeClock) -> None:
    with opened(home, project, clock, personal_data="redact") as cortex:
        memory = cortex.memories.capture(f"{TOKEN} belongs to {MAIL}")
        assert memory.content == "[REDACTED:github-token] belongs to [REDACTED:email]"
        assert memory.redactions == ("github-token", "email")
    with opened(home, project, clock, personal_data="redact", secrets="allow") as cortex:
        assert cortex.memories.capture(f"{TOKEN} of {MAIL}").content == f"{TOKEN} of [REDACTED:email]"
    with opened(home, project, clock, personal_data="redact", secrets="block") as cortex:
        with pytest.raises(ContentBlocked) as refused:
            cortex.memories.capture(f"{TOKEN} belongs to {MAIL}")
        assert refused.value.kinds == ("github-token",)
        # Personal data alone is never refused.
        assert cortex.memories.capture(f"It belongs to {MAIL}").redactions == ("email",)


def test_json_stays_json_when_personal_data_is_taken_out(home: Path, project: Path, clock: FakeClock) -> None:
    given = {"card": 4111111111111111, "mail": MAIL, "note": "kept"}
    with opened(home, project, clock, personal_data="redact") as cortex:
        kept = json.loads(cortex.memories.capture(json.dumps(given)).content)
    assert kept["note"] == "kept" and kept["mail"] == "[REDACTED:email]"


def test_prompts_are_redacted_and_otherwise_kept(home: Path, project: Path, clock: FakeClock) -> None:
    given = {"description": f"Asks {MAIL}", "variables": [{"name": "who", "default": MAIL}]}
    with opened(home, project, clock) as cortex:
        assert cortex.prompts.save("ask", f"Write to {MAIL} as {{{{who}}}}.", **given).saved.redactions == ()
    with opened(home, project, clock, personal_data="redact") as cortex:
        saved = cortex.prompts.save("ask", f"Write to {MAIL} as {{{{who}}}}.", **given).saved
        assert saved.redactions == ("email",)
        read = cortex.prompts.get("ask")
        assert read.content == "Write to [REDACTED:email] as {{who}}."
        assert read.description == "Asks [REDACTED:email]"
        assert read.variables[0].default == saved.variables[0].default == "[REDACTED:email]"


@pytest.mark.sqlite_only  # each home has a store of its own
def test_imported_memories_follow_the_policy(tmp_path: Path, project: Path, clock: FakeClock) -> None:
    file = tmp_path / "out.jsonl"
    with opened(tmp_path / "one", project, clock) as cortex:
        memory = cortex.memories.capture(f"{NOTE} {NAMED}")
        cortex.memories.update(memory.id, tags=["later"])
        cortex.backups.export_to(file)
    with opened(tmp_path / "two", project, clock) as cortex:
        cortex.backups.import_from([file])
        assert cortex.memories.get(memory.id).personal is None
        assert cortex.memories.status().personal_counts == {"not looked at yet": 1}
        cortex.upkeep()
        assert cortex.memories.get(memory.id).personal == (("email", 1), ("person-name", 1), ("phone", 1))
    with opened(tmp_path / "three", project, clock, personal_data="redact") as cortex:
        cortex.backups.import_from([file])
        assert MAIL not in cortex.memories.get(memory.id).content
        assert all(MAIL not in one.content for one in cortex.memories.history(memory.id))


@pytest.mark.sqlite_only  # each home has a store of its own
def test_files_that_are_scanned_follow_the_policy(tmp_path: Path, project: Path, clock: FakeClock) -> None:
    (project / "team.md").write_text(f"# Team\n\nWrite to {MAIL}\nabout everything.\n", "utf-8")
    for name, policy, content in (
        ("one", "mark", f"Write to {MAIL}\nabout"),
        ("two", "redact", "Write to [REDACTED:email]\nabout"),
    ):
        with opened(tmp_path / name, project, clock, personal_data=policy) as cortex:
            cortex.contexts.initialize(mode="full")
            [hit] = cortex.memories.recall("team everything", filter="kind:file").results
            assert content in hit.memory.content
            assert hit.memory.personal == ((("email", 1),) if policy == "mark" else ())


# -- found again -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("filter", "found"),
    [
        ("personal:email", {"mail", "both"}),
        ("personal:phone,payment-card", {"both", "card"}),
        ("personal:any", {"mail", "both", "card", "name"}),
        ("personal:*", {"mail", "both", "card", "name"}),
        ("personal:person-name", {"name"}),
        ("-personal:email", {"card", "name", "none"}),
        ("-personal:any", {"none"}),
        ("personal:email -personal:phone", {"mail"}),
    ],
)
def test_a_filter_finds_it(home: Path, project: Path, clock: FakeClock, filter: str, found: set[str]) -> None:
    texts = {"mail": f"to {MAIL}", "both": NOTE, "card": "card 4111 1111 1111 1111", "name": NAMED, "none": "of late"}
    with opened(home, project, clock) as cortex:
        for tag, text in texts.items():
            cortex.memories.capture(text, tags=[tag])
        assert {hit.memory.tags[0] for hit in cortex.memories.recall(filter=filter).results} == found


def test_a_kind_that_nobody_knows_is_refused_with_those_that_are(home: Path, project: Path, clock: FakeClock) -> None:
    with opened(home, project, clock) as cortex, pytest.raises(FilterSyntaxError) as refused:
        cortex.memories.recall(filter="personal:shoe-size")
    assert refused.value.position == 9 and "payment-card" in (refused.value.remedy or "")


def test_a_policy_that_nobody_knows_is_refused(home: Path, project: Path, clock: FakeClock) -> None:
    with pytest.raises(ConfigurationError, match="keep, mark, redact"):
        opened(home, project, clock, personal_data="forget")


# -- shown -----------------------------------------------------------------------------------------


def test_the_command_line_shows_it(home: Path, project: Path) -> None:
    shell = Shell(home, project)

    def cortex(*words: str) -> str:
        return shell.text(*words)

    id = cortex("capture", NOTE).split()[0]
    assert json.loads(cortex("get", id, "--json"))["personal"] == {"email": 1, "phone": 1}
    assert "personal data: email 1, phone 1" in cortex("get", id)
    [hit] = json.loads(cortex("recall", "-f", "personal:any", "--json"))["results"]
    assert hit["personal"] == {"email": 1, "phone": 1}
    assert json.loads(cortex("status", "--json"))["personal_counts"] == {"email": 1, "phone": 1}
    assert "email 1, phone 1" in cortex("status")
    assert "mark, not synced: email 1, phone 1" in cortex("doctor")


# -- stores from before ----------------------------------------------------------------------------


@pytest.mark.slow
def test_memories_from_before_are_looked_at_in_upkeep(home: Path, project: Path, clock: FakeClock) -> None:
    with opened(home, project, clock, personal_data="keep") as cortex:
        ids = [cortex.memories.capture(f"{NOTE} {NAMED} {number}").id for number in range(300)]
        gone = cortex.memories.capture(f"deleted {MAIL}").id
        cortex.memories.delete(gone)
    calls = iter([False, True])
    with opened(home, project, clock) as cortex:
        # Asked between batches: what is left is done the next time.
        done = cortex.memories.look_for_personal_data(lambda: next(calls))
        assert 0 < done < len(ids)
        cortex.upkeep()
        expected = (("email", 1), ("person-name", 1), ("phone", 1))
        assert {cortex.memories.get(id).personal for id in ids} == {expected}
        assert cortex.memories.restore(gone).personal == (("email", 1),)
        assert cortex.memories.look_for_personal_data() == 0
        assert cortex.memories.get(ids[0]).version == 1


@pytest.mark.sqlite_only
def test_a_store_of_the_schema_before_opens_and_is_looked_at(
    home: Path, project: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(home, project, clock) as cortex:
        memory = cortex.memories.capture(NOTE)
    before = len(migrations.MIGRATIONS) - 1
    while "personal" not in "".join(migrations.MIGRATIONS[before]):
        before -= 1
    database = sqlite.open_sqlite(home / "cortex.db", clock)
    with database.write() as session:
        for index in ("memory_unlooked", "memory_user", "memory_agent", "memory_pending"):
            session.run(f"DROP INDEX {index}")
        session.run("ALTER TABLE memory DROP COLUMN personal")
        turn_back_spaces(session)
        session.run("DELETE FROM schema_step WHERE version > ?", (before,))
    database.close()
    with opened(home, project, clock) as cortex:
        assert cortex.check() == []
        assert cortex.memories.get(memory.id) == memory
        assert cortex.memories.get(memory.id).personal is None
        cortex.upkeep()
        assert cortex.memories.get(memory.id).personal == (("email", 1), ("phone", 1))
