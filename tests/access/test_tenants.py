"""Organisations, members, groups and grants: what follows from them for a caller, and that it follows at once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.testclient import TestClient

from cases import each
from cortex_py import Cortex
from cortex_py.core.errors import AccessDenied, InvalidInput, NotFound, ProjectNotFound
from cortex_py.core.records import files_space, org_space, turns_space, user_space
from cortex_py.core.security.callers import Caller, acting_as
from cortex_py.core.security.permission import as_project_creator, may_read, may_write, require_admin, require_write
from cortex_py.core.security.rights import LEVELS, Level, Rights, compute_rights, level_of_scopes
from cortex_py.opening import bounds_now
from cortex_py.surfaces.http.server import build_app

from helpers import FakeClock
from homes import opened
from members import member

PROJECTS = ("p1", "p2", "p3", "elsewhere")
levels = st.sampled_from(LEVELS)
users = st.sampled_from(("ann", "bob"))
groups = st.sampled_from(("g1", "g2"))


def project_spaces(project: str) -> set[str]:
    return {project, files_space(project), turns_space(project)}


@pytest.fixture
def cortex(home: Path, project: Path, tmp_path: Path) -> Iterator[Cortex]:
    with opened(home, project, project_roots=[tmp_path]) as made:
        yield made


@pytest.fixture
def other(cortex: Cortex, home: Path, tmp_path: Path) -> str:
    """Another project of the same store, with one memory."""
    folder = tmp_path / "other"
    folder.mkdir()
    with opened(home, folder) as made:
        made.memories.capture("The other project rounds up")
        return made.project.id


# -- the rules ------------------------------------------------------------------------------------


@given(
    level=levels,
    restricted=st.fixed_dictionaries({one: st.booleans() for one in PROJECTS[:3]}),
    to_users=st.lists(st.tuples(st.sampled_from(PROJECTS), users, levels), max_size=6),
    to_groups=st.lists(st.tuples(st.sampled_from(PROJECTS), groups, levels), max_size=6),
    inside=st.sets(groups),
)
def test_rights_are_what_the_rules_say(
    level: Level,
    restricted: dict[str, bool],
    to_users: list[tuple[str, str, Level]],
    to_groups: list[tuple[str, str, Level]],
    inside: set[str],
) -> None:
    """Against a question-by-question reading of the rules, for a person `ann` in the groups `inside`."""
    grants = [(project, granted) for project, user, granted in to_users if user == "ann"]
    grants += [(project, granted) for project, group, granted in to_groups if group in inside]
    rights = compute_rights("ann", "acme", level, restricted, grants)

    def may(wanted: Level, project: str) -> bool:
        if project not in restricted:
            return False
        if not restricted[project] and LEVELS.index(level) >= LEVELS.index(wanted):
            return True
        return any(where == project and LEVELS.index(had) >= LEVELS.index(wanted) for where, had in grants)

    for wanted in LEVELS:
        spaces: frozenset[str] = getattr(rights, wanted)
        expected = {space for one in PROJECTS if may(wanted, one) for space in project_spaces(one)}
        expected |= {user_space("ann")} | (
            {org_space("acme")} if LEVELS.index(level) >= LEVELS.index(wanted) else set()
        )
        assert spaces == expected
    assert rights.admin <= rights.write <= rights.read


@given(levels, levels)
def test_one_project_more(level: Level, granted: Level) -> None:
    rights = compute_rights("ann", "acme", level, {"p1": False}, [])
    more = rights.with_project("p2", granted)
    assert more == compute_rights("ann", "acme", level, {"p1": False, "p2": True}, [("p2", granted)])


@each(
    ("scopes", "level"),
    [({"read"}, "read"), ({"write"}, "write"), ({"read", "admin"}, "admin"), ({"embed"}, "read"), ({"tool:x"}, "read")],
)
def test_the_level_that_scopes_ask_for(scopes: set[str], level: str) -> None:
    assert level_of_scopes(scopes) == level


def test_where_nobody_is_bound_everything_is_permitted() -> None:
    assert may_read("anything")
    require_write("anything")
    require_admin("anything")
    assert bounds_now() is None
    with acting_as(Caller("ann")):
        assert not may_read("anything")
        assert not may_read(user_space("ann"))
        with pytest.raises(AccessDenied):
            require_write("anything")


def test_the_bounds_of_a_transaction_are_the_callers_rights() -> None:
    rights = compute_rights("ann", "acme", "read", {"p1": False, "p2": True}, [("p2", "write")])
    with acting_as(Caller("ann", org="acme", rights=rights)):
        bounds = bounds_now()
    assert bounds is not None
    assert bounds.member == "ann"
    assert bounds.readable == {*project_spaces("p1"), *project_spaces("p2"), "org:acme", "user:ann"}
    assert bounds.writable == {"p2", "p2/files", "p2/turns", "user:ann"}


def test_whoever_makes_a_project_goes_on_in_it() -> None:
    rights = compute_rights("ann", "acme", "write", {}, [])
    with acting_as(Caller("ann", org="acme", rights=rights)):
        assert not may_write("new")
        with as_project_creator("new"):
            require_write("new/files")
            with pytest.raises(AccessDenied):
                require_admin("new")
        assert not may_write("new")


# -- the organisation -----------------------------------------------------------------------------


def test_members_groups_and_grants_are_kept_and_taken_back(cortex: Cortex, other: str) -> None:
    tenants, here = cortex.tenants, cortex.project.id
    assert tenants.join("ann", "read").level == "read"
    assert tenants.join("ann", "write").level == "write"
    tenants.join("bob")
    assert [(one.user, one.level) for one in tenants.members()] == [("ann", "write"), ("bob", "read")]
    tenants.create_group("ops")
    assert tenants.add_to_group("ops", "bob").members == ("bob",)
    tenants.restrict(other)
    assert [(one.id, one.restricted) for one in tenants.projects() if one.id == other] == [(other, True)]
    assert other not in tenants.rights("ann").read
    tenants.grant(other, "write", group="ops")
    tenants.grant(other, "read", user="bob")
    assert other in tenants.rights("bob").write
    assert other not in tenants.rights("ann").read
    assert [(one.user, one.group, one.level) for one in tenants.grants(other)] == [
        (None, "ops", "write"),
        ("bob", None, "read"),
    ]
    tenants.remove_from_group("ops", "bob")
    assert other not in tenants.rights("bob").write
    assert other in tenants.rights("bob").read
    tenants.leave("bob")
    with pytest.raises(AccessDenied):
        tenants.rights("bob")
    tenants.join("bob")
    assert tenants.rights("bob").read == {*project_spaces(here), "org:default", "user:bob"}
    tenants.delete_group("ops")
    assert tenants.grants(other) == ()
    tenants.restrict(other, restricted=False)
    assert other in tenants.rights("bob").read


def test_what_belongs_to_another_organisation_is_out_of_reach(cortex: Cortex, other: str) -> None:
    tenants = cortex.tenants
    tenants.create("rivals")
    tenants.join("ann", "admin")
    tenants.join("rob", "admin", org="rivals")
    tenants.grant(other, "admin", user="ann")
    tenants.assign(other, "rivals")
    assert tenants.grants(other) == ()
    assert other not in tenants.rights("ann").read
    assert tenants.rights("rob", org="rivals").admin == {*project_spaces(other), "org:rivals", "user:rob"}
    assert [one.name for one in tenants.list()] == ["default", "rivals"]
    # Group names are an organisation's own.
    tenants.create_group("ops", org="rivals")
    tenants.add_to_group("ops", "rob", org="rivals")
    tenants.create_group("ops")
    tenants.add_to_group("ops", "ann")
    tenants.grant(other, "read", group="ops")
    assert other not in tenants.rights("ann").read


def test_what_cannot_be_is_refused_and_changes_nothing(cortex: Cortex) -> None:
    tenants, here = cortex.tenants, cortex.project.id
    tenants.join("ann")
    refused: list[tuple[type[Exception], Any]] = [
        (InvalidInput, lambda: tenants.join("ann", "root")),
        (InvalidInput, lambda: tenants.join(" ann")),
        (InvalidInput, lambda: tenants.create("")),
        (NotFound, lambda: tenants.join("ann", org="nowhere")),
        (NotFound, lambda: tenants.leave("bob")),
        (NotFound, lambda: tenants.add_to_group("ops", "ann")),
        (NotFound, lambda: tenants.grant(here, "read", user="bob")),
        (NotFound, lambda: tenants.grant(here, "read", group="ops")),
        (InvalidInput, lambda: tenants.grant(here, "read")),
        (InvalidInput, lambda: tenants.grant(here, "read", user="ann", group="ops")),
        (NotFound, lambda: tenants.revoke(here, user="ann")),
        (ProjectNotFound, lambda: tenants.restrict("nothing")),
        (NotFound, lambda: tenants.assign(here, "nowhere")),
        (NotFound, lambda: cortex.access.create("ann", org="nowhere")),
        (ProjectNotFound, lambda: cortex.access.create("bob", project="nothing")),
    ]
    for error, call in refused:
        with pytest.raises(error):
            call()
    assert [(one.user, one.level) for one in tenants.members()] == [("ann", "read")]
    assert tenants.projects()[0].restricted is False
    assert cortex.access.list() == ()


def test_only_admins_of_an_organisation_change_it(cortex: Cortex) -> None:
    ann, root = member(cortex, "ann", "write"), member(cortex, "root", "admin")
    with acting_as(ann), pytest.raises(AccessDenied):
        cortex.tenants.join("ann", "admin")
    with acting_as(ann), pytest.raises(AccessDenied):
        cortex.tenants.members()
    with acting_as(root):
        assert cortex.tenants.join("bob").level == "read"
        with pytest.raises(AccessDenied):
            cortex.tenants.join("bob", org="rivals")


# -- callers --------------------------------------------------------------------------------------


def test_a_token_makes_its_subject_a_member(cortex: Cortex) -> None:
    assert cortex.access.create("ann", scopes=["read", "write"]).joined == "write"
    assert cortex.access.create("ann", scopes=["admin"]).joined is None
    assert [(one.user, one.level) for one in cortex.tenants.members()] == [("ann", "write")]


@pytest.mark.parametrize("level", ["read", "write"])
def test_strangers_may_join_by_themselves_where_the_settings_say_so(home: Path, project: Path, level: str) -> None:
    with opened(home, project) as closed:
        with pytest.raises(AccessDenied, match="no member"):
            closed.tenants.admitted(Caller("ann"))
        assert closed.tenants.members() == ()
    with opened(home, project, auto_join=level, org="acme") as cortex:
        caller = cortex.tenants.admitted(Caller("ann"))
        assert (caller.org, cortex.project.id in caller.rights.write) == ("acme", level == "write")
        assert [(one.user, one.level) for one in cortex.tenants.members()] == [("ann", level)]
        with pytest.raises(AccessDenied):
            cortex.tenants.admitted(Caller("ann", org="unheard-of"))


def test_a_caller_chooses_a_project_they_may_read(cortex: Cortex, other: str) -> None:
    ann = member(cortex, "ann", "read", project="other")
    assert ann.project == other
    with acting_as(ann):
        assert cortex.project.id == other
        assert [hit.memory.content for hit in cortex.memories.recall().results] == ["The other project rounds up"]
    cortex.tenants.restrict(other)
    told = []
    for wanted in (other, "other", "nothing", "f" * 12):
        with pytest.raises(ProjectNotFound) as caught:
            cortex.tenants.admitted(Caller("ann"), wanted)
        told.append(str(caught.value).replace(wanted, "X"))
    assert len(set(told)) == 1


def test_a_caller_without_a_project_is_told_to_choose_one(cortex: Cortex) -> None:
    cortex.tenants.restrict(cortex.project.id)
    ann = member(cortex, "ann", "admin")
    with acting_as(ann):
        for name in ("memories", "graph", "prompts", "templates", "project", "grounding"):
            with pytest.raises(ProjectNotFound, match="in no project"):
                getattr(cortex, name)
        assert cortex.contexts.projects() == []


def test_a_new_project_is_the_callers_organisations(cortex: Cortex, tmp_path: Path) -> None:
    folder = tmp_path / "fresh"
    folder.mkdir()
    (folder / "README.md").write_text("# Fresh\n\nRounds down.\n")
    cortex.tenants.create("rivals")
    cortex.tenants.join("rob", "write", org="rivals")
    reader = member(cortex, "rea", "read")
    with acting_as(reader), pytest.raises(AccessDenied):
        cortex.contexts.initialize(folder)
    assert [one.name for one in cortex.contexts.projects()] == [cortex.project.name]
    rob = cortex.tenants.admitted(Caller("rob", org="rivals"))
    with acting_as(rob):
        made = cortex.contexts.initialize(folder).project.id
    assert [one.id for one in cortex.tenants.projects("rivals")] == [made]
    assert made in cortex.tenants.rights("rob", org="rivals").write
    with acting_as(member(cortex, "ann", "admin")), pytest.raises(AccessDenied):
        cortex.contexts.initialize(folder)


def test_over_http_the_header_chooses_and_changes_hold_from_the_next_request(
    home: Path, project: Path, tmp_path: Path
) -> None:
    (tmp_path / "other").mkdir()
    with opened(home, tmp_path / "other") as made:
        other = made.project.id
        made.memories.capture("The other project rounds up")
    with (
        opened(home, project, auth="tokens") as cortex,
        TestClient(build_app(cortex), base_url="http://127.0.0.1") as client,
    ):
        token = cortex.access.create("ann", scopes=["read"]).token
        settled = cortex.access.create("ann", scopes=["read"], project="other").token

        def status(token: str = token, **headers: str) -> tuple[int, Any]:
            answer = client.get("/status", headers={"Authorization": f"Bearer {token}", **headers})
            return answer.status_code, answer.json()

        assert status()[1]["project_id"] == cortex.project.id
        for chosen in (other, "other"):
            assert status(**{"Cortex-Project": chosen})[1]["project_id"] == other
        assert status(settled)[1]["project_id"] == other
        assert status(settled, **{"Cortex-Project": cortex.project.id})[1]["project_id"] == cortex.project.id
        unknown = status(**{"Cortex-Project": "nothing"})
        assert (unknown[0], unknown[1]["error"]["code"]) == (404, "PROJECT_NOT_FOUND")
        cortex.tenants.restrict("other")
        closed = status(**{"Cortex-Project": "other"})
        assert (closed[0], closed[1]["error"]["message"].replace("other", "nothing")) == (
            404,
            unknown[1]["error"]["message"],
        )
        assert status(settled)[0] == 404
        cortex.tenants.leave("ann")
        refused = status()
        assert (refused[0], refused[1]["error"]["code"]) == (403, "ACCESS_DENIED")
        events = [(one.event.user, one.event.outcome) for one in cortex.audit.list(3)]
        assert events == [("ann", "403"), ("ann", "404"), ("ann", "404")]


def test_a_prefix_is_found_however_many_of_others_begin_with_it(home: Path, project: Path, clock: FakeClock) -> None:
    with opened(home, project, clock) as cortex:
        ann, bob = member(cortex, "ann"), member(cortex, "bob")
        with acting_as(bob):
            theirs = []
            for number in range(30):
                theirs.append(cortex.memories.capture(f"Note {number} of bob", domain="user").id)
                clock.repeat_prefix()
        with acting_as(ann):
            own = cortex.memories.capture("What ann keeps", domain="user").id
            assert all(one[:8] == own[:8] for one in theirs)
            assert cortex.memories.get(own[:8]).id == own


def test_search_in_what_may_not_be_read_finds_nothing(cortex: Cortex) -> None:
    note = cortex.memories.capture("The organisation rounds down", domain="org")
    here = cortex.project.id
    bound = Caller("ann", org="default", rights=Rights(frozenset((here,))))
    with acting_as(bound):
        for query in (None, "organisation rounds"):
            page = cortex.memories.recall(query, domain="org")
            assert (page.results, page.total) == ((), 0)
            assert cortex.memories.recall(query, filter="kind:file").total == 0
        with pytest.raises(NotFound):
            cortex.memories.get(note.id)
        assert cortex.memories.status().total_count == 0
        assert cortex.prompts.list().total == 0


def test_what_was_worked_out_holds_only_while_nothing_changes(
    cortex: Cortex, other: str, home: Path, project: Path
) -> None:
    """Through another process's eyes: what one changed, the other sees at once."""
    cortex.tenants.join("ann", "read")
    cortex.tenants.create_group("ops")
    here = cortex.project.id
    with opened(home, project) as seeing:

        def levels(space: str) -> list[str]:
            rights = seeing.tenants.rights("ann")
            return [level for level in LEVELS if space in getattr(rights, level)]

        assert levels(here) == levels(other) == ["read"]
        steps: list[tuple[Any, str, list[str]]] = [
            (lambda: cortex.tenants.join("ann", "write"), here, ["read", "write"]),
            (lambda: cortex.tenants.restrict(other), other, []),
            (lambda: cortex.tenants.grant(other, "admin", group="ops"), other, []),
            (lambda: cortex.tenants.add_to_group("ops", "ann"), other, list(LEVELS)),
            (lambda: cortex.tenants.remove_from_group("ops", "ann"), other, []),
            (lambda: cortex.tenants.grant(other, "read", user="ann"), other, ["read"]),
            (lambda: cortex.tenants.revoke(other, user="ann"), other, []),
            (lambda: cortex.tenants.restrict(other, restricted=False), other, ["read", "write"]),
        ]
        for change, space, expected in steps:
            change()
            assert levels(space) == expected
        cortex.tenants.leave("ann")
        with pytest.raises(AccessDenied):
            seeing.tenants.rights("ann")


def test_a_prompt_that_members_share_begins_with_whose_it_may_be(cortex: Cortex) -> None:
    """A client hands it to the model as the words of whoever asked for it."""
    cortex.prompts.save("release", "Run the release script.", domain="project")
    rights = compute_rights("ann", "acme", "read", {cortex.project.id: False}, [])
    with acting_as(Caller("ann", org="acme", rights=rights)):
        shared = cortex.prompts.run("release").content
    assert shared.startswith("Perhaps not written by the user: ")
    assert shared.endswith("\n\nRun the release script.")
    # Who has the home alone wrote it.
    assert cortex.prompts.run("release").content == "Run the release script."
