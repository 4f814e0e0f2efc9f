"""Amazon Bedrock: Claude models by InvokeModel, signed with AWS credentials or with a Bedrock API key."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from rung.core.domain.errors import ConfigError
from rung.gateway.http.port import header_of
from rung.gateway.http.url import parse_url
from rung.gateway.upstream.aws_identity import AwsIdentity
from rung.gateway.upstream.bedrock_stream import EVENT_STREAM, BedrockStream
from rung.gateway.upstream.claude_body import claude_body, claude_headers, requested_betas
from rung.gateway.upstream.provider import MESSAGES_API, ProviderRequest, UpstreamProvider, require_package

if TYPE_CHECKING:
    from rung.gateway.http.port import UpstreamResponse
    from rung.gateway.upstream.settings import UpstreamSettings

    Headers = list[tuple[bytes, bytes]]

# Bedrock's name of the API version 2023-06-01. Newer versions exist for some models only, and refuse parameters.
_VERSION: Final = "bedrock-2023-05-31"
_OK: Final = 200


class BedrockProvider(UpstreamProvider):
    """Bedrock. A model is named by its id, or by the id or ARN of an inference profile."""

    def __init__(self, upstream: UpstreamSettings) -> None:
        super().__init__(upstream)
        require_package("botocore", "bedrock", upstream)  # also reads the event stream, which a key does not change
        self._url = parse_url(upstream.url)
        self._identity: AwsIdentity | None = None
        if upstream.has_cloud_identity:
            if not upstream.region:
                allowed = "set, or the variable AWS_REGION, or a profile with a region"
                raise ConfigError(f"gateway.upstreams.{upstream.name}.region", "", allowed)
            self._identity = AwsIdentity(upstream.profile, upstream.region)

    def wires_for(self, model: str) -> tuple[str, ...]:
        """Return Messages for a Claude model. An ARN does not say its model: those in the settings are Claude's."""
        name = self.model_name(model).lower()
        return (MESSAGES_API,) if "claude" in name or name.startswith("arn:") else ()

    async def prepare(
        self,
        *,
        wire: str,  # noqa: ARG002  # there is one
        model: str,
        stream: bool,
        target: str,
        headers: Headers,
        body: bytes,
    ) -> ProviderRequest:
        """Return the signed request of InvokeModel, or of InvokeModelWithResponseStream."""
        betas = requested_betas(headers, self.upstream.betas)
        body = claude_body(body, version=_VERSION, betas=betas)
        headers = claude_headers(headers, betas)
        operation = "invoke-with-response-stream" if stream else "invoke"
        target = f"/model/{quote(self.model_name(model), safe=':;')}/{operation}"
        if self._identity is not None:
            url = f"{self._url.scheme}://{self._url.authority}{self._url.target(target)}"
            headers = [*headers, *await self._identity.sign(url, body)]
        return ProviderRequest(target, headers, body)

    def wrap(self, response: UpstreamResponse) -> UpstreamResponse:
        """Return a stream as server-sent events, anything else unchanged."""
        is_stream = response.status == _OK and header_of(response, b"content-type").startswith(EVENT_STREAM)
        return BedrockStream(response) if is_stream else response
