"""Usage objects in the form in which providers report them, each with its price by the provider's published arithmetic.

Prices are US dollars for a million tokens, as the providers publish them: Anthropic's "Pricing" page (cache write of five
minutes 1.25 times input, of one hour 2 times, cache read 0.1 times), OpenAI's "Pricing" (cached input), Google's "Gemini
Developer API pricing" (prompts up to and above 200,000 tokens, context caching, audio). A tier holds for the whole call.
Where the price list has another price than the provider's page, the arithmetic uses the list's, and a comment says so.
"""

from __future__ import annotations

from typing import Any, NamedTuple


class UsageRecord(NamedTuple):
    """One call: its wire, its model as the request names it, its usage object, and its price in US dollars."""

    name: str
    wire: str
    model: str
    usage: dict[str, Any]
    dollars: float


M = 1e6

ANTHROPIC = [
    UsageRecord(
        "Sonnet 4.5 without a cache",
        "messages",
        "claude-sonnet-4-5-20250929",
        {"input_tokens": 2_095, "output_tokens": 503, "service_tier": "standard"},
        3.00 * 2_095 / M + 15.00 * 503 / M,
    ),
    UsageRecord(
        "Sonnet 4.5, first call of an agent: the system prompt is written for five minutes",
        "messages",
        "claude-sonnet-4-5",
        {
            "input_tokens": 4,
            "cache_creation_input_tokens": 18_741,
            "cache_read_input_tokens": 0,
            "cache_creation": {"ephemeral_5m_input_tokens": 18_741, "ephemeral_1h_input_tokens": 0},
            "output_tokens": 310,
        },
        3.00 * 4 / M + 3.75 * 18_741 / M + 15.00 * 310 / M,
    ),
    UsageRecord(
        "Sonnet 4.5, later call of an agent: most is read, the last turn is written",
        "messages",
        "claude-sonnet-4-5",
        {
            "input_tokens": 7,
            "cache_creation_input_tokens": 1_822,
            "cache_read_input_tokens": 96_310,
            "cache_creation": {"ephemeral_5m_input_tokens": 1_822, "ephemeral_1h_input_tokens": 0},
            "output_tokens": 1_204,
        },
        3.00 * 7 / M + 3.75 * 1_822 / M + 0.30 * 96_310 / M + 15.00 * 1_204 / M,
    ),
    UsageRecord(
        "Sonnet 4.5, written for an hour and for five minutes in one call",
        "messages",
        "claude-sonnet-4-5",
        {
            "input_tokens": 2_048,
            "cache_read_input_tokens": 1_800,
            "cache_creation_input_tokens": 24_800,
            "cache_creation": {"ephemeral_5m_input_tokens": 4_800, "ephemeral_1h_input_tokens": 20_000},
            "output_tokens": 503,
        },
        3.00 * 2_048 / M + 0.30 * 1_800 / M + 3.75 * 4_800 / M + 6.00 * 20_000 / M + 15.00 * 503 / M,
    ),
    UsageRecord(
        "Sonnet 4.5 at exactly 200,000 tokens: not above, so the base price",
        "messages",
        "claude-sonnet-4-5",
        {"input_tokens": 10_000, "cache_read_input_tokens": 190_000, "output_tokens": 1_000},
        3.00 * 10_000 / M + 0.30 * 190_000 / M + 15.00 * 1_000 / M,
    ),
    UsageRecord(
        "Sonnet 4.5 above 200,000 tokens with its cache: every token at the long-context price",
        "messages",
        "claude-sonnet-4-5",
        {"input_tokens": 10_001, "cache_read_input_tokens": 190_000, "output_tokens": 1_000},
        6.00 * 10_001 / M + 0.60 * 190_000 / M + 22.50 * 1_000 / M,
    ),
    UsageRecord(
        "Sonnet 4.5 with a long context that is written for five minutes and for an hour",
        "messages",
        "claude-sonnet-4-5",
        {
            "input_tokens": 500,
            "cache_read_input_tokens": 150_000,
            "cache_creation_input_tokens": 300_000,
            "cache_creation": {"ephemeral_5m_input_tokens": 100_000, "ephemeral_1h_input_tokens": 200_000},
            "output_tokens": 8_000,
        },
        6.00 * 500 / M + 0.60 * 150_000 / M + 7.50 * 100_000 / M + 12.00 * 200_000 / M + 22.50 * 8_000 / M,
    ),
    UsageRecord(
        # Anthropic has published $6.00 and $22.50 above 200,000 tokens for Sonnet 4; the list has one price for all sizes.
        "Sonnet 4 above 200,000 tokens",
        "messages",
        "claude-sonnet-4-20250514",
        {"input_tokens": 260_000, "cache_read_input_tokens": 20_000, "output_tokens": 2_000},
        3.00 * 260_000 / M + 0.30 * 20_000 / M + 15.00 * 2_000 / M,
    ),
    UsageRecord(
        "Opus 4.1 with thinking, which is part of the output",
        "messages",
        "claude-opus-4-1-20250805",
        {
            "input_tokens": 120,
            "cache_creation_input_tokens": 5_000,
            "cache_read_input_tokens": 60_000,
            "output_tokens": 9_400,
            "output_tokens_details": {"thinking_tokens": 7_100},
        },
        15.00 * 120 / M + 18.75 * 5_000 / M + 1.50 * 60_000 / M + 75.00 * 9_400 / M,
    ),
    UsageRecord(
        "Opus 4.5, an hour's cache",
        "messages",
        "claude-opus-4-5",
        {
            "input_tokens": 10,
            "cache_creation_input_tokens": 40_000,
            "cache_read_input_tokens": 110_000,
            "cache_creation": {"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": 40_000},
            "output_tokens": 2_500,
        },
        5.00 * 10 / M + 10.00 * 40_000 / M + 0.50 * 110_000 / M + 25.00 * 2_500 / M,
    ),
    UsageRecord(
        "Haiku 4.5",
        "messages",
        "claude-haiku-4-5",
        {
            "input_tokens": 900,
            "cache_creation_input_tokens": 12_000,
            "cache_read_input_tokens": 30_000,
            "output_tokens": 700,
        },
        1.00 * 900 / M + 1.25 * 12_000 / M + 0.10 * 30_000 / M + 5.00 * 700 / M,
    ),
    UsageRecord(
        "Haiku 3, whose cache write is rounded to $0.30",
        "messages",
        "claude-3-haiku-20240307",
        {
            "input_tokens": 1_000,
            "cache_creation_input_tokens": 50_000,
            "cache_read_input_tokens": 100_000,
            "output_tokens": 400,
        },
        0.25 * 1_000 / M + 0.30 * 50_000 / M + 0.03 * 100_000 / M + 1.25 * 400 / M,
    ),
    UsageRecord(
        "Sonnet 4.5 on Bedrock in one region: 10 % more than Anthropic",
        "messages",
        "us.anthropic.claude-sonnet-4-5-20250929-v1:0",
        {
            "input_tokens": 5_000,
            "cache_creation_input_tokens": 20_000,
            "cache_read_input_tokens": 80_000,
            "output_tokens": 1_500,
        },
        3.30 * 5_000 / M + 4.125 * 20_000 / M + 0.33 * 80_000 / M + 16.50 * 1_500 / M,
    ),
    UsageRecord(
        "Sonnet 4.5 on Vertex AI above 200,000 tokens",
        "messages",
        "claude-sonnet-4-5@20250929",
        {
            "input_tokens": 250_000,
            "cache_read_input_tokens": 0,
            "cache_creation_input_tokens": 0,
            "output_tokens": 3_000,
        },
        6.00 * 250_000 / M + 22.50 * 3_000 / M,
    ),
]

