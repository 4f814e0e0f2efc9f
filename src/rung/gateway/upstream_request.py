"""Sending of one upstream request: as it is, prepared by its provider, or translated."""

from __future__ import annotations

from functools import partial
from time import time
from typing import TYPE_CHECKING, Any

from rung.wires.translation.dropped_names import list_names

if TYPE_CHECKING:
    from rung.gateway.http.port import UpstreamResponse
    from rung.gateway.outbound import Outbound, Upstreams
    from rung.gateway.upstream.settings import UpstreamSettings

    Headers = list[tuple[bytes, bytes]]


async def send_upstream(
    upstreams: Upstreams, outbound: Outbound, upstream: UpstreamSettings, headers: Headers, notes: dict[str, Any]
) -> UpstreamResponse:
    """Send a request; return its response in the client's wire format once its headers are received.

    `upstream` and `headers` have the key of this attempt. `notes` become x-rung-* headers.
    """
    client, translated = upstreams.client, outbound.translated
    if notes or outbound.dropped:  # most calls have none, and need no further headers
        notes |= {"upstream": "", "dropped": list_names(outbound.dropped)}
    if outbound.is_direct:
        return await client.send(upstream, "POST", outbound.target, headers, outbound.body)
    provider = upstreams.table.provider(outbound.upstream)
    request = await provider.prepare(
        wire=outbound.wire,
        model=outbound.model,
        stream=outbound.is_stream,
        target=outbound.target,
        headers=headers,
        body=outbound.body if translated is None else translated.body,
    )
    response = provider.wrap(await client.send(upstream, "POST", *request))
    if translated is None:
        return response
    notes |= {"upstream": f"{upstream.name}/{outbound.model}", "dropped": translated.dropped_names()}
    translated.on_dropped = partial(notes.__setitem__, "dropped")
    return translated.response(response, upstreams.settings.limits.answer, time)
