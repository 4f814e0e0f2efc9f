"""Usage of real calls, found in public logs, with the US dollars that the provider or its own client stated for them.

The amounts are not computed here: Claude Code's `costUSD` by list price, OpenRouter's `upstream_inference_cost`, and xAI's
`cost_in_usd_ticks` (ten thousand millionths of a dollar). Records of Claude Code are totals of a session; they are of models
without tiers, where a total costs as much as its calls.
"""

from __future__ import annotations

from typing import Any

from tests.gateway.spending.usage_records import UsageRecord

TICK = 1e-10


def _claude(model: str, fresh: int, output: int, read: int, five: int, hour: int, dollars: float) -> UsageRecord:
    usage: dict[str, Any] = {
        "input_tokens": fresh,
        "cache_creation_input_tokens": five + hour,
        "cache_read_input_tokens": read,
        "cache_creation": {"ephemeral_5m_input_tokens": five, "ephemeral_1h_input_tokens": hour},
        "output_tokens": output,
        "service_tier": "standard",
    }
    return UsageRecord(f"{model}, billed ${dollars}", "messages", model, usage, dollars)


def _openrouter(model: str, prompt: int, cached: int, completion: int, reasoning: int, dollars: float) -> UsageRecord:
    usage: dict[str, Any] = {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
        "cost": dollars,
        "is_byok": False,
        "prompt_tokens_details": {
            "cached_tokens": cached,
            "cache_write_tokens": 0,
            "audio_tokens": 0,
            "video_tokens": 0,
        },
        "completion_tokens_details": {"reasoning_tokens": reasoning, "image_tokens": 0, "audio_tokens": 0},
    }
    return UsageRecord(f"{model}, billed ${dollars}", "chat", model, usage, dollars)


BILLED = [
    _claude("claude-haiku-4-5-20251001", 8_967, 17, 0, 0, 0, 0.009052),
    _claude("claude-haiku-4-5-20251001", 3_774, 171, 0, 0, 0, 0.004629),
    _claude("claude-haiku-4-5-20251001", 904, 12, 0, 0, 0, 0.000964),
    _claude("claude-opus-4-6", 1_516, 5_245, 458_054, 33_078, 0, 0.5744695),
    _claude("claude-opus-4-6", 14, 2_193, 216_859, 28_868, 0, 0.3437495),
    _claude("claude-opus-4-6", 26, 2_819, 300_945, 20_572, 0, 0.3496525),
    _claude("claude-opus-4-6", 23, 30_544, 1_381_344, 0, 115_033, 2.604717),
    _claude("claude-opus-5", 6, 627, 55_515, 28_249, 0, 0.22001875),
    _claude("claude-fable-5-1", 2, 4, 0, 0, 40_913, 0.81848),
    # The logs of these leave out the lifetime of the writes; only that of an hour gives the amount.
    _claude("claude-opus-5", 8, 224, 96_086, 0, 11_940, 0.173083),
    _claude("claude-fable-5-1", 34, 776, 6_498, 0, 7_606, 0.1928845),
    _openrouter("openai/gpt-5-nano", 58_918, 0, 11_510, 10_368, 0.0075499),
    _openrouter("google/gemini-3.1-pro-preview", 818, 0, 260, 228, 0.004756),
    _openrouter("google/gemini-2.5-flash", 2_667, 0, 65, 0, 0.0009626),
    _openrouter("x-ai/grok-4.5", 6_783, 128, 2_217, 1_433, 0.0266504),
    _openrouter("x-ai/grok-4.5", 12_840, 128, 859, 203, 0.0306164),
    UsageRecord(
        "grok-4.3 of xAI, billed 466,701,500 ticks",
        "responses",
        "grok-4.3",
        {
            "input_tokens": 35_683,
            "input_tokens_details": {"cached_tokens": 832},
            "output_tokens": 1_176,
            "output_tokens_details": {"reasoning_tokens": 731},
            "total_tokens": 36_859,
            "cost_in_usd_ticks": 466_701_500,
        },
        466_701_500 * TICK,
    ),
    UsageRecord(
        "grok-4-fast, the example in xAI's documentation, billed 158,500 ticks",
        "chat",
        "grok-4-fast-non-reasoning",
        {
            "prompt_tokens": 199,
            "completion_tokens": 1,
            "total_tokens": 200,
            "prompt_tokens_details": {"text_tokens": 199, "audio_tokens": 0, "image_tokens": 0, "cached_tokens": 163},
            "completion_tokens_details": {"reasoning_tokens": 0, "audio_tokens": 0},
            "num_sources_used": 0,
            "cost_in_usd_ticks": 158_500,
        },
        158_500 * TICK,
    ),
]
