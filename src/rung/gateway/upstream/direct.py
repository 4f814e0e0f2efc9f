"""Providers that take a client's request as it is: Anthropic, OpenAI, and servers with the API of one of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rung.gateway.http.url import parse_url
from rung.gateway.upstream.provider import (
    CHAT_API,
    MESSAGES_API,
    PATH_OF_WIRE,
    RESPONSES_API,
    ProviderRequest,
    UpstreamProvider,
    family_headers,
    parse_request,
)
from rung.wires.wire_json import dump_json

if TYPE_CHECKING:
    from rung.gateway.upstream.settings import UpstreamSettings

    Headers = list[tuple[bytes, bytes]]

_OPENAI_HOST: Final = "api.openai.com"
# Anthropic refuses requests without it. This version accepts every parameter that a wire can be translated to.
_ANTHROPIC_VERSION: Final = (b"anthropic-version", b"2023-06-01")


class DirectProvider(UpstreamProvider):
    """Provider with static keys and fixed paths. `headers_for_upstream` has added its key."""

    def is_direct(self, wire: str, model: str) -> bool:
        """Return whether a client's request in this format can be sent without `prepare` and `wrap`."""
        return model not in self._names and wire in self.wires_for(model)

    async def prepare(
        self,
        *,
        wire: str,
        model: str,
        stream: bool,  # noqa: ARG002  # the body says it
        target: str,
        headers: Headers,
        body: bytes,
    ) -> ProviderRequest:
        """Return the request with the path of its wire format and the upstream's name of the model."""
        path = PATH_OF_WIRE[wire]
        target = target if target.partition("?")[0] == path else path
        return ProviderRequest(target, self._headers(headers, wire), self.with_name(body, model))

    def with_name(self, body: bytes, model: str) -> bytes:
        """Return the body with the upstream's name of its model; unchanged if that is the same."""
        name = self.model_name(model)
        return body if name == model else dump_json(parse_request(body) | {"model": name})

    def _headers(self, headers: Headers, wire: str) -> Headers:
        return family_headers(headers, wire)


class NamedModels(DirectProvider):
    """Provider whose names of models are those of the models themselves, which may be others than a client asks for."""

    def known_name(self, model: str) -> str:
        """Return the upstream's name of a model."""
        return self.model_name(model)


class AnthropicProvider(NamedModels):
    """Anthropic, or a server with its API."""

    def wires_for(self, model: str) -> tuple[str, ...]:  # noqa: ARG002  # all models have the same API
        """Return Messages."""
        return (MESSAGES_API,)

    def _headers(self, headers: Headers, wire: str) -> Headers:
        headers = super()._headers(headers, wire)
        has_version = any(name == _ANTHROPIC_VERSION[0] for name, _ in headers)
        return headers if has_version else [*headers, _ANTHROPIC_VERSION]


class OpenAIProvider(NamedModels):
    """OpenAI, or a server with its API."""

    def __init__(self, upstream: UpstreamSettings) -> None:
        super().__init__(upstream)
        # Newer models of OpenAI have all features in Responses only; other servers know Chat Completions best.
        is_openai = parse_url(upstream.url).host.endswith(_OPENAI_HOST)
        self._wires = upstream.apis or ((RESPONSES_API, CHAT_API) if is_openai else (CHAT_API, RESPONSES_API))

    def wires_for(self, model: str) -> tuple[str, ...]:  # noqa: ARG002  # all models have the same APIs
        """Return the APIs of the settings, or Chat Completions and Responses."""
        return self._wires
