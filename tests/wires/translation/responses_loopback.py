"""Tiny provider on loopback: keeps the requests that it gets, and answers as it is told."""

from __future__ import annotations

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator


class ResponsesLoopback:
    """One provider. `answer` is a JSON body, or the chunks of a stream."""

    def __init__(self) -> None:
        self.bodies: list[Any] = []
        self.answer: Any = {}
        self.url = ""


@contextmanager
def responses_loopback() -> Iterator[ResponsesLoopback]:
    """Run a provider."""
    told = ResponsesLoopback()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            told.bodies.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
            chunks = told.answer if isinstance(told.answer, list) else [json.dumps(told.answer).encode()]
            kind = "text/event-stream" if isinstance(told.answer, list) else "application/json"
            self.send_response(200)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(sum(map(len, chunks))))
            self.end_headers()
            for chunk in chunks:
                self.wfile.write(chunk)
                self.wfile.flush()

        def log_message(self, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    told.url = f"http://127.0.0.1:{server.server_port}/v1"
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield told
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
