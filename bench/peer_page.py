"""The page about other memories, `docs/explain/comparison.md`, and its plot, from what `peers.py` measured."""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import report
from charts import Axis, Series, draw
from peer_adapters import BY_NAME, SPECS

PAGE = Path(__file__).resolve().parents[1] / "docs" / "explain" / "comparison.md"
PLOT = PAGE.parents[1] / "pictures" / "comparison.svg"
WHOLE_SIZES = (1_000, 20_000, 100_000)
WHOLE_CONVERSATIONS = 5
QUIET = 2.5
Peers = dict[str, dict[str, Any]]
OPENING = """
For people who choose a memory. `make bench BENCH=peers` installs other memories for agents by name, each into an
environment of its own, and gives all of them the same work on the same data, each through its own interface and with
its own ranking. This page is written from the results by `python bench/peers.py --page`.
"""
BUSY = """
While some parts ran, other work was running (load average up to {:.0f} on two cores): their times are left out here.
"""
TEXTS = {
    "Install and start": """
The environment after the install, without the interpreter, bytecode and the weights of a model that is fetched later;
Cortex contains its own. Start: from the spawn to the answered handshake and list of tools, the median of five; of a
library, its import and the opened store. Tokens: o200k_base, of each tool's name, description and input schema as
compact JSON.
""",
    "Storing and recalling, ms": """
Texts of about 40 words made of sentences of LongMemEval's chats; questions of LoCoMo, none twice, ten results. Stores
are filled in the way that each has for it; then thirty records are stored and up to 200 questions asked one by one.
Resident memory is that of the server or library and its children afterwards; of mem0 without the server that makes
its vectors.
""",
    "Four processes, 200 writes each, one store": """
Four servers or clients on one store at the same time. Acknowledged: writes that were answered without an error; kept:
records that a process started afterwards lists.
""",
    "Retrieval": """
Every text is stored by one call and every question asked by one search for ten results; identical texts are stored
once. No dates, sessions or other hints are given to any of them.
""",
}
COMPARED = """
Of the writers only those that kept everything are compared, and starts and lists of tools only between servers.
"""
MODELS = """
No model hub can be reached where this runs. Where a peer would fetch all-MiniLM-L6-v2, it is given the same weights
in an ONNX file that is made here. Everything else is the peer's default.
"""
# What a column shows: its heading, the part, the figure in it, whether less is better, and how it is written.
Column = tuple[str, str, str, bool | None, Callable[[float], str]]


def _whole(value: float) -> str:
    return f"{value:,.0f}"


def _time(value: float) -> str:
    return f"{value:,.1f}" if value < 100 else f"{value:,.0f}"


def _share(value: float) -> str:
    return f"{value:.3f}"


def sizes_of(peers: Peers) -> list[int]:
    return sorted({int(part.split()[1]) for row in peers.values() for part in row if part.startswith("size ")})


def parts_of(peers: Peers) -> list[str]:
    return list(dict.fromkeys(part for row in peers.values() for part in row))


def columns(peers: Peers) -> dict[str, list[Column]]:
    """The tables of the page by title."""
    sizes = sizes_of(peers)
    speed: list[Column] = []
    for size in sizes:
        speed += [
            (f"store p50, {size:,}", f"size {size}", "store_p50_ms", True, _time),
            (f"recall p50, {size:,}", f"size {size}", "recall_p50_ms", True, _time),
            (f"recall p95, {size:,}", f"size {size}", "recall_p95_ms", True, _time),
            (f"resident MB, {size:,}", f"size {size}", "rss_mb", True, _whole),
        ]
    return {
        "Install and start": [
            ("on disk, MB", "install", "install_mb", True, _whole),
            ("packages", "install", "packages", None, _whole),
            ("start, ms", "start", "start_ms", True, _whole),
            ("tools", "start", "tools", None, _whole),
            ("tokens of the tool list", "start", "tool_tokens", True, _whole),
        ],
        "Storing and recalling, ms": speed,
        "Four processes, 200 writes each, one store": [
            ("acknowledged", "writers", "acknowledged", False, _whole),
            ("kept", "writers", "kept", False, _whole),
            ("seconds", "writers", "seconds", True, _time),
        ],
        "Retrieval": [
            ("LoCoMo found@10", "LoCoMo", "found@10", False, _share),
            ("LoCoMo any@5", "LoCoMo", "any@5", False, _share),
            ("LongMemEval any@5", "LongMemEval", "any@5", False, _share),
            ("LongMemEval all@5", "LongMemEval", "all@5", False, _share),
        ],
    }


