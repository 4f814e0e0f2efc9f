"""Binary event stream of Bedrock as the server-sent events of Anthropic."""

from __future__ import annotations

import struct
from base64 import b64decode
from typing import TYPE_CHECKING, Any, Final

from rung.gateway.http.response import interrupted
from rung.wires.sse import build_event
from rung.wires.wire_json import json_object, named_event, parse_event_json

if TYPE_CHECKING:
    from rung.gateway.http.port import UpstreamResponse

    Headers = list[tuple[bytes, bytes]]

EVENT_STREAM: Final = b"application/vnd.amazon.eventstream"
_REPLACED: Final = frozenset({b"content-type", b"content-length"})
_BROKEN_DATA: Final = (ValueError, KeyError, struct.error, RecursionError)  # of headers or events with a valid checksum
_SSE_HEADER: Final = (b"content-type", b"text/event-stream; charset=utf-8")


class BedrockStream:
    """Response whose frames are read as server-sent events; an exception frame becomes an error event."""

    __slots__ = ("_decoder", "_response", "close", "raw_headers", "status")

    def __init__(self, response: UpstreamResponse) -> None:
        self._response = response
        self._decoder = FrameDecoder()
        self.status = response.status
        self.raw_headers: Headers = [
            *(each for each in response.raw_headers if each[0] not in _REPLACED),
            _SSE_HEADER,
        ]
        self.close = response.close

    @property
    def ended(self) -> bool:
        """Return whether the whole body was received."""
        return self._response.ended

    async def read_chunk(self) -> bytes:
        """Return the events of all frames that are complete; empty at the end."""
        while chunk := await self._response.read_chunk():
            if events := self._decoder.feed(chunk):
                return events
        if self._decoder.is_inside_frame:
            raise interrupted("event stream ended without sending its last frame completely")
        return b""


class FrameDecoder:
    """Decoder of frames: the events are the same however the bytes are split."""

    def __init__(self) -> None:
        from botocore.eventstream import EventStreamBuffer

        self._buffer = EventStreamBuffer()
        self._pending_bytes = 0

    @property
    def is_inside_frame(self) -> bool:
        """Return whether the bytes so far end within a frame."""
        return self._pending_bytes > 0

    def feed(self, data: bytes) -> bytes:
        """Return the events that these bytes complete; raise AttemptError if they are no valid frames."""
        from botocore.eventstream import ParserError

        self._buffer.add_data(data)
        self._pending_bytes += len(data)
        events = []
        try:
            for frame in self._buffer:
                self._pending_bytes -= frame.prelude.total_length
                events.append(event_of(frame.headers, frame.payload))
        except (ParserError, *_BROKEN_DATA) as error:
            raise interrupted(f"event stream has an invalid frame: {error}") from None
        return b"".join(events)


def event_of(headers: dict[str, Any], payload: bytes) -> bytes:
    """Return the event of one frame; empty for a frame that has none. Raise ValueError if its data is not valid."""
    kind = headers.get(":message-type")
    if kind == "exception":
        return _error_event(str(headers.get(":exception-type", "")), json_object(payload))
    if kind == "error":
        return _error_event(str(headers.get(":error-code", "")), {"message": headers.get(":error-message", "")})
    if headers.get(":event-type") != "chunk":
        return b""
    encoded = json_object(payload).get("bytes")
    if not isinstance(encoded, str):
        raise ValueError("chunk without bytes")  # noqa: TRY004  # wrong data, not a wrong argument
    data = b64decode(encoded, validate=True)
    event = parse_event_json(data)
    name = event.get("type") if isinstance(event, dict) else None
    return build_event(name.encode() if isinstance(name, str) else b"", data.split(b"\n"))


def _error_event(code: str, body: dict[str, Any]) -> bytes:
    """Return an error event as Anthropic sends it, with Bedrock's code as its type."""
    texts = [str(body[name]) for name in ("message", "Message", "originalMessage") if body.get(name)]
    message = ": ".join(dict.fromkeys(texts)) or code
    return named_event("error", {"type": "error", "error": {"type": code, "message": message}})
