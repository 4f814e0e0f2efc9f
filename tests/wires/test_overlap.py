"""What a continuation repeats is cut off, however it is cut into pieces; what is new is kept."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rung.wires.overlap import OverlapFilter, last_word, overlap_length, whole_words

WORDS = st.text(alphabet="abc ", max_size=40)


def told(said: str, more: str, cuts: list[int]) -> str:
    """What comes out of an overlap that is given a text in pieces."""
    overlap = OverlapFilter(said)
    out, start = "", 0
    for size in cuts:
        out += overlap.feed(more[start : start + size])
        start += size
    return out + overlap.feed(more[start:]) + overlap.close()


@given(WORDS, WORDS, st.lists(st.integers(1, 5), max_size=20))
def test_pieces_do_not_matter(said: str, more: str, cuts: list[int]) -> None:
    """The same continuation in other pieces gives an end of it, and never more than all of it and a space."""
    out = told(said, more, cuts)
    assert (" " + more).endswith(out)
    assert out == told(said, more, [])


@given(st.text(min_size=1, max_size=50), st.text(max_size=50))
def test_an_answer_begun_again_is_cut_to_what_is_new(said: str, rest: str) -> None:
    """A model that starts over is heard from where it had stopped."""
    assert told(said, said + rest, [3] * 40) == rest


@pytest.mark.parametrize(
    ("said", "more", "new"),
    [
        ("The quick brown fox", " jumps", " jumps"),
        ("The quick brown fox", "quick brown fox jumps", " jumps"),
        ("The club", "brown bears", " brown bears"),
        ("one two three", "four", " four"),
        ("one, ", "two", "two"),
        ("", "all of it", "all of it"),
        ("a naï", "naïve b", "ve b"),
        ("a naï", " naïve b", "ve b"),
        ("in the", "the house", " house"),
        ("w57 w", "w58 w59", "58 w59"),
        ("def f():\n    return ", "    return 1", "1"),
    ],
)
def test_examples(said: str, more: str, new: str) -> None:
    """Whole words again are cut off, letters that agree by chance are not; two words do not run into one."""
    assert told(said, more, [2, 2, 2]) == new


def test_nothing_said_nothing_repeated() -> None:
    """Without a beginning there is no overlap."""
    assert overlap_length("", "anything") == 0


@pytest.mark.parametrize(
    ("text", "word"), [("one tw", "tw"), ("one ", ""), ("one", ""), ("a " + "x" * 41, ""), ("a\nb", "b"), ("", "")]
)
def test_the_last_word_may_be_incomplete(text: str, word: str) -> None:
    """A continuation is asked for before the last word, unless that would be all of the text or is no word."""
    assert last_word(text) == word
    assert whole_words(text) + word == text
