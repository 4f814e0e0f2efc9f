"""HTTP server on loopback that keeps the requests of an SDK and answers each with given bytes, in given pieces."""

from __future__ import annotations

import json
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import anthropic

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


@dataclass(slots=True)
class Loopback:
    """A client of the real SDK, the bodies that it sent, and what the server answers."""

    client: anthropic.Anthropic
    bodies: list[dict[str, Any]] = field(default_factory=list)
    pieces: Sequence[bytes] = ()
    is_stream: bool = False

    def answer(self, body: dict[str, Any]) -> None:
        """Answer the next requests with this body."""
        self.pieces, self.is_stream = [json.dumps(body).encode()], False

    def stream(self, pieces: Sequence[bytes]) -> None:
        """Answer the next requests with this stream."""
        self.pieces, self.is_stream = pieces, True


@contextmanager
def loopback() -> Iterator[Loopback]:
    """Serve until the end of the block."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            found.bodies.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
            self.send_response(200)
            self.send_header("content-type", "text/event-stream" if found.is_stream else "application/json")
            self.end_headers()
            for piece in found.pieces:
                self.wfile.write(piece)
                self.wfile.flush()

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  # the signature of the base class
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    url = f"http://127.0.0.1:{server.server_port}"
    with anthropic.Anthropic(base_url=url, api_key="key", max_retries=0) as client:
        found = Loopback(client)
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield found
        finally:
            server.shutdown()
            thread.join()
            server.server_close()
