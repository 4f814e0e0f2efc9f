"""Values of an exchange: what all exchanges share, and the request of one attempt."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rung.gateway.detector_port import DetectorResult
    from rung.gateway.http.port import UpstreamClient
    from rung.gateway.inbound_request import InboundRequest
    from rung.gateway.settings import GatewaySettings, UpstreamSettings

    Headers = list[tuple[bytes, bytes]]
    Inspect = Callable[[InboundRequest, str | None, Sequence[tuple[str, object]]], DetectorResult | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Upstreams:
    """Shared, read-only inputs of exchanges: the client, the settings, and the detectors where there are any."""

    client: UpstreamClient
    settings: GatewaySettings
    inspect: Inspect | None


class Outbound(NamedTuple):
    """Request of one attempt, as an upstream gets it."""

    upstream: UpstreamSettings
    headers: Headers
    body: bytes
    last: bool  # no other model or upstream is left to try: it gets more time
    resumes: bool = False  # asks for the rest of an answer that was cut
