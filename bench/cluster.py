"""A recall and a capture on a Citus cluster against one server, in turns in one run.

    python bench/cluster.py URL_OF_ONE_SERVER URL_OF_A_COORDINATOR [RECORDS]

Both databases are empty at the start. Each gets the same synthetic records in one project; the second is distributed.
Calls alternate, so that the load of the machine meets both alike: compare the ratio, not the times.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from cortex_py import Cortex
from latency import _backend as backend

from synthetic import documents, queries

_RECALLS, _CAPTURES, _BATCH = 300, 60, 200


def main(one: str, coordinator: str, records: int = 3_000) -> None:
    notes = list(documents(records + _CAPTURES))
    asked = queries(_RECALLS)
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        project = Path(folder) / "project"
        project.mkdir()
        stores = {}
        for name, url in (("one server", one), ("cluster", coordinator)):
            model = backend()
            cortex = Cortex.open(Path(folder) / name, project=project, backend=model, database_url=url)
            stores[name] = stack.enter_context(cortex)
            if name == "cluster":
                print(cortex.distribute())
            model.bulk = True
            for low in range(0, records, _BATCH):
                cortex.memories.capture_many(notes[low : min(records, low + _BATCH)])
            model.bulk = False
        _compare("recall", stores, [lambda store, text=text: store.memories.recall(text) for text in asked])
        fresh = [note.content for note in notes[records:]]
        _compare("capture", stores, [lambda store, text=text: store.memories.capture(text) for text in fresh])


def _compare(name: str, stores: dict[str, Cortex], calls: list[Callable[[Cortex], object]]) -> None:
    times: dict[str, list[float]] = {store: [] for store in stores}
    for call in calls[:5]:
        for store in stores.values():
            call(store)
    for call in calls[5:]:
        for store, cortex in stores.items():
            began = time.perf_counter()
            call(cortex)
            times[store].append(time.perf_counter() - began)
    medians = {store: statistics.median(spent) for store, spent in times.items()}
    for store, median in medians.items():
        print(f"{name} on {store}: p50 {1_000 * median:.1f} ms of {len(times[store])}")
    print(f"{name}: {medians['cluster'] / medians['one server']:.2f} times one server")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], *map(int, sys.argv[3:]))
