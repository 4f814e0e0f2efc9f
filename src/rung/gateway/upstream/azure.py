"""Azure OpenAI: the v1 paths, the classic paths with a deployment and an api-version, keys and Microsoft Entra tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Protocol
from urllib.parse import quote

from rung.gateway.http.url import parse_url
from rung.gateway.upstream.access_token import AccessToken, TokenCache
from rung.gateway.upstream.direct import DirectProvider
from rung.gateway.upstream.provider import (
    CHAT_API,
    RESPONSES_API,
    ProviderRequest,
    family_headers,
    require_package,
    with_header,
)

if TYPE_CHECKING:
    from rung.gateway.upstream.settings import UpstreamSettings

    Headers = list[tuple[bytes, bytes]]

SCOPE: Final = "https://cognitiveservices.azure.com/.default"
V1: Final = "v1"
_OPERATIONS: Final = {CHAT_API: "chat/completions", RESPONSES_API: "responses"}


class TokenCredential(Protocol):
    """Credential of azure-identity, as far as it is used."""

    def get_token(self, *scopes: str) -> Any:
        """Return an object with `token` and `expires_on`, in seconds since 1970. May block."""
        ...


class AzureProvider(DirectProvider):
    """Azure OpenAI. The name of a model is that of its deployment."""

    def __init__(self, upstream: UpstreamSettings, credential: TokenCredential | None = None) -> None:
        super().__init__(upstream)
        self._base_path = parse_url(upstream.url).path
        self._version = upstream.api_version or V1
        self._credential = credential
        self._tokens = TokenCache(self._fetch_token) if upstream.has_cloud_identity else None
        if self._tokens is not None and credential is None:
            require_package("azure.identity", "azure", upstream)

    def wires_for(self, model: str) -> tuple[str, ...]:  # noqa: ARG002  # all models have the same APIs
        """Return the APIs of the settings, or Responses and Chat Completions."""
        return self.upstream.apis or (RESPONSES_API, CHAT_API)

    def is_direct(self, wire: str, model: str) -> bool:  # noqa: ARG002
        """Return False: the paths are not those of OpenAI."""
        return False

    async def prepare(
        self,
        *,
        wire: str,
        model: str,
        stream: bool,  # noqa: ARG002  # the body says it
        target: str,  # noqa: ARG002  # the path is another one
        headers: Headers,
        body: bytes,
    ) -> ProviderRequest:
        """Return the request with the path of its API, the name of the deployment, and a token if there is no key."""
        headers = family_headers(headers, wire)
        if self._tokens is not None:
            headers = with_header(headers, b"authorization", b"Bearer " + (await self._tokens.get()).encode())
        path = azure_path(self._base_path, wire, self.model_name(model), self._version)
        return ProviderRequest(path, headers, self.with_name(body, model))

    def _fetch_token(self) -> AccessToken:
        if self._credential is None:
            from azure.identity import DefaultAzureCredential

            self._credential = DefaultAzureCredential()
        token = self._credential.get_token(SCOPE)
        return AccessToken(token.token, float(token.expires_on))


def azure_path(base_path: str, wire: str, deployment: str, version: str) -> str:
    """Return the target of a call below a base URL with this path: the endpoint, /openai, /openai/v1 or a deployment."""
    operation = _OPERATIONS[wire]
    if version == V1:
        return f"/{operation}" if base_path.endswith("/openai/v1") else f"{_below(base_path)}/v1/{operation}"
    query = f"api-version={quote(version, safe='')}"
    if "/openai/deployments/" in base_path:
        return f"/{operation}?{query}"
    if wire == CHAT_API:
        operation = f"deployments/{quote(deployment, safe='')}/{operation}"
    return f"{_below(base_path)}/{operation}?{query}"


def _below(base_path: str) -> str:
    return "" if base_path.endswith("/openai") else "/openai"