OPENAI = [
    UsageRecord(
        "GPT-4o, half of the prompt from the cache at half the price",
        "chat",
        "gpt-4o-2024-08-06",
        {
            "prompt_tokens": 2_006,
            "completion_tokens": 300,
            "total_tokens": 2_306,
            "prompt_tokens_details": {"cached_tokens": 1_920, "audio_tokens": 0},
            "completion_tokens_details": {"reasoning_tokens": 0, "audio_tokens": 0},
        },
        2.50 * 86 / M + 1.25 * 1_920 / M + 10.00 * 300 / M,
    ),
    UsageRecord(
        "GPT-4.1, a quarter of the price for the cache",
        "chat",
        "gpt-4.1",
        {
            "prompt_tokens": 412_000,
            "completion_tokens": 2_500,
            "total_tokens": 414_500,
            "prompt_tokens_details": {"cached_tokens": 400_000},
        },
        2.00 * 12_000 / M + 0.50 * 400_000 / M + 8.00 * 2_500 / M,
    ),
    UsageRecord(
        "GPT-5 over the Responses API, with reasoning in the output",
        "responses",
        "gpt-5-2025-08-07",
        {
            "input_tokens": 36_214,
            "input_tokens_details": {"cached_tokens": 34_816},
            "output_tokens": 5_120,
            "output_tokens_details": {"reasoning_tokens": 4_416},
            "total_tokens": 41_334,
        },
        1.25 * 1_398 / M + 0.125 * 34_816 / M + 10.00 * 5_120 / M,
    ),
    UsageRecord(
        "GPT-5 mini",
        "responses",
        "gpt-5-mini",
        {
            "input_tokens": 9_000,
            "input_tokens_details": {"cached_tokens": 6_144},
            "output_tokens": 800,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": 9_800,
        },
        0.25 * 2_856 / M + 0.025 * 6_144 / M + 2.00 * 800 / M,
    ),
    UsageRecord(
        "o3, nearly all of it reasoning",
        "chat",
        "o3",
        {
            "prompt_tokens": 1_500,
            "completion_tokens": 22_000,
            "total_tokens": 23_500,
            "prompt_tokens_details": {"cached_tokens": 1_024},
            "completion_tokens_details": {"reasoning_tokens": 21_500},
        },
        2.00 * 476 / M + 0.50 * 1_024 / M + 8.00 * 22_000 / M,
    ),
    UsageRecord(
        "o4-mini",
        "responses",
        "o4-mini",
        {
            "input_tokens": 50_000,
            "input_tokens_details": {"cached_tokens": 40_000},
            "output_tokens": 3_000,
            "output_tokens_details": {"reasoning_tokens": 2_000},
            "total_tokens": 53_000,
        },
        1.10 * 10_000 / M + 0.275 * 40_000 / M + 4.40 * 3_000 / M,
    ),
    UsageRecord(
        "GPT-5.4 above 272,000 tokens: twice the input price and 1.5 times the output price for the whole call",
        "responses",
        "gpt-5.4",
        {
            "input_tokens": 300_000,
            "input_tokens_details": {"cached_tokens": 250_000},
            "output_tokens": 4_000,
            "output_tokens_details": {"reasoning_tokens": 3_000},
            "total_tokens": 304_000,
        },
        5.00 * 50_000 / M + 0.50 * 250_000 / M + 22.50 * 4_000 / M,
    ),
    UsageRecord(
        "gpt-audio, spoken question and answer",
        "chat",
        "gpt-audio",
        {
            "prompt_tokens": 1_200,
            "completion_tokens": 900,
            "total_tokens": 2_100,
            "prompt_tokens_details": {"cached_tokens": 0, "audio_tokens": 1_000},
            "completion_tokens_details": {"reasoning_tokens": 0, "audio_tokens": 700},
        },
        2.50 * 200 / M + 32.00 * 1_000 / M + 10.00 * 200 / M + 64.00 * 700 / M,
    ),
]

