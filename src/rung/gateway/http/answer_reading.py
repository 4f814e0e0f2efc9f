"""Reading of upstream answers: JSON bodies, and the rest of a stream whose response is already complete."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import orjson

from rung.core.domain.errors import AttemptError
from rung.core.domain.failures import Kind
from rung.gateway.http.port import header_of
from rung.wires.wire_json import load_json

if TYPE_CHECKING:
    from rung.gateway.http.port import UpstreamResponse

END_SECONDS: Final = 5.0  # after the stop reason: what else belongs to the response follows at once
DRAIN_SECONDS: Final = 1.0  # after the terminal event: a connection whose transfer ends can be used again


def parse_answer(data: bytes, response: UpstreamResponse) -> dict[str, Any]:
    """Parse the body of a whole answer."""
    try:
        body = load_json(data)
    except orjson.JSONDecodeError:
        kind = header_of(response, b"content-type").decode("latin-1") or "no content type"
        text = f"response body is incomplete: {len(data)} bytes of {kind} that are not JSON"
        raise AttemptError(text, finding=Kind.STREAM_INTERRUPTED) from None
    if not isinstance(body, dict):
        raise AttemptError("response body is not a JSON object", finding=Kind.SERVER_ERROR)
    return body


async def read_rest(response: UpstreamResponse) -> bytes:
    """Read on after the stop reason. A transfer that breaks or stays open then is complete all the same."""
    try:
        async with asyncio.timeout(END_SECONDS):
            return await response.read_chunk()
    except (AttemptError, OSError):
        return b""


async def drain(response: UpstreamResponse) -> None:
    """Wait a moment for the end of a transfer after the terminal event, so that the connection can be used again."""
    if response.ended:
        return
    with suppress(AttemptError, OSError):
        async with asyncio.timeout(DRAIN_SECONDS):
            while await response.read_chunk():
                pass
