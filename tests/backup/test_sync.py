"""Push and pull: what arrives, how little is sent, and what becomes of damage, other keys and other homes."""

from __future__ import annotations

import random
import re
from collections.abc import Callable

import pytest

from cortex_py.core.errors import BackupCorrupt, BackupError, Conflict, NetworkError, WrongKey
from cortex_py.parts.backup.sync.collection import KEY_PATH, CollectionKey
from cortex_py.parts.backup.sync.merge import Name
from cortex_py.parts.backup.sync.sync import Sync

from in_memory import ANY, FAST, SPACE, Machine, MemoryReplica, MemoryTarget

M1, M2 = "1" * 40, "2" * 40


@pytest.fixture
def place() -> MemoryTarget:
    return MemoryTarget()


def _machines(place: MemoryTarget, *names: str) -> list[Machine]:
    return [Machine(name, place) for name in names]


def _heads(place: MemoryTarget) -> list[str]:
    return [name for name in place.objects if name.endswith(".enc")]


def _packs(place: MemoryTarget) -> list[str]:
    return [name for name in place.objects if "/packs/" in name]


def _flipped(data: bytes, at: int) -> bytes:
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


# -- What arrives --------------------------------------------------------------------------------


def test_a_fresh_home_gets_everything_with_its_vectors(place: MemoryTarget) -> None:
    anvil, brook = _machines(place, "anvil", "brook")
    anvil.replica.write("memory", M1, "Größe ✓\n" * 3, vectors=bytes(range(256)))
    anvil.replica.write("entity", "e", "Anna")
    pushed = anvil.push()
    assert (pushed.documents, pushed.gone, pushed.total, pushed.sequence) == (2, 0, 2, 1)
    assert pushed.cloud_path in place.objects
    assert pushed.uploaded_bytes == sum(map(len, place.objects.values())) - len(place.objects[KEY_PATH])
    pulled = brook.pull()
    assert (pulled.added, pulled.changed, pulled.removed, pulled.machines) == (2, 0, 0, ("anvil",))
    assert brook.replica.lines == anvil.replica.lines
    assert brook.replica.held[Name("memory", M1)][0].vectors == bytes(range(256))


def test_a_push_tells_what_was_changed_here_from_what_was_heard(place: MemoryTarget) -> None:
    anvil, brook = _machines(place, "anvil", "brook")
    anvil.replica.write("memory", M1, "first")
    anvil.push()
    brook.pull()
    pushed = brook.push()
    assert (pushed.documents, pushed.changed_here) == (1, 0)
    brook.replica.write("memory", M2, "second")
    anvil.replica.write("memory", M1, "third")
    anvil.push()
    brook.pull()
    pushed = brook.push()
    assert (pushed.documents, pushed.changed_here) == (2, 1)


def test_spaces_do_not_meet(place: MemoryTarget) -> None:
    anvil, brook = _machines(place, "anvil", "brook")
    anvil.replica.write("memory", M1, "of one project")
    anvil.push()
    assert brook.sync.pull(brook.replica, "another").machines == ()
    assert brook.replica.held == {}


def test_of_two_texts_the_later_stays_and_the_other_is_kept_beside_it(place: MemoryTarget) -> None:
    anvil, brook = _machines(place, "anvil", "brook")
    for machine, text in ((anvil, "earlier"), (brook, "later")):
        machine.replica.write("memory", M1, text)
        machine.replica.write("entity", "e", text)
        anvil.clock.advance(seconds=1)
        brook.clock.advance(seconds=1)
    anvil.push()
    brook.push()
    pulled = anvil.pull()
    (memory,) = pulled.conflicts
    assert memory.name == Name("memory", M1)
    assert pulled.overruled == 1
    assert anvil.replica.held[Name("entity", "e")][0].data["content"] == "later"
    assert anvil.replica.held[memory.name][0].data["content"] == "later"
    kept = anvil.replica.held[memory.kept][0].data
    assert (kept["content"], kept["source"], kept["tags"]) == ("earlier", f"conflict:{M1}", ["conflict"])
    anvil.push()
    assert brook.pull().conflicts == ()
    assert brook.replica.lines == anvil.replica.lines


