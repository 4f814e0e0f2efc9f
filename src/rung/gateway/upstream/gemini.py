"""Gemini API: generateContent with a key."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from rung.gateway.upstream.provider import GEMINI_API, ProviderRequest, UpstreamProvider, family_headers

if TYPE_CHECKING:
    from rung.gateway.upstream.settings import UpstreamSettings

    Headers = list[tuple[bytes, bytes]]


_VERSION: Final = "v1beta"


class GeminiProvider(UpstreamProvider):
    """Gemini API of Google AI Studio. `headers_for_upstream` has added its key."""

    def __init__(self, upstream: UpstreamSettings) -> None:
        super().__init__(upstream)
        self._prefix = self.version_prefix(upstream.api_version or _VERSION)

    def wires_for(self, model: str) -> tuple[str, ...]:  # noqa: ARG002  # all models have the same API
        """Return generateContent."""
        return (GEMINI_API,)

    def known_name(self, model: str) -> str:
        """Return the upstream's name of a model."""
        return self.model_name(model)

    def is_direct(self, wire: str, model: str) -> bool:
        """Return whether the request of a client is sent to the path that it names."""
        return wire == GEMINI_API and model not in self._names

    async def prepare(
        self,
        *,
        wire: str,
        model: str,
        stream: bool,
        target: str,  # noqa: ARG002  # the path is another one, and a query may hold the client's key
        headers: Headers,
        body: bytes,
    ) -> ProviderRequest:
        """Return the request of generateContent or streamGenerateContent."""
        name = self.model_name(model)
        path = quote(name if "/" in name else f"models/{name}", safe="/@")  # such as tunedModels/mine
        return ProviderRequest(
            f"{self._prefix}/{path}:{generate_method(stream=stream)}", family_headers(headers, wire), body
        )


def generate_method(*, stream: bool) -> str:
    """Return the method of a path, with its query: without `alt`, a stream is one JSON array."""
    return "streamGenerateContent?alt=sse" if stream else "generateContent"
