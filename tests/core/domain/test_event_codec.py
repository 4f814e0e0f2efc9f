"""JSON codec of events: lossless round trips."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from enum import Enum
from math import inf
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from rung import schemas
from rung.core.domain import events as ev
from rung.core.domain.errors import ConfigError
from rung.core.domain.event_codec import DECISIONS, EVENTS, from_json, json_name, to_json
from rung.core.domain.failures import Evidence, Failure, Kind
from rung.core.domain.request import Request

VALIDATOR = Draft202012Validator(json.loads(schemas.text("event")))
ANYTHING = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(max_size=8)
    | st.binary(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.text(max_size=4) | st.sampled_from(["$tuple", "$items", "$x"]), inner, max_size=3)
        | st.dictionaries(st.integers(), inner, max_size=3)
    ),
    max_leaves=8,
)
SIMPLE: dict[Any, st.SearchStrategy[Any]] = {
    Any: ANYTHING,
    type(None): st.none(),
    str: st.text(max_size=20),
    int: st.integers(1, 10**9),  # limits of a request are at least 1
    bool: st.booleans(),
    float: st.floats(allow_nan=False),
}


def values(hint: Any) -> st.SearchStrategy[Any]:
    """Values of a type, read off its hint: a new event or field is tested without a word here."""
    if hint in SIMPLE:
        return SIMPLE[hint]
    origin, inner = get_origin(hint), get_args(hint)
    if origin is UnionType or (inner and origin not in (tuple, Mapping, Sequence)):
        return st.one_of(*map(values, inner))
    if origin is Sequence or (origin is tuple and inner[-1] is Ellipsis):
        return st.lists(values(inner[0]), max_size=3).map(tuple)
    if origin is tuple:
        return st.tuples(*map(values, inner))
    if origin is Mapping:
        return st.dictionaries(st.text(max_size=8), values(inner[1]), max_size=3)
    return st.sampled_from(list(hint)) if issubclass(hint, Enum) else records(hint)


def fields_of(cls: Any) -> tuple[str, ...]:
    return tuple(f.name for f in fields(cls) if f.init) if is_dataclass(cls) else cls._fields


def records(cls: Any) -> st.SearchStrategy[Any]:
    hints = get_type_hints(cls, localns={"Failure": Failure, "Request": Request, "Mapping": Mapping})
    return st.builds(cls, **{name: values(hints[name]) for name in fields_of(cls)})


ANY_EVENT = st.one_of(*(records(cls) for cls in get_args(ev.Event)))


@given(ANY_EVENT)
def test_round_trip(event: ev.Event) -> None:
    """Every event comes back from JSON text equal to what it was, and of the same class."""
    text = json.dumps(to_json(event), allow_nan=False)
    again = from_json(json.loads(text))
    assert again == event
    assert type(again) is type(event)


@given(ANY_EVENT)
@example(ev.Decided(at=0.0, decision=ev.Repeat(rung=1, wait=0.0, reason="", until=inf)))
def test_schema_holds(event: ev.Event) -> None:
    """Every event as JSON fulfils the published schema."""
    VALIDATOR.validate(json.loads(json.dumps(to_json(event))))


@given(records(Request), st.sampled_from([object(), {1, 2}, Kind.TIMEOUT, 3 + 4j, Evidence()]))
def test_digest_survives(request: Request, thing: object) -> None:
    """A request that was written and read has the same digest, even with objects JSON knows nothing of."""
    try:
        changed = ev.Changed(1.0, request.replace(params={"thing": thing, "all": [thing]}), "", (), "")
        digest = changed.request.digest()
    except TypeError:  # a table with keys that cannot be sorted has no digest at all
        return
    again = from_json(json.loads(json.dumps(to_json(changed))))
    assert isinstance(again, ev.Changed)
    assert again.request.digest() == digest


def test_nested_parts_keep_their_types() -> None:
    """Enums, tuples and nested records come back as themselves, not as texts, lists and tables."""
    failure = Failure(
        kind=Kind.TIMEOUT, retryable=True, rule="x", evidence=Evidence(missing=("a",), finding=Kind.TIMEOUT)
    )
    again = from_json(to_json(ev.AttemptFailed(1.0, failure, 2.0, 0.0, may_retry=True)))
    assert isinstance(again, ev.AttemptFailed)
    assert type(again.failure) is Failure
    assert again.failure.kind is Kind.TIMEOUT
    assert again.failure.evidence.finding is Kind.TIMEOUT
    assert again.failure.evidence.missing == ("a",)
    asked = ev.Ask(3, "?", (ev.Option("stop", "Stop"),), None, "", "", "why", ((1, "spent"),))
    decided = from_json(to_json(ev.Decided(1.0, asked)))
    assert isinstance(decided, ev.Decided)
    assert type(decided.decision) is ev.Ask
    assert type(decided.decision.options[0]) is ev.Option


def test_head_of_an_event() -> None:
    """An event as JSON begins with its version, its snake_case name and its time."""
    table = to_json(ev.StepCompleted(5.0, "built"))
    assert table == {"v": 1, "name": "step_completed", "at": 5.0, "step": "built"}
    assert list(table)[:3] == ["v", "name", "at"]


def test_names_do_not_collide() -> None:
    """No event or decision has a field that its own `v` or `name` would hide."""
    for cls in (*get_args(ev.Event), *get_args(ev.Decision)):
        assert {"v", "name"}.isdisjoint(cls._fields)
    assert len(EVENTS) == len(get_args(ev.Event))
    assert len(DECISIONS) == len(get_args(ev.Decision))
    assert json_name(ev.HandOver) == "hand_over"


def test_older_and_newer_writers() -> None:
    """A field that is not there takes its default, and one that is not known is passed over."""
    table = to_json(
        ev.AttemptFailed(1.0, Failure(kind=Kind.UNKNOWN, retryable=False, rule="x"), 0.0, 0.0, may_retry=True)
    )
    del table["made"]
    table["colour"] = "blue"
    again = from_json(table)
    assert isinstance(again, ev.AttemptFailed)
    assert again.made is True


@pytest.mark.parametrize(
    ("table", "key"),
    [
        ({"v": 2, "name": "closed"}, "v"),
        ({"name": "closed"}, "v"),
        ({"v": 1, "name": "opend"}, "name"),
        ({"v": 1, "name": ["closed"]}, "name"),
        ({"v": 1}, "name"),
        ({"v": 1, "name": "closed", "at": 1.0, "reason": ""}, "status"),
        ({"v": 1, "name": "closed", "at": 1.0, "status": "great", "reason": ""}, "status"),
        ({"v": 1, "name": "decided", "at": 1.0, "decision": {"name": "guess"}}, "decision.name"),
        ({"v": 1, "name": "decided", "at": 1.0, "decision": 3}, "decision"),
        ({"v": 1, "name": "attempt_failed", "at": 1.0, "failure": {"kind": "bad mood"}}, "failure.kind"),
    ],
)
def test_what_cannot_be_read(table: dict[str, Any], key: str) -> None:
    """A version, name or value that cannot be is an error that says which."""
    with pytest.raises(ConfigError) as raised:
        from_json(table)
    assert raised.value.key == key


def defined(table: dict[str, Any]) -> set[str]:
    return set(table["properties"])


def test_schema_has_every_field() -> None:
    """The event schema and the classes have the same events, decisions and fields."""
    defs = json.loads(schemas.text("event"))["$defs"]
    for name, cls in EVENTS.items():
        assert defined(defs[name]) == {"v", "name", *fields_of(cls)}, name
        assert set(defs[name]["required"]) == defined(defs[name]), name
    for name, cls in DECISIONS.items():
        assert defined(defs[f"decision_{name}"]) == {"name", *fields_of(cls)}, name
    for cls in (Request, Failure, Evidence, ev.Option):
        assert defined(defs[json_name(cls)]) == set(fields_of(cls)), cls
    assert defined(defs["terms"]) == set(fields_of(ev.IncidentContext))
    assert defs["kind"]["enum"] == list(Kind)
    assert defs["status"]["enum"] == list(ev.Status)