def test_the_same_done_on_two_machines_is_no_conflict(place: MemoryTarget) -> None:
    anvil, brook = _machines(place, "anvil", "brook")
    anvil.replica.write("memory", M1, "same", updated_at=1)
    brook.replica.write("memory", M1, "same", updated_at=2)
    for machine in (anvil, brook, anvil):
        machine.push()
        assert machine.pull().conflicts == ()
    assert anvil.replica.lines == brook.replica.lines
    assert len(anvil.replica.held) == 1


def test_a_clock_that_is_years_ahead_does_not_stop_later_changes(place: MemoryTarget) -> None:
    anvil, brook = _machines(place, "anvil", "brook")
    anvil.clock.advance(days=30 * 365)
    anvil.replica.write("memory", M1, "from the future")
    anvil.push()
    brook.pull()
    brook.replica.write("memory", M1, "after it")
    brook.push()
    assert anvil.pull().changed == 1
    assert anvil.replica.texts == {"after it"}


def test_changes_that_come_in_between_are_seen_and_tried_again(place: MemoryTarget) -> None:
    anvil, brook = _machines(place, "anvil", "brook")
    anvil.replica.write("memory", M1, "pushed")
    anvil.push()

    def once() -> None:
        brook.replica.before_apply = None
        brook.replica.write("memory", M1, "written meanwhile")

    brook.replica.before_apply = once
    assert len(brook.pull().conflicts) == 1
    assert brook.replica.texts == {"pushed", "written meanwhile"}


def test_a_home_that_never_rests_is_left_as_it_is(place: MemoryTarget) -> None:
    anvil, brook = _machines(place, "anvil", "brook")
    anvil.clock.advance(days=1)
    anvil.replica.write("memory", M1, "pushed")
    anvil.push()
    numbers = iter(range(100))
    brook.replica.before_apply = lambda: brook.replica.write("memory", M1, f"{next(numbers)}") and None
    with pytest.raises(Conflict, match="kept changing"):
        brook.pull()
    assert brook.replica.applied == 0
    assert brook.replica.known == {}


def test_packs_put_aside_on_the_disk_are_read_as_well(place: MemoryTarget) -> None:
    anvil, brook = _machines(place, "anvil", "brook")
    draw = random.Random(3)
    for number in range(300):
        anvil.replica.write("memory", f"{number:040x}", draw.randbytes(500).hex())
    anvil.push()
    assert len(_packs(place)) > 3
    brook.sync = Sync(place, "correct horse", parameters=FAST, limits=ANY, spool_bytes=1)
    assert brook.pull().added == 300
    assert brook.replica.lines == anvil.replica.lines


# -- How little is sent --------------------------------------------------------------------------


def _many(machine: Machine, count: int = 3_000) -> random.Random:
    """Documents like small memories: words, and a vector that does not compress."""
    draw = random.Random(7)
    words = [draw.randbytes(3).hex() for _ in range(2_000)]
    for number in range(count):
        text = " ".join(draw.choices(words, k=60))
        machine.replica.write("memory", f"{number:040x}", text, vectors=draw.randbytes(384))
    return draw


@pytest.mark.slow
def test_a_change_of_one_percent_sends_at_most_five(place: MemoryTarget) -> None:
    anvil, brook = _machines(place, "anvil", "brook")
    draw = _many(anvil)
    full = anvil.push().uploaded_bytes
    brook.pull()
    keys = sorted(anvil.replica.held)
    uploads = []
    for round_ in range(40):
        for name in draw.sample(keys, 30):
            anvil.replica.write("memory", name.key, f"round {round_} " * 40, vectors=draw.randbytes(384))
        uploads.append(anvil.push().uploaded_bytes)
        anvil.clock.advance(days=1)
        if round_ == 0:
            pulled = brook.pull()
            assert pulled.changed == 30
            assert pulled.downloaded_bytes <= uploads[0]
    assert max(uploads) <= full * 0.05
    assert sum(uploads[:10]) <= full * 0.3
    status = anvil.sync.status(anvil.replica, SPACE)
    (own,) = status.machines
    # 1,200 changes came to rest in as many places; what they superseded is mostly gone again.
    assert own.stored_bytes <= full * 1.6
    assert own.packs <= 120
    brook.pull()
    assert brook.replica.lines == anvil.replica.lines
    fresh = Machine("fresh", place)
    fresh.pull()
    assert fresh.replica.lines == anvil.replica.lines


