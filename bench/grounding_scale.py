"""Verification in a large project: reading it first, looking whether it changed, checking an answer of thirty claims.

    python bench/grounding_scale.py [FILES]      10,000 files by default

The files are those of the installed packages, real in size and content, copied below as many folders as it takes and
committed in twenty parts. The look for changes stands beside `git status` on the same folder, in alternating turns.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Callable
from itertools import cycle
from pathlib import Path

import numpy as np

from cortex_py import Cortex
from cortex_py.parts.verify.claims.claims import read_claims

import report

FILES = 10_000
PARTS = 20
ROUNDS = 25
CLAIMS = 30
WANTED = {"first reading, s": 60.0, "nothing changed, ms p50": 20.0, "thirty claims, ms p50": 600.0}
COLUMNS = ("what", "p50", "p95", "wanted")


def git(folder: Path, *arguments: str) -> None:
    who = ("-c", "user.name=bench", "-c", "user.email=bench@localhost")
    subprocess.run(["git", *who, "-C", str(folder), *arguments], check=True, capture_output=True)


def make(folder: Path, count: int) -> list[Path]:
    """A repository of so many files, in parts that are committed one after the other."""
    source = Path(sysconfig.get_paths()["purelib"])
    found = sorted(path for path in source.rglob("*") if path.suffix in (".py", ".pyi", ".md", ".json", ".toml"))
    small = [path for path in found if path.stat().st_size < 100_000]
    git(folder, "init", "-q", "-b", "main")
    made = []
    for number, path in enumerate(cycle(small)):
        if number == count:
            break
        target = folder / f"copy{number // len(small)}" / path.relative_to(source)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)
        made.append(target)
        if (number + 1) % (count // PARTS) == 0:
            git(folder, "add", "-A", "-f")
            git(folder, "commit", "-q", "-m", f"Part {(number + 1) * PARTS // count}: files up to {target.name}")
    return made


def answer(folder: Path, made: list[Path]) -> str:
    """An answer that makes thirty claims about what is there, and about some that is not."""
    import ast

    lines: list[str] = []
    for path in made[:: max(1, len(made) // 400)]:
        if path.suffix != ".py" or len(lines) >= CLAIMS:
            continue
        tree = ast.parse(path.read_text("utf-8", "replace"))
        names = [node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)]
        if not names:
            continue
        shown, kinds = (
            path.relative_to(folder),
            ("I added `{}` to {}.", "`{}` is defined in {}.", "I updated `{}` in {}."),
        )
        name = names[0] if len(lines) % 5 else f"{names[0]}_invented"
        lines.append("- " + kinds[len(lines) % 3].format(name, shown))
    return "Here is what I did:\n\n" + "\n".join(lines)


def timed(work: Callable[[], object], rounds: int, clock: Callable[[], float] = time.perf_counter) -> list[float]:
    taken = []
    for _ in range(rounds):
        started = clock()
        work()
        taken.append((clock() - started) * 1000)
    return taken


def main() -> int:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else FILES
    with tempfile.TemporaryDirectory() as scratch:
        folder, home = Path(scratch) / "project", Path(scratch) / "home"
        folder.mkdir()
        made = make(folder, count)
        text = answer(folder, made)
        claims = len(read_claims(text).claims)
        with Cortex.open(home, project=folder) as cortex:
            branch = cortex.contexts.create_branch("scale").id
            early = timed(lambda: cortex.contexts.append(branch, text, "assistant"), 1)[0]
            started = time.perf_counter()
            standing = cortex.grounding.refresh()
            first = time.perf_counter() - started + early / 1000
            assert standing is not None and standing.complete
            looks, statuses = [], []
            for _ in range(ROUNDS):
                looks += timed(cortex.grounding.refresh, 1)
                statuses += timed(lambda: git(folder, "status", "--porcelain"), 1)
            checked = timed(lambda: cortex.grounding.verify(text), ROUNDS)
            worked = timed(lambda: cortex.grounding.verify(text), ROUNDS, time.process_time)
            turn = timed(lambda: cortex.contexts.append(branch, text, "assistant"), ROUNDS)
            made[0].write_text(made[0].read_text("utf-8") + "\n", "utf-8")
            changed = timed(cortex.grounding.refresh, 1)[0]
        with Cortex.open(home, project=folder) as cortex:
            again = timed(cortex.grounding.refresh, 1)[0]
        size = sum(path.stat().st_size for path in (home / "evidence").rglob("*.db*"))
    rows = [
        ("first reading, s", first, first, WANTED["first reading, s"]),
        ("update_memory before it was read, ms", early, early, ""),
        ("nothing changed, ms p50", *_quantiles(looks), WANTED["nothing changed, ms p50"]),
        ("git status, ms", *_quantiles(statuses), ""),
        ("one file changed, ms", changed, changed, ""),
        ("first look of a new process, ms", again, again, ""),
        (f"{claims} claims, ms p50", *_quantiles(checked), WANTED["thirty claims, ms p50"]),
        (f"{claims} claims, ms of processor time", *_quantiles(worked), ""),
        (f"update_memory with {claims} claims, ms", *_quantiles(turn), ""),
    ]
    report.table(COLUMNS, rows)
    print(f"{count:,} files, index {size / 1e6:.0f} MB")
    report.write("grounding_scale", {"files": count, "index_bytes": size, "rows": [list(row) for row in rows]})
    return 0


def _quantiles(taken: list[float]) -> tuple[float, float]:
    return float(np.percentile(taken, 50)), float(np.percentile(taken, 95))


if __name__ == "__main__":
    sys.exit(main())
