"""JSON of providers is read and written without loss."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rung.wires.wire_json import data_event, dump_json, load_json

NUMBERS = st.integers(-(2**80), 2**80) | st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
)


@given(VALUES)
def test_every_value_comes_back(value: Any) -> None:
    """Integers of any size keep all digits."""
    assert repr(load_json(dump_json(value))) == repr(value)
    assert repr(load_json(json.dumps(value))) == repr(value)


@pytest.mark.parametrize("text", ['{"a": ', "NaN", "[18446744073709551617, NaN]", "", "{'a': 1}"])
def test_what_is_not_json_is_rejected(text: str) -> None:
    """Also beside a long number, which Python's own parser reads: that one would accept NaN."""
    with pytest.raises(json.JSONDecodeError):
        load_json(text)


def test_deep_values_are_read_all_the_same() -> None:
    """What is too deep for Python's parser is read with a rounded number."""
    depth = 1_000
    value = load_json("[" * depth + str(2**64 + 1) + "]" * depth)
    for _ in range(depth):
        (value,) = value
    assert value in (2**64 + 1, float(2**64))


@given(st.text(alphabet="a\n\x0b\x0c\x1c\x85\u2028\u2029ü"))
def test_an_event_is_one_line_for_any_client(text: str) -> None:
    """Google's SDK ends a line at every line break of Unicode, so that none may stand in an event."""
    event = data_event({"text": text}).decode()
    data, *rest = event.splitlines()
    assert rest == [""]
    assert json.loads(data.removeprefix("data: ")) == {"text": text}


def test_half_of_a_surrogate_pair_is_escaped() -> None:
    """Some services send it, and it can be written again."""
    assert dump_json({"a": "\ud83d"}) == b'{"a":"\\ud83d"}'


@pytest.mark.parametrize(
    "text",
    [
        '{"id": "msg_00000000000000000001", "n": NUMBER}',
        '{"n":NUMBER}',
        '{"n" :\n\t -NUMBER , "id": "00000000000000000001"}',
        "[1, NUMBER]",
        "NUMBER",
        '{"00000000000000000001": [[NUMBER]]}',
        '{"n": ' + " " * 40 + "NUMBER}",
    ],
)
def test_long_numbers_keep_their_digits_beside_ids(text: str) -> None:
    """A number of more than 64 bits keeps its digits, wherever it stands, and ids with many digits stay texts."""
    written = text.replace("NUMBER", str(2**70 + 1))
    assert load_json(written) == json.loads(written)
    assert load_json(written.encode()) == json.loads(written)
