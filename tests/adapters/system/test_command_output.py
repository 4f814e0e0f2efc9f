"""Output of several attempts, shown as it arrives."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rung.adapters.system.command_output import ShownOutput


def shown(*attempts: list[bytes]) -> bytes:
    parts: list[bytes] = []
    output = ShownOutput(parts.append)
    for attempt in attempts:
        show = output.next_attempt()
        for chunk in attempt:
            show(chunk)
    return b"".join(parts)


def test_a_repeated_start_is_not_shown_again() -> None:
    """A later attempt shows only what goes beyond the earlier ones."""
    assert shown([b"one\ntwo\n"], [b"one\n"], [b"one\nt", b"wo\nthree\n"]) == b"one\ntwo\nthree\n"


def test_another_text_begins_with_its_line() -> None:
    """Where a later attempt differs, its line is shown from the start, on a line of its own."""
    assert shown([b"one\ntwo: a"], [b"one\ntwo: b\n"]) == b"one\ntwo: a\ntwo: b\n"
    assert shown([b"one\ntwo\n"], [b"one\nsix\n"], [b"one\nsix\nten\n"]) == b"one\ntwo\nsix\nten\n"


def test_late_output_of_an_earlier_attempt_is_dropped() -> None:
    """A grandchild that writes after the next attempt has begun is not shown."""
    parts: list[bytes] = []
    output = ShownOutput(parts.append)
    first, second = output.next_attempt(), output.next_attempt()
    second(b"new")
    first(b"old")
    assert parts == [b"new"]


@given(st.binary(max_size=40), st.lists(st.integers(0, 40), max_size=4))
def test_any_prefixes(whole: bytes, cuts: list[int]) -> None:
    """Attempts that are cut anywhere, and a last one that is not, show the whole output once."""
    assert shown(*([whole[:cut]] for cut in cuts), [whole[:7], whole[7:]]) == whole
