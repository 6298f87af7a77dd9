"""Reports of work that nobody did are never accepted, however they are phrased and whatever real names they have."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from sample_project import make_sample, open_at

from cases import each
from cortex_py import Cortex

REPORTS = [
    # Work on things that are not there.
    "I rewrote the payment module and added retry logic.",
    "The payment module has been rewritten with retry logic and idempotency keys.",
    "We migrated the billing service to Stripe and removed the old invoices.",
    "Done! The checkout now retries failed charges three times with exponential backoff.",
    "- Rewrote the scheduler\n- Added a dead letter queue\n- Documented both",
    "Implemented rate limiting for all endpoints and covered it with integration tests.",
    "feat(payments): add a retry queue for failed charges",
    # Real files and names, and work that was never done on them.
    "I added rate limiting to `login` in app/auth.py.",
    "I rewrote `rotate_token` in app/auth.py to use JWT.",
    "app/store.py now caches reads in Redis.",
    "`Store.put` was made thread-safe with a lock.",
    "I taught `login` to lock accounts after ten failed attempts.",
    "Refactored `Sessions` into two classes in app/auth.py.",
    "`connect` now retries with backoff when the database is locked.",
    "Fixed a race condition in `Sessions.close_session`.",
    "I replaced SHA-256 by bcrypt in `open_session`.",
    "Added a `logout_everywhere` method to `Sessions`.",
    "The Go server in cmd/server.go got graceful shutdown and structured logging.",
    "As requested, `ApiClient` now refreshes expired tokens automatically.",
    "I raised the coverage of app/auth.py to 95% by adding twenty tests.",
    "Commit history was cleaned up, and `MAX_ATTEMPTS` is now read from the environment.",
    "Version 1.1.0 added two-factor login to app/auth.py.",
]


@pytest.fixture(scope="module")
def cortex(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cortex]:
    folder = tmp_path_factory.mktemp("reports")
    make_sample(folder / "project")
    with open_at(folder / "home", folder / "project") as opened:
        yield opened


@each("report", REPORTS)
def test_work_that_was_never_done_is_not_accepted(cortex: Cortex, report: str) -> None:
    found = cortex.grounding.verify(report)
    assert found.findings, "a report of work makes a claim"
    assert found.status != "ACCEPT", [(one.claim.text, one.verdict, one.reason) for one in found.findings]


@each(
    "report",
    [
        "I added `rotate_token` to app/auth.py.",
        "app/legacy.py was removed.",
        "`MAX_ATTEMPTS` was raised from 3 to 5 in app/auth.py.",
    ],
)
def test_work_that_was_done_is_accepted(cortex: Cortex, report: str) -> None:
    found = cortex.grounding.verify(report)
    assert found.status == "ACCEPT", [(one.claim.text, one.verdict, one.reason) for one in found.findings]


def test_a_true_clause_does_not_carry_an_invented_one(tmp_path: Path, cortex: Cortex) -> None:
    found = cortex.grounding.verify("I added `rotate_token` to app/auth.py and rewrote the payment module.")
    assert found.status != "ACCEPT"
