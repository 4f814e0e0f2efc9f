"""Tables of settings: read by their keys, refused with their keys."""

from __future__ import annotations

from typing import Any

import pytest

from rung.core.errors import ConfigError
from rung.core.keys import (
    NEEDED,
    Key,
    is_any_text,
    is_command,
    is_count,
    is_seconds,
    is_text,
    is_texts,
    read_keys,
    read_rows,
)

KEYS = (
    Key("id", is_text, "a text", NEEDED, "Its id."),
    Key("words", is_texts, "a list of texts", (), "Its words."),
)


def test_values_and_defaults() -> None:
    """What is given is taken, a list as a tuple; the rest is the default."""
    assert read_keys({"id": "a", "words": ["b"]}, KEYS, "here") == {"id": "a", "words": ("b",)}
    assert read_keys({"id": "a"}, KEYS, "here") == {"id": "a", "words": ()}
    assert read_rows([{"id": "a"}, {"id": "b"}], KEYS, "row")[1]["id"] == "b"


@pytest.mark.parametrize(
    ("table", "key"),
    [
        ([], "here"),
        ({"ID": 1}, "here.ID"),
        ({"id": ""}, "here.id"),
        ({}, "here.id"),
        ({"id": "a", "words": "b"}, "here.words"),
    ],
)
def test_what_is_refused(table: Any, key: str) -> None:
    """Each error names its key and what is allowed."""
    with pytest.raises(ConfigError) as raised:
        read_keys(table, KEYS, "here")
    assert raised.value.key == key


@pytest.mark.parametrize(
    ("rows", "key"),
    [(None, "row"), ([], "row"), ({}, "row"), ([3], "row[0]"), ([{"id": "a"}, {"id": "a"}], "row[1].id")],
)
def test_what_rows_cannot_be(rows: Any, key: str) -> None:
    """At least one table, and no id twice."""
    with pytest.raises(ConfigError) as raised:
        read_rows(rows, KEYS, "row")
    assert raised.value.key == key


@pytest.mark.parametrize(
    ("fits", "good", "bad"),
    [
        (is_text, ["a"], ["", " ", 1, None]),
        (is_any_text, ["", "a"], [1]),
        (is_texts, [[], ["a"], ("a",)], ["a", [1], [""]]),
        (is_command, [[], ["a", ""], ("a",)], [[""], ("",), "a", [1]]),
        (is_count, [1, 7], [0, -1, True, 1.0]),
        (is_seconds, [0.1, 5], [0, -1, "5", True]),
    ],
)
def test_what_fits(fits: Any, good: list[Any], bad: list[Any]) -> None:
    """Each kind of value, and what is none."""
    assert all(fits(value) for value in good)
    assert not any(fits(value) for value in bad)