GEMINI = [
    UsageRecord(
        "Gemini 2.5 Pro with thoughts, which the candidates do not contain",
        "gemini",
        "gemini-2.5-pro",
        {
            "promptTokenCount": 12_000,
            "candidatesTokenCount": 900,
            "thoughtsTokenCount": 3_100,
            "totalTokenCount": 16_000,
            "promptTokensDetails": [{"modality": "TEXT", "tokenCount": 12_000}],
        },
        1.25 * 12_000 / M + 10.00 * (900 + 3_100) / M,
    ),
    UsageRecord(
        "Gemini 2.5 Pro above 200,000 tokens with cached content",
        "gemini",
        "gemini-2.5-pro",
        {
            "promptTokenCount": 260_000,
            "cachedContentTokenCount": 240_000,
            "candidatesTokenCount": 2_000,
            "thoughtsTokenCount": 1_500,
            "totalTokenCount": 263_500,
            "cacheTokensDetails": [{"modality": "TEXT", "tokenCount": 240_000}],
        },
        2.50 * 20_000 / M + 0.25 * 240_000 / M + 15.00 * (2_000 + 1_500) / M,
    ),
    UsageRecord(
        "Gemini 2.5 Flash with spoken input, part of it cached, and a result of the provider's own tool",
        "gemini",
        "models/gemini-2.5-flash",
        {
            "promptTokenCount": 9_000,
            "cachedContentTokenCount": 4_000,
            "toolUsePromptTokenCount": 500,
            "candidatesTokenCount": 300,
            "thoughtsTokenCount": 200,
            "promptTokensDetails": [
                {"modality": "TEXT", "tokenCount": 3_000},
                {"modality": "AUDIO", "tokenCount": 6_000},
            ],
            "cacheTokensDetails": [
                {"modality": "TEXT", "tokenCount": 1_000},
                {"modality": "AUDIO", "tokenCount": 3_000},
            ],
        },
        0.30 * (2_000 + 500) / M + 1.00 * 3_000 / M + 0.03 * 1_000 / M + 0.10 * 3_000 / M + 2.50 * (300 + 200) / M,
    ),
    UsageRecord(
        "Gemini 2.5 Flash Image: one picture of 1,290 tokens",
        "gemini",
        "gemini-2.5-flash-image",
        {
            "promptTokenCount": 270,
            "candidatesTokenCount": 1_310,
            "totalTokenCount": 1_580,
            "promptTokensDetails": [{"modality": "TEXT", "tokenCount": 12}, {"modality": "IMAGE", "tokenCount": 258}],
            "candidatesTokensDetails": [
                {"modality": "IMAGE", "tokenCount": 1_290},
                {"modality": "TEXT", "tokenCount": 20},
            ],
        },
        0.30 * 270 / M + 30.00 * 1_290 / M + 2.50 * 20 / M,
    ),
    UsageRecord(
        "Gemini 3 Pro above 200,000 tokens",
        "gemini",
        "gemini-3-pro-preview",
        {"promptTokenCount": 200_001, "candidatesTokenCount": 500, "thoughtsTokenCount": 2_500},
        4.00 * 200_001 / M + 18.00 * (500 + 2_500) / M,
    ),
]

