"""Labelled messages: formatting, and tolerant parsing."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rung.core.crew.message_format import (
    format_message,
    format_percent,
    format_yes_no,
    means_none,
    parse_fields,
    parse_int,
    parse_number,
    parse_severity,
    parse_yes_no,
)

LABELS = {"one": ("One",), "two": ("Number Two", "Two")}
VALUES = st.text(max_size=80).map(str.strip)


@given(VALUES, VALUES)
def test_what_is_written_is_read(one: str, two: str) -> None:
    """Any two values survive formatting and parsing; an empty one is left out."""
    text = format_message("HEADER", (("One", one), ("Number Two", two)))
    assert parse_fields(text, LABELS) == {name: value for name, value in (("one", one), ("two", two)) if value}


@given(st.text())
def test_no_text_is_too_odd(text: str) -> None:
    """Any text is parsed, and only known labels are returned."""
    assert set(parse_fields(text, LABELS)) <= set(LABELS)
    assert parse_number(text, 0, 100) is None or 0 <= (parse_number(text, 0, 100) or 0) <= 100
    assert parse_int(text, 0, 9) in {None, *range(10)}
    assert parse_yes_no(text) in {None, True, False}
    assert parse_severity(text) in {"", "high", "medium", "low"}


def test_how_people_write() -> None:
    """Indentation, list markers, bold and case do not matter; the last of two equal labels wins, and other lines continue a value."""
    text = "  - **two:** 2\n     ONE : first\n  and more\nOne: second\n> third"
    assert parse_fields(text, LABELS) == {"two": "2", "one": "second\n> third"}
    assert parse_fields("nothing labelled\nat all", LABELS) == {}


def test_a_value_may_look_like_a_label() -> None:
    """A continuation line that looks like a label stays part of the value."""
    text = format_message("H", (("One", "see\nTwo: not a label\n| a bar"),))
    assert parse_fields(text, LABELS) == {"one": "see\nTwo: not a label\n| a bar"}


def test_small_readings() -> None:
    """Numbers, yes and no, percentages, "none" and severities are parsed."""
    assert parse_number("about 52.5 %", 0, 100) == 52.5
    assert parse_number("152", 0, 100) is None
    assert parse_number("many", 0, 100) is None
    assert parse_int("7/9", 0, 9) == 7
    assert parse_int("7.5", 0, 9) is None
    assert (parse_yes_no("**Yes**, twice"), parse_yes_no("NO"), parse_yes_no("maybe")) == (True, False, None)
    assert (format_yes_no(True), format_yes_no(False), format_yes_no(None)) == ("YES", "NO", "")
    assert (format_percent(62.5), format_percent(None)) == ("62.5%", "")
    assert means_none(" None. ")
    assert not means_none("one")
    assert parse_severity("2 (High: schema, Low: name)") == "high"
    assert parse_severity("1 medium") == "medium"
    assert parse_severity("no high ones, 1 low") == "low"
    assert parse_severity("none") == ""