def cell(row: dict[str, Any], column: Column) -> str:
    """A measured figure; a mark where there is none, whose reason is below the table."""
    _, part, figure, _, written = column
    found = row.get(part, {})
    if figure == "tool_tokens" and not found.get("tools"):
        return "no server" if found else "–"
    value = found.get(figure)
    return written(value) if value is not None else ("†" if found.get("reason") else "–")


def named(peers: Peers) -> list[str]:
    return [spec.name for spec in SPECS if spec.name in peers]


def show(peers: Peers) -> None:
    """The same tables on the screen."""
    for title, listed in columns(peers).items():
        print(f"\n{title}")
        rows = [[name, *(cell(peers[name], column) for column in listed)] for name in named(peers)]
        report.table(("", *(column[0] for column in listed)), rows)


def ahead(peers: Peers, column: Column) -> list[tuple[str, float]]:
    """The peers that are ahead of Cortex, with their figures, the best first."""
    _, part, figure, less, _ = column
    values = {name: peers[name].get(part, {}).get(figure) for name in named(peers)}
    mine = values.pop("cortex", None)
    if mine is None or less is None:
        return []
    others = {name: value for name, value in values.items() if value is not None}
    if part == "start":
        # A library has no list of tools, and its start is an import, not an answer of a server.
        others = {name: value for name, value in others.items() if peers[name]["start"].get("tools")}
    if part == "writers":
        others = {name: value for name, value in others.items() if _kept_all(peers[name]["writers"])}
    found = [(name, value) for name, value in others.items() if (value < mine if less else value > mine)]
    return sorted(found, key=lambda one: one[1], reverse=not less)


def _kept_all(row: dict[str, Any]) -> bool:
    return bool(row.get("kept", 0) >= row["writes"])


def write(peers: Peers) -> None:
    PAGE.write_text(page(peers), encoding="utf-8")
    PLOT.write_text(plot(peers), encoding="utf-8")


def page(peers: Peers) -> str:
    lines = ["# Beside other memories", "", "<!-- written by bench/peers.py --page -->", "", *_filled(OPENING), ""]
    lines += [*_filled(_standing(peers)), ""]
    for title, listed in columns(peers).items():
        shown = [column for column in listed if _worth(peers, column)]
        if not shown:
            continue
        lines += [f"## {title}", "", *_filled(f"{TEXTS[title]} {_asked(peers) if title == 'Retrieval' else ''}"), ""]
        lines.append("| | " + " | ".join(column[0] for column in shown) + " |")
        lines.append("|---" * (len(shown) + 1) + "|")
        for name in named(peers):
            lines.append(f"| {name} | " + " | ".join(cell(peers[name], column) for column in shown) + " |")
        reasons = _reasons(peers, {column[1] for column in listed})
        lines += ["", *reasons, *([""] if reasons else [])]
    lines += ["![Retrieval beside what a recall costs](../pictures/comparison.svg)", ""]
    lines += [*_wins(peers), *_versions(peers)]
    return "\n".join(lines).rstrip() + "\n"


def busy(peers: Peers, part: str = "") -> float:
    """The load average while a part, or the busiest that has times, was measured; 0 where it was quiet or not noted."""
    wanted = (part,) if part else ("start", "size ", "writers")
    loads = [row[name].get("load", 0.0) for row in peers.values() for name in row if name.startswith(wanted)]
    return load if (load := max(loads, default=0.0)) > QUIET else 0.0


def _worth(peers: Peers, column: Column) -> bool:
    """Whether a column has figures; times of a busy machine are none."""
    timed = column[2].endswith("_ms") or column[2] == "seconds"
    measured = any(cell(peers[name], column) not in ("–", "†") for name in named(peers))
    return measured and not (timed and busy(peers, column[1]))


def _filled(text: str) -> list[str]:
    return textwrap.wrap(" ".join(text.split()), 120)


def _standing(peers: Peers) -> str:
    """What has been measured, when and how quiet the machine was."""
    parts = [part for row in peers.values() for part in row.values()]
    dates = sorted({part["at"] for part in parts})
    missing = [f"{size:,}" for size in WHOLE_SIZES if size not in sizes_of(peers)]
    few = min((row["LoCoMo"].get("collections", 0) for row in peers.values() if "LoCoMo" in row), default=0)
    said = [
        f"Measured on {dates[0]}" + (f" to {dates[-1]}" if len(dates) > 1 else "") + ", on a shared 2-core machine."
    ]
    if busy(peers):
        said.append(BUSY.format(busy(peers)))
    if missing:
        said.append(f"Not measured yet: stores of {' and '.join(missing)} records.")
    if any(set(row) < set(parts_of(peers)) for row in peers.values()):
        said.append("A dash marks what has not been measured yet.")
    if 0 < few < WHOLE_CONVERSATIONS:
        said.append(f"LoCoMo: only the first {few} of {WHOLE_CONVERSATIONS} conversations.")
    return " ".join(said)