def test_nothing_changed_sends_and_reads_nothing(place: MemoryTarget) -> None:
    anvil, brook = _machines(place, "anvil", "brook")
    _many(anvil, 50)
    anvil.push()
    brook.pull()
    brook.push()
    anvil.pull()
    before = dict(place.objects)
    place.read.clear()
    pushed = anvil.push()
    assert (pushed.uploaded_bytes, pushed.packs, pushed.documents, pushed.total) == (0, 0, 0, 50)
    assert brook.pull().downloaded_bytes == 0
    assert place.objects == before
    assert not any("/packs/" in name for name in place.read)


def test_what_arrived_before_a_fault_is_not_sent_again_and_not_seen(place: MemoryTarget) -> None:
    anvil, brook = _machines(place, "anvil", "brook")
    _many(anvil, 1_000)
    brook.push()
    anvil.target.fail_in = 8
    with pytest.raises(NetworkError):
        anvil.push()
    arrived = set(_packs(place))
    assert len(arrived) >= 2
    assert brook.pull().machines == ()
    # Changes before the push is taken up again shift nothing that has arrived.
    anvil.replica.write("memory", f"{0:040x}", "changed in between")
    anvil.replica.write("memory", f"{0:039x}f", "new in between")
    written: list[str] = []
    put = place.put
    place.put = lambda name, data: (written.append(name), put(name, data))[1]  # type: ignore[method-assign]
    anvil.push()
    assert not arrived & set(written)
    brook.pull()
    assert brook.replica.lines == anvil.replica.lines


# -- Restore points and clearing up --------------------------------------------------------------


def test_seven_days_are_kept_and_packs_go_a_week_after_the_last_of_them(place: MemoryTarget) -> None:
    anvil, brook = _machines(place, "anvil", "brook")
    brook.replica.write("memory", M2, "brook's")
    brook.push()
    others = set(_packs(place))
    anvil.replica.write("memory", M1, "day 0")
    anvil.push()
    first = set(_packs(place)) - others
    for day in range(1, 30):
        anvil.clock.advance(days=1)
        anvil.replica.write("memory", M1, f"day {day}")
        pushed = anvil.push()
        assert pushed.cleared
        assert first <= set(place.objects) or day >= 7
    heads = [name for name in _heads(place) if name.split("_")[0] == pushed.cloud_path.split("_")[0]]
    assert [name[-12:-4] for name in sorted(heads)] == [f"202601{day}" for day in range(25, 32)]
    assert not first & set(place.objects)
    assert others <= set(place.objects)
    assert len(_packs(place)) <= 20
    fresh = Machine("fresh", place)
    fresh.pull()
    assert fresh.replica.texts == {"day 29", "brook's"}


def test_every_restore_point_can_be_read_however_rarely_something_is_pushed(place: MemoryTarget) -> None:
    (anvil,) = _machines(place, "anvil")
    for push in range(12):
        anvil.replica.write("memory", M1, f"push {push}")
        anvil.push()
        anvil.clock.advance(days=10)
    heads = sorted(_heads(place))
    assert len(heads) == 7
    texts = []
    for head in heads:
        others = {name: place.objects.pop(name) for name in heads if name != head}
        fresh = Machine("fresh", place)
        fresh.pull()
        texts += sorted(fresh.replica.texts)
        place.objects.update(others)
    assert texts == [f"push {push}" for push in range(5, 12)]
    assert len(_packs(place)) < 12


def test_a_reader_of_the_head_before_still_finds_its_packs(place: MemoryTarget) -> None:
    (anvil,) = _machines(place, "anvil")
    anvil.replica.write("memory", M1, "push 0")
    anvil.push()
    (first,) = _packs(place)
    for push in range(1, 7):
        anvil.clock.advance(minutes=1)
        anvil.replica.write("memory", M1, f"push {push}")
        anvil.push()
    assert first in place.objects
    for _ in range(2):
        anvil.clock.advance(days=8)
        anvil.replica.write("memory", M1, "a week later")
        anvil.replica.write("memory", M2, f"{anvil.clock.now()}")
        anvil.push()
    assert first not in place.objects


def test_a_clock_put_back_does_not_hide_the_latest_push(place: MemoryTarget) -> None:
    anvil, brook = _machines(place, "anvil", "brook")
    anvil.replica.write("memory", M1, "first")
    anvil.push()
    anvil.clock.advance(days=-400)
    anvil.replica.write("memory", M1, "second")
    anvil.push()
    brook.pull()
    assert brook.replica.texts == {"second"}


