"""Claims about what code does: accepted where the relation itself was read, contradicted with what is there instead."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from sample_project import commit, make_repository

from cases import each
from cortex_py import Cortex

from helpers import git

AUTH = '''"""Tokens."""

import json
import logging
import os

import requests

TOKEN_SECONDS = 14 * 24 * 60 * 60
FORMATS = ("json", "yaml", "toml")
logger = logging.getLogger(__name__)


class AuthError(ValueError):
    """Raised when a login fails."""


class LockedError(AuthError):
    pass


def sign(payload, key):
    return payload + key


def issue_token(user, *, algorithm="HS256", seconds=900, refresh=False):
    """Sign a token for a user."""
    if not user:
        raise AuthError("no user")
    if seconds > 3600:
        raise OverflowError("too long")
    payload = json.dumps({"user": user})
    logger.info("issued")
    return sign(payload, algorithm)


def find_user(name):
    if name == "":
        return None
    return requests.get("https://example.org/" + name)


def load(path):
    try:
        return open(path).read()
    except OSError:
        return ""


async def fetch_keys(url, retries=3):
    return os.environ.get("KEYS_URL", url)
'''
SERVER = """import { EventEmitter } from 'node:events'

const PORT = 8080

export class Server extends EventEmitter {
  constructor (options = {}, backlog = 511) {
    super()
    this.options = options
  }

  listen (port = PORT) {
    if (port < 1) {
      throw new RangeError('no port')
    }
    this.validate(port)
    this.open(port)
    return this
  }

  open (port) {}
  validate (port) {}
}
"""
ROUTER = """package router

import "errors"

var ErrMissing = errors.New("missing")

type Router struct {
\tconfig
\tname string
}

func (r *Router) Find(name string, parts ...string) (string, error) {
\tif name == "" {
\t\treturn "", ErrMissing
\t}
\treturn r.name, nil
}

func mustFind(name string) string {
\tif name == "" {
\t\tpanic("no name")
\t}
\treturn name
}
"""
STORE = """package shop;

public class Store extends Base implements Closeable {
  private static final int LIMIT = 50;
  private final Lock lock = new Lock();

  public int count(String name) throws IllegalStateException {
    if (name == null) {
      throw new IllegalArgumentException("name");
    }
    return LIMIT;
  }
}
"""
WALK = """pub struct Walk {
    depth: usize,
    path: String,
}

impl Iterator for Walk {
    type Item = String;

    fn next(&mut self) -> Option<String> {
        None
    }
}

pub fn walk(path: &str, depth: usize) -> Walk {
    if depth > 10 {
        panic!("too deep");
    }
    Walk { depth, path: path.to_string() }
}

fn helper() {}
"""
PROJECT = """[project]
name = "tokens"
version = "2.0.0"
requires-python = ">=3.8"
dependencies = ["requests>=2.31"]

[project.optional-dependencies]
fast = ["orjson"]

[tool.ruff]
line-length = 120
"""
TESTS = """def test_sign():
    assert True


def test_load():
    assert True
"""
CHANGES = """# Changes

## 2.0.0

- Added `issue_token`.
- Removed the XML format.

## 1.0.0

