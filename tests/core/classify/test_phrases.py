"""Normalization of texts, and matching of phrases."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rung.core.classify.phrases import MAX_GAP_CHARS, normalized, parse_phrases, words_of


def found(phrase: str, text: str) -> bool:
    return any(one.found_in(normalized(words_of(text))) for one in parse_phrases((phrase,)))


@pytest.mark.parametrize(
    ("text", "shape"),
    [
        ("", " | | "),
        ("Rate-limit: EXCEEDED!", " | rate limit exceeded | "),
        ("don't can’t", " | dont cant | "),
        ("one\ntwo", " | one | two | "),
        ("a—b…c É", " | a b c é | "),
        ("余额不足: pay", " | 余 额 不 足 pay | "),
        ("bad \ud800 half", " | bad half | "),
        ("nul\x00here", " | nul here | "),
    ],
)
def test_the_one_shape(text: str, shape: str) -> None:
    """Lower case, single spaces, no punctuation, a mark at line ends; CJK characters are words."""
    assert normalized(words_of(text)) == shape
    assert words_of(text) == shape.split()


@pytest.mark.parametrize(
    ("phrase", "text"),
    [
        ("rate limit", "You hit a rate_limit."),
        ("exceeds/exceeded the limit", "This exceeded the limit"),
        ("exceeds/exceeded the limit", "This exceeds the limit"),
        ("model * not found", "the model `m-1` was not found"),
        ("model * not found", "a model here, and the model m-1 not found"),
        ("^fatal", "log line\nfatal: no"),
        ("no such file$", "cat: x: No such file\nnext"),
        ("^ok$", "ok"),
        ("Don't panic", "DONT PANIC"),
        ("余额不足", "账户余额不足，请充值"),
        ("a * b * c", "a x b y c"),
    ],
)
def test_found(phrase: str, text: str) -> None:
    """Words in order, alternatives, gaps and line ends match."""
    assert found(phrase, text)


@pytest.mark.parametrize(
    ("phrase", "text"),
    [
        ("rate limit", "rates limited"),
        ("model * not found", "model" + " x" * MAX_GAP_CHARS + " not found"),
        ("model * not found", "model found"),
        ("^fatal", "not fatal"),
        ("no such file$", "no such file or directory"),
        ("model * not found", "model " * 50),
        ("a * b * c", "a x b y d"),
    ],
)
def test_not_found(phrase: str, text: str) -> None:
    """Parts of words, other orders, wider gaps and other positions do not match."""
    assert not found(phrase, text)


def test_a_gap_gives_up_after_some_tries() -> None:
    """The first part of a phrase is tried a bounded number of times."""
    assert found("model * gone", "model " + "x" * 300 + " model gone")
    assert not found("model * gone", ("model " + "x" * 300 + " ") * 20 + "model gone")


@given(st.text())
def test_any_text_has_a_shape(text: str) -> None:
    """Any text normalizes to words and marks."""
    words = words_of(text)
    assert words[0] == words[-1] == "|"
    assert all(word.strip() == word and word == word.lower() for word in words) or not text.isascii()
