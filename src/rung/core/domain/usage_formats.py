"""Read the usage objects of the providers' APIs. Counts that are missing or no whole numbers are 0."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from rung.core.domain.usage import Usage

if TYPE_CHECKING:
    from collections.abc import Mapping

_NOTHING: Final[Mapping[str, Any]] = {}


def anthropic_usage(usage: Mapping[str, Any]) -> Usage:
    """Read the usage of Anthropic's Messages API, whose `input_tokens` are neither read from nor written to the cache."""
    written = _table(usage, "cache_creation")
    hour = _count(written, "ephemeral_1h_input_tokens")
    return Usage(
        input=_count(usage, "input_tokens"),
        output=_count(usage, "output_tokens"),
        cache_read=_count(usage, "cache_read_input_tokens"),
        cache_write=max(
            _count(usage, "cache_creation_input_tokens"), hour + _count(written, "ephemeral_5m_input_tokens")
        ),
        cache_write_1h=hour,
        reasoning=_count(_table(usage, "output_tokens_details"), "thinking_tokens"),
    )


def chat_usage(usage: Mapping[str, Any]) -> Usage:
    """Read the usage of OpenAI's Chat Completions API and of servers that are compatible with it.

    Cached tokens are under `prompt_tokens_details`, at DeepSeek in `prompt_cache_hit_tokens`, at Moonshot in
    `cached_tokens`, behind LiteLLM in `cache_read_input_tokens`. xAI and Google count no reasoning in `completion_tokens`,
    only in `total_tokens`.
    """
    details, prompt = _table(usage, "prompt_tokens_details"), _count(usage, "prompt_tokens")
    read = max(
        _count(details, "cached_tokens"),
        *(_count(usage, name) for name in ("cached_tokens", "prompt_cache_hit_tokens", "cache_read_input_tokens")),
    )
    written = max(
        *(_count(details, name) for name in ("cache_write_tokens", "cache_creation_tokens")),
        _count(usage, "cache_creation_input_tokens"),
    )
    produced, output = _table(usage, "completion_tokens_details"), _count(usage, "completion_tokens")
    if read + written <= prompt:  # else the total also has cached tokens that the prompt does not have
        output = max(output, _count(usage, "total_tokens") - prompt)
    return _of_whole(prompt, read, written, output, details, {**usage, **produced})


def responses_usage(usage: Mapping[str, Any]) -> Usage:
    """Read the usage of OpenAI's Responses API."""
    details = _table(usage, "input_tokens_details")
    return _of_whole(
        _count(usage, "input_tokens"),
        _count(details, "cached_tokens"),
        _count(details, "cache_write_tokens"),
        _count(usage, "output_tokens"),
        details,
        _table(usage, "output_tokens_details"),
    )


def gemini_usage(usage: Mapping[str, Any]) -> Usage:
    """Read the `usageMetadata` of Gemini's generateContent API.

    The prompt contains the cached content, but not what the provider's tools added to it; the candidates do not contain the
    thoughts.
    """
    whole = _count(usage, "promptTokenCount") + _count(usage, "toolUsePromptTokenCount")
    read, thoughts = _count(usage, "cachedContentTokenCount"), _count(usage, "thoughtsTokenCount")
    cached_audio = _of_modality(usage, "cacheTokensDetails", "AUDIO")
    prompt_parts, output_parts = ("promptTokensDetails", "toolUsePromptTokensDetails"), ("candidatesTokensDetails",)
    return Usage(
        input=max(0, whole - read),
        output=_count(usage, "candidatesTokenCount") + thoughts,
        cache_read=read,
        reasoning=thoughts,
        input_audio=max(0, sum(_of_modality(usage, name, "AUDIO") for name in prompt_parts) - cached_audio),
        input_image=sum(_of_modality(usage, name, "IMAGE", "DOCUMENT") for name in prompt_parts),
        cache_read_audio=cached_audio,
        output_audio=sum(_of_modality(usage, name, "AUDIO") for name in output_parts),
        output_image=sum(_of_modality(usage, name, "IMAGE") for name in output_parts),
    )


def _of_whole(
    prompt: int, read: int, written: int, output: int, details: Mapping[str, Any], produced: Mapping[str, Any]
) -> Usage:
    """Return the usage of an API whose prompt tokens contain those of the cache.

    A prompt that is smaller than its cached part comes from a server that counts it without them.
    """
    fresh = prompt - read - written
    return Usage(
        input=fresh if fresh >= 0 else prompt,
        output=output,
        cache_read=read,
        cache_write=written,
        reasoning=_count(produced, "reasoning_tokens"),
        input_audio=_count(details, "audio_tokens"),
        input_image=_count(details, "image_tokens"),
        output_audio=_count(produced, "audio_tokens"),
        output_image=_count(produced, "image_tokens"),
    )


def _of_modality(usage: Mapping[str, Any], name: str, *modalities: str) -> int:
    parts = usage.get(name)
    entries = [part for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []
    return sum(_count(part, "tokenCount") for part in entries if part.get("modality") in modalities)


def _table(usage: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = usage.get(name)
    return value if isinstance(value, dict) else _NOTHING


def _count(usage: Mapping[str, Any], name: str) -> int:
    value = usage.get(name)
    return value if type(value) is int and value > 0 else 0


def read_usage(usage: Mapping[str, Any]) -> Usage | None:
    """Read the usage object of any of these APIs, recognised by its fields; None if it is none of them."""
    if "promptTokenCount" in usage:
        return gemini_usage(usage)
    if "prompt_token_count" in usage:  # as Google's SDK for Python names the fields
        return gemini_usage(_in_camel_case(usage))
    if "prompt_tokens" in usage:
        return chat_usage(usage)
    if "input_tokens" not in usage:
        return None
    return responses_usage(usage) if "input_tokens_details" in usage else anthropic_usage(usage)


def _in_camel_case(value: Any) -> Any:
    if isinstance(value, dict):
        return {_camel_case(key): _in_camel_case(item) for key, item in value.items()}
    return [_in_camel_case(item) for item in value] if isinstance(value, list) else value


def _camel_case(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)
