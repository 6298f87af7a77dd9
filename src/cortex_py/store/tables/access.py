"""Organisations, their members and groups, and what these may do in projects."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from .database import Session

__all__ = ["TENANCY_STEP", "GrantRow", "MemberRow", "OrgProject", "TenantTable"]

TENANCY_STEP: tuple[str, ...] = (
    "CREATE TABLE organisation (name TEXT PRIMARY KEY, created_at INTEGER NOT NULL)",
    """CREATE TABLE org_member (
        org TEXT NOT NULL, user_id TEXT NOT NULL, level TEXT NOT NULL, since INTEGER NOT NULL,
        PRIMARY KEY (org, user_id))""",
    """CREATE TABLE org_group (
        org TEXT NOT NULL, name TEXT NOT NULL, created_at INTEGER NOT NULL, PRIMARY KEY (org, name))""",
    """CREATE TABLE group_member (
        org TEXT NOT NULL, group_name TEXT NOT NULL, user_id TEXT NOT NULL, PRIMARY KEY (org, group_name, user_id))""",
    "CREATE INDEX group_member_user ON group_member (org, user_id)",
    # A project without a row belongs to the organisation of the settings.
    "CREATE TABLE project_org (project_id TEXT PRIMARY KEY, org TEXT NOT NULL, restricted INTEGER NOT NULL)",
    """CREATE TABLE project_grant (
        project_id TEXT NOT NULL, kind TEXT NOT NULL, grantee TEXT NOT NULL, level TEXT NOT NULL,
        PRIMARY KEY (project_id, kind, grantee))""",
    "CREATE INDEX project_grant_to ON project_grant (kind, grantee)",
    # Grows with every change to what stands above: what was worked out from it holds while it stays.
    "CREATE TABLE tenancy (one INTEGER PRIMARY KEY CHECK (one = 1), revision INTEGER NOT NULL)",
    "INSERT INTO tenancy (one, revision) VALUES (1, 0)",
    "ALTER TABLE api_token ADD COLUMN org TEXT",
    "ALTER TABLE api_token ADD COLUMN project_id TEXT",
)


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
        # Projects are written elsewhere, and never taken away.
        rows = session.rows(
            "SELECT (SELECT revision FROM tenancy WHERE one = 1), count(*), COALESCE(max(updated_at), 0) FROM project"
        )
        return tuple(int(value) for value in rows[0])

    def _changed(self, session: Session) -> None:
        session.run("UPDATE tenancy SET revision = revision + 1 WHERE one = 1")

    # -- organisations and their members ----------------------------------------------------------

    def add_org(self, session: Session, name: str, at: int) -> bool:
        """Whether it is new."""
        self._changed(session)
        session.run("INSERT INTO organisation (name, created_at) VALUES (?, ?) ON CONFLICT DO NOTHING", (name, at))
        return session.changed() == 1

    def orgs(self, session: Session) -> list[tuple[str, int]]:
        return [(row[0], row[1]) for row in session.rows("SELECT name, created_at FROM organisation ORDER BY name")]

    def has_org(self, session: Session, name: str) -> bool:
        return bool(session.rows("SELECT 1 FROM organisation WHERE name = ?", (name,)))

    def put_member(self, session: Session, org: str, user: str, level: str, at: int) -> None:
        self._changed(session)
        session.run(
            "INSERT INTO org_member (org, user_id, level, since) VALUES (?, ?, ?, ?) "
            "ON CONFLICT (org, user_id) DO UPDATE SET level = excluded.level",
            (org, user, level, at),
        )

    def add_member(self, session: Session, org: str, user: str, level: str, at: int) -> bool:
        """Make a person a member if they are none; one who is keeps their level."""
        self._changed(session)
        session.run(
            "INSERT INTO org_member (org, user_id, level, since) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING",
            (org, user, level, at),
        )
        return session.changed() == 1

    def member(self, session: Session, org: str, user: str) -> MemberRow | None:
        rows = session.rows("SELECT user_id, level, since FROM org_member WHERE org = ? AND user_id = ?", (org, user))
        return MemberRow(*rows[0]) if rows else None

    def members(self, session: Session, org: str) -> list[MemberRow]:
        rows = session.rows("SELECT user_id, level, since FROM org_member WHERE org = ? ORDER BY user_id", (org,))
        return [MemberRow(*row) for row in rows]

    def remove_member(self, session: Session, org: str, user: str, default_org: str) -> None:
        """With all that the person had through the organisation: whoever comes back begins anew."""
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
        session.run(
            "INSERT INTO org_group (org, name, created_at) VALUES (?, ?, ?) ON CONFLICT DO NOTHING", (org, name, at)
        )
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

    def has_group(self, session: Session, org: str, name: str) -> bool:
        return bool(session.rows("SELECT 1 FROM org_group WHERE org = ? AND name = ?", (org, name)))

    def remove_group(self, session: Session, org: str, name: str, default_org: str) -> None:
        """With its members' places in it and all that it was granted."""
        self._changed(session)
        session.run("DELETE FROM org_group WHERE org = ? AND name = ?", (org, name))
        session.run("DELETE FROM group_member WHERE org = ? AND group_name = ?", (org, name))
        session.run_many(
            "DELETE FROM project_grant WHERE kind = 'group' AND grantee = ? AND project_id = ?",
            [(name, one.id) for one in self.projects(session, org, default_org)],
        )

    def add_to_group(self, session: Session, org: str, group: str, user: str) -> None:
        self._changed(session)
        session.run(
            "INSERT INTO group_member (org, group_name, user_id) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
            (org, group, user),
        )

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
        """The organisation of a project and whether it is restricted; None where nothing is said of it."""
        rows = session.rows("SELECT org, restricted FROM project_org WHERE project_id = ?", (project_id,))
        return (rows[0][0], bool(rows[0][1])) if rows else None

    def put_project(self, session: Session, project_id: str, org: str, restricted: bool) -> None:
        self._changed(session)
        session.run(
            "INSERT INTO project_org (project_id, org, restricted) VALUES (?, ?, ?) "
            "ON CONFLICT (project_id) DO UPDATE SET org = excluded.org, restricted = excluded.restricted",
            (project_id, org, int(restricted)),
        )

    # -- grants -----------------------------------------------------------------------------------

    def put_grant(self, session: Session, row: GrantRow) -> None:
        self._changed(session)
        session.run(
            "INSERT INTO project_grant (project_id, kind, grantee, level) VALUES (?, ?, ?, ?) "
            "ON CONFLICT (project_id, kind, grantee) DO UPDATE SET level = excluded.level",
            row,
        )

    def remove_grants(self, session: Session, project_id: str, kinds: Sequence[str], grantee: str | None) -> int:
        """Take grants on a project back: that of one, or all of the kinds."""
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
        """What was granted to a person or to their groups in an organisation, as (project, level)."""
        rows = session.rows(
            "SELECT project_id, level FROM project_grant WHERE kind = 'user' AND grantee = ? UNION ALL "
            "SELECT g.project_id, g.level FROM project_grant g JOIN group_member m ON m.group_name = g.grantee "
            "WHERE g.kind = 'group' AND m.org = ? AND m.user_id = ?",
            (user, org, user),
        )
        return [(row[0], row[1]) for row in rows]
