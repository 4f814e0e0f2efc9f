"""Requests: immutable, and equal digests exactly for equal requests."""

from __future__ import annotations

import string
from collections import OrderedDict
from dataclasses import FrozenInstanceError, fields
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rung.core.domain.errors import ConfigError
from rung.core.domain.request import Request

KEYS = st.text(max_size=4)
PLAIN = st.recursive(
    st.none() | st.text(max_size=6) | st.integers(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=3,
)
TABLES = st.dictionaries(KEYS, PLAIN, max_size=3)
LIMITS = st.none() | st.integers(1, 3)
SHORT = st.sampled_from(["", "a", "b", "\ud800"])
REQUESTS = st.builds(
    Request,
    prompt=SHORT,
    messages=st.lists(TABLES, max_size=2).map(tuple),
    model=SHORT,
    agent=SHORT,
    max_tokens=LIMITS,
    max_turns=LIMITS,
    params=TABLES,
    recovery=SHORT,
    idempotent=st.booleans(),
)


def turned(value: Any) -> Any:
    """The same value with the keys of every table in the opposite order."""
    if isinstance(value, dict):
        return {key: turned(value[key]) for key in reversed(list(value))}
    return [turned(item) for item in value] if isinstance(value, list) else value


@given(REQUESTS, REQUESTS)
def test_digests_are_equal_exactly_for_equal_requests(one: Request, other: Request) -> None:
    """Two requests have the same digest exactly if all but their being idempotent is equal."""
    same = one.replace(idempotent=False) == other.replace(idempotent=False)
    assert (one.digest() == other.digest()) is same


@given(REQUESTS, st.sampled_from(["prompt", "model", "agent", "recovery"]), st.text(min_size=2, max_size=3))
def test_a_changed_field_changes_the_digest(request_: Request, name: str, text: str) -> None:
    """A request in which one field was changed has another digest, and says which field that is."""
    change: Any = {name: text}
    other = request_.replace(**change)
    assert other.digest() != request_.digest()
    assert request_.changed(other) == (name,)


@given(REQUESTS)
def test_the_order_of_keys_does_not_matter(request_: Request) -> None:
    """Tables that differ only in the order of their keys, at any depth, make the same digest."""
    other = request_.replace(
        params=turned(dict(request_.params)), messages=tuple(turned(dict(message)) for message in request_.messages)
    )
    assert other.digest() == request_.digest()


def test_digest_looks() -> None:
    """A digest is sixteen hex digits, whatever the order in which the fields were given."""
    digest = Request(prompt="x", params={"a": 1}).digest()
    assert len(digest) == 16
    assert set(digest) <= set(string.hexdigits.lower())
    assert digest == Request(params={"a": 1}, prompt="x").digest()


def test_any_mapping_will_do() -> None:
    """A mapping that is no dict makes the same digest and size as one that is."""
    table = {"role": "user", "content": "x"}
    requests = [Request(messages=(kind(table),), params=kind(table)) for kind in (dict, OrderedDict, MappingProxyType)]
    assert len({request_.digest() for request_ in requests}) == 1
    assert len({request_.size() for request_ in requests}) == 1


def test_other_objects_are_seen_by_their_repr() -> None:
    """What JSON has no form for takes part in the digest, too."""
    assert Request(params={"a": b"x"}).digest() != Request(params={"a": b"y"}).digest()
    assert Request(params={"a": 1 + 2j}).digest() == Request(params={"a": 1 + 2j}).digest()


@given(st.text(max_size=50), st.text(max_size=50))
def test_size_grows_with_what_is_said(one: str, more: str) -> None:
    """A longer prompt or a longer message makes a larger request."""
    assert Request(prompt=one + more).size() == Request(prompt=one).size() + len(more)
    short, long = (Request(messages=({"content": text},)).size() for text in (one, one + more))
    assert long >= short + len(more)


def test_immutable() -> None:
    """A request cannot be changed in place, and `but` leaves it as it was."""
    request_ = Request(prompt="x")
    with pytest.raises(FrozenInstanceError):
        request_.prompt = "y"  # type: ignore[misc]  # that is the point
    assert request_.replace(prompt="y") == Request(prompt="y")
    assert request_ == Request(prompt="x")


def test_messages_become_a_tuple() -> None:
    """Messages given as a list are kept as a tuple, so that nobody adds to them unseen."""
    messages: Any = [{"content": "x"}]
    request_ = Request(messages=messages)
    messages.append({"content": "y"})
    assert request_.messages == ({"content": "x"},)


def test_changed_names_every_field() -> None:
    """Every field that differs is named, in the order of the fields."""
    other = Request(
        prompt="p",
        messages=({"a": 1},),
        model="m",
        agent="a",
        max_tokens=1,
        max_turns=1,
        params={"a": 1},
        recovery="r",
        idempotent=True,
        task="t",
    )
    assert Request().changed(other) == tuple(f.name for f in fields(Request))
    assert other.changed(other) == ()


@pytest.mark.parametrize("name", ["max_tokens", "max_turns"])
@pytest.mark.parametrize("value", [0, -1])
def test_a_limit_is_at_least_one(name: str, value: int) -> None:
    """A limit below one is refused at once, with its name and value."""
    with pytest.raises(ConfigError) as raised:
        Request(**{name: value})  # type: ignore[arg-type]  # a table of names
    assert (raised.value.key, raised.value.value) == (name, value)


def test_a_body_kept_elsewhere_says_how_much_room_it_takes() -> None:
    """Compaction can be proved on a request that only stands for its body."""
    assert Request(params={"room": 1000}).size() == 1000
    assert Request(prompt="four", params={"room": "none"}).size() == len("four") + len("[]")
