"""Organisations, members, groups and grants, and the rights that follow for a caller."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from typing import NamedTuple

from ...core.clock import Clock, from_micros, to_micros
from ...core.config import AutoJoin
from ...core.errors import AccessDenied, InvalidInput, NotFound, ProjectNotFound
from ...core.events import Events, TenantsChanged
from ...core.records import org_space
from ...core.security.callers import Caller, as_system, check_name
from ...core.security.permission import require_admin
from ...core.security.rights import Level, Rights, check_level, compute_rights
from ...core.store.database import Session
from ...core.store.store import Store
from ...core.store.tables.access import GrantRow, MemberRow, OrgProject
from ...worktree.remotes import normalise_remote

__all__ = ["Grant", "Group", "Member", "Organisation", "TenantProject", "Tenants"]

# Members whose rights are cached.
_MOST_STANDINGS = 256


@dataclass(frozen=True, slots=True)
class Organisation:
    name: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Member:
    """A member; `level` applies to the organisation and to all projects that are not restricted."""

    org: str
    user: str
    level: Level
    since: datetime


@dataclass(frozen=True, slots=True)
class Group:
    org: str
    name: str
    members: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TenantProject:
    """A project and its organisation. A `restricted` project is open only through grants."""

    id: str
    name: str
    org: str
    restricted: bool


@dataclass(frozen=True, slots=True)
class Grant:
    """A level on one project, for a person (`user`) or for a `group` of its organisation."""

    project_id: str
    level: Level
    user: str | None = None
    group: str | None = None


class _Standing(NamedTuple):
    """The rights of a member at a revision, and the projects they may read."""

    revision: tuple[int, ...]
    rights: Rights
    projects: tuple[OrgProject, ...]


class Tenants:
    """The organisations of one store. `own` is that of the settings, the default for everything."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        own: str,
        auto_join: AutoJoin,
        events: Events,
    ) -> None:
        """`auto_join` is the level of unknown callers."""
        self._events = events
        self._store = store
        self._clock = clock
        self._table = store.tenants
        self._own = own
        self._auto_join = auto_join
        self._standings: dict[tuple[str, str], _Standing] = {}
        self._lock = threading.Lock()

    # -- organisations ----------------------------------------------------------------------------

    def create(self, name: str) -> Organisation:
        """Create an organisation; an existing one is left as it is."""
        check_name(name, "organisation")
        require_admin(org_space(self._own))
        with self._store.database.write() as session:
            self._table.add_org(session, name, self._now())
            return next(one for one in self._orgs(session) if one.name == name)

    def list(self) -> tuple[Organisation, ...]:
        """All organisations, by name."""
        require_admin(org_space(self._own))
        with self._store.database.read() as session:
            return tuple(self._orgs(session))

    def join(self, user: str, level: str = "read", *, org: str | None = None) -> Member:
        """Make a person a member, or give a member another level."""
        check_name(user, "user")
        wanted = check_level(level)
        with self._changing(org) as (session, name):
            self._table.put_member(session, name, user, wanted, self._now())
            return self._member(session, name, user)

    def leave(self, user: str, *, org: str | None = None) -> Member:
        """Remove a member with their groups and grants in the organisation, from the next request on."""
        with self._changing(org) as (session, name):
            gone = self._member(session, name, user)
            self._table.remove_member(session, name, user, self._own)
            return gone

    def members(self, org: str | None = None) -> tuple[Member, ...]:
        """The members of an organisation, by name."""
        with self._reading(org) as (session, name):
            return tuple(_member(name, row) for row in self._table.members(session, name))

    # -- groups -----------------------------------------------------------------------------------

    def create_group(self, name: str, *, org: str | None = None) -> Group:
        """Create a group; an existing one is left as it is."""
        check_name(name, "group")
        with self._changing(org) as (session, where):
            self._table.add_group(session, where, name, self._now())
            return self._group(session, where, name)

    def delete_group(self, name: str, *, org: str | None = None) -> Group:
        """Delete a group with its grants."""
        with self._changing(org) as (session, where):
            gone = self._group(session, where, name)
            self._table.remove_group(session, where, name, self._own)
            return gone

    def groups(self, org: str | None = None) -> tuple[Group, ...]:
        """The groups of an organisation with their members."""
        with self._reading(org) as (session, where):
            return tuple(Group(where, name, tuple(users)) for name, users in self._table.groups(session, where).items())

    def add_to_group(self, group: str, user: str, *, org: str | None = None) -> Group:
        """Put a member of the organisation into a group."""
        with self._changing(org) as (session, where):
            self._group(session, where, group)
            self._member(session, where, user)
            self._table.add_to_group(session, where, group, user)
            return self._group(session, where, group)

    def remove_from_group(self, group: str, user: str, *, org: str | None = None) -> Group:
        """Remove a member from a group."""
        with self._changing(org) as (session, where):
            self._group(session, where, group)
            if not self._table.remove_from_group(session, where, group, user):
                raise NotFound(f"{user[:80]!r} is not in the group {group[:80]!r}.", field="user")
            return self._group(session, where, group)

    # -- projects ---------------------------------------------------------------------------------

    def projects(self, org: str | None = None) -> tuple[TenantProject, ...]:
        """The projects of an organisation."""
        with self._reading(org) as (session, where):
            rows = self._table.projects(session, where, self._own)
            return tuple(TenantProject(row.id, row.name, where, row.restricted) for row in rows)

    def project(self, project: str) -> TenantProject:
        """A project by id, remote or name, with the organisation it belongs to."""
        with as_system(), self._store.database.read() as session:
            found = self._project(session, project)
        require_admin(org_space(found.org))
        return found

    def assign(self, project: str, org: str) -> TenantProject:
        """Move a project to another organisation; its grants end."""
        found = self.project(project)
        with self._changing(org) as (session, where):
            if where != found.org:
                self._table.remove_grants(session, found.id, ("user", "group"), None)
            self._table.put_project(session, found.id, where, found.restricted)
        self._events.publish(TenantsChanged())
        return replace(found, org=where)

    def restrict(self, project: str, restricted: bool = True) -> TenantProject:
        """Close a project to all members but those with a grant on it, or open it again."""
        found = self.project(project)
        with self._changing(found.org) as (session, where):
            self._table.put_project(session, found.id, where, restricted)
        self._events.publish(TenantsChanged())
        return replace(found, restricted=restricted)

    def grant(self, project: str, level: str, *, user: str | None = None, group: str | None = None) -> Grant:
        """Give a person or a group a level on one project, restricted or not. It adds to what they have elsewhere."""
        wanted, (kind, grantee) = check_level(level), _grantee(user, group)
        found = self.project(project)
        with self._changing(found.org) as (session, where):
            if kind == "user":
                self._member(session, where, grantee)
            else:
                self._group(session, where, grantee)
            row = GrantRow(found.id, kind, grantee, wanted)
            self._table.put_grant(session, row)
            return _grant(row)

    def revoke(self, project: str, *, user: str | None = None, group: str | None = None) -> Grant:
        """Revoke a grant, from the next request on."""
        kind, grantee = _grantee(user, group)
        found = self.project(project)
        with self._changing(found.org) as (session, _):
            rows = [one for one in self._table.grants(session, found.id) if (one.kind, one.grantee) == (kind, grantee)]
            if not rows:
                raise NotFound(f"Nothing is granted there to {grantee[:80]!r}.", remedy="See: cortex grant list.")
            self._table.remove_grants(session, found.id, (kind,), grantee)
            return _grant(rows[0])

    def grants(self, project: str) -> tuple[Grant, ...]:
        """The grants on a project."""
        found = self.project(project)
        with self._reading(found.org) as (session, _):
            return tuple(_grant(row) for row in self._table.grants(session, found.id))

    # -- callers ----------------------------------------------------------------------------------

    def rights(self, user: str, *, org: str | None = None) -> Rights:
        """The current rights of a member; `AccessDenied` if they are not one."""
        with as_system(), self._store.database.read() as session:
            found = self._rights(session, org or self._own, user)
        if found is None:
            raise _no_member(user, org or self._own)
        return found.rights

    def admitted(self, caller: Caller, project: str | None = None) -> Caller:
        """A caller with their rights, working in a project that they named by id, remote or name, or in their token's.

        Read for each request, so a change applies to the next one. `AccessDenied` if they are not a member,
        `ProjectNotFound` if the project does not exist or they may not see it.
        """
        org = caller.org or self._own
        with as_system():
            with self._store.database.read() as session:
                found = self._rights(session, org, caller.user)
            if found is None and self._auto_join != "off" and self._auto_join_member(org, caller.user):
                with self._store.database.read() as session:
                    found = self._rights(session, org, caller.user)
        if found is None:
            raise _no_member(caller.user, org)
        wanted = project or caller.project
        chosen = None if wanted is None else self._chosen(wanted, found.projects).id
        return replace(caller, org=org, rights=found.rights, project=chosen)

    def enlist(self, user: str, level: Level, org: str | None = None) -> bool:
        """Make a person a member unless they are one; True if they were added."""
        with self._changing(org) as (session, name):
            return self._table.add_member(session, name, user, level, self._now())

    def _auto_join_member(self, org: str, user: str) -> bool:
        with self._store.database.write() as session:
            if not self._exists(session, org):
                return False
            self._table.add_member(session, org, user, check_level(self._auto_join), self._now())
            return True

    def _rights(self, session: Session, org: str, user: str) -> _Standing | None:
        """A person's rights, cached for each revision of the tables; None if they are not a member."""
        revision = (self._store.database.era, *self._table.revision(session))
        known = self._standings.get((org, user))
        if known is None or known.revision != revision:
            known = self._compute_standing(session, org, user, revision)
            if known is None:
                return None
            with self._lock:
                self._standings[org, user] = known
                while len(self._standings) > _MOST_STANDINGS:
                    del self._standings[next(iter(self._standings))]
        return known

    def _compute_standing(self, session: Session, org: str, user: str, revision: tuple[int, ...]) -> _Standing | None:
        member = self._table.member(session, org, user)
        if member is None:
            return None
        projects = self._table.projects(session, org, self._own)
        grants = [(id, check_level(level)) for id, level in self._table.granted_to(session, org, user)]
        closed = {one.id: one.restricted for one in projects}
        rights = compute_rights(user, org, check_level(member.level), closed, grants)
        return _Standing(revision, rights, tuple(one for one in projects if one.id in rights.read))

    # -- inside -----------------------------------------------------------------------------------

    @contextmanager
    def _changing(self, org: str | None) -> Iterator[tuple[Session, str]]:
        """A write transaction on an existing organisation, for an admin; that of the settings always exists."""
        name = org or self._own
        require_admin(org_space(name))
        with as_system(), self._store.database.write() as session:
            if name == self._own:
                self._table.add_org(session, name, self._now())
            self._check_exists(session, name)
            yield session, name

    @contextmanager
    def _reading(self, org: str | None) -> Iterator[tuple[Session, str]]:
        name = org or self._own
        require_admin(org_space(name))
        with as_system(), self._store.database.read() as session:
            self._check_exists(session, name)
            yield session, name

    def _check_exists(self, session: Session, org: str) -> None:
        if not self._exists(session, org):
            raise NotFound(
                f"There is no organisation {org[:80]!r}.", remedy="Create it with: cortex org create.", field="org"
            )

    def _orgs(self, session: Session) -> Sequence[Organisation]:
        return [Organisation(name, from_micros(at)) for name, at in self._table.orgs(session)]

    def _exists(self, session: Session, org: str) -> bool:
        return org == self._own or self._table.has_org(session, org)

    def _member(self, session: Session, org: str, user: str) -> Member:
        row = self._table.member(session, org, user)
        if row is None:
            raise NotFound(
                f"{user[:80]!r} is no member of {org[:80]!r}.", remedy="See: cortex org members.", field="user"
            )
        return _member(org, row)

    def _group(self, session: Session, org: str, name: str) -> Group:
        users = self._table.groups(session, org).get(name)
        if users is None:
            raise NotFound(
                f"There is no group {name[:80]!r} in {org[:80]!r}.", remedy="See: cortex group list.", field="group"
            )
        return Group(org, name, tuple(users))

    def _project(self, session: Session, wanted: str) -> TenantProject:
        rows = [OrgProject(one.id, one.name, one.remote, False) for one in self._store.projects.all(session)]
        found = self._chosen(wanted, rows)
        org, restricted = self._table.org_of(session, found.id) or (self._own, False)
        return TenantProject(found.id, found.name, org, restricted)

    def _chosen(self, wanted: str, projects: Sequence[OrgProject]) -> OrgProject:
        """The project that has an id, else the only one that has a remote or name."""
        found = [one for one in projects if one.id == wanted]
        if not found and (remote := normalise_remote(wanted)):
            found = [one for one in projects if one.remote == remote]
        found = found or [one for one in projects if one.name == wanted]
        if not found:
            raise ProjectNotFound(
                f"There is no project {wanted[:80]!r}.", remedy="Give the id, remote or name of one.", field="project"
            )
        if len(found) > 1:
            raise InvalidInput(f"{wanted[:80]!r} names {len(found)} projects.", remedy="Give the id.", field="project")
        return found[0]

    def _now(self) -> int:
        return to_micros(self._clock.now())


def _member(org: str, row: MemberRow) -> Member:
    return Member(org, row.user_id, check_level(row.level), from_micros(row.since))


def _grant(row: GrantRow) -> Grant:
    to = {row.kind: row.grantee}
    return Grant(row.project_id, check_level(row.level), to.get("user"), to.get("group"))


def _grantee(user: str | None, group: str | None) -> tuple[str, str]:
    if (user is None) == (group is None):
        raise InvalidInput("Name a person or a group.", remedy="Give one of the two.", field="user")
    return ("user", user) if user is not None else ("group", str(group))


def _no_member(user: str, org: str) -> AccessDenied:
    return AccessDenied(
        f"{user[:80]!r} is no member of the organisation {org[:80]!r}.",
        remedy="Ask the operator of this server to add you.",
    )
