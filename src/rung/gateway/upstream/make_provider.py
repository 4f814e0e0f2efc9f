"""Providers by the type of an upstream."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rung.gateway.upstream.direct import AnthropicProvider, OpenAIProvider

if TYPE_CHECKING:
    from rung.gateway.upstream.provider import UpstreamProvider
    from rung.gateway.upstream.settings import UpstreamSettings


def make_provider(upstream: UpstreamSettings) -> UpstreamProvider:
    """Return the provider of an upstream; raise ConfigError if its optional package is not installed."""
    return _provider_class(upstream.type or upstream.wire)(upstream)


def _provider_class(name: str) -> type[UpstreamProvider]:
    """Return the class of a type of upstream. The rarer ones are loaded when they are used."""
    match name:
        case "anthropic":
            return AnthropicProvider
        case "openai":
            return OpenAIProvider
        case "azure":
            from rung.gateway.upstream.azure import AzureProvider

            return AzureProvider
        case "bedrock":
            from rung.gateway.upstream.bedrock import BedrockProvider

            return BedrockProvider
        case "vertex":
            from rung.gateway.upstream.vertex import VertexProvider

            return VertexProvider
        case "gemini":
            from rung.gateway.upstream.gemini import GeminiProvider

            return GeminiProvider
    raise LookupError(f"no provider of the type {name!r}")
