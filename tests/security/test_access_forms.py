"""The pure parts of access: how tokens, events and scopes are spelled, chains that show any change, full buckets."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases import each
from cortex_py.core.errors import InvalidInput, RateLimited
from cortex_py.core.security.callers import Caller, acting_as, check_name, current_caller
from cortex_py.core.security.rate_limit import TokenBuckets
from cortex_py.core.security.rights import check_scopes, parse_scopes
from cortex_py.team.access.audit import (
    BEGINNING,
    AuditEvent,
    BrokenLink,
    ChainHead,
    ChainLink,
    decode_event,
    encode_event,
    find_broken_link,
    link_hash,
    seal_head,
)
from cortex_py.team.access.service import encode_token as token_of
from cortex_py.team.access.service import hash_token, is_token, new_token

KEY = b"k" * 32
TEXT = st.text(max_size=20)
EVENTS = st.builds(
    AuditEvent,
    at=st.datetimes(datetime(1990, 1, 1), datetime(2090, 1, 1)).map(lambda moment: moment.replace(tzinfo=UTC)),
    user=st.none() | TEXT,
    agent=st.none() | TEXT,
    via=TEXT,
    action=TEXT,
    outcome=TEXT,
    project=st.none() | TEXT,
    ids=st.lists(TEXT, max_size=3).map(tuple),
)


def _chain(events: list[AuditEvent], key: bytes = KEY) -> tuple[list[ChainLink], ChainHead]:
    links, before = [], BEGINNING
    for number, event in enumerate(events, 1):
        text = encode_event(event)
        before = link_hash(key, before, number, text)
        links.append(ChainLink(number, text, before))
    return links, ChainHead(len(links), before, seal_head(key, len(links), before)) if links else ChainHead(0, "", "")


@given(st.binary(min_size=32, max_size=32))
def test_a_token_has_one_spelling(secret: bytes) -> None:
    token = token_of(secret)
    assert is_token(token)
    assert len(hash_token(token)) == 64
    for other in (token[:-1], token + "=", token + "A", token.swapcase(), " " + token, token[4:]):
        assert not is_token(other)
    # The last sign carries two bits that count for nothing; only one way to write them is taken.
    assert sum(is_token(token[:-1] + last) for last in "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-_") <= 16


@given(st.text())
def test_any_text_is_no_token(text: str) -> None:
    assert not is_token(text)


def test_tokens_differ() -> None:
    assert len({new_token() for _ in range(100)}) == 100


@given(EVENTS)
def test_an_event_comes_back(event: AuditEvent) -> None:
    assert decode_event(encode_event(event)) == event


@given(EVENTS, EVENTS)
def test_two_events_have_two_texts(one: AuditEvent, other: AuditEvent) -> None:
    assert (encode_event(one) == encode_event(other)) == (one == other)


@given(st.lists(EVENTS, min_size=3, max_size=6), st.data())
def test_every_change_of_a_chain_is_seen_where_it_is(events: list[AuditEvent], data: st.DataObject) -> None:
    links, head = _chain(events)
    assert find_broken_link(KEY, links, head) is None

    def seen(*changed: ChainLink) -> BrokenLink:
        found = find_broken_link(KEY, changed, head)
        assert found is not None
        return found

    place = data.draw(st.integers(0, len(links) - 1))
    before, one, after = links[:place], links[place], links[place + 1 :]
    forged = encode_event(AuditEvent(events[place].at, "mallory", None, "x", "y", "z"))
    edited = seen(*before, ChainLink(one.number, forged, one.hash), *after)
    assert (edited.at, edited.reason[:14]) == (place + 1, "it was changed")
    assert seen(*before, *after).at == place + 1
    assert seen(*before).at == place + 1
    if place:
        # Numbers as they should be, contents exchanged.
        other = before[-1]
        swapped = (ChainLink(place, one.text, one.hash), ChainLink(place + 1, other.text, other.hash))
        assert seen(*before[:-1], *swapped, *after).at == place


@given(st.lists(EVENTS, min_size=1, max_size=4))
def test_without_the_key_no_chain_can_be_made(events: list[AuditEvent]) -> None:
    links, head = _chain(events, b"another key")
    assert find_broken_link(KEY, links, head) is not None
    own, own_head = _chain(events)
    more = ChainLink(len(own) + 1, own[0].text, own[0].hash)
    assert find_broken_link(KEY, [*own, more], own_head) == (len(own) + 1, "it was added after the end")
    sealed_for_less = ChainHead(len(own) - 1, own_head.hash, own_head.seal)
    for wrong in (ChainHead(0, "", ""), sealed_for_less, None):
        assert find_broken_link(KEY, own, wrong) is not None


@each("scopes", [[], ["root"], ["tool:"], ["tool:a b"], ["read "], ["READ"]])
def test_what_is_no_scope_is_refused(scopes: list[str]) -> None:
    with pytest.raises(InvalidInput):
        check_scopes(scopes)


def test_foreign_scopes_of_an_issuer_mean_nothing() -> None:
    assert parse_scopes("openid read profile tool:subcog_get admin2") == {"read", "tool:subcog_get"}


@each("name", ["", " ", "a\nb", " a", "a\x00", "x" * 201])
def test_what_is_no_name_is_refused(name: str) -> None:
    with pytest.raises(InvalidInput):
        check_name(name, "subject")


def test_a_bucket_lets_through_what_it_holds_and_fills_again() -> None:
    now = [0.0]
    buckets = TokenBuckets(6, lambda: now[0])
    for _ in range(6):
        buckets.take("ann")
    with pytest.raises(RateLimited) as caught:
        buckets.take("ann")
    assert caught.value.retry_after == pytest.approx(10.0)
    buckets.take("bob")
    now[0] += 10.0
    buckets.take("ann")
    with pytest.raises(RateLimited):
        buckets.take("ann")
    unlimited = TokenBuckets(0)
    for _ in range(100):
        unlimited.take("ann")


def test_a_caller_is_bound_only_inside() -> None:
    outer, inner = Caller("ann"), Caller("bob")
    with acting_as(outer):
        with acting_as(inner):
            assert current_caller() is inner
        assert current_caller() is outer
    assert current_caller() is None
