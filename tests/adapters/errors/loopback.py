"""A real HTTP server on loopback that fails in the ways a provider does, and wrapping as agents do it."""

from __future__ import annotations

import json
import socket
import struct
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, ClassVar

from rung.core.classify.evidence import evidence_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rung.core.domain.failures import Evidence


@dataclass(kw_only=True)
class Answer:
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    cut: bool = False  # the connection ends before the promised body does
    reset: bool = False  # the connection is reset after the body was sent in part
    hang: bool = False  # headers and body so far are sent, then nothing more comes
    mute: bool = False  # nothing at all comes


class Provider:
    """What the next calls are answered with; what was asked is not looked at."""

    newest: ClassVar[Provider | None] = None

    def __init__(self) -> None:
        Provider.newest = self
        self.answer = Answer()
        self.over = threading.Event()  # ends whoever hangs
        provider = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                length = int(self.headers.get("content-length") or 0)
                self.rfile.read(length)
                provider._reply(self)

            do_GET = do_POST  # noqa: N815  # the name http.server looks for

            def log_message(self, *words: object) -> None:
                pass

        class Server(ThreadingHTTPServer):
            def shutdown_request(self, request: Any) -> None:
                if not provider.answer.reset:  # else no goodbye: closing with nothing lingering sends RST
                    super().shutdown_request(request)
                self.close_request(request)

        self.server = Server(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        self.thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_address[1]}"

    def says(self, status: int, body: object = b"", **headers: str) -> None:
        """A whole answer; a body that is not bytes is sent as JSON. `retry_after` is the header retry-after."""
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        kind = "text/plain" if isinstance(body, bytes) else "application/json"
        named = {"content-type": kind, **{name.replace("_", "-"): value for name, value in headers.items()}}
        self.answer = Answer(status=status, headers=named, body=raw)

    def streams(self, *events: tuple[str, object], cut: bool = False, reset: bool = False, hang: bool = False) -> None:
        """Server-sent events; an event without a name is data alone. Then the end, a cut, a reset or silence."""
        body = "".join(
            (f"event: {name}\n" if name else "") + f"data: {data if isinstance(data, str) else json.dumps(data)}\n\n"
            for name, data in events
        ).encode()
        self.answer = Answer(headers={"content-type": "text/event-stream"}, body=body, cut=cut, reset=reset, hang=hang)

    def is_silent(self) -> None:
        """Accept the request and never answer."""
        self.answer = Answer(mute=True)

    def _reply(self, handler: BaseHTTPRequestHandler) -> None:
        answer = self.answer
        if answer.mute:
            self.over.wait()
            handler.close_connection = True
            return
        unfinished = answer.cut or answer.reset or answer.hang
        handler.send_response(answer.status)
        for name, value in answer.headers.items():
            handler.send_header(name, value)
        handler.send_header("content-length", str(len(answer.body) + 1000 * unfinished))
        handler.send_header("connection", "close")
        handler.end_headers()
        handler.wfile.write(answer.body)
        handler.wfile.flush()
        handler.close_connection = True
        if answer.hang:
            self.over.wait()
        if answer.reset:
            handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    def close(self) -> None:
        self.over.set()
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


def patience() -> float:
    """Seconds that a client waits: few where nothing will come, and enough on any machine where an answer does."""
    provider = Provider.newest
    return 0.5 if provider is not None and (provider.answer.mute or provider.answer.hang) else 60.0


def raised_by(call: Callable[[], object]) -> Exception:
    """The exception a call raises."""
    try:
        call()
    except Exception as error:
        return error
    raise AssertionError("nothing was raised")


def through_an_agent(error: BaseException) -> Evidence:
    """The evidence of an exception that an agent wrapped in one of its own."""
    try:
        raise RuntimeError("agent failed") from error
    except RuntimeError as wrapped:
        return evidence_of(wrapped)


def assert_survives_wrapping(error: BaseException) -> None:
    """Every fact is still there when an agent raised its own exception from this one."""
    bare, wrapped = evidence_of(error), through_an_agent(error)
    assert wrapped.exceptions[0] == "RuntimeError"
    assert set(bare.exceptions) <= set(wrapped.exceptions)
    assert "agent failed" in wrapped.text
    for name in ("status", "code", "provider", "headers", "errno", "exit_code", "signal", "phase", "retry_after"):
        assert getattr(wrapped, name) == getattr(bare, name), name
    assert wrapped.output_started == bare.output_started