COMPATIBLE = [
    UsageRecord(
        # DeepSeek publishes $0.28, $0.028 and $0.42 since V3.2; the list has the prices of V3 under this name.
        "DeepSeek, with counts of cache hits and misses of its own",
        "chat",
        "deepseek-chat",
        {
            "prompt_tokens": 10_000,
            "prompt_cache_hit_tokens": 8_960,
            "prompt_cache_miss_tokens": 1_040,
            "completion_tokens": 600,
            "total_tokens": 10_600,
        },
        0.27 * 1_040 / M + 0.07 * 8_960 / M + 1.10 * 600 / M,
    ),
    UsageRecord(
        "Grok 4, whose completion does not contain the reasoning",
        "chat",
        "xai/grok-4",
        {
            "prompt_tokens": 20_000,
            "completion_tokens": 400,
            "total_tokens": 23_400,
            "prompt_tokens_details": {
                "text_tokens": 20_000,
                "audio_tokens": 0,
                "image_tokens": 0,
                "cached_tokens": 16_000,
            },
            "completion_tokens_details": {"reasoning_tokens": 3_000, "audio_tokens": 0},
        },
        3.00 * 4_000 / M + 0.75 * 16_000 / M + 15.00 * (400 + 3_000) / M,
    ),
    UsageRecord(
        "Claude Sonnet 4.5 behind OpenRouter, with cache reads and writes in the chat format",
        "chat",
        "openrouter/anthropic/claude-sonnet-4.5",
        {
            "prompt_tokens": 60_000,
            "completion_tokens": 1_000,
            "total_tokens": 61_000,
            "prompt_tokens_details": {"cached_tokens": 50_000, "cache_write_tokens": 8_000},
        },
        3.00 * 2_000 / M + 0.30 * 50_000 / M + 3.75 * 8_000 / M + 15.00 * 1_000 / M,
    ),
    UsageRecord(
        "GPT-4o on Azure",
        "chat",
        "azure/gpt-4o",
        {
            "prompt_tokens": 5_000,
            "completion_tokens": 250,
            "total_tokens": 5_250,
            "prompt_tokens_details": {"cached_tokens": 3_072},
        },
        2.50 * 1_928 / M + 1.25 * 3_072 / M + 10.00 * 250 / M,
    ),
]

RECORDS = [*ANTHROPIC, *OPENAI, *GEMINI, *COMPATIBLE]
