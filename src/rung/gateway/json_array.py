"""Streams of Gemini's API as a JSON array: the form that a client gets which does not ask for server-sent events."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from rung.wires.sse import EventReader

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    Send = Callable[[dict[str, Any]], Awaitable[None]]

_CONTENT_TYPE: Final = b"content-type"
_JSON: Final = (_CONTENT_TYPE, b"application/json; charset=UTF-8")
_END: Final = b"\n\n"  # ends an event that lacks its blank line


class JsonArraySender:
    """ASGI sender that turns a stream of events into an array of their data. Other responses are sent as they are."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._reader = EventReader(reads_json=True)
        self._is_stream = False
        self._separator = b"["

    async def send(self, message: dict[str, Any]) -> None:
        """Send an ASGI message."""
        if message["type"] == "http.response.start":
            headers = message["headers"]
            self._is_stream = any(n == _CONTENT_TYPE and v.startswith(b"text/event-stream") for n, v in headers)
            if self._is_stream:
                others = [header for header in headers if header[0] != _CONTENT_TYPE]
                message = {**message, "headers": [*others, _JSON]}
        elif self._is_stream:
            body = self._items(message.get("body", b""), is_last=not message.get("more_body"))
            message = {**message, "body": body}
        await self._send(message)

    def _items(self, data: bytes, *, is_last: bool) -> bytes:
        """Return the items of received events; a line end in place of a ping, which keeps the connection alive."""
        out = b""
        for event in self._reader.feed(data + _END if is_last else data):
            out += self._separator + event.data
            self._separator = b",\r\n"
        if is_last:
            return out + (b"[]" if self._separator == b"[" else b"]")
        return out or (b"\n" if data else b"")
