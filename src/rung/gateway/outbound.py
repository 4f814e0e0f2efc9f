"""Inputs of proxied calls: what all calls share, and the request of one attempt."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from rung.gateway.first_token import FirstTokenLimits

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rung.gateway.detector_port import DetectorResult
    from rung.gateway.http.port import UpstreamClient
    from rung.gateway.inbound_request import InboundRequest
    from rung.gateway.references import ReferenceTable
    from rung.gateway.settings import GatewaySettings
    from rung.gateway.upstream.settings import UpstreamSettings

    Headers = list[tuple[bytes, bytes]]
    Inspect = Callable[[InboundRequest, str | None, Sequence[tuple[str, object]]], DetectorResult | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Upstreams:
    """Shared inputs of proxied calls: HTTP client, settings, learned time limits, and detectors if there are any."""

    client: UpstreamClient
    settings: GatewaySettings
    inspect: Inspect | None
    references: ReferenceTable
    first_tokens: FirstTokenLimits = field(default_factory=FirstTokenLimits)


class Outbound(NamedTuple):
    """Upstream request of one attempt."""

    upstream: UpstreamSettings
    headers: Headers
    body: bytes
    is_last_resort: bool  # no other model or upstream is left to try: timeouts are longer
    is_resume: bool = False  # asks for the rest of a partial response
    model: str = ""

    @property
    def route(self) -> tuple[str, str]:
        """Return the upstream and the model."""
        return self.upstream.name, self.model
