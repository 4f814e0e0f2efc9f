"""What a continuation repeats is cut off, however it is cut into pieces; what is new is kept."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rung.wires.overlap import OverlapFilter, RepetitionFilter, last_word, overlap_length, whole_words

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


SAID = "The tide rises twice a day because the moon pulls the sea, and the sun helps it"
REST = " a little when both stand in one line."


@pytest.mark.parametrize(
    "preface",
    [
        "Sure, continuing from where I left off:\n\n",
        "Certainly! Here is the rest of the answer:\n",
        "Sure, continuing… ",
        "Of course. Continuing from the last sentence:\n\n",
        "Here's the continuation:\n\n",
        "Sure! ",
    ],
)
@pytest.mark.parametrize("repeated", [0, 20, len(SAID)])
@pytest.mark.parametrize("cuts", [[], [3] * 90])
def test_a_preface_is_cut(preface: str, repeated: int, cuts: list[int]) -> None:
    """Words that introduce a continuation are no part of it, whether or not it repeats what was said."""
    if preface == "Sure! " and not repeated:
        return  # nothing shows that this is a preface
    more = preface + SAID[len(SAID) - repeated :] + (REST if repeated else REST.lstrip())
    assert told(SAID, more, cuts) == REST


@pytest.mark.parametrize(
    "more",
    [
        "Continuing education is what the text is about. It goes on here.",
        "Sure. That is what they say. But it is not so.",
        "Here is a list: one, two, three, and more of them until the end of the line.",
        "```python\nprint(1)\n```\nThat is all.",
    ],
)
@pytest.mark.parametrize("cuts", [[], [3] * 90])
def test_what_only_looks_like_a_preface_stays(more: str, cuts: list[int]) -> None:
    """A text that begins like a preface and does not speak of a continuation is kept whole."""
    assert told("They asked what it means.\n", more, cuts) == more


@pytest.mark.parametrize("cuts", [[], [3] * 90])
def test_a_fence_around_a_continuation_is_cut(cuts: list[int]) -> None:
    """A code fence that surrounds a repeated text is cut at both ends; one that is open again, at its beginning."""
    assert told(SAID, f"```text\n{SAID[-20:]}{REST}\n```", cuts) == REST
    assert told("```python\nfirst = 1\n", "```python\nsecond = 2\n```\nDone.", cuts) == "second = 2\n```\nDone."
    assert told("```python\nfirst = 1\n", "```python\nfirst = 1\nsecond = 2\n```", cuts) == "second = 2\n```"


@given(st.text(alphabet="ab{", max_size=20), st.text(alphabet="ab{", max_size=30), st.lists(st.integers(1, 5)))
def test_an_answer_asked_for_again_must_repeat(said: str, again: str, cuts: list[int]) -> None:
    """A whole answer continues a text only if it begins with it; nothing of another answer comes through."""
    repeated = RepetitionFilter(said)
    out, start = "", 0
    for size in cuts:
        out += repeated.feed(again[start : start + size])
        start += size
    out += repeated.feed(again[start:]) + repeated.close()
    assert repeated.has_diverged == (not again.startswith(said))
    assert out == ("" if repeated.has_diverged else again[len(said) :])
