"""JSON objects in texts."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rung.core.text.json_in_text import find_json_object, parse_json_object


@pytest.mark.parametrize(
    "text",
    [
        '{"a": 1}',
        'So:\n```json\n{"a": 1}\n```\n',
        'x {y}\n{"a": 1}',
        '{"b": 2}\n{"a": 1}',
        'thinking { about } it: {"a": 1} and }',
    ],
)
def test_the_last_object_is_found(text: str) -> None:
    """An object is found behind prose, in a code fence, or as the last line."""
    assert find_json_object(text) == {"a": 1}


@pytest.mark.parametrize("text", ["", "[1]", "{", "}{", json.dumps("x"), "{" * 100_000])
def test_no_object(text: str) -> None:
    """A list, a text, half an object or endless braces are none."""
    assert find_json_object(text) is None
    assert parse_json_object(text) is None


def test_an_object_with_the_keys() -> None:
    """With keys, the last object that has one of them is taken, inside another if need be."""
    assert find_json_object('{"a": 1} {"b": 2}', {"a"}) == {"a": 1}
    assert find_json_object('{"verdict": {"a": 1}}', {"a"}) == {"a": 1}
    assert find_json_object('{"b": {"c": {}}}', {"a"}) is None


def test_a_whole_text() -> None:
    """The strict reader takes a whole text only."""
    assert parse_json_object(' {"a": {"b": 1}}\n') == {"a": {"b": 1}}
    assert parse_json_object('see {"a": 1}') is None
    assert parse_json_object('{"a": ' * 100_000) is None


@given(
    st.dictionaries(st.text(), st.integers() | st.text() | st.dictionaries(st.text(), st.none())), st.integers(0, 40)
)
def test_any_object_in_prose(value: dict[str, object], braces: int) -> None:
    """Whatever the object holds, it is read whole from the prose around it."""
    assert find_json_object("{ " * braces + "here: " + json.dumps(value) + " done") == value
