"""Tokens: both numbers of a context overflow, however a service writes them."""

from __future__ import annotations

import pytest

from rung.core.classify.classifier import classify
from rung.core.domain.token_counts import TokenCounts, exceeds_rate_limit, max_answer_tokens, parse_token_counts


@pytest.mark.parametrize(
    ("text", "limit", "asked"),
    [
        ("prompt is too long: 210000 tokens > 200000 maximum", 200_000, 210_000),
        (
            "This model's maximum context length is 4097 tokens. However, your messages resulted in 5123 tokens.",
            4097,
            5123,
        ),
        ("maximum context length is 131,072 tokens. However, you requested 156,632 tokens (a in b)", 131_072, 156_632),
        ("on tokens per min (TPM): Limit 30000, Requested 42000.", 30_000, 42_000),
        ("Limit 5000, Used 0, Requested 6053.", 5_000, 6_053),
        (
            "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576)",
            1_048_576,
            1_200_000,
        ),
        ("Input length (300000) exceeds model's maximum context length (262144).", 262_144, 300_000),
        ("The input (500000 tokens) is longer than the model's context length (262144 tokens).", 262_144, 500_000),
        ("your prompt contains 9000 tokens, more than the limit of 8192", 8_192, 9_000),
    ],
)
def test_both_numbers(text: str, limit: int, asked: int) -> None:
    """The room and what was asked for are told apart."""
    assert parse_token_counts(text) == TokenCounts(limit, asked)


@pytest.mark.parametrize("text", ["prompt is too long", "Context size has been exceeded.", "", "9" * 5000])
def test_no_numbers(text: str) -> None:
    """A text without both numbers has none."""
    assert parse_token_counts(text) is None
    assert not exceeds_rate_limit(text)


@pytest.mark.parametrize(
    ("text", "over"),
    [
        ("on tokens per min (TPM): Limit 30000, Requested 42000.", True),
        ("Limit 5,000, Used 0, Requested ~6053.", True),
        ("limit: 5000, used: 0, requested: 6053", True),
        ("Limit 30000, Used 29000, Requested 1500.", False),
        ("Limit 0, Requested 5", False),
    ],
)
def test_one_request_over_the_limit(text: str, over: bool) -> None:
    """A limit that is only full for now is not one that this request can never meet."""
    assert exceeds_rate_limit(text) is over


def test_a_failure_tells_its_tokens() -> None:
    """A context limit says both numbers; nothing else has any."""
    failure = classify("prompt is too long: 210000 tokens > 200000 maximum")
    assert failure.tokens == TokenCounts(limit=200_000, asked=210_000)
    assert classify("429: Limit 30000, Used 29000, Requested 1500. rate limit reached").tokens is None


@pytest.mark.parametrize(
    ("text", "room"),
    [
        ("input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000", 10_000),
        (
            (
                "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens "
                "(5000 in the messages, 4000 in the completion). Please reduce the length."
            ),
            3_192,
        ),
        ("input length and `max_tokens` exceed context limit: 210000 + 100 > 200000", None),
        ("prompt is too long: 210000 tokens > 200000 maximum", None),
        ("", None),
    ],
)
def test_room_for_an_answer(text: str, room: int | None) -> None:
    """Where the input alone fits, what is left is room for the answer."""
    assert max_answer_tokens(text) == room
