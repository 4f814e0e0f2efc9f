"""Settings classes: read from tables, checked when constructed, and every error names its key."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import pytest

from rung.core.domain.errors import ConfigError
from rung.core.domain.settings_schema import (
    ANY_TEXT,
    COMMAND,
    COUNT,
    NAMES,
    POSITIVE_SECONDS,
    REQUIRED,
    SECONDS,
    TEXT,
    TEXTS,
    Type,
    declared_settings,
    list_of,
    one_of,
    optional,
    read_rows,
    read_settings,
    read_values,
    rows_of,
    setting,
    settings,
    table_of,
    whole,
)


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


@settings
class Inner:
    """A table within a table."""

    depth: int = setting(COUNT, "How deep.", default=1)


@settings
class Outer:
    """All that a table can hold."""

    id: str = setting(TEXT, "Its id.")
    words: tuple[str, ...] = setting(TEXTS, "Its words.", default=())
    colour: Colour = setting(one_of(Colour), "Its colour.", default=Colour.RED)
    inner: Inner = setting(table_of(Inner), "Its inner table.", default_factory=Inner)
    rows: tuple[Inner, ...] = setting(rows_of(Inner), "Its rows.", default=())
    limit: float | None = setting(optional(SECONDS), "Its limit.", default=None)
    own: int = 0

    def __post_init__(self) -> None:
        if self.id == "bad":
            raise ConfigError("id", self.id, "good")


def test_values_and_defaults() -> None:
    """Given values are converted, missing ones have their defaults, nested tables become their classes."""
    read = read_settings(
        Outer,
        {"id": "a", "words": ["b"], "colour": "blue", "inner": {"depth": 2}, "rows": [{"depth": 3}], "limit": 0},
        "here",
        own=7,
    )
    assert read == Outer(
        id="a",
        words=("b",),
        colour=Colour.BLUE,
        inner=Inner(depth=2),
        rows=(Inner(depth=3),),
        limit=0,
        own=7,
    )
    assert read_settings(Outer, {"id": "a", "limit": None}, "here") == Outer(id="a")
    assert isinstance(read.colour, Colour)
    assert read_values(Outer, {"words": ["b"], "mine": 1}, "here", "mine") == {"words": ("b",)}
    assert [row.id for row in read_rows(Outer, [{"id": "a"}, {"id": "b"}], "row")] == ["a", "b"]


@pytest.mark.parametrize(
    ("table", "key"),
    [
        ([], "here"),
        ({"ID": 1}, "here.ID"),
        ({"id": "a", "own": 1}, "here.own"),
        ({"id": ""}, "here.id"),
        ({}, "here.id"),
        ({"id": "bad"}, "here.id"),
        ({"id": "a", "words": "b"}, "here.words"),
        ({"id": "a", "colour": "green"}, "here.colour"),
        ({"id": "a", "colour": ["red"]}, "here.colour"),
        ({"id": "a", "inner": 3}, "here.inner"),
        ({"id": "a", "inner": {"depth": 0}}, "here.inner.depth"),
        ({"id": "a", "rows": {}}, "here.rows"),
        ({"id": "a", "rows": [{}, {"deep": 1}]}, "here.rows[1].deep"),
        ({"id": "a", "limit": -1}, "here.limit"),
    ],
)
def test_what_is_refused(table: Any, key: str) -> None:
    """Each error names its key in full and what is allowed."""
    with pytest.raises(ConfigError) as raised:
        read_settings(Outer, table, "here")
    assert raised.value.key == key
    assert raised.value.allowed


def test_a_misspelt_key_is_suggested() -> None:
    """An unknown key names the known ones, and the one that may have been meant."""
    with pytest.raises(ConfigError, match=r"here\.wrods: 1 is invalid; must be .*; did you mean words"):
        read_settings(Outer, {"wrods": 1}, "here")


def test_the_constructor_checks_too() -> None:
    """Values passed in Python meet the same checks, then the class's own."""
    for wrong in ({"id": ""}, {"id": "bad"}, {"id": "a", "limit": "long"}):
        with pytest.raises(ConfigError):
            Outer(**wrong)  # type: ignore[arg-type]  # that is the point


def test_declarations() -> None:
    """The reference pages get every declared key with its type, default and line of documentation."""
    keys = {each.name: each for each in declared_settings(Outer)}
    assert list(keys) == ["id", "words", "colour", "inner", "rows", "limit"]
    assert keys["id"].default is REQUIRED
    assert (keys["words"].type.allowed, keys["words"].default, keys["words"].doc) == (
        "a list of texts",
        (),
        "Its words.",
    )


@pytest.mark.parametrize(
    ("rows", "key"), [(None, "row"), ({}, "row"), ([3], "row[0]"), ([{"id": "a"}] * 2, "row[1].id")]
)
def test_what_rows_cannot_be(rows: Any, key: str) -> None:
    """A list of tables, and no id twice."""
    with pytest.raises(ConfigError) as raised:
        read_rows(Outer, rows, "row")
    assert raised.value.key == key


@pytest.mark.parametrize(
    ("kind", "good", "bad"),
    [
        (TEXT, ["a"], ["", " ", 1, None]),
        (ANY_TEXT, ["", "a"], [1]),
        (TEXTS, [[], ["a"], ("a",)], ["a", [1], [""]]),
        (NAMES, [["a"], frozenset("a")], ["a", {"a": 1}]),
        (COMMAND, [[], ["a", ""], ("a",)], [[""], ("",), "a", [1]]),
        (COUNT, [1, 7], [0, -1, True, 1.0]),
        (whole(2, 4), [2, 4], [1, 5]),
        (POSITIVE_SECONDS, [0.1, 5], [0, -1, "5", True]),
        (optional(COUNT), [None, 1], [0]),
        (one_of(("a", "b")), ["a"], ["c", None, ["a"]]),
        (list_of(COUNT), [[], [1], (1, 2)], [3, "12", [0], {"a": 1}]),
    ],
)
def test_what_fits(kind: Type, good: list[Any], bad: list[Any]) -> None:
    """Each type of value, and what is none."""
    for value in good:
        kind.read(value, "key")
    for value in bad:
        with pytest.raises(ConfigError):
            kind.read(value, "key")
