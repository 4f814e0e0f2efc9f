"""Inputs of proxied calls: what all calls share, and the request of one attempt."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from rung.gateway.first_token import FirstTokenLimits
from rung.gateway.upstream.claude_body import accepted_betas, beta_headers, removed_betas, requested_betas
from rung.gateway.upstream.headers import headers_for_upstream, own_headers
from rung.gateway.upstream.health import UpstreamHealth
from rung.gateway.upstream.table import credentialed, has_same_api
from rung.wires.anthropic_turns import without_impossible_thinking
from rung.wires.registry import BY_NAME, MESSAGES
from rung.wires.wire_json import changed_settings, load_json

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rung.gateway.detector_port import DetectorResult
    from rung.gateway.http.port import UpstreamClient
    from rung.gateway.inbound_request import InboundRequest
    from rung.gateway.references import ReferenceTable
    from rung.gateway.settings import GatewaySettings
    from rung.gateway.upstream.settings import UpstreamSettings
    from rung.gateway.upstream.table import Target, UpstreamTable
    from rung.gateway.upstream.translated_call import TranslatedCall

    Headers = list[tuple[bytes, bytes]]
    Inspect = Callable[[InboundRequest, str | None, Sequence[tuple[str, object]]], DetectorResult | None]

_BETAS: Final = ("anthropic-beta", "openai-beta")  # headers that ask for features of one API


@dataclass(frozen=True, slots=True, kw_only=True)
class Upstreams:
    """Shared inputs of proxied calls: HTTP client, settings, learned time limits, and detectors if there are any."""

    client: UpstreamClient
    settings: GatewaySettings
    table: UpstreamTable
    inspect: Inspect | None
    references: ReferenceTable
    health: UpstreamHealth = field(default_factory=UpstreamHealth)
    first_tokens: FirstTokenLimits = field(default_factory=FirstTokenLimits)


class Outbound(NamedTuple):
    """Upstream request of one attempt. `body` is on the client's wire; a translated call has another one to send."""

    upstream: UpstreamSettings
    target: str  # path and query
    headers: Headers
    body: bytes
    is_last_resort: bool  # no other model or upstream is left to try: timeouts are longer
    is_resume: bool = False  # asks for the rest of a partial response
    model: str = ""
    wire: str = ""  # format of the request that is sent
    is_direct: bool = True  # the provider takes the request as it is
    translated: TranslatedCall | None = None  # if the upstream does not speak the client's wire
    is_stream: bool = False  # asks for a stream
    dropped: tuple[str, ...] = ()  # settings that were left out or changed, because the upstream rejects them here

    @property
    def route(self) -> tuple[str, str]:
        """Return the upstream and the model."""
        return self.upstream.name, self.model


def outbound_for(
    table: UpstreamTable,
    inbound: InboundRequest,
    target: Target,
    body: bytes,
    *,
    is_last_resort: bool,
    is_resume: bool = False,
    is_stream: bool | None = None,
) -> Outbound:
    """Return the upstream request for a body on the client's wire; translate it if the target has another wire.

    `is_stream`: whether it asks for a stream. None: as the client does.
    """
    is_stream = inbound.is_stream if is_stream is None else is_stream
    upstream, headers = target.upstream, inbound.upstream_headers
    if not has_same_api(upstream, inbound):
        upstream = credentialed(upstream, inbound) or upstream
        headers = own_headers(upstream)
        if table.wire_for(target, inbound) == inbound.wire.name == MESSAGES.name:
            headers += beta_headers(inbound.raw_headers)  # Claude on the platform of another provider
    elif upstream is not inbound.upstream:
        headers = headers_for_upstream(list(inbound.headers.items()), upstream)
    wire, client_wire = table.wire_for(target, inbound), inbound.wire.name
    translated, sent = None, body
    dropped: tuple[str, ...] = ()
    if wire != client_wire:
        known = table.provider(upstream).known_name(target.model)
        translated = _translated(client_wire, wire, body, known, is_stream=is_stream)
        translated.dropped.update(name for name in _BETAS if inbound.headers.get(name.encode()))
    elif wire == MESSAGES.name:
        sent = without_impossible_thinking(body)
    if translated is None and sent is not inbound.body and (sent is not body or target.model != inbound.upstream_model):
        dropped = changed_settings(inbound.parsed(), load_json(sent))
    if wire == client_wire == MESSAGES.name and (upstream.betas is not None or not has_same_api(upstream, inbound)):
        dropped += removed_betas(inbound.raw_headers, requested_betas(headers, accepted_betas(upstream)))
    return Outbound(
        upstream=upstream,
        target=inbound.target_for(target.model, is_stream=is_stream),
        headers=headers,
        body=sent,
        is_last_resort=is_last_resort,
        is_resume=is_resume,
        model=target.model,
        wire=wire,
        is_direct=translated is None and table.provider(upstream).is_direct(wire, target.model),
        translated=translated,
        is_stream=is_stream,
        dropped=dropped,
    )


def _translated(client_wire: str, wire: str, body: bytes, model: str, *, is_stream: bool) -> TranslatedCall:
    from rung.gateway.upstream.translated_call import TranslatedCall  # only calls that are translated load translators
    from rung.wires.translation.registry import translator_of

    return TranslatedCall(
        translator_of(client_wire),
        translator_of(wire),
        body,
        model,
        is_stream=is_stream,
        validate=BY_NAME[wire].bodies.validate,
    )
