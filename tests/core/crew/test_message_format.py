"""Labelled lines: what is written is read again, and what people write is read, too."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rung.core.crew.message_format import (
    fields_in,
    number_in,
    percent,
    says_nothing,
    severity_in,
    whole_in,
    written,
    yes_in,
    yes_or_no,
)

LABELS = {"one": ("One",), "two": ("Number Two", "Two")}
VALUES = st.text(max_size=80).map(str.strip)


@given(VALUES, VALUES)
def test_what_is_written_is_read(one: str, two: str) -> None:
    """Any two values come back as they were; an empty one is not written at all."""
    text = written("HEADER", (("One", one), ("Number Two", two)))
    assert fields_in(text, LABELS) == {name: value for name, value in (("one", one), ("two", two)) if value}


@given(st.text())
def test_no_text_is_too_odd(text: str) -> None:
    """Reading never fails, and finds only what it was asked for."""
    assert set(fields_in(text, LABELS)) <= set(LABELS)
    assert number_in(text, 0, 100) is None or 0 <= (number_in(text, 0, 100) or 0) <= 100
    assert whole_in(text, 0, 9) in {None, *range(10)}
    assert yes_in(text) in {None, True, False}
    assert severity_in(text) in {"", "high", "medium", "low"}


def test_how_people_write() -> None:
    """Indented, as a list, in bold, in any case and order; the last of two wins, other lines belong to the one before."""
    text = "  - **two:** 2\n     ONE : first\n  and more\nOne: second\n> third"
    assert fields_in(text, LABELS) == {"two": "2", "one": "second\n> third"}
    assert fields_in("nothing labelled\nat all", LABELS) == {}


def test_a_value_may_look_like_a_label() -> None:
    """A line of a value that looks like a label is still the value's."""
    text = written("H", (("One", "see\nTwo: not a label\n| a bar"),))
    assert fields_in(text, LABELS) == {"one": "see\nTwo: not a label\n| a bar"}


def test_small_readings() -> None:
    """Numbers, yes and no, percentages, nothing and severities."""
    assert number_in("about 52.5 %", 0, 100) == 52.5
    assert number_in("152", 0, 100) is None
    assert number_in("many", 0, 100) is None
    assert whole_in("7/9", 0, 9) == 7
    assert whole_in("7.5", 0, 9) is None
    assert (yes_in("**Yes**, twice"), yes_in("NO"), yes_in("maybe")) == (True, False, None)
    assert (yes_or_no(True), yes_or_no(False), yes_or_no(None)) == ("YES", "NO", "")
    assert (percent(62.5), percent(None)) == ("62.5%", "")
    assert says_nothing(" None. ")
    assert not says_nothing("one")
    assert severity_in("2 (High: schema, Low: name)") == "high"
    assert severity_in("1 medium") == "medium"
    assert severity_in("no high ones, 1 low") == "low"
    assert severity_in("none") == ""