def _asked(peers: Peers) -> str:
    said = []
    for name, what in (("LoCoMo", "turns"), ("LongMemEval", "sessions")):
        rows = [row[name] for row in peers.values() if row.get(name, {}).get("questions")]
        said += [f"{name}: {one['questions']} questions on {one['records']:,} {what}." for one in rows[:1]]
    return " ".join(said)


def _reasons(peers: Peers, parts: set[str]) -> list[str]:
    found = []
    for name in named(peers):
        for part in sorted(parts, key=lambda one: (len(one), one)):
            row = peers[name].get(part, {})
            if row.get("reason"):
                found.append(f"- † {name}, {part}: {_plain(row['reason'])}")
            if part == "writers" and row.get("error"):
                found.append(f"- {name}: {_plain(row['error'])}")
            if row.get("refused"):
                found.append(f"- {name}, {part}: {row['refused']:,} of {row['records']:,} texts were refused.")
    return found


def _plain(text: str) -> str:
    """One short line without the folders of this machine."""
    text = re.sub(r"(?<!\w)/[\w./-]+/", "", text)
    return " ".join(text.replace("|", "/").replace("<", "&lt;").split())[:200]


def _wins(peers: Peers) -> list[str]:
    lines = ["## Where another is ahead of Cortex", ""]
    for listed in columns(peers).values():
        for column in listed:
            if _worth(peers, column) and (others := ahead(peers, column)):
                mine = cell(peers["cortex"], column)
                better = ", ".join(f"{name} {column[4](value)}" for name, value in others)
                lines.append(f"- {column[0]}: {better}; Cortex {mine}")
    if lines[-1] == "":
        lines.append("In none of these figures.")
    return [*lines, "", *_filled(COMPARED), ""]


def _versions(peers: Peers) -> list[str]:
    heads = ("", "package", "version", "asked through", "settings", "what it lacked")
    lines = ["## Versions and settings", "", f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for name in named(peers):
        spec, row = BY_NAME[name], peers[name]["install"]
        cells = (
            name,
            f"`{spec.package}`",
            row.get("version", spec.version),
            spec.interface,
            spec.settings,
            spec.lacked,
        )
        lines.append(f"| {' | '.join(cells)} |")
    return [*lines, "", *_filled(MODELS), ""]


def _axis(peers: Peers) -> tuple[str, str, str, str]:
    """What the plot shows across: the part, the figure, its unit and its name. Times only of a quiet machine."""
    axes = [(f"size {size}", "rss_mb", "MB", f"resident memory with {size:,} records") for size in sizes_of(peers)]
    axes += [
        (f"size {size}", "recall_p50_ms", "ms", f"recall p50 with {size:,} records")
        for size in sizes_of(peers)
        if not busy(peers, f"size {size}")
    ]
    axes.insert(0, ("install", "install_mb", "MB", "size on disk"))
    return max(axes, key=lambda axis: (len(_points(peers, axis[0], axis[1])), axes.index(axis)))


def _points(peers: Peers, part: str, figure: str) -> list[tuple[str, float, float]]:
    rows = ((name, peers[name].get(part, {}).get(figure), _quality(peers[name])) for name in named(peers))
    return [(name, across, up) for name, across, up in rows if across and up is not None]


def plot(peers: Peers) -> str:
    """LoCoMo found@10 against what it costs."""
    part, figure, unit, label = _axis(peers)
    points = _points(peers, part, figure)
    low = math.floor(math.log10(min([p[1] for p in points] or [1])))
    high = max(low + 1, math.ceil(math.log10(max([p[1] for p in points] or [10]))))
    return draw(
        "Retrieval beside what a recall costs",
        Axis(f"{label}, {unit}", [(10.0**n, f"{10.0**n:g}") for n in range(low, high + 1)], logarithmic=True),
        Axis("LoCoMo found@10", [(n / 10, f"{n / 10}") for n in range(0, 11, 2)]),
        [Series(name, [(across, found, 5)]) for name, across, found in points],
    )


def _quality(row: dict[str, Any]) -> float | None:
    found: float | None = row.get("LoCoMo", {}).get("found@10")
    return found


__all__: Sequence[str] = ["page", "plot", "show", "write"]
