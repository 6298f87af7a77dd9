"""Suggestions: what they come from, how their sessions live and end, and what the answers to them teach."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from cases import each
from cortex_py import Cortex
from cortex_py.core.errors import (
    AmbiguousId,
    BranchNotFound,
    Conflict,
    ContentBlocked,
    InvalidInput,
    NotFound,
    ProjectNotFound,
    StoreBusy,
    SuggestionClosed,
    SuggestionNotFound,
)
from cortex_py.core.store.tables.suggestions import ReferenceRow
from cortex_py.parts.suggest.candidates import task_kind
from cortex_py.parts.suggest.sessions import Suggestion, SuggestionSession
from inside import store_of

from forking import python_command
from helpers import FakeClock, git
from reference_model import coreferences, uses
from stub_backend import StubBackend


class _Wide(StubBackend):
    """Wide enough that hardly two words share a number: what has no word in common is not alike."""

    dimensions = 768
    fingerprint = "stub-768"


Open = Callable[..., Cortex]
TASK = "Fix the ledger rounding"
TOKEN = "ghp_" + "1a2B3c4D5e" * 3 + "6F7g8h"


@pytest.fixture
def open_at(opened: Open, project: Path) -> Open:
    return lambda folder=project, **settings: opened(folder, backend=_Wide(), **settings)


@pytest.fixture
def desk(open_at: Open) -> Cortex:
    return open_at()


def _ids(found: SuggestionSession) -> list[str]:
    return [one.memory.id for one in found.suggestions]


def _of(found: SuggestionSession, memory_id: str) -> Suggestion:
    (one,) = [one for one in found.suggestions if one.memory.id == memory_id]
    return one


def _together(cortex: Cortex, clock: FakeClock, *ids: str, times: int = 3) -> None:
    """Load contexts in one burst, several times, hours apart."""
    for _ in range(times):
        for one in ids:
            cortex.contexts.load(one)
        clock.advance(hours=5)


def _ledger(cortex: Cortex) -> tuple[str, str]:
    """Something about the task, and something that only history could tell to be of use for it."""
    about = cortex.memories.capture("The ledger rounding is half to even").id
    beside = cortex.memories.capture("Auditors want every change explained in writing").id
    return about, beside


def _rows(cortex: Cortex, table: str) -> list[tuple[object, ...]]:
    with store_of(cortex).database.read() as session:
        return session.rows(f"SELECT * FROM {table} ORDER BY 1, 2, 3")


def _everything(cortex: Cortex) -> list[list[tuple[object, ...]]]:
    tables = ("reference", "referred", "referred_together", "suggestion_session", "suggestion", "trust")
    return [_rows(cortex, table) for table in tables]


# -- what is suggested -----------------------------------------------------------------------------


def test_a_first_suggestion_needs_no_history(desk: Cortex) -> None:
    about, beside = _ledger(desk)
    found = desk.suggestions.suggest(TASK)
    first = found.suggestions[0]
    assert (first.memory.id, first.source) == (about, "ai_analysis")
    assert first.reason.startswith("fits the task (")
    assert 0 < first.confidence <= 0.7
    assert beside not in _ids(found)
    assert (found.pending, found.requires_confirmation) == ((), False)


@pytest.mark.parametrize("task", ["Translate the handbook into French", "make coffee"])
def test_what_has_nothing_to_do_with_a_task_is_not_suggested(cortex: Cortex, task: str) -> None:
    for note in ("Invoices are exported as CSV with semicolons", "JWT tokens expire after 15 minutes"):
        cortex.memories.capture(note)
    found = cortex.suggestions.suggest(task)
    assert found.suggestions == ()
    # Nothing waits for an answer.
    assert cortex.suggestions.automation().pending == ()


def test_meaning_is_enough_with_the_real_model(cortex: Cortex) -> None:
    about = cortex.memories.capture("Permissions are checked in `guards.py` by the user's group").id
    cortex.memories.capture("Cache eviction of prices happens at midnight UTC")
    assert _ids(cortex.suggestions.suggest("Adding role-based access control")) == [about]


def test_what_was_loaded_together_is_suggested_with_the_reason_and_fades(desk: Cortex, clock: FakeClock) -> None:
    about, beside = _ledger(desk)
    _together(desk, clock, about, beside)
    sure = []
    for days in (0, 5, 20):
        clock.advance(days=days)
        one = _of(desk.suggestions.suggest(TASK), beside)
        assert one.source == "reference_history"
        assert one.reason == "loaded together with “The ledger rounding is half to even” 3 times"
        sure.append(one.confidence)
    assert sure[0] > 0.5
    assert sure[0] > sure[1] > sure[2] > 0


def test_what_was_loaded_hours_apart_was_not_used_together(desk: Cortex, clock: FakeClock) -> None:
    about, beside = _ledger(desk)
    for _ in range(3):
        for one in (about, beside):
            _together(desk, clock, one, times=1)
    assert _ids(desk.suggestions.suggest(TASK)) == [about]


def test_what_was_taken_for_such_a_task_is_the_persons_own_choice(desk: Cortex, clock: FakeClock) -> None:
    about, beside = _ledger(desk)
    _together(desk, clock, about, beside)
    for times in ("once", "2 times"):
        found = desk.suggestions.suggest(TASK)
        desk.suggestions.accept(found.session_id, [beside])
        one = _of(desk.suggestions.suggest("Test the ledger rounding"), beside)
        assert one.source == "user_selected" or times == "once"
        if one.source == "user_selected":
            assert one.reason == f"you chose it {times} for such tasks"
    # That both fix something makes no two tasks alike.
    other = desk.suggestions.suggest("Fix login page")
    assert beside not in _ids(other)


@pytest.mark.parametrize("state", ["not committed", "on this branch"])
def test_notes_on_files_that_are_changed_here_are_suggested(open_at: Open, project: Path, state: str) -> None:
    git(project, "init", "-q", "-b", "main")
    names = ["money.py", "quiet.py", 'odd" \\name[1]*,.py', "ends\\"]
    for name in names:
        (project / name).write_text("a = 1\n")
    git(project, "add", ".")
    git(project, "commit", "-q", "-m", "begin")
    git(project, "checkout", "-q", "-b", "feature")
    cortex = open_at()
    notes = {name: cortex.memories.capture(f"Beware number{place}", path=name).id for place, name in enumerate(names)}
    assert cortex.suggestions.suggest("Something unheard of").suggestions == ()
    for name in names:
        if name != "quiet.py":
            (project / name).write_text("a = 2\n")
    if state == "on this branch":
        git(project, "commit", "-q", "-a", "-m", "change")
    found = cortex.suggestions.suggest("Something unheard of")
    assert set(_ids(found)) == set(notes.values()) - {notes["quiet.py"]}
    assert _of(found, notes["money.py"]).reason == "about money.py, which is changed on this branch"


def test_what_the_work_has_at_hand_is_not_suggested_and_tells_what_is_next(
    open_at: Open, project: Path, clock: FakeClock
) -> None:
    git(project, "init", "-q", "-b", "main")
    git(project, "commit", "-q", "--allow-empty", "-m", "begin")
    cortex = open_at()
    line = cortex.contexts.create_branch("Ledger", git_branch="main").id
    said = [cortex.contexts.append(line, text, "user").memory.id for text in ("Round half to even", "Ask the auditors")]
    _together(cortex, clock, *said)
    clock.advance(days=1)
    cortex.contexts.load(said[0], line)
    found = cortex.suggestions.suggest("Something unheard of")
    assert _ids(found) == [said[1]]
    assert (found.suggestions[0].source, found.suggestions[0].branch_topic) == ("reference_history", "Ledger")
    assert _ids(cortex.suggestions.suggest("Something unheard of", branch_id=line)) == [said[1]]
    with pytest.raises(BranchNotFound):
        cortex.suggestions.suggest("Something unheard of", branch_id="../../x")


def _work(cortex: Cortex, clock: FakeClock, rounds: list[tuple[str, ...]]) -> tuple[str, dict[str, str]]:
    """A line of work that has used its notes in rounds, a day between them."""
    line = cortex.contexts.create_branch("Ledger").id
    names = dict.fromkeys(one for used in rounds for one in used)
    ids = {name: cortex.contexts.append(line, f"{name} {name}ly", "user").memory.id for name in names}
    for used in rounds:
        for name in used:
            cortex.contexts.load(ids[name], line)
        clock.advance(days=1)
    return line, ids


def test_what_a_line_of_work_uses_again_and_again_is_suggested_there(desk: Cortex, clock: FakeClock) -> None:
    line, ids = _work(desk, clock, [("often",), ("often",), ("once",), ("often",)])
    found = desk.suggestions.suggest("Something unheard of", branch_id=line)
    assert _ids(found)[:2] == [ids["often"], ids["once"]]
    one = _of(found, ids["often"])
    assert (one.source, one.reason) == ("reference_history", "used in 3 of the last 4 rounds of this line of work")
    # Elsewhere these are nobody's habits.
    other = desk.contexts.create_branch("Payments").id
    for branch in (None, other):
        assert desk.suggestions.suggest("Something unheard of", branch_id=branch).suggestions == ()


def test_what_was_used_earlier_today_may_be_needed_again(desk: Cortex, clock: FakeClock) -> None:
    line, ids = _work(desk, clock, [("note",)])
    desk.contexts.load(ids["note"], line)
    clock.advance(hours=2)
    assert desk.suggestions.suggest("Something unheard of", branch_id=line).suggestions == ()
    clock.advance(minutes=1)
    assert _ids(desk.suggestions.suggest("Something unheard of", branch_id=line)) == [ids["note"]]


def test_a_note_that_names_the_same_thing_says_which_and_beside_what(desk: Cortex) -> None:
    near = desk.memories.capture("The ledger rounding is done by PostgreSQL").id
    far = desk.memories.capture("Backups go from PostgreSQL to Amsterdam at midnight").id
    for word in ("debit", "credit", "balance", "journal"):
        desk.memories.capture(f"The ledger rounding of each {word}")
    found = desk.suggestions.suggest(TASK, top_k=50)
    assert near in _ids(found)
    one = _of(found, far)
    assert (one.source, one.reason) == (
        "ai_analysis",
        "mentions PostgreSQL as does “The ledger rounding is done by PostgreSQL”",
    )


def test_no_more_than_asked_for_are_suggested_the_surest_first(desk: Cortex) -> None:
    for word in ("debit", "credit", "balance", "journal"):
        desk.memories.capture(f"The ledger rounding concerns each {word} entry")
    for top_k in (1, 3, 50):
        found = desk.suggestions.suggest(TASK, top_k=top_k)
        sure = [one.confidence for one in found.suggestions]
        assert len(sure) == min(top_k, 4)
        assert sure == sorted(sure, reverse=True)


@each(
    ("task", "kind"),
    [
        ("Fix the crash in the parser", "fix"), ("Write tests for the parser", "test"),
        ("Document the settings", "docs"), ("Renaming the parser", "refactor"), ("Build a docker image", "operations"),
        ("Adding role-based access control", "feature"), ("The address of a special city", "other"), ("", "other"),
    ],
)  # fmt: skip
def test_the_kind_of_a_task_goes_by_its_words(task: str, kind: str) -> None:
    assert task_kind(task) == kind


# -- what is written down --------------------------------------------------------------------------


def test_loads_finds_and_acceptances_are_events(desk: Cortex, clock: FakeClock) -> None:
    line = desk.contexts.create_branch("Ledger").id
    about = desk.contexts.append(line, "The ledger rounding is half to even", "user").memory.id
    beside = desk.memories.capture("Auditors want every change explained").id
    desk.contexts.load(beside)
    desk.contexts.search("ledger rounding", min_score=0.0)
    desk.contexts.load(about, line)
    clock.advance(hours=1)
    desk.contexts.load(about, line)
    found = desk.suggestions.suggest(TASK)
    desk.suggestions.accept(found.session_id, [about])
    events = desk.suggestions.history()
    assert [(one.memory_id, one.kind, one.branch_id, one.task) for one in events] == [
        (about, "accept", None, TASK),
        (about, "load", line, ""),
        (about, "recall", line, ""),
        (beside, "load", None, ""),
    ]
    assert events[0].at - events[-1].at == 3_600_000_000
    assert [one.kind for one in desk.suggestions.history(limit=1)] == ["accept"]


def test_contexts_used_together_in_one_line_of_work_are_events_of_their_own(desk: Cortex, clock: FakeClock) -> None:
    line, ids = _work(desk, clock, [("debit", "credit", "debit", "refund"), ("debit",)])
    names = {one: name for name, one in ids.items()}
    told = [(names[one.memory_id], one.kind) for one in reversed(desk.suggestions.history())]
    assert told == [
        ("debit", "load"),
        ("credit", "load"),
        ("credit", "together"),
        ("debit", "together"),
        ("debit", "load"),
        ("refund", "load"),
        ("refund", "together"),
        ("debit", "load"),
    ]
    assert {one.branch_id for one in desk.suggestions.history()} == {line}
    # It is told of them, and makes neither pair nor habit stronger.
    events = [one for one in reversed(desk.suggestions.history()) if one.kind != "together"]
    expected = coreferences([ReferenceRow(one.memory_id, "load", line, "", one.at) for one in events])
    pairs = {(str(row[1]), str(row[2])): row[3:5] for row in _rows(desk, "referred_together")}
    assert pairs == {pair: (pytest.approx(one.value), one.times) for pair, one in expected.items()}
    assert {names[str(row[1])]: row[3] for row in _rows(desk, "referred")} == {"debit": 2, "credit": 1, "refund": 1}


def test_what_a_person_picks_by_hand_weighs_more_than_what_is_taken_for_them(desk: Cortex, clock: FakeClock) -> None:
    about, _ = _ledger(desk)
    found = desk.suggestions.suggest(TASK)
    desk.suggestions.accept(found.session_id, [about], by_hand=True)
    desk.suggestions.accept(desk.suggestions.suggest(TASK).session_id, [about])
    assert [one.kind for one in desk.suggestions.history()] == ["accept", "select"]
    assert _of(desk.suggestions.suggest(TASK), about).reason == "you chose it 2 times for such tasks"
    ((*_, strength, times, _at),) = _rows(desk, "referred")
    assert (strength, times) == (pytest.approx(2.0 + 1.5), 1)


def test_a_load_belongs_to_the_line_of_work_it_was_needed_in(open_at: Open, project: Path) -> None:
    git(project, "init", "-q", "-b", "main")
    git(project, "commit", "-q", "--allow-empty", "-m", "begin")
    cortex = open_at()
    theirs = cortex.contexts.create_branch("Ledger").id
    note = cortex.contexts.append(theirs, "Round half to even", "user").memory.id
    cortex.contexts.load(note, theirs)
    ours = cortex.contexts.create_branch("Payments", git_branch="main").id
    cortex.contexts.load(note, theirs)
    cortex.contexts.load(note)
    assert [one.branch_id for one in cortex.suggestions.history()] == [ours, ours, theirs]


@pytest.mark.parametrize("flushed", ["one by one", "at once"])
def test_what_is_summed_up_is_what_the_events_come_to(desk: Cortex, flushed: str) -> None:
    ids = [desk.memories.capture(f"note {n}").id for n in range(5)]
    order = [0, 1, 2, 1, 3, 0, 4]
    for place in order:
        desk.contexts.load(ids[place])
        if flushed == "one by one":
            desk.upkeep()
    now = desk.suggestions.history()[0].at
    events = [ReferenceRow(ids[place], "load", None, "", now) for place in order]
    pairs = {(str(row[1]), str(row[2])): row[3:5] for row in _rows(desk, "referred_together")}
    expected = coreferences(events)
    assert pairs.keys() == expected.keys()
    for pair, strength in expected.items():
        assert pairs[pair] == (pytest.approx(strength.value), strength.times)
    used = {str(row[1]): row[2:4] for row in _rows(desk, "referred")}
    assert used == {one: (pytest.approx(strength.value), strength.times) for one, strength in uses(events).items()}


def test_looking_for_suggestions_is_no_use_of_what_is_found(desk: Cortex) -> None:
    _ledger(desk)
    assert len({desk.suggestions.suggest(TASK).session_id for _ in range(20)}) == 20
    for text in ("x" * 10_000, "ledger " * 1_400, 'ns:decisions -tag:x "', "\0\x1b[31m", "☃ 帳簿 🧾", "a" * 300):
        desk.suggestions.suggest(text)
    desk.memories.write_uses()
    assert desk.suggestions.history() == []
    assert _rows(desk, "recalled") == []


def test_events_are_written_on_closing_between_calls_and_after_some(open_at: Open) -> None:
    first, other = open_at(), open_at()
    about, beside = _ledger(first)
    first.contexts.load(about)
    assert other.suggestions.history() == []
    first.upkeep()
    assert len(other.suggestions.history()) == 1
    for _ in range(20):
        first.contexts.load(about)
    assert len(other.suggestions.history()) == 21
    first.contexts.load(beside)
    first.close()
    assert other.suggestions.history()[0].memory_id == beside


def test_a_store_that_cannot_be_written_fails_no_load_and_loses_no_event(
    desk: Cortex, monkeypatch: pytest.MonkeyPatch
) -> None:
    about, _ = _ledger(desk)

    def busy(*_spaces: str) -> None:
        raise StoreBusy("The store is busy.")

    with monkeypatch.context() as full:
        full.setattr(store_of(desk).database, "write", busy)
        for _ in range(30):
            assert desk.contexts.load(about).id == about
        assert desk.suggestions.history() == []
        with pytest.raises(StoreBusy):
            desk.suggestions.suggest(TASK)
    assert len(desk.suggestions.history()) == 30


@pytest.mark.parametrize("policy", ["redact", "block"])
def test_a_secret_in_a_task_or_a_reason_is_not_kept(open_at: Open, home: Path, policy: str) -> None:
    cortex = open_at(secrets=policy)
    about, _ = _ledger(cortex)
    task = f"{TASK} with {TOKEN}"
    if policy == "block":
        with pytest.raises(ContentBlocked):
            cortex.suggestions.suggest(task)
        found = cortex.suggestions.suggest(TASK)
        with pytest.raises(ContentBlocked):
            cortex.suggestions.reject(found.session_id, f"I only asked for {TOKEN}")
        assert [one.session_id for one in cortex.suggestions.automation().pending] == [found.session_id]
    else:
        found = cortex.suggestions.suggest(task)
        cortex.suggestions.accept(found.session_id, [about])
        found = cortex.suggestions.suggest(task)
        cortex.suggestions.reject(found.session_id, f"I only asked for {TOKEN}")
    cortex.close()
    assert not any(TOKEN.encode() in file.read_bytes() for file in home.rglob("*") if file.is_file())


def test_purging_leaves_nothing_of_a_memory(desk: Cortex, home: Path, clock: FakeClock) -> None:
    about, beside = _ledger(desk)
    _together(desk, clock, about, beside)
    for answer in ("accept", "reject", "open"):
        found = desk.suggestions.suggest("Explain the ledger to new colleagues" if answer == "reject" else TASK)
        assert {about, beside} <= set(_ids(found))
        if answer == "accept":
            desk.suggestions.accept(found.session_id, [about])
        elif answer == "reject":
            desk.suggestions.reject(found.session_id, "irrelevant")
    before = desk.suggestions.automation().standing
    desk.memories.delete(about, hard=True)
    assert about not in repr(_everything(desk))
    assert beside in repr(_everything(desk))
    # What was answered was answered.
    assert desk.suggestions.automation().standing == before
    assert desk.suggestions.suggest(TASK).suggestions == ()
    with pytest.raises(InvalidInput):
        desk.suggestions.accept(found.session_id, [about])
    assert desk.suggestions.accept(found.session_id, [beside]) == 1
    desk.close()
    words = b"half to even"
    assert not any(words in file.read_bytes() for file in home.rglob("*") if file.is_file())


def test_what_was_noted_of_a_memory_that_is_purged_meanwhile_is_not_written(open_at: Open) -> None:
    cortex, other = open_at(), open_at()
    about, beside = _ledger(cortex)
    for one in (about, beside):
        cortex.contexts.load(one)
    other.memories.delete(about, hard=True)
    assert [one.memory_id for one in cortex.suggestions.history()] == [beside]
    assert about not in repr(_everything(cortex))


def test_a_deleted_memory_is_not_suggested_until_it_is_back(desk: Cortex, clock: FakeClock) -> None:
    about, beside = _ledger(desk)
    _together(desk, clock, about, beside)
    desk.memories.delete(beside)
    assert _ids(desk.suggestions.suggest(TASK)) == [about]
    desk.memories.restore(beside)
    assert set(_ids(desk.suggestions.suggest(TASK))) == {about, beside}


def test_each_project_has_its_own_history_sessions_and_trust(open_at: Open, tmp_path: Path, clock: FakeClock) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    here, there = open_at(), open_at(elsewhere)
    # A person's own notes are seen from both.
    about = here.memories.capture("The ledger rounding is half to even", domain="user").id
    beside = here.memories.capture("Auditors want every change explained", domain="user").id
    _together(here, clock, about, beside)
    found = here.suggestions.suggest(TASK)
    assert set(_ids(found)) == {about, beside}
    assert _ids(there.suggestions.suggest(TASK)) == [about]
    with pytest.raises(SuggestionNotFound):
        there.suggestions.accept(found.session_id, [about])
    here.suggestions.reject(found.session_id, "irrelevant")
    assert there.suggestions.history() == []
    assert there.suggestions.automation().standing.feedback_count == 0
    # A desk may be asked for another project by its id.
    assert there.suggestions.automation(project_id=here.project.id).standing.feedback_count == 1
    assert len(there.suggestions.history(project_id=here.project.id)) == 6
    with pytest.raises(ProjectNotFound):
        there.suggestions.suggest(TASK, project_id="0" * 12)


# -- sessions --------------------------------------------------------------------------------------


def test_a_session_waits_and_is_shown_until_it_is_answered(desk: Cortex, clock: FakeClock) -> None:
    _ledger(desk)
    first = desk.suggestions.suggest(TASK)
    (waiting,) = desk.suggestions.automation().pending
    assert (waiting.session_id, waiting.task, waiting.suggestions) == (first.session_id, TASK, 1)
    assert (waiting.expires_at - clock.now()).total_seconds() == 1800
    second = desk.suggestions.suggest("Test the ledger rounding")
    assert first.session_id != second.session_id
    assert second.pending == (waiting,)
    desk.suggestions.accept(first.session_id, _ids(first))
    assert [one.session_id for one in desk.suggestions.automation().pending] == [second.session_id]
    desk.suggestions.reject(second.session_id, "too early")
    assert desk.suggestions.automation().pending == ()


def _accept(cortex: Cortex, session: str, ids: list[str]) -> object:
    return cortex.suggestions.accept(session, ids)


def _reject(cortex: Cortex, session: str, _: list[str]) -> object:
    return cortex.suggestions.reject(session, "irrelevant")


ANSWERS = [_accept, _reject]


@pytest.mark.parametrize("second", ANSWERS)
@pytest.mark.parametrize("first", ANSWERS)
def test_a_session_is_answered_once(open_at: Open, first: Callable[..., object], second: Callable[..., object]) -> None:
    cortex, other = open_at(), open_at()
    _ledger(cortex)
    found = cortex.suggestions.suggest(TASK)
    first(cortex, found.session_id, _ids(found))
    before = _everything(cortex)
    for desk in (cortex, other):
        with pytest.raises(SuggestionClosed, match="already") as refused:
            second(desk, found.session_id, _ids(found))
        assert isinstance(refused.value, Conflict)
        assert refused.value.remedy
    assert _everything(cortex) == before


@pytest.mark.parametrize("answer", ANSWERS)
def test_a_session_expires_after_half_an_hour(desk: Cortex, clock: FakeClock, answer: Callable[..., object]) -> None:
    _ledger(desk)
    last, late = desk.suggestions.suggest(TASK), desk.suggestions.suggest(TASK)
    clock.advance(minutes=29, seconds=59)
    answer(desk, last.session_id, _ids(last))
    clock.advance(seconds=1)
    before = _everything(desk)
    assert desk.suggestions.automation().pending == ()
    with pytest.raises(SuggestionClosed, match="expired"):
        answer(desk, late.session_id, _ids(late))
    assert _everything(desk) == before


@pytest.mark.parametrize("answer", ANSWERS)
def test_a_session_outlives_the_process_and_is_anybodys(open_at: Open, answer: Callable[..., object]) -> None:
    first = open_at()
    _ledger(first)
    found = first.suggestions.suggest(TASK)
    first.close()
    second = open_at()
    assert [one.session_id for one in second.suggestions.automation().pending] == [found.session_id]
    answer(second, found.session_id, _ids(found))
    assert open_at().suggestions.automation().standing.feedback_count == 1


@pytest.mark.parametrize(
    "session", ["", "suggestion_session_000000000000", "../../x", "x" * 10_000, "' OR 1=1 --", "\0"]
)
@pytest.mark.parametrize("answer", ANSWERS)
def test_an_unknown_session_is_told(desk: Cortex, session: str, answer: Callable[..., object]) -> None:
    about, _ = _ledger(desk)
    desk.suggestions.suggest(TASK)
    before = _everything(desk)
    with pytest.raises(SuggestionNotFound) as refused:
        answer(desk, session, [about])
    assert isinstance(refused.value, NotFound)
    assert refused.value.field == "session_id"
    assert len(refused.value.message) < 200
    assert _everything(desk) == before


@pytest.mark.parametrize(
    "stranger", ["../../x", "", "zz", "0" * 40, "context_" + "f" * 40, "f" * 9_000, "not suggested"]
)
def test_an_unknown_context_takes_nothing_not_even_the_others(desk: Cortex, stranger: str) -> None:
    about, beside = _ledger(desk)
    found = desk.suggestions.suggest(TASK)
    before = _everything(desk)
    with pytest.raises(InvalidInput) as refused:
        desk.suggestions.accept(found.session_id, [about, beside if stranger == "not suggested" else stranger])
    assert refused.value.field == "context_ids"
    assert _everything(desk) == before
    assert desk.suggestions.accept(found.session_id, [about]) == 1


def test_a_prefix_of_several_takes_none_of_them(desk: Cortex, clock: FakeClock) -> None:
    first = desk.memories.capture("The ledger rounding of debits")
    clock.repeat_prefix()
    second = desk.memories.capture("The ledger rounding in refunds")
    found = desk.suggestions.suggest(TASK)
    assert set(_ids(found)) == {first.id, second.id}
    with pytest.raises(AmbiguousId) as refused:
        desk.suggestions.accept(found.session_id, [first.id[:8]])
    assert set(refused.value.candidates) == {first.id, second.id}
    assert len(desk.suggestions.automation().pending) == 1


def test_none_and_nothing_said_are_no_answers(desk: Cortex) -> None:
    about, _ = _ledger(desk)
    found, other = desk.suggestions.suggest(TASK), desk.suggestions.suggest(TASK)
    with pytest.raises(InvalidInput):
        desk.suggestions.accept(found.session_id, [])
    for reason in ("", " \n"):
        with pytest.raises(InvalidInput):
            desk.suggestions.reject(found.session_id, reason)
    assert len(desk.suggestions.automation().pending) == 2
    assert desk.suggestions.reject(found.session_id, "irrelevant " * 10_000) == ("irrelevant",)
    # A context named twice, in any spelling, is taken once.
    assert desk.suggestions.accept(other.session_id, [about, f"context_{about}", f"subcog://memory/{about}"]) == 1


@pytest.mark.parametrize(
    ("task", "top_k"), [("", 5), ("  \n\t", 5), ("x" * 10_001, 5), (TASK, 0), (TASK, 51), (TASK, -1)]
)
def test_what_cannot_be_asked_is_told_and_opens_nothing(desk: Cortex, task: str, top_k: int) -> None:
    _ledger(desk)
    with pytest.raises(InvalidInput):
        desk.suggestions.suggest(task, top_k=top_k)
    assert _rows(desk, "suggestion_session") == []


def test_old_sessions_are_let_go_of(desk: Cortex, clock: FakeClock) -> None:
    _ledger(desk)
    desk.suggestions.suggest(TASK)
    clock.advance(days=181)
    kept = desk.suggestions.suggest(TASK)
    assert [row[1] for row in _rows(desk, "suggestion_session")] == [kept.session_id]
    assert {row[1] for row in _rows(desk, "suggestion")} == {kept.session_id}


def test_of_two_processes_that_answer_at_once_exactly_one_does(home: Path, project: Path) -> None:
    script = Path(__file__).with_name("answerer.py")
    with Cortex.open(home, project=project, backend=StubBackend()) as cortex:
        about, _ = _ledger(cortex)
        workers = [
            subprocess.Popen(
                [*python_command(), str(script), str(home), str(project), how],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            for how in ("accept", "reject")
        ]
        try:
            for worker in workers:
                assert worker.stdout is not None
                assert worker.stdout.readline() == "ready\n"
            for number in range(1, 11):
                asked = cortex.suggestions.suggest(TASK)
                session = asked.session_id
                if not asked.suggestions:
                    break  # the rejection was first: what it rejected is not shown again
                for worker in workers:
                    assert worker.stdin is not None
                    worker.stdin.write(f"{session} {about}\n")
                    worker.stdin.flush()
                told = [worker.stdout.readline().strip() for worker in workers if worker.stdout]
                assert sorted(told) == ["SuggestionClosed", "done"]
                state = {row[1]: row[6] for row in _rows(cortex, "suggestion_session")}[session]
                assert state == ("accepted" if told[0] == "done" else "rejected")
                assert cortex.suggestions.automation().standing.feedback_count == number
        finally:
            for worker in workers:
                worker.communicate(timeout=60)
        taken = [row for row in _rows(cortex, "suggestion_session") if row[6] == "accepted"]
        assert len(cortex.suggestions.history()) == len(taken)


# -- what answers teach ----------------------------------------------------------------------------


def _sure(cortex: Cortex, task: str, memory_id: str) -> float:
    return _of(cortex.suggestions.suggest(task), memory_id).confidence


def test_the_next_suggestion_knows_the_last_answer(desk: Cortex, clock: FakeClock) -> None:
    about, beside = _ledger(desk)
    _together(desk, clock, about, beside)
    before = desk.suggestions.suggest(TASK)
    desk.suggestions.reject(desk.suggestions.suggest("Fix the ledger totals").session_id, "not relevant")
    after = desk.suggestions.suggest(TASK)
    for one in (about, beside):
        assert _of(after, one).confidence < _of(before, one).confidence
    desk.suggestions.accept(after.session_id, [beside])
    again = desk.suggestions.suggest(TASK)
    assert _of(again, beside).confidence > _of(after, beside).confidence
    # What was passed over beside it lost a little of its worth.
    raw = {row[1]: float(str(row[5])) for row in _rows(desk, "suggestion") if row[3] == about}
    assert raw[before.session_id] > raw[after.session_id] > raw[again.session_id]


def test_what_was_rejected_does_not_come_back_for_the_task(desk: Cortex, clock: FakeClock) -> None:
    about, beside = _ledger(desk)
    _together(desk, clock, about, beside)
    for reason in ("outdated, we left it", "irrelevant"):
        found = desk.suggestions.suggest(TASK)
        assert found.suggestions or reason == "irrelevant"
        desk.suggestions.reject(found.session_id, reason)
    assert desk.suggestions.suggest("Please fix the rounding in the ledger").suggestions == ()
    assert {about, beside} <= set(_ids(desk.suggestions.suggest("Test the ledger totals")))
    clock.advance(seconds=1)
    desk.memories.update(about, content="The ledger rounding is half up since the audit")
    assert _ids(desk.suggestions.suggest(TASK)) == [about]
    clock.advance(days=31)
    assert beside in _ids(desk.suggestions.suggest(TASK))


def test_a_session_without_suggestions_can_be_rejected(desk: Cortex) -> None:
    found = desk.suggestions.suggest(TASK)
    assert found.suggestions == ()
    with pytest.raises(InvalidInput):
        desk.suggestions.accept(found.session_id, ["0" * 40])
    assert desk.suggestions.reject(found.session_id, "nothing was offered") == ()
    told = desk.suggestions.automation()
    assert (told.pending, told.standing.feedback_count) == ((), 0)
    with pytest.raises(SuggestionClosed):
        desk.suggestions.reject(found.session_id, "nothing was offered")


def test_a_rejection_weighs_most_for_tasks_of_its_kind(desk: Cortex) -> None:
    about, _ = _ledger(desk)
    tasks = ("Fix the ledger rounding", "Document the ledger rounding")
    before = [_sure(desk, task, about) for task in tasks]
    assert before[0] == pytest.approx(before[1], abs=0.05)
    for part in range(5):
        found = desk.suggestions.suggest(f"Fix ledger part{part}")
        desk.suggestions.reject(found.session_id, "not relevant")
    lost = [was - _sure(desk, task, about) for was, task in zip(before, tasks, strict=True)]
    assert lost[0] > lost[1] > 0


def test_the_reason_decides_what_is_lowered(desk: Cortex) -> None:
    places = {"invoices": "src/billing", "reminders": "src/billing", "customs": "src/taxes"}
    notes = {
        word: desk.memories.capture(f"About {word}", path=f"{folder}/{word}.py").id for word, folder in places.items()
    }

    def sure(word: str) -> float:
        found = desk.suggestions.suggest(f"Fix {word}", top_k=1)
        assert _ids(found)[0] == notes[word]
        return found.suggestions[0].confidence

    before = {word: sure(word) for word in notes}
    for part in range(3):
        found = desk.suggestions.suggest(f"Fix invoices part{part}", top_k=1)
        assert desk.suggestions.reject(found.session_id, "wrong module") == ("wrong area",)
    lost = {word: before[word] - sure(word) for word in notes}
    # The folder is at fault, not the note: its neighbour loses as much, and what lies elsewhere less.
    assert lost["invoices"] == pytest.approx(lost["reminders"], abs=0.02)
    assert lost["invoices"] > lost["customs"] + 0.05


def test_what_was_learned_fades(desk: Cortex, clock: FakeClock) -> None:
    about, _ = _ledger(desk)
    before = _sure(desk, TASK, about)
    for part in range(5):
        desk.suggestions.reject(desk.suggestions.suggest(f"Fix ledger part{part}").session_id, "not relevant")
    low = _sure(desk, TASK, about)
    clock.advance(days=90)
    assert low < _sure(desk, TASK, about) <= before


def _topics(cortex: Cortex, first: int, count: int) -> list[str]:
    """Notes that only their words speak for; each with the task that finds it."""
    words = [f"topic{n}" for n in range(first, first + count)]
    for word in words:
        cortex.memories.capture(f"About {word} there is a note on {word}")
    return words


def _share(cortex: Cortex) -> float:
    """How many of the suggestions, at most five, speak by their words alone."""
    found = cortex.suggestions.suggest("Fix debit credit balance journal refund", top_k=5).suggestions
    return sum(one.source == "ai_analysis" for one in found) / len(found)


def test_a_source_that_is_always_refused_is_shown_less_and_last_and_comes_back(desk: Cortex, clock: FakeClock) -> None:
    contents = ("Fix debit, credit, balance", "Fix journal, refund, credit", "balance", "journal", "refund")
    notes = [desk.memories.capture(content).id for content in contents]
    texts = ("Keep receipts", "Mail Bob", "Ask auditors", "Blue paper", "Sign twice", "Call Zoë")
    others = [desk.memories.capture(text).id for text in texts]
    for _ in range(2):
        for place, note in enumerate(notes[2:]):
            _together(desk, clock, note, *others[2 * place : 2 * place + 2], times=1)
    # All are there from the start: in a larger store the same words mean less.
    refused, accepted = _topics(desk, 0, 20), _topics(desk, 20, 20)
    before = _share(desk)
    assert before >= 0.4
    for word in refused:
        found = desk.suggestions.suggest(f"Fix {word}", top_k=1)
        assert [one.source for one in found.suggestions] == ["ai_analysis"]
        desk.suggestions.reject(found.session_id, "irrelevant")
    assert _share(desk) <= before * 2 / 3
    last = desk.suggestions.suggest("Fix debit credit balance journal refund", top_k=5).suggestions[-1]
    assert last.source == "ai_analysis"
    for word in accepted:
        found = desk.suggestions.suggest(f"Fix {word}", top_k=1)
        desk.suggestions.accept(found.session_id, _ids(found))
    assert _share(desk) >= before