# -- Keys ----------------------------------------------------------------------------------------


def test_of_two_who_push_first_one_makes_the_key(place: MemoryTarget) -> None:
    anvil, brook = _machines(place, "anvil", "brook")
    anvil.replica.write("memory", M1, "anvil's")
    brook.replica.write("memory", M2, "brook's")
    create = place.create

    def outrun(name: str, data: bytes) -> bool:
        place.create = create  # type: ignore[method-assign]
        brook.push()
        return create(name, data)

    place.create = outrun  # type: ignore[method-assign]
    anvil.push()
    brook.pull()
    anvil.pull()
    assert anvil.replica.texts == brook.replica.texts == {"anvil's", "brook's"}


def test_a_new_passphrase_opens_what_was_there(place: MemoryTarget) -> None:
    (anvil,) = _machines(place, "anvil")
    anvil.replica.write("memory", M1, "text")
    anvil.push()
    before = dict(place.objects)
    with pytest.raises(WrongKey):
        CollectionKey(place, "wrong", parameters=FAST, limits=ANY).change_passphrase("new")
    assert place.objects == before
    CollectionKey(place, "correct horse", parameters=FAST, limits=ANY).change_passphrase("new")
    assert {name for name in before if place.objects[name] != before[name]} == {KEY_PATH}
    with pytest.raises(WrongKey):
        anvil.push()
    brook = Machine("brook", place, "new")
    brook.pull()
    assert brook.replica.texts == {"text"}


def test_a_key_that_is_missing_is_not_made_anew(place: MemoryTarget) -> None:
    (anvil,) = _machines(place, "anvil")
    anvil.push()
    del place.objects[KEY_PATH]
    before = dict(place.objects)
    for exchange in (anvil.push, anvil.pull):
        with pytest.raises(BackupCorrupt, match=r"key\.vault, is missing"):
            exchange()
    assert place.objects == before


def test_there_is_nothing_to_pull_where_nothing_was_pushed(place: MemoryTarget) -> None:
    (anvil,) = _machines(place, "anvil")
    with pytest.raises(BackupError, match="holds no backup"):
        anvil.pull()
    anvil.replica.write("memory", M1, "text")
    status = anvil.sync.status(anvil.replica, SPACE)
    assert (status.exists, status.pending) == (False, 1)


def test_a_place_that_was_emptied_gets_everything_again(place: MemoryTarget) -> None:
    anvil, brook = _machines(place, "anvil", "brook")
    anvil.replica.write("memory", M1, "text")
    anvil.push()
    brook.pull()
    place.objects.clear()
    anvil.push()
    anvil.replica.write("memory", M2, "more")
    anvil.push()
    assert brook.pull().machines == ("anvil",)
    assert brook.replica.texts == {"text", "more"}


def test_names_and_objects_tell_nothing(place: MemoryTarget) -> None:
    (anvil,) = _machines(place, "anvil")
    anvil.replica.write("memory", M1, "a secret text " * 50)
    anvil.push()
    for name, data in place.objects.items():
        assert re.fullmatch(
            r"cortex-backups/(key\.vault|packs/([0-9a-f]{2})/\2[0-9a-f]{62}|[0-9a-f]{24}_20260102\.enc)", name
        )
        assert not any(word in data for word in (b"secret", b"anvil", SPACE.encode(), M1.encode()))
        assert not any(word in name for word in ("anvil", SPACE, M1))


# -- Damage --------------------------------------------------------------------------------------


def _three(place: MemoryTarget) -> tuple[Machine, Machine, list[str]]:
    """Two machines that have pushed, and the objects of the first."""
    anvil, brook = _machines(place, "anvil", "brook")
    anvil.replica.write("memory", M1, "anvil's", vectors=b"\1" * 300)
    anvil.push()
    of_anvil = [name for name in place.objects if name != KEY_PATH]
    brook.replica.write("memory", M2, "brook's")
    brook.push()
    return anvil, brook, of_anvil


