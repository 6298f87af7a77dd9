"""The pictures of the page in the documentation, of a throwaway project in a real browser.

    python tools/pictures.py                    writes docs/pictures/page_*.png; `make pictures` runs it
    python tools/pictures.py --views FOLDER     every view too, at three widths in both colour schemes

It fails if anything in a view is beyond its column or on something else (see `tests/web/geometry.js`).
"""

from __future__ import annotations

import argparse
import os
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import uvicorn

from cortex_py import Cortex
from cortex_py.core.records import NewMemory
from cortex_py.surfaces.http.server import build_app
from cortex_py.surfaces.http.sessions import page_address

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from browser import Tab, browser_program, running_browser  # noqa: E402  # from the folder of the tests

PICTURES = ROOT / "docs" / "pictures"
GEOMETRY = (ROOT / "tests" / "web" / "geometry.js").read_text("utf-8").rstrip()
WIDTHS = ((390, 844), (820, 1180), (1280, 800))
PEOPLE = (("maria", "claude-code"), ("jonas", "codex"))
BURST, PAUSE = 4, 1.4  # at most so many memories together, and days for each
# The newest first: namespace, tags, text.
MEMORIES = (
    ("decisions", "orders database", "We chose PostgreSQL for orders, because reports join them with customers."),
    ("learnings", "testing redis", "Tests need Redis on port 6380; the default port belongs to another service on CI."),
    ("decisions", "auth", "Sessions last twenty minutes; refresh tokens live for a week."),
    ("patterns", "import", "Every importer reads the whole file first, and writes in one transaction."),
    ("tech-debt", "import", "The XML reader of the supplier feed is unused since the move to CSV."),
    ("learnings", "ci", "The checkout tests time out unless `make bank` has started the fake bank on port 9090."),
    ("decisions", "import", "Maria Keller decided that the supplier feed is read as CSV, not as XML."),
    ("config", "ops", "The staging cluster runs Kubernetes with two replicas of each service."),
    ("patterns", "api", "FastAPI uses Pydantic models for every body; a model never leaves its own module."),
    ("learnings", "orders", "Orders with more than 500 lines time out in the export; stream them instead."),
    ("decisions", "ops", "GitHub Actions builds Docker images; nothing is built on the servers."),
    ("security", "auth", "Tokens are stored hashed; GitHub Actions reads secrets from Vault only."),
    ("performance", "database", "The index on orders.customer_id made the report forty times faster."),
    ("config", "redis", "Celery uses Redis as its broker; RabbitMQ was removed in March."),
    ("patterns", "api", "FastAPI uses Starlette. SQLAlchemy uses PostgreSQL. Pydantic uses Rust."),
    ("config", "ops", "Acme uses Vault. Acme uses Kubernetes. Kubernetes uses Docker. Grafana uses Prometheus."),
    ("patterns", "ui", "The dashboard is written in TypeScript. React uses TypeScript. Apollo uses GraphQL."),
    ("learnings", "ui", "React renders the order table twice when the filter is an object; memoise the filter."),
    ("decisions", "api", "Jonas Weber decided to version the API by header, not by path."),
    ("patterns", "testing", "Tests of the importer use the real files of three suppliers, cut to fifty lines."),
    ("blockers", "ops", "The certificate of the staging cluster expires on 3 March; renewal needs Jonas Weber."),
    ("config", "ops", "Prometheus scrapes every service each fifteen seconds; Grafana shows the dashboards."),
    ("learnings", "database", "SQLAlchemy keeps connections for an hour; PostgreSQL closes them after ten minutes."),
    ("decisions", "ui", "The order form is one page; customers left the form with three steps."),
    ("patterns", "ops", "A migration adds a column first, and the code that needs it follows a day later."),
    ("learnings", "import", "The feed of Acme has two rows for each pack; the second one is the pack itself."),
    ("config", "auth", "Nginx ends TLS and passes the client's certificate to the API as a header."),
    ("decisions", "orders", "An order is never deleted; it gets the status cancelled, and a reason."),
    ("learnings", "ui", "TypeScript must know the shape of an order: the schema is written from Pydantic."),
    ("patterns", "orders", "Money is kept in cents as an integer, and formatted in the last step."),
    ("decisions", "people", "Maria Keller works at Acme and answers questions about the supplier feed."),
    ("performance", "redis", "The cache of prices lives in Redis for five minutes; without it the list takes 900 ms."),
    ("learnings", "testing", "Playwright needs a fixed clock, or the tests of the calendar fail on Mondays."),
    ("config", "database", "PostgreSQL runs with pool size 20 in production, and with 5 on staging."),
    ("decisions", "import", "Suppliers are imported at night, one after another, so that a fault stops one of them."),
    ("tech-debt", "api", "The GraphQL endpoint has one user left, the old dashboard; remove both together."),
    ("patterns", "ci", "A pull request is merged when the tests pass on PostgreSQL, not on SQLite."),
    ("learnings", "ops", "Kubernetes restarts the importer when it needs more than 2 GB; read the feed in parts."),
    ("decisions", "orders", "Invoices are PDF files in the object store; the database has their address only."),
)  # fmt: skip
STAGED = (
    "The price cache is emptied when a supplier was imported.",
    "Sessions last ninety minutes.",
    "Tests need Redis on port 6380, because the default port belongs to another service on CI.",
)
COMMITS = ("Read the supplier feed as CSV", "Keep orders in PostgreSQL", "Stream the export of large orders")
TURNS = (
    ("user", "Read the supplier feed as CSV. The XML reader can go later."),
    ("assistant", "I decided to keep the XML reader until Acme has moved. Next: import the prices at night."),
    ("user", "Should a fault of one supplier stop the others?"),
)
CHECKED = "The file limits.py sets TIMEOUT to 30. The file limits.py sets TIMEOUT to 60. The page uses React."
READY = "!!document.querySelector('#keys kbd')"
# Name: address, what a person does there, and what is there when it is done.
VIEWS: dict[str, tuple[str, str, str]] = {
    "search": ("/?q=redis+tests", "", "document.querySelectorAll('.results .bar').length > 4"),
    "nothing": ("/?q=zebra+unicorn+knitting", "", "document.querySelector('.count').innerText.includes('Nothing')"),
    "newest": ("/", "", "document.querySelectorAll('.facets li').length > 4"),
    "memory": ("/memories/ID", "", "!!document.querySelector('.uses')"),
    "gone": ("/memories/0123456789abcdef", "", "!!document.querySelector('.error')"),
    "timeline": ("/timeline", "", "document.querySelectorAll('.event .title').length > 4"),
    "graph": ("/graph", "", "document.querySelector('canvas').dataset.calm === 'true'"),
    "review": ("/review", "document.querySelector('.compare').click()", "!!document.querySelector('.pair')"),
    "check": (
        "/check",
        f"answer.value = '{CHECKED}'; document.querySelector('main .primary').click()",
        "document.querySelectorAll('.claims > li').length > 2",
    ),
    "lines": ("/lines", "document.querySelector('.lines summary').click()", "!!document.querySelector('.summary ul')"),
    "next": (
        "/next",
        "document.getElementById('prompt').value = 'Which port do the tests of Redis need?'; "
        "document.querySelector('main form').requestSubmit()",
        "document.querySelectorAll('main h2').length > 1",
    ),
    "health": ("/doctor", "", "!!document.querySelector('#snapshots li')"),
}
SHOWN = (("search", False), ("timeline", False), ("graph", True), ("review", False))


