"""Vertex AI: Claude by rawPredict and Gemini by generateContent, with a token of Google Cloud."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from rung.core.domain.errors import AttemptError
from rung.core.domain.failures import Kind
from rung.gateway.upstream.claude_body import accepted_betas, claude_body, claude_headers, requested_betas
from rung.gateway.upstream.gemini import generate_method
from rung.gateway.upstream.google_identity import GoogleIdentity
from rung.gateway.upstream.provider import (
    GEMINI_API,
    MESSAGES_API,
    ProviderRequest,
    UpstreamProvider,
    family_headers,
    require_package,
)

if TYPE_CHECKING:
    from rung.gateway.upstream.settings import UpstreamSettings

    Headers = list[tuple[bytes, bytes]]

# Vertex's name of the API version 2023-06-01. Newer versions refuse parameters that clients of the old one send.
_VERSION: Final = "vertex-2023-10-16"


class VertexProvider(UpstreamProvider):
    """Vertex AI. `key_env` may name a variable with an access token, which is then not refreshed."""

    def __init__(self, upstream: UpstreamSettings) -> None:
        super().__init__(upstream)
        self._prefix = self.version_prefix(upstream.api_version)
        self._identity: GoogleIdentity | None = None
        if upstream.has_cloud_identity:
            require_package("google.auth", "vertex", upstream)
            self._identity = GoogleIdentity(upstream.credentials_file)

    def wires_for(self, model: str) -> tuple[str, ...]:
        """Return Messages for a Claude model, else generateContent."""
        return (MESSAGES_API,) if "claude" in self.model_name(model).lower() else (GEMINI_API,)

    async def prepare(
        self,
        *,
        wire: str,
        model: str,
        stream: bool,
        target: str,  # noqa: ARG002  # the path is another one
        headers: Headers,
        body: bytes,
    ) -> ProviderRequest:
        """Return the request with the path of its publisher and a valid token."""
        if wire == MESSAGES_API:
            betas = requested_betas(headers, accepted_betas(self.upstream))
            body = claude_body(body, version=_VERSION, betas=betas, keeps_stream=True)
            headers = claude_headers(headers, betas)
            publisher, method = "anthropic", "streamRawPredict" if stream else "rawPredict"
        else:
            headers = family_headers(headers, wire)
            publisher, method = "google", generate_method(stream=stream)
        if self._identity is not None:
            headers = [*headers, *await self._identity.headers()]
        name = quote(self.model_name(model).removeprefix("models/"), safe="@:")
        return ProviderRequest(f"{self._location()}/publishers/{publisher}/models/{name}:{method}", headers, body)

    def _location(self) -> str:
        project = self.upstream.project or (self._identity.project if self._identity is not None else "")
        if not project:
            text = (
                f"no Google Cloud project for upstream {self.upstream.name}: set its `project`, or GOOGLE_CLOUD_PROJECT"
            )
            raise AttemptError(text, finding=Kind.CONFIGURATION)
        return f"{self._prefix}/projects/{quote(project, safe=':')}/locations/{quote(self.upstream.region, safe='')}"
