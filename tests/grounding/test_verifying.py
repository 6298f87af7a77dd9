"""Verdicts on claims about one small project, each with the place that a person would open."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from sample_project import commit, fill, junit, locations, make_repository, make_sample, only, open_at

from cases import each
from cortex_py import Cortex
from cortex_py.core.errors import LimitExceeded
from cortex_py.parts.verify.verification import Finding, Verification

from helpers import git


@dataclass(frozen=True)
class Sample:
    root: Path
    ids: dict[str, str]
    cortex: Cortex

    def verify(self, text: str, *sources: str) -> Verification:
        return self.cortex.grounding.verify(text, evidence_sources=list(sources) or None)

    def judge(self, text: str, *sources: str) -> Finding:
        return only(self.verify(text, *sources))


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sample]:
    """The project, with a report of a test run that git ignores; no test changes it."""
    folder = tmp_path_factory.mktemp("sample")
    root = folder / "project"
    with pytest.MonkeyPatch.context() as patch:
        for name in ("AUTHOR", "COMMITTER"):
            patch.setenv(f"GIT_{name}_NAME", "A")
            patch.setenv(f"GIT_{name}_EMAIL", "a@example.org")
        ids = make_sample(root)
    fill(root, {"junit.xml": junit(), ".git/info/exclude": "junit.xml\nscratch/\n", "scratch/plan.py": "x = 1\n"})
    with open_at(folder / "home", root) as cortex:
        yield Sample(root, ids, cortex)


# What is there


@each(
    ("text", "place"),
    [
        ("There is a file app/auth.py.", "File: app/auth.py"),
        ("`login` is defined in app/auth.py.", "File: app/auth.py line 34"),
        ("`ApiClient` is defined in web/src/client.ts.", "File: web/src/client.ts line 8"),
        ("`ServeSession` is defined in cmd/server.go.", "File: cmd/server.go line 11"),
        ("`Sessions` has a method `open_session`.", "File: app/auth.py line 25"),
        ("`login` raises `AuthError`.", "File: app/auth.py line 37"),
        ("`AuthError` inherits from `Exception`.", "File: app/auth.py line 14"),
        ("app/auth.py imports `hashlib`.", "File: app/auth.py line 5"),
        ("There is no `refresh_token` in app/auth.py.", "File: app/auth.py line 41"),
    ],
)
def test_what_is_there_is_supported_by_where_it_is(sample: Sample, text: str, place: str) -> None:
    found = sample.judge(text)
    assert found.verdict == "supported", found
    assert place in locations(found)


@each(
    ("text", "reason"),
    [
        ("There is a file app/session.py.", "there is no file app/session.py"),
        (
            "`refresh_token` is defined in app/auth.py.",
            "no symbol `refresh_token` in app/auth.py; nearest: `rotate_token`",
        ),
        (
            "`formatExpiry` is defined in app/auth.py.",
            "`formatExpiry` is not in app/auth.py; it is defined in web/src/client.ts line 17",
        ),
        ("`Sessions` has a method `renew_all`.", "has no `renew_all`"),
        ("`login` raises `ValueError`.", "`login` raises `AuthError`, not `ValueError`"),
        ("app/auth.py imports `numpy`.", "app/auth.py does not import `numpy`"),
        ("There is no `login` in app/auth.py.", "`login` is defined in app/auth.py line 34"),
    ],
)
def test_what_is_not_there_is_contradicted_with_what_is(sample: Sample, text: str, reason: str) -> None:
    found = sample.judge(text)
    assert found.verdict == "contradicted", found
    assert reason in found.reason


def test_a_file_that_git_ignores_is_there_but_says_nothing(sample: Sample) -> None:
    found = sample.judge("There is a file scratch/plan.py.")
    assert found.verdict == "supported"
    assert "ignored by git" in found.reason


# What was done


def test_what_was_added_is_supported_by_the_change_that_added_it(sample: Sample) -> None:
    found = sample.judge("I added `rotate_token` to app/auth.py.")
    assert found.verdict == "supported"
    short = sample.ids["rotate"][:7]
    assert f"Commit {short} (2026-01-06): Rotate tokens and allow five attempts" in locations(found)


def test_what_was_removed_is_supported_by_the_change_that_removed_it(sample: Sample) -> None:
    place = f"Commit {sample.ids['legacy'][:7]} (2026-01-07): Remove the legacy login"
    for text in ("I removed `old_login`.", "I deleted app/legacy.py."):
        found = sample.judge(text)
        assert found.verdict == "supported", found
        assert place in locations(found)


@each(
    ("text", "reason"),
    [
        ("I added `revoke_token` to app/auth.py.", "no symbol `revoke_token`"),
        ("I added `connect` to app/auth.py.", "`connect` is not in app/auth.py"),
        ("I removed `login` from app/auth.py.", "`login` is still defined in app/auth.py line 34"),
        ("I deleted app/store.py.", "app/store.py still exists"),
        ("`rotate_token` was added in version 1.0.0.", "`rotate_token` was not introduced by commit"),
    ],
)
def test_what_was_not_done_is_contradicted(sample: Sample, text: str, reason: str) -> None:
    found = sample.judge(text)
    assert found.verdict == "contradicted", found
    assert reason in found.reason


@each(
    ("commit", "work", "others"),
    [
        ("store", "added the store", "added the login"),
        ("web", "added the web client", "implemented token rotation"),
        ("auth", "added `login`", "added `rotate_token`"),
        ("legacy", "removed `old_login`", "removed `login`"),
    ],
)
def test_a_commit_supports_what_it_did_and_nothing_else(sample: Sample, commit: str, work: str, others: str) -> None:
    own, other = sample.judge(f"Commit {sample.ids[commit]} {work}."), sample.judge(f"{sample.ids[commit]} {others}.")
    assert own.verdict == "supported", own
    assert [one.commit for one in own.evidence][:1] == [sample.ids[commit]]
    assert other.verdict != "supported", other


def test_the_last_commit_is_no_older_one(sample: Sample) -> None:
    assert sample.judge("The last commit touched CHANGELOG.md.").verdict == "supported"
    older = sample.judge("The last commit touched app/auth.py.")
    assert (older.verdict, older.reason) == (
        "contradicted",
        f"commit {sample.ids['release'][:7]} did not change app/auth.py",
    )
    assert sample.judge("The latest commit removed the legacy login.").verdict != "supported"


def test_a_rename_needs_the_old_name_gone_and_the_new_one_there(home: Path, project: Path) -> None:
    make_repository(project)
    commit(project, {"app/db.py": "def migrate():\n    return 1\n\n\ndef connect():\n    return 2\n"}, "first", 1)
    git(project, "mv", "app/db.py", "app/storage.py")
    commit(project, {"app/storage.py": "def upgrade():\n    return 1\n\n\ndef connect():\n    return 2\n"}, "second", 2)
    with open_at(home, project) as cortex:

        def verdicts(*texts: str) -> list[str]:
            return [only(cortex.grounding.verify(text)).verdict for text in texts]

        assert (
            verdicts(
                "Renamed `migrate` to `upgrade`.",
                "Renamed `migrate` to `upgrade` in app/storage.py.",
                "The last commit renamed `migrate` to `upgrade`.",
                "Renamed app/db.py to app/storage.py.",
            )
            == ["supported"] * 4
        )
        assert (
            verdicts(
                "Renamed `upgrade` to `migrate`.",
                "Renamed `connect` to `open_database`.",
                "Renamed `attach` to `connect`.",
                "Renamed app/storage.py to app/db.py.",
                "Renamed app/base.py to app/storage.py.",
            )
            == ["contradicted"] * 5
        )


def test_what_is_nowhere_is_not_looked_for_in_the_file_before(sample: Sample) -> None:
    there = sample.verify("`Store` is defined in app/store.py. There is no `SESSION_SECONDS`.")
    assert [one.verdict for one in there.findings] == ["supported", "contradicted"]
    gone = sample.verify("`Store` is defined in app/store.py. There is no `refresh_token`.")
    assert [one.verdict for one in gone.findings] == ["supported", "supported"]


def test_what_has_no_name_may_lack_what_something_else_has(sample: Sample) -> None:
    assert sample.judge("The session view has no `refresh_token` field.").verdict == "supported"
    assert sample.judge("The session view has no `open_session` method.").verdict == "unverified"


@each(
    "text",
    [
        "The module app/store.py defines `Store`.",
        "Added a new module client.ts.",
        "`ApiClient` is in the module client.ts.",
    ],
)
def test_a_file_is_no_symbol_after_the_word_module(sample: Sample, text: str) -> None:
    assert sample.judge(text).verdict == "supported"


def test_that_something_exists_does_not_show_that_it_was_added_elsewhere(home: Path, project: Path) -> None:
    make_repository(project)
    commit(project, {"a.py": "def shared():\n    return 1\n", "b.py": "from a import shared\n\n\nshared()\n"}, "first")
    with open_at(home, project) as cortex:
        found = only(cortex.grounding.verify("I added `shared` to b.py."))
    assert found.verdict != "supported"


@pytest.mark.parametrize("staged", [False, True])
def test_work_that_is_not_committed_counts_as_done(home: Path, project: Path, staged: bool) -> None:
    make_repository(project)
    commit(project, {"a.py": "def one():\n    return 1\n"}, "first")
    fill(project, {"a.py": "def one():\n    return 1\n\n\ndef brand_new():\n    return 2\n"})
    if staged:
        git(project, "add", "a.py")
    with open_at(home, project) as cortex:
        found = only(cortex.grounding.verify("I added `brand_new` to a.py."))
    assert found.verdict == "supported"
    assert "Uncommitted change: a.py" in locations(found)


def test_a_new_file_counts_before_git_knows_it(home: Path, project: Path) -> None:
    make_repository(project)
    commit(project, {"a.py": "def one():\n    return 1\n"}, "first")
    fill(project, {"fresh.py": "def brand_new():\n    return 2\n"})
    with open_at(home, project) as cortex:
        found = only(cortex.grounding.verify("I added `brand_new` to fresh.py."))
    assert found.verdict == "supported"
    assert "Uncommitted change: fresh.py" in locations(found)


# Numbers, versions, packages, tests


@each(
    ("right", "wrong", "place"),
    [
        ("`MAX_ATTEMPTS` is set to 5.", "`MAX_ATTEMPTS` is set to 7.", "File: app/auth.py line 10"),
        ("`SESSION_SECONDS` is 15 minutes.", "`SESSION_SECONDS` is 20 minutes.", "File: app/auth.py line 11"),
        ("`ttl_seconds` is 300 in config.yaml.", "`ttl_seconds` is 900 in config.yaml.", "File: config.yaml line 5"),
        ("`DefaultPort` is 8080.", "`DefaultPort` is 9090.", "File: cmd/server.go line 5"),
        ("The project requires pydantic 2.7.1.", "The project requires pydantic 1.10.", "File: pyproject.toml line 7"),
    ],
)
def test_values_are_compared_by_value(sample: Sample, right: str, wrong: str, place: str) -> None:
    good, bad = sample.judge(right), sample.judge(wrong)
    assert (good.verdict, bad.verdict) == ("supported", "contradicted"), (good, bad)
    assert place in locations(good)
    assert place in locations(bad)


@each(
    ("true", "false"),
    [
        ("SESSION_SECONDS is fifteen minutes.", "SESSION_SECONDS is one hour."),
        ("SESSION_SECONDS is a quarter of an hour.", "SESSION_SECONDS is an hour."),
        ("`ttl_seconds` is five minutes in config.yaml.", "`ttl_seconds` is half a minute in config.yaml."),
    ],
)
def test_numbers_in_words_are_compared_with_their_units(sample: Sample, true: str, false: str) -> None:
    assert not any(one.verdict == "contradicted" for one in sample.verify(true).findings)
    assert sample.judge(false).verdict == "contradicted"


@each("text", ["SESSION_SECONDS is fifteen minutes.", "`ttl_seconds` is five minutes in config.yaml."])
def test_a_value_in_words_is_supported_by_the_number_it_means(sample: Sample, text: str) -> None:
    assert sample.judge(text).verdict == "supported"


def test_a_value_in_the_code_says_nothing_of_the_named_document(home: Path, project: Path) -> None:
    make_repository(project)
    files = {"README.md": "# Limits\n\n`MAX_ITEMS` bounds a list.\n", "limits.py": "MAX_ITEMS = 40\n"}
    commit(project, files, "first")
    with open_at(home, project) as cortex:
        assert only(cortex.grounding.verify("`MAX_ITEMS` is 40.")).verdict == "supported"
        named = only(cortex.grounding.verify("The README lists `MAX_ITEMS` with a default of `40`."))
        assert named.verdict == "unverified"


def test_a_variable_without_a_fallback_is_not_compared_with_the_next_words(home: Path, project: Path) -> None:
    make_repository(project)
    commit(project, {"config.py": "import os\n\nKEY = os.environ.get('SECRET_KEY') or 'guess'\n"}, "first")
    with open_at(home, project) as cortex:
        found = only(cortex.grounding.verify("`SECRET_KEY` has no fallback, the app refuses to start without it."))
        assert found.verdict != "supported"


def test_a_bound_is_refuted_by_no_value_on_its_good_side(sample: Sample) -> None:
    assert sample.judge("SESSION_SECONDS is less than an hour.").verdict != "contradicted"
    assert sample.judge("SESSION_SECONDS is at most one hour.").verdict != "contradicted"


def test_the_projects_own_version_is_known(sample: Sample) -> None:
    assert sample.judge("The version in pyproject.toml is 1.1.0.").verdict == "supported"
    wrong = sample.judge("The version in pyproject.toml is 2.0.0.")
    assert (wrong.verdict, wrong.reason) == (
        "contradicted",
        "the version in pyproject.toml line 3 is 1.1.0, not 2.0.0",
    )


def test_a_package_that_no_manifest_names_is_contradicted(sample: Sample) -> None:
    found = sample.judge("The project depends on `sqlalchemy`.")
    assert (found.verdict, found.reason) == ("contradicted", "no manifest names sqlalchemy")


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ("9 tests passed and 2 failed.", "supported"),
        ("All tests pass.", "contradicted"),
        ("12 tests passed.", "contradicted"),
    ],
)
def test_what_the_tests_gave_is_read_from_the_report(sample: Sample, text: str, verdict: str) -> None:
    found = sample.judge(text)
    assert found.verdict == verdict
    assert locations(found) == ["Test report: junit.xml line 2: 9 passed, 2 failed, 1 skipped"]


def test_without_a_report_what_the_tests_gave_cannot_be_checked(home: Path, project: Path) -> None:
    make_repository(project)
    commit(project, {"a.py": "x = 1\n"}, "first")
    with open_at(home, project) as cortex:
        found = cortex.grounding.verify("All tests pass.")
    assert (only(found).verdict, only(found).reason) == ("not checkable", "no test report was found")
    assert (found.score, found.status) == (0.5, "WARN")


def test_a_line_that_is_named_is_looked_at(sample: Sample) -> None:
    assert sample.judge("`rotate_token` is at line 41 of app/auth.py.").verdict == "supported"
    wrong = sample.judge("`rotate_token` is at line 12 of app/auth.py.")
    assert (wrong.verdict, wrong.reason) == ("contradicted", "`rotate_token` is at line 41 of app/auth.py, not 12")


# Sources


def test_sources_narrow_what_counts(sample: Sample) -> None:
    text = "`login` is defined in app/auth.py."
    for sources in (["app/auth.py"], ["auth.py"], ["app/*.py"], ["File: app/auth.py line 3"], ["files"]):
        found = sample.judge(text, *sources)
        assert found.verdict == "supported", sources
        assert "File: app/auth.py line 34" in locations(found)
    for sources in (["app/store.py"], ["memories"], ["web/**"]):
        found = sample.judge(text, *sources)
        # What lies outside of the sources neither supports nor contradicts.
        assert found.verdict in ("not found", "not checkable"), (sources, found)
        assert not any(one.path == "app/auth.py" and one.commit is None for one in found.evidence), sources


def test_without_the_history_no_commit_is_evidence(sample: Sample) -> None:
    whole = sample.judge("I added `rotate_token` to app/auth.py.")
    narrow = sample.judge("I added `rotate_token` to app/auth.py.", "app/auth.py")
    assert any(one.commit for one in whole.evidence)
    assert not any(one.commit for one in narrow.evidence)


def test_a_source_that_matches_nothing_is_told(sample: Sample) -> None:
    found = sample.verify("`login` is defined in app/auth.py.", "nowhere.py", "junit.xml")
    assert "Nothing matches the source 'nowhere.py'." in found.message
    assert "junit.xml'" not in found.message


def test_a_report_may_be_asked_for_alone(sample: Sample) -> None:
    for source in ("test report", "junit.xml"):
        assert sample.judge("All tests pass.", source).verdict == "contradicted", source
    assert sample.judge("All tests pass.", "git log").verdict == "not checkable"


def test_a_report_that_git_tracks_anywhere_is_found_when_asked_for(home: Path, project: Path) -> None:
    make_repository(project)
    commit(project, {"ci/out/junit-unit.xml": junit(3, 0, 0)}, "first")
    with open_at(home, project) as cortex:
        found = only(cortex.grounding.verify("All tests pass.", evidence_sources=["test report"]))
    assert found.verdict == "supported"
    assert locations(found) == ["Test report: ci/out/junit-unit.xml line 2: 3 passed, 0 failed, 0 skipped"]


# The whole text


@each(
    "text",
    [
        "There is no `Store` in the project.",
        "Commit {web} added `rotate_token`.",
        "app/auth.py contains 7 functions.",
        "Renamed `connect` to `rotate_token`.",
    ],
)
def test_what_is_contradicted_is_rejected(sample: Sample, text: str) -> None:
    found = sample.verify(text.format(**sample.ids))
    assert (only(found).verdict, found.status) == ("contradicted", "REJECT"), found


def test_one_invented_claim_does_not_hide_among_true_ones(sample: Sample) -> None:
    true = [
        "`login` is defined in app/auth.py.",
        "`Store` is defined in app/store.py.",
        "`ApiClient` is defined in web/src/client.ts.",
        "`MAX_ATTEMPTS` is set to 5.",
        "app/auth.py imports `hashlib`.",
        "The version in pyproject.toml is 1.1.0.",
    ]
    honest = sample.verify("\n\n".join(true))
    assert (honest.status, honest.risk_level, honest.verified) == ("ACCEPT", "low", 6)
    false = sample.verify("\n\n".join([*true, "I added `refresh_token` to app/auth.py."]))
    assert false.score < 0.7
    assert (false.status != "ACCEPT", false.risk_level, false.verified) == (True, "high", 6)
    assert "refresh_token" in false.message
    assert any(one.between == "evidence" for one in false.contradictions)


def test_hedging_lowers_confidence_and_drops_no_claim(sample: Sample) -> None:
    plain = sample.verify("`refresh_token` is defined in app/auth.py.")
    hedged = sample.verify("I think `refresh_token` is probably defined in app/auth.py.")
    assert len(plain.findings) == len(hedged.findings) == 1
    assert only(hedged).verdict == only(plain).verdict == "contradicted"
    assert hedged.fuzzy_confidence < plain.fuzzy_confidence


@each("text", ["", "   \n", "Shall I go on?", "```\nx = 1\n```"])
def test_a_text_without_claims_is_accepted_and_says_so(sample: Sample, text: str) -> None:
    found = sample.verify(text)
    assert (found.score, found.status, found.risk_level, found.findings) == (1.0, "ACCEPT", "low", ())
    assert found.message.startswith("Nothing was checked")


def test_claims_that_exclude_each_other_are_told(sample: Sample) -> None:
    found = sample.verify("`MAX_ATTEMPTS` is set to 5. Nothing else changed. `MAX_ATTEMPTS` is set to 7.")
    assert any(one.between == "text" for one in found.contradictions)
    assert found.score < 0.7


def test_a_text_has_an_upper_bound(sample: Sample) -> None:
    longest = "`login` is defined in app/auth.py.\n\n```\n" + "x = 1\n" * 166_660
    found = sample.verify(longest.ljust(1_000_000))
    assert found.findings[0].verdict == "supported"
    with pytest.raises(LimitExceeded, match="1,000,001 characters"):
        sample.verify("x" * 1_000_001)


def test_of_very_many_claims_the_first_are_checked_and_that_is_told(sample: Sample) -> None:
    found = sample.verify("\n".join(f"- `MAX_ATTEMPTS` is set to {n}." for n in range(400)), "app/auth.py")
    assert len(found.findings) == 300
    assert "Only the first 300 of 400 claims were checked." in found.message


def test_the_same_question_has_the_same_answer(sample: Sample, tmp_path: Path) -> None:
    text = (
        "I added `rotate_token` to app/auth.py and removed `old_login`. The store keeps rows. Tokens are rotated. "
        "`refresh_token` is defined in app/auth.py. `session` is used by the server. All tests pass."
    )
    first = sample.verify(text)
    assert sample.verify(text) == first
    with open_at(tmp_path / "fresh", sample.root) as other:
        assert other.grounding.verify(text) == first


# Memories


def test_what_a_user_noted_is_evidence_and_what_an_assistant_said_is_not(home: Path, project: Path) -> None:
    make_repository(project)
    commit(project, {"a.py": "x = 1\n"}, "first")
    text = "The nightly billing export runs on the Frankfurt cluster."
    with open_at(home, project) as cortex:
        branch = cortex.contexts.create_branch("billing")
        for _ in range(8):
            cortex.contexts.append(branch.id, text, "assistant")
        before = only(cortex.grounding.verify(text))
        assert before.verdict != "supported"
        assert not any(check.evidence and check.evidence.kind == "memory" for check in before.checks)
        note = cortex.contexts.append(branch.id, text, "user").memory
        after = only(cortex.grounding.verify(text))
    assert any(check.evidence and check.evidence.location == f"Memory: {note.id}" for check in after.checks)


def test_a_memory_that_says_otherwise_is_told(home: Path, project: Path) -> None:
    make_repository(project)
    commit(project, {"a.py": "x = 1\n"}, "first")
    with open_at(home, project) as cortex:
        note = cortex.memories.capture("The request timeout is 30 seconds.")
        found = cortex.grounding.verify("The request timeout is 90 seconds.")
    assert [(one.between, one.source) for one in found.contradictions] == [("memory", f"Memory: {note.id}")]


# What is not read is not accepted


def test_a_change_or_a_number_that_was_not_read_is_not_accepted(home: Path, project: Path) -> None:
    make_repository(project)
    log = "- The default redirect code changed from 302 to 303.\n- `turn()` preserves its order.\n"
    code = "def hash_password(text):\n    if len(text) < 10:\n        raise ValueError(text)\n    return text\n"
    manifest = '[project]\nname = "a"\nversion = "0.2.0"\ndependencies = ["flask>=3.0", "werkzeug>=3.1.0"]\n'
    files = {
        "CHANGELOG.md": f"# Changelog\n\n## 0.2.0\n\n{log}",
        "auth.py": code,
        "pyproject.toml": manifest,
        "examples/queue/requirements.txt": "werkzeug==2.3.0\nflask\n",
    }
    commit(project, files, "first")
    with open_at(home, project) as cortex:

        def verdicts(*texts: str) -> set[str]:
            return {one.verdict for text in texts for one in cortex.grounding.verify(text).findings}

        assert verdicts(
            "The default redirect code changed from 302 to 303 in version 0.2.0.",
            "`hash_password` raises ValueError when the text is shorter than ten characters.",
            "Werkzeug 3.1.0 is the minimum.",
        ) == {"supported"}
        assert "supported" not in verdicts(
            "The default redirect code changed from 302 to 307 in version 0.2.0.",
            "turn() drops its order since 0.2.",
            "`hash_password` raises ValueError when the text is shorter than eight characters.",
            "Werkzeug 2.3.0 is the minimum.",
            "Upgraded Flask from 2.3 to 3.0.",
        )
        true = ("Flask 0.2.0 drops support for Python 3.9.", "The constant above is in auth.py.")
        assert "contradicted" not in verdicts(*true)
        assert verdicts("click 7.0 or newer is required.") != set()