def make_project(folder: Path) -> None:
    def git(*words: str, day: datetime | None = None) -> None:
        when = {name: day.isoformat() for name in ("GIT_AUTHOR_DATE", "GIT_COMMITTER_DATE")} if day else {}
        person = ("-c", "user.name=Maria Keller", "-c", "user.email=maria@example.org")
        subprocess.run(
            ["git", *person, *words], cwd=folder, env={**os.environ, **when}, check=True, capture_output=True
        )

    now = datetime.now(UTC)
    folder.mkdir()
    (folder / "limits.py").write_text("TIMEOUT = 30\n", "utf-8")
    git("init", "-q", "-b", "main")
    git("add", "-A")
    git("commit", "-m", "Begin", day=now - timedelta(days=60))
    for number, message in enumerate(COMMITS):
        git("commit", "--allow-empty", "-m", message, day=now - timedelta(days=20 - 9 * number))
    git("checkout", "-q", "-b", "suppliers")
    git("commit", "--allow-empty", "-m", "Import suppliers at night", day=now - timedelta(hours=9))
    git("checkout", "-q", "main")
    git("merge", "--no-ff", "-m", "Merge suppliers", "suppliers", day=now - timedelta(hours=8))


def fill(cortex: Cortex) -> str:
    """Make the memories, and what belongs to them; the id of one."""
    now = datetime.now(UTC)
    memories = cortex.memories
    kept = memories.capture_many(
        NewMemory(
            content=text,
            namespace=namespace,
            tags=tuple(tags.split()),
            created_at=now
            - timedelta(days=PAUSE * (number - number % (1 + number % BURST)), minutes=37 * number % 400 + 5),
            user_id=PEOPLE[number % 3 % 2][0],
            agent_id=PEOPLE[number % 3 % 2][1],
        )
        for number, (namespace, tags, text) in enumerate(MEMORIES)
    )
    for text in STAGED:
        memories.update(memories.capture(text, namespace="learnings", tags=["from-session"]).id, status="pending")
    memories.update(kept[2].id, content=kept[2].content.replace("twenty", "thirty"))
    line = cortex.contexts.create_branch("Import of suppliers")
    for role, text in TURNS:
        cortex.contexts.append(line.id, text, role)
    for query in ("Which port do the tests need?", "Who knows the supplier feed?", "order export"):
        memories.recall(query)
    memories.finish_reading()
    cortex.backups.create("Before the move to CSV")
    return kept[2].id


