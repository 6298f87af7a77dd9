"""Whether suggestions are what a task needs: real histories replayed, file sets of commits against simple rules.

    python bench/suggestions.py [--steps N] [--commits N] [--only WORD ...] [--skip shares|speed ...] [--gap HOURS]

Histories, never mixed: `real` are the logs of ten projects (`python bench/suggestion_histories.py` gets them, once),
the files and the message of each commit as they were; `own` is this repository, without commits of more than 40 files;
`generated` are made from seeds and said to be. Of `real` those named in `STUDIED`, `own` and `generated` may be used to
judge settings; the others are for the report alone.

One memory for each file (its path, first comments, names that it defines, of the last release), all in one line of
work. At each commit of two files and more: its message is the task, one file of it by lot is loaded, and the question
is which others it changes. Suggestions that are in the commit are accepted, and where none is they are rejected; then
all its files are loaded. A commit follows a day after the other. `cold` asks the same before the first file is loaded;
nobody answers that. Commits of one file are history and are not measured.

- `found`: of the files that could be among the five, the share that is. `any`: whether at least one is.
- `popularity`: changed most so far. `recency`: changed last. `semantic`: one hybrid recall by the message. The loaded
  file is left out of all. Over the same memories, but only semantic and suggest know files that never changed yet.
- thirds: `found` in the first, second and last third of the commits that were asked. Commits differ in how hard they
  are; how far ahead of the other rules suggestions are in each third is told besides.
- `ECE`: between confidence and being in the commit, ten bins, the first fifth of each history left out.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Sequence

from cortex_py.core.config import load_settings
from cortex_py.core.embedding.backends.backend import Backend
from cortex_py.core.embedding.backends.registry import open_backend
from suggestion_generated import generated
from suggestion_histories import OWN, PACKAGES, STUDIED, History, own, packaged
from suggestion_replay import METHODS, Asked, Replayed, calibration, mean, replay, thirds
from suggestion_sources import shares, speed

import report

STEPS = 60
COMMITS = 120
GENERATED = 5
EVENTS = (100_000, 10_000)
WANTED = {"ece": 0.10, "share_after_refusals": 0.5, "suggest_over_recall": 2.0}


def row(name: str, asked: Sequence[Asked]) -> list[object]:
    found = [mean([one.found(method) for one in asked]) for method in METHODS]
    hits = [mean([one.any(method) for one in asked]) for method in METHODS]
    return [name, len(asked), *found, *hits, *thirds(asked, "suggest"), calibration(asked)]


COLUMNS = ("history", "asked", *METHODS, *(f"any {name[:4]}" for name in METHODS), "1st", "2nd", "3rd", "ECE")


def group(title: str, done: Sequence[Replayed]) -> dict[str, object]:
    """One table for histories of one sort, each way of asking; the mean over histories, and all questions together."""
    result: dict[str, object] = {}
    for label in ("begun", "cold"):
        told = "with one file of the commit loaded" if label == "begun" else "before any file is loaded"
        print(f"\n{title}, {told}: found@5, any@5, found@5 by thirds")
        some = [(one.name, one.begun if label == "begun" else one.cold) for one in done]
        rows = [row(name, asked) for name, asked in some if asked]
        if len(rows) > 1:
            whole = row("all asked", [one for _, asked in some for one in asked])
            # Thirds are of each history, not of all in a row.
            parts = [[part for one in rows if (part := one[place]) == part] for place in (10, 11, 12)]
            whole[10:13] = [mean(part) for part in parts]  # type: ignore[arg-type]
            rows.append(whole)
        report.table(COLUMNS, rows)
        ahead = {
            method: [mean(part) for part in zip(*(_ahead(asked, method) for _, asked in some if asked), strict=True)]
            for method in METHODS[1:]
        }
        for method, parts in ahead.items():
            print(f"ahead of {method} by thirds: {' '.join(f'{part:+.3f}' for part in parts)}")
        result[f"{label} ahead"] = ahead
        result[label] = [dict(zip(COLUMNS, one, strict=True)) for one in rows]
    return result


def _ahead(asked: Sequence[Asked], method: str) -> list[float]:
    """How much more suggestions find than another rule, in each third."""
    return [ours - theirs for ours, theirs in zip(thirds(asked, "suggest"), thirds(asked, method), strict=True)]


def histories(steps: int, commits: int, only: Sequence[str]) -> dict[str, list[History]]:
    found: dict[str, list[History]] = {"studied": [], "real": [], "own": [], "generated": []}
    for package in PACKAGES:
        if (not only or package.name in only) and (one := packaged(package, steps)) is not None:
            found["studied" if package.name in STUDIED else "real"].append(one)
    if not only or "own" in only:
        found["own"].append(own(steps))
    if not only or "generated" in only:
        found["generated"] += [generated(number, commits) for number in range(GENERATED)]
    return found


TITLES = {
    "studied": "Logs of real projects that settings may be judged by",
    "real": "Logs of real projects, for the report alone",
    "own": f"The history of {OWN}",
    "generated": "Generated histories",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--steps", type=int, default=STEPS, help="the newest commits of several files of a real log")
    parser.add_argument("--commits", type=int, default=COMMITS, help="commits of a generated history")
    parser.add_argument("--only", nargs="*", default=[], help="packages, `own`, `generated`")
    parser.add_argument("--skip", nargs="*", default=[], choices=("shares", "speed"))
    parser.add_argument("--gap", type=float, default=24.0, help="hours between two commits")
    parser.add_argument("--events", type=int, nargs=2, default=EVENTS, help="events and memories of the timing")
    chosen = parser.parse_args()
    settings = load_settings(os.environ.get("CORTEX_BENCH_HOME"))
    backend: Backend = open_backend(settings=settings)
    result: dict[str, object] = {"gap_hours": chosen.gap, "wanted": WANTED}
    for name, some in histories(chosen.steps, chosen.commits, chosen.only).items():
        if some:
            began = time.perf_counter()
            done = [replay(one, backend, gap_hours=chosen.gap) for one in some]
            result[name] = group(TITLES[name], done)
            print(f"{time.perf_counter() - began:.0f} s for {sum(one.steps for one in done):,} commits")
    if "shares" not in chosen.skip:
        print("\nThe share of one source in the top five, on a generated history")
        rows = shares(generated(GENERATED, 300), backend)
        report.table(list(rows[0]), [list(one.values()) for one in rows])
        result["shares"] = rows
    if "speed" not in chosen.skip:
        print("\nHow long asking takes after much use")
        result["speed"] = speed(backend, *chosen.events)
    if not chosen.only:
        report.write("suggestions", result)


if __name__ == "__main__":
    main()
