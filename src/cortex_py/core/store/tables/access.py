"""API tokens by their digests, the audit log, and organisations with their members, groups and grants."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ..database import Computed, Row, Session, Values, first, replacing

__all__ = ["AccessTable", "AuditTable", "GrantRow", "MemberRow", "OrgProject", "TenantTable"]


class MemberRow(NamedTuple):
    user_id: str
    level: str
    since: int


class GrantRow(NamedTuple):
    """`kind` is `user` or `group`; a group is one of the project's organisation."""

    project_id: str
    kind: str
    grantee: str
    level: str


class OrgProject(NamedTuple):
    id: str
    name: str
    remote: str | None
    restricted: bool


class TenantTable:
    def revision(self, session: Session) -> tuple[int, ...]:
        """Differs after every change to organisations, members, groups, grants and projects."""
        # Projects are written elsewhere and never removed.
        rows = session.rows(
            "SELECT (SELECT revision FROM tenancy WHERE one = 1), count(*), COALESCE(max(updated_at), 0) FROM project"
        )
        return tuple(int(value) for value in rows[0])

    def _changed(self, session: Session) -> None:
        session.update("tenancy", {"revision": Computed("revision + 1")}, "one = 1")

    # -- organisations and their members ----------------------------------------------------------

    def add_org(self, session: Session, name: str, at: int) -> bool:
        """Whether it is new."""
        self._changed(session)
        session.insert("organisation", {"name": name, "created_at": at}, replacing("organisation"))
        return session.changed() == 1

    def orgs(self, session: Session) -> list[tuple[str, int]]:
        return session.rows("SELECT name, created_at FROM organisation ORDER BY name")

    def has_org(self, session: Session, name: str) -> bool:
        return bool(session.rows("SELECT 1 FROM organisation WHERE name = ?", (name,)))

    def put_member(self, session: Session, org: str, user: str, level: str, at: int) -> None:
        self._changed(session)
        row: Values = {"org": org, "user_id": user, "level": level, "since": at}
        session.insert("org_member", row, replacing("org_member", "level"))

    def add_member(self, session: Session, org: str, user: str, level: str, at: int) -> bool:
        """Make a person a member; one who already is keeps their level. Whether they are new."""
        self._changed(session)
        session.insert(
            "org_member", {"org": org, "user_id": user, "level": level, "since": at}, replacing("org_member")
        )
        return session.changed() == 1

    def member(self, session: Session, org: str, user: str) -> MemberRow | None:
        rows = session.rows("SELECT user_id, level, since FROM org_member WHERE org = ? AND user_id = ?", (org, user))
        return MemberRow(*rows[0]) if rows else None

    def members(self, session: Session, org: str) -> list[MemberRow]:
        rows = session.rows("SELECT user_id, level, since FROM org_member WHERE org = ? ORDER BY user_id", (org,))
        return [MemberRow(*row) for row in rows]

    def remove_member(self, session: Session, org: str, user: str, default_org: str) -> None:
        """Remove a member with all they had through the organisation; nothing is kept for a return."""
        self._changed(session)
        session.run("DELETE FROM org_member WHERE org = ? AND user_id = ?", (org, user))
        session.run("DELETE FROM group_member WHERE org = ? AND user_id = ?", (org, user))
        granted = session.rows("SELECT project_id FROM project_grant WHERE kind = 'user' AND grantee = ?", (user,))
        owned = {one.id for one in self.projects(session, org, default_org)}
        session.run_many(
            "DELETE FROM project_grant WHERE kind = 'user' AND grantee = ? AND project_id = ?",
            [(user, row[0]) for row in granted if row[0] in owned],
        )

    # -- groups -----------------------------------------------------------------------------------

    def add_group(self, session: Session, org: str, name: str, at: int) -> bool:
        self._changed(session)
        session.insert("org_group", {"org": org, "name": name, "created_at": at}, replacing("org_group"))
        return session.changed() == 1

    def groups(self, session: Session, org: str) -> dict[str, list[str]]:
        """Groups by name, each with its members."""
        found: dict[str, list[str]] = {
            row[0]: [] for row in session.rows("SELECT name FROM org_group WHERE org = ? ORDER BY name", (org,))
        }
        for group, user in session.rows(
            "SELECT group_name, user_id FROM group_member WHERE org = ? ORDER BY user_id", (org,)
        ):
            found[group].append(user)
        return found

    def remove_group(self, session: Session, org: str, name: str, default_org: str) -> None:
        """Remove a group with its memberships and grants."""
        self._changed(session)
        session.run("DELETE FROM org_group WHERE org = ? AND name = ?", (org, name))
        session.run("DELETE FROM group_member WHERE org = ? AND group_name = ?", (org, name))
        session.run_many(
            "DELETE FROM project_grant WHERE kind = 'group' AND grantee = ? AND project_id = ?",
            [(name, one.id) for one in self.projects(session, org, default_org)],
        )

    def add_to_group(self, session: Session, org: str, group: str, user: str) -> None:
        self._changed(session)
        session.insert("group_member", {"org": org, "group_name": group, "user_id": user}, replacing("group_member"))

    def remove_from_group(self, session: Session, org: str, group: str, user: str) -> bool:
        self._changed(session)
        session.run("DELETE FROM group_member WHERE org = ? AND group_name = ? AND user_id = ?", (org, group, user))
        return session.changed() == 1

    # -- projects ---------------------------------------------------------------------------------

    def projects(self, session: Session, org: str, default_org: str) -> list[OrgProject]:
        """The projects of an organisation."""
        rows = session.rows(
            "SELECT p.id, p.name, p.remote, COALESCE(o.restricted, 0) FROM project p "
            "LEFT JOIN project_org o ON o.project_id = p.id WHERE COALESCE(o.org, ?) = ? ORDER BY p.name, p.id",
            (default_org, org),
        )
        return [OrgProject(row[0], row[1], row[2], bool(row[3])) for row in rows]

    def org_of(self, session: Session, project_id: str) -> tuple[str, bool] | None:
        """The organisation of a project and whether it is restricted; None if neither is set."""
        rows = session.rows("SELECT org, restricted FROM project_org WHERE project_id = ?", (project_id,))
        return (rows[0][0], bool(rows[0][1])) if rows else None

    def org_by_project(self, session: Session) -> dict[str, str]:
        """The organisation of each project that has one set."""
        return {row[0]: row[1] for row in session.rows("SELECT project_id, org FROM project_org")}

    def put_project(self, session: Session, project_id: str, org: str, restricted: bool) -> None:
        self._changed(session)
        row: Values = {"project_id": project_id, "org": org, "restricted": int(restricted)}
        session.insert("project_org", row, replacing("project_org", "org", "restricted"))

    # -- grants -----------------------------------------------------------------------------------

    def put_grant(self, session: Session, row: GrantRow) -> None:
        self._changed(session)
        session.insert("project_grant", row._asdict(), replacing("project_grant", "level"))

    def remove_grants(self, session: Session, project_id: str, kinds: Sequence[str], grantee: str | None) -> int:
        """Revoke grants on a project: those of one grantee, or all of the kinds."""
        self._changed(session)
        gone = 0
        for kind in kinds:
            which, params = ("", ()) if grantee is None else (" AND grantee = ?", (grantee,))
            session.run(
                f"DELETE FROM project_grant WHERE project_id = ? AND kind = ?{which}", (project_id, kind, *params)
            )
            gone += session.changed()
        return gone

    def grants(self, session: Session, project_id: str) -> list[GrantRow]:
        rows = session.rows(
            "SELECT project_id, kind, grantee, level FROM project_grant WHERE project_id = ? ORDER BY kind, grantee",
            (project_id,),
        )
        return [GrantRow(*row) for row in rows]

    def granted_to(self, session: Session, org: str, user: str) -> list[tuple[str, str]]:
        """What a person or their groups in an organisation were granted, as (project, level)."""
        return session.rows(
            "SELECT project_id, level FROM project_grant WHERE kind = 'user' AND grantee = ? UNION ALL "
            "SELECT g.project_id, g.level FROM project_grant g JOIN group_member m ON m.group_name = g.grantee "
            "WHERE g.kind = 'group' AND m.org = ? AND m.user_id = ?",
            (user, org, user),
        )


