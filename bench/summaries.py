"""How much of what matters a summary shows, and how much of what is over.

    python bench/summaries.py [--show]

The branches of `data/summaries.json` were written by hand, each with the facts that its summary should show per
section and the strings that later turns made stale. The cues were developed on 20 of them; the 6 that are held out
were written after the last change to the cues and scored once. Of the 20, 14 had been held out from earlier rounds:
`FIRST_LOOK` has their figures from before anybody looked at what was missed. A token is taken as four bytes.
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

from cortex_py.parts.context.summary.summary import EMPTY, SaidTurn, Summary, advance, render
from cortex_py.parts.context.summary.verdicts import Doubt, read_doubts

import report

DATA = Path(__file__).parent / "data" / "summaries.json"
BUDGET = 300
STALE = "stale facts shown"
REJECTED = "rejected claims shown as facts"
UNVERIFIED = "unverified"
ANYWHERE = "anywhere in the text"
# Facts shown in their section, facts shown at all, and stale facts shown, as first scored.
FIRST_LOOK = {
    "second round, 7 branches": "30 of 48, 34 of 48, 7 of 22",
    "third round, 7 branches": "35 of 46, 37 of 46, 7 of 21",
    "held out, 6 branches": "30 of 37, 31 of 37, 0 of 17",
}


class Count(NamedTuple):
    found: int
    of: int


def branches() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(DATA.read_text("utf-8"))
    return found


def turns_of(branch: dict[str, Any]) -> list[SaidTurn]:
    start = datetime(2025, 1, 1, tzinfo=UTC)
    return [
        SaidTurn(f"{branch['name']}-{number}", role, content, start + timedelta(minutes=number), _doubts(checked))
        for number, (role, content, *checked) in enumerate(branch["turns"])
    ]


def _doubts(checked: list[dict[str, Any]]) -> tuple[Doubt, ...]:
    return read_doubts(json.dumps(checked[0])) if checked else ()


def count_tokens(text: str) -> int:
    return -(-len(text.encode()) // 4)


def summarised(branch: dict[str, Any]) -> Summary:
    state = advance(EMPTY, turns_of(branch))
    return render(state, branch["topic"], max_tokens=BUDGET, count_tokens=count_tokens)


def counts(branch: dict[str, Any], summary: Summary) -> Iterator[tuple[str, Count]]:
    for section, facts in branch["expected"].items():
        shown = "\n".join(summary.sections[section]).casefold()
        yield section, Count(sum(fact.casefold() in shown for fact in facts), len(facts))
        # A fact under another label is still told.
        text = summary.text.casefold()
        yield ANYWHERE, Count(sum(fact.casefold() in text for fact in facts), len(facts))
    text = summary.text.casefold()
    if "rejected" in branch:
        claimed = "\n".join(one for name, texts in summary.sections.items() if name != UNVERIFIED for one in texts)
        wrong = sum(claim.casefold() in claimed.casefold() for claim in branch["rejected"])
        yield REJECTED, Count(wrong, len(branch["rejected"]))
    yield STALE, Count(sum(fact.casefold() in text for fact in branch["stale"]), len(branch["stale"]))


def show(branch: dict[str, Any], summary: Summary) -> None:
    print(f"\n[{branch['name']}] {summary.tokens} tokens\n{summary.text}")
    for section, facts in branch["expected"].items():
        shown = "\n".join(summary.sections[section]).casefold()
        for fact in facts:
            if fact.casefold() not in shown:
                print(f"  missing in {section}: {fact}")
    for fact in branch.get("rejected", ()):
        print(
            f"  rejected: {fact}: {[name for name, texts in summary.sections.items() if fact in chr(10).join(texts)]}"
        )
    for fact in branch["stale"]:
        if fact.casefold() in summary.text.casefold():
            print(f"  stale: {fact}")


def main() -> int:
    totals: dict[tuple[str, str], list[Count]] = defaultdict(list)
    sizes: dict[str, int] = defaultdict(int)
    seconds, turns = 0.0, 0
    for branch in branches():
        began = perf_counter()
        summary = summarised(branch)
        seconds, turns = seconds + perf_counter() - began, turns + len(branch["turns"])
        sizes[branch["set"]] += 1
        for measure, count in counts(branch, summary):
            totals[branch["set"], measure].append(count)
        # What is held out stays unread.
        if "--show" in sys.argv and "held out" not in branch["set"]:
            show(branch, summary)
    rows = []
    for (half, measure), found in totals.items():
        hit, of = sum(count.found for count in found), sum(count.of for count in found)
        rows.append((f"{half} ({sizes[half]} branches)", measure, hit, of, hit / of if of else 0.0))
    print()
    names = ("branches", "measure", "facts", "of", "share")
    report.table(names, rows)
    milliseconds = 1000 * seconds / turns
    print(f"\n{milliseconds:.2f} ms a turn, rendering included")
    result = {"budget": BUDGET, "rows": [dict(zip(names, row, strict=True)) for row in rows]}
    report.write("summaries", result | {"first_look": FIRST_LOOK, "milliseconds_per_turn": milliseconds})
    return 0


if __name__ == "__main__":
    sys.exit(main())