def test_a_bit_flipped_anywhere_is_seen(place: MemoryTarget) -> None:
    _, _, of_anvil = _three(place)
    whole = dict(place.objects)
    for name in of_anvil:
        data = whole[name]
        for at in {0, 1, 20, 40, len(data) // 2, len(data) - 1, *range(0, len(data), 509)}:
            place.objects[name] = _flipped(data, at)
            cedar = Machine("cedar", place)
            pulled = cedar.pull()
            assert cedar.replica.texts == {"brook's"}, (name, at)
            assert pulled.machines == ("brook",)
            (fault,) = pulled.faults
            assert isinstance(fault.error, BackupCorrupt)
            assert fault.day == "20260102"
            assert (fault.machine == "anvil") == ("/packs/" in name)
            place.objects[name] = data
    for at in range(0, len(whole[KEY_PATH]), 97):
        place.objects[KEY_PATH] = _flipped(whole[KEY_PATH], at)
        cedar = Machine("cedar", place)
        with pytest.raises(BackupError):
            cedar.pull()
        assert cedar.replica.held == {}


@pytest.mark.parametrize("spoil", [lambda data: None, lambda data: data[:-1], lambda data: data + b"\0", lambda _: b""])
def test_what_is_missing_cut_or_longer_keeps_only_its_machine_out(
    place: MemoryTarget, spoil: Callable[[bytes], bytes | None]
) -> None:
    _, _, of_anvil = _three(place)
    pack = next(name for name in of_anvil if "/packs/" in name)
    spoiled = spoil(place.objects.pop(pack))
    if spoiled is not None:
        place.objects[pack] = spoiled
    cedar = Machine("cedar", place)
    pulled = cedar.pull()
    assert (pulled.machines, [fault.machine for fault in pulled.faults]) == (("brook",), ["anvil"])
    assert "Pack 1 of 1 of the backup of anvil" in str(pulled.faults[0].error)


def test_where_nothing_can_be_read_it_is_an_error(place: MemoryTarget) -> None:
    anvil, brook = _machines(place, "anvil", "brook")
    anvil.replica.write("memory", M1, "text")
    path = anvil.push().cloud_path
    place.objects[path] = _flipped(place.objects[path], 60)
    with pytest.raises(BackupCorrupt, match=re.escape(path)):
        brook.pull()
    assert brook.replica.facts == {}


def test_a_damaged_head_leaves_the_restore_point_before_it(place: MemoryTarget) -> None:
    anvil, brook = _machines(place, "anvil", "brook")
    anvil.replica.write("memory", M1, "yesterday")
    anvil.push()
    anvil.clock.advance(days=1)
    anvil.replica.write("memory", M1, "today")
    path = anvil.push().cloud_path
    place.objects[path] = b"damaged"
    pulled = brook.pull()
    assert [fault.day for fault in pulled.faults] == ["20260103"]
    assert brook.replica.texts == {"yesterday"}
    # The machine's next push mends it, though nothing changed.
    anvil.push()
    assert brook.pull().faults == ()
    assert brook.replica.texts == {"today"}


def test_a_vanished_pack_is_brought_again_and_a_damaged_one_when_all_is(place: MemoryTarget) -> None:
    anvil, _, of_anvil = _three(place)
    pack = next(name for name in of_anvil if "/packs/" in name)
    del place.objects[pack]
    anvil.push()
    assert not Machine("cedar", place).pull().faults
    for name in _packs(place):
        place.objects[name] = _flipped(place.objects[name], 50)
    anvil.push(whole=True)
    cedar = Machine("cedar", place)
    assert [fault.machine for fault in cedar.pull().faults] == ["brook"]
    assert cedar.replica.texts == {"anvil's"}


def test_objects_exchanged_for_each_other_are_seen(place: MemoryTarget) -> None:
    _, _, of_anvil = _three(place)
    head = next(name for name in of_anvil if name.endswith(".enc"))
    other = next(name for name in _heads(place) if name != head)
    for renamed in (other, head.replace("20260102", "20260201")):
        objects = dict(place.objects)
        place.objects[renamed] = objects[head]
        cedar = Machine("cedar", place)
        assert len(cedar.pull().faults) == 1
        place.objects = objects
    mine = next(name for name in of_anvil if "/packs/" in name)
    theirs = next(name for name in _packs(place) if name != mine)
    place.objects[mine] = place.objects[theirs]
    assert [fault.machine for fault in Machine("cedar", place).pull().faults] == ["anvil"]


def test_an_older_state_shown_again_is_told_and_not_taken(place: MemoryTarget) -> None:
    anvil, brook = _machines(place, "anvil", "brook")
    anvil.replica.write("memory", M1, "old")
    anvil.push()
    old = dict(place.objects)
    anvil.replica.write("memory", M1, "new")
    anvil.push()
    brook.pull()
    place.objects = old
    pulled = brook.pull()
    assert (pulled.rolled_back, pulled.machines) == (("anvil",), ())
    assert brook.replica.texts == {"new"}
    # The machine itself brings its state again when it pushes next.
    anvil.push()
    assert brook.pull().rolled_back == ()


# -- Homes ---------------------------------------------------------------------------------------


def test_a_new_home_under_an_old_name_takes_up_what_the_old_one_pushed(place: MemoryTarget) -> None:
    (anvil,) = _machines(place, "anvil")
    anvil.replica.write("memory", M1, "from the old home")
    anvil.push()
    anvil.replica = MemoryReplica("anvil", anvil.clock)
    anvil.replica.write("memory", M2, "from the new home")
    pushed = anvil.push()
    assert anvil.replica.texts == {"from the old home", "from the new home"}
    assert pushed.documents == 1
    fresh = Machine("fresh", place)
    fresh.pull()
    assert fresh.replica.texts == anvil.replica.texts


def test_a_new_home_does_not_replace_a_head_that_is_not_listed_yet(place: MemoryTarget) -> None:
    (anvil,) = _machines(place, "anvil")
    anvil.replica.write("memory", M1, "from the old home")
    before = list(place.list(""))
    anvil.push()
    anvil.replica = MemoryReplica("anvil", anvil.clock)
    anvil.target.old_list = before
    anvil.push()
    assert anvil.replica.texts == {"from the old home"}


def test_a_home_from_a_copy_gives_no_count_twice(place: MemoryTarget) -> None:
    """What was written after the copy was made and what is written after it came back are rivals: both stay."""
    anvil, brook = _machines(place, "anvil", "brook")
    anvil.replica.write("memory", M1, "when the copy was made")
    anvil.push()
    copy = anvil.replica.copied()
    for text in ("soon after the copy", "after the copy"):
        anvil.replica.write("memory", M1, text)
        anvil.push()
    brook.pull()
    anvil.replica = copy
    anvil.replica.write("memory", M1, "one more")
    anvil.replica.write("memory", M1, "after the copy came back")
    anvil.push()
    assert anvil.replica.texts == {"after the copy", "after the copy came back"}
    brook.pull()
    assert brook.replica.texts == anvil.replica.texts


def test_a_copy_of_a_home_under_another_name_goes_its_own_way(place: MemoryTarget) -> None:
    """Also where the first had been restored before, and was in the midst of a push."""
    anvil, brook = _machines(place, "anvil", "brook")
    _many(anvil, 200)
    anvil.push()
    anvil.replica = MemoryReplica("anvil", anvil.clock)
    anvil.pull()
    _many(anvil, 400)
    anvil.target.fail_in = 6
    with pytest.raises(NetworkError):
        anvil.push()
    brook.replica = anvil.replica.copied()
    brook.replica.machine = "brook"
    for machine, text in ((anvil, "anvil's"), (brook, "brook's first"), (brook, "brook's")):
        machine.replica.write("memory", M1, text)
        machine.push()
    fresh = Machine("fresh", place)
    assert not fresh.pull().faults
    assert {"anvil's", "brook's"} <= fresh.replica.texts


def test_status_tells_what_is_to_be_done(place: MemoryTarget) -> None:
    anvil, brook = _machines(place, "anvil", "brook")
    anvil.replica.write("memory", M1, "text")
    anvil.push()
    brook.replica.write("memory", M2, "text")
    before = dict(place.objects)
    status = brook.sync.status(brook.replica, SPACE)
    (of_anvil,) = status.machines
    assert (status.exists, status.pending, of_anvil.machine, of_anvil.own, of_anvil.merged) == (
        True,
        1,
        "anvil",
        False,
        False,
    )
    assert of_anvil.packs == 1
    assert place.objects == before
    brook.pull()
    brook.push()
    status = brook.sync.status(brook.replica, SPACE)
    assert status.pending == 0
    assert [(one.machine, one.own, one.merged) for one in status.machines] == [
        ("anvil", False, True),
        ("brook", True, True),
    ]
