"""What a PostgreSQL server says of its load: who waits for locks, and how many spaces each worker of a cluster has."""

from __future__ import annotations

from ..database import ServerLoad, Session

__all__ = ["read_load"]

# Of this database. The builder of an index that waits for older transactions keeps nobody waiting.
_WAITS = (
    "SELECT count(*), coalesce(max(extract(epoch FROM clock_timestamp() - l.waitstart)), 0)::float8 "
    "FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid "
    "WHERE NOT l.granted AND l.locktype <> 'virtualxid' AND a.datname = current_database()"
)
_SPACES = (
    "SELECT s.nodename || ':' || s.nodeport, sum(r.result::bigint)::bigint "
    "FROM run_command_on_shards('space_change', 'SELECT count(*) FROM %s') r "
    "JOIN citus_shards s ON s.shardid = r.shardid WHERE r.success GROUP BY 1 ORDER BY 1"
)


def read_load(session: Session, *, on_workers: bool) -> ServerLoad:
    ((waiting, longest),) = session.rows(_WAITS)
    spaces: dict[str, int] = dict(session.rows(_SPACES)) if on_workers else {}
    return ServerLoad(int(waiting), float(longest), spaces)
