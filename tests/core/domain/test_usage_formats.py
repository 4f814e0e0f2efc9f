"""Usage objects of all wires, read into one value."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rung.core.domain.usage import Usage
from rung.core.domain.usage_formats import anthropic_usage, chat_usage, gemini_usage, responses_usage

if TYPE_CHECKING:
    from collections.abc import Callable

READERS = [anthropic_usage, chat_usage, responses_usage, gemini_usage]
NAMES = st.sampled_from(
    [
        "input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "cache_creation",
        "ephemeral_5m_input_tokens", "ephemeral_1h_input_tokens", "prompt_tokens", "completion_tokens", "total_tokens",
        "prompt_tokens_details", "completion_tokens_details", "input_tokens_details", "output_tokens_details",
        "cached_tokens", "cache_write_tokens", "reasoning_tokens", "audio_tokens", "image_tokens",
        "prompt_cache_hit_tokens", "promptTokenCount", "cachedContentTokenCount", "candidatesTokenCount",
        "thoughtsTokenCount", "toolUsePromptTokenCount", "promptTokensDetails", "cacheTokensDetails", "modality",
        "tokenCount",
    ]
)  # fmt: skip
VALUES = st.one_of(st.none(), st.booleans(), st.integers(-10, 10**6), st.floats(), st.text(max_size=3))
OBJECTS = st.dictionaries(
    NAMES,
    st.recursive(
        VALUES, lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(NAMES, inner)), max_leaves=8
    ),
    max_size=12,
)


@pytest.mark.parametrize("read", READERS)
@given(usage=OBJECTS)
def test_any_object_can_be_read(read: Callable[[dict[str, Any]], Usage], usage: dict[str, Any]) -> None:
    """Whatever a provider sends, no count is below zero, and cached tokens are never more than the prompt."""
    found = read(usage)
    assert all(getattr(found, field.name) >= 0 for field in fields(Usage))
    assert found.cache_read + found.cache_write <= found.prompt


def test_anthropic_counts_its_cache_apart() -> None:
    """The prompt is the sum of input, reads and writes; writes for an hour are a part of all writes."""
    usage = {
        "input_tokens": 5,
        "cache_read_input_tokens": 100,
        "cache_creation_input_tokens": 30,
        "cache_creation": {"ephemeral_5m_input_tokens": 10, "ephemeral_1h_input_tokens": 20},
        "output_tokens": 7,
    }
    found = anthropic_usage(usage)
    assert found == Usage(input=5, output=7, cache_read=100, cache_write=30, cache_write_1h=20)
    assert found.prompt == 135
    del usage["cache_creation_input_tokens"]
    assert anthropic_usage(usage).cache_write == 30


@pytest.mark.parametrize(
    "cached",
    [
        {"prompt_tokens_details": {"cached_tokens": 60}},
        {"cached_tokens": 60},
        {"prompt_cache_hit_tokens": 60, "prompt_cache_miss_tokens": 40},
        {"cache_read_input_tokens": 60},
        {"prompt_cache_hit_tokens": 60, "prompt_tokens_details": {"cached_tokens": 0}},
    ],
)
def test_compatible_servers_name_cached_tokens_in_their_own_way(cached: dict[str, Any]) -> None:
    """Each way of naming the cached part of a chat completion's prompt is understood."""
    found = chat_usage({"prompt_tokens": 100, "completion_tokens": 5, "total_tokens": 105, **cached})
    assert found == Usage(input=40, cache_read=60, output=5)


def test_reasoning_that_only_the_total_contains_is_output() -> None:
    """Chat completions of xAI and Google count reasoning in the total alone; it is charged as output."""
    found = chat_usage({"prompt_tokens": 100, "completion_tokens": 5, "total_tokens": 405})
    assert found.output == 305


def test_a_prompt_that_is_smaller_than_its_cached_part_is_counted_without_it() -> None:
    """A server that reports more cached than prompt tokens means both; its total is no reasoning."""
    found = chat_usage({"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 65, "prompt_cache_hit_tokens": 50})
    assert found == Usage(input=10, cache_read=50, output=5)
    assert found == responses_usage(
        {"input_tokens": 10, "output_tokens": 5, "input_tokens_details": {"cached_tokens": 50}}
    )


def test_gemini_counts_thoughts_and_tool_results_apart() -> None:
    """Thoughts are output beside the candidates, and results of the provider's tools are input beside the prompt."""
    usage = {
        "promptTokenCount": 100,
        "cachedContentTokenCount": 60,
        "toolUsePromptTokenCount": 20,
        "candidatesTokenCount": 5,
        "thoughtsTokenCount": 50,
    }
    assert gemini_usage(usage) == Usage(input=60, cache_read=60, output=55, reasoning=50)
