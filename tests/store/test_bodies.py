"""Event encoding: both encoders yield the codec's JSON without secrets."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rung.core.domain import events as ev
from rung.core.domain.event_codec import from_json, to_json
from rung.core.domain.failures import Evidence, Failure, Kind
from rung.store.journal.event_encoding import encode

if TYPE_CHECKING:
    from rung.core.domain.events import Event

SECRET = "sk-ant-api03-" + "Zq9" * 12
NUMBERS = st.floats() | st.integers(-10, 10)
TEXTS = st.sampled_from(
    ["x", "é \0 \ud800", 'a "quoted" one', f"key {SECRET} in it", f'{{"api_key": "{SECRET}"}}', "y" * 70_000]
)
FAILURES = st.builds(
    Failure,
    kind=st.sampled_from(Kind),
    retryable=st.booleans(),
    rule=st.just("r"),
    message=TEXTS,
    evidence=st.builds(Evidence, text=TEXTS, headers=st.just({"x": "y"}), output=TEXTS),
)
REPEATS = st.builds(
    ev.Repeat,
    rung=st.integers(0, 3),
    wait=NUMBERS,
    reason=TEXTS,
    skipped=st.just(()) | st.tuples(st.tuples(st.integers(0, 3), TEXTS)),
)
EVENTS = (
    st.builds(ev.AttemptSucceeded, NUMBERS, NUMBERS, NUMBERS)
    | st.builds(ev.AttemptFailed, NUMBERS, FAILURES, NUMBERS, NUMBERS, st.booleans(), st.booleans())
    | st.builds(ev.Decided, NUMBERS, REPEATS)
)


@given(EVENTS)
def test_as_the_codec_has_it(event: Event) -> None:
    """The JSON decodes to the encoded event; without secrets and long texts that is the original."""
    for _ in range(2):  # the second time from the cache
        made, name, body = encode(event)
        table = json.loads(body)
        assert SECRET not in body
        assert name == table["name"] == to_json(event)["name"]
        assert list(table) == list(to_json(event))
        assert body == json.dumps(to_json(made), ensure_ascii=False, separators=(",", ":"))
        assert repr(from_json(table)) == repr(made)
        plain = json.dumps(to_json(event))
        if "sk-ant" not in plain and "ud800" not in plain and len(plain) < 60_000:
            assert repr(made) == repr(event)


@pytest.mark.parametrize("times", [1, 600])
def test_many_failures(times: int) -> None:
    """Each failure keeps its own text when the cache overflows."""
    for number in range(times):
        event = ev.AttemptFailed(1.0, Failure(Kind.NETWORK, True, "r", f"number {number}"), 1.0, 0.0, may_retry=True)
        assert f"number {number}" in encode(event).body