@contextmanager
def serving(cortex: Cortex) -> Iterator[str]:
    """A one-time link to the page."""
    app = build_app(cortex)
    with socket.create_server(("127.0.0.1", 0)) as bound:
        server = uvicorn.Server(uvicorn.Config(app, log_config=None, access_log=False, ws="none"))
        thread = threading.Thread(target=server.run, args=([bound],))
        thread.start()
        try:
            yield page_address(f"http://127.0.0.1:{bound.getsockname()[1]}", app.state.page_links)
        finally:
            app.state.end_streams()
            server.should_exit = True
            thread.join()


def look(tab: Tab, url: str, name: str, id: str, width: int, *, dark: bool) -> list[str]:
    """Open a view and do what a person does there; what is not in its place."""
    address, act, ready = VIEWS[name]
    scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
    still = {"name": "prefers-reduced-motion", "value": "reduce"}
    tab.call("Emulation.setEmulatedMedia", features=[scheme, still])
    tab.go(url + address.replace("ID", id))
    if name != "gone":
        tab.wait(READY)
    tab.wait(f"(() => {{ {act}; return true }})()")
    tab.wait(ready)
    return [f"{name}, {width} pixels: {one}" for one in tab.run(f"{GEOMETRY}({width})")]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--views", type=Path, help="a folder for pictures of every view")
    views = parser.parse_args().views
    program = browser_program()
    if program is None:
        raise SystemExit("There is no Chromium on this machine.")
    faults: list[str] = []
    with tempfile.TemporaryDirectory(prefix="cortex-pictures-", ignore_cleanup_errors=True) as folder:
        project = Path(folder) / "orders-api"
        make_project(project)
        with Cortex.open(Path(folder) / "home", project=project) as cortex, running_browser(program) as browser:
            id = fill(cortex)
            with serving(cortex) as link:
                url = link.partition("/session")[0]
                tab = browser.open()
                tab.go(link)
                for width, height in WIDTHS:
                    tab.resize(width, height)
                    for name in VIEWS:
                        for dark in (False, True):
                            faults += look(tab, url, name, id, width, dark=dark)
                            if views:
                                views.mkdir(parents=True, exist_ok=True)
                                tab.picture(views / f"{name}-{width}-{'dark' if dark else 'light'}.png")
                            if width == WIDTHS[-1][0] and (name, dark) in SHOWN:
                                tab.picture(PICTURES / f"page_{name}.png")
    print("\n".join(faults) or f"{PICTURES}: {len(SHOWN)} pictures, and nothing is out of its place.")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