_TOKEN = (
    "id", "user_id", "agent_id", "scopes", "created_at", "expires_at", "last_used_at", "revoked_at", "org",
    "project_id",
)  # fmt: skip
_COLUMNS = ", ".join(_TOKEN)


class AccessTable:
    """A token is a row of `_COLUMNS`: scopes are separated by spaces, moments are microseconds.

    A token without an organisation is the server's own.
    """

    def add(self, session: Session, row: Row, digest: str) -> None:
        session.insert("api_token", {"digest": digest, **dict(zip(_TOKEN, row, strict=True))})

    def all(self, session: Session) -> list[Row]:
        return session.rows(f"SELECT {_COLUMNS} FROM api_token ORDER BY created_at, id")

    def by_digest(self, session: Session, digest: str) -> Row | None:
        return first(session, f"SELECT {_COLUMNS} FROM api_token WHERE digest = ?", (digest,))

    def by_id(self, session: Session, id: str) -> Row | None:
        return first(session, f"SELECT {_COLUMNS} FROM api_token WHERE id = ?", (id,))

    def revoke(self, session: Session, id: str, now: int) -> None:
        session.update("api_token", {"revoked_at": now}, "id = ? AND revoked_at IS NULL", (id,))

    def used(self, session: Session, uses: Iterable[tuple[str, int]]) -> None:
        last = "id = ? AND (last_used_at IS NULL OR last_used_at < ?)"
        session.update_many("api_token", ["last_used_at"], last, [(moment, id, moment) for id, moment in uses])


class AuditTable:
    """The links of the audit chain; `access` makes and verifies them."""

    def next(self, session: Session) -> tuple[int, str, str] | None:
        """The head of the chain, locked until this transaction ends; None if there is none."""
        # An UPDATE, because engines with several writers lock the row only for that.
        rows = session.rows("UPDATE audit_head SET events = events + 1 WHERE one = 1 RETURNING events, hash, seal")
        return (int(rows[0][0]) - 1, str(rows[0][1]), str(rows[0][2])) if rows else None

    def append(self, session: Session, number: int, event: str, hash: str, seal: str) -> None:
        session.insert("audit_event", {"n": number, "event": event, "hash": hash})
        session.update("audit_head", {"events": number, "hash": hash, "seal": seal}, "one = 1")

    def head(self, session: Session) -> tuple[int, str, str] | None:
        rows = session.rows("SELECT events, hash, seal FROM audit_head WHERE one = 1")
        return (int(rows[0][0]), str(rows[0][1]), str(rows[0][2])) if rows else None

    def after(self, session: Session, number: int, limit: int) -> list[tuple[int, str, str]]:
        """Events after a number, oldest first."""
        rows = session.rows("SELECT n, event, hash FROM audit_event WHERE n > ? ORDER BY n LIMIT ?", (number, limit))
        return [(int(row[0]), str(row[1]), str(row[2])) for row in rows]

    def latest(self, session: Session, limit: int) -> list[tuple[int, str]]:
        rows = session.rows("SELECT n, event FROM audit_event ORDER BY n DESC LIMIT ?", (limit,))
        return [(int(row[0]), str(row[1])) for row in rows]