- Deprecated the `encode` function.
"""


@pytest.fixture(scope="module")
def cortex(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cortex]:
    folder = tmp_path_factory.mktemp("behaviour")
    project = folder / "project"
    make_repository(project)
    files = {
        "auth.py": AUTH,
        "server.js": SERVER,
        "router.go": ROUTER,
        "Store.java": STORE,
        "walk.rs": WALK,
        "pyproject.toml": PROJECT,
        "CHANGELOG.md": CHANGES,
        "tests/test_auth.py": TESTS,
    }
    commit(project, files, "first")
    with Cortex.open(folder / "home", project=project) as opened:
        yield opened


TRUE = [
    "`issue_token` raises `AuthError`.",
    "`issue_token` calls `sign`.",
    "`issue_token` uses `HS256` for `algorithm` by default.",
    "The default of `seconds` in `issue_token` is 900.",
    "`seconds` of `issue_token` defaults to 15 minutes.",
    "`TOKEN_SECONDS` is 14 days.",
    "`find_user` returns None when the name is empty.",
    "`LockedError` inherits from `ValueError`.",
    "`AuthError` derives directly from `ValueError`.",
    "`load` catches `OSError`.",
    "`FORMATS` has three entries.",
    "`fetch_keys` is asynchronous.",
    "`refresh` of `issue_token` is optional.",
    "`find_user` does not call `sign`.",
    "`find_user` never raises `AuthError`.",
    "`Server` extends `EventEmitter`.",
    "`Server.listen` throws a `RangeError`.",
    "`Server.listen` calls `validate`.",
    "`Router` embeds `config`.",
    "`Router.Find` takes a name and any number of parts.",
    "`mustFind` panics.",
    "`mustFind` is not exported.",
    "`Store` extends `Base`.",
    "`Store.count` throws `IllegalArgumentException`.",
    "`Walk` implements `Iterator`.",
    "`Walk` has two fields.",
    "`walk` panics.",
    "`helper` is private.",
    "`pyproject.toml` asks for Python 3.8 or newer.",
    "The line length of ruff in `pyproject.toml` is 120.",
    "The fast extra in `pyproject.toml` installs orjson.",
    "The XML format was removed in 2.0.0.",
    "The project requires Python 3.8.",
    "`requests` is not pinned.",
    "`tests/test_auth.py` has two tests.",
    "`issue_token` takes four parameters.",
    "`load` ignores an `OSError`.",
    "`Store` owns a `Lock`.",
]
FALSE = [
    ("`issue_token` raises `TypeError`.", "raises `AuthError`"),
    ("`issue_token` calls `find_user`.", "does not call `find_user`"),
    ("The default of `seconds` in `issue_token` is 600.", "900"),
    ("`seconds` of `issue_token` defaults to 20 minutes.", "900"),
    ("`TOKEN_SECONDS` is 30 days.", "14 * 24 * 60 * 60"),
    ("`LockedError` inherits from `TypeError`.", "inherits from `AuthError`"),
    ("`FORMATS` has four entries.", "3 entries"),
    ("`fetch_keys` is synchronous.", "is asynchronous"),
    ("`issue_token` never raises `AuthError`.", "raises `AuthError`"),
    ("`issue_token` does not call `sign`.", "calls `sign`"),
    ("`Server` extends `Router`.", "inherits from `EventEmitter`"),
    ("`Server.listen` throws a `TypeError`.", "raises `RangeError`"),
    ("`mustFind` is exported.", "not public"),
    ("`Store.count` throws `IOException`.", "IllegalArgumentException"),
    ("`Walk` has three fields.", "2 entries"),
    ("`pyproject.toml` asks for Python 3.6.", ">=3.8"),
    ("The line length of ruff in `pyproject.toml` is 88.", "120"),
    ("The fast extra in `pyproject.toml` installs ujson.", "ujson"),
    ("The XML format was removed in 1.0.0.", "2.0.0"),
    ("The XML format was added in 2.0.0.", "Removed"),
    ("The project requires Python 3.6.", ">=3.8"),
    ("The project requires 3.6.", ">=3.8"),
    ("`requests` is pinned to 2.31.0.", ">=2.31"),
    ("`tests/test_auth.py` has three tests.", "2 tests"),
    ("`issue_token` takes two parameters.", "4 parameters"),
    ("`issue_token` takes `seconds`, `user` and `algorithm`, in this order.", "`user`, `algorithm`, `seconds`"),
    ("`issue_token` never raises.", "raises `AuthError`"),
    ("The project no longer depends on requests.", "requests is in pyproject.toml"),
    ("`sign` is called from `find_user`.", "`issue_token` calls `sign`"),
]
OPEN = [
    "`issue_token` signs with RS256.",
    "`issue_token` bakes bread.",
    "`issue_token` retries three times before it gives up.",
    "I rewrote the payment module and added retry logic.",
    "I taught `find_user` to look into the cache first.",
    "`find_user` does not retry.",
    "The project no longer depends on six.",
    "`find_user` returns None unless the name is empty.",
    "`issue_token` and `find_user` both raise `AuthError`.",
    "Both `dump` and `keep` raise `OSError` on a full disk.",
    "Both clients raise a timeout error.",
    "`load` re-raises the `OSError`.",
    "Added `q` to `auth.py`.",
    "`auth.py` defines `q`.",
]
# True, and near to what a check would refute: by another name, way or place, or of something else.
NOT_REFUTED = [
    "With `seconds=60`, `issue_token` is stricter.",
    "`issue_token` for 128 users is slow.",
    "`Closeable` is what `Store` is in the end.",
    "`Server.listen` calls something that opens the port.",
    "`Store` may end with a `RuntimeException`.",
    "`find_user` relies on `requests.Session` inside.",
    "`router.go` comes with the `errors` package of the language.",
    "The manual is at version 7.2.",
    "Removed the default of `key` from `sign`.",
]


@each("text", TRUE)
def test_a_relation_that_was_read_is_accepted(cortex: Cortex, text: str) -> None:
    found = cortex.grounding.verify(text)
    assert found.status == "ACCEPT", [(one.reason, one.checks) for one in found.findings]
    assert found.findings[0].evidence[0].path is not None


@each(("text", "instead"), FALSE, ids=[text for text, _ in FALSE])
def test_a_wrong_relation_is_contradicted_with_what_is_there(cortex: Cortex, text: str, instead: str) -> None:
    found = cortex.grounding.verify(text)
    assert found.status != "ACCEPT"
    assert found.findings[0].verdict == "contradicted", found.findings[0]
    assert instead in found.findings[0].reason


@each("text", OPEN)
def test_a_name_that_exists_does_not_support_what_is_said_of_it(cortex: Cortex, text: str) -> None:
    found = cortex.grounding.verify(text)
    assert found.status != "ACCEPT"
    assert all(one.verdict in ("unverified", "not found", "contradicted") for one in found.findings)


@each("text", NOT_REFUTED)
def test_only_the_same_attribute_of_the_same_thing_refutes(cortex: Cortex, text: str) -> None:
    found = cortex.grounding.verify(text)
    assert all(one.verdict != "contradicted" for one in found.findings), [one.reason for one in found.findings]


def test_what_is_unverified_says_what_is_there(cortex: Cortex) -> None:
    (found,) = cortex.grounding.verify("`issue_token` bakes bread.").findings
    assert found.verdict == "unverified"
    assert found.reason.startswith("unverified: `issue_token` is defined in auth.py line 26")
    assert found.evidence[0].path == "auth.py"


def test_a_clause_that_cannot_be_checked_leaves_the_others_alone(cortex: Cortex) -> None:
    for more in (", and 14 tests pass.", " and 14 passing tests."):
        found = cortex.grounding.verify(f"`issue_token` raises `TypeError`{more}")
        assert found.status == "REJECT"
        assert found.findings[0].verdict == "contradicted"


def test_a_step_that_no_check_reads_is_a_claim_of_its_own(cortex: Cortex) -> None:
    found = cortex.grounding.verify("`issue_token` calls `sign` and then retries.")
    assert (found.status, [one.verdict for one in found.findings]) == ("WARN", ["supported", "unverified"])


def test_a_sentence_that_begins_like_an_instruction_is_looked_at(cortex: Cortex) -> None:
    found = cortex.grounding.verify("`load` catches `OSError`.")
    assert found.findings


def test_a_text_that_is_not_understood_is_not_accepted(cortex: Cortex) -> None:
    found = cortex.grounding.verify("Values from the file take precedence over the environment.")
    assert found.status == "WARN"


def test_passages_for_a_judge_stay_within_their_budget(cortex: Cortex) -> None:
    places = cortex.grounding.passages("`issue_token` bakes bread.")
    line = AUTH.splitlines().index(next(one for one in AUTH.splitlines() if one.startswith("def issue_token"))) + 1
    assert any(one.path == "auth.py" and one.line and one.line <= line <= (one.end_line or one.line) for one in places)


@each(
    "text",
    [
        "The project has a file called server.js.",
        "`auth.py` belongs to this repository.",
        "You will find `find_user` in auth.py.",
        "`LockedError` sits in auth.py.",
        "`sign` and `load` are in auth.py.",
    ],
)
def test_a_thing_at_its_place_is_all_that_a_claim_of_existence_says(cortex: Cortex, text: str) -> None:
    found = cortex.grounding.verify(text)
    assert found.status == "ACCEPT", [(one.reason, one.checks) for one in found.findings]


@each(
    "text",
    [
        "You will find `find_user` in server.js.",
        "click/core.py is where `find_user` is implemented.",
        "The project has a file called client.js.",
        "`find_user` holds `LockedError`.",
        "`auth.py` defines `FORMATS` as `'xml'`.",
        "`find_user` has been there since release 7.0.0.",
    ],
)
def test_names_that_exist_do_not_make_up_for_a_wrong_place_value_or_release(cortex: Cortex, text: str) -> None:
    assert cortex.grounding.verify(text).status != "ACCEPT"


def test_a_file_was_changed_in_the_release_and_commit_that_changed_it(tmp_path: Path) -> None:
    project = tmp_path / "project"
    make_repository(project)
    commit(project, {"a.py": "A = 1\n", "b.py": "B = 1\n"}, "first")
    git(project, "tag", "v1.0.0")
    second = commit(project, {"a.py": "A = 2\n"}, "second", 2)
    git(project, "tag", "v1.1.0")
    with Cortex.open(tmp_path / "home", project=project) as cortex:
        for text in ("a.py was changed in version 1.1.0.", f"Commit {second[:10]} changed a.py."):
            found = cortex.grounding.verify(text)
            assert found.status == "ACCEPT", text
            assert found.findings[0].evidence[0].commit == second
        for text in (
            "b.py was changed in version 1.1.0.",
            f"Commit {second[:10]} changed b.py.",
            "Version 3.0.0 changed a.py.",
        ):
            assert cortex.grounding.verify(text).status != "ACCEPT", text


def test_a_commit_whose_changes_are_unknown_refutes_nothing(tmp_path: Path) -> None:
    project = tmp_path / "project"
    make_repository(project)
    commit(project, {"a.py": "A = 1\n"}, "first")
    git(project, "checkout", "-q", "-b", "side")
    commit(project, {"a.py": "A = 2\n"}, "second", 2)
    git(project, "checkout", "-q", "main")
    commit(project, {"b.py": "B = 1\n"}, "third", 3)
    git(project, "merge", "-q", "--no-ff", "-m", "merge the side", "side")
    merge = git(project, "rev-parse", "HEAD")
    with Cortex.open(tmp_path / "home", project=project) as cortex:
        found = cortex.grounding.verify(f"Commit {merge[:10]} changed a.py.")
        assert found.status == "WARN", found.findings


@pytest.mark.parametrize(
    "text",
    [
        "`load` raises an OSError for a path that has no file name.",
        "`issue_token` reads NO_COLOR and bakes bread.",
    ],
)
def test_a_denial_inside_a_name_or_a_relative_clause_denies_nothing(cortex: Cortex, text: str) -> None:
    assert not any(one.claim.negated or one.claim.type == "exists" for one in cortex.grounding.verify(text).findings)


@pytest.mark.parametrize("text", OPEN)
def test_silence_rejects_nothing(cortex: Cortex, text: str) -> None:
    found = cortex.grounding.verify(text)
    assert all(one.probability >= 0.3 for one in found.findings if one.verdict in ("unverified", "not found"))


def test_numbers_with_separators_fractions_and_units_are_read_by_value(tmp_path: Path) -> None:
    project = tmp_path / "project"
    make_repository(project)
    limits = "MAX_BYTES = 1_048_576\nMAX_ROWS = 12000\nTIMEOUT_SECONDS = 90\nRATIO_LIMIT = 0.25\n"
    commit(project, {"limits.py": limits}, "first")
    right = (
        *("MAX_ROWS` is 12,000", "MAX_ROWS` is 12_000", "MAX_ROWS` is 12k", "MAX_ROWS` is twelve thousand"),
        *("MAX_BYTES` is 1 MiB", "MAX_BYTES` is 1_048_576", "TIMEOUT_SECONDS` is 1.5 minutes"),
        *("RATIO_LIMIT` is 0.25", "RATIO_LIMIT` is 25%", "RATIO_LIMIT` is 25 percent"),
    )
    wrong = (
        *("MAX_ROWS` is 12,500", "MAX_ROWS` is 12_500", "MAX_BYTES` is 2 MiB", "TIMEOUT_SECONDS` is 2 minutes"),
        *("RATIO_LIMIT` is 0.5", "RATIO_LIMIT` is 50%"),
    )
    with Cortex.open(tmp_path / "home", project=project) as cortex:
        assert [cortex.grounding.verify(f"`{text}.").status for text in right] == ["ACCEPT"] * len(right)
        assert [cortex.grounding.verify(f"`{text}.").status for text in wrong] == ["REJECT"] * len(wrong)


def test_what_a_value_used_to_be_is_read_from_the_history(tmp_path: Path) -> None:
    project = tmp_path / "project"
    make_repository(project)
    commit(project, {"auth.py": "ACCESS_SECONDS = 600\n"}, "first")
    second = commit(project, {"auth.py": "ACCESS_SECONDS = 900\n"}, "second", 2)
    with Cortex.open(tmp_path / "home", project=project) as cortex:
        found = cortex.grounding.verify("`ACCESS_SECONDS` used to be 600.")
        assert found.status == "ACCEPT", found.findings
        assert found.findings[0].evidence[0].commit == second
        assert cortex.grounding.verify("`ACCESS_SECONDS` used to be 10 minutes.").status == "ACCEPT"
        for text in (
            "`ACCESS_SECONDS` used to be 300.",
            "`ACCESS_SECONDS` used to be 900.",
            "`ACCESS_SECONDS` is 600.",
        ):
            assert cortex.grounding.verify(text).status != "ACCEPT", text


def test_a_memory_that_the_code_no_longer_bears_out_is_stale_until_it_is_true_again(tmp_path: Path) -> None:
    project = tmp_path / "project"
    make_repository(project)
    commit(project, {"auth.py": "LIMIT = 600\n"}, "first")
    with Cortex.open(tmp_path / "home", project=project) as cortex:
        memory = cortex.memories.capture("`LIMIT` is 600.")
        other = cortex.memories.capture("We met on Monday.")
        assert cortex.grounding.review_memories().stale == ()
        (project / "auth.py").write_text("LIMIT = 900\n")
        found = cortex.grounding.review_memories()
        assert [one.memory.id for one in found.stale] == [memory.id]
        assert "900" in found.stale[0].reason
        assert cortex.memories.get(memory.id).tags == ("stale",)
        assert cortex.memories.get(other.id).tags == ()
        (project / "auth.py").write_text("LIMIT = 600\n")
        assert [one.id for one in cortex.grounding.review_memories().fresh] == [memory.id]
        assert cortex.memories.get(memory.id).tags == ()


def test_upkeep_reviews_the_memories_about_changed_files(tmp_path: Path) -> None:
    project = tmp_path / "project"
    make_repository(project)
    commit(project, {"auth.py": "LIMIT = 600\n", "b.py": "OTHER = 1\n"}, "first")
    with Cortex.open(tmp_path / "home", project=project) as cortex:
        memory = cortex.memories.capture("`LIMIT` is 600.")
        cortex.upkeep()
        (project / "b.py").write_text("OTHER = 2\n")
        cortex.upkeep()
        assert cortex.memories.get(memory.id).tags == ()
        (project / "auth.py").write_text("LIMIT = 900\n")
        cortex.upkeep()
        assert cortex.memories.get(memory.id).tags == ("stale",)
